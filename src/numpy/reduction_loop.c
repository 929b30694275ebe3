/* Recognizes reductions by the steps of their operands. */
#include "reduction_loop.h"

#include "dtypes.h"
#include "engine/accumulate.h"
#include "engine/overlap.h"
#include "engine/reduction.h"
#include "kernels/kernels.h"
#include "policy_in_use.h"

static _Thread_local uint64_t loops;

uint64_t reduction_loops(void)
{
    return loops;
}

const struct reduction_kernel *reduction_of_type(const char *op, int type)
{
    const struct dtype dtype = dtype_of(type);
    return reduction_kernel_find(op, dtype.kind, dtype.size);
}

const struct reduction_kernel *reduction_of_row(const char *op, const char types[], int operands)
{
    const bool one_type = operands == 3 && types[0] == types[1] && types[1] == types[2];
    /* The loops of bools are `or` and `and`. */
    return op != NULL && one_type && types[0] != NPY_BOOL ? reduction_of_type(op, types[0]) : NULL;
}

static bool accumulate_in_loop(const struct reduction_kernel *kernel, char **args, npy_intp n,
                               const npy_intp *steps)
{
    const struct accumulation accumulation = {
        .policy = &policy_in_use,
        .kernel = kernel,
        .before = args[0],
        .in = args[1],
        .out = args[2],
        .in_step = steps[1],
        .out_step = steps[2],
        .n = n,
    };
    char *const data[] = {args[1], args[2]};
    const ptrdiff_t step[] = {steps[1], steps[2]};
    const size_t item_size[] = {kernel->item_size, kernel->item_size};
    if (!elements_commute(1, 2, data, step, item_size, n)) {
        return false;
    }
    accumulate_compute(&accumulation);
    return true;
}

bool reduction_in_loop(const struct reduction_kernel *kernel, char **args, npy_intp n,
                       const npy_intp *steps)
{
    bool done = false;
    if (args[0] == args[2] && steps[0] == 0 && steps[2] == 0) {
        struct reduction reduction = {
            .policy = &policy_in_use,
            .kernel = kernel,
            .data = args[1],
            .out = args[0],
            .inner = {1, {{n, steps[1], 0}}},
            .inner_call = n,
            .conversion = {kernel->item_size, kernel->item_size, NULL},
            .out_size = kernel->item_size,
            .onto = true,
        };
        reduction.threads = reduction_threads(&reduction);
        done = reduction_compute(&reduction);
    } else if (kernel->accumulate != NULL && steps[0] == steps[2] &&
               args[2] == args[0] + steps[0]) {
        done = accumulate_in_loop(kernel, args, n, steps);
    }
    if (done) {
        loops++;
    }
    return done;
}
