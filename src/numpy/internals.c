/* The capsule for the test extension. */
#include "internals.h"

#include "device_memory.h"
#include "devices.h"
#include "measured_rates.h"
#include "memory/kept_blocks.h"
#include "memory_limits.h"
#include "numpy_private.h"
#include "offload.h"
#include "policy_in_use.h"
#include "threads/cgroup.h"
#include "threads/limit.h"

static void limit_device_memory(size_t bytes)
{
    if (device_pipeline(0) != NULL) {
        pipeline_limit_memory(device_pipeline(0), bytes);
    }
}

static void replace_device(struct device *device, bool is_up)
{
    device_memory_abandon();
    devices_replace(device, is_up);
}

static const struct pipeline_times *last_times(void)
{
    return &offload_times;
}

int internals_add(PyObject *module)
{
    static struct internals internals = {
        .bytes = sizeof internals,
        .policy = &policy_in_use,
        .private_known = private_known,
        .read_quota = threads_read_quota,
        .quota = cgroup_cpus,
        .read_memory = memory_limits_read,
        .replace_memory_clock = memory_limits_replace_clock,
        .limit_memory = kept_set_limit,
        .replace_device = replace_device,
        .settle_devices = devices_settle,
        .replace_rates = measured_rates_replace,
        .replace_clock = measured_clock_replace,
        .limit_device_memory = limit_device_memory,
        .last_times = last_times,
    };
    PyObject *capsule = PyCapsule_New(&internals, INTERNALS_CAPSULE, NULL);
    const int status = PyModule_AddObjectRef(module, "_internals", capsule);
    Py_XDECREF(capsule);
    return status;
}
