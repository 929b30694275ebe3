#!/usr/bin/env bash
# Builds, tests and measures on a machine that has neither network nor meson-python, such as a large
# one that was lent: plain Meson, the NumPy that is there.
#   tools/measure.sh [results folder]
set -euo pipefail
cd "$(dirname "$0")/.."
results=$(realpath -m "${1:-build-measure/results}")
build=$PWD/build-measure
site=$build/site
mkdir -p "$results"

heading() { printf '\n== %s\n' "$*"; }

heading build
meson setup --wipe "$build" -Dtests=true \
    -Dpython.purelibdir="$site" -Dpython.platlibdir="$site" >"$results/setup.log" 2>&1 \
    || meson setup "$build" -Dtests=true \
        -Dpython.purelibdir="$site" -Dpython.platlibdir="$site" >"$results/setup.log" 2>&1 \
    || { cat "$results/setup.log"; exit 1; }
meson install -C "$build" >"$results/build.log" 2>&1 || { tail -50 "$results/build.log"; exit 1; }
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH}
cd "$results" # not the source tree, whose package has no compiled part
(cd / && python3 -m numc_ufuncs info)
nproc
grep -m1 'model name' /proc/cpuinfo || true

heading 'C tests'
meson test -C "$build" --print-errorlogs 2>&1 | tail -20

heading 'Python tests'
pytest -q -p no:cacheprovider -c "$build/../pyproject.toml" "$build/../tests" 2>&1 | tail -15

heading 'kernels against NumPy, one thread'
python3 "$build/../benchmarks/kernels.py" --placements 6

heading 'never slower, and the large cases'
python3 "$build/../benchmarks/never_slower.py" --large || true # 1: some cell was slower

heading 'bench'
python3 -m numc_ufuncs bench --json "$results/bench.json"
