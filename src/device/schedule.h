/* The state of a product that is being computed: which chunk is copied next, which tiles can be
 * multiplied. Threads take any work that is ready. An operation waits only for events already
 * recorded in a stream, so that there is no deadlock. */
#ifndef NUMC_SCHEDULE_H
#define NUMC_SCHEDULE_H

#include "device.h"
#include "device_plan.h"
#include "fresh.h"
#include "pipeline_report.h"
#include "resources.h"

#include <pthread.h>

/* What a slot is in use for, or what a thread does next. */
enum transfer_kind {
    TRANSFER_NONE,
    TRANSFER_UPLOAD,
    TRANSFER_DOWNLOAD,
    TRANSFER_LATER, /* nothing is ready */
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
    bool reuses_slots; /* for later chunks: they are worth keeping in the caches of the processor */
    bool has_cpus;     /* one for each thread */
    /* Infinities and NaNs are looked for in the result: by threads that store it, or, where none does, on the
     * device. */
    bool scans;
    _Atomic bool nonfinite;
    struct fresh fresh;
    int64_t started;             /* by clock_ns() */
    struct pipeline_times times; /* each written by the last thread of that phase */
    _Atomic unsigned changes;    /* counts changes, for threads that spin without the lock */
    _Atomic int coming;          /* chunks of the result that are being downloaded */

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

/* True for STATUS_OK; otherwise notes the failure, which ends the call. Under the lock. */
bool schedule_holds(struct schedule *schedule, enum status status);

/* Since the product began. */
double schedule_seconds(const struct schedule *schedule);

ptrdiff_t schedule_result_depth(const struct schedule *schedule);

/* The next transfer for a thread with `downloads` pending ones. TRANSFER_LATER only if there are
 * any: else it waits. */
struct transfer schedule_take(struct schedule *schedule, int downloads);

/* Whether the device copies this panel of the operand between its memory and the user's. */
bool schedule_is_direct(const struct schedule *schedule, enum operand operand,
                        const struct panel *panel);

/* Puts products into streams, in order, up to the first whose operands are not uploaded. Called
 * with the lock, which is released meanwhile. */
void schedule_multiply(struct schedule *schedule);

#endif
