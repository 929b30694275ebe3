"""`new`: the package that it writes builds and passes its tests, and errors leave nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from numc_ufuncs import __main__ as command_line
from numc_ufuncs import _new

REPOSITORY = Path(__file__).parent.parent
TEMPLATE = REPOSITORY / "src" / "numc_ufuncs" / "_template"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_of(folder):
    paths = (path for path in folder.rglob("*") if path.is_file())
    return sorted(
        str(path.relative_to(folder)) for path in paths if "__pycache__" not in path.parts
    )


def test_every_file_of_the_template_is_installed():
    assert files_of(_new.TEMPLATE) == files_of(TEMPLATE)


def test_the_name_stands_wherever_the_templates_did(folder, capsys):
    assert command_line.main(["new", "fast_sums2"]) == 0
    made = folder / "fast_sums2"
    names = files_of(made)
    assert names == sorted(
        name.replace("my_ufuncs", "fast_sums2") for name in files_of(_new.TEMPLATE)
    )
    for name in names:
        text = (made / name).read_text()
        assert text and "my_ufuncs" not in name + text
    assert "import fast_sums2" in (made / "tests" / "test_lerp.py").read_text()
    assert f"wrote {len(names)} files into fast_sums2/" in capsys.readouterr().out
    # What a user's new folders and files may, not what temporary ones may.
    (folder / "plain").mkdir()
    assert made.stat().st_mode == (folder / "plain").stat().st_mode
    assert sorted(os.listdir(folder)) == ["fast_sums2", "plain"]


def test_compiled_files_of_the_template_are_not_copied(folder, monkeypatch):
    template = folder / "template"
    (template / "__pycache__").mkdir(parents=True)
    (template / "__pycache__" / "a.pyc").write_bytes(b"\xff\x00")
    (template / "my_ufuncs.c").write_text("my_ufuncs")
    monkeypatch.setattr(_new, "TEMPLATE", template)
    _new.new("other")
    assert files_of(folder / "other") == ["other.c"]
    assert not (folder / "other" / "__pycache__").exists()


@pytest.mark.parametrize(
    "name",
    ["", "My", "a-b", "a b", "1a", "_a", "a_", "a.b", "../a", "/tmp/a", "ä", "a\n", "class", "json"]
    + ["numpy", "numc_ufuncs", "tests"],
)
def test_names_that_are_refused(folder, capsys, name):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["new", name])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert f"argument name: {name!r} is not the name of a package: lower-case letters" in message
    assert os.listdir(folder) == []


@pytest.mark.parametrize("name", ["a", "a1", "a_b", "my_ufuncs", "my_ufuncs_2", "classes"])
def test_names_that_are_allowed(folder, name):
    _new.new(name)
    assert os.listdir(folder) == [name]


EXISTING = {
    "folder": lambda path: (path.mkdir(), (path / "mine").write_text("kept")),
    "empty folder": lambda path: path.mkdir(),
    "file": lambda path: path.write_text("kept"),
    "dangling link": lambda path: path.symlink_to("nowhere"),
}


def state(path):
    return [(p, p.lstat().st_ino, p.lstat().st_mtime_ns) for p in [path, *path.rglob("*")]]


@pytest.mark.parametrize("kind", EXISTING)
def test_what_exists_is_never_overwritten(folder, capsys, kind):
    path = folder / "mine"
    EXISTING[kind](path)
    before = state(path)
    assert command_line.main(["new", "mine"]) == 2
    assert "'mine' exists already; nothing was written" in capsys.readouterr().err
    assert state(path) == before
    assert os.listdir(folder) == ["mine"]


def test_a_folder_that_appears_meanwhile_is_not_overwritten(folder, capsys, monkeypatch):
    monkeypatch.setattr(os.path, "lexists", lambda path: False)
    EXISTING["folder"](folder / "mine")
    assert command_line.main(["new", "mine"]) == 2
    assert "error: " in capsys.readouterr().err
    assert files_of(folder) == ["mine/mine"]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_nothing_half_written_is_left(folder, capsys, monkeypatch, error):
    def fail(path, *_, **__):
        if path.name == "README.md":
            raise error
        return write(path, *_, **__)

    write = Path.write_text
    monkeypatch.setattr(Path, "write_text", fail)
    assert command_line.main(["new", "mine"]) in (2, command_line.INTERRUPTED)
    assert ("disk full" if isinstance(error, OSError) else "nothing") in capsys.readouterr().err
    assert os.listdir(folder) == []


BENCHMARK = """
from benchmarks.lerp import Lerp
benchmark = Lerp()
for parameters in zip(*Lerp.params):
    benchmark.setup(*parameters)
    benchmark.time_call(*parameters)
"""


def test_the_package_builds_without_warnings_and_passes_its_tests(folder):
    pytest.importorskip("mesonpy", reason="pip install '.[test]'")
    site = folder / "site"
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
    }

    def run(*command, **options):
        command = [sys.executable, "-m", *command]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=300, **options
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("numc_ufuncs", "new", "made_here")
    made = folder / "made_here"
    # As the package's README says, but from what is installed, and not beside it.
    run(
        *("pip", "--disable-pip-version-check", "install", "--no-build-isolation", "--no-deps"),
        *("-Csetup-args=--werror", f"--target={site}", "."),
        cwd=made,
    )
    tests = run("pytest", "-q", "-p", "no:cacheprovider", cwd=made)
    assert " passed" in tests and " skipped" not in tests
    run("timeit", "-n1", "-r1", BENCHMARK, cwd=made)
