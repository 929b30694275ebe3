#!/usr/bin/env bash
# Builds, tests and measures on a machine with an NVIDIA GPU and no network: plain Meson, the NumPy
# that is there. Stages that fail do not stop those that follow.
#   tools/gpu_check.sh [build] [test] [bench] [sweep] [sanitize]     (all of them without any)
set -uo pipefail
cd "$(dirname "$0")/.."
source=$PWD
build=$PWD/build-gpu
site=$build/site
logs=$build/logs
arch=${GPU_ARCH-$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
    head -1 | tr -d .)}
summary=()

stage_build() {
    local reuse=()
    [ ! -e "$build/meson-private/coredata.dat" ] || reuse=(--reconfigure)
    meson setup "${reuse[@]}" "$build" "$source" -Dtests=true -Dcuda=enabled ${arch:+-Dgpu_arch="$arch"} \
        -Dpython.purelibdir="$site" -Dpython.platlibdir="$site" >"$logs/setup" 2>&1 &&
        meson install -C "$build" >"$logs/build" 2>&1 || {
        tail -n 40 "$logs/setup" "$logs/build"
        return 1
    }
    (cd / && python3 -m numc_ufuncs info)
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
    grep -m1 'model name' /proc/cpuinfo
    nproc
}

stage_test() {
    local status=0
    timeout 120 meson test -C "$build" --print-errorlogs 2>&1 | tail -n 25 || status=1
    # Without NumPy's own tests: they take minutes, and the time on such a machine is for the device.
    # tools/measure.sh runs them.
    timeout 400 pytest -q -p no:cacheprovider -c "$source/pyproject.toml" "$source/tests" \
        --ignore="$source/tests/test_numpy_suite.py" --tb=short >"$logs/pytest" 2>&1 || status=1
    grep -E '^(FAILED|ERROR)|^E  ' "$logs/pytest" | cut -c1-220 | head -n 40
    tail -n 1 "$logs/pytest"
    return "$status"
}

# One a line: where cuBLAS may be.
cublas_paths() {
    python3 -c 'from numc_ufuncs import _cuda; print(*_cuda.blas(), sep="\n")'
}

stage_bench() {
    local cublas
    mapfile -t cublas < <(cublas_paths)
    timeout 60 "$build/tests/c/test_cuda" --time "${cublas[@]}"
    timeout 60 "$build/tests/c/test_cuda_elementwise" --time
    timeout 420 python3 "$source/benchmarks/gpu.py"
    timeout 120 python3 "$source/benchmarks/gpu_memory.py"
    timeout 120 python3 "$source/benchmarks/gpu_elementwise.py"
}

stage_sweep() {
    timeout 330 python3 "$source/benchmarks/gpu.py" sweep
}

# Panels, batches, strides and all kernels, small.
sample='
import numpy as np, numc_ufuncs as nc
nc.set_config(device="cuda")
rng = np.random.default_rng(0)
for dtype in "?bilefdFD":
    for m, k, n in [(33, 65, 17), (300, 200, 600), (1, 70, 900)]:
        a = (rng.random((2, m, 2 * k))[..., ::2] * 3).astype(dtype)
        b = (rng.random((n, k)).T * 3).astype(dtype)
        for gemm in ["auto", "tiled"]:
            with nc.config(gemm=gemm):
                nc.matmul(a, b)
    for memory in ["system", "pinned", "managed"]:
        with nc.config(memory=memory):
            x = (rng.random((300, 701)) * 3).astype(dtype)
            for y in [x, x.T, x[:, ::2], x[::-1], x[:1] + x, x[1:]]:
                nc.multiply(y, y)
            nc.matmul(a.copy(), b.copy())
            nc.matmul(x, x.T)
'

stage_sanitize() {
    local tool status=0 cublas
    mapfile -t cublas < <(cublas_paths)
    command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
    command -v compute-sanitizer >/dev/null || {
        echo 'compute-sanitizer is not installed'
        return 1
    }
    for tool in memcheck racecheck; do
        echo "$tool:"
        timeout 150 compute-sanitizer --tool "$tool" --error-exitcode 9 \
            "$build/tests/c/test_cuda" --quick "${cublas[@]}" >"$logs/$tool" 2>&1 || status=1
        tail -n 4 "$logs/$tool"
    done
    echo 'memcheck, of element-wise kernels:'
    timeout 150 compute-sanitizer --tool memcheck --error-exitcode 9 \
        "$build/tests/c/test_cuda_elementwise" --quick >"$logs/memcheck-elementwise" 2>&1 || status=1
    tail -n 4 "$logs/memcheck-elementwise"
    echo 'memcheck, of Python:'
    (cd "$logs" && timeout 150 compute-sanitizer --tool memcheck --error-exitcode 9 \
        python3 -c "$sample") >"$logs/memcheck-python" 2>&1 || status=1
    tail -n 4 "$logs/memcheck-python"
    return "$status"
}

mkdir -p "$logs"
export PYTHONPATH=$site${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
for stage in "${@:-build test bench sweep sanitize}"; do
    for name in $stage; do
        printf '\n==== %s\n' "$name"
        started=$SECONDS
        result=ok
        # Not in the source tree, whose package has no compiled part.
        (cd "$logs" && "stage_$name") || result=FAILED
        summary+=("$name: $result, $((SECONDS - started)) s")
    done
done
printf '\n==== summary\n'
printf '%s\n' "${summary[@]}"
! printf '%s\n' "${summary[@]}" | grep -q FAILED
