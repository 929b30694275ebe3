/* Computes a product on a device: host memory in, host memory out. Uploads, products and downloads
 * overlap; several threads copy between the operands and a bounded ring of pinned memory. */
#ifndef NUMC_PIPELINE_H
#define NUMC_PIPELINE_H

#include "device.h"
#include "pipeline_report.h"

struct pipeline;
struct device_plan;
struct resources;

/* `memory` limits the bytes that a call may take on the device; 0: no limit. NULL without host
 * memory. */
struct pipeline *pipeline_new(struct device *device, size_t memory);
void pipeline_delete(struct pipeline *pipeline);
void pipeline_limit_memory(struct pipeline *pipeline, size_t memory);

/* Makes what large products take from those before them. On one thread: others compute meanwhile. */
void pipeline_prepare(struct pipeline *pipeline);

/* What other work of the device shares with products. */
struct device *pipeline_device(const struct pipeline *pipeline);
struct resources *pipeline_resources(const struct pipeline *pipeline);

/* Several threads may call it at once. Without STATUS_OK the result is undefined. */
enum status pipeline_matmul(struct pipeline *pipeline, const struct matmul_task *task,
                            struct pipeline_report *report);

/* Carries out a plan as it is. */
enum status pipeline_run(struct pipeline *pipeline, const struct device_plan *plan,
                         struct pipeline_report *report);

#endif
