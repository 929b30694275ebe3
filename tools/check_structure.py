"""Does the tree below src/ keep its rules? Prints `file:line: rule` for each breach.

    python tools/check_structure.py [src]

- Includes point down, as in LAYERS.
- No circles between files, neither of includes nor of calls; x.c and x.h are one file.
- A file name, but for its suffix, is there once; so is the name of a struct, union or enum.
- What x.h declares is defined in x.c (or x.cu) beside it.

The package that `new` copies is another package, and left out.

C is read as it is written here, by clang-format and without macros around declarations: this is no
parser.
"""

import bisect
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

# folder: whom its files may include, apart from each other
LAYERS = {
    "numpy": {"engine", "device", "threads", "memory", "kernels"},
    "engine": {"threads", "memory", "kernels"},
    "device": {"threads", "memory", "kernels"},
    "device/cuda": {"device", "threads"},
    "threads": {"kernels"},
    "memory": {"kernels"},
    "kernels": set(),
}
C_SUFFIXES = {".c", ".h", ".cu", ".cuh", ".def"}
SOURCES = {".c", ".cu"}

TEMPLATE = "_template"

_NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_INCLUDE = re.compile(r'^#\s*(?:include|define\s+\w+)\s+"([^"]+\.(?:h|cuh|def|c))"', re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)
_TAG = re.compile(r"\b(?:struct|union|enum)\s+(?:_Alignas\([^)]*\)\s*)?(\w+)\s*\{")
_ATTRIBUTE = re.compile(r"\b__attribute__\s*\(\(.*?\)\)|\b(?:_Alignas|_Static_assert)\s*\([^()]*\)")
_NAME = re.compile(r"(?<![\w.>])[A-Za-z_]\w*|(?<=[^-]>)[A-Za-z_]\w*")


def _blank(match):
    return re.sub(r"[^\n]", " ", match.group())


class Statement(NamedTuple):
    """What stands outside of all braces, up to a semicolon or the body of a function."""

    text: str
    position: int
    has_body: bool


class File:
    def __init__(self, path, root):
        self.path = path
        self.name = path.relative_to(root.parent).as_posix()
        self.folder = path.parent.relative_to(root).as_posix()
        self.node = (self.folder, path.stem)
        self.is_header = path.suffix not in SOURCES
        text = path.read_text(encoding="utf-8")
        self._lines = [match.start() for match in re.finditer("\n", text)]
        self.includes = [(match[1], match.start()) for match in _INCLUDE.finditer(text)]
        code = _NOT_CODE.sub(_blank, text)
        # The bodies of macros are code, too, but nothing in them is a declaration.
        self.names = defaultdict(list)
        for match in _NAME.finditer(code):
            self.names[match.group()].append(match.start())
        self.code = _DIRECTIVE.sub(_blank, code)
        self.tags = [(match[1], match.start(1)) for match in _TAG.finditer(self.code)]
        self.declared, self.defined, self.private = {}, {}, set()
        for statement in self._statements():
            self._note(statement)

    def at(self, position):
        return f"{self.name}:{bisect.bisect_left(self._lines, position) + 1}"

    @property
    def layer(self):
        return max(
            (x for x in LAYERS if f"{self.folder}/".startswith(f"{x}/")), key=len, default=""
        )

    def _statements(self):
        depth, start, text = 0, 0, []
        is_function = False
        for match in re.finditer(r"[{};]|[^{};]+", self.code):
            part = match.group()
            if part == "{":
                if depth == 0:
                    before = "".join(text)
                    if before.split() == ["extern"]:  # "C"
                        text = []
                        continue
                    is_function = "(" in _ATTRIBUTE.sub("", before) and "=" not in before
                depth += 1
            elif part == "}":
                depth = max(depth - 1, 0)
                if depth == 0 and is_function:
                    yield Statement("".join(text), start, True)
                    text, is_function = [], False
            elif depth == 0 and part == ";":
                yield Statement("".join(text), start, False)
                text = []
            elif depth == 0:
                if not "".join(text).strip():
                    text = []
                    start = match.start() + len(part) - len(part.lstrip())
                text.append(part)

    def _declares(self, text):
        return self.is_header and "=" not in text

    def _note(self, statement):
        text = _ATTRIBUTE.sub(" ", statement.text)
        words = text.split()
        if not words or words[0] == "typedef":
            return
        is_function = "(" in text.partition("=")[0]
        if statement.has_body:  # before it, the name and the parameters
            match = re.search(r"(\w+)\s*\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\s*$", text)
            names = [match[1]] if match else []
        else:
            # `int f(int a, int b)`, `extern int a, b[2]`, `int a = 1, b = 2`, or `type_of_f f, g`
            parts = [text.partition("(")[0]] if is_function else text.split(",")
            found = [re.findall(r"\w+", re.split(r"[=\[]", part)[0]) for part in parts]
            names = [part[-1] for part in found if part]
            is_tag = words[0] in ("struct", "union", "enum") and len(found[0]) < 3
            if len(found[0]) < 2 or (is_tag and not is_function):
                return
        if "static" in words or "INLINE" in words:
            self.private.update(names)
        elif statement.has_body or not (is_function or "extern" in words or self._declares(text)):
            self.defined.update(dict.fromkeys(names, statement.position))
        else:
            self.declared.update(dict.fromkeys(names, statement.position))


