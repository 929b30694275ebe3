/* Per thread: what was asked for, and what the last call of a generalized ufunc did. */
#ifndef NUMC_CALL_RECORD_H
#define NUMC_CALL_RECORD_H

#include "device/device.h"

enum { OFFLOAD_UNSET = 0, OFFLOAD_AUTO = 1, OFFLOAD_CPU = 2, OFFLOAD_CUDA = 3 /* + its number */ };

/* 0 where nothing was set. */
struct offload_options {
    int device, precision, kernel;
};

/* Those in effect for the calling thread: nothing is 0. */
struct offload_options offload_options(void);

/* A call that was not worth a look at the clock; the texts are constants. */
void call_record_short(const char *op, const char *reason);

void call_record_set(const char *op, const char *device, const char *reason, double seconds,
                     int threads);

#endif
