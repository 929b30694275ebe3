#include "call_record.h"

#include <stdio.h>
#include <string.h>

static _Thread_local struct {
    const char *op, *device, *reason;
    double seconds;
    int threads;
    unsigned long long offloads;
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
    record.offloads += strcmp(device, "cpu") != 0;
}

unsigned long long call_record_offloads(void)
{
    return record.offloads;
}

PyObject *call_record_get(PyObject *module, PyObject *unused)
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
