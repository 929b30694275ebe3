/* What Python sees of devices: lists and the last call. */
#include "offload.h"

#include "call_record.h"
#include "devices.h"

#include <stdio.h>

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
    {"last_call", last_call, METH_NOARGS, "What this thread's last call of a gufunc did, or None."},
    {"cuda_devices", cuda_devices, METH_NOARGS, "([names of CUDA devices], why there is none)."},
    {NULL, NULL, 0, NULL},
};

int offload_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
