/* A product on its way: which chunk is to be copied next, and which tiles can be multiplied. Threads
 * take whichever can be done; what enters a stream follows only what is in a stream already, so that
 * no wait can be for ever. */
#ifndef NUMC_SCHEDULE_H
#define NUMC_SCHEDULE_H

#include "device.h"
#include "device_plan.h"
#include "fresh.h"
#include "pipeline_report.h"
#include "resources.h"

#include <pthread.h>

/* How a thread uses one of its slots, or what it is to do next. */
enum transfer_kind {
    TRANSFER_NONE,
    TRANSFER_UPLOAD,
    TRANSFER_DOWNLOAD,
    TRANSFER_LATER, /* nothing can be done now */
    TRANSFER_OVER
};

/* Elements [first, end) of a panel. */
struct transfer {
    enum transfer_kind kind;
    bool direct; /* between the device and pinned memory of the user's: no slot is needed */
    ptrdiff_t tile;
    enum operand operand;
    struct panel panel;
    ptrdiff_t first, end;
};

struct schedule {
    struct device *device;
    struct resources *resources;
    const struct device_plan *plan;
    struct session *session;
    device_address memory;
    size_t size; /* of an element */
    ptrdiff_t chunk;
    bool pinned[OPERANDS];
    bool reuses_slots; /* of the ring, for the operands: they stay in the processors' caches */
    bool scans;        /* the result for infinities and NaNs */
    _Atomic bool nonfinite;
    struct fresh fresh;
    int64_t started;             /* by clock_ns() */
    struct pipeline_times times; /* each is written by whoever gets there last */
    _Atomic unsigned changes;    /* counts them, for those who wait without the lock */
    _Atomic int coming;          /* chunks of the result that threads wait for */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    enum status status;
    int threads;
    ptrdiff_t up_tile, up_element; /* the next chunk to be uploaded */
    enum operand up_operand;
    ptrdiff_t *up_left[OPERANDS]; /* elements of each panel that are in no stream yet */
    ptrdiff_t multiplied;         /* tiles of which the product is in a stream, */
    bool multiplying;             /* and one is being put there */
    ptrdiff_t down_tile, down_element;
    ptrdiff_t *down_left; /* elements of each tile that are in no stream yet */
    int sleeping;         /* threads that wait for a change */
};

/* True if the status is good; otherwise the call ends with it. Under the lock. */
bool schedule_holds(struct schedule *schedule, enum status status);

/* Since the product began. */
double schedule_seconds(const struct schedule *schedule);

ptrdiff_t schedule_result_depth(const struct schedule *schedule);

/* For a thread that waits for that many chunks of the result; TRANSFER_LATER only if there are any. */
struct transfer schedule_take(struct schedule *schedule, int downloads);

/* Puts all products into streams whose operands are there, in order. Called with the lock, which is
 * not held meanwhile. */
void schedule_multiply(struct schedule *schedule);

#endif
