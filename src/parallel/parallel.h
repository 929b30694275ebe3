/* Splitting element-wise work over threads: how many, when it pays, when it is allowed.
 * Knows OpenMP's limit, and nothing of Python or NumPy. */
#ifndef NUMC_PARALLEL_H
#define NUMC_PARALLEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- threads.c: how many ---- */

/* Call once, before anything else here. `most` is an upper limit, 0 for none; the control group's
 * quota is read below `cgroup_root`, see cgroup_cpus(). */
void threads_initialize(int most, const char *cgroup_root);

/* 0 means unset. The calling thread's own number comes first, then the process's. */
void threads_set_for_process(int threads);
void threads_set_for_this_thread(int threads);
int threads_of_process(void);
int threads_of_this_thread(void);

/* The number of threads that a call of this thread may use, and the rule that decided it. */
struct thread_limit {
    int threads;
    const char *reason; /* a static string */
};
struct thread_limit threads_limit(void);

/* ---- cgroup.c ---- */

/* CPUs that the control group's quota (v1 or v2) grants, rounded up; 0 when there is no quota.
 * Reads /proc and /sys below `root`, "" but in tests. */
int cgroup_cpus(const char *root);

/* ---- region.c: running on threads ---- */

/* Calls share(context, index) on the calling thread, index 0, and on up to `threads` - 1 others at once,
 * each with an index of its own below `threads`. Any of those may come late or not at all: because
 * concurrent callers use the machine, the system grants no more threads or keeps them from a processor,
 * or this is a forked child. So every share takes work until none is left; then those that came have
 * done it all. Workers compute in the caller's floating-point environment, and the exception flags that
 * they raise are raised in the caller. Returns the number of threads that came. */
typedef void region_share(void *context, int index);
int region_run(int threads, region_share *share, void *context);

/* Whether region_run could use more than one thread now. */
bool region_available(void);

/* Threads that region_run with more than one thread occupies now, callers included. */
int region_active(void);

/* How often more than one thread came so far. */
uint64_t region_count(void);

/* ---- overlap.c ---- */

/* Whether the elements of a call may be computed in any order: every output coincides exactly with
 * an operand or shares no byte with it, and does not overlap itself. */
bool elements_commute(int inputs, int operands, char *const data[], const ptrdiff_t step[],
                      const size_t item_size[], ptrdiff_t n);

/* ---- elementwise.c: one call of an inner loop ---- */

enum { MOST_OPERANDS = 32 };

enum order {
    IN_ORDER,           /* operands overlap: element k may read what element k-1 wrote */
    ANY_ORDER,          /* elements_commute() */
    ANY_ORDER_STREAMING /* and the outputs are larger than the cache */
};

/* An inner loop, and what has been learnt of it. */
struct elementwise {
    /* Computes n elements. With ANY_ORDER it is called by several threads at once, for disjoint
     * parts of one call; `first` is the index of the part's first element in the call. */
    void (*run)(const struct elementwise *loop, void *call, enum order order, char *const data[],
                const ptrdiff_t step[], ptrdiff_t first, ptrdiff_t n);
    /* Computes rows of n elements, in any order; only nested.c asks for it. */
    void (*run_rows)(const struct elementwise *loop, void *call, enum order order,
                     char *const data[], const ptrdiff_t row_step[], const ptrdiff_t step[],
                     ptrdiff_t rows, ptrdiff_t n);
    /* Whether several threads may run it now; NULL: always. */
    bool (*allows_threads)(const struct elementwise *loop);
    /* Around the part of a call that runs on several threads. */
    void (*before_threads)(void *call);
    void (*after_threads)(void *call);
    bool asks_for_order; /* runs faster where it knows more than IN_ORDER */
    int inputs, operands;
    size_t item_size[MOST_OPERANDS];
    ptrdiff_t tiny;
    _Atomic ptrdiff_t serial_below; /* calls of fewer elements stay on the calling thread */
    _Atomic unsigned calls;         /* that were not tiny */
};

