"""The programs check their own results: they end with 0 where all are right."""

import subprocess
from pathlib import Path

import pytest

BUILD = Path(__file__).with_name("build")


def run(program, *arguments):
    return subprocess.run([BUILD / program, *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def gpu():
    done = run("add", "1")
    if "error: cudaMemGetInfo" in done.stderr:  # the first call of CUDA's
        pytest.skip(done.stderr)


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("n", ["1", "1000", "16777217"])
def test_add(n):
    done = run("add", n)
    assert done.returncode == 0, done.stderr
    first_words = [line.split()[0] for line in done.stdout.splitlines()]
    assert first_words == ["copied", "pinned", "managed", "all"]


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("n", ["1", "31", "32", "33", "500"])
def test_matmul(n):
    done = run("matmul", n)
    assert done.returncode == 0, done.stderr
    assert "all products agree" in done.stdout and done.stdout.count("\n") == 10


@pytest.mark.usefixtures("gpu")
def test_more_than_is_free_is_refused():
    done = run("add", str(1 << 40))
    assert done.returncode == 1 and "free on the GPU" in done.stderr


@pytest.mark.parametrize("program", ["add", "matmul"])
@pytest.mark.parametrize("arguments", [["0"], ["-1"], ["1e3"], [""], ["1", "2"], ["9" * 30]])
def test_sizes_are_checked(program, arguments):
    done = run(program, *arguments)
    assert done.returncode == 1
    assert "usage: " in done.stderr and arguments[0] in done.stderr


@pytest.mark.parametrize("program", ["add", "matmul"])
def test_without_a_gpu_the_cause_is_told(program):
    done = run(program)
    assert done.returncode == 0 or "error: cudaMemGetInfo" in done.stderr
