/* A ufunc of our own that behaves as another one does and computes on all cores. */
#ifndef NUMC_CLONE_H
#define NUMC_CLONE_H

#include "numpy_api.h"

#include <stdatomic.h>
#include <stdbool.h>

struct call_row;
struct reduction_op;

/* A new ufunc with the loops of `original`, run in parallel. `op` names the own kernels to use, or
 * is NULL. `doc` is the docstring without the signature. `serial_if`, unless NULL, is called before
 * threads run a loop: they do not if it returns something true. Keeps `original` alive. */
PyObject *clone_ufunc(PyUFuncObject *original, const char *op, const char *doc,
                      PyObject *serial_if);

/* A call, as `called`: the clone itself, or its original. What needs NumPy's machinery goes to `by_numpy`. */
typedef PyObject *clone_by_numpy(PyObject *clone, PyObject *called, PyObject *const *args,
                                 size_t count, PyObject *keywords);
PyObject *clone_call(PyObject *clone, PyObject *called, PyObject *const *args, size_t count,
                     PyObject *keywords, clone_by_numpy *by_numpy);

/* Quick, and false for what is as fast in NumPy's call of the original: numbers, lists, empty arrays, short ones with
 * keywords. */
bool clone_may_gain(PyObject *clone, PyObject *const *args, size_t count, PyObject *keywords);

/* NumPy's call of the clone, that is of its inner loops. */
clone_by_numpy clone_call_by_numpy;

/* How it reduces, and accumulates, by kernels; NULL if it does not. */
const struct reduction_op *clone_reduction_op(PyObject *clone);
const struct reduction_op *clone_accumulation_op(PyObject *clone);

/* Those of masked arrays, which it leaves to NumPy. */
struct refused_calls *clone_refused_reductions(PyObject *clone);

/* How it computes inputs that are all of one type number; `input` is NULL if it does not. */
const struct call_row *clone_row(PyObject *clone, int type);

/* What it was made of; a borrowed reference. */
PyObject *clone_original(PyObject *clone);

/* Whether any object is a clone, and of `original`. */
bool clone_is_of(PyObject *object, PyObject *original);

/* Whether calls of the original are led to it, in the whole process. */
_Atomic bool *clone_is_patched(PyObject *clone);

#endif
