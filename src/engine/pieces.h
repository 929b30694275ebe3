/* A row of a call, converted and masked piece by piece: pieces are so short that one of one operand does not
 * wait for memory longer than those of the others, and stay on the stack. */
#ifndef NUMC_PIECES_H
#define NUMC_PIECES_H

#include "elementwise.h"

enum {
    PIECES_MOST_INPUTS = 2,
    PIECES_MOST_OPERANDS = PIECES_MOST_INPUTS + 2, /* an output, and a mask after it */
};

struct pieces {
    const struct elementwise *loop;
    elementwise_kernel *kernel; /* NULL: the inner loop */
    /* Operands of another dtype than the loop's; NULL: of the loop's, or converted by the kernel. */
    convert_elements *convert[PIECES_MOST_OPERANDS];
    size_t out_size; /* bytes of an element of the output, which is not masked if it is converted */
    bool is_masked;  /* elements whose mask, a bool, is false are neither computed nor written */
    bool is_sparse;  /* few of them are not */
    ptrdiff_t most;  /* elements of a piece: pieces_most_elements() */
};

static inline void pieces_compute(const struct pieces *pieces, char *data[], const ptrdiff_t step[],
                                  ptrdiff_t n)
{
    if (pieces->kernel != NULL) {
        pieces->kernel(data, step, n);
    } else {
        pieces->loop->function(data, &n, step, pieces->loop->function_data);
    }
}

/* The most elements of a piece, as that of each operand that is copied fits. */
ptrdiff_t pieces_most_elements(const struct pieces *pieces);

/* Changes `row`. */
void pieces_run(const struct pieces *pieces, char *row[], const ptrdiff_t step[], ptrdiff_t n);

#endif
