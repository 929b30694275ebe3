"""Runs cppcheck on the C sources once, and on the kernels once per instruction set: their branches.

    python tools/cppcheck.py BUILD

BUILD is a folder that Meson configured. Its commands tell the flags, and these the macros.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CPPCHECK = [
    *("cppcheck", "--quiet", "--std=c11", "--language=c", "--error-exitcode=1", "--inline-suppr"),
    *("--enable=warning,style,performance,portability", "--suppressions-list=tools/cppcheck.txt"),
    *("-I", "src", "-DPy_BEGIN_ALLOW_THREADS={", "-DPy_END_ALLOW_THREADS=}"),
]
MACROS = re.compile(r"^#define (__(?:AMX|AVX|BMI|F16C|FMA|POPCNT|SSE)\w*) 1$", re.MULTILINE)
# Cross compilers have them: without one, their branches are checked all the same.
NEON = ["-D__aarch64__", "-DISA=neon"]


def macros_of(command):
    flags = [flag for flag in command if flag.startswith("-m")]
    done = subprocess.run(
        [command[0], *flags, "-dM", "-E", "-x", "c", os.devnull],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [f"-D{name}" for name in MACROS.findall(done.stdout)]


def kernel_runs(build):
    """{name: arguments} for each source that is compiled per instruction set."""
    runs = {}
    for entry in json.loads(Path(build, "compile_commands.json").read_text(encoding="utf-8")):
        command = shlex.split(entry["command"])
        command = command[command[0].endswith("ccache") :]
        isa = [word for word in command if word.startswith(("-DISA=", "-DKERNEL="))]
        if isa:
            source = os.path.relpath(Path(entry["directory"], entry["file"]))
            own = [word for word in command if re.fullmatch(r"-D([A-Z]+_ONLY|AMX)", word)]
            macros = macros_of(command)
            runs[f"{source} {isa[0]}"] = [*isa, *own, "-D__x86_64__", *macros, source]
    return runs


def main(build):
    runs = {"all": ["-DISA=sse2", "-D__x86_64__", "src", "tests/c"], **kernel_runs(build)}
    if len(runs) == 1:
        raise SystemExit(f"{build}: no kernel is compiled per instruction set")
    kernels = sorted({name.split()[0] for name in runs if " " in name})
    runs["neon"] = [*NEON, *kernels]
    runs["neon fp16"] = [*NEON, "-D__ARM_FEATURE_FP16_VECTOR_ARITHMETIC", *kernels]

    def run(arguments):
        return subprocess.run([*CPPCHECK, *arguments], check=False).returncode

    with ThreadPoolExecutor(os.cpu_count()) as executor:
        failed = [
            name
            for name, status in zip(runs, executor.map(run, runs.values()), strict=True)
            if status
        ]
    print(f"cppcheck: {len(runs)} runs", *(f"failed: {name}" for name in failed), sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
