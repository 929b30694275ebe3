/* Computes a product on a device: host memory in, host memory out. Uploads, products and downloads
 * overlap; several threads copy between the operands and a bounded ring of pinned memory. */
#ifndef NUMC_PIPELINE_H
#define NUMC_PIPELINE_H

#include "device.h"

struct pipeline;
struct plan;

/* `memory` is the most that a call may take on the device, 0 for all that it has. NULL without host
 * memory. Keeps what it makes on the device until it is deleted. */
struct pipeline *pipeline_new(struct device *device, size_t memory);
void pipeline_delete(struct pipeline *pipeline);
void pipeline_limit_memory(struct pipeline *pipeline, size_t memory);

/* Seconds since the start of the call when the last of each was put into its queue. */
struct pipeline_times {
    double last_upload, last_product, last_download, end;
};

struct pipeline_report {
    int threads;    /* that copied */
    bool nonfinite; /* the result has infinities or NaNs */
    struct pipeline_times times;
};

/* Several threads may call it at once. Without STATUS_OK the result is undefined. */
enum status pipeline_matmul(struct pipeline *pipeline, const struct matmul_task *task,
                            struct pipeline_report *report);

/* Carries out a plan as it is. */
enum status pipeline_run(struct pipeline *pipeline, const struct plan *plan,
                         struct pipeline_report *report);

/* The floating-point exceptions (FE_OVERFLOW, FE_INVALID) that the infinities and NaNs of a result
 * tell of: those that the operands do not explain. */
int nonfinite_exceptions(const struct matmul_task *task);

/* Whether a product is that of matrices and their own transposes; and makes it symmetric. */
bool matmul_is_symmetric(const struct matmul_task *task);
void matmul_mirror(const struct matmul_task *task);

#endif
