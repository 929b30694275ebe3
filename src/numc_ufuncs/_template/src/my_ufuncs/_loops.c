/* The inner loops, and the module that makes ufuncs of them. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>

#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

/* One inner loop per dtype, on n elements that are `steps` bytes apart: 0 for an operand that is
 * broadcast, negative for one that is reversed. Operands are aligned and in native byte order, for
 * NumPy copies others. It runs without the GIL: nothing of Python may be called here. Flags that
 * the arithmetic raises are what np.errstate sees. Loops over whole vectors need steps that the
 * compiler knows: hence the branch for contiguous operands. */
#define LERP(NAME, TYPE)                                                                           \
    static void NAME(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)   \
    {                                                                                              \
        const npy_intp n = dimensions[0], size = (npy_intp)sizeof(TYPE);                           \
        (void)data;                                                                                \
        if (steps[0] == size && steps[1] == size && steps[2] == size && steps[3] == size) {        \
            const TYPE *a = (TYPE *)args[0], *b = (TYPE *)args[1], *t = (TYPE *)args[2];           \
            TYPE *out = (TYPE *)args[3];                                                           \
            for (npy_intp i = 0; i < n; i++) {                                                     \
                out[i] = a[i] + t[i] * (b[i] - a[i]);                                              \
            }                                                                                      \
            return;                                                                                \
        }                                                                                          \
        for (npy_intp i = 0; i < n; i++) {                                                         \
            const TYPE a = *(TYPE *)(args[0] + i * steps[0]);                                      \
            const TYPE b = *(TYPE *)(args[1] + i * steps[1]);                                      \
            const TYPE t = *(TYPE *)(args[2] + i * steps[2]);                                      \
            *(TYPE *)(args[3] + i * steps[3]) = a + t * (b - a);                                   \
        }                                                                                          \
    }

LERP(lerp_float, npy_float)
LERP(lerp_double, npy_double)
LERP(lerp_longdouble, npy_longdouble)

/* The ufunc keeps pointers to these tables. NumPy takes the first row to which all operands can be
 * cast safely. */
static PyUFuncGenericFunction lerp_loops[] = {lerp_float, lerp_double, lerp_longdouble};
static const char lerp_types[] = {
    NPY_FLOAT,      NPY_FLOAT,      NPY_FLOAT,      NPY_FLOAT,      /* a, b, t, result */
    NPY_DOUBLE,     NPY_DOUBLE,     NPY_DOUBLE,     NPY_DOUBLE,     /* */
    NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, NPY_LONGDOUBLE, /* */
};
static void *const no_data[] = {NULL, NULL, NULL}; /* for each loop */

static int add_ufunc(PyObject *module, PyObject *ufunc, const char *name)
{
    const int status = ufunc == NULL ? -1 : PyModule_AddObjectRef(module, name, ufunc);
    Py_XDECREF(ufunc);
    return status;
}

static int exec_module(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0) {
        return -1;
    }
    const char *doc = "a + t * (b - a): a where t is 0, near b where t is 1.";
    PyObject *lerp = PyUFunc_FromFuncAndData(lerp_loops, no_data, lerp_types, 3, 3, 1, PyUFunc_None,
                                             "lerp", doc, 0);
    return add_ufunc(module, lerp, "lerp");
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
#ifdef Py_mod_gil /* Python 3.13: inner loops share nothing, so threads need no GIL */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_loops", .m_slots = slots};

PyMODINIT_FUNC PyInit__loops(void)
{
    return PyModuleDef_Init(&definition);
}
