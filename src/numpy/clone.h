/* A ufunc of our own that behaves as another one does and computes on all cores. */
#ifndef NUMC_CLONE_H
#define NUMC_CLONE_H

#include "numpy_api.h"

struct call_row;
struct reduction_op;

/* A new ufunc with the loops of `original`, run in parallel. `op` names the own kernels to use, or
 * is NULL. `doc` is the docstring without the signature. `serial_if`, unless NULL, is called before
 * threads run a loop: they do not if it returns something true. Keeps `original` alive. */
PyObject *clone_ufunc(PyUFuncObject *original, const char *op, const char *doc,
                      PyObject *serial_if);

/* How it reduces in any order by its own loops; NULL if it does not. */
const struct reduction_op *clone_reduction_op(PyObject *clone);

/* How it computes inputs that are all of one type number; `input` is NULL if it does not. */
const struct call_row *clone_row(PyObject *clone, int type);

/* What it was made of; a borrowed reference. */
PyObject *clone_original(PyObject *clone);

#endif
