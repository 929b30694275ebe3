/* Running results where any order of the operations has the same bits. */
#ifndef NUMC_IN_FOURS_H
#define NUMC_IN_FOURS_H

#include "kernels/vector.h"

#include <stddef.h>

/* A function that writes the running results of n elements after `last`: four at a time are combined with each other, and
 * only one operation of four waits for those before. `load(from)` is an element, a `wide`; `put(value, to)` stores one. */
#define DEFINE_IN_FOURS(function, wide, load, combine, put)                                        \
    INLINE void function(wide last, const char *in, ptrdiff_t in_step, char *out,                  \
                         ptrdiff_t out_step, ptrdiff_t n)                                          \
    {                                                                                              \
        for (; n >= 4; n -= 4, in += 4 * in_step, out += 4 * out_step) {                           \
            const wide one = load(in), two = combine(one, load(in + in_step));                     \
            const wide three = combine(two, load(in + 2 * in_step));                               \
            const wide four = combine(three, load(in + 3 * in_step));                              \
            put(combine(last, one), out);                                                          \
            put(combine(last, two), out + out_step);                                               \
            put(combine(last, three), out + 2 * out_step);                                         \
            last = combine(last, four);                                                            \
            put(last, out + 3 * out_step);                                                         \
        }                                                                                          \
        for (; n > 0; n--, in += in_step, out += out_step) {                                       \
            last = combine(last, load(in));                                                        \
            put(last, out);                                                                        \
        }                                                                                          \
    }

#endif
