/* What Python sees of devices: options, lists and the last call. */
#include "offload.h"

#include "call_record.h"
#include "devices.h"

#include <stdio.h>

/* ---- options ---- */

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

/* ---- the last call ---- */

static _Thread_local struct {
    const char *op, *device, *reason;
    double seconds;
    int threads;
    char device_copy[64], reason_copy[512];
} record;

void call_record_short(const char *op, const char *reason)
{
    record.op = op;
    record.device = "cpu";
    record.reason = reason;
    record.seconds = -1;
    record.threads = 0;
}

void call_record_set(const char *op, const char *device, const char *reason, double seconds,
                     int threads)
{
    record.op = op;
    record.seconds = seconds;
    record.threads = threads;
    snprintf(record.device_copy, sizeof record.device_copy, "%s", device);
    snprintf(record.reason_copy, sizeof record.reason_copy, "%s", reason);
    record.device = record.device_copy;
    record.reason = record.reason_copy;
}

static PyObject *last_call(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    if (record.op == NULL) {
        return Py_NewRef(Py_None);
    }
    PyObject *seconds =
        record.seconds >= 0 ? PyFloat_FromDouble(record.seconds) : Py_NewRef(Py_None);
    PyObject *threads = record.threads > 0 ? PyLong_FromLong(record.threads) : Py_NewRef(Py_None);
    if (seconds == NULL || threads == NULL) {
        Py_XDECREF(seconds);
        Py_XDECREF(threads);
        return NULL;
    }
    return Py_BuildValue("{ssssss sN sN}", "op", record.op, "device", record.device, "reason",
                         record.reason, "seconds", seconds, "threads", threads);
}

/* ---- devices ---- */

static PyObject *cuda_devices(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    char name[MOST_DEVICES][256], why[512] = "";
    const int count = devices_list(name, why, sizeof why);
    PyObject *names = PyList_New(0);
    for (int i = 0; names != NULL && i < count; i++) {
        PyObject *text = PyUnicode_FromString(name[i]);
        if (text == NULL || PyList_Append(names, text) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(text);
    }
    return names != NULL ? Py_BuildValue("Ns", names, why) : NULL;
}

static PyMethodDef functions[] = {
    {"set_process_offload", set_process_offload, METH_VARARGS,
     "set_process_offload(device, precision, gemm): 0 leaves an option as it is."},
    {"set_thread_offload", set_thread_offload, METH_VARARGS,
     "set_thread_offload(device, precision, gemm) for calls of this thread; 0 unsets."},
    {"get_thread_offload", get_thread_offload, METH_NOARGS, "What set_thread_offload set."},
    {"get_offload", get_offload, METH_NOARGS, "(device, precision, gemm) in effect."},
    {"last_call", last_call, METH_NOARGS, "What this thread's last call of a gufunc did, or None."},
    {"cuda_devices", cuda_devices, METH_NOARGS, "([names of CUDA devices], why there is none)."},
    {NULL, NULL, 0, NULL},
};

int offload_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
