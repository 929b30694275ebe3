/* The devices of this process: found, started when needed, and given up when they are lost. */
#ifndef NUMC_DEVICES_H
#define NUMC_DEVICES_H

#include "device/choice.h"
#include "device/pipeline.h"

enum { MOST_DEVICES = 16 };

enum device_state {
    DEVICE_UNUSED,
    DEVICE_UP,
    DEVICE_UNAVAILABLE, /* there is none, or something that it needs is missing */
    DEVICE_GONE         /* lost, or left behind by a fork */
};

enum device_state device_state(int ordinal);

/* Starts it if it is unused. Called without the GIL. */
enum device_state device_start(int ordinal);

/* Of a device that is up; of any, why it is not. The text stays. */
struct pipeline *device_pipeline(int ordinal);
struct device *device_of(int ordinal);
const char *device_reason(int ordinal);

/* Nobody uses it from now on. True for the first who says so. */
bool device_give_up(int ordinal, const char *reason);

/* What is shared by all devices. */
extern struct choice device_choice;

/* Of the thread's last call on any device, for benchmarks. */
extern _Thread_local struct pipeline_times device_times;

/* Called once, at import; `memory` is the most that a call may take on a device, 0 for all. */
int devices_initialize(size_t memory);

/* How many there are, and why none; holds the GIL. The names are written to `name`. */
int devices_list(char name[MOST_DEVICES][256], char *why, size_t size);

/* Whether a device could be used, as far as is known before it is started; otherwise `why` says why
 * not. Holds the GIL. */
bool device_is_usable(int ordinal, char *why, size_t size);

/* For tests: a device in the place of number 0; NULL takes it away. It is up if no clock is
 * set; otherwise it waits to be started. */
void devices_replace(struct device *device, double clock_step);

/* For tests: time advances by so many seconds at each look; 0: the real clock. */
void devices_set_clock(double step);

#endif
