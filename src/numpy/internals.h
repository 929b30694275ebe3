/* What the test extension may change in a running process. Module `_core` offers it as the capsule
 * `_internals`; nothing else uses it. */
#ifndef NUMC_INTERNALS_H
#define NUMC_INTERNALS_H

#include "numpy_api.h"

#include "device/pipeline.h"
#include "device/rates.h"
#include "threads/policy.h"

#define INTERNALS_CAPSULE "numc_ufuncs._core._internals"

struct internals {
    size_t bytes; /* of this struct: another build has another */

    /* Of all calls that come from Python; to be changed while no call runs. */
    struct policy *policy;

    /* What is known of NumPy and CPython, by enum private_part. */
    bool *private_known;

    /* Reads the CPU quota of the control group below `root`. */
    void (*read_quota)(const char *root);
    int (*quota)(const char *root);

    /* Memory of the machine and the control group below `root`; NULL: the real ones. */
    void (*read_memory)(const char *root);
    /* Of kept memory, in nanoseconds; NULL: the real clock. */
    void (*replace_memory_clock)(int64_t (*clock)(void));
    /* Bytes that are kept at most. */
    void (*limit_memory)(size_t bytes);

    /* A device in the place of number 0; NULL takes it away. */
    void (*replace_device)(struct device *device, bool is_up);
    void (*settle_devices)(void);
    /* By which products are placed; NULL: as if nothing had been measured yet. */
    void (*replace_rates)(const struct rates *rates);
    /* Returns seconds; NULL: the real clock. */
    void (*replace_clock)(double (*clock)(void));
    /* Bytes that a call may take on device 0, if it is up; 0: all. */
    void (*limit_device_memory)(size_t bytes);
    /* Of this thread's last product on a device. */
    const struct pipeline_times *(*last_times)(void);
};

int internals_add(PyObject *module);

#endif
