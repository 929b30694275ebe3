/* One call of an inner loop: whether to use threads, in what order, and which part goes where. */
#include "elementwise.h"
#include "elementwise_cutoffs.h"
#include "memory/caches.h"
#include "overlap.h"
#include "threads/clock.h"
#include "threads/limit.h"
#include "threads/region.h"
#include "threads/shares.h"

enum {
    /* Parts begin at multiples of this many elements: there NumPy's SIMD loops compute the same
     * bits as in one go, and threads seldom write to the same cache line. */
    BLOCK = 64,
    /* Below either of these the order guard and the bookkeeping cost more than they gain. */
    TINY_ELEMENTS = 1024,
    TINY_OUTPUT_BYTES = 16384,
    /* What the first elements of a call cost is measured in the first calls, which meet page faults
     * and cold caches, and then now and again: the data may have become dearer. */
    TIMED_ELEMENTS = 4096,
    TIMED_FIRST_CALLS = 8,
    TIMED_EVERY = 64,
    /* A call is worth threads when it takes longer than this on one: a region costs 1 to 5 us
     * while the workers still spin and some tens of us once they sleep. */
    BREAK_EVEN_NS = 20000,
    /* The part of that for which it pays to take a chunk. */
    LEAST_CHUNK = 16,
};

void elementwise_initialize(struct elementwise *loop)
{
    const ptrdiff_t of_bytes = TINY_OUTPUT_BYTES / (ptrdiff_t)loop->item_size[loop->operands - 1];
    loop->tiny = of_bytes > TINY_ELEMENTS ? of_bytes : TINY_ELEMENTS;
    atomic_init(&loop->serial_below, loop->tiny);
    atomic_init(&loop->calls, 0);
}

bool elementwise_streams(const struct elementwise *loop, ptrdiff_t n)
{
    size_t stored = 0;
    for (int out = loop->inputs; out < loop->operands; out++) {
        stored += loop->item_size[out] * (size_t)n;
    }
    return stored > cache_last_level() / 16 * STREAMING_SIXTEENTHS_OF_CACHE;
}

static enum order order_of(const struct elementwise *loop, char *const data[],
                           const ptrdiff_t step[], ptrdiff_t n)
{
    if (!elements_commute(loop->inputs, loop->operands, data, step, loop->item_size, n)) {
        return IN_ORDER;
    }
    for (int out = loop->inputs; out < loop->operands; out++) {
        for (int in = 0; in < loop->inputs; in++) {
            if (data[in] == data[out]) {
                return ANY_ORDER; /* in place: the output's lines are in the cache already */
            }
        }
    }
    return elementwise_streams(loop, n) ? ANY_ORDER_STREAMING : ANY_ORDER;
}

static void run_part(struct elementwise *loop, void *call, enum order order, char *const data[],
                     const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n)
{
    char *part[MOST_OPERANDS];
    for (int i = 0; i < loop->operands; i++) {
        part[i] = data[i] + first * step[i];
    }
    loop->run(loop, call, order, part, step, first, n);
}

bool elementwise_is_timed(const struct elementwise *loop)
{
    if (loop->policy->threshold != 0) {
        return false;
    }
    const unsigned calls = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    return calls < TIMED_FIRST_CALLS || calls % TIMED_EVERY == 0;
}

/* Counts may get lost between threads, which does no harm. */
void elementwise_count_call(struct elementwise *loop)
{
    const unsigned calls = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    atomic_store_explicit(&loop->calls, calls + 1, memory_order_relaxed);
}

void elementwise_learn(struct elementwise *loop, ptrdiff_t elements, int64_t ns)
{
    ptrdiff_t serial_below = (ptrdiff_t)BREAK_EVEN_NS * elements / (ns > 0 ? (ptrdiff_t)ns : 1);
    if (atomic_load_explicit(&loop->calls, memory_order_relaxed) > 1) {
        const ptrdiff_t so_far = atomic_load_explicit(&loop->serial_below, memory_order_relaxed);
        serial_below = (so_far + serial_below) / 2;
    }
    atomic_store_explicit(&loop->serial_below, serial_below, memory_order_relaxed);
}

/* Computes the first elements against the clock. Returns how many. */
static ptrdiff_t run_timed(struct elementwise *loop, void *call, char *const data[],
                           const ptrdiff_t step[], ptrdiff_t n)
{
    const ptrdiff_t timed = n < TIMED_ELEMENTS ? n : TIMED_ELEMENTS;
    const int64_t start = clock_ns();
    run_part(loop, call, ANY_ORDER, data, step, 0, timed);
    elementwise_learn(loop, timed, clock_ns() - start);
    return timed;
}

struct split {
    struct elementwise *loop;
    void *call;
    enum order order;
    char *const *data;
    const ptrdiff_t *step;
    ptrdiff_t first, second; /* where the first two parts begin */
    struct shares shares;    /* of what follows the first part */
};

static void run_share(void *context, int index)
{
    struct split *split = context;
    /* The first part is the caller's: some of NumPy's loops clear the floating-point flags of their
     * thread, and with them those that NumPy's casts have raised before. */
    if (index == 0) {
        run_part(split->loop, split->call, split->order, split->data, split->step, split->first,
                 split->second - split->first);
    }
    ptrdiff_t first, end;
    while (shares_take(&split->shares, index, &first, &end)) {
        run_part(split->loop, split->call, split->order, split->data, split->step, first,
                 end - first);
    }
}

static ptrdiff_t break_even(const struct elementwise *loop)
{
    const ptrdiff_t threshold = loop->policy->threshold;
    return threshold != 0 ? threshold
                          : atomic_load_explicit(&loop->serial_below, memory_order_relaxed);
}

/* The number of threads for n elements. */
static int threads_for(const struct elementwise *loop, ptrdiff_t n, ptrdiff_t serial_below)
{
    if (n < serial_below || n <= BLOCK || !region_available()) {
        return 1;
    }
    const int threads = threads_limit().threads;
    return threads == 1 || loop->allows_threads == NULL || loop->allows_threads(loop) ? threads : 1;
}

int elementwise_threads(const struct elementwise *loop, ptrdiff_t n)
{
    return threads_for(loop, n, break_even(loop));
}

void elementwise_run(struct elementwise *loop, void *call, char *const data[],
                     const ptrdiff_t step[], ptrdiff_t n)
{
    const bool timed = elementwise_is_timed(loop);
    ptrdiff_t serial_below = break_even(loop);
    if (n < serial_below && !timed && !loop->asks_for_order) {
        elementwise_count_call(loop);
        loop->run(loop, call, IN_ORDER, data, step, 0, n);
        return;
    }
    const enum order order = order_of(loop, data, step, n);
    if (order == IN_ORDER) {
        loop->run(loop, call, IN_ORDER, data, step, 0, n); /* teaches nothing */
        return;
    }
    elementwise_count_call(loop);
    ptrdiff_t done = 0;
    if (timed) {
        done = run_timed(loop, call, data, step, n);
        serial_below = break_even(loop);
    }
    if (done == n) {
        return;
    }
    const int threads = threads_for(loop, n - done, serial_below);
    if (threads == 1) {
        run_part(loop, call, order, data, step, done, n - done);
        return;
    }
    struct split split;
    split.loop = loop;
    split.call = call;
    split.order = order;
    split.data = data;
    split.step = step;
    split.first = done;
    split.second = done + BLOCK;
    shares_initialize(&split.shares, split.second, n, BLOCK, serial_below / LEAST_CHUNK, threads);
    loop->before_threads(call);
    region_run(loop->policy, threads, run_share, &split);
    loop->after_threads(call);
}
