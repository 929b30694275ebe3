"""Are our ufuncs to type checkers what NumPy's are? Compares what strict mypy and pyright say.

Run in an environment that has both of them and NumPy:

    python tools/check_types.py
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SOURCE = Path(__file__).resolve().parent.parent / "src"

# What is asked of nc.<name> and np.<name>, wrong uses among it.
USES = [
    "{0}",
    "{0}(a, b)",
    "{0}(a, 2)",
    "{0}(a, b, out=a)",
    "{0}(a, b, dtype='f4', where=[True])",
    "{0}(1.0, 2)",
    "{0}([1], [2])",
    "{0}(a)",
    "{0}(a, b, a, a, a, a)",
    "{0}(a, b, nosuch=1)",
    "{0}.reduce(a, axis=0, keepdims=True)",
    "{0}.reduce(a, nosuch=0)",
    "{0}.accumulate(a)",
    "{0}.reduceat(a, [0, 1])",
    "{0}.outer(a, b)",
    "{0}.at(a, [0], b)",
    "{0}.at(a)",
    "{0}.nin, {0}.nout, {0}.ntypes, {0}.identity, {0}.signature, {0}.__name__",
    "{0}.nosuch",
]

HEAD = """\
import numpy as np
import numc_ufuncs as nc
a = np.ones(3)
b = np.ones(3, dtype=np.float32)
"""


def program(module):
    """The text of a module whose line numbers tell the use, and those lines."""
    uses = [use.format(f"{module}.{name}") for name in ufuncs() for use in USES]
    # Each in a function of its own: some methods of generalized ufuncs never return.
    functions = [f"def use_{i}() -> None: reveal_type({use})" for i, use in enumerate(uses)]
    return HEAD.splitlines() + functions


def ufuncs():
    return sorted(name for name in dir(np) if type(getattr(np, name)) is np.ufunc)


def mypy(path):
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary"]
    command += ["--hide-error-context", "--show-column-numbers"]
    done = subprocess.run(
        [*command, "--cache-dir", str(path.parent / "cache"), str(path)],
        env={"MYPYPATH": str(SOURCE), "PATH": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"mypy: {done.stdout}{done.stderr}")
    found = re.findall(rf"^{re.escape(str(path))}:(\d+):\d+: (.*)$", done.stdout, re.MULTILINE)
    # Notes on an overload call its first parameter `self` or not, as the module was read before.
    told = ("error:", "note: Revealed")
    return [(int(line), text) for line, text in found if text.startswith(told)]


def pyright(path):
    settings = {"typeCheckingMode": "strict", "extraPaths": [str(SOURCE)], "include": [path.name]}
    (path.parent / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
        + ["--project", str(path.parent)],
        capture_output=True,
        text=True,
    )
    try:
        found = json.loads(done.stdout)["generalDiagnostics"]
    except json.JSONDecodeError:
        raise SystemExit(f"pyright: {done.stdout}{done.stderr}") from None
    return [(d["range"]["start"]["line"] + 1, d["message"]) for d in found]


def by_line(messages, module):
    said = {}
    for line, text in messages:
        said.setdefault(line, []).append(re.sub(rf"\b{module}\.", "", text))
    return {line: sorted(texts) for line, texts in said.items()}


def differences(checker, folder):
    said = {}
    for module in ("np", "nc"):
        path = Path(folder, f"uses_of_{module}.py")
        path.write_text("\n".join(program(module)) + "\n")
        said[module] = by_line(checker(path), module)
    lines = program("nc")
    for at, line in enumerate(lines[len(HEAD.splitlines()) :], len(HEAD.splitlines()) + 1):
        theirs, ours = said["np"].get(at), said["nc"].get(at)
        if not theirs or theirs != ours:
            yield f"{line}:\n    NumPy's: {theirs}\n    ours: {ours}"


def nosuch_is_an_error(checker, folder):
    path = Path(folder, "nosuch.py")
    path.write_text("import numc_ufuncs as nc\nnc.nosuch(1)\n")
    return any("nosuch" in text for _, text in checker(path))


def main():
    failed = False
    for checker in (mypy, pyright):
        with tempfile.TemporaryDirectory() as folder:
            found = list(differences(checker, folder))
            if not nosuch_is_an_error(checker, folder):
                found.append("nc.nosuch(1) passes")
        for text in found[:10]:
            print(f"{checker.__name__}: {text}")
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
