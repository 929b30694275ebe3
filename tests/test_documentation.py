"""README, guide and recipes: their code and commands run, and links lead somewhere."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pages
import pytest
from pages import COMMANDS, NEEDS

REPOSITORY = Path(__file__).parent.parent
DOCS = REPOSITORY / "docs"
PAGES = [
    REPOSITORY / "README.md",
    DOCS / "start.md",
    *sorted(DOCS.glob("guide/*.md")),
    *sorted(DOCS.glob("howto/*.md")),
]
WORKFLOWS = sorted(REPOSITORY.glob(".github/workflows/*.yml"))
ALL = [*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md")]
# What the pages call script.py.
SCRIPT = """
import numpy as np
x = np.linspace(0, 1, 1_000_000)
print(np.sqrt(x * x + 1).sum())
"""


def name_of(path):
    return path.relative_to(REPOSITORY).as_posix()


def programs():
    """(page, need) for the Python of each page without a need, and again with each of its needs."""
    for path in PAGES:
        for need in sorted({b.needs for b in pages.blocks(path) if b.language == "python"}):
            marks = [pytest.mark.cuda] if need == "cuda" else []
            yield pytest.param(path, need, marks=marks, id=f"{name_of(path)} {need}".strip())


@pytest.mark.parametrize(("path", "need"), [*programs()])
def test_python_runs(tmp_path, path, need):
    if need and not NEEDS[need]():
        pytest.skip(f"needs {need}")
    code = [b.text for b in pages.blocks(path) if b.language == "python" and b.needs in ("", need)]
    code = "\n".join(code)
    for package in re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE):
        if find_spec(package) is None:
            pytest.skip(f"needs {package}")
    program = tmp_path / "program.py"
    program.write_text(code, encoding="utf-8")
    command = [sys.executable, program]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=pages.SECONDS
    )
    assert done.returncode == 0, done.stderr


def with_commands():
    return [path for path in PAGES if any(b.language in COMMANDS for b in pages.blocks(path))]


@pytest.mark.parametrize("path", with_commands(), ids=name_of)
def test_commands_run(tmp_path, path):
    (tmp_path / "script.py").write_text(SCRIPT, encoding="utf-8")
    script = "\n".join(b.text for b in pages.blocks(path) if b.language in COMMANDS)
    pages.run_commands(script, tmp_path)


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_blocks_are_of_known_kinds(path):
    for block in pages.blocks(path):
        assert block.language in {"", "text", "python", *COMMANDS}, block
        assert block.needs == "" or block.needs in NEEDS, block


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_links_lead_somewhere(path):
    prose = pages.FENCED.sub("", path.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)\s#]+)", prose):
        assert "://" in link or (path.parent / link).exists(), link


def test_what_make_is_asked_for():
    """Each `make TARGET` is one."""
    makefile = (REPOSITORY / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    for path in (REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md"):
        asked = set(re.findall(r"(?:^|`)make ([a-z0-9-]+)", path.read_text(), re.MULTILINE))
        assert asked and asked <= targets, path
    for path in WORKFLOWS:
        assert set(re.findall(r"\bmake ([a-z0-9-]+)", path.read_text())) <= targets, path


@pytest.mark.parametrize("path", WORKFLOWS, ids=name_of)
def test_workflows_are_valid_yaml(path):
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load(path.read_text())["jobs"]
    for job in jobs.values():
        assert all("uses" in step or "run" in step for step in job["steps"])


def test_the_version_is_the_same_everywhere():
    found = {}
    for name, pattern in {
        "pyproject.toml": r'^version = "(.*)"$',
        "meson.build": r"^  version: '(.*)',$",
        "src/numc_ufuncs/_version.py": r'^__version__ = "(.*)"$',
        "CITATION.cff": r"^version: (.*)$",
        "CHANGELOG.md": r"^## (\d.*) \(",
    }.items():
        found[name] = re.search(pattern, (REPOSITORY / name).read_text(), re.MULTILINE)[1]
    assert len(set(found.values())) == 1, found
