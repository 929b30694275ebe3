/* Placement: whether the processor or the device computes a product sooner. A function of shape,
 * type and measured rates only, so that equal calls give equal bits. */
#ifndef NUMC_PLACEMENT_H
#define NUMC_PLACEMENT_H

#include "rates.h"

/* Additions and multiplications. */
double placement_operations(const struct matmul_task *task);

double placement_processor_seconds(const struct rates *rates, const struct matmul_task *task,
                                   int threads);
double placement_upload_seconds(const struct rates *rates, const struct matmul_task *task);
double placement_device_seconds(const struct rates *rates, const struct matmul_task *task);

/* For a device that is up. `is_resident`: the operands are managed memory, and nothing has to be copied. */
bool placement_is_device(const struct rates *rates, const struct matmul_task *task, int threads,
                         bool is_resident);

/* Seconds that calls took longer because no device was up. */
struct time_lost {
    _Atomic double seconds;
};

/* Whether to start the device for this call: the time lost without it exceeds the start. It is the
 * one thing that depends on earlier calls. */
bool placement_pays_start(const struct time_lost *lost, const struct matmul_task *task,
                          int threads);

/* What a call took on the processor before a device was up. */
void placement_note_seconds(struct time_lost *lost, const struct matmul_task *task, double seconds);

#endif
