#include "scattered_rows.h"

#include "memory/workspace.h"
#include "reduction.h"
#include "reduction_cutoffs.h"

/* Strided rows of more elements take less time one by one. `python benchmarks/random_calls.py` */
enum { SHORT_STRIDED_ROW = 32 };

/* Whether results have short rows that lie apart, one in each of several places, whose order does not matter:
 * whole places are reduced to one first. */
static bool are_scattered(const struct reduction *reduction)
{
    const struct axes *inner = &reduction->inner;
    const ptrdiff_t size = (ptrdiff_t)reduction->kernel->item_size;
    /* Strided rows are no vectors: short ones gain from fewer calls, and a search ends early in each by itself. */
    const bool suits = inner->axis[0].step == size ||
                       (inner->axis[0].n <= SHORT_STRIDED_ROW && reduction->kernel->final < 0);
    return reduction->kernel->sums_are_results && !reduction->kernel->zeros_tie &&
           !reduction->kernel->gets_cheaper && !reduction->onto && inner->count == 1 && suits &&
           reduction->kept.count > 0 && inner->axis[0].n * size < REDUCTION_INNER_BYTES &&
           size_from(&reduction->repeated, 0) >= REDUCTION_LEAST_PLACES;
}

bool scattered_rows_reduce(const struct reduction *reduction)
{
    if (!are_scattered(reduction)) {
        return false;
    }
    const ptrdiff_t size = (ptrdiff_t)reduction->kernel->item_size;
    struct reduction first = *reduction, second = *reduction;
    ptrdiff_t bytes = size;
    first.kept.count = first.inner.count = 0;
    bool fits = axes_join(&first.kept, (struct axis){reduction->inner.axis[0].n,
                                                     reduction->inner.axis[0].step, bytes});
    second.inner.axis[0].step = size;
    bytes *= reduction->inner.axis[0].n;
    for (int i = 0; i < reduction->kept.count && fits; i++) {
        const struct axis axis = reduction->kept.axis[i];
        fits = axes_join(&first.kept, (struct axis){axis.n, axis.step, bytes});
        second.kept.axis[i].step = bytes;
        bytes *= axis.n;
    }
    const struct workspace place = fits ? workspace_take((size_t)bytes) : (struct workspace){0};
    if (place.data == NULL) {
        return false;
    }
    first.out = place.data;
    second.data = place.data;
    second.repeated.count = 0;
    second.inner_call = second.inner.axis[0].n;
    second.threads = reduction_threads(&second);
    const bool computed = reduction_compute(&first) && reduction_compute(&second);
    workspace_give_back(place);
    return computed;
}
