#include "signed_zeros.h"

#include "kernels/sizes.h"
#include "reduction_cutoffs.h"

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

/* Whether one of n items, `step` bytes apart, is a zero of either sign. */
#define DEFINE(size, type)                                                                         \
    static bool is_zero_among_##size(const char *item, ptrdiff_t step, ptrdiff_t n)                \
    {                                                                                              \
        bool found = false;                                                                        \
        for (ptrdiff_t i = 0; i < n; i++) {                                                        \
            found |= (type)(*(const type *)(item + i * step) << 1) == 0;                           \
        }                                                                                          \
        return found;                                                                              \
    }
DEFINE(2, uint16_t)
DEFINE(4, uint32_t)
DEFINE(8, uint64_t)
#undef DEFINE

static bool has_zero(const struct axes *axes, int count, const char *out, size_t size)
{
    const struct axis axis = count > 0 ? axes->axis[count - 1] : (struct axis){.n = 1};
    if (count <= 1) {
        return size == 2   ? is_zero_among_2(out, axis.out_step, axis.n)
               : size == 4 ? is_zero_among_4(out, axis.out_step, axis.n)
                           : is_zero_among_8(out, axis.out_step, axis.n);
    }
    for (ptrdiff_t i = 0; i < axis.n; i++) {
        if (has_zero(axes, count - 1, out + i * axis.out_step, size)) {
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
    return has_zero(&reduction->kept, reduction->kept.count, reduction->out, reduction->out_size) &&
           has_negative_zero(reduction, minimum);
}
