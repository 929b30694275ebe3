/* Route 4: a ufunc. NumPy does what the other routes check, refuse or forget. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#include <Python.h>

#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include "add.h"

/* n elements of three operands, so many bytes apart. */
static void add_doubles(char **args, npy_intp const *dimensions, npy_intp const *steps, void *data)
{
    const npy_intp n = dimensions[0], size = sizeof(double);
    (void)data;
    if (steps[0] == size && steps[1] == size && steps[2] == size) {
        add((double *)args[0], (double *)args[1], (double *)args[2], (size_t)n);
        return;
    }
    for (npy_intp i = 0; i < n; i++) {
        const double a = *(double *)(args[0] + i * steps[0]);
        const double b = *(double *)(args[1] + i * steps[1]);
        *(double *)(args[2] + i * steps[2]) = a + b;
    }
}

static PyUFuncGenericFunction loops[] = {add_doubles};
static const char types[] = {NPY_DOUBLE, NPY_DOUBLE, NPY_DOUBLE};
static void *const no_data[] = {NULL};

static int exec_module(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0) {
        return -1;
    }
    PyObject *ufunc = PyUFunc_FromFuncAndData(loops, no_data, types, 1, 2, 1, PyUFunc_Zero, "add",
                                              "a + b of float64.", 0);
    const int status = ufunc == NULL ? -1 : PyModule_AddObjectRef(module, "add", ufunc);
    Py_XDECREF(ufunc);
    return status;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)exec_module}, {0, NULL}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "by_ufunc",
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_by_ufunc(void)
{
    return PyModuleDef_Init(&definition);
}
