/* A call on its way. Threads take pieces of work, whichever can be done: nobody waits for anybody while
 * there is something to do, and whatever is put into a queue follows work that is in a queue already. */
#ifndef NUMC_RUN_H
#define NUMC_RUN_H

#include "device.h"
#include "fresh.h"
#include "part.h"
#include "pipeline.h"
#include "plan.h"
#include "resources.h"

#include <pthread.h>

struct run {
    struct device *device;
    struct resources *resources;
    const struct plan *plan;
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
    _Atomic int coming;          /* pieces of the result that threads wait for */

    pthread_mutex_t lock; /* of all below */
    pthread_cond_t changed;
    enum status status;
    int threads;
    ptrdiff_t up_tile, up_element; /* the next piece to be uploaded */
    enum operand up_operand;
    ptrdiff_t *up_left[OPERANDS]; /* elements of each part that are not in the queue */
    ptrdiff_t multiplied;         /* tiles that are in a queue, */
    bool multiplying;             /* and one is being put there */
    ptrdiff_t down_tile, down_element;
    ptrdiff_t *down_left; /* elements of each tile that are not in the queue */
    int sleeping;         /* threads that wait for a change */
};

enum work_kind { WORK_NONE, WORK_UPLOAD, WORK_DOWNLOAD, WORK_LATER, WORK_OVER };

struct work {
    enum work_kind kind;
    bool direct;
    ptrdiff_t tile;
    enum operand operand;
    struct part part;
    ptrdiff_t first, end;
};

/* schedule.c */

/* True if the status is good; otherwise the call ends with it. Under the lock. */
bool run_holds(struct run *run, enum status status);

double run_seconds(const struct run *run);

ptrdiff_t run_result_depth(const struct run *run);

/* For a thread that waits for that many pieces of the result; WORK_LATER only if there are any. */
struct work run_take_work(struct run *run, int downloads);

/* Puts all products into queues whose operands are there, in order. Called with the lock, which is
 * not held meanwhile. */
void run_multiply(struct run *run);

/* pieces.c: what every thread does, from the first piece to the last. */
void run_share(void *context, int index);

#endif
