/* matmul's inner loop: on a device where that is asked for or pays, else on the processor. */
#ifndef NUMC_OFFLOAD_H
#define NUMC_OFFLOAD_H

#include "numpy_api.h"

#include "device/device.h"

struct offload {
    const char *op;
    struct element_type type;
    PyUFuncGenericFunction processor; /* computes the call without a device */
    void *processor_data;
};

/* Prepares `offload` for a row of matmul's table. False if no device computes such a type. */
bool offload_initialize(struct offload *offload, const char types[],
                        PyUFuncGenericFunction processor, void *processor_data);

/* The function to register, with a struct offload as its data. */
void offload_run(char **args, const npy_intp *dimensions, const npy_intp *steps, void *data);

/* The Python functions behind set_config, info, last_call, and those for tests. */
int offload_add_functions(PyObject *module);

#endif
