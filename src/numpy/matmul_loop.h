/* The loops of matmul, vecdot, matvec and vecmat: a device, our kernels, or NumPy's own loops, which call
 * BLAS. */
#ifndef NUMC_MATMUL_LOOP_H
#define NUMC_MATMUL_LOOP_H

#include "numpy_api.h"

#include "engine/matmul.h"
#include "offload.h"

#include <stdbool.h>

enum gufunc { MATMUL, VECDOT, MATVEC, VECMAT };

struct gufunc_loop {
    enum gufunc gufunc;
    struct matmul_dtype dtype;
    int type;
    PyUFuncGenericFunction numpy_function;
    void *numpy_data;
    bool has_devices; /* offload_run() gets the products, those that the processor computes, too */
    struct offload offload;
};

/* Whether that is the name of one, and which. */
bool gufunc_is_named(const char *name, enum gufunc *gufunc);

/* Prepares `loop` for one row of the type table of gufunc `name`. False if the row should stay
 * NumPy's: another gufunc, or a loop over Python objects. */
bool gufunc_initialize(struct gufunc_loop *loop, const char *name, const char types[], int operands,
                       PyUFuncGenericFunction numpy_function, void *numpy_data);

/* How many calls of loops our kernels computed on this thread so far, and how many NumPy's own loops did. */
extern _Thread_local struct gufunc_counts {
    unsigned long long ours, numpys;
} gufunc_counts;

/* The function to register, with a struct gufunc_loop as its data. */
void gufunc_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

/* The same for those who have no dimensions and steps of NumPy's. */
void gufunc_compute(const struct gufunc_loop *loop, const struct product *product);

/* Whether the stack of `product` is one product now. gufunc_compute() does it, too. */
bool gufunc_join(const struct gufunc_loop *loop, struct product *product);

/* "matvec" or "vecmat" for a NumPy that lacks them (before 2.2), made of the loops of its matmul and
 * vecdot. Each can be made once. */
PyObject *gufunc_make(const char *name, PyUFuncObject *matmul, PyUFuncObject *vecdot);

#endif
