/* Kernels for matrix products: packing of panels, and the micro-kernel that computes a register tile.
 * Knows nothing of Python, NumPy, threads or block sizes. */
#ifndef NUMC_MATMUL_KERNELS_H
#define NUMC_MATMUL_KERNELS_H

#include "product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_DOT_ROWS = 16 };

/* Products of bool as bit matrices, 64 elements to a word; a sum is an OR. A packed row of a has one bit
 * for each k, a packed row of b (one k) one bit for each column. */
struct matmul_bits {
    /* Packs rows whose elements are `step` apart; the bits past `count` are zero. */
    void (*pack)(uint64_t *bits, ptrdiff_t words, const char *from, ptrdiff_t row, ptrdiff_t step,
                 ptrdiff_t rows, ptrdiff_t count);
    /* Computes all columns of `rows` rows of c. Whether all of their elements are true. */
    bool (*multiply)(const uint64_t *a, ptrdiff_t a_words, const uint64_t *b, ptrdiff_t b_words,
                     const struct product *x, ptrdiff_t first_row, ptrdiff_t rows);
    /* The whole product for at most MOST_DOT_ROWS rows of a, where k is contiguous in b. `room` takes
     * the packed rows of a, one word of each row after the other. */
    void (*dots)(const struct product *x, uint64_t *room);
    /* All products of a stack, unpacked; fast where columns of b are contiguous, or k in both. */
    void (*direct)(const struct product *x);
};

/* Products of few columns of floats, which take as long as reading a does. b is contiguous along k, a along k
 * for `dots` and along its rows for `sums`, with a_step bytes between the others. So are the sums: contiguous
 * along columns, or along rows. */
struct thin_product {
    const char *a, *b;
    ptrdiff_t a_step, b_step;
    char *sums;
    ptrdiff_t sums_step;
    ptrdiff_t rows, columns, k;
    bool accumulate;
};

/* A matrix of complex numbers to be made one of floats with twice the columns, `step` bytes each. */
struct thin_complex {
    const char *from;
    ptrdiff_t k_step, column_step, k, columns, step;
    bool for_dots, conjugated, conjugates_a;
};

struct thin_kernels {
    size_t item_size;
    ptrdiff_t least_k; /* of dots */
    void (*dots)(const struct thin_product *x);
    void (*sums)(const struct thin_product *x);
    /* Complex products are such of floats: a's parts are twice as many elements along k, or rows. */
    void (*pack_complex)(const struct thin_complex *x, char *to);
    void (*combine)(const char *by_re, const char *by_im, bool conjugates_a, ptrdiff_t rows,
                    char *c, ptrdiff_t c_step); /* a column of c, of the two columns of `sums` */
    void (*add)(char *to, const char *from, ptrdiff_t n);
};

enum { DOTS_FROM_BYTES = 32 };

/* The kernel of one dtype on one instruction set. A panel holds `rows` rows of a, or `columns` columns of b,
 * in the kernel's own format, with the elements of one group of k contiguous. Sums of floats run over k
 * in ascending order in `tile` and in `direct`: bits depend neither on blocks nor on which of both is used. */
struct matmul_kernel {
    char kind; /* 'i': integers modulo 2^n; 'e': halves, summed in float; 'f': floats; 'b': bits */
    size_t item_size;
    bool is_scalar;          /* computes one element after the other, without vectors */
    bool (*prepare)(void);   /* of large products: called before use; false: cannot be used */
    size_t sum_size;         /* bytes of a tile's element */
    ptrdiff_t rows, columns; /* of a register tile; 0: only `direct` exists */
    ptrdiff_t group;        /* consecutive k packed together; the last group is padded with zeros */
    ptrdiff_t extra_groups; /* extra groups of k; 1: Winograd's correction, see pack_template.h */
    size_t a_group_bytes;   /* of one row */
    size_t b_group_bytes;   /* of one column */
    ptrdiff_t panel_bytes;  /* of b, per call of `tile`; 0: PANEL_BYTES of the engine */

    /* Packs `count` rows or columns into a panel, and pads it with copies of the last: zeros
     * times infinities would raise flags. */
    void (*pack_a)(char *panel, const char *from, ptrdiff_t row, ptrdiff_t k_step, ptrdiff_t count,
                   ptrdiff_t k);
    void (*pack_b)(char *panel, const char *from, ptrdiff_t column, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k);
    /* Each thread calls these before its first and after its last tile. May be NULL. */
    void (*begin)(void), (*end)(void);
    /* Computes a whole register tile into c, whose columns are contiguous. */
    void (*tile)(const char *a, const char *b, ptrdiff_t groups, char *c, ptrdiff_t c_row,
                 bool accumulate);
    /* Converts sums, whose columns are contiguous, to elements of the result; NULL: they are
     * elements already. */
    void (*finish)(const char *sums, ptrdiff_t sums_row, char *c, ptrdiff_t c_row,
                   ptrdiff_t c_column, ptrdiff_t rows, ptrdiff_t columns);
    /* The whole product, unpacked; fast where columns are contiguous in b and c, or k in a and b.
     * NULL in kernels for large products only. */
    void (*direct)(const struct product *x);
    /* `direct` for a whole stack in one call. Rows of c have stack_row_bytes or twice as many, rows of b
     * and c are contiguous, m is a multiple of 4. May be NULL. */
    ptrdiff_t stack_row_bytes;
    void (*stack)(const struct product *x);
    /* A stack of sums, m and n 1, of contiguous k of at least DOTS_FROM_BYTES. NULL: the fallback's take no longer. */
    void (*dots)(const struct product *x);
    const struct thin_kernels *thin; /* of floats that BLAS computes, too; may be NULL */
    const struct matmul_bits *bits;  /* of bool; NULL for all others */
};

/* The best of the processor, within kernels_restrict(); NULL if there is none. `large`: of those that pay for
 * large products alone. */
const struct matmul_kernel *matmul_kernel_find(char kind, size_t item_size, bool large);

/* Kernel number `index` of an instruction set, whatever is selected; NULL past the last, or if the
 * processor lacks it. */
const struct matmul_kernel *matmul_kernel_of_isa(const char *isa, int index);

#endif
