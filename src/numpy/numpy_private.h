/* The private parts of NumPy and CPython that this package relies on, and nothing else does. Each is
 * checked at import; where it is not as expected, NumPy's own path is taken instead. */
#ifndef NUMC_NUMPY_PRIVATE_H
#define NUMC_NUMPY_PRIVATE_H

#include "numpy_api.h"

#include <stdbool.h>

enum private_part {
    PRIVATE_UFUNC,         /* struct fields; else parallel() returns NumPy's ufunc */
    PRIVATE_LOOPS,         /* `ufunc->_loops`; else NumPy's ufunc gets what has no loop of ours */
    PRIVATE_METHODS,       /* how methods of np.ufunc are called; else they are NumPy's */
    PRIVATE_WARN_ON_WRITE, /* a flag of arrays; else NumPy gets calls with `out` */
    PRIVATE_HANDLER,       /* of memory; else there is no memory="cached" */
    PRIVATE_EXCEPTION,     /* of a thread state; else it is asked for under the GIL */
    PRIVATE_PARTS
};

/* By part: whether it is as expected. */
extern bool private_known[PRIVATE_PARTS];

/* Called once, at import. Notes a warning that names what is not as expected. -1 with an exception. */
int private_initialize(void);

/* ---- ufuncs ---- */

/* The pointer in front of a ufunc's data, which clone.c puts there. */
static inline void *private_owner(const PyUFuncObject *ufunc)
{
    return ufunc->data[-1];
}

/* Whether a clone can do what its original does: methods of NumPy's need its loops, those of ours an
 * attribute (NumPy 2.2). */
static inline bool private_allows_clones(void)
{
    return private_known[PRIVATE_UFUNC] &&
           (private_known[PRIVATE_LOOPS] || PyUFunc_Type.tp_dictoffset != 0);
}

/* What NumPy gives every new ufunc; NULL if their fields are unknown. */
extern vectorcallfunc private_numpy_vectorcall;

/* The ufunc keeps `owner`, and is called by `call`. */
void private_take_over(PyUFuncObject *ufunc, PyObject *owner, vectorcallfunc call);

/* Gives a ufunc the function of another one that NumPy asks for the sizes of core dimensions (NumPy 2.1). */
void private_copy_core_dimensions(PyUFuncObject *ufunc, const PyUFuncObject *original);

/* Gives a ufunc the loops of another one that are outside its type table (strings) and its promoters
 * (comparisons with Python integers). -1 with an exception. */
int private_adopt_loops(PyUFuncObject *ufunc, PyUFuncObject *original);

/* Those loops, and where their number is kept: every call reads it. */
PyObject *private_loops(const PyUFuncObject *ufunc);
const Py_ssize_t *private_loops_count(PyObject *loops);

/* Python has it changed by another thread, perhaps meanwhile. */
static inline Py_ssize_t private_read_count(const Py_ssize_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

/* Whether NumPy alone has calls of a ufunc, so that they can be taken over. */
bool private_is_free(const PyUFuncObject *ufunc);

/* What a ufunc keeps that private_take_over() was called for. */
static inline PyObject *private_kept(const PyUFuncObject *ufunc)
{
    return ufunc->obj;
}

/* The function behind np.ufunc.<name> and its docstring; NULL if it is not called with `flags`. */
PyCFunction private_method(const char *name, int flags, const char **doc);

/* ---- functions and methods that are written in C ---- */

/* Leads all calls of a function, or of a method of a type, to `replacement`, also those by objects that exist
 * already; *before is what was called. False, and nothing changes, if it is not called with `flags`. */
bool private_replace(PyObject *callable, int flags, PyCFunction replacement, PyCFunction *before);

/* ---- arrays ---- */

extern int private_warn_on_write;

/* Whether an array may be written to, and nobody is to be warned of it. */
static inline bool private_is_writable(PyArrayObject *array)
{
    return (PyArray_FLAGS(array) & (NPY_ARRAY_WRITEABLE | private_warn_on_write)) ==
           NPY_ARRAY_WRITEABLE;
}

/* np._NoValue; NULL if there is none. */
PyObject *private_no_value(void);

/* ---- memory ---- */

/* NumPy's own handler, whose functions may be replaced; NULL if it is not as expected. */
PyDataMem_Handler *private_default_handler(void);

/* Whether NumPy asks for huge pages: NUMPY_MADVISE_HUGEPAGE, or by the version of Linux. */
bool private_uses_huge_pages(void);

/* ---- the iterator ---- */

/* Elements of its buffers, in the current context: np.getbufsize(). */
npy_intp private_buffer_size(void);

/* ---- threads ---- */

/* Whether a loop left an exception in the state of the calling thread, which does not hold the GIL. */
bool private_has_exception(PyThreadState *own);

bool private_is_finalizing(void);
bool private_holds_gil(void);

#endif
