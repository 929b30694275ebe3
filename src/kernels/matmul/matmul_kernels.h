/* What a matrix product is made of: packed panels, and tiles of the result computed from them.
 * Knows nothing of Python, NumPy, threads or block sizes. */
#ifndef NUMC_MATMUL_KERNELS_H
#define NUMC_MATMUL_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* c[i, j] = sum over k of a[i, k] * b[k, j]; steps in bytes, of any sign or zero. */
struct matrices {
    const char *a, *b;
    char *c;
    ptrdiff_t a_row, a_k, b_k, b_column, c_row, c_column;
    ptrdiff_t m, k, n;
};

/* Matrix i of a stack begins i * step after the first one. */
struct stack {
    ptrdiff_t count;
    ptrdiff_t a, b, c;
};

/* How one dtype is multiplied on one instruction set. A panel holds `rows` rows of a, or `columns`
 * columns of b, in a form of the kernel's own, the elements of one group of k next to each other.
 * Sums of floats run over k in ascending order, in tiles as in `direct`: the result depends neither
 * on blocks nor on which of them computed it. */
struct matmul_kernel {
    char kind; /* 'i': integers modulo 2^n; 'e': half, summed in float; 'f': floats */
    size_t item_size;
    size_t sum_size;         /* of an element of a tile */
    ptrdiff_t rows, columns; /* of a tile; 0: there is only `direct` */
    ptrdiff_t group;       /* so many k are packed together; the last group is filled with zeros */
    ptrdiff_t more_groups; /* that a panel has beside those of k */
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
    void (*direct)(const struct matrices *x);
    /* The same for a stack, without a call for each; false: not for this shape. May be NULL. */
    bool (*stack)(const struct matrices *x, const struct stack *stack);
};

enum { MOST_DOT_ROWS = 16 };

/* Truth values, 64 to a word; sums are ORs. A row of `words` words belongs to a row of a, its bits to
 * k, and another to a k of b, its bits to columns. */
struct matmul_bits {
    /* Packs rows whose elements are `step` apart; the bits past `count` are zero. */
    void (*pack)(uint64_t *bits, ptrdiff_t words, const char *from, ptrdiff_t row, ptrdiff_t step,
                 ptrdiff_t rows, ptrdiff_t count);
    /* Computes all columns of `rows` rows of c. */
    void (*multiply)(const uint64_t *a, ptrdiff_t a_words, const uint64_t *b, ptrdiff_t b_words,
                     const struct matrices *x, ptrdiff_t first_row, ptrdiff_t rows);
    /* The whole product of up to MOST_DOT_ROWS rows, given room for their bits, the words of one k
     * next to each other; k of b next to each other. */
    void (*dots)(const struct matrices *x, uint64_t *room);
    /* The whole product, unpacked; fast where the columns of b are next to each other. */
    void (*direct)(const struct matrices *x);
};

/* What one instruction set contributes; the rows end with NULL, and `bits` may be NULL. */
struct matmul_kernels {
    const struct matmul_kernel *const *rows;
    const struct matmul_bits *bits;
    bool only_large;       /* they do not pay for small products */
    bool (*prepare)(void); /* comes first, once; false: they cannot be used. May be NULL */
};

/* The best of the processor, within kernels_restrict(); NULL where no instruction set has any. */
const struct matmul_kernel *matmul_kernel_find(char kind, size_t item_size, bool large);
const struct matmul_bits *matmul_bits_find(void);

/* All of an instruction set, whatever is selected; NULL if the processor lacks it. */
const struct matmul_kernels *matmul_kernels_of_isa(const char *isa);

#endif
