/* Arithmetic on plain memory: what a kernel is, and how the best one for this processor is found.
 * Knows nothing of Python, NumPy, threads or devices. */
#ifndef NUMC_KERNELS_H
#define NUMC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

/* Operand i of element k lies at data[i] + k * step[i], steps in bytes; outputs follow the inputs.
 * The caller guarantees n > 0, element-aligned operands, and that every output coincides exactly
 * with an input or shares no byte with it: elements may be computed in any order. */
typedef void elementwise_kernel(char *const data[], const ptrdiff_t step[], ptrdiff_t n);

struct kernel {
    const char *op;
    char kind; /* 'i': integers modulo 2^n, one kernel for signed and unsigned; 'f': IEEE floats */
    size_t item_size;
    elementwise_kernel *cached;
    elementwise_kernel *streaming; /* bypasses the cache when storing; NULL where the ISA cannot */
};

/* The kernels that one instruction set contributes; ends with a NULL row. */
struct kernels {
    const char *isa;
    const struct kernel *const *rows;
};

/* Restricts the choice to the instruction sets up to `isa`; NULL lifts the restriction.
 * Returns 0, or -1 when this build has no such instruction set. */
int kernels_restrict(const char *isa);

/* The best kernel of the processor, or NULL where none is better than NumPy's own loop. */
const struct kernel *kernels_find(const char *op, char kind, size_t item_size);

/* Elements in two dimensions: (r, c) lies at data + r * row_step + c * column_step. */
struct tile {
    const char *data;
    ptrdiff_t rows, columns, row_step, column_step;
};

/* Copies them to `to`, row by row, without gaps. */
void tile_pack(size_t item_size, const struct tile *tile, char *to);

/* The other way round: tile->data is without gaps, the steps are those of `to`. */
void tile_unpack(size_t item_size, const struct tile *tile, char *to);

/* Whether none of n floats of 2, 4 or 8 bytes, next to each other, is infinite or not a number. */
bool floats_are_finite(size_t size, const char *data, ptrdiff_t n);

/* The instruction sets of this build in ascending order, the baseline first; NULL past the last. */
const char *kernels_isa(int index);

/* The highest instruction set in use. */
const char *kernels_selected_isa(void);

/* Every row of an instruction set, whatever is selected; NULL if the processor lacks it. */
const struct kernels *kernels_of_isa(const char *isa);

#endif
