/* matmul's inner loop: on a device where that is asked for or pays, else on the processor. */
#ifndef NUMC_OFFLOAD_H
#define NUMC_OFFLOAD_H

#include "numpy_api.h"

#include "device/pipeline.h"

/* Computes a product without a device. */
typedef void offload_processor(const void *data, const struct product *product);

struct offload {
    const char *op;
    struct element_type type;
    offload_processor *processor;
    const void *processor_data;
};

/* Prepares `offload` for a row of matmul's table. False if no device computes such a type. */
bool offload_initialize(struct offload *offload, const char types[], offload_processor *processor,
                        const void *processor_data);

void offload_run(const struct offload *offload, const struct product *product);

/* Removes the row: its loop is about to be freed. */
void offload_forget(const struct offload *offload);

/* Computes a product by what offload_initialize() was given; false if it was not given its type. */
bool offload_on_processor(const struct matmul_task *task);

/* Of this thread's last product on a device. */
extern _Thread_local struct pipeline_times offload_times;

#endif
