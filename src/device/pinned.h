/* Products of matrices in pinned memory: the device copies them itself, so one thread tells it everything at once. */
#ifndef NUMC_PINNED_H
#define NUMC_PINNED_H

#include "pipeline_report.h"
#include "resources.h"

/* STATUS_UNSUPPORTED if not all operands are pinned memory by rows, if more than `budget` bytes of the device were
 * needed, or if nothing is gained. */
enum status pinned_matmul(struct device *device, struct resources *resources,
                          const struct matmul_task *task, size_t budget,
                          struct pipeline_report *report);

#endif
