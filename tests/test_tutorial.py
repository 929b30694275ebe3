"""The tutorial: its commands run, and the code that its pages show is that of the sources."""

import re
import shutil
from pathlib import Path

import pages
import pytest
from pages import COMMANDS, NEEDS

REPOSITORY = Path(__file__).parent.parent
PAGES = REPOSITORY / "docs" / "tutorial"
FOLDER = REPOSITORY / "examples" / "tutorial"
LESSONS = sorted(path.stem for path in PAGES.glob("0*.md"))
SHOWN = ("c", "cpp", "cuda", "python", "meson", "toml")

REPOSITORY_FOR_ASV = """
git init --quiet
git -c user.name=test -c user.email= commit --quiet --allow-empty --message=test
"""


def blocks(page):
    return pages.blocks(PAGES / f"{page}.md")


def scripts():
    """(page, need) for what each page runs without a need, and again with each of its needs."""
    found = []
    for page in LESSONS:
        needs = {block.needs for block in blocks(page) if block.language in COMMANDS}
        for need in sorted(needs):
            marks = [pytest.mark.cuda] if need == "cuda" else []
            found.append(pytest.param(page, need, marks=marks, id=f"{page} {need}".strip()))
    return found


@pytest.fixture
def copy(tmp_path):
    """A copy of the sources alone, as a reader would have it."""
    ignored = shutil.ignore_patterns("build*", "__pycache__", ".*cache")
    shutil.copytree(FOLDER, tmp_path / "examples" / "tutorial", ignore=ignored)
    return tmp_path


@pytest.mark.parametrize(("page", "need"), scripts())
def test_commands_run(copy, page, need):
    if need and not NEEDS[need]():
        pytest.skip(f"needs {need}")
    allowed = {"", need, "nvcc"} if need == "cuda" else {"", need}
    chosen = [b for b in blocks(page) if b.language in COMMANDS and b.needs in allowed]
    while chosen[-1].needs != need:  # what comes after it has been run without the need
        chosen.pop()
    script = "\n".join(block.text for block in chosen)
    if need == "asv":  # it writes a file into HOME
        pages.run_commands(REPOSITORY_FOR_ASV + script, copy, HOME=str(copy))
    else:
        pages.run_commands(script, copy)


@pytest.mark.parametrize("page", LESSONS)
def test_code_is_that_of_the_sources(page):
    folders = [FOLDER / page, REPOSITORY / "src" / "numc_ufuncs" / "_template"]
    files = [p for p in folders[not folders[0].is_dir()].rglob("*") if p.is_file()]
    sources = [path.read_text(encoding="utf-8") for path in files if "build" not in path.parts]
    shown = [block.text for block in blocks(page) if block.language in SHOWN]
    for text in shown:
        assert any(text in source for source in sources), f"in no file of {page}:\n{text}"


@pytest.mark.parametrize("page", LESSONS)
def test_blocks_are_of_known_kinds(page):
    """Neither a command nor code can be missed by a misspelled language or need."""
    for block in blocks(page):
        assert block.language in {*COMMANDS, *SHOWN, "text"}, block
        assert block.needs == "" or (block.needs in NEEDS and block.language in COMMANDS), block
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(blocks(page))
    assert text.count("<!-- needs") == sum(block.needs != "" for block in blocks(page))


def test_every_lesson_has_a_page():
    folders = {path.name for path in FOLDER.iterdir() if path.is_dir()}
    assert folders <= set(LESSONS)
    overview = (PAGES / "README.md").read_text(encoding="utf-8")
    for page in LESSONS:
        assert f"]({page}.md)" in overview
