/* Element-wise calls: when threads pay, and which chunk goes where. */
#include "elementwise.h"

#include "elementwise_cutoffs.h"
#include "memory/caches.h"
#include "memory/pages.h"
#include "overlap.h"
#include "threads/clock.h"
#include "threads/region.h"
#include "threads/shares.h"

enum {
    /* Chunks begin at multiples of this many elements: there NumPy's SIMD loops compute the same bits
     * as in one go, and threads seldom write to the same cache line. */
    BLOCK_ELEMENTS = 64,
    /* What elements cost is measured in the first calls, which meet page faults and cold caches, and
     * then now and again: the data may have become dearer. */
    TIMED_ELEMENTS = 4096,
    TIMED_FIRST_CALLS = 8,
    TIMED_EVERY_CALLS = 64,
};

void elementwise_initialize(struct elementwise *loop)
{
    const ptrdiff_t of_bytes =
        TINY_BELOW_OUTPUT_BYTES / (ptrdiff_t)loop->item_size[loop->operands - 1];
    loop->item_size[loop->operands] = sizeof(bool);
    loop->tiny_elements = of_bytes > TINY_BELOW_ELEMENTS ? of_bytes : TINY_BELOW_ELEMENTS;
    atomic_init(&loop->break_even, loop->tiny_elements);
    atomic_init(&loop->calls, 0);
}

/* Most kernels beat the inner loop only where elements are next to each other. */
static bool suits_kernel(const struct elementwise *loop, const ptrdiff_t step[])
{
    for (int i = 0; i < loop->operands && !loop->kernel_takes_any_step; i++) {
        const bool next = step[i] == (ptrdiff_t)loop->item_size[i];
        if (!next && !(i < loop->inputs && step[i] == 0)) {
            return false;
        }
    }
    return true;
}

static bool is_in_place(const struct elementwise *loop, char *const data[])
{
    for (int out = loop->inputs; out < loop->operands; out++) {
        for (int in = 0; in < loop->inputs; in++) {
            if (data[in] == data[out]) {
                return true; /* the output's lines are in the cache already */
            }
        }
    }
    return false;
}

bool elementwise_streams(const struct elementwise *loop, char *const data[], ptrdiff_t n)
{
    size_t stored = 0;
    for (int out = loop->inputs; out < loop->operands; out++) {
        stored += loop->item_size[out] * (size_t)n;
    }
    return stored > cache_last_level() / 16 * STREAMING_FROM_CACHE_SIXTEENTHS &&
           !is_in_place(loop, data);
}

elementwise_kernel *elementwise_choose(const struct elementwise *loop, const ptrdiff_t step[],
                                       bool streams)
{
    if (loop->kernel == NULL || !suits_kernel(loop, step)) {
        return NULL;
    }
    return streams && loop->kernel->streaming != NULL ? loop->kernel->streaming
                                                      : loop->kernel->cached;
}

/* ---- what is learnt ---- */

static ptrdiff_t break_even(const struct elementwise *loop)
{
    const ptrdiff_t threshold = loop->policy->threshold;
    return threshold != 0 ? threshold
                          : atomic_load_explicit(&loop->break_even, memory_order_relaxed);
}

static bool is_timed(const struct elementwise *loop)
{
    const unsigned calls = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    return loop->policy->threshold == 0 &&
           (calls < TIMED_FIRST_CALLS || calls % TIMED_EVERY_CALLS == 0);
}

/* Counts may get lost between threads, which does no harm. */
static void count_call(struct elementwise *loop)
{
    const unsigned calls = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    atomic_store_explicit(&loop->calls, calls + 1, memory_order_relaxed);
}

static void learn(struct elementwise *loop, ptrdiff_t elements, int64_t ns)
{
    ptrdiff_t learnt = (ptrdiff_t)BREAK_EVEN_NS * elements / (ns > 0 ? (ptrdiff_t)ns : 1);
    if (atomic_load_explicit(&loop->calls, memory_order_relaxed) > 1) {
        learnt = (atomic_load_explicit(&loop->break_even, memory_order_relaxed) + learnt) / 2;
    }
    atomic_store_explicit(&loop->break_even, learnt, memory_order_relaxed);
}

