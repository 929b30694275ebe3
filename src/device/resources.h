/* What calls need of a device and give back for the next: pinned memory, streams, events. */
#ifndef NUMC_RESOURCES_H
#define NUMC_RESOURCES_H

#include "device.h"
#include "device_plan.h"

enum {
    /* Slots are small enough to stay in the CPU cache from the thread's copy to the device's. Half
     * of a ring may wait for downloads while the thread uploads through the other half. */
    RING_SLOTS = 8,
    SLOT_BYTES = 1 << 20,
};

/* A thread's slots of the pinned ring, and for each an event: when the device is done with it. */
struct ring {
    struct ring *next;
    char *slot[RING_SLOTS];
    struct event *event[RING_SLOTS];
};

/* The streams and events of one call. */
struct session {
    struct session *next;
    struct stream *upload, *download, *compute[PLAN_STREAMS];
    struct event *uploaded;
    struct event *multiplied[PLAN_MOST_DEPTH], *downloaded[PLAN_MOST_DEPTH];
    uint32_t *raised; /* pinned: words for the floating-point exceptions of element-wise work; */
    bool *nonfinite;  /* after them, whether the device found infinities or NaNs in a product */
};

struct resources;

/* Waits for all that is in the stream, after its failure, too: the first call may then return that without waiting. */
static inline enum status stream_settle(struct device *device, struct stream *stream)
{
    const enum status status = device->drain(device, stream);
    if (status != STATUS_OK) {
        device->drain(device, stream);
    }
    return status;
}

/* At most `most_rings` rings are made. NULL without memory. */
struct resources *resources_new(struct device *device, int most_rings);
/* None may be in use. */
void resources_delete(struct resources *resources);

/* If all rings are in use: waits for one with `wait`; else *ring is NULL. */
enum status ring_take(struct resources *resources, bool wait, struct ring **ring);
void ring_give_back(struct resources *resources, struct ring *ring);
/* Makes rings until there are so many, or one cannot be had: calls that find one need not wait until memory
 * is pinned. */
void rings_prepare(struct resources *resources, int count);

enum status session_take(struct resources *resources, struct session **session);
void session_give_back(struct resources *resources, struct session *session);

#endif
