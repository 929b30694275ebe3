/* How NumPy's loops round products and quotients of complex numbers here: that depends on the processor and
 * on how NumPy was compiled, so they are asked. */
#ifndef NUMC_COMPLEX_ROUNDING_H
#define NUMC_COMPLEX_ROUNDING_H

#include "engine/elementwise.h"

enum complex_rounding {
    ROUNDING_UNKNOWN, /* neither of these: */
    ROUNDING_EACH,    /* each operation */
    ROUNDING_FUSED    /* but for the second of two products, which is added unrounded */
};

/* Of the loop of a row of `multiply` or `divide`, of complex numbers. */
enum complex_rounding complex_rounding(const struct elementwise *loop, bool divides);

#endif
