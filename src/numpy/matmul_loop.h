/* The loops of matmul, vecdot, matvec and vecmat: what is known of each, and NumPy's own, which call BLAS. */
#ifndef NUMC_MATMUL_LOOP_H
#define NUMC_MATMUL_LOOP_H

#include "numpy_api.h"

#include "device/device.h"
#include "engine/matmul.h"

#include <stdbool.h>

enum gufunc { MATMUL, VECDOT, MATVEC, VECMAT };

struct gufunc_loop {
    enum gufunc gufunc;
    struct matmul_dtype dtype;
    int type;
    PyUFuncGenericFunction numpy_function;
    void *numpy_data;
    bool has_devices; /* that compute it, and what they call the dtype: */
    struct element_type device_type;
};

/* Whether that is the name of one, and which. */
bool gufunc_is_named(const char *name, enum gufunc *gufunc);

/* Prepares `loop` for one row of the type table of gufunc `name`, of matmul first. False if the row should stay
 * NumPy's: another gufunc, or a loop over Python objects. */
bool gufunc_initialize(struct gufunc_loop *loop, const char *name, const char types[], int operands,
                       PyUFuncGenericFunction numpy_function, void *numpy_data);

/* What NumPy gives a loop: the dimensions and steps of a core are in the order of the signature. */
struct product gufunc_product(enum gufunc gufunc, char **args, const npy_intp *dimensions,
                              const npy_intp *steps);

/* Computes a product by NumPy's loop, on the threads of a plan for MATMUL_FALLBACK. */
void gufunc_by_numpy(const struct gufunc_loop *loop, const struct product *product,
                     const struct matmul_plan *plan);

/* The same on this thread. */
void gufunc_call_numpy(const struct gufunc_loop *loop, const struct product *product);

/* "matvec" or "vecmat" for a NumPy that lacks them (before 2.2), made of the loops of its matmul and
 * vecdot. Each can be made once. */
PyObject *gufunc_make(const char *name, PyUFuncObject *matmul, PyUFuncObject *vecdot);

#endif
