/* matmul's inner loop: on a device where that is asked for or pays, else on the processor. */
#ifndef NUMC_OFFLOAD_H
#define NUMC_OFFLOAD_H

#include "numpy_api.h"

#include "device/pipeline.h"

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

/* Nothing uses the row from now on. */
void offload_forget(const struct offload *offload);

/* Computes a product by what offload_initialize() was given; false if it was not given its type. */
bool offload_on_processor(const struct matmul_task *task);

/* Of this thread's last product on a device. */
extern _Thread_local struct pipeline_times offload_times;

#endif
