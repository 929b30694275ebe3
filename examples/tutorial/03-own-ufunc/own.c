/* Two ufuncs: logistic(x), and distance(a, b) of vectors. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>

#include <math.h>
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

/* exp() of what is not positive cannot overflow, and signbit() is quiet about NaN. */
#define LOGISTIC(NAME, TYPE, EXP, FABS)                                                            \
    static void NAME(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)   \
    {                                                                                              \
        (void)data;                                                                                \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                             \
            const TYPE x = *(TYPE *)(args[0] + i * steps[0]);                                      \
            const TYPE e = EXP(-FABS(x)), right = 1 / (1 + e);                                     \
            *(TYPE *)(args[1] + i * steps[1]) = signbit(x) ? e * right : right;                    \
        }                                                                                          \
    }

LOGISTIC(logistic_float, npy_float, expf, fabsf)
LOGISTIC(logistic_double, npy_double, exp, fabs)
LOGISTIC(logistic_longdouble, npy_longdouble, expl, fabsl)

static PyUFuncGenericFunction logistic_loops[] = {
    logistic_float,
    logistic_double,
    logistic_longdouble,
};
static const char logistic_types[] = {
    NPY_FLOAT,      NPY_FLOAT,      /* input, output */
    NPY_DOUBLE,     NPY_DOUBLE,     /* */
    NPY_LONGDOUBLE, NPY_LONGDOUBLE, /* */
};

/* dimensions: how many pairs of vectors, and their length. steps: from one vector of a and b to the
 * next, and from one result; then from one element of a vector of a and b to the next. */
#define DISTANCE(NAME, TYPE)                                                                       \
    static void NAME(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)   \
    {                                                                                              \
        (void)data;                                                                                \
        for (npy_intp i = 0; i < dimensions[0]; i++) {                                             \
            const char *a = args[0] + i * steps[0], *b = args[1] + i * steps[1];                   \
            double sum = 0;                                                                        \
            for (npy_intp k = 0; k < dimensions[1]; k++) {                                         \
                const double d =                                                                   \
                    (double)*(TYPE *)(a + k * steps[3]) - *(TYPE *)(b + k * steps[4]);             \
                sum += d * d;                                                                      \
            }                                                                                      \
            *(TYPE *)(args[2] + i * steps[2]) = (TYPE)sqrt(sum);                                   \
        }                                                                                          \
    }

DISTANCE(distance_float, npy_float)
DISTANCE(distance_double, npy_double)

static PyUFuncGenericFunction distance_loops[] = {distance_float, distance_double};
static const char distance_types[] = {
    NPY_FLOAT,  NPY_FLOAT,  NPY_FLOAT,  /* a, b, output */
    NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE, /* */
};

static void *const no_data[] = {NULL, NULL, NULL}; /* what each loop gets as `data` */

static int add_ufunc(PyObject *module, const char *name, PyObject *ufunc)
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
    PyObject *logistic = PyUFunc_FromFuncAndData(logistic_loops, no_data, logistic_types, 3, 1, 1,
                                                 PyUFunc_None, "logistic", "1 / (1 + exp(-x))", 0);
    if (add_ufunc(module, "logistic", logistic) < 0) {
        return -1;
    }
    PyObject *distance = PyUFunc_FromFuncAndDataAndSignature(
        distance_loops, no_data, distance_types, 2, 2, 1, PyUFunc_None, "distance",
        "Euclidean distance of the vectors along the last axes.", 0, "(n),(n)->()");
    return add_ufunc(module, "distance", distance);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)exec_module},
#ifdef Py_mod_gil /* Python 3.13: the loops share nothing */
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "own",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_own(void)
{
    return PyModuleDef_Init(&definition);
}
