/* NumPy makes the capsules, and writes into them that their memory is the processor's. Only the beginning of
 * what they hold is known here; https://dmlc.github.io/dlpack has all of it. */
#include "dlpack.h"

#include <stdint.h>

enum { DLPACK_CUDA = 2 };

struct dlpack_tensor {
    void *data;
    struct {
        int32_t type, ordinal;
    } device;
};

struct dlpack_versioned {
    uint32_t major, minor;
    void *manager;
    void (*delete)(struct dlpack_versioned *);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

/* In what a capsule of NumPy holds; NULL with an exception for what is none. */
static struct dlpack_tensor *tensor_of(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        struct dlpack_versioned *held = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        return &held->tensor;
    }
    return PyCapsule_GetPointer(capsule, "dltensor"); /* its first member */
}

static PyObject *dlpack_of_device(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct dlpack_tensor *tensor = tensor_of(capsule);
    if (tensor == NULL) {
        return NULL;
    }
    tensor->device.type = DLPACK_CUDA;
    tensor->device.ordinal = 0;
    return Py_NewRef(capsule);
}

static PyMethodDef functions[] = {
    {"dlpack_of_device", dlpack_of_device, METH_O,
     "The same capsule of DLPack, of the memory of the first GPU."},
    {NULL, NULL, 0, NULL},
};

int dlpack_add_functions(PyObject *module)
{
    return PyModule_AddFunctions(module, functions);
}
