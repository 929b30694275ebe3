/* Module `_numc_test`: what tests do to a running process, and the fake device. */
#define NUMC_IMPORTS_NUMPY
#include "gufuncs.h"
#include "hooks.h"

#include "device/device.h"
#include "fake_device.h"
#include "numpy/internals.h"
#include "numpy/numpy_private.h"

#include <stdio.h>

static struct internals *internals;
static struct device *fake;

/* ---- threads ---- */

static PyObject *set_parallel_threshold(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t elements;
    if (!PyArg_ParseTuple(args, "n:set_parallel_threshold", &elements)) {
        return NULL;
    }
    const bool forced = elements != 0;
    const ptrdiff_t before = internals->policy->threshold;
    *internals->policy = (struct policy){elements, forced, forced};
    return PyLong_FromSsize_t(before);
}

static PyObject *set_policy(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t threshold;
    int awaits_workers, small_blocks;
    if (!PyArg_ParseTuple(args, "npp:set_policy", &threshold, &awaits_workers, &small_blocks)) {
        return NULL;
    }
    const struct policy before = *internals->policy;
    *internals->policy = (struct policy){threshold, awaits_workers, small_blocks};
    return Py_BuildValue("nNN", before.threshold, PyBool_FromLong(before.awaits_workers),
                         PyBool_FromLong(before.small_blocks));
}

static PyObject *read_quota(PyObject *module, PyObject *args)
{
    (void)module;
    const char *root;
    if (!PyArg_ParseTuple(args, "s:read_quota", &root)) {
        return NULL;
    }
    internals->read_quota(root);
    Py_RETURN_NONE;
}

static PyObject *cgroup_quota(PyObject *module, PyObject *args)
{
    (void)module;
    const char *root;
    if (!PyArg_ParseTuple(args, "s:cgroup_quota", &root)) {
        return NULL;
    }
    return PyLong_FromLong(internals->quota(root));
}

static PyObject *know_exceptions(PyObject *module, PyObject *known)
{
    (void)module;
    internals->private_known[PRIVATE_EXCEPTION] = known == Py_True;
    Py_RETURN_NONE;
}

/* ---- memory ---- */

static PyObject *read_memory(PyObject *module, PyObject *args)
{
    (void)module;
    const char *root;
    if (!PyArg_ParseTuple(args, "z:read_memory", &root)) {
        return NULL;
    }
    internals->read_memory(root);
    Py_RETURN_NONE;
}

static _Atomic int64_t memory_time;

static int64_t set_memory_time(void)
{
    return memory_time;
}

static PyObject *set_memory_clock(PyObject *module, PyObject *args)
{
    (void)module;
    double seconds;
    if (!PyArg_ParseTuple(args, "d:set_memory_clock", &seconds)) {
        return NULL;
    }
    memory_time = (int64_t)(seconds * 1e9);
    internals->replace_memory_clock(seconds >= 0 ? set_memory_time : NULL);
    Py_RETURN_NONE;
}

static PyObject *limit_memory(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "n:limit_memory", &bytes)) {
        return NULL;
    }
    internals->limit_memory((size_t)bytes);
    Py_RETURN_NONE;
}

/* ---- devices ---- */

static PyObject *use_fake_device(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t memory;
    int is_up = 1;
    double speedup = 1e6;
    if (!PyArg_ParseTuple(args, "n|pd:use_fake_device", &memory, &is_up, &speedup)) {
        return NULL;
    }
    struct rates rates = {.threads = 1, .memory = 1e9, .transfer = 1e9 * speedup, .latency_ns = 1};
    for (int type = 0; type < RATE_TYPES; type++) {
        rates.product[type] = rates.stack[type] = 1e9;
        rates.device[type] = 1e9 * speedup;
    }
    struct device *before = fake;
    fake = memory > 0 ? fake_new((size_t)memory) : NULL;
    if (memory > 0 && fake == NULL) {
        return PyErr_NoMemory();
    }
    internals->replace_device(fake, is_up);
    internals->replace_rates(fake != NULL && speedup > 0 ? &rates : NULL);
    const long alive = before != NULL ? fake_alive(before) : 0;
    fake_delete(before);
    return PyLong_FromLong(alive);
}

