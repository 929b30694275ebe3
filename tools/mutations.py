"""Are the tests honest? Break the code in one place at a time, and see the tests fail.

Works on a copy of the tree, in an environment that has the build and the test tools:

    python tools/mutations.py [name ...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = [
    "test_calls.py",
    "test_mixed.py",
    "test_product_calls.py",
    "test_ufuncs.py",
    "test_half.py",
    "test_reduce.py",
    "test_where_reduce.py",
    "test_accumulate.py",
    "test_parallel.py",
    "test_gufuncs.py",
    "test_linalg.py",
    "test_linalg_errors.py",
    "test_linalg_qr.py",
    "test_threads.py",
    "test_matmul.py",
    "test_thin_products.py",
    "test_offload.py",
    "test_memory.py",
    "test_device_memory.py",
    "test_resident.py",
    "test_sharing.py",
    "test_elementwise_devices.py",
    "test_fuzz.py",
]

# name: file, what it says, what it shall say
MUTATIONS = {
    "a failed call in place": (
        "src/numpy/elementwise_offload.c",
        "!(in_place && report->began) &&",
        "!(in_place && false) &&",
    ),
    "managed memory after the loss of its device": (
        "src/numpy/elementwise_offload.c",
        "!(status == STATUS_LOST && any_is_managed);",
        "(any_is_managed || !any_is_managed);",
    ),
    "exceptions of element-wise work": (
        "src/device/device_elementwise.c",
        "raised |= (words[i] != 0 ? 1U : 0U) << i;",
        "raised |= (words[i] == 2 ? 1U : 0U) << i;",
    ),
    "pieces of a range": (
        "src/device/element_pieces.c",
        "const ptrdiff_t first = index % pieces->ranges * pieces->range;",
        "const ptrdiff_t first = index % pieces->ranges * (pieces->range + 1);",
    ),
    "slots in use": (
        "src/device/device_elementwise.c",
        "    if (status == STATUS_OK && !happened) {\n        status = device->wait",
        "    if (false) {\n        status = device->wait",
    ),
    "programs that alternate": (
        "src/device/last_use.c",
        "        calls_left = 1 << before;",
        "        calls_left = 0;",
    ),
    "what the processor used": (
        "src/device/last_use.c",
        "!device->came_back(device, (const void *)extent.first, extent.end - extent.first);",
        "extent.end > extent.first;",
    ),
    "moves of products of managed memory": (
        "src/device/resident.c",
        "if (!last_use_left_on(extent, device)) {",
        "if (true) {",
    ),
    "products of complex numbers that run backwards": (
        "src/numpy/elementwise_offload.c",
        "(work->fuses && runs_backwards(call))",
        "(work->fuses && !work->fuses)",
    ),
    "kept zeros": (
        "src/memory/kept_blocks.c",
        "if (!is_lazy || madvise(block->data, block->capacity, MADV_DONTNEED) != 0) {",
        "if (false) {",
    ),
    "kept blocks after the switch": (
        "src/numpy/memory_handler.c",
        "if (!free_ours(data)) {",
        "if (memory_in_effect() != MEMORY_CACHED || !free_ours(data)) {",
    ),
    "what smaller arrays leave of kept blocks": (
        "src/memory/keeper.c",
        "return block->capacity - keeper_capacity(block->bytes);",
        "return (void)block, 0;",
    ),
    "lock of kept blocks at a fork": (
        "src/memory/kept_blocks.c",
        "pthread_atfork(before_fork, after_fork, after_fork_in_child);",
        "pthread_atfork(NULL, NULL, NULL);",
    ),
    "parts of kept blocks": (
        "src/memory/keeper.c",
        "if (left != NULL && left->bytes == 0) {",
        "if (left != NULL) {",
    ),
    "symmetric products of managed memory": (
        "src/device/resident.c",
        "if (status == STATUS_OK && matmul_is_symmetric(task)) {",
        "if (false) {",
    ),
    "infinities in products of managed memory": (
        "src/device/resident.c",
        ".nonfinite = *session->nonfinite,",
        ".nonfinite = false,",
    ),
    "waiting for products of managed memory": (
        "src/device/resident.c",
        "const enum status drained = stream_settle(device, stream);",
        "const enum status drained = STATUS_OK;",
    ),
    "waiting for a kernel after a failure": (
        "src/device/device_elementwise.c",
        "stream_settle(device, stream) : status",
        "device->drain(device, stream) : status",
    ),
    "rows of pinned matrices continue their sums": (
        "src/device/pinned.c",
        ".adds = part.first > 0,",
        ".adds = false,",
    ),
    "room for managed memory": (
        "src/numpy/device_memory.c",
        "if (bytes > is_free || bytes > most || managed > most - bytes) {",
        "if (bytes > is_free) {",
    ),
    "memory of a device in a forked child": (
        "src/memory/kept_blocks.c",
        "    abandon_devices();\n    pthread_mutex_unlock(&lock);\n    kept_release();",
        "    pthread_mutex_unlock(&lock);\n    kept_release();",
    ),
    "parts of what a device gave": (
        "src/memory/keeper.c",
        "(block->left == NULL && block->right == NULL)",
        "true",
    ),
    "the GPU's work on memory that was shared": (
        "src/numc_ufuncs/memory.py",
        "            _core.finish_device()",
        "            pass",
    ),
    "restored ufuncs": (
        "src/numpy/options.h",
        "return atomic_load_explicit(everywhere, memory_order_relaxed) ||",
        "return true || atomic_load_explicit(everywhere, memory_order_relaxed) ||",
    ),
    "overrides under a patch": (
        "src/numpy/patch.c",
        "return is_large && operands_are_ordinary(args, positional, keywords);",
        "return is_large;",
    ),
    "errors of patched ufuncs": (
        "src/numpy/patch.c",
        "if (named == clone) {",
        "if (false) {",
    ),
    "floating-point errors of dot": (
        "src/numc_ufuncs/_products.py",
        'return product.dtype.kind in "bui" or bool(np.isfinite(product).all())',
        "return True",
    ),
    "bools of other bytes": (
        "src/kernels/reduction/reduce_integers.h",
        "loaded = IS_BOOL ? (vector)(loaded != 0) & 1 : loaded;",
        "loaded = loaded;",
    ),
    "overlap guard": (
        "src/engine/overlap.c",
        "return out_step == other_step &&",
        "return true || out_step == other_step &&",
    ),
    "overlap in several dimensions": (
        "src/numpy/elementwise_call.c",
        "!(array_is_injective(out) && output_is_independent(call)))) {",
        "false)) {",
    ),
    "flags from before a call": (
        "src/numpy/errors.c",
        "    if (fetestexcept(ERRORS_OF_NUMPY) != 0) {",
        "    if (false) {",
    ),
    "flags from before a kernel": (
        "src/numpy/elementwise_call.c",
        "if (errors_raised_by_kernel() != 0) {",
        "if (false) {",
    ),
    "steps of NumPy's loops": (
        "src/numpy/elementwise_call.c",
        "    if (has_kernel) {",
        "    if (row->loop != NULL) {",
    ),
    "rows of a nearer axis": (
        "src/engine/accumulate_axes.c",
        "char *const to = out + i * nearer.out_step;",
        "char *const to = out;",
    ),
    "rows of a block of runs": (
        "src/engine/masked_reduction.c",
        "/ round->pieces * round->rows;",
        "/ round->pieces;",
    ),
    "end of few segments": (
        "src/engine/segments.c",
        "bounds[segments->count] = segments->n;",
        "bounds[segments->count] = segments->n - 1;",
    ),
    "rows of what goes along lines": (
        "src/numpy/accumulate_call.c",
        "return (dtype_is_integer(type) &&",
        "return true || (dtype_is_integer(type) &&",
    ),
    "results that are repeated": (
        "src/engine/nested.c",
        "tile_repeat_row(size, n, out)",
        "tile_repeat_row(size, n - 1, out)",
    ),
    "a rest of one element": (
        "src/engine/accumulate_axes.c",
        "left == most + 1 ? most - 1 :",
        "left == most + 2 ? most - 1 :",
    ),
    "lines converted together": (
        "src/engine/accumulate_axes.c",
        "piece + line * line_bytes + item, item",
        "piece + line * line_bytes, item",
    ),
    "first elements of lines": (
        "src/engine/accumulate_axes.c",
        "for (ptrdiff_t k = 1; k < along.n; k++) {",
        "for (ptrdiff_t k = 2; k < along.n; k++) {",
    ),
    "running results in fours": (
        "src/kernels/reduction/in_fours.h",
        "const wide three = combine(two,",
        "const wide three = combine(one,",
    ),
    "exponents that are repeated": (
        "src/numpy/filled_loop.c",
        "!(repeated == 1 && loop->keeps_second) &&",
        "!(repeated == 2 && loop->keeps_second) &&",
    ),
    "loops of two dtypes": (
        "src/numpy/call_table.h",
        "return input == 1 && row->second != NULL ? row->second : row->input;",
        "return input == 2 && row->second != NULL ? row->second : row->input;",
    ),
    "planes that are converted together": (
        "src/engine/nested.c",
        "to += n * elements * (ptrdiff_t)tiling->loop->item_size[in];",
        "to += elements * (ptrdiff_t)tiling->loop->item_size[in];",
    ),
    "large items that become bools": (
        "src/engine/tile_convert.c",
        "tile_pack_rows(conversion->to_size, &part, to + (r * tile->columns + c) * size,",
        "tile_pack_rows(conversion->to_size, &part, to + r * tile->columns * size,",
    ),
    "running sums of complex numbers": (
        "src/kernels/reduction/running.c",
        "imaginary += in[1];",
        "imaginary += in[0];",
    ),
    "outputs that overlap themselves": (
        "src/numpy/accumulate_call.c",
        "PyArray_SAMESHAPE(out, array) && array_is_injective(out) &&",
        "PyArray_SAMESHAPE(out, array) &&",
    ),
    "casts of signaling NaNs": (
        "src/numpy/accumulate_call.c",
        "(raised & FE_INVALID) != 0) {",
        "false) {",
    ),
    "flag merge": (
        "src/threads/region.c",
        "if (region.raised != 0) {",
        "if (region.raised == -1) {",
    ),
    "flags of the caller in workers": (
        "src/threads/region.c",
        "    feclearexcept(FE_ALL_EXCEPT);\n",
        "",
    ),
    "tail of the SIMD loop": (
        "src/kernels/elementwise/binary_template.h",
        "memcpy(out + end - bytes, &last, sizeof last);",
        "memcpy(out + end - bytes, &last, sizeof last - sizeof(element));",
    ),
    "underflow of products of halves": (
        "src/kernels/elementwise/half_kernels.h",
        '#define IS_PRODUCT(op) (strcmp(op, "multiply") == 0)',
        "#define IS_PRODUCT(op) false",
    ),
    "promotion": (
        "src/numpy/clone.c",
        "    ufunc->type_resolver = original->type_resolver;\n",
        "",
    ),
    "operand flags of matmul": (
        "src/numpy/clone.c",
        "if (original->op_flags != NULL",
        "if (false && original->op_flags != NULL",
    ),
    "shares at multiples of 64": (
        "src/threads/shares.c",
        "return (n + block - 1) / block * block;",
        "return n + 1;",
    ),
    "exception of a worker": (
        "src/numpy/errors.c",
        "if (state == NULL || !private_has_exception(state)) {",
        "if (state == NULL || state != NULL) {",
    ),
    "the caller gives up the GIL": (
        "src/numpy/errors.c",
        "failure->released = private_holds_gil() ? PyEval_SaveThread() : NULL;",
        "failure->released = NULL;",
    ),
    "workers at work are waited for": (
        "src/threads/pool.c",
        "if (state == AT_WORK && !",
        "if (state == RETIRED && !",
    ),
    "workers who are late do not come": (
        "src/threads/pool.c",
        "if (!has_come(state) && atomic_compare_exchange_strong(",
        "if (!has_come(state) || atomic_compare_exchange_strong(",
    ),
    "sleeping workers are woken": (
        "src/threads/pool.c",
        "i < first + WAKES && i < asleep",
        "i < first && i < asleep",
    ),
    "workers run where their caller may": (
        "src/threads/pool.c",
        "if (!CPU_EQUAL(&allowed[number], &cpus)) {",
        "if (false) {",
    ),
    "promoters and loops for strings": (
        "src/numpy/clone.c",
        "if (private_adopt_loops(ufunc, original) < 0 ||",
        "if (",
    ),
    "overlap of a product's output": (
        "src/numpy/matmul_call.c",
        "operands_output_is_independent(call->array, 2, NULL, out, false)",
        "true",
    ),
    "elements that iterators write before they compute": (
        "src/numpy/elementwise_ranges.c",
        "memcpy(first[op], kept[op],",
        "memcpy(kept[op], first[op],",
    ),
    "casts of whole operands": (
        "src/numpy/resolved_call.c",
        "if (!usual ||",
        "if (false ||",
    ),
    "few elements as they lie": (
        "src/numpy/nested_call.c",
        "is_short = is_tiny &&",
        "is_short = true &&",
    ),
    "calls that were left to NumPy": (
        "src/numpy/refused_calls.c",
        "(print ^ (uint64_t)PyArray_STRIDE(array, axis)) * odd;",
        "(print ^ (uint64_t)axis) * odd;",
    ),
    "repeated inputs that are written out": (
        "src/numpy/filled_loop.c",
        "(size_t)Py_MIN(n, most), filled);",
        "(size_t)Py_MIN(n, most) - sizeof(uint64_t) / (size_t)size, filled);",
    ),
    "ends of mixed rows": (
        "src/kernels/elementwise/mixed_template.h",
        "memcpy(out + end * size, &last, sizeof last);",
        "memcpy(out + end * size, &last, sizeof last - sizeof(element));",
    ),
    "signaling NaNs of stepped rows": (
        "src/numpy/resolved_call.c",
        "has_signaling(data, step, n) ||",
        "has_signaling(data, step, 0) ||",
    ),
    "order of converted integers": (
        "src/numpy/elementwise_call.c",
        "!(row->converts && out == NULL &&",
        "!(false && out == NULL &&",
    ),
    "sums of one block and the next": (
        "src/engine/matmul_packed.c",
        "const bool accumulate = outer->k > 0 || first > 0;",
        "const bool accumulate = outer->k > 0;",
    ),
    "flags of products of halves": (
        "src/kernels/matmul/matmul_half.c",
        "feraiseexcept(flags);",
        "(void)flags;",
    ),
    "the rest of a stack whose product failed": (
        "src/numpy/offload.c",
        "raised = PyErr_Occurred() != NULL;",
        "raised = false;",
    ),
    "what the processor does sooner": (
        "src/device/placement.c",
        "return processor >= LEAST_PROCESSOR_SECONDS &&",
        "return true || processor >= LEAST_PROCESSOR_SECONDS &&",
    ),
    "what a failing device leaves": (
        "src/numpy/offload.c",
        "    compute_on_processor(attempt->loop, &attempt->task.product);",
        "    (void)attempt->loop;",
    ),
    "the last half of a sum": (
        "src/engine/reduction.c",
        "all.n = second ? all.n - half : half;",
        "all.n = second ? all.n - half - 1 : half;",
    ),
    "inner calls of a buffer": (
        "src/numpy/reduction_plan.c",
        "is_buffered ? Py_MIN(fit, length) : length",
        "length",
    ),
    "zeros of both signs": (
        "src/engine/signed_zeros.c",
        "return !is_alone && has_zero(reduction,",
        "return false && has_zero(reduction,",
    ),
    "rows of short calls": (
        "src/engine/nested.c",
        "axis->step, 0, 1, axis->n);",
        "axis->step, 0, 1, axis->n - 1);",
    ),
    "few elements out of order": (
        "src/engine/tiling.c",
        "    order_axes_by_output(nested, tiling->loop->inputs, TILE_AXES);\n",
        "",
    ),
    "loops that leave out elements": (
        "src/numpy/elementwise_loop.c",
        "!(inputs == 1 && is_real && types[1] == NPY_BOOL);",
        "true;",
    ),
    "dtype= of another output": (
        "src/numpy/call.c",
        "return is_named && row->output->type_num == descr->type_num;",
        "return is_named;",
    ),
    "zeros next to each other": (
        "src/engine/signed_zeros.c",
        "return found >> (8 * size - 1) != 0;",
        "return step != size && found >> (8 * size - 1) != 0;",
    ),
    "the second of four bools": (
        "src/kernels/copy/find_bool.h",
        "four * 0x10204080 >> 28",
        "four * 0x10004080 >> 28",
    ),
    "true bools of other values": (
        "src/kernels/copy/find_bool.h",
        "if ((four & ~ones) != 0) {",
        "if (four > 0xfefefefe) {",
    ),
    "columns that nothing has decided": (
        "src/kernels/matmul/matmul_bits.c",
        "left += any == 0;\n    }\n    undecided->count = left;",
        "left += any != 0;\n    }\n    undecided->count = left;",
    ),
    "more than 256 columns of bools": (
        "src/kernels/matmul/matmul_bits.c",
        "part.b.data = x->b.data + column * x->b.column_step;",
        "part.b.data = x->b.data;",
    ),
    "bools beyond those that are packed": (
        "src/kernels/matmul/matmul_bits.c",
        "for (; k < x->k && sum != ~(uint64_t)0; k++) {",
        "for (; k < x->k && k < MOST_PACKED && sum != ~(uint64_t)0; k++) {",
    ),
    "a repeated dividend": (
        "src/kernels/elementwise/quotients.h",
        "in_step[i] = 0;",
        "in_step[i] = item;",
    ),
    "cuts that are combined too early": (
        "src/engine/reduction_columns.c",
        "if (!atomic_exchange(&arrived[cut + apart], true)) {",
        "if (atomic_exchange(&arrived[cut + apart], true)) {",
    ),
    "three rows of sums": (
        "src/kernels/reduction/sum_columns.h",
        ": rows == 3         ? add_rows(data, step, 3,",
        ": rows == 3         ? add_rows(data, step, 2,",
    ),
    "a negative zero beyond the gathered axes": (
        "src/engine/signed_zeros.c",
        "search.repeated.axis[search.repeated.count++] = all.axis[i];",
        "(void)search.repeated.axis;",
    ),
    "the last bit of a short sum of bools": (
        "src/kernels/matmul/matmul_bits.c",
        "c[row * x.c.row_step] = (a[row] & bits) != 0;",
        "c[row * x.c.row_step] = (a[row] & bits & 0x7fff) != 0;",
    ),
    "the rest of a narrow row of bools": (
        "src/kernels/matmul/matmul_bits.c",
        "if (first < x->k && sum != decided) {",
        "if (first < x->k && sum == 0) {",
    ),
    "quotients of a second gathered piece": (
        "src/kernels/elementwise/quotients.h",
        "data[2] + done * step[2], step[2], count, first,",
        "data[2], step[2], count, first,",
    ),
    "the block that ends a search": (
        "src/engine/reduction.c",
        "const char final = (char)reduction->kernel->final;",
        "const char final = !(char)reduction->kernel->final;",
    ),
    "conversions of strided elements": (
        "src/engine/gather.c",
        "conversion->convert(from, axis.step, to, axis.n, false);",
        "conversion->convert(from, (ptrdiff_t)conversion->from_size, to, axis.n, false);",
    ),
    "outputs of a stack that meet": (
        "src/numpy/stack_loop.c",
        "if (!items_are_apart(call, op)) {",
        "if (false && !items_are_apart(call, op)) {",
    ),
    "a stack after a failure": (
        "src/numpy/stack_loop.c",
        "return !has_failed;",
        "return true;",
    ),
    "what kernels of a stack leave": (
        "src/numpy/stack_loop.c",
        "call_function(call, first + i + start, end - start);",
        "call_function(call, first + i + start, 1);",
    ),
    "the triangle of a Hermitian matrix": (
        "src/kernels/linalg/eigenvalues.h",
        "a[i * n + j] = conjugate(a[j * n + i]);",
        "a[i * n + j] = a[j * n + i] = conjugate(a[i * n + j]);",
    ),
    "rotations of lanes that have converged": (
        "src/kernels/linalg/real_numbers.h",
        "*x = select_lanes(active, minus_product",
        "*x = select_lanes(active | ~active, minus_product",
    ),
    "numbers that are not rotated away": (
        "src/kernels/linalg/eigenvalues.h",
        "const vector least = splat(EPSILON / 4);",
        "const vector least = splat(EPSILON * 64);",
    ),
    "what is taken off the diagonal": (
        "src/kernels/linalg/eigenvalues.h",
        "ql.diagonal[i] += ql.origin;",
        "ql.diagonal[i] += ql.origin * 2;",
    ),
    "what vectors leave of eigenvalues": (
        "src/kernels/linalg/eigenvalues.h",
        "values[j] += rest[j];",
        "values[j] -= rest[j];",
    ),
    "corrections of eigenvectors": (
        "src/kernels/linalg/refinement.h",
        "= -(upper + common);",
        "= -(upper - common);",
    ),
    "columns that are zero": (
        "src/kernels/linalg/one_sided_jacobi.h",
        "vectors != NULL && mask_bits(is_zero) != 0",
        "vectors != NULL && mask_bits(is_zero) == 0",
    ),
    "columns next to zero": (
        "src/kernels/linalg/one_sided_jacobi.h",
        "select_lanes(size > splat(LEAST_COLUMN), size, splat(0))",
        "size",
    ),
    "what is computed in place and left": (
        "src/kernels/linalg/orthogonal.h",
        "*x = select_numbers(left, before[0], *x);",
        "*x = select_numbers(left & ~left, before[0], *x);",
    ),
    "masked rows that do not follow each other": (
        "src/engine/masked_reduction.c",
        "columns.step == along.n * along.step ? columns.n : 1;",
        "columns.n;",
    ),
    "the last vector of a thin product's rows": (
        "src/kernels/matmul/thin_template.h",
        "thin_load_sums(x, sums + last, columns, before_last);",
        "thin_load_sums(x, sums, columns, before_last);",
    ),
    "the phase of complex numbers that nothing is below": (
        "src/kernels/linalg/orthogonal.h",
        "vector rest = magnitude(imaginary_part(top));",
        "vector rest = magnitude(imaginary_part(number_of(real_part(top))));",
    ),
    "matrices computed in one place": (
        "src/numpy/stack_loop.c",
        "(loop->in_place && !outputs_are_apart(call))",
        "(loop->in_place && false)",
    ),
    "triangles of stacks in another order": (
        "src/numc_ufuncs/linalg.py",
        "if step < least:",
        "if step < 0:",
    ),
    "overrides of linear algebra": (
        "src/numc_ufuncs/linalg.py",
        "first[: 1 + (name in _OF_TWO_ARRAYS)]",
        "first[:1]",
    ),
    "ufuncs of linear algebra under one name": (
        "src/numc_ufuncs/_patch.py",
        "(*found.get(function, ()), ufunc)",
        "(ufunc,)",
    ),
}


def run(command, folder, seconds=900, **environment):
    """The exit code; a command that hangs counts as failed."""
    try:
        return subprocess.run(
            command,
            cwd=folder,
            timeout=seconds,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except subprocess.TimeoutExpired as error:
        return subprocess.CompletedProcess(command, 124, (error.stdout or b"")[-2000:].decode())


def first_failure(output):
    lines = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "Fatal"))]
    return ([*lines, *output.strip().splitlines()[-1:]] or ["no output"])[0][:110]


def tests_fail(tree, site):
    setup = ["meson", "setup", "build-mutation", "--reconfigure", "-Dcuda=disabled", "-Dtests=true"]
    setup += [f"-Dpython.purelibdir={site}", f"-Dpython.platlibdir={site}"]
    for command in (setup, ["meson", "install", "-C", "build-mutation"]):
        done = run(command, tree)
        if done.returncode != 0:
            raise SystemExit(f"does not build:\n{done.stdout[-3000:]}")
    done = run([tree / "build-mutation/tests/c/test_region"], tree)
    if done.returncode != 0:
        return True, f"test_region: {first_failure(done.stdout)}"
    environment = {"PYTHONPATH": str(site), "NUMC_FUZZ_CASES": "6000", "PYTHONFAULTHANDLER": "1"}
    tests = [f"tests/{name}" for name in TESTS]
    command = ["pytest", "-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=1", *tests]
    done = run(command, tree, seconds=240, **environment)
    return done.returncode != 0, first_failure(done.stdout)


def main(names):
    source = Path(__file__).resolve().parent.parent
    survived = []
    with tempfile.TemporaryDirectory() as folder:
        tree, site = Path(folder, "tree"), Path(folder, "site")
        shutil.copytree(source, tree, ignore=shutil.ignore_patterns(".git", ".venv*", "build*"))
        failed, what = tests_fail(tree, site)
        if failed:
            raise SystemExit(f"the tests fail before anything is broken: {what}")
        for name, (file, old, new) in MUTATIONS.items():
            if names and name not in names:
                continue
            path = tree / file
            text = path.read_text()
            if old not in text:
                raise SystemExit(f"{name}: {file} does not say {old!r} any more")
            path.write_text(text.replace(old, new))
            failed, what = tests_fail(tree, site)
            path.write_text(text)
            print(f"{'caught' if failed else 'SURVIVED':9} {name}: {what}", flush=True)
            if not failed:
                survived.append(name)
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
