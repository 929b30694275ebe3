"""The command line: ``python -m numc_ufuncs``."""

import argparse
import json
import os
import sys
from pathlib import Path

from . import _bench, _new, _run, _startup_file
from ._config import show_config
from ._version import __version__

INTERRUPTED = 130  # what shells report for a program that Ctrl-C ended


def _writable(text):
    """Refuse a bad path before minutes of measuring, and leave no trace of having looked."""
    path = Path(text)
    existed = path.exists()
    try:
        with path.open("a"):
            pass
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text!r}: {error.strerror}") from None
    if not existed:
        os.unlink(path)
    return path


def _plottable(text):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise argparse.ArgumentTypeError(
            "needs matplotlib: pip install numc_ufuncs[plot]"
        ) from None
    kinds = Figure().canvas.get_supported_filetypes()
    if Path(text).suffix[1:].lower() not in kinds:
        raise argparse.ArgumentTypeError(f"{text!r} must end in one of .{', .'.join(kinds)}")
    return _writable(text)


def _package_name(text):
    try:
        return _new.check_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m numc_ufuncs", description="NumPy ufuncs that use the whole machine."
    )
    parser.add_argument("--version", action="version", version=f"numc_ufuncs {__version__}")
    commands = parser.add_subparsers(dest="command", title="commands")
    commands.add_parser("info", help="show the version, instruction set and threads in use")
    bench = commands.add_parser(
        "bench",
        help="compare add and matmul with NumPy on this machine",
        description="Compare add and matmul with NumPy on this machine. Exits with 1 if any result "
        "differs from NumPy's.",
    )
    bench.add_argument("--quick", action="store_true", help="small sizes only: a check, no figures")
    bench.add_argument("--json", metavar="FILE", type=_writable, help="write all figures to FILE")
    bench.add_argument(
        "--plot", metavar="FILE", type=_plottable, help="draw the rates into FILE (matplotlib)"
    )
    # What follows it is read in _run.py, mostly before this module is imported.
    commands.add_parser("run", add_help=False, help="run a program with NumPy patched")
    new = commands.add_parser(
        "new",
        help="write a package of your own ufuncs, which builds and passes its tests",
        description="Write a package of ufuncs of your own into a new folder: an inner loop in C, "
        "tests, a benchmark, what builds it, and a CI file.",
    )
    new.add_argument(
        "name", type=_package_name, help="of the package, and of the folder: my_ufuncs, for example"
    )
    install = commands.add_parser(
        "install-startup",
        help="write the start-up file, which has NumPy patched where NUMC_PATCH=1 is set",
        description="Write a file into this Python's folder of packages that has NumPy patched in "
        "all programs that run with NUMC_PATCH=1 in the environment, and does nothing in others.",
    )
    install.add_argument("--user", action="store_true", help="into the folder of the user")
    commands.add_parser("remove-startup", help="remove the start-up file")
    return parser


def _run_bench(options):
    progress = _bench.progress_on_stderr()
    try:
        bench = _bench.Bench(options.quick, progress)
        bench.run()
    finally:
        progress("")
    _bench.report(bench)
    if options.json:
        figures = {"machine": bench.machine, "rows": bench.rows, "skipped": bench.skipped}
        options.json.write_text(json.dumps(figures, indent=2) + "\n")
    if options.plot:
        _bench.plot(bench, options.plot)
    return 1 if bench.differs else 0


def main(arguments=None):
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["run"]:
        _run.main(arguments[1:])
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        if options.command == "info":
            show_config()
        elif options.command == "bench":
            return _run_bench(options)
        elif options.command == "new":
            print(*_new.new(options.name), sep="\n")
        elif options.command == "install-startup":
            print(*_startup_file.install(options.user), sep="\n")
        elif options.command == "remove-startup":
            print(*_startup_file.remove(), sep="\n")
        else:
            parser.print_help()
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return INTERRUPTED
    except (OSError, MemoryError) as error:
        print(f"{parser.prog}: error: {error or 'out of memory'}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
