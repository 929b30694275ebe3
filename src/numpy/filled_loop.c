#include "filled_loop.h"

#include "dtypes.h"

#include "kernels/copy/repeat_item.h"

#include <string.h>

/* Of fewer elements, writing an input out takes as long as is gained. `python benchmarks/compare.py --match scalar` */
enum { LEAST_FILLED = 32, FILLED_BYTES = 1024 };

/* In a frame of its own: short calls need no room on the stack. */
static __attribute__((noinline)) void run_filled(const struct loop *loop, char **args, npy_intp n,
                                                 int repeated)
{
    const npy_intp size = (npy_intp)loop->engine.item_size[0], most = FILLED_BYTES / size;
    const npy_intp step[] = {size, size, (npy_intp)loop->engine.item_size[2]};
    _Alignas(LINE_BYTES) char filled[FILLED_BYTES];
    repeat_item(args[repeated], (size_t)size, (size_t)Py_MIN(n, most), filled);
    for (npy_intp done = 0, count; done < n; done += count) {
        count = Py_MIN(n - done, most);
        char *data[] = {args[0] + done * size, args[1] + done * size, args[2] + done * step[2]};
        data[repeated] = filled;
        loop->numpys(data, &count, step, loop->numpys_data);
    }
}

static void run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data)
{
    const struct loop *loop = data;
    const size_t *size = loop->engine.item_size;
    const int repeated = steps[0] == 0 ? 0 : 1;
    if (dimensions[0] >= LEAST_FILLED && steps[repeated] == 0 &&
        !(repeated == 1 && loop->keeps_second) && steps[1 - repeated] == (npy_intp)size[0] &&
        steps[2] == (npy_intp)size[2]) {
        run_filled(loop, args, dimensions[0], repeated);
    } else {
        loop->numpys(args, dimensions, steps, loop->numpys_data);
    }
}

static bool is_listed(const char *const names[], const char *name)
{
    bool is = false;
    for (int i = 0; names[i] != NULL && !is; i++) {
        is = strcmp(names[i], name) == 0;
    }
    return is;
}

/* Whether a second input that is repeated is a case of its own, such as a square. */
static bool knows_second(const char *op)
{
    return strcmp(op, "power") == 0;
}

/* Whether the loop takes longer for a repeated input, and gives the same bits for a contiguous one. */
static bool gains(const struct elementwise *engine, const char *op, int type)
{
    static const char *const of_bools[] = {"logical_and", "logical_or", "bitwise_and", "bitwise_or",
                                           "add",         "multiply",   "maximum",     "minimum",
                                           "fmax",        "fmin",       NULL};
    static const char *const of_integers[] = {"maximum", "minimum", "fmax", "fmin", NULL};
    static const char *const of_floats[] = {"arctan2", "power", NULL};
    return type == NPY_BOOL ? is_listed(of_bools, op)
           : dtype_is_integer(type)
               ? dtype_of(type).size <= sizeof(int32_t) && is_listed(of_integers, op)
               : engine->same_bits == SAME_FORWARD && is_listed(of_floats, op);
}

void filled_loop_use(struct loop *loop, const char *op, const char types[])
{
    struct elementwise *engine = &loop->engine;
    if (engine->inputs == 2 && engine->operands == 3 && engine->kernel == NULL &&
        types[1] == types[0] && types[2] == types[0] && gains(engine, op, types[0])) {
        loop->numpys = (PyUFuncGenericFunction)engine->function;
        loop->numpys_data = engine->function_data;
        loop->keeps_second = knows_second(op);
        engine->function = (inner_loop *)run;
        engine->function_data = loop;
    }
}
