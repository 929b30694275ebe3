/* The devices of this process: found, started when needed, and given up when they are lost. */
#ifndef NUMC_DEVICES_H
#define NUMC_DEVICES_H

#include "device/pipeline.h"
#include "device_library.h"

/* Devices have numbers: kind after kind, by their ordinals in its library. "auto" means number 0. */
enum { MOST_OF_A_KIND = 16, DEVICES = DEVICE_KINDS * MOST_OF_A_KIND, REASON_BYTES = 512 };

enum device_state {
    DEVICE_UNUSED,
    DEVICE_UP,
    DEVICE_UNAVAILABLE, /* there is none, or something that it needs is missing */
    DEVICE_GONE         /* lost, or left behind by a fork */
};

/* Whether devices compute with a type of NumPy's, a number, and what they call it. */
bool device_has_type(int type, struct element_type *element);

enum device_state device_state(int number);

/* What users call it: "cuda:1". */
const char *device_name(int number);

/* Starts it if it is unused; `again`: also if that failed before. Called without the GIL. It stays
 * unused if a Python exception came meanwhile, which is set then. */
enum device_state device_start(int number, bool again);

/* Starts it if it is unused, in a thread of its own, and returns what it is by now: unused until it is ready to
 * compute. Otherwise as device_start(), where no thread can be had as well; `why` says why it is not up. */
enum device_state device_start_in_background(int number, char *why, size_t size);

bool device_is_being_started(void);
/* Waits until none is. */
void devices_settle(void);

/* Of a device that is up. */
struct pipeline *device_pipeline(int number);
struct device *device_of(int number);
/* Why the device is not up. */
void device_reason(int number, char *reason, size_t size);

/* Marks the device as lost. True for the first caller only. */
bool device_give_up(int number, const char *reason);

/* Called once, at import; `memory` is the most that a call may take on a device, 0 for all. */
int devices_initialize(size_t memory);

/* That most. */
size_t devices_memory_limit(void);

/* How many there are of a kind, and why none; holds the GIL. -1 with an exception. */
int devices_describe(int kind, char text[MOST_OF_A_KIND][256], char *why, size_t size);

/* Whether there is such a device, without starting it; holds the GIL. Otherwise `why` says why not, or is
 * "" with an exception. */
bool device_is_usable(int number, char *why, size_t size);

/* For tests: a device in the place of number 0; NULL takes it away. */
void devices_replace(struct device *device, bool is_up);

#endif
