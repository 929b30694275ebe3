#include "loop_reduction.h"

#include "dtypes.h"
#include "engine/reduction_cutoffs.h"
#include "kernels/copy/copy_items.h"
#include "kernels/vector.h"

#include <string.h>

/* Few columns are taken in their turns, in blocks of rows that stay in the cache. */
enum { FEW_COLUMNS_ROWS = 512 };

/* out = first op second, n times. */
static void call_loop(const struct reduction_kernel *kernel, const void *first,
                      ptrdiff_t first_step, const char *second, ptrdiff_t step, void *out,
                      ptrdiff_t out_step, ptrdiff_t n)
{
    const struct loop_reduction *reduction = (const struct loop_reduction *)kernel;
    char *args[] = {(char *)first, (char *)second, out};
    const npy_intp steps[] = {first_step, step, out_step};
    reduction->function(args, &n, steps, reduction->data);
}

/* into = into op other, n times. */
static void run_loop(const struct reduction_kernel *kernel, void *into, ptrdiff_t into_step,
                     const char *other, ptrdiff_t step, ptrdiff_t n)
{
    if (n > 0) {
        call_loop(kernel, into, into_step, other, step, into, into_step, n);
    }
}

static inline void reduce_one(const struct reduction_kernel *kernel, const char *data,
                              ptrdiff_t step, ptrdiff_t n, char *out)
{
    const struct loop_reduction *reduction = (const struct loop_reduction *)kernel;
    const size_t size = kernel->item_size;
    /* From the first element on, vectors are as aligned as the array is; long lines are cut where a cache line begins. */
    const bool from_first = n * (ptrdiff_t)size >= ALIGNED_FROM_BYTES && !kernel->zeros_tie &&
                            (kernel->repeats || reduction->from_zero);
    const ptrdiff_t into_line = (ptrdiff_t)((uintptr_t)data % LINE_BYTES);
    const bool is_cut = from_first && step == (ptrdiff_t)size && into_line != 0 &&
                        n * step >= REDUCTION_CUT_FROM_BYTES;
    const ptrdiff_t cut = is_cut ? (LINE_BYTES - into_line) / step : 0;
    const ptrdiff_t first = from_first ? 0 : 1;
    /* Some loops write each result: not into the cache line of another thread's. */
    _Alignas(16) char item[16] = {0};
    if (!from_first || kernel->repeats) {
        copy_items(size, item, 0, data, 0, 1);
    }
    run_loop(kernel, item, 0, data, step, cut);
    run_loop(kernel, item, 0, data + (first + cut) * step, step, n - first - cut);
    copy_items(size, out, 0, item, 0, 1);
}

static void reduce_each(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t n, ptrdiff_t next, ptrdiff_t count, bool from_memory, void *sums)
{
    (void)from_memory;
    for (ptrdiff_t k = 0; k < count; k++) {
        reduce_one(kernel, data + k * next, step, n,
                   (char *)sums + k * (ptrdiff_t)kernel->item_size);
    }
}

static void reduce_each_onto(const struct reduction_kernel *kernel, const char *data,
                             ptrdiff_t step, ptrdiff_t n, ptrdiff_t next, ptrdiff_t count,
                             void *sums)
{
    for (ptrdiff_t k = 0; k < count; k++) {
        run_loop(kernel, (char *)sums + k * (ptrdiff_t)kernel->item_size, 0, data + k * next, step,
                 n);
    }
}

static void reduce_rows(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t rows, ptrdiff_t next, ptrdiff_t columns, bool from_memory,
                        bool onto, void *sums)
{
    (void)from_memory;
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    ptrdiff_t row = 0;
    if (!onto && rows > 1 && columns > REDUCTION_FEW_COLUMNS && !kernel->zeros_tie) {
        call_loop(kernel, data, next, data + step, next, sums, size, columns);
        row = 2; /* without a copy of the first */
    } else if (!onto) {
        copy_items(kernel->item_size, sums, size, data, next, columns);
        row = 1;
    }
    while (row < rows && columns <= REDUCTION_FEW_COLUMNS) {
        const ptrdiff_t n = rows - row < FEW_COLUMNS_ROWS ? rows - row : FEW_COLUMNS_ROWS;
        reduce_each_onto(kernel, data + row * step, step, n, next, columns, sums);
        row += n;
    }
    for (; row < rows; row++) {
        run_loop(kernel, sums, size, data + row * step, next, columns);
    }
}

/* Zeros that tie are NumPy's: it calls the loop for the same elements. */
static void reduce_segments(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                            const ptrdiff_t bounds[], ptrdiff_t count, bool from_memory, char *out,
                            ptrdiff_t out_step, size_t out_size)
{
    (void)from_memory;
    (void)out_size;
    for (ptrdiff_t k = 0; k < count; k++) {
        const ptrdiff_t n = bounds[k + 1] - bounds[k];
        reduce_one(kernel, data + bounds[k] * step, step, n > 1 ? n : 1, out + k * out_step);
    }
}

