"""The examples for GPUs run: on the fake device, and where there is one, on a GPU."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples" / "gpu"


def printed_by(name, capsys, *args):
    runpy.run_path(str(EXAMPLES / name))["main"](*args)
    return capsys.readouterr().out.splitlines()


@pytest.mark.usefixtures("gpu")
def test_three_memories(capsys):
    lines = printed_by("three_memories.py", capsys, 200)
    assert [line.split()[0] for line in lines[:3]] == ["system", "pinned", "managed"]
    assert all(line.endswith("the same result: True") for line in lines[:3])


@pytest.mark.parametrize("gpu", [pytest.param("cuda", marks=pytest.mark.cuda)], indirect=True)
@pytest.mark.usefixtures("gpu")
def test_sharing(capsys):
    pytest.importorskip("cupy")
    pytest.importorskip("torch")
    first, *others = printed_by("sharing.py", capsys)
    assert len(others) == 2 and all(
        line.split()[-1] == first.split()[-1] for line in (first, *others)
    )


@pytest.mark.parametrize("name", ["three_memories.py", "sharing.py"])
def test_without_a_gpu_they_say_what_is_missing(name, capsys, monkeypatch):
    monkeypatch.setattr("numc_ufuncs._core.memory_problem", lambda _: "there is no GPU here")
    monkeypatch.setattr("numc_ufuncs._core.device_problem", lambda _: "there is no GPU here")
    assert "there is no GPU here" in printed_by(name, capsys)[-1]
