/* Products of matrices in managed memory, where they lie: nothing is copied. */
#ifndef NUMC_RESIDENT_H
#define NUMC_RESIDENT_H

#include "pipeline_report.h"
#include "resources.h"

/* Whether all operands are managed memory without gaps. */
bool resident_is_possible(struct device *device, const struct matmul_task *task);

/* STATUS_UNSUPPORTED if it is not. */
enum status resident_matmul(struct device *device, struct resources *resources,
                            const struct matmul_task *task, struct pipeline_report *report);

#endif
