/* Where a product is computed sooner: on the processor or on the device. */
#ifndef NUMC_CHOICE_H
#define NUMC_CHOICE_H

#include "device.h"
#include "pipeline.h"

enum { CHOICE_TYPES = 10, CHOICE_OPERATIONS = 48, CHOICE_BYTES = 32 };

/* What was measured as a multiple of what was predicted; 0: unknown. */
struct measured {
    /* By type, number of operations and number of bytes, and what that is worth. */
    _Atomic float cell[CHOICE_TYPES][CHOICE_OPERATIONS][CHOICE_BYTES];
    _Atomic unsigned char worth[CHOICE_TYPES][CHOICE_OPERATIONS][CHOICE_BYTES];
    _Atomic float correction[CHOICE_TYPES]; /* of cells that are unknown */
    _Atomic double used;                    /* when a call ended last */
};

struct choice {
    double (*clock)(void); /* seconds; tests replace it */
    _Atomic double lost;   /* seconds that calls would have taken less, had the device been up */
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

/* Whether to use the device, which is up. Where nobody knows and it is close, both get their turns. */
bool choice_prefers_device(const struct choice *choice, const struct matmul_task *task, int threads,
                           const struct device *device);

/* What a call took. Before the device is up, what it lost. */
void choice_note_processor(struct choice *choice, const struct matmul_task *task, double seconds,
                           int threads, bool device_is_up);
void choice_note_device(struct choice *choice, const struct matmul_task *task, double seconds,
                        const struct device *device);

/* Measures the device's latency and transfer rate; the first products, slow ones, are done then. */
void choice_calibrate(struct pipeline *pipeline, struct device *device);

double choice_clock(void);

#endif
