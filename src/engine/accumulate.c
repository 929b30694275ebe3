/* Running sums and products of integers: twice over the data where threads share the work. */
#include "accumulate.h"
#include "threads/limit.h"
#include "threads/region.h"

#include "kernels/kernels.h"

#include <stdatomic.h>

enum {
    BREAK_EVEN_ELEMENTS = 40000, /* a reduction is worth threads from 20 us on, half a ns each */
    PARTS_OF_THREAD = 4,         /* nobody waits long for one that the system holds up */
    MOST_PARTS = 64,
};

struct running {
    const struct accumulate *accumulate;
    ptrdiff_t part;
    int parts;
    _Atomic int next;
    _Alignas(LANES_BYTES) uint64_t carry[MOST_PARTS]; /* of each part, what precedes it */
};

static ptrdiff_t length(const struct running *running, int part)
{
    const ptrdiff_t left = running->accumulate->n - part * running->part;
    return left < running->part ? left : running->part;
}

/* The next part's carry is at first what this part alone comes to. */
static void reduce_parts(void *context, int index)
{
    (void)index;
    struct running *running = context;
    const struct accumulate *accumulate = running->accumulate;
    int part;
    while ((part = atomic_fetch_add(&running->next, 1)) < running->parts - 1) {
        accumulate->kernel->reduce_each(accumulate->in + part * running->part * accumulate->in_step,
                                        accumulate->in_step, length(running, part), 0, 1,
                                        &running->carry[part + 1]);
    }
}

static void accumulate_parts(void *context, int index)
{
    (void)index;
    struct running *running = context;
    const struct accumulate *accumulate = running->accumulate;
    int part;
    while ((part = atomic_fetch_add(&running->next, 1)) < running->parts) {
        const ptrdiff_t first = part * running->part;
        accumulate->kernel->accumulate(
            running->carry[part], accumulate->in + first * accumulate->in_step, accumulate->in_step,
            accumulate->out + first * accumulate->out_step, accumulate->out_step,
            length(running, part));
    }
}

void accumulate_run(const struct accumulate *accumulate)
{
    const ptrdiff_t forced = accumulate->policy->threshold;
    const bool pays = accumulate->n >= (forced != 0 ? forced : BREAK_EVEN_ELEMENTS);
    const int threads = pays && region_available() ? threads_limit().threads : 1;
    int parts = threads == 1 ? 1 : threads * PARTS_OF_THREAD;
    parts = parts < MOST_PARTS ? parts : MOST_PARTS;
    struct running running = {
        .accumulate = accumulate,
        .part = (accumulate->n + parts - 1) / parts,
        .parts = parts,
    };
    running.parts = (int)((accumulate->n + running.part - 1) / running.part);
    const struct reduction *kernel = accumulate->kernel;
    kernel->reduce_each(accumulate->before, 0, 1, 0, 1, &running.carry[0]);
    if (running.parts > 1) {
        region_run(accumulate->policy, threads, reduce_parts, &running);
        for (int part = 1; part < running.parts; part++) {
            kernel->combine(&running.carry[part], &running.carry[part - 1], sizeof(uint64_t));
        }
    }
    running.next = 0;
    region_run(accumulate->policy, threads, accumulate_parts, &running);
}
