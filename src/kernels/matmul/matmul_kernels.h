/* What a matrix product is made of: packed panels, and tiles of the result computed from them.
 * Knows nothing of Python, NumPy, threads or block sizes. */
#ifndef NUMC_MATMUL_KERNELS_H
#define NUMC_MATMUL_KERNELS_H

#include "product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MOST_DOT_ROWS = 16 };

/* Truth values, 64 to a word; sums are ORs. A row of `words` words belongs to a row of a, its bits to
 * k, and another to a k of b, its bits to columns. */
struct matmul_bits {
    /* Packs rows whose elements are `step` apart; the bits past `count` are zero. */
    void (*pack)(uint64_t *bits, ptrdiff_t words, const char *from, ptrdiff_t row, ptrdiff_t step,
                 ptrdiff_t rows, ptrdiff_t count);
    /* Computes all columns of `rows` rows of c. */
    void (*multiply)(const uint64_t *a, ptrdiff_t a_words, const uint64_t *b, ptrdiff_t b_words,
                     const struct product *x, ptrdiff_t first_row, ptrdiff_t rows);
    /* The whole product of up to MOST_DOT_ROWS rows, given room for their bits, the words of one k
     * next to each other; k of b next to each other. */
    void (*dots)(const struct product *x, uint64_t *room);
    /* The whole product, unpacked; fast where the columns of b are next to each other. */
    void (*direct)(const struct product *x);
};

/* How one dtype is multiplied on one instruction set. A panel holds `rows` rows of a, or `columns`
 * columns of b, in a form of the kernel's own, the elements of one group of k next to each other.
 * Sums of floats run over k in ascending order, in tiles as in `direct`: the result depends neither
 * on blocks nor on which of them computed it. */
struct matmul_kernel {
    char
        kind; /* 'i': integers modulo 2^n; 'e': half, summed in float; 'f': floats; 'b': bits only */
    size_t item_size;
    bool (*prepare)(void);   /* comes first, once; false: it cannot be used. May be NULL */
    size_t sum_size;         /* of an element of a tile */
    ptrdiff_t rows, columns; /* of a tile; 0: there is only `direct` */
    ptrdiff_t group; /* so many k are packed together; the last group is filled with zeros */
    ptrdiff_t
        extra_groups; /* of a panel; 1: the correction of Winograd's product, see matmul_pack.h */
    size_t a_group_bytes;  /* of one row */
    size_t b_group_bytes;  /* of one column */
    ptrdiff_t panel_bytes; /* of b, for a tile at a time; 0: what the first cache holds */

    /* Packs `count` rows or columns into a panel, and fills it up with copies of the last of them:
     * zeros would raise flags when they meet infinities. */
    void (*pack_a)(char *panel, const char *from, ptrdiff_t row, ptrdiff_t k_step, ptrdiff_t count,
                   ptrdiff_t k);
    void (*pack_b)(char *panel, const char *from, ptrdiff_t column, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k);
    /* What a thread calls before tiles, and after them. May be NULL. */
    void (*begin)(void), (*end)(void);
    /* Computes a whole tile; its columns are next to each other. */
    void (*tile)(const char *a, const char *b, ptrdiff_t groups, char *c, ptrdiff_t c_row,
                 bool accumulate);
    /* Turns sums, whose columns are next to each other, into elements of the result; NULL: they are
     * elements. */
    void (*finish)(const char *sums, ptrdiff_t sums_row, char *c, ptrdiff_t c_row,
                   ptrdiff_t c_column, ptrdiff_t rows, ptrdiff_t columns);
    /* The whole product, unpacked; fast where the columns of b and of c, or k in a and in b, are next
     * to each other. NULL in kernels that are for large products only. */
    void (*direct)(const struct product *x);
    /* The same for a whole stack, without a call for each: rows of c are of stack_row_bytes or twice as
     * many, those of b and c are contiguous, and m is a multiple of 4. May be NULL. */
    ptrdiff_t stack_row_bytes;
    void (*stack)(const struct product *x);
    const struct matmul_bits *bits; /* of truth values; NULL for all others */
};

/* The best of the processor, within kernels_restrict(); NULL where no instruction set has any. Only with
 * `large` those that do not pay for small products. */
const struct matmul_kernel *matmul_kernel_find(char kind, size_t item_size, bool large);

/* Kernel number `index` of an instruction set, whatever is selected; NULL past the last, or if the processor lacks
 * it. */
const struct matmul_kernel *matmul_kernel_of_isa(const char *isa, int index);

#endif
