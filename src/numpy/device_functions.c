/* The functions of the module behind info(), last_call() and measure_rates(). */
#include "device_functions.h"

#include "call_record.h"
#include "devices.h"
#include "measured_rates.h"
#include "offload.h"
#include "options.h"

static PyObject *cuda_devices(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    char name[MOST_DEVICES][256], why[512] = "";
    const int count = devices_list(name, why, sizeof why);
    PyObject *names = count >= 0 ? PyList_New(0) : NULL;
    for (int i = 0; names != NULL && i < count; i++) {
        PyObject *text = PyUnicode_FromString(name[i]);
        if (text == NULL || PyList_Append(names, text) < 0) {
            Py_CLEAR(names);
        }
        Py_XDECREF(text);
    }
    return names != NULL ? Py_BuildValue("Ns", names, why) : NULL;
}

/* "" becomes None. */
static PyObject *rates_file(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const char *path = measured_rates_file();
    return path[0] != '\0' ? PyUnicode_DecodeFSDefault(path) : Py_NewRef(Py_None);
}

static PyObject *dict_of_types(const double rate[RATE_TYPES])
{
    PyObject *dict = PyDict_New();
    for (int type = 0; dict != NULL && type < RATE_TYPES; type++) {
        PyObject *number = PyFloat_FromDouble(rate[type]);
        if (number == NULL || PyDict_SetItemString(dict, rates_type_names[type], number) < 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *measure_rates(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    char why[REASON_BYTES] = "";
    struct rates rates;
    bool disturbed = false;
    enum status status = STATUS_UNAVAILABLE;
    struct options_scope scope;
    options_enter(&scope);
    Py_BEGIN_ALLOW_THREADS;
    if (device_start(0, true) == DEVICE_UP) {
        status = measured_rates_renew(offload_on_processor, &rates, &disturbed);
    } else {
        device_reason(0, why, sizeof why);
    }
    Py_END_ALLOW_THREADS;
    options_leave(&scope);
    if (PyErr_Occurred()) {
        return NULL;
    }
    if (status != STATUS_OK) {
        return PyErr_Format(PyExc_RuntimeError, "the rates cannot be measured: %s",
                            why[0] != '\0' ? why : "a product on the device failed");
    }
    return Py_BuildValue("{sOsdsdsdsNsNsNsd}", "disturbed", disturbed ? Py_True : Py_False,
                         "latency_seconds", 1e-9 * rates.latency_ns, "transfer", rates.transfer,
                         "memory", rates.memory, "device", dict_of_types(rates.device), "product",
                         dict_of_types(rates.product), "stack", dict_of_types(rates.stack),
                         "threads", rates.threads);
}

static PyMethodDef functions[] = {
    {"last_call", call_record_get, METH_NOARGS,
     "What this thread's last call of a gufunc did, or None."},
    {"cuda_devices", cuda_devices, METH_NOARGS, "([names of CUDA devices], why there is none)."},
    {"rates_file", rates_file, METH_NOARGS, "The file that keeps measured rates, or None."},
    {"measure_rates", measure_rates, METH_NOARGS,
     "Measure anew how fast the processor and the GPU are; returns bytes and operations per "
     "second."},
    {NULL, NULL, 0, NULL},
};

int device_functions_add(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
