/* Gathers elements that lie apart, and converts them: what NumPy's iterator does in its buffers. */
#ifndef NUMC_GATHER_H
#define NUMC_GATHER_H

#include "kernels/kernels.h"
#include "kernels/sizes.h"
#include "kernels/vector.h"

enum { MOST_AXES = 8 };

/* Steps are in bytes; `out_step` is the output's. */
struct axis {
    ptrdiff_t n, step, out_step;
};

/* The fastest first. */
struct axes {
    int count;
    struct axis axis[MOST_AXES];
};

/* The fastest axis, of one element where there is none. */
static inline struct axis fastest(const struct axes *axes)
{
    return axes->count > 0 ? axes->axis[0] : (struct axis){1, 0, 0};
}

/* Elements of the axes from `first` on. */
static inline ptrdiff_t size_from(const struct axes *axes, int first)
{
    ptrdiff_t n = 1;
    for (int i = first; i < axes->count; i++) {
        n *= axes->axis[i].n;
    }
    return n;
}

/* Bytes of the cache lines that n items are in, which lie so many bytes apart, in either direction. */
static inline ptrdiff_t bytes_of_lines(ptrdiff_t n, size_t size, ptrdiff_t apart)
{
    return n * size_max((ptrdiff_t)size, size_min(magnitude(apart), LINE_BYTES));
}

/* Where an element lies, whose index counts the axes from `first` on. */
static inline ptrdiff_t offset_of(const struct axes *axes, int first, ptrdiff_t index, bool out)
{
    ptrdiff_t offset = 0;
    for (int i = first; i < axes->count && index > 0; i++) {
        const struct axis axis = axes->axis[i];
        const ptrdiff_t step = out ? axis.out_step : axis.step;
        if (index < axis.n) { /* without a division: this is called for each row */
            return offset + index * step;
        }
        offset += index % axis.n * step;
        index /= axis.n;
    }
    return offset;
}

/* Adds a slower axis, as one with the last where both are one in memory; an axis of one element is left out.
 * False if too many are left. */
bool axes_join(struct axes *axes, struct axis next);

/* Of one element no axis is left: makes it one. */
static inline void axes_complete(struct axes *axes)
{
    if (axes->count == 0) {
        axes->axis[axes->count++] = (struct axis){1, 0, 0};
    }
}

/* Adds all of them as they are. */
void axes_append(struct axes *to, const struct axes *from);

/* Copies items of `size` bytes to where the output's lie. */
void copy_along(size_t size, const struct axes *axes, const char *from, char *to);

/* From items of one size to those of another; NULL if nothing changes. */
struct conversion {
    size_t from_size, to_size;
    convert_addends *convert;
};

/* Scratch bytes for n elements. */
size_t gather_bytes(const struct conversion *conversion, ptrdiff_t n);

/* The elements of some axes, contiguous and converted, in scratch memory. */
const char *gather(const struct conversion *conversion, const struct axes *axes, const char *data,
                   char *scratch);

#endif
