/* Options of the process and of each thread. */
#include "options.h"

static struct {
    _Atomic int device, precision, kernel;
} of_process = {OFFLOAD_AUTO, PRECISION_IEEE, GEMM_AUTO};
static _Thread_local struct offload_options of_thread;

struct offload_options offload_options(void)
{
    return (struct offload_options){
        of_thread.device != 0 ? of_thread.device : of_process.device,
        of_thread.precision != 0 ? of_thread.precision : of_process.precision,
        of_thread.kernel != 0 ? of_thread.kernel : of_process.kernel,
    };
}

/* 0 leaves an option as it is. */
static PyObject *set_process_offload(PyObject *module, PyObject *args)
{
    (void)module;
    int device, precision, kernel;
    if (!PyArg_ParseTuple(args, "iii:set_process_offload", &device, &precision, &kernel)) {
        return NULL;
    }
    of_process.device = device != 0 ? device : of_process.device;
    of_process.precision = precision != 0 ? precision : of_process.precision;
    of_process.kernel = kernel != 0 ? kernel : of_process.kernel;
    return Py_NewRef(Py_None);
}

static PyObject *set_thread_offload(PyObject *module, PyObject *args)
{
    (void)module;
    struct offload_options options;
    if (!PyArg_ParseTuple(args, "iii:set_thread_offload", &options.device, &options.precision,
                          &options.kernel)) {
        return NULL;
    }
    of_thread = options;
    return Py_NewRef(Py_None);
}

static PyObject *get_thread_offload(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("iii", of_thread.device, of_thread.precision, of_thread.kernel);
}

static PyObject *get_offload(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const struct offload_options options = offload_options();
    return Py_BuildValue("iii", options.device, options.precision, options.kernel);
}

static PyMethodDef functions[] = {
    {"set_process_offload", set_process_offload, METH_VARARGS,
     "set_process_offload(device, precision, gemm): 0 leaves an option as it is."},
    {"set_thread_offload", set_thread_offload, METH_VARARGS,
     "set_thread_offload(device, precision, gemm) for calls of this thread; 0 unsets."},
    {"get_thread_offload", get_thread_offload, METH_NOARGS, "What set_thread_offload set."},
    {"get_offload", get_offload, METH_NOARGS, "(device, precision, gemm) in effect."},
    {NULL, NULL, 0, NULL},
};

int options_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
