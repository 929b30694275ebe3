/* Where a product is computed sooner: on the processor or on the device. */
#ifndef NUMC_CHOICE_H
#define NUMC_CHOICE_H

#include "device.h"

enum { CHOICE_TYPES = 10, CHOICE_SIZES = 48, CHOICE_SHAPES = 4 };

/* Seconds per operation as measured, by type, number of operations and shape; 0: unknown. */
struct measured {
    _Atomic float cell[CHOICE_TYPES][CHOICE_SIZES][CHOICE_SHAPES];
    _Atomic float correction[CHOICE_TYPES]; /* measured / predicted, of all cells */
};

struct choice {
    double (*clock)(void); /* seconds; tests replace it */
    double startup;        /* seconds until the device is up */
    _Atomic double lost;   /* seconds that calls would have taken less, had it been up */
    struct measured processor, device;
};

void choice_initialize(struct choice *choice);

/* `device` is NULL before it is up. */
double choice_processor_seconds(const struct choice *choice, const struct matmul_task *task,
                                int threads);
double choice_device_seconds(const struct choice *choice, const struct matmul_task *task,
                             const struct device *device);

/* Whether to start the device for this call: the time lost without exceeds the start-up. */
bool choice_is_worth_starting(const struct choice *choice, const struct matmul_task *task,
                              int threads);

/* Whether to use the device, which is up. Where nobody knows and it is close, both get their turn. */
bool choice_prefers_device(const struct choice *choice, const struct matmul_task *task, int threads,
                           const struct device *device);

/* What a call took. Before the device is up, what it lost. */
void choice_note_processor(struct choice *choice, const struct matmul_task *task, double seconds,
                           int threads, bool device_is_up);
void choice_note_device(struct choice *choice, const struct matmul_task *task, double seconds,
                        const struct device *device);

/* Additions and multiplications. */
double matmul_operations(const struct matmul_task *task);

#endif
