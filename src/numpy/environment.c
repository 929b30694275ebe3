/* Reads the NUMC_* variables, once, at import. */
#include "environment.h"

#include "devices.h"
#include "kernels/kernels.h"
#include "memory_limits.h"
#include "threads/limit.h"
#include "threads/pool.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static PyObject *warnings;

int environment_warn(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *text = PyUnicode_FromFormatV(format, values);
    va_end(values);
    if (warnings == NULL) {
        warnings = PyList_New(0);
    }
    const int status = text != NULL && warnings != NULL ? PyList_Append(warnings, text) : -1;
    Py_XDECREF(text);
    return status;
}

PyObject *environment_take_warnings(void)
{
    PyObject *taken = warnings != NULL ? warnings : PyList_New(0);
    warnings = NULL;
    return taken;
}

static int warn_ignored(const char *name, const char *value, const char *rule)
{
    return environment_warn("%s='%s' is ignored: it must be %s", name, value, rule);
}

/* A decimal number from `least` to `most`, which `rule` tells; kept when the variable is unset or
 * empty. */
static int read_number(const char *name, unsigned long long least, unsigned long long most,
                       const char *rule, unsigned long long *number)
{
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, NULL, 10);
    if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || value < least || value > most) {
        return warn_ignored(name, text, rule);
    }
    *number = value;
    return 0;
}

static int apply_isa(void)
{
    const char *isa = getenv("NUMC_ISA");
    if (isa == NULL || *isa == '\0' || kernels_restrict(isa) == 0) {
        return 0;
    }
    return warn_ignored("NUMC_ISA", isa, "one of those that info()['isa_available'] lists");
}

int environment_apply(void)
{
    static const char positive[] = "an integer of at least 1";
    unsigned long long most_threads = 0, device_memory = 0, memory = 0, spin_us = WORKER_SPIN_US;
    if (apply_isa() < 0 ||
        read_number("NUMC_GPU_MEMORY_LIMIT", 1, SIZE_MAX, "a number of bytes", &device_memory) <
            0 ||
        read_number("NUMC_MEMORY_CACHE", 1, SIZE_MAX, "a number of bytes", &memory) < 0 ||
        read_number("NUMC_NUM_THREADS", 1, INT_MAX, positive, &most_threads) < 0 ||
        read_number("NUMC_SPIN_US", 0, INT_MAX, "a number of microseconds", &spin_us) < 0) {
        return -1;
    }
    threads_initialize((int)most_threads, "");
    pool_set_spin_us((int)spin_us);
    memory_limits_initialize((size_t)memory);
    return devices_initialize((size_t)device_memory);
}
