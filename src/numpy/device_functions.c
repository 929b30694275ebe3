/* The functions of the module behind info(), last_call() and measure_rates(). */
#include "device_functions.h"

#include "call_record.h"
#include "devices.h"
#include "measured_rates.h"
#include "offload.h"
#include "options.h"

/* `list` with `item`, a new reference, at its end; NULL with an exception, then both are released. */
static PyObject *appended(PyObject *list, PyObject *item)
{
    if (item == NULL || PyList_Append(list, item) < 0) {
        Py_CLEAR(list);
    }
    Py_XDECREF(item);
    return list;
}

static PyObject *kinds_of_devices(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *kinds = PyList_New(0);
    for (int kind = 0; kinds != NULL && kind < DEVICE_KINDS; kind++) {
        kinds = appended(kinds, PyUnicode_FromString(device_kinds[kind]));
    }
    return kinds != NULL ? Py_BuildValue("Ni", kinds, MOST_OF_A_KIND) : NULL;
}

static PyObject *devices_of_kind(int kind)
{
    char text[MOST_OF_A_KIND][256], why[REASON_BYTES] = "";
    const int count = devices_describe(kind, text, why, sizeof why);
    PyObject *texts = count >= 0 ? PyList_New(0) : NULL;
    for (int i = 0; texts != NULL && i < count; i++) {
        texts = appended(texts, PyUnicode_FromString(text[i]));
    }
    return texts != NULL ? Py_BuildValue("sNs", device_kinds[kind], texts, why) : NULL;
}

static PyObject *devices(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    PyObject *found = PyList_New(0);
    for (int kind = 0; found != NULL && kind < DEVICE_KINDS; kind++) {
        found = appended(found, devices_of_kind(kind));
    }
    return found;
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
    {"kinds_of_devices", kinds_of_devices, METH_NOARGS,
     "([kinds], how many devices of one kind may be named)."},
    {"devices", devices, METH_NOARGS,
     "[(kind, [what its devices are], why there is none), ...]; loads their libraries."},
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
