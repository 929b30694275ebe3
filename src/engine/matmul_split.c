/* Threads take chunks of a range one after the other. */
#include "matmul_split.h"

#include "matmul_cutoffs.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>

enum { CHUNKS_PER_THREAD = 8 };

int matmul_threads(const struct policy *policy, double ns)
{
    if ((policy->threshold == 0 && ns < BREAK_EVEN_NS) || !region_available()) {
        return 1;
    }
    return threads_limit().threads;
}

struct range {
    matmul_range *run;
    void *context;
    ptrdiff_t count, chunk;
    _Atomic ptrdiff_t next;
};

static void run_chunks(void *context, int index)
{
    (void)index;
    struct range *range = context;
    ptrdiff_t first;
    while ((first = atomic_fetch_add(&range->next, range->chunk)) < range->count) {
        const ptrdiff_t left = range->count - first;
        range->run(range->context, first, left < range->chunk ? left : range->chunk);
    }
}

void matmul_split(const struct policy *policy, ptrdiff_t count, int threads, matmul_range *run,
                  void *context)
{
    if (count <= 1 || threads <= 1) {
        run(context, 0, count);
        return;
    }
    const ptrdiff_t chunk = count / (CHUNKS_PER_THREAD * (ptrdiff_t)threads);
    struct range range = {run, context, count, chunk > 0 ? chunk : 1, 0};
    region_run(policy, threads, run_chunks, &range);
}