static void combine(const struct reduction_kernel *kernel, void *into, const void *later,
                    size_t bytes)
{
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    run_loop(kernel, into, size, later, size, (ptrdiff_t)bytes / size);
}

static void store(const struct reduction_kernel *kernel, const void *sums, ptrdiff_t n, char *out,
                  ptrdiff_t step, size_t out_size, bool onto)
{
    (void)out_size;
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    if (onto) {
        run_loop(kernel, out, step, sums, size, n);
    } else {
        copy_items(kernel->item_size, out, step, sums, size, n);
    }
}

/* ---- which ---- */

/* By dtypes.h's kinds. Complex numbers and long doubles are not among them: their zeros have signs in
 * several places. */
static const struct operation {
    const char *name, *kinds;
    int final; /* of bools: what ends a search; -1: nothing */
    bool ties; /* of zeros: which of both is NumPy's result depends on its order */
    bool repeats, from_zero;
    const char *alone_changes; /* kinds; NULL: of none */
    bool gets_cheaper;
} operations[] = {
    {"maximum", "biuf", .final = 1, .ties = true, .repeats = true},
    {"minimum", "biuf", .final = 0, .ties = true, .repeats = true},
    {"fmax", "biuf", .final = 1, .ties = true, .repeats = true},
    {"fmin", "biuf", .final = 0, .ties = true, .repeats = true},
    {"logical_or", "b", .final = 1, .repeats = true, .alone_changes = "b"},
    {"logical_and", "b", .final = 0, .repeats = true, .alone_changes = "b"},
    {"bitwise_or", "biu", .final = 1, .repeats = true, .alone_changes = "b"},
    {"bitwise_and", "biu", .final = 0, .repeats = true, .alone_changes = "b"},
    {"bitwise_xor", "biu", .final = -1, .from_zero = true, .alone_changes = "b"},
    {"gcd", "iu", .final = -1, .alone_changes = "i", .gets_cheaper = true},
};

static const struct operation *operation_of(const char *name)
{
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (strcmp(operations[i].name, name) == 0) {
            return &operations[i];
        }
    }
    return NULL;
}

bool loop_reduction_of_row(struct loop_reduction *reduction, const PyUFuncObject *ufunc, int row)
{
    const struct operation *operation = ufunc->nargs == 3 ? operation_of(ufunc->name) : NULL;
    if (operation == NULL) {
        return false;
    }
    const char *types = ufunc->types + row * 3;
    const struct dtype dtype = dtype_of(types[0]);
    if (types[1] != types[0] || types[2] != types[0] || dtype.kind == '\0' ||
        strchr(operation->kinds, dtype.kind) == NULL || types[0] == NPY_LONGDOUBLE ||
        ufunc->functions[row] == NULL) {
        return false;
    }
    *reduction = (struct loop_reduction){
        .kernel.op = operation->name,
        .kernel.kind = dtype.kind,
        .kernel.item_size = dtype.size,
        .kernel.sum_size = dtype.size,
        .kernel.any_order = true,
        .kernel.sums_are_results = true,
        .kernel.repeats = operation->repeats,
        .kernel.alone_changes = operation->alone_changes != NULL &&
                                strchr(operation->alone_changes, dtype.kind) != NULL,
        .kernel.gets_cheaper = operation->gets_cheaper,
        .kernel.final = dtype.kind == 'b' ? operation->final : -1,
        .kernel.zeros_tie = dtype.kind == 'f' && operation->ties,
        .kernel.reduce_each = reduce_each,
        .kernel.reduce_each_onto = reduce_each_onto,
        .kernel.reduce_rows = reduce_rows,
        .kernel.reduce_segments = reduce_segments,
        .kernel.combine = combine,
        .kernel.store = store,
        .function = ufunc->functions[row],
        .data = ufunc->data != NULL ? ufunc->data[row] : NULL,
        .from_zero = operation->from_zero,
    };
    return true;
}

/* ---- zeros ---- */

static struct loop_reduction minima[3]; /* of 2, 4 and 8 bytes */

int loop_reduction_initialize(void)
{
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *minimum = numpy != NULL ? PyObject_GetAttrString(numpy, "minimum") : NULL;
    Py_XDECREF(numpy);
    if (minimum == NULL) {
        return -1;
    }
    const PyUFuncObject *ufunc = (PyUFuncObject *)minimum; /* the process keeps a reference to it */
    for (int row = 0; Py_IS_TYPE(minimum, &PyUFunc_Type) && row < ufunc->ntypes; row++) {
        struct loop_reduction reduction;
        if (loop_reduction_of_row(&reduction, ufunc, row) && reduction.kernel.kind == 'i') {
            for (int i = 0; i < 3; i++) {
                if (reduction.kernel.item_size == (size_t)2 << i) {
                    minima[i] = reduction;
                }
            }
        }
    }
    return 0;
}

const struct reduction_kernel *loop_reduction_minimum(size_t item_size)
{
    for (int i = 0; i < 3; i++) {
        if (minima[i].kernel.item_size == item_size) {
            return &minima[i].kernel;
        }
    }
    return NULL;
}