int elementwise_threads(const struct elementwise *loop, ptrdiff_t n)
{
    const int threads = threads_for(loop->policy, n, break_even(loop));
    return threads == 1 || loop->allows_threads == NULL || loop->allows_threads(loop) ? threads : 1;
}

/* ---- shared work ---- */

bool chunks_take(struct chunks *chunks, ptrdiff_t *first, ptrdiff_t *end)
{
    if (chunks->first < chunks->end) {
        *first = chunks->first;
        *end = chunks->first = chunks->end;
        return true;
    }
    return chunks->shares != NULL && shares_take(chunks->shares, chunks->thread, first, end);
}

static void run_on_caller(const struct shared_work *work, ptrdiff_t first, ptrdiff_t end)
{
    struct chunks chunks = {.first = first, .end = end};
    work->run(work->context, &chunks);
    kernels_fence();
}

struct sharing {
    const struct shared_work *work;
    ptrdiff_t first, second; /* where the first two blocks begin */
    struct shares shares;    /* from the second on */
};

static void run_share(void *context, int thread)
{
    struct sharing *sharing = context;
    struct chunks chunks = {.thread = thread, .shares = &sharing->shares};
    /* The first block is the caller's: some of NumPy's loops clear the floating-point flags of their
     * thread, and with them those that NumPy's casts have raised before. */
    if (thread == 0) {
        chunks.first = sharing->first;
        chunks.end = sharing->second;
    }
    sharing->work->run(sharing->work->context, &chunks);
    kernels_fence();
}

static void run_on_threads(const struct shared_work *work, ptrdiff_t first, int threads)
{
    const struct inner_loop_hooks *hooks = work->hook_data != NULL ? work->loop->hooks : NULL;
    struct sharing sharing = {.work = work, .first = first};
    sharing.second = first < work->offset
                         ? work->offset
                         : first + work->block - (first - work->offset) % work->block;
    if (sharing.second >= work->units) {
        run_on_caller(work, first, work->units);
        return;
    }
    const ptrdiff_t least_chunk =
        break_even(work->loop) / CHUNK_PARTS_OF_BREAK_EVEN / work->elements_of_unit;
    shares_initialize(&sharing.shares, sharing.second, work->units, work->block,
                      least_chunk > 0 ? least_chunk : 1, threads);
    if (hooks != NULL) {
        hooks->before_threads(work->hook_data);
    }
    region_run(work->loop->policy, threads, run_share, &sharing);
    if (hooks != NULL) {
        hooks->after_threads(work->hook_data);
    }
}

void elementwise_share_out(const struct shared_work *work)
{
    struct elementwise *loop = work->loop;
    const bool timed = work->timed > 0 && is_timed(loop);
    count_call(loop);
    ptrdiff_t done = 0;
    if (timed) {
        done = work->timed < work->units ? work->timed : work->units;
        const int64_t start = clock_ns();
        run_on_caller(work, 0, done);
        learn(loop, done * work->elements_of_unit, clock_ns() - start);
    }
    const ptrdiff_t left = work->units - done;
    const int threads = left <= work->block ? 1
                        : work->threads != 0
                            ? work->threads
                            : elementwise_threads(loop, left * work->elements_of_unit);
    if (threads > 1) {
        run_on_threads(work, done, threads);
    } else if (left > 0) {
        run_on_caller(work, done, work->units);
    }
}

/* ---- one call of a loop ---- */

void elementwise_run_chunk(const struct elementwise *loop, void *hook_data, char *const data[],
                           const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n)
{
    if (loop->hooks != NULL) {
        loop->hooks->before_chunk(hook_data);
    }
    loop->function((char **)data, &n, step, loop->function_data);
    if (loop->hooks != NULL) {
        loop->hooks->after_chunk(hook_data, first);
    }
}