static double clock_step, clock_now;

static double stepping_clock(void)
{
    return clock_now += clock_step;
}

static PyObject *clock_function;

static double called_clock(void)
{
    const PyGILState_STATE gil = PyGILState_Ensure();
    PyObject *seconds = PyObject_CallNoArgs(clock_function);
    const double value = seconds != NULL ? PyFloat_AsDouble(seconds) : 0;
    Py_XDECREF(seconds);
    if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(clock_function);
    }
    PyGILState_Release(gil);
    return value;
}

/* ---- this module in the place of a library of devices ---- */

static int count_devices(char *why, size_t size)
{
    snprintf(why, size, "%s", "");
    return 2;
}

static void describe(int ordinal, char *text, size_t size)
{
    snprintf(text, size, "fake %d", ordinal);
}

static enum status open_device(int ordinal, const char *const blas[], struct device **device,
                               char *why, size_t size)
{
    (void)ordinal, (void)blas;
    *device = fake_new((size_t)1 << 28);
    snprintf(why, size, "%s", *device == NULL ? "no memory" : "");
    return *device != NULL ? STATUS_OK : STATUS_NO_HOST_MEMORY;
}

__attribute__((visibility("default"))) device_entry numc_cuda_library;

const struct device_library *numc_cuda_library(int version)
{
    static const struct device_library library = {count_devices, describe, open_device};
    return version == DEVICE_VERSION ? &library : NULL;
}

static PyObject *set_fake_clock(PyObject *module, PyObject *args)
{
    (void)module;
    if (!PyArg_ParseTuple(args, "d:set_fake_clock", &clock_step)) {
        return NULL;
    }
    internals->replace_clock(clock_step != 0 ? stepping_clock : NULL);
    Py_RETURN_NONE;
}

static PyObject *set_clock(PyObject *module, PyObject *function)
{
    (void)module;
    PyObject *before = clock_function;
    clock_function = function != Py_None ? Py_NewRef(function) : NULL;
    internals->replace_clock(clock_function != NULL ? called_clock : NULL);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *settle_devices(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS;
    internals->settle_devices();
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
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
    Py_RETURN_NONE;
}

static PyObject *refuse_managed(PyObject *module, PyObject *args)
{
    (void)module;
    static char kept[256];
    const char *why;
    if (!PyArg_ParseTuple(args, "z:refuse_managed", &why)) {
        return NULL;
    }
    if (fake == NULL) {
        return PyErr_Format(PyExc_ValueError, "there is no fake device");
    }
    snprintf(kept, sizeof kept, "%s", why != NULL ? why : "");
    fake->no_managed = why != NULL ? kept : NULL;
    Py_RETURN_NONE;
}

static PyObject *touch(PyObject *module, PyObject *array)
{
    (void)module;
    Py_buffer buffer;
    if (PyObject_GetBuffer(array, &buffer, PyBUF_STRIDES) != 0) {
        return NULL;
    }
    if (fake != NULL) {
        fake_touch(fake, buffer.buf);
    }
    PyBuffer_Release(&buffer);
    Py_RETURN_NONE;
}

static PyObject *device_calls(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(fake != NULL ? fake_calls(fake) : 0);
}

static PyObject *limit_device_memory(PyObject *module, PyObject *args)
{
    (void)module;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "n:limit_device_memory", &bytes)) {
        return NULL;
    }
    internals->limit_device_memory((size_t)bytes);
    Py_RETURN_NONE;
}

static PyObject *last_times(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const struct pipeline_times *times = internals->last_times();
    return Py_BuildValue("dddd", times->last_upload, times->last_product, times->last_download,
                         times->end);
}

