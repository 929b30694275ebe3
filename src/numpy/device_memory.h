/* Pinned and managed memory for arrays, of the first device. */
#ifndef NUMC_DEVICE_MEMORY_H
#define NUMC_DEVICE_MEMORY_H

#include "numpy_api.h"

#include "device/device.h"

#include <stdbool.h>

/* Whether there can be such memory, for which the device is started; holds the GIL. Otherwise `why` says what
 * is missing, or is "" with an exception. */
bool device_memory_start(enum host_memory kind, char *why, size_t size);

/* Somebody asked for such memory: from then on smaller arrays matter, too, and where operands lie. */
extern _Atomic bool device_memory_in_use;

/* Whether there is such memory for arrays to come. */
bool device_memory_is_there(void);

/* Why it gave no memory since this was asked last; "": it was not asked for any. */
void device_memory_problem(char *why, size_t size);

/* From now on nothing is asked of the driver, which may be unloaded sooner than the last array goes. */
void device_memory_end(void);

/* For tests: another device is about to take the place of the first. What arrays still have of it is left. */
void device_memory_abandon(void);

/* Moves the pages of managed memory, and waits for that; called without the GIL. Without STATUS_OK `why` has the
 * reason. */
enum status device_memory_move(const void *data, size_t bytes, bool to_device, char *why,
                               size_t size);

/* Waits until nobody in this process computes on the device; called without the GIL. */
void device_memory_finish(void);

/* Where memory lives; the driver is asked only if the device is up. */
enum host_memory device_memory_of(const void *data);

#endif
