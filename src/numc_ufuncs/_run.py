"""``python -m numc_ufuncs run``: Python again, in an environment that has NumPy patched.

Imports neither NumPy nor what needs it: BLAS reads the environment when it is loaded.
"""

import os
import sys

PACKAGE = "numc_ufuncs"
STARTUP_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_startup")
# Its threads spin for 2**26 cycles after a product by default, in the way of ours: 2**4 is the
# least that it knows.
BLAS_VARIABLE, BLAS_TIMEOUT = "OPENBLAS_THREAD_TIMEOUT", "4"
# Options with a value, which is not the program's name.
WITH_VALUE = ("--threads", "--memory", "--json", "--plot")
MEMORY_VARIABLE = "NUMC_MEMORY"


def _parser():
    import argparse  # only here: every import of the package imports this module

    def threads(text):
        if not (text.isascii() and text.isdecimal() and int(text) >= 1):
            raise argparse.ArgumentTypeError(f"{text!r} is no integer of at least 1")
        return text

    parser = argparse.ArgumentParser(
        prog=f"python -m {PACKAGE} run",
        usage="%(prog)s [options] [script | -m module | -c code | -] [arguments]",
        description="Run a program, or without one an interactive session, as python does, with "
        "NumPy patched: in the program and in the processes that it starts.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--threads", metavar="N", type=threads, help="use N threads at most (NUMC_NUM_THREADS)"
    )
    parser.add_argument(
        "--memory",
        choices=("cached", "system"),
        help="keep large blocks of memory for arrays to come (cached, the default), or not "
        "(NUMC_MEMORY)",
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        help="print at the end which ufuncs were called, what computed them, and which lines took "
        "most",
    )
    parser.add_argument("--json", metavar="FILE", help="write the profile to FILE")
    parser.add_argument("--plot", metavar="FILE", help="draw the profile into FILE (matplotlib)")
    parser.add_argument(
        "--check",
        action="store_true",
        help="let NumPy compute every call, too; print how many differ by more than rounding and "
        "the first of them, and exit with 1",
    )
    parser.add_argument(
        "--fail-on-fallback",
        dest="strict",
        action="store_true",
        help="exit with 1 if NumPy's own loops computed what ours could have gained from",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="do not say on stderr what was set in the environment"
    )
    return parser


def _split(arguments):
    """The options of `run`, and what follows them: Python's command line."""
    i = 0
    while i < len(arguments) and (arguments[i] == "-h" or arguments[i].startswith("--")):
        if arguments[i] == "--":  # Python's sign, too, that a name follows
            break
        i += 2 if arguments[i] in WITH_VALUE else 1
    return arguments[:i], arguments[i:]


def python_options():
    """The interpreter's own options before ``-m numc_ufuncs``; None if that was not its command."""
    arguments = getattr(sys, "argv", [])
    before = sys.orig_argv[1 : len(sys.orig_argv) - len(arguments) + 1]
    if arguments[:1] != ["-m"] or not before:  # that is argv[0] while the module is looked for
        return None
    *options, last = before
    if last == PACKAGE and options:  # -m numc_ufuncs, -um numc_ufuncs
        last = options.pop()
    elif last.endswith(PACKAGE):  # -mnumc_ufuncs
        last = last.removesuffix(PACKAGE)
    if not (last.startswith("-") and last.endswith("m")):
        return None
    return [*options, last[:-1]] if last != "-m" else options


def settings(environment, options):
    """What is to be set in an environment."""
    paths = [path for path in (environment.get("PYTHONPATH"),) if path]
    if STARTUP_FOLDER not in os.pathsep.join(paths).split(os.pathsep):
        paths.insert(0, STARTUP_FOLDER)
    new = {"NUMC_PATCH": "1", "PYTHONPATH": os.pathsep.join(paths)}
    if options.threads:
        new["NUMC_NUM_THREADS"] = options.threads
    if options.memory or MEMORY_VARIABLE not in environment:
        new[MEMORY_VARIABLE] = options.memory or "cached"
    if BLAS_VARIABLE not in environment:
        new[BLAS_VARIABLE] = BLAS_TIMEOUT
    from . import _report

    asked = _report.setting(options)
    if asked:
        new[_report.VARIABLE] = asked
    return new


def _problem():
    """What keeps the interpreter from finding our sitecustomize."""
    if sys.flags.no_site or sys.flags.ignore_environment:
        return (
            "Python's options -I, -E and -S keep it from being told of a patch; with a start-up "
            f"file (python -m {PACKAGE} install-startup), NUMC_PATCH=1 works under -I and -E"
        )
    if os.pathsep in STARTUP_FOLDER:
        return f"PYTHONPATH cannot name a folder with {os.pathsep!r} in it: {STARTUP_FOLDER}"
    return None


def main(arguments):
    """Replace this process by the program. Returns never."""
    own, rest = _split(arguments)
    parser = _parser()
    options = parser.parse_args(own)
    known = not rest or not rest[0].startswith("-") or rest[0][:2] in ("-", "--", "-m", "-c")
    if not known:
        parser.error(f"unknown option {rest[0]}; those of Python go before -m {PACKAGE}")
    problem = _problem()
    if problem:
        parser.error(problem)
    new = settings(os.environ, options)
    if not options.quiet:
        print(f"{PACKAGE}: set", *(f"{k}={v}" for k, v in new.items()), file=sys.stderr, flush=True)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()  # what a sitecustomize printed would be lost
    command = [sys.executable, *(python_options() or []), *rest]
    os.execve(sys.executable, command, {**os.environ, **new})


def environment_problems():
    """Do what ``NUMC_MEMORY`` and ``NUMC_PATCH`` say; return what went wrong, as lines of text.

    The package calls it at the end of its import.
    """
    problems = []
    memory = os.environ.get(MEMORY_VARIABLE)
    if memory:
        from ._config import set_config

        try:
            set_config(memory=memory)
        except (ValueError, RuntimeError) as error:
            problems.append(f"{MEMORY_VARIABLE}: {error}")
    if os.environ.get("NUMC_PATCH", "") in ("", "0"):
        return problems
    from . import _report
    from ._patch import is_patched, patch_numpy

    try:
        patch_numpy()
        _report.start()
    except Exception as error:
        return [*problems, f"NumPy is not patched: {type(error).__name__}: {error}"]
    if not is_patched():
        problems.append(
            "NumPy is not patched: the parts that a patch needs are not as they are known here"
        )
    return problems
