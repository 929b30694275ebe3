/* What Python sees of devices: lists, the last call, and the fake device of the tests. */
#include "offload.h"

#include "call_record.h"
#include "device/fake.h"
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

static PyObject *last_times(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("dddd", device_times.last_upload, device_times.last_product,
                         device_times.last_download, device_times.end);
}

static PyObject *limit_device_memory(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "n:limit_device_memory", &bytes)) {
        return NULL;
    }
    if (device_pipeline(0) != NULL) {
        pipeline_limit_memory(device_pipeline(0), (size_t)bytes);
    }
    return Py_NewRef(Py_None);
}

/* ---- the fake device ---- */

static struct device *fake;

static PyObject *use_fake_device(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t memory;
    double clock_step = 0;
    if (!PyArg_ParseTuple(args, "n|d:use_fake_device", &memory, &clock_step)) {
        return NULL;
    }
    struct device *before = fake;
    fake = memory > 0 ? fake_new((size_t)memory) : NULL;
    if (memory > 0 && fake == NULL) {
        return PyErr_NoMemory();
    }
    devices_replace(fake, clock_step);
    const long alive = before != NULL ? fake_alive(before) : 0;
    fake_delete(before);
    return PyLong_FromLong(alive);
}

static PyObject *set_fake_clock(PyObject *module, PyObject *args)
{
    (void)module;
    double step;
    if (!PyArg_ParseTuple(args, "d:set_fake_clock", &step)) {
        return NULL;
    }
    devices_set_clock(step);
    return Py_NewRef(Py_None);
}

static PyObject *fail_device_call(PyObject *module, PyObject *args)
{
    (void)module;
    long call;
    int lost;
    if (!PyArg_ParseTuple(args, "lp:fail_device_call", &call, &lost)) {
        return NULL;
    }
    if (fake == NULL) {
        return PyErr_Format(PyExc_ValueError, "there is no fake device");
    }
    fake_fail(fake, call, lost ? STATUS_LOST : STATUS_FAILED);
    return Py_NewRef(Py_None);
}

static PyObject *device_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(fake != NULL ? fake_calls(fake) : 0);
}

static PyMethodDef functions[] = {
    {"last_call", last_call, METH_NOARGS, "What this thread's last call of a gufunc did, or None."},
    {"cuda_devices", cuda_devices, METH_NOARGS, "([names of CUDA devices], why there is none)."},
    {"last_times", last_times, METH_NOARGS,
     "Seconds until the last upload, product and download of the last product on a device were in "
     "their queues, and until its end."},
    {"limit_device_memory", limit_device_memory, METH_VARARGS,
     "Bytes that a call may take on device 0, if it is up; 0: all."},
    {"use_fake_device", use_fake_device, METH_VARARGS,
     "use_fake_device(memory, clock_step=0): in the place of device 0; memory 0 takes it away. "
     "Returns how many objects of the one before are left."},
    {"set_fake_clock", set_fake_clock, METH_VARARGS,
     "set_fake_clock(step): what the choice takes for the time advances so at each look."},
    {"fail_device_call", fail_device_call, METH_VARARGS,
     "fail_device_call(n, lost): the nth call of the fake device from now on fails; 0: none."},
    {"device_calls", device_calls, METH_NOARGS, "Calls of the fake device so far."},
    {NULL, NULL, 0, NULL},
};

int offload_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
