/* A device for tests: host memory behind addresses that fault when the host touches them, work that
 * is done as late as a real device might do it, and calls that fail when they are told to. */
#ifndef NUMC_FAKE_DEVICE_H
#define NUMC_FAKE_DEVICE_H

#include "device/device.h"

/* NULL without memory. */
struct device *fake_new(size_t memory);
void fake_delete(struct device *fake);

/* Lets the call number `call` from now on fail with `status`; 0: none. After STATUS_LOST all fail. */
void fake_fail(struct device *fake, long call, enum status status);

/* Fallible calls so far; what was made and not released. */
long fake_calls(const struct device *fake);
long fake_alive(const struct device *fake);

/* Memory of others that is pinned from now on; NULL: none. */
void fake_pin(struct device *fake, const void *data, size_t bytes);

/* The host touches managed memory: it leaves the device. */
void fake_touch(struct device *fake, const void *data);

/* fake_gemm.c: computes with pointers that the host may touch. */
void fake_multiply(const struct gemm *gemm, const char *a, const char *b, char *c);
bool fake_is_finite(const struct gemm *gemm, const char *c);
void fake_mirror(const struct gemm *gemm, char *c);

/* fake_elementwise.c: likewise. */
void fake_compute(const struct elementwise_work *work, char *const data[ELEMENTWISE_OPERANDS],
                  uint32_t raised[RAISED_WORDS]);

#endif
