/* Shares out the items of a stack. What an item takes is not known before it has been computed: the first ones
 * are timed, on the calling thread. */
#include "stack.h"

#include "kernels/sizes.h"
#include "stack_cutoffs.h"

#include "threads/blas_threads.h"
#include "threads/clock.h"
#include "threads/region.h"
#include "threads/shares.h"

enum { TIMED_FIRST_CALLS = 4, TIMED_EVERY_CALLS = 64 };

/* Counts may get lost between threads, which does no harm. */
bool stack_is_short(const struct policy *policy, struct stack_speed *speed, ptrdiff_t elements)
{
    const unsigned calls = atomic_load_explicit(&speed->calls, memory_order_relaxed);
    const int64_t ps = atomic_load_explicit(&speed->ps, memory_order_relaxed);
    atomic_store_explicit(&speed->calls, calls + 1, memory_order_relaxed);
    return policy->threshold == 0 && calls >= TIMED_FIRST_CALLS && calls % TIMED_EVERY_CALLS != 0 &&
           (double)elements * (double)ps < (double)STACK_BREAK_EVEN_NS * 1000 / 4;
}

struct stack_sharing {
    const struct stack *stack;
    struct shares shares;
};

static void run_share(void *context, int thread)
{
    struct stack_sharing *sharing = context;
    const struct stack *stack = sharing->stack;
    ptrdiff_t first, end;
    while (shares_take(&sharing->shares, thread, &first, &end) &&
           stack->run(stack->context, first, end - first)) {
    }
}

static void run_on_threads(const struct stack *stack, ptrdiff_t first, double item_ns, int threads)
{
    struct stack_sharing sharing = {.stack = stack};
    const double least = STACK_CHUNK_NS / (item_ns > 1 ? item_ns : 1);
    shares_initialize(&sharing.shares, first, stack->count, stack->at_once,
                      least > 1 ? (ptrdiff_t)least : 1, threads);
    stack->hooks->before_threads(stack->hook_data);
    blas_threads_hold(1);
    region_run(stack->policy, threads, run_share, &sharing);
    blas_threads_release();
    stack->hooks->after_threads(stack->hook_data);
}

/* On this thread, and if `holds`, on that of a BLAS alone. Tells the time that each item took; below 0 if one
 * has failed. */
static double run_here(const struct stack *stack, ptrdiff_t first, ptrdiff_t count, bool holds)
{
    if (holds) {
        blas_threads_hold(1);
    }
    const int64_t start = clock_ns();
    const bool is_complete = stack->run(stack->context, first, count);
    const double ns = (double)(clock_ns() - start);
    if (holds) {
        blas_threads_release();
    }
    return is_complete ? ns / (double)count : -1;
}

/* Of the first items only the size is known. */
static bool may_be_middling(const struct stack *stack)
{
    return stack->item_elements >= HELD_LEAST_ELEMENTS &&
           stack->item_elements <= HELD_MOST_ELEMENTS;
}

/* In items that are not long, the threads of a BLAS cost more than they gain. */
static void run_on_caller(const struct stack *stack, ptrdiff_t first, double item_ns)
{
    const ptrdiff_t left = stack->count - first;
    run_here(stack, first, left,
             item_ns < LONG_ITEM_NS && item_ns * (double)left > STACK_BREAK_EVEN_NS);
}

static int threads_of(const struct stack *stack, ptrdiff_t left, double item_ns)
{
    const ptrdiff_t elements = left * stack->item_elements;
    const double pays =
        STACK_BREAK_EVEN_NS / (item_ns > 1 ? item_ns : 1) * (double)stack->item_elements;
    const int threads =
        left > stack->at_once ? threads_for(stack->policy, elements, (ptrdiff_t)pays + 1) : 1;
    if (threads > 1 && stack->policy->threshold == 0 && item_ns > LONG_ITEM_NS &&
        left < threads / 2) {
        return 1;
    }
    return threads > 1 && stack->allows_threads != NULL && !stack->allows_threads(stack->context)
               ? 1
               : threads;
}

void stack_run(const struct stack *stack)
{
    /* The first items are the caller's: some loops clear the floating-point flags of their thread, and with
     * them those that NumPy's casts have raised before. */
    ptrdiff_t done = size_min(stack->at_once, stack->count);
    double item_ns = run_here(stack, 0, done, may_be_middling(stack));
    if (item_ns >= 0 && item_ns < SHORT_ITEM_NS && stack->at_once == 1) {
        const ptrdiff_t more = size_min(SHORT_ITEMS_TIMED, (stack->count - done) / 2);
        if (more > 0) {
            item_ns = run_here(stack, done, more, false);
            done += more;
        }
    }
    if (item_ns < 0 || done == stack->count) {
        return;
    }
    atomic_store_explicit(&stack->speed->ps,
                          (int64_t)(item_ns * 1000 / (double)stack->item_elements),
                          memory_order_relaxed);
    const ptrdiff_t left = stack->count - done;
    const int threads = threads_of(stack, left, item_ns);
    if (threads > 1) {
        run_on_threads(stack, done, item_ns, threads);
    } else {
        run_on_caller(stack, done, item_ns);
    }
}
