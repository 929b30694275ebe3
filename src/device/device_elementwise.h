/* Computes element-wise calls on a device: memory of the host in, memory of the host out. */
#ifndef NUMC_DEVICE_ELEMENTWISE_H
#define NUMC_DEVICE_ELEMENTWISE_H

#include "device.h"
#include "kernels/extent.h"

struct pipeline;
struct policy;

struct elementwise_task {
    const struct policy *policy;  /* for threads that copy */
    struct elementwise_work work; /* at addresses of the host */
    enum host_memory memory[ELEMENTWISE_OPERANDS];
    bool moves[ELEMENTWISE_OPERANDS]; /* managed memory that is not on the device yet */
};

struct elementwise_report {
    int threads;     /* that copied */
    unsigned raised; /* RAISED_... */
    bool began;      /* elements of the output may have been computed */
};

struct extent elementwise_extent(const struct elementwise_work *work, int operand);

/* Several threads may call it at once. Without STATUS_OK the result is undefined. */
enum status device_elementwise(struct pipeline *pipeline, const struct elementwise_task *task,
                               struct elementwise_report *report);

#endif
