/* One call over operands in several dimensions. */
#ifndef NUMC_NESTED_H
#define NUMC_NESTED_H

#include "elementwise.h"

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
 * loops with a kernel, whose results do not depend on steps, where every output element coincides
 * exactly with those of its inputs or shares no byte with any. */
void nested_run(struct elementwise *loop, struct nested *nested, bool streams, bool is_tiny);

#endif