/* Completes a loop whose operands are described: nothing is learnt yet. */
void elementwise_initialize(struct elementwise *loop);

/* What elementwise_set_threshold set; not for direct use. */
extern _Atomic ptrdiff_t elementwise_forced_threshold;

/* Whether a call of n elements gains nothing here: it should run its loop directly, in order. */
static inline bool elementwise_is_tiny(const struct elementwise *loop, ptrdiff_t n)
{
    return n < loop->tiny &&
           (atomic_load_explicit(&elementwise_forced_threshold, memory_order_relaxed) == 0 ||
            n < atomic_load_explicit(&elementwise_forced_threshold, memory_order_relaxed));
}

/* Computes n elements, on several threads where that is allowed and pays. `call` is handed on. */
void elementwise_run(struct elementwise *loop, void *call, char *const data[],
                     const ptrdiff_t step[], ptrdiff_t n);

/* For those who split a call themselves: the number of threads that n elements should run on now, and
 * what they tell of each call. Some calls are to be timed, in part: what they learn decides later. */
int elementwise_threads(const struct elementwise *loop, ptrdiff_t n);
void elementwise_count_call(struct elementwise *loop);
bool elementwise_is_timed(const struct elementwise *loop);
void elementwise_learn(struct elementwise *loop, ptrdiff_t elements, int64_t ns);
int64_t clock_ns(void);

/* Whether the outputs of n elements are too large for the cache. */
bool elementwise_streams(const struct elementwise *loop, ptrdiff_t n);

/* Makes the break-even `elements` for every loop, 0 to learn it per loop. */
void elementwise_set_threshold(ptrdiff_t elements);
ptrdiff_t elementwise_threshold(void);

/* ---- nested.c: one call over operands in several dimensions ---- */

enum { NESTED_MOST_OPERANDS = 3, NESTED_MOST_AXES = 64 };

/* Operands of one shape, the innermost axis last; an operand that is repeated along an axis has
 * step 0 there. */
struct nested {
    char *data[NESTED_MOST_OPERANDS];
    int axes;
    struct nested_axis {
        ptrdiff_t n;
        ptrdiff_t step[NESTED_MOST_OPERANDS]; /* bytes */
    } axis[NESTED_MOST_AXES];
};

/* Computes all elements, in any order, on several threads where that pays; reorders `nested`. For
 * loops of one output whose results do not depend on steps, where every output element coincides
 * exactly with those of its inputs or shares no byte with any. */
void nested_run(struct elementwise *loop, void *call, struct nested *nested, bool streaming);

/* ---- reduce.c ---- */

struct reduction;

/* outer * inner results, each of groups * n elements. Steps are in bytes. */
struct reduce {
    const struct reduction *kernel;
    const char *data;
    char *out;
    ptrdiff_t outer, inner, groups, n;
    ptrdiff_t outer_step, inner_step, group_step, step;
    ptrdiff_t out_outer_step, out_inner_step;
    size_t out_size;
    bool onto; /* results are combined with what is in `out` */
};

/* The bits of the results do not depend on the number of threads. Returns whether there was memory to
 * do it; if not, nothing is written. */
bool reduce_run(const struct reduce *reduce);

/* ---- accumulate.c ---- */

/* out[k] = before combined with in[0] ... in[k], for kernels that can; `in` and `out` coincide or share
 * no byte. */
struct accumulate {
    const struct reduction *kernel;
    const char *before, *in;
    char *out;
    ptrdiff_t in_step, out_step, n;
};
void accumulate_run(const struct accumulate *accumulate);

/* ---- bandwidth.c ---- */

/* Bytes per second, read and written, of arrays of `bytes` each: the best of several passes.
 * 0 when there is no memory for them. */
enum bandwidth {
    BANDWIDTH_COPY,         /* ordinary stores */
    BANDWIDTH_STREAMING_ADD /* two arrays read, one written past the cache */
};
double bandwidth_measure(enum bandwidth what, size_t bytes, int threads);

#endif
