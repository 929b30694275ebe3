"""Builds the pages: `make docs`."""

import importlib
import json
import os
import posixpath
import re
import sys
import types
from pathlib import Path

import matplotlib.style
import numpy as np
from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import numc_ufuncs
from numc_ufuncs import _bench

DOCS = Path(__file__).resolve().parent
REPOSITORY = DOCS.parent
sys.path.insert(0, str(REPOSITORY / "benchmarks"))
import programs  # noqa: E402

project = "numc_ufuncs"
author = "the numc_ufuncs developers"
project_copyright = f"2026, {author}"
version = release = numc_ufuncs.__version__
html_title = f"numc_ufuncs {release}"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
]

# ---- Markdown: pages read on the site as in the repository ----

myst_heading_anchors = 4  # links to headings, as repository sites make them
# Pages of the site that are files elsewhere in the repository: docs/<page>.md includes them.
INCLUDED = {
    "README.md": "index",
    "CONTRIBUTING.md": "contributing",
    "CHANGELOG.md": "changes",
    "SECURITY.md": "security",
    "examples/linalg/README.md": "examples/linalg",
    "examples/programs/README.md": "examples/programs",
}

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[([^][]*)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_log = logging.getLogger(__name__)


def _with_links(text, folder, page):
    """The text of a file in a folder of the repository, with its links as the page needs them:
    files that are no pages can be downloaded, and folders have no link.
    """

    def led(match):
        label, target, anchor = match.groups(default="")
        path = posixpath.normpath(posixpath.join(folder, target))
        if not (REPOSITORY / path).exists():
            _log.warning("%s leads nowhere", target, location=page)
        if (REPOSITORY / path).is_dir():
            return label
        if path in INCLUDED:
            path = f"docs/{INCLUDED[path]}.md"
        scheme = "" if path.endswith((".md", ".svg")) else "path:"
        path = posixpath.relpath(path, posixpath.dirname(f"docs/{page}"))
        return f"[{label}]({scheme}{path}{anchor})"

    parts, end = [], 0
    for match in _FENCED.finditer(text):
        parts += [_LINK.sub(led, text[end : match.start()]), match.group()]
        end = match.end()
    return "".join([*parts, _LINK.sub(led, text[end:])])


def read_page(app, page, source):
    """A folder's README has the pages that it links to below it, in that order."""
    text = source[0]
    if posixpath.basename(page) == "README":
        names = dict.fromkeys(re.findall(r"\]\(([\w-]+)\.md\)", _FENCED.sub("", text)))
        text += "\n".join(["\n\n```{toctree}\n:hidden:\n", *names, "```\n"])
    source[0] = _with_links(text, posixpath.dirname(f"docs/{page}"), page)


def read_included(app, path, page, content):
    path = Path(DOCS, path).resolve().relative_to(REPOSITORY).as_posix()
    content[0] = _with_links(content[0], posixpath.dirname(path), page)


# ---- the API ----

numpydoc_show_class_members = False
autodoc_member_order = "bysource"
add_function_parentheses = False
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "autolink"  # what is no name here is emphasized
nitpicky = True
doctest_global_setup = "import numpy as np\nimport numc_ufuncs as nc"
doctest_test_doctest_blocks = "default"

NUMPY = "https://numpy.org/doc/stable/reference"
PYTHON = "https://docs.python.org/3/library"


def refer_to_others(app, env, node, shown):
    """Links into NumPy's and Python's pages: addresses are known, and a build needs no network."""
    target = node["reftarget"]
    if node["refdomain"] == "std" and target.startswith("ufuncs"):
        uri = f"{NUMPY}/ufuncs.html#{target.replace('.', '-')}"
    elif target.startswith("numpy."):
        uri = f"{NUMPY}/generated/{target}.html"
    elif hasattr(np, target):
        uri = f"{NUMPY}/generated/numpy.{target}.html"
    elif target.partition(".")[0] in sys.stdlib_module_names:
        uri = f"{PYTHON}/{target.partition('.')[0]}.html"
    else:
        return None
    return nodes.reference("", "", shown, internal=False, refuri=uri)


# ---- figures ----

PLOTS = {
    "bench": lambda figures, path: _bench.plot(types.SimpleNamespace(**figures), path),
    "programs": lambda figures, path: programs.plot(figures["rows"], "", path),
}


class Drawn(SphinxDirective):
    """The figures in a JSON file that a benchmark wrote, as it draws them, and their machine."""

    required_arguments = 1

    def run(self):
        relative, path = self.env.relfn2path(self.arguments[0])
        self.env.note_dependency(relative)
        figures = json.loads(Path(path).read_text(encoding="utf-8"))
        stem = Path(path).stem
        images = []
        for theme, style in (("light", "default"), ("dark", "dark_background")):
            drawn = Path(self.env.doctreedir, f"{stem}-{theme}.svg")
            with matplotlib.style.context([style, {"savefig.transparent": True}]):
                PLOTS[stem.partition("-")[0]](figures, drawn)
            folder = Path(self.env.doc2path(self.env.docname)).parent
            image = nodes.image(uri=os.path.relpath(drawn, folder), alt=f"The figures of {stem}")
            image["classes"] = [f"only-{theme}"]
            images.append(image)
        machine = figures["machine"]
        text = (
            f"{machine['cpu']}, {machine['threads']} threads, {machine['isa']}, "
            f"{machine['bandwidth_bytes_per_second'] / 1e9:.0f} GB/s; NumPy {machine['numpy']}, "
            f"{machine['blas']}, Python {machine['python']}"
        )
        return [*images, nodes.paragraph("", "", nodes.emphasis("", text))]


class Names(SphinxDirective):
    """What a module of NumPy has that is here, too, as links to NumPy's pages."""

    required_arguments = 1

    def run(self):
        module = importlib.import_module(self.arguments[0])
        ours = importlib.import_module(module.__name__.replace("numpy", "numc_ufuncs"))
        paragraph = nodes.paragraph()
        for name in dir(ours):
            value = getattr(module, name, None)
            if name.startswith("_") or not (type(value) is np.ufunc or name in ours.__all__):
                continue
            if value is None or isinstance(value, types.ModuleType):
                continue
            uri = f"{NUMPY}/generated/{module.__name__}.{name}.html"
            paragraph += nodes.reference("", "", nodes.literal("", name), refuri=uri)
            paragraph += nodes.Text(" ")
        return [paragraph]


# ---- how it looks ----

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
}
without_sidebar = ["index", "start", "figures", "comparison", "changes", "security", "examples/*"]
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_sidebars = {page: [] for page in without_sidebar}
highlight_language = "none"  # of blocks that name none
html_show_sourcelink = False


def setup(app):
    if Path(app.outdir, "asv", "index.html").exists():  # `make asv-pages` was run before
        app.tags.add("asv")
    app.connect("source-read", read_page)
    app.connect("include-read", read_included)
    app.connect("missing-reference", refer_to_others)
    app.add_directive("drawn", Drawn)
    app.add_directive("names", Names)
