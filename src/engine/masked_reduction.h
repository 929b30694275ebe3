/* Reductions of the elements that a mask lets through, on all cores. */
#ifndef NUMC_MASKED_REDUCTION_H
#define NUMC_MASKED_REDUCTION_H

#include "reduction.h"

/* As NumPy does it: within an inner call along the elements of a result, each run of true ones is reduced by itself,
 * and combined with the result, which begins with what is in its output. Across rows, one element after the other. */
struct masked_reduction {
    struct reduction reduction; /* with `onto`, and without a conversion */
    const char *mask;           /* bools */
    ptrdiff_t step,
        mask_step; /* so far apart are elements, and their bools: in proportion everywhere */
    /* What changes no result, or none that begins as these do: computed where the mask is false. NULL: the
     * kernel adds in order, and each inner call is along one axis. */
    const char *neutral;
};

/* A step of the mask, of one of the elements. */
static inline ptrdiff_t mask_step_of(const struct masked_reduction *masked, ptrdiff_t step)
{
    return step * masked->mask_step / masked->step;
}

/* The bits of the results do not depend on the number of threads. False if memory was refused: outputs may
 * have changed then. */
bool masked_reduction_compute(const struct masked_reduction *masked);

/* Writes an item to each output. */
void reduction_fill(const struct reduction *reduction, const char *item);

#endif
