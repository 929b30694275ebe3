/* Threads that wait to be called. */
#ifndef NUMC_WORKERS_H
#define NUMC_WORKERS_H

#include <stdatomic.h>
#include <stdint.h>

enum { MOST_WORKERS = 1023 };

/* What workers are called for: task(context, index). The rest is for workers.c. */
struct call {
    void (*task)(void *context, int index);
    void *context;
    int cpu;                     /* on which the caller was */
    int count;                   /* who is called: */
    uint16_t team[MOST_WORKERS]; /* numbers of workers, by index */
    _Atomic int asleep, woken;   /* and of those some were asleep: */
    uint16_t sleeper[MOST_WORKERS];
};

/* Calls up to `count` workers, with indices from 1 on, and does not wait for them: the system may let
 * them come at once, late or never. */
void workers_call(struct call *call, int count);

/* Returns when all who were called have come. */
void workers_await(const struct call *call);

/* Ends a call: who has not come yet will not come any more, and who has is waited for. Returns how many
 * came. */
int workers_dismiss(struct call *call);

#endif
