/* What calls need of a device and give back for the next: pinned memory, streams, events. */
#ifndef NUMC_RESOURCES_H
#define NUMC_RESOURCES_H

#include "device.h"
#include "device_plan.h"

enum {
    /* Small slots stay in the processor's cache, between the copy of the processor and that of the
     * device. Half of a thread's may wait for products while it uploads with the others. */
    RING_SLOTS = 8,
    SLOT_BYTES = 1 << 20,
};

/* A thread's slots of the pinned ring, and for each an event: when the device is done with it. */
struct ring {
    struct ring *next;
    char *slot[RING_SLOTS];
    struct event *event[RING_SLOTS];
};

/* What a call needs. */
struct session {
    struct session *next;
    struct stream *upload, *download, *compute[PLAN_STREAMS];
    struct event *uploaded;
    struct event *multiplied[PLAN_MOST_DEPTH], *downloaded[PLAN_MOST_DEPTH];
};

struct resources;

/* At most `most_rings` rings are made. NULL without memory. */
struct resources *resources_new(struct device *device, int most_rings);
/* Nobody may use any of it any more. */
void resources_delete(struct resources *resources);

/* With `wait`, waits for a ring if all are in use; otherwise *ring is NULL then. */
enum status ring_take(struct resources *resources, bool wait, struct ring **ring);
void ring_give_back(struct resources *resources, struct ring *ring);

enum status session_take(struct resources *resources, struct session **session);
void session_give_back(struct resources *resources, struct session *session);

#endif
