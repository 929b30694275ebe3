/* What calls need of a device and give back for the next: pinned memory, queues, events. */
#ifndef NUMC_RESOURCES_H
#define NUMC_RESOURCES_H

#include "device.h"
#include "plan.h"

enum {
    /* Small slots stay in the processor's cache, between the copy of the processor and that of the
     * device. Half of a thread's may wait for products while it uploads with the others. */
    LANE_SLOTS = 8,
    SLOT_BYTES = 1 << 20,
};

/* A thread's share of the pinned ring. */
struct lane {
    struct lane *next;
    char *slot[LANE_SLOTS];
    struct event *event[LANE_SLOTS];
};

/* What a call needs. */
struct session {
    struct session *next;
    struct queue *upload, *download, *compute[PLAN_QUEUES];
    struct event *uploaded;
    struct event *multiplied[PLAN_MOST_DEPTH], *downloaded[PLAN_MOST_DEPTH];
};

struct resources;

/* At most `most_lanes` lanes are made. NULL without memory. */
struct resources *resources_new(struct device *device, int most_lanes);
/* Nobody may use any of it any more. */
void resources_delete(struct resources *resources);

/* With `wait`, waits for a lane if all are in use; otherwise *lane is NULL then. */
enum status lane_take(struct resources *resources, bool wait, struct lane **lane);
void lane_give_back(struct resources *resources, struct lane *lane);

enum status session_take(struct resources *resources, struct session **session);
void session_give_back(struct resources *resources, struct session *session);

#endif
