"""What ``run`` with ``--profile``, ``--check`` or ``--fail-on-fallback`` does in the program."""

import atexit
import json
import os
import sys

VARIABLE = "NUMC_REPORT"
# NumPy's own loops are as good for these.
_NO_FALLBACK = ("scalars", "small", "no gain")
FAILED = 1


def setting(options):
    """What the environment is to tell the program's process; None if nothing is asked."""
    if not (options.profile or options.json or options.plot or options.check or options.strict):
        return None
    names = ("profile", "json", "plot", "check", "strict")
    files = {n: getattr(options, n) and os.path.abspath(getattr(options, n)) for n in names[1:3]}
    # The process keeps its number when it becomes the program; children have others.
    asked = {n: getattr(options, n) for n in names} | files | {"process": os.getpid()}
    return json.dumps(asked)


def start():
    """Begin what was asked of this process; it reports on stderr when it ends."""
    text = os.environ.get(VARIABLE, "")
    asked = json.loads(text) if text else {}
    if asked.get("process") != os.getpid():
        return
    from ._check import Check
    from ._profile import profile

    counted = profile().__enter__()
    compared = Check() if asked["check"] else None
    atexit.register(_end, asked, counted, compared)


def _end(asked, counted, compared):
    if compared is not None:
        compared.stop()
    counted.__exit__(None, None, None)
    lines = []
    if asked["profile"]:
        lines.append(counted.table())
    failed = False
    if compared is not None:
        lines.append(f"checked {compared.calls:,} calls: {len(compared.differences)} differ")
        lines += [f"first: {difference}" for difference in compared.differences[:1]]
        failed = bool(compared.differences)
    if asked["strict"]:
        fallbacks = [r for r in counted.rows if r["way"] == "NumPy"]
        fallbacks = [r for r in fallbacks if r["reason"] not in _NO_FALLBACK]
        lines += [
            f"NumPy computed {row['calls']:,} calls of {row['ufunc']}({row['dtypes']}) in "
            f"{row['file']}:{row['line']}: {row['reason']}"
            for row in fallbacks
        ]
        failed = failed or bool(fallbacks)
    try:
        if asked["json"]:
            with open(asked["json"], "w", encoding="utf-8") as file:
                file.write(counted.to_json() + "\n")
        if asked["plot"]:
            counted.plot(asked["plot"])
    except Exception as error:  # of the disk, or no matplotlib: the program itself has ended well
        lines.append(f"{type(error).__name__}: {error}")
        failed = True
    for line in lines:
        print(f"numc_ufuncs: {line}", file=sys.stderr)
    if failed:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(FAILED)  # nothing else changes the exit status at this point
