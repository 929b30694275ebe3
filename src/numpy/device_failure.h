/* Failures of devices, told to Python. */
#ifndef NUMC_DEVICE_FAILURE_H
#define NUMC_DEVICE_FAILURE_H

#include "device/device.h"

/* All without the GIL. */

/* Says why a device failed, and gives up one that is lost, with a warning. */
void device_failure_explain(int device, enum status status, char *why, size_t size);

/* Sets an exception, unless there is one. */
void device_failure_raise(const char *op, int device, enum status status, const char *why);

#endif
