#include "signed_zeros.h"

#include "kernels/sizes.h"
#include "kernels/vector.h"
#include "reduction_cutoffs.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The bits of a float of 2, 4 or 8 bytes, at the upper end: the sign is the highest. */
static uint64_t bits_of(const char *item, size_t size)
{
    uint64_t bits = 0;
    memcpy((char *)&bits + sizeof bits - size, item,
           size); /* both architectures are little-endian */
    return bits;
}

/* Whether one of n items, `step` bytes apart, is a zero of either sign: only 0 - 1 has a highest bit that the number
 * itself has not. `step` is a constant where items are next to each other, for vectors of the smallest instruction
 * sets, which cannot compare 8 bytes. */
#define DEFINE(size, type)                                                                         \
    INLINE bool is_zero_among_items_##size(const char *item, ptrdiff_t step, ptrdiff_t n)          \
    {                                                                                              \
        type found = 0;                                                                            \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            const type bits = (type)(*(const type *)(item + i * step) << 1);                       \
            found |= (type)(bits - 1) & (type)~bits;                                               \
        }                                                                                          \
        return found >> (8 * size - 1) != 0;                                                       \
    }                                                                                              \
    static bool is_zero_among_##size(const char *item, ptrdiff_t step, ptrdiff_t n)                \
    {                                                                                              \
        return step == size ? is_zero_among_items_##size(item, size, n)                            \
                            : is_zero_among_items_##size(item, step, n);                           \
    }
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint64_t)
#undef DEFINE

/* Results along one axis. */
struct zero_search {
    const char *out;
    struct axis axis;
    size_t size;
    atomic_bool found;
};

static void search_zeros(void *context, ptrdiff_t first, ptrdiff_t count)
{
    struct zero_search *search = context;
    const ptrdiff_t step = search->axis.out_step;
    const char *item = search->out + first * step;
    if (search->size == 2   ? is_zero_among_2(item, step, count)
        : search->size == 4 ? is_zero_among_4(item, step, count)
                            : is_zero_among_8(item, step, count)) {
        search->found = true;
    }
}

static bool has_zero(const struct reduction *reduction, int count, const char *out)
{
    const struct axes *axes = &reduction->kept;
    struct zero_search search = {out, {.n = 1}, reduction->out_size, false};
    if (count > 0) {
        search.axis = axes->axis[count - 1];
    }
    if (count <= 1) {
        const bool is_short = search.axis.n * (ptrdiff_t)search.size < REDUCTION_THREADS_BYTES &&
                              !reduction->policy->small_blocks;
        region_run_ranges(reduction->policy, is_short ? 1 : reduction->threads, search.axis.n, 0,
                          search_zeros, &search);
        return search.found;
    }
    for (ptrdiff_t i = 0; i < search.axis.n; i++) {
        if (has_zero(reduction, count - 1, out + i * search.axis.out_step)) {
            return true;
        }
    }
    return false;
}

/* The axes of the operand, whichever are reduced, joined where they are one in memory. */
static struct axes join_all(const struct reduction *reduction)
{
    struct axes all = reduction->inner, joined = {0};
    axes_append(&all, &reduction->kept);
    axes_append(&all, &reduction->repeated);
    while (all.count > 0) {
        int next = 0;
        for (int i = 1; i < all.count; i++) {
            next = labs(all.axis[i].step) < labs(all.axis[next].step) ? i : next;
        }
        axes_join(&joined, (struct axis){all.axis[next].n, all.axis[next].step, 0});
        all.axis[next] = all.axis[--all.count];
    }
    axes_complete(&joined);
    return joined;
}

/* As signed integers, negative zeros are the least of all. */
static bool has_negative_zero(const struct reduction *reduction,
                              const struct reduction_kernel *minimum)
{
    const struct axes all = join_all(reduction);
    char least[sizeof(uint64_t)];
    struct reduction search = *reduction;
    search.kernel = minimum;
    search.out = least;
    search.onto = false;
    search.kept.count = search.inner.count = search.repeated.count = 0;
    /* Short axes are gathered: each would be a call of the loop. */
    const ptrdiff_t wanted = REDUCTION_INNER_BYTES / (ptrdiff_t)minimum->item_size;
    ptrdiff_t elements = 1; /* of the inner axes but for the last one */
    for (int i = 0; i < all.count; i++) {
        const ptrdiff_t gathered = size_from(&search.inner, 0);
        if (gathered >= wanted) {
            search.repeated.axis[search.repeated.count++] = all.axis[i];
        } else {
            elements = gathered;
            search.inner.axis[search.inner.count++] = all.axis[i];
        }
    }
    const ptrdiff_t last = search.inner.axis[search.inner.count - 1].n;
    search.inner_call = search.inner.count > 1 ? size_min(last, ceiling(wanted, elements)) : last;
    return !reduction_compute(&search) || bits_of(least, minimum->item_size) == (uint64_t)1 << 63;
}

bool zeros_may_tie(const struct reduction *reduction, const struct reduction_kernel *minimum)
{
    const bool is_alone = !reduction->onto && reduction_is_copy(reduction);
    return !is_alone && has_zero(reduction, reduction->kept.count, reduction->out) &&
           has_negative_zero(reduction, minimum);
}
