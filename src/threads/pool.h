/* The pool: worker threads that spin, then sleep, until a region calls them. */
#ifndef NUMC_POOL_H
#define NUMC_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    MOST_WORKERS = 1023,
    WORKER_SPIN_US = 5000, /* docs/measurements/threads.md */
};

/* Workers that are called together, for task(context, index). The rest is for pool.c. */
struct team {
    void (*task)(void *context, int index);
    void *context;
    int cpu; /* of the caller */
    int count;
    uint16_t member[MOST_WORKERS]; /* numbers of workers, in the order of their indices */
    _Atomic int asleep, woken;     /* how many were asleep, and were woken so far */
    uint16_t sleeper[MOST_WORKERS];
};

/* Calls up to `count` workers, with indices from 1 on, without waiting for them: they may come at
 * once, late or never. */
void pool_call(struct team *team, int count);

/* Returns when all that were called have come. */
void pool_await(const struct team *team);

/* Ends a call: who has not come yet will not come any more, and who has is waited for. Returns how
 * many came. */
int pool_dismiss(struct team *team);

/* Whether a call of `count` workers would have to wake or start some. An estimate, from one load. */
bool pool_is_asleep(int count);

/* How long a worker spins after a call of its own before it sleeps; at first WORKER_SPIN_US. */
void pool_set_spin_us(int us);

/* The calling worker stays when it is surplus, because of what would be destroyed with it. */
void pool_keep_worker(void);

/* In a forked child, whose workers stayed in the parent: starts anew. */
void pool_reset(void);

#endif