static void run_elements(const struct elementwise_plan *plan, ptrdiff_t first, ptrdiff_t end)
{
    const struct elementwise *loop = plan->loop;
    char *data[MOST_OPERANDS];
    for (int i = 0; i < loop->operands; i++) {
        data[i] = plan->data[i] + first * plan->step[i];
    }
    if (plan->kernel != NULL) {
        plan->kernel(data, plan->step, end - first);
    } else {
        elementwise_run_chunk(loop, plan->hook_data, data, plan->step, first, end - first);
    }
}

static void run_chunks(void *context, struct chunks *chunks)
{
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        run_elements(context, first, end);
    }
}

static bool populates(const struct elementwise_plan *plan)
{
    const size_t size = plan->loop->item_size[plan->loop->operands - 1];
    return plan->output_is_new && size * (size_t)plan->n >= POPULATE_FROM_BYTES;
}

/* One large page at a time is populated and then written while it is in a cache. */
static void run_chunks_on_new_pages(void *context, struct chunks *chunks)
{
    const struct elementwise_plan *plan = context;
    const int out = plan->loop->operands - 1;
    const ptrdiff_t page = LARGE_PAGE_BYTES / (ptrdiff_t)plan->loop->item_size[out];
    ptrdiff_t first, end;
    while (chunks_take(chunks, &first, &end)) {
        for (; first < end; first += page) {
            const ptrdiff_t stop = end - first > page ? first + page : end;
            char *written = plan->data[out];
            pages_populate(written + first * plan->step[out], written + stop * plan->step[out]);
            run_elements(plan, first, stop);
        }
    }
}

void elementwise_run(const struct elementwise_plan *plan)
{
    const struct elementwise *loop = plan->loop;
    struct shared_work work = {
        .loop = plan->loop,
        .hook_data = plan->kernel == NULL ? plan->hook_data : NULL,
        .run = run_chunks,
        .context = (void *)plan,
        .units = plan->n,
        .elements_of_unit = 1,
        .timed = plan->streams ? 0 : TIMED_ELEMENTS,
        .block = BLOCK_ELEMENTS,
    };
    if (populates(plan)) {
        const int out = loop->operands - 1;
        const size_t size = loop->item_size[out];
        const uintptr_t into_page = (uintptr_t)plan->data[out] % LARGE_PAGE_BYTES;
        const ptrdiff_t to_next = (ptrdiff_t)((LARGE_PAGE_BYTES - into_page) / size);
        work.run = run_chunks_on_new_pages;
        work.block = (ptrdiff_t)(LARGE_PAGE_BYTES / size);
        work.offset = (to_next + BLOCK_ELEMENTS - 1) / BLOCK_ELEMENTS * BLOCK_ELEMENTS;
    }
    elementwise_share_out(&work);
}

void elementwise_plan_kernel(struct elementwise_plan *plan)
{
    if (populates(plan)) {
        const char *out = plan->data[plan->loop->operands - 1];
        const ptrdiff_t bytes =
            (ptrdiff_t)plan->loop->item_size[plan->loop->operands - 1] * plan->n;
        plan->output_is_new = !pages_are_there(out, out + bytes);
    }
    /* A page that has just been populated is in the cache: stores past it would write it twice. */
    plan->streams = plan->loop->kernel != NULL && !populates(plan) &&
                    elementwise_streams(plan->loop, plan->data, plan->n);
    plan->kernel = elementwise_choose(plan->loop, plan->step, plan->streams);
}

void elementwise_run_loop(struct elementwise *loop, void *hook_data, char *const data[],
                          const ptrdiff_t step[], ptrdiff_t n)
{
    if (loop->kernel == NULL && n < break_even(loop) && !is_timed(loop)) {
        count_call(loop);
        loop->function((char **)data, &n, step, loop->function_data);
        return;
    }
    if (!elements_commute(loop->inputs, loop->operands, data, step, loop->item_size, n)) {
        loop->function((char **)data, &n, step, loop->function_data); /* teaches nothing */
        return;
    }
    struct elementwise_plan plan = {
        .loop = loop, .hook_data = hook_data, .data = data, .step = step, .n = n};
    elementwise_plan_kernel(&plan);
    elementwise_run(&plan);
}
