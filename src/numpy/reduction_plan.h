/* What is decided about one call of reduce or accumulate, before anything is computed. */
#ifndef NUMC_REDUCTION_PLAN_H
#define NUMC_REDUCTION_PLAN_H

#include "dtypes.h"
#include "operands.h"
#include "reduction_arguments.h"

#include "engine/masked_reduction.h"

/* The kernels of an operation, by the operand's type number. */
struct reduction_op {
    const char *name;
    bool widens; /* integers, to the size of long at least */
    const struct reduction_kernel *of_type[DTYPES];
};
extern struct reduction_op reduction_op_add;
extern struct reduction_op reduction_op_multiply;

/* Called once, at import. */
void reduction_plan_initialize(void);

enum reduction_way {
    REDUCE_BY_KERNELS,
    REDUCE_BY_LOOPS, /* NumPy's method, which calls the inner loops of our ufunc */
    REDUCE_BY_NUMPY, /* NumPy's method and inner loops: ours would gain nothing */
};

/* Arrays, and inner loops, of fewer elements gain nothing here. */
npy_intp reduction_short_loop(void);

/* Where a reduction goes whose `initial` or `where` kernels do not take. */
enum reduction_way reduction_way_without_kernels(const struct reduction_arguments *arguments);

/* Whether NumPy reduces an array as fast: a short one for whose elements, as they lie, there is no kernel. */
bool reduction_is_short(const struct reduction_op *op, PyArrayObject *array);

struct reduction_plan {
    enum reduction_way way;
    const char *reason; /* why not by kernels; NULL if it is */
    /* For kernels: */
    const struct reduction_arguments *arguments;
    int type; /* of the result */
    npy_intp out_step[NPY_MAXDIMS];
    struct reduction reduction; /* but where its output lies */
    /* By reduction_start.c: */
    bool has_start; /* results begin with an item */
    union element start;
    struct masked_reduction masked; /* but its reduction; all elements, if there is no mask */
    union element neutral;
};

/* Chooses the kernel, the conversion to its type, and the type of the result; false if there is none. */
bool reduction_find_kernel(struct reduction_plan *plan, const struct reduction_op *op);

/* Whether an output that was given is such an array, and has the type of the result. */
bool reduction_may_write_to(PyObject *object, int type);

/* How to reduce; `op` is NULL where there are no kernels. `plan` keeps `arguments`. */
void reduction_plan_reduce(struct reduction_plan *plan, const struct reduction_op *op,
                           const struct reduction_arguments *arguments);

/* The same for what accumulate_call() leaves: kernels accumulate within loops only. */
enum reduction_way reduction_plan_accumulate(const struct reduction_op *op,
                                             const struct reduction_arguments *arguments);

#endif
