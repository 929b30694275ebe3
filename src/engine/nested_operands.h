/* The operands of a call in several dimensions. */
#ifndef NUMC_NESTED_OPERANDS_H
#define NUMC_NESTED_OPERANDS_H

#include "pieces.h"

enum { NESTED_MOST_AXES = 64 };

/* Operands of one shape, the axes in any order; an operand that is repeated along an axis has
 * step 0 there. */
struct nested {
    char *data[PIECES_MOST_OPERANDS];
    /* Operands of another dtype than the loop's; NULL: of the loop's, converted by the kernel, or a mask. */
    convert_elements *convert[PIECES_MOST_OPERANDS];
    size_t stored_size[PIECES_MOST_OPERANDS]; /* bytes of an element where the operand lies */
    bool is_masked;     /* elements whose mask, a bool, is false are neither computed nor written */
    void *hook_data;    /* of the call; of loops without a kernel */
    bool streams;       /* the kernel stores past the cache */
    bool output_is_new; /* its memory has no pages yet */
    int axes;
    struct nested_axis {
        ptrdiff_t n;
        ptrdiff_t step[PIECES_MOST_OPERANDS]; /* bytes */
    } axis[NESTED_MOST_AXES];
};

static inline int nested_operands(const struct elementwise *loop, const struct nested *nested)
{
    return loop->operands + nested->is_masked;
}

static inline ptrdiff_t nested_elements(const struct nested *nested)
{
    ptrdiff_t elements = 1;
    for (int i = 0; i < nested->axes; i++) {
        elements *= nested->axis[i].n;
    }
    return elements;
}

/* What is read after it: the next input, then the mask, which comes after the output. */
static inline int nested_read_next(const struct elementwise *loop, int op)
{
    return op + 1 == loop->inputs ? loop->operands : op + 1;
}

#endif
