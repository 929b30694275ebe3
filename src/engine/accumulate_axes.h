/* Running results along one axis of whole operands, on all cores. */
#ifndef NUMC_ACCUMULATE_AXES_H
#define NUMC_ACCUMULATE_AXES_H

#include "elementwise.h"
#include "gather.h"

/* Along one axis, out[0] = in[0] and out[k] = out[k - 1] op in[k]: so for each of the lines that the
 * kept axes number. `in` and `out` coincide or share no byte. */
struct accumulated_axes {
    const struct elementwise *loop;        /* of two inputs and an output of one dtype */
    const struct reduction_kernel *kernel; /* that accumulates in its stead; NULL: none */
    elementwise_kernel *running;           /* of one line, in the loop's stead; NULL: none */
    convert_elements *convert; /* of elements of another dtype than the loop's; NULL: of that */
    bool takes_rows;           /* the loop has the same bits for operands with any steps */
    void *hook_data;           /* of the call */
    const char *in;
    char *out;
    struct axis along;
    struct axes kept; /* the output's closest first, as accumulate_order_axes() leaves them */
};

/* Where the closest kept axis is too short for rows, they go along the longest that is closer than the lines, or of all
 * if lines span little memory. */
void accumulate_order_axes(struct accumulated_axes *axes);

/* How the lines are cut up, and on how many threads. */
struct accumulation_cut {
    enum accumulation_way {
        BY_LINES,        /* one after the other */
        BY_JOINED_LINES, /* which also follow each other in the input: several are converted together */
        BY_TURNS,        /* a piece of each of several lines, whose elements lie side by side */
        BY_JOINED_TURNS, /* and between whose elements nothing lies: pieces are converted together */
        BY_ROWS,         /* each is the one before, op a row of the input */
        BY_BLOCKS,       /* of one line at a time */
    } way;
    int threads;
    ptrdiff_t width;  /* lines of a unit, along the closest kept axis */
    ptrdiff_t slices; /* units along that axis */
    int first_other;  /* kept axis from which on units have one index of each: 1, or 2 */
    ptrdiff_t units, chunk;
};
struct accumulation_cut accumulate_cut(const struct accumulated_axes *axes);

/* Whether a line's input and output span so little memory that rows across such lines are computed faster. */
bool accumulate_spans_little(const struct accumulated_axes *axes, struct axis along);

void accumulate_axes(const struct accumulated_axes *axes, const struct accumulation_cut *cut);

#endif
