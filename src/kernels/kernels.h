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

/* Converts n elements, `step` bytes apart, to contiguous ones. */
typedef void convert_elements(const char *from, ptrdiff_t step, void *to, ptrdiff_t n);

struct kernel {
    const char *op;
    /* 'i': integers modulo 2^n, one kernel for signed and unsigned; 'f': IEEE floats. Quotients are
     * doubles: of signed integers 'i', unsigned 'u', bools 'b'. */
    char kind;
    size_t item_size; /* of the inputs */
    elementwise_kernel *cached;
    elementwise_kernel *streaming; /* bypasses the cache when storing, which kernels_fence() ends;
                                      NULL where the ISA cannot */
    const struct mixed_kernel *mixed; /* up to a row of NULL, pairs first; NULL: there are none */
};

/* A kernel that converts inputs in registers, as `convert` does; NULL: those of its own dtype. Fast if elements are
 * contiguous, or, where nothing is converted, repeated. */
struct mixed_kernel {
    convert_elements *convert[2];
    elementwise_kernel *cached, *streaming;
};

struct element_conversion {
    char kind; /* as numpy.dtype.kind */
    size_t item_size;
    char to_kind; /* 'i': integers modulo 2^n; 'f': floats; 'c': complex */
    size_t to_size;
    convert_elements *convert;
};

/* A reduction has three steps: reduce elements to accumulators, combine accumulators, store the result.
 * Accumulators are as precise as NumPy's: float32 for float16, 64 bits for integers. Floats are added in
 * NumPy's order: along a result's own elements in halves, down to leaves (reduction_half); down the
 * columns of rows one after the other. Integers may be added in any order. */
enum {
    REDUCTION_LEAF_PARTS = 128, /* of the halves; a part is a real number: complex ones have two */
    ROW_BYTES = 32768           /* accumulators of a row that stay in the second-level cache */
};

/* How many of more than REDUCTION_LEAF_PARTS parts are in the first half. */
static inline ptrdiff_t reduction_half(ptrdiff_t parts)
{
    return parts / 2 / 8 * 8;
}

/* Converts n elements, `step` bytes apart, to contiguous ones of a reduction's dtype; `onto`: adds them to
 * what is there. */
typedef void convert_addends(const char *from, ptrdiff_t step, void *to, ptrdiff_t n, bool onto);

struct conversion_kernel {
    char kind; /* as numpy.dtype.kind */
    size_t item_size;
    convert_addends *convert;
};

struct reduction_kernel {
    const char *op;
    char kind; /* as numpy.dtype.kind */
    size_t item_size;
    size_t sum_size;       /* bytes of one result's accumulator: twice as many if complex */
    bool any_order;        /* has the same result in any order */
    int final;             /* bools: the result that ends a search; -1: none */
    bool zeros_tie;        /* which zero results depends on the order, where there are both */
    bool sums_are_results; /* store() copies */
    bool repeats;          /* an element that is there already changes nothing */
    bool alone_changes;    /* one element may not be its own result: gcd(0, -3); bools */
    bool gets_cheaper;     /* the more elements a result is of, the less the next one takes: gcd */
    const struct conversion_kernel *conversions; /* up to a row of NULL; NULL: there are none */
    /* `count` reductions of n > 0 elements each, which begin `next` bytes apart. `from_memory`: the operand
     * exceeds the caches, so kernels read in the order of addresses. */
    void (*reduce_each)(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t n, ptrdiff_t next, ptrdiff_t count, bool from_memory, void *sums);
    /* The same, onto what is in `sums`. NULL: store() combines them. */
    void (*reduce_each_onto)(const struct reduction_kernel *kernel, const char *data,
                             ptrdiff_t step, ptrdiff_t n, ptrdiff_t next, ptrdiff_t count,
                             void *sums);
    /* One reduction of contiguous elements, of those whose mask, contiguous bools, is true. NULL: copying all with
     * neutral ones in the place of others takes no longer. */
    void (*reduce_masked)(const struct reduction_kernel *kernel, const char *data, const char *mask,
                          ptrdiff_t n, void *sums);
    /* Reduces the columns, `next` bytes apart, of rows, `step` bytes apart. `onto`: combines them with what is in
     * `sums`. */
    void (*reduce_rows)(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                        ptrdiff_t rows, ptrdiff_t next, ptrdiff_t columns, bool from_memory,
                        bool onto, void *sums);
    /* `count` segments of elements `step` bytes apart, whose results are stored as items of `out_size`
     * bytes: that of elements bounds[k] up to bounds[k + 1], or of the first of them alone where there is
     * none. Floats: the first one, to which the sum of the others is added. */
    void (*reduce_segments)(const struct reduction_kernel *kernel, const char *data, ptrdiff_t step,
                            const ptrdiff_t bounds[], ptrdiff_t count, bool from_memory, char *out,
                            ptrdiff_t out_step, size_t out_size);
    /* The sum of each run of elements whose mask, a bool, is true; returns how many there are. NULL where
     * the order does not matter. */
    ptrdiff_t (*reduce_runs)(const struct reduction_kernel *kernel, const char *data,
                             ptrdiff_t step, const char *mask, ptrdiff_t mask_step, ptrdiff_t n,
                             void *sums);
    /* Two halves. */
    void (*combine)(const struct reduction_kernel *kernel, void *into, const void *later,
                    size_t bytes);
    /* Writes sums as items of `out_size` bytes; `onto`: combines them with the items in `out`, one after
     * the other if that is always the same one. */
    void (*store)(const struct reduction_kernel *kernel, const void *sums, ptrdiff_t n, char *out,
                  ptrdiff_t step, size_t out_size, bool onto);
    /* Running result: out[k] = *before op in[0] op ... op in[k]. NULL but for integers. */
    void (*accumulate)(const char *before, const char *in, ptrdiff_t in_step, char *out,
                       ptrdiff_t out_step, ptrdiff_t n);
};

static inline int reduction_parts(const struct reduction_kernel *kernel)
{
    return kernel->kind == 'c' ? 2 : 1;
}

/* What one instruction set contributes; all lists end with a row of NULL. */
struct kernels {
    const char *isa;
    const struct kernel *const *rows;
    const struct element_conversion *conversions;
    const struct reduction_kernel *const *reductions;
};

/* Restricts the choice to the instruction sets up to `isa`; NULL lifts the restriction.
 * Returns 0, or -1 when this build has no such instruction set. */
int kernels_restrict(const char *isa);

/* The best kernel of the processor, or NULL where none is better than NumPy's own loop. */
const struct kernel *kernels_find(const char *op, char kind, size_t item_size);

/* How elements are converted, as NumPy casts them; NULL: not here. */
convert_elements *conversion_find(char kind, size_t item_size, char to_kind, size_t to_size);

/* The best reduction of the processor, or NULL. */
const struct reduction_kernel *reduction_kernel_find(const char *op, char kind, size_t item_size);

/* What this thread has stored past the cache is seen by others from now on. */
void kernels_fence(void);

/* The instruction sets of this build in ascending order, the baseline first; NULL past the last. */
const char *kernels_isa(int index);

/* Whether kernels_isa(index) may be used. */
bool kernels_isa_is_selected(int index);

/* The highest instruction set in use. */
const char *kernels_selected_isa(void);

/* Every row of an instruction set, whatever is selected; NULL if the processor lacks it. */
const struct kernels *kernels_of_isa(const char *isa);

#endif