def paths_of(root, suffixes):
    paths = (path for path in sorted(root.rglob("*")) if TEMPLATE not in path.parts)
    return [path for path in paths if path.suffix in suffixes and path.is_file()]


def read_tree(root):
    return [File(path, root) for path in paths_of(root, C_SUFFIXES)]


def resolve(file, name, by_path, root):
    """The file that an include means; None if it is made by the build."""
    for path in (file.path.parent / name, root / name):
        if path in by_path:
            return by_path[path]
    made = re.compile(rf"\boutput: '{re.escape(Path(name).name)}'")
    builds = root.rglob("meson.build")
    return None if any(made.search(path.read_text(encoding="utf-8")) for path in builds) else False


def check_includes(files, root):
    by_path = {file.path: file for file in files}
    for file in files:
        for name, position in file.includes:
            other = resolve(file, name, by_path, root)
            if other is False:
                yield f"{file.at(position)}: includes {name}, which is not in {root.name}/"
            elif other and other.layer != file.layer and other.layer not in LAYERS[file.layer]:
                allowed = ", ".join(sorted(LAYERS[file.layer])) or "nothing else"
                yield f"{file.at(position)}: includes {name}: {file.layer} includes {allowed}"


def check_folders(files):
    for file in files:
        if not file.layer:
            yield f"{file.name}:1: is in none of the folders {', '.join(LAYERS)}"


def check_unique(files, root):
    stems = defaultdict(list)
    for path in paths_of(root, C_SUFFIXES | {".py", ".pyi"}):
        if path.stem != "__init__":
            stems[path.stem].append(path)
    for stem, paths in stems.items():
        folders = {path.parent for path in paths}
        if len(folders) > 1 or sum(path.suffix in SOURCES for path in paths) > 1:
            others = ", ".join(path.relative_to(root).as_posix() for path in paths[1:])
            first = paths[0].relative_to(root.parent).as_posix()
            yield f"{first}:1: the name {stem} is there again: {others}"
    tags = defaultdict(list)
    for file in files:
        for tag, position in file.tags:
            tags[tag].append(file.at(position))
    for tag, places in tags.items():
        if len(places) > 1:
            yield f"{places[0]}: struct {tag} is there again: {', '.join(places[1:])}"


def definitions(files):
    """name: the source that defines it, as a global symbol."""
    return {name: file for file in files if not file.is_header for name in file.defined}


def check_headers(files):
    defined = definitions(files)
    for file in files:
        for name, position in file.declared.items():
            if name.isupper():  # a parameter of a template
                continue
            where = defined.get(name)
            if where is None and file.is_header:
                yield f"{file.at(position)}: {name} is defined nowhere"
            elif where is not None and where.node != file.node:
                beside = f"belongs into {where.path.stem}.h"
                yield f"{file.at(position)}: {name} is defined in {where.name}: it {beside}"


def edges(files, root):
    """node: {other node: where, and why}"""
    by_path = {file.path: file for file in files}
    defined = definitions(files)
    declared = {name for file in files if file.is_header for name in file.declared}
    graph = defaultdict(dict)
    for file in files:
        for name, position in file.includes:
            other = resolve(file, name, by_path, root)
            if other and other.node != file.node:
                why = f"{file.at(position)} includes {name}"
                graph[file.node].setdefault(other.node, why)
        for name, positions in file.names.items():
            other = defined.get(name) if name in declared else None
            if other is None or other.node == file.node or name in file.private | {*file.declared}:
                continue
            graph[file.node].setdefault(other.node, f"{file.at(positions[0])} uses {name}")
    return graph


def shortest_circle(graph, start):
    """The nodes of the shortest way from a node to itself; None if there is none."""
    came_from, queue = {}, [start]
    for node in queue:
        for other in graph.get(node, ()):
            if other == start:
                circle = [node]
                while circle[-1] != start:
                    circle.append(came_from[circle[-1]])
                return circle[::-1]
            if other not in came_from:
                came_from[other] = node
                queue.append(other)
    return None


def check_circles(files, root):
    """Each circle once: the shortest through any of its files that no other shows."""
    graph = edges(files, root)
    shown = set()
    for start in sorted(graph):
        circle = shortest_circle(graph, start)
        if circle is None or frozenset(circle) in shown:
            continue
        shown.add(frozenset(circle))
        reasons = [graph[a][b] for a, b in zip(circle, circle[1:] + circle[:1], strict=True)]
        place, _, what = reasons[0].partition(" ")
        names = " -> ".join("/".join(node) for node in (*circle, circle[0]))
        yield f"{place}: circle {names}: {'; '.join([what, *reasons[1:]])}"


def check(root):
    files = read_tree(root)
    return [
        *check_folders(files),
        *check_includes([file for file in files if file.layer], root),
        *check_unique(files, root),
        *check_headers(files),
        *check_circles(files, root),
    ]


def main(arguments):
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent / "src"
    breaches = check(root)
    print(*breaches, sep="\n", end="\n" if breaches else "")
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
