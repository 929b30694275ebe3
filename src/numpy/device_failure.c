#include "device_failure.h"

#include "devices.h"
#include "numpy_api.h"

#include <stdio.h>

static void warn_of_loss(int device, const char *why)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    if (!PyErr_Occurred()) {
        PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                         "device '%s' is lost, this process computes without it from now on: %s",
                         device_name(device), why);
    }
    PyGILState_Release(gil);
}

static const char *text_of(enum status status)
{
    switch (status) {
    case STATUS_NO_HOST_MEMORY:
        return "out of host memory";
    case STATUS_NO_DEVICE_MEMORY:
        return "out of device memory";
    case STATUS_UNSUPPORTED:
        return "it computes no such call";
    default:
        return "it failed";
    }
}

void device_failure_explain(int device, enum status status, char *why, size_t size)
{
    struct device *failed = device_of(device);
    char problem[256] = "";
    failed->explain(failed, problem, sizeof problem);
    snprintf(why, size, "%s%s%s", text_of(status), *problem != '\0' ? ": " : "", problem);
    if (status == STATUS_LOST && device_give_up(device, why)) {
        warn_of_loss(device, why);
    }
}

void device_failure_raise(const char *op, int device, enum status status, const char *why)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *type = status == STATUS_NO_HOST_MEMORY || status == STATUS_NO_DEVICE_MEMORY
                         ? PyExc_MemoryError
                         : PyExc_RuntimeError;
    if (!PyErr_Occurred()) {
        PyErr_Format(type, "%s on device '%s' failed, the result is not complete: %s", op,
                     device_name(device), why);
    }
    PyGILState_Release(gil);
}
