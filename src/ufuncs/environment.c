/* Reads the NUMC_* variables, once, at import. */
#include "environment.h"

#include "numpy_api.h"

#include "devices.h"
#include "kernels.h"
#include "parallel.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int warn_ignored(const char *name, const char *value, const char *rule)
{
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s='%s' is ignored: it must be %s", name,
                            value, rule);
}

/* A decimal number from 1 to INT_MAX; 0 when the variable is unset or empty. */
static int read_positive(const char *name, int *number)
{
    *number = 0;
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    const long value = strtol(text, NULL, 10);
    if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || value < 1 || value > INT_MAX) {
        return warn_ignored(name, text, "an integer of at least 1");
    }
    *number = (int)value;
    return 0;
}

/* A number of bytes; 0 when the variable is unset or empty. */
static int read_bytes(const char *name, size_t *bytes)
{
    *bytes = 0;
    const char *text = getenv(name);
    if (text == NULL || *text == '\0') {
        return 0;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, NULL, 10);
    if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || value < 1) {
        return warn_ignored(name, text, "a number of bytes");
    }
    *bytes = value;
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
    int most_threads, threshold;
    size_t device_memory;
    if (apply_isa() < 0 || read_bytes("NUMC_GPU_MEMORY_LIMIT", &device_memory) < 0 ||
        read_positive("NUMC_NUM_THREADS", &most_threads) < 0 ||
        read_positive("NUMC_PARALLEL_THRESHOLD", &threshold) < 0) {
        return -1;
    }
    const char *cgroup_root = getenv("NUMC_CGROUP_ROOT");
    threads_initialize(most_threads, cgroup_root != NULL ? cgroup_root : "");
    elementwise_set_threshold(threshold);
    return devices_initialize(device_memory);
}
