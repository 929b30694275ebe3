/* Gathers elements that lie apart, and converts them: what NumPy's iterator does in its buffers. */
#ifndef NUMC_GATHER_H
#define NUMC_GATHER_H

#include "kernels/kernels.h"

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
