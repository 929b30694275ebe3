"""Which calls a program makes, and what computed them."""

import json

import numpy as np
import pytest
from checks import in_threads

import numc_ufuncs as nc

pytestmark = pytest.mark.thread_unsafe  # of the whole process


def line_of(function):
    return function.__code__.co_firstlineno + 1


def only(rows, **wanted):
    found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
    assert len(found) == 1, rows
    return found[0]


def test_counts_elements_and_lines():
    def program():
        return (A * 2).sum() + np.square(A)[0]

    A = np.ones(1000, int)
    with nc.patched(), nc.profile() as p:
        for _ in range(3):
            program()
    for name in ("multiply", "add.reduce", "square"):
        row = only(p.rows, ufunc=name)
        assert (row["calls"], row["elements"], row["dtypes"]) == (3, 3000, A.dtype.name)
        assert (row["file"], row["line"]) == (__file__, line_of(program))
        assert 0 < row["seconds"] < p.seconds
        assert row["way"] == "one thread" and row["reason"] == ""
    assert [r["seconds"] for r in p.rows] == sorted((r["seconds"] for r in p.rows), reverse=True)


def test_our_own_ufuncs_are_counted_without_a_patch():
    with nc.profile() as p:
        nc.add(np.ones(9), 1)
        nc.exp(np.ones(9))
        np.add(np.ones(9), 1)
    assert {row["ufunc"] for row in p.rows} == {"add", "exp"}


@pytest.mark.parametrize(
    ("operand", "reason"),
    [
        (1.5, "scalars"),
        (np.float32(1), "scalars"),
        (np.ones(3, ">f8"), "small"),
        (np.ones(3, object), "objects"),
        (np.ones(3, "m8[s]"), "no numbers"),
        (np.ma.ones(3), "subclass"),
        ([1.0], "no array"),
    ],
)
def test_reasons_why_numpys_own_ran(operand, reason):
    with nc.patched(["negative"]), nc.profile() as p:
        np.negative(operand)
    assert {(row["way"], row["reason"]) for row in p.rows} >= {("NumPy", reason)}


def test_ways(threads_always):
    big = np.ones(100_000)
    with nc.patched(), nc.profile() as p:
        np.add(big, big)
        np.maximum.reduce(big)
    assert {row["way"] for row in p.rows} == {"threads"}


def test_the_gpu_is_a_way(device):
    with nc.patched(), nc.profile() as p:
        np.matmul(np.ones((64, 64)), np.ones((64, 64)))
    assert only(p.rows, ufunc="matmul")["way"] == "GPU"


def test_lines_are_the_programs_not_numpys():
    def program():
        return np.linalg.norm(np.ones((3, 3))) + np.dot(np.ones((50, 50), int), 3)[0, 0]

    with nc.patched(), nc.profile() as p:
        program()
    assert {row["file"] for row in p.rows} == {__file__}


def test_calls_that_raise_are_counted():
    with nc.patched(), nc.profile() as p, pytest.raises(ValueError, match="broadcast"):
        np.add(np.ones(3), np.ones(4))
    assert only(p.rows, ufunc="add")["calls"] == 1


def test_blocks_nest():
    with nc.profile() as outer:
        nc.add(np.ones(9), 1)
        with nc.profile() as inner:
            nc.add(np.ones(9), 1)
            nc.subtract(np.ones(9), 1)
        nc.add(np.ones(9), 1)
    assert sum(row["calls"] for row in inner.rows) == 2
    assert sum(row["calls"] for row in outer.rows) == 4
    with nc.profile() as later:
        pass
    assert later.rows == []


def test_threads_and_many_lines():
    lines = 3000
    code = compile("\n".join(["add(a, a)"] * lines), "many", "exec")

    def run(_):
        exec(code, {"add": nc.add, "a": np.ones(3)})

    with nc.profile() as p:
        in_threads(4, run)
    rows = [row for row in p.rows if row["file"] == "many"]
    assert sorted(row["line"] for row in rows) == list(range(1, lines + 1))
    assert all(row["calls"] == 4 for row in rows)


def test_table_json_and_plot(tmp_path):
    pytest.importorskip("matplotlib")
    with nc.profile() as p:
        nc.add(np.ones(9), 1)
    text = p.table()
    assert text.startswith("1 calls took") and "one thread" in text and __file__ in text
    assert json.loads(p.to_json())["rows"] == p.rows
    p.plot(tmp_path / "profile.svg")
    assert "one thread" in (tmp_path / "profile.svg").read_text()
    with nc.profile() as nothing:
        pass
    assert nothing.table().startswith("0 calls")