static PyMethodDef functions[] = {
    {"set_policy", set_policy, METH_VARARGS,
     "set_policy(threshold, awaits_workers, small_blocks): as struct policy; the one before."},
    {"set_parallel_threshold", set_parallel_threshold, METH_VARARGS,
     "Elements from which calls use threads, in small blocks, and all workers come; 0: production. "
     "Returns the value before."},
    {"read_quota", read_quota, METH_VARARGS,
     "read_quota(root): calls keep to the quota of the control group below root from now on."},
    {"cgroup_quota", cgroup_quota, METH_VARARGS, "CPUs granted by the cgroup below root, or 0."},
    {"read_memory", read_memory, METH_VARARGS,
     "read_memory(root): memory is kept by what /proc and /sys below root say; None: by the real "
     "ones."},
    {"set_memory_clock", set_memory_clock, METH_VARARGS,
     "set_memory_clock(seconds): the time for kept memory, which stands still; negative: the real "
     "one."},
    {"limit_memory", limit_memory, METH_VARARGS, "Bytes that are kept at most."},
    {"know_exceptions", know_exceptions, METH_O,
     "know_exceptions(known): whether exceptions of threads are where they are expected."},
    {"use_fake_device", use_fake_device, METH_VARARGS,
     "use_fake_device(memory, is_up=True, speedup=1e6): in the place of device 0; memory 0 takes "
     "it "
     "away. What placement takes it for: so many times as fast as the processor; 0: it is "
     "measured. Returns how many objects of the one before are left."},
    {"settle_devices", settle_devices, METH_NOARGS, "Waits until no device is being started."},
    {"set_fake_clock", set_fake_clock, METH_VARARGS,
     "set_fake_clock(step): what placement takes for the time advances so many seconds at each "
     "look; 0: the real time."},
    {"set_clock", set_clock, METH_O,
     "set_clock(function): what placement takes for the time in seconds; None: the real time."},
    {"fail_device_call", fail_device_call, METH_VARARGS,
     "fail_device_call(n, lost): the nth call of the fake device from now on fails; 0: none."},
    {"refuse_managed", refuse_managed, METH_VARARGS,
     "refuse_managed(why): the fake device has no managed memory; None: it has."},
    {"touch", touch, METH_O,
     "touch(array): the processor uses managed memory, which leaves the fake device."},
    {"device_calls", device_calls, METH_NOARGS, "Calls of the fake device so far."},
    {"limit_device_memory", limit_device_memory, METH_VARARGS,
     "Bytes that a call may take on device 0, if it is up; 0: all."},
    {"last_times", last_times, METH_NOARGS,
     "Seconds until the last upload, product and download of the last product on a device were in "
     "their streams, and until its end."},
    {"count_calls", hooks_count_calls, METH_VARARGS,
     "count_calls(ufunc): count its calls from now on."},
    {"calls", hooks_calls, METH_NOARGS, "{hooked ufunc: calls so far}."},
    {NULL, NULL, 0, NULL},
};

static int execute(PyObject *module)
{
    if (PyArray_ImportNumPyAPI() < 0 || PyUFunc_ImportUFuncAPI() < 0 || !gufuncs_add(module)) {
        return -1;
    }
    internals = PyCapsule_Import(INTERNALS_CAPSULE, 0);
    if (internals != NULL && internals->bytes != sizeof *internals) {
        PyErr_SetString(PyExc_ImportError, "numc_ufuncs is of another build than _numc_test");
        return -1;
    }
    return internals != NULL ? 0 : -1;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_gil
    {Py_mod_gil, Py_MOD_GIL_NOT_USED}, /* or it would turn the GIL on */
#endif
#ifdef Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_numc_test",
    .m_methods = functions,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__numc_test(void);

PyMODINIT_FUNC PyInit__numc_test(void)
{
    return PyModuleDef_Init(&definition);
}
