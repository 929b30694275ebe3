/* Arithmetic on plain memory: what a kernel is, and how the best one for this processor is found.
 * Knows nothing of Python, NumPy, threads or devices. */
#ifndef NUMC_KERNELS_H
#define NUMC_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Operand i of element k lies at data[i] + k * step[i], steps in bytes; outputs follow the inputs.
 * The caller guarantees n > 0, element-aligned operands, and that every output coincides exactly
 * with an input or shares no byte with it: elements may be computed in any order. */
typedef void elementwise_kernel(char *const data[], const ptrdiff_t step[], ptrdiff_t n);

struct kernel {
    const char *op;
    /* 'i': integers modulo 2^n, one kernel for signed and unsigned; 'f': IEEE floats. Quotients are
     * doubles: of signed integers 'i', unsigned 'u', bools 'b'. */
    char kind;
    size_t item_size; /* of the inputs */
    elementwise_kernel *cached;
    elementwise_kernel *streaming; /* bypasses the cache when storing; NULL where the ISA cannot */
};

/* A reduction takes three steps: elements become accumulators, accumulators are combined, and what is
 * left is stored. Accumulators are as precise as NumPy's: float32 for float16, 64 bits for integers.
 * Floats are added in pairs, along a tree that depends on nothing but the number of elements. Cut
 * where `leaf` divides the index by a power of two, and combined in pairs by index again, a
 * reduction has the bits that it has in one go; integers may be cut anywhere. */
enum {
    ACCUMULATORS_BYTES = 64, /* the accumulators of one reduction before they are folded into one */
    LEAF_ROWS = 16,          /* the leaf of reduce_rows */
    MOST_ROWS = 256,         /* that one call of reduce_rows takes */
    ROW_BYTES = 32768        /* accumulators of a row that stay in the second-level cache */
};

struct reduction_kernel {
    const char *op;
    char kind; /* 'i' and 'u': signed and unsigned integers; 'f': floats; 'c': complex */
    size_t item_size;
    size_t sum_size; /* of what one element becomes: two accumulators if complex */
    ptrdiff_t leaf;
    /* Reduces n > 0 elements to ACCUMULATORS_BYTES of accumulators. */
    void (*reduce)(const char *data, ptrdiff_t step, ptrdiff_t n, void *accumulators);
    /* Reduces n > 0 elements, `count` times, `next` bytes apart. */
    void (*reduce_each)(const char *data, ptrdiff_t step, ptrdiff_t n, ptrdiff_t next,
                        ptrdiff_t count, void *sums);
    /* Reduces the columns, `next` bytes apart, of up to MOST_ROWS rows, `step` bytes apart. With
     * `from_memory`, no cache holds them: integers then come one row after another. `scratch` is
     * aligned to a cache line and has the size that reduction_scratch_bytes() tells. */
    void (*reduce_rows)(const char *data, ptrdiff_t step, ptrdiff_t rows, ptrdiff_t next,
                        ptrdiff_t columns, bool from_memory, void *scratch, void *sums);
    void (*combine)(void *into, const void *later, size_t bytes);
    void (*fold)(const void *accumulators, void *sum);
    /* Writes sums as items of `out_size` bytes, or, with `onto`, combines them with what is there. */
    void (*store)(const void *sums, ptrdiff_t n, char *out, ptrdiff_t step, size_t out_size,
                  bool onto);
    /* out[k] = in[0] ... in[k], all combined with `carry`, for integers as wide as out; else NULL. */
    void (*accumulate)(uint64_t carry, const char *in, ptrdiff_t in_step, char *out,
                       ptrdiff_t out_step, ptrdiff_t n);
};

/* What one instruction set contributes; both lists end with a row of NULL. */
struct kernels {
    const char *isa;
    const struct kernel *const *rows;
    const struct reduction_kernel *const *reductions;
};

/* Restricts the choice to the instruction sets up to `isa`; NULL lifts the restriction.
 * Returns 0, or -1 when this build has no such instruction set. */
int kernels_restrict(const char *isa);

/* The best kernel of the processor, or NULL where none is better than NumPy's own loop. */
const struct kernel *kernels_find(const char *op, char kind, size_t item_size);

/* Likewise for reductions. */
const struct reduction_kernel *reduction_kernel_find(const char *op, char kind, size_t item_size);

/* Scratch memory of reduce_rows for rows of so many bytes of accumulators. */
size_t reduction_scratch_bytes(ptrdiff_t rows, size_t row_bytes);

/* The instruction sets of this build in ascending order, the baseline first; NULL past the last. */
const char *kernels_isa(int index);

/* Whether that one may be used. */
bool kernels_isa_is_selected(int index);

/* The highest instruction set in use. */
const char *kernels_selected_isa(void);

/* Every row of an instruction set, whatever is selected; NULL if the processor lacks it. */
const struct kernels *kernels_of_isa(const char *isa);

#endif
