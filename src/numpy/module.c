/* The extension module numc_ufuncs._core: what the Python package is made of. */
#define NUMC_IMPORTS_NUMPY
#include "numpy_api.h"

#include "call.h"
#include "check.h"
#include "clone.h"
#include "device_functions.h"
#include "dlpack.h"
#include "elementwise_call.h"
#include "engine/bandwidth.h"
#include "environment.h"
#include "errors.h"
#include "internals.h"
#include "kernels/kernels.h"
#include "matmul_call.h"
#include "matmul_loop.h"
#include "measured_rates.h"
#include "memory_handler.h"
#include "methods.h"
#include "numpy_private.h"
#include "offload.h"
#include "options.h"
#include "patch.h"
#include "profile.h"
#include "reduction_loop.h"
#include "threads/region.h"

static PyObject *parallel_clone(PyObject *module, PyObject *args)
{
    (void)module;
    PyUFuncObject *original;
    const char *op, *doc;
    PyObject *serial_if;
    if (!PyArg_ParseTuple(args, "O!zsO:parallel_clone", &PyUFunc_Type, &original, &op, &doc,
                          &serial_if)) {
        return NULL;
    }
    PyObject *clone = clone_ufunc(original, op, doc, serial_if != Py_None ? serial_if : NULL);
    if (clone != NULL && methods_shadow(clone) < 0) {
        Py_CLEAR(clone);
    }
    return clone;
}

static PyObject *lead_methods(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    methods_lead_here();
    Py_RETURN_NONE;
}

static PyObject *make_gufunc(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyUFuncObject *matmul, *vecdot;
    if (!PyArg_ParseTuple(args, "sO!O!:make_gufunc", &name, &PyUFunc_Type, &matmul, &PyUFunc_Type,
                          &vecdot)) {
        return NULL;
    }
    return gufunc_make(name, matmul, vecdot);
}

static PyObject *regions(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(region_count());
}

static PyObject *short_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("KKKKK", elementwise_calls.one_loop, elementwise_calls.nested,
                         elementwise_calls.ranged, elementwise_calls.whole, matmul_calls);
}

static PyObject *reductions(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("KK", (unsigned long long)methods_reduced_arrays(),
                         (unsigned long long)reduction_loops());
}

static PyObject *reduction_reason(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("z", methods_reduction_reason());
}

static PyObject *matmuls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("KK", gufunc_counts.ours, gufunc_counts.numpys);
}

static PyObject *active_threads(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(region_active());
}

static PyObject *measured_bandwidth(PyObject *args, enum bandwidth what)
{
    Py_ssize_t bytes;
    int threads;
    if (!PyArg_ParseTuple(args, "ni", &bytes, &threads)) {
        return NULL;
    }
    if (bytes < 64) {
        return PyErr_Format(PyExc_ValueError, "bytes must be at least 64, not %zd", bytes);
    }
    if (threads < 1) {
        return PyErr_Format(PyExc_ValueError, "threads must be at least 1, not %d", threads);
    }
    double per_second;
    Py_BEGIN_ALLOW_THREADS per_second = bandwidth_measure(what, (size_t)bytes, threads);
    Py_END_ALLOW_THREADS return per_second > 0 ? PyFloat_FromDouble(per_second) : PyErr_NoMemory();
}

static PyObject *stream_bandwidth(PyObject *module, PyObject *args)
{
    (void)module;
    return measured_bandwidth(args, BANDWIDTH_STREAMING_ADD);
}

static PyObject *copy_bandwidth(PyObject *module, PyObject *args)
{
    (void)module;
    return measured_bandwidth(args, BANDWIDTH_COPY);
}

static PyObject *isas(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *names = PyList_New(0);
    for (int i = 0; names != NULL && kernels_isa(i) != NULL; i++) {
        if (kernels_of_isa(kernels_isa(i)) == NULL) {
            continue;
        }
        PyObject *name = PyUnicode_FromString(kernels_isa(i));
        if (name == NULL || PyList_Append(names, name) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(name);
    }
    return names != NULL ? Py_BuildValue("sN", kernels_selected_isa(), names) : NULL;
}

static PyObject *take_import_warnings(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return environment_take_warnings();
}

static PyMethodDef methods[] = {
    {"parallel_clone", parallel_clone, METH_VARARGS,
     "parallel_clone(ufunc, op, doc, serial_if): a ufunc with the same loops, run on all cores."},
    {"lead_methods", lead_methods, METH_NOARGS,
     "Lead methods of NumPy's ufuncs to ours while these are patched."},
    {"make_gufunc", make_gufunc, METH_VARARGS,
     "make_gufunc(name, matmul, vecdot): matvec or vecmat, of the loops of matmul and vecdot."},
    {"regions", regions, METH_NOARGS, "How often several threads ran so far."},
    {"short_calls", short_calls, METH_NOARGS,
     "How many calls of this thread took the short way so far: (in one loop, over axes, in ranges, "
     "as a whole, products)."},
    {"reduction_reason", reduction_reason, METH_NOARGS,
     "Why our kernels did not reduce this thread's last array, or None."},
    {"reductions", reductions, METH_NOARGS,
     "Of this thread: (arrays that our methods reduced, calls of loops that our kernels reduced or "
     "accumulated)."},
    {"matmuls", matmuls, METH_NOARGS,
     "Of this thread: (calls of matmul's loops that our kernels computed, that NumPy's own loops "
     "did)."},
    {"active_threads", active_threads, METH_NOARGS, "Threads that compute now, callers included."},
    {"stream_bandwidth", stream_bandwidth, METH_VARARGS,
     "stream_bandwidth(bytes, threads): bytes/s of a plain streaming add of arrays of that size."},
    {"copy_bandwidth", copy_bandwidth, METH_VARARGS,
     "copy_bandwidth(bytes, threads): bytes/s of a plain copy of an array of that size."},
    {"isas", isas, METH_NOARGS, "(instruction set in use, [instruction sets available])."},
    {"take_import_warnings", take_import_warnings, METH_NOARGS,
     "Texts of warnings that the import is to give."},
    {NULL, NULL, 0, NULL},
};

/* State of the process: initialized once, even if the module is imported again. */
static int initialize_process(void)
{
    static int (*const steps[])(void) = {
        environment_apply, private_initialize, options_initialize,        failure_initialize,
        call_initialize,   methods_initialize, measured_rates_initialize,
    };
    static size_t done;
    for (; done < sizeof steps / sizeof *steps; done++) {
        if (steps[done]() < 0) {
            return -1;
        }
    }
    return 0;
}

static int execute(PyObject *module)
{
    /* NumPy and our own state are the process's. From Python 3.12 on, a slot says so as well. */
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "numc_ufuncs cannot be imported by a subinterpreter");
        return -1;
    }
    return PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 ||
                   initialize_process() < 0 || options_add_functions(module) < 0 ||
                   patch_add_functions(module) < 0 || profile_add_functions(module) < 0 ||
                   check_add_functions(module) < 0 || memory_handler_add_functions(module) < 0 ||
                   device_functions_add(module) < 0 || dlpack_add_functions(module) < 0 ||
                   internals_add(module) < 0
               ? -1
               : 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
#ifdef Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "numc_ufuncs._core",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
