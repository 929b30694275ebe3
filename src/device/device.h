/* The interface of a device that multiplies matrices and computes with their elements, as a struct of
 * functions. Independent of Python, NumPy and CUDA. */
#ifndef NUMC_DEVICE_H
#define NUMC_DEVICE_H

#include "kernels/matmul/product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_VERSION = 7 }; /* of this file: the extension and the libraries must agree on it */

enum status {
    STATUS_OK,
    STATUS_NO_HOST_MEMORY,
    STATUS_NO_DEVICE_MEMORY,
    STATUS_UNSUPPORTED, /* this device computes no such task */
    STATUS_UNAVAILABLE, /* no device, no driver, a library is missing */
    STATUS_FAILED,      /* this time */
    STATUS_LOST         /* for the rest of the process */
};

/* ---- what is to be computed ---- */

enum element_kind {
    ELEMENT_BOOL,
    ELEMENT_INTEGER, /* modulo 2^n: one kernel serves signed and unsigned */
    ELEMENT_FLOAT,   /* 2 (accumulated in float), 4 or 8 bytes */
    ELEMENT_COMPLEX  /* 8 or 16 bytes */
};

struct element_type {
    enum element_kind kind;
    size_t size;
};

enum precision {
    PRECISION_IEEE = 1,
    PRECISION_TF32, /* float and its complex: 10 bits of mantissa are multiplied */
    PRECISION_BF16  /* likewise, 7 bits */
};

enum gemm_kernel { GEMM_AUTO = 1, GEMM_CUBLAS, GEMM_TILED };

struct policy;

/* No extent of the product is 0. */
struct matmul_task {
    const struct policy *policy; /* for threads that copy or scan the result */
    struct element_type type;
    enum precision precision;
    enum gemm_kernel kernel;
    struct product product;
};

/* ---- the same, of matrices that lie on the device without gaps ---- */

/* Not a pointer: the host must not touch what is there. */
typedef uintptr_t device_address;

/* m by k (or k by n) row by row; `transposed`: column by column. */
struct stored {
    device_address at;
    bool transposed;
    ptrdiff_t batch_step; /* elements; 0: one matrix for all */
};

struct gemm {
    struct element_type type;
    enum precision precision;
    enum gemm_kernel kernel;
    ptrdiff_t batch, m, n, k;
    struct stored a, b;
    ptrdiff_t a_row; /* elements from row to row of one matrix a that is stored by rows; 0: k */
    bool adds;       /* to c, instead of overwriting it: floats of 4 and 8 bytes, complex numbers */
    device_address c;     /* m by n, row by row, matrix after matrix */
    device_address spare; /* scratch memory of c's size; 0: none, see gemm_has_spare() */
};

static inline ptrdiff_t gemm_a_row(const struct gemm *gemm)
{
    return gemm->a_row != 0 ? gemm->a_row : gemm->k;
}

/* Complex products with long sums need scratch memory: slabs are summed apart, to be as exact as a
 * CPU. */
static inline bool gemm_has_spare(struct element_type type, ptrdiff_t k)
{
    return type.kind == ELEMENT_COMPLEX && k > 512;
}

/* ---- element-wise work ---- */

enum elementwise_op {
    ELEMENTWISE_ADD,
    ELEMENTWISE_SUBTRACT,
    ELEMENTWISE_MULTIPLY,
    ELEMENTWISE_DIVIDE /* of floats and complex numbers */
};

enum { ELEMENTWISE_INPUTS = 2, ELEMENTWISE_OPERANDS = 3, ELEMENTWISE_MOST_AXES = 16 };

struct elementwise_axis {
    ptrdiff_t n, step[ELEMENTWISE_OPERANDS]; /* bytes */
};

/* Each element of the output, the last operand, is computed from one of each input. The result has
 * NumPy's bits, so it does not depend on the device. The output may coincide with inputs; else it
 * shares no byte with them. */
struct elementwise_work {
    enum elementwise_op op;
    struct element_type type;
    bool fuses; /* products of complex numbers: the second of two products is not rounded */
    device_address at[ELEMENTWISE_OPERANDS]; /* 0: an input that is one number, */
    uint64_t number[ELEMENTWISE_INPUTS][2];  /* this */
    int axes;                                /* at least one, the innermost last; none is empty */
    struct elementwise_axis axis[ELEMENTWISE_MOST_AXES];
};

/* Floating-point exceptions, as bits; a device notes each in a word of its own. */
enum {
    RAISED_INVALID = 1 << 0,
    RAISED_DIVIDE_BY_ZERO = 1 << 1,
    RAISED_OVERFLOW = 1 << 2,
    RAISED_UNDERFLOW = 1 << 3,
    RAISED_WORDS = 4
};

/* ---- the device ---- */

/* Rows that are `step` bytes apart on the host, and contiguous on the device. */
struct copied_rows {
    size_t bytes, count, step;
};

static inline struct copied_rows one_row(size_t bytes)
{
    return (struct copied_rows){bytes, 1, bytes};
}

/* Memory of the host, by how the device reaches it. */
enum host_memory {
    HOST_ORDINARY, /* not at all: it is copied through pinned memory */
    HOST_PINNED,   /* copies need no staging, and kernels may use its address */
    HOST_MANAGED   /* likewise, and its pages move to whoever touches them */
};

/* What kernels use to reach pinned and managed memory. */
static inline device_address device_address_of(const void *data)
{
    return (device_address)data;
}

/* Operations of a stream run asynchronously, in order. */
struct stream;
/* A mark in a stream, see `record`. */
struct event;

/* Every entry may be called from several threads at once, those after `leave` between `enter` and
 * `leave` only. Releases accept NULL or 0 and do not fail. */
struct device {
    const char *name;
    const char *model; /* and its driver: a part of the key of measured rates */
    size_t memory;     /* bytes */
    int number;        /* among all devices: whoever opened it sets it */
    /* Why it has no managed memory that the host may touch while it computes; NULL: it has. */
    const char *no_managed;

    /* Whether it can compute the task; if not, `why` says what it cannot. */
    bool (*supports)(struct device *, const struct matmul_task *task, const char **why);
    /* Asks the driver, which takes a while: see host_memory_of() for memory that we gave. */
    enum host_memory (*memory_of)(struct device *, const void *data);
    /* A message about the last failure. */
    void (*explain)(struct device *, char *text, size_t size);

    /* Select the device on the calling thread, and restore the one before; `leave` gets what
     * `enter` returned. */
    int (*enter)(struct device *);
    void (*leave)(struct device *, int before);

    /* Ordered by the stream: only its operations between both may use the memory. */
    enum status (*alloc)(struct device *, struct stream *, size_t bytes, device_address *);
    void (*release)(struct device *, struct stream *, device_address);
    enum status (*alloc_pinned)(struct device *, size_t bytes, void **);
    void (*release_pinned)(struct device *, void *);
    /* Its contents are undefined. Released when no operation uses it any more. */
    enum status (*alloc_managed)(struct device *, size_t bytes, void **);
    void (*release_managed)(struct device *, void *);
    /* Bytes of the device's memory that nobody has taken; managed pages count where they lie. */
    enum status (*free_memory)(struct device *, size_t *bytes);
    enum status (*new_stream)(struct device *, struct stream **);
    void (*release_stream)(struct device *, struct stream *);
    enum status (*new_event)(struct device *, struct event **);
    void (*release_event)(struct device *, struct event *);

    /* The event happens when all that is in the stream by now is done. */
    enum status (*record)(struct device *, struct event *, struct stream *);
    /* Later operations of the stream wait for the event. */
    enum status (*follow)(struct device *, struct stream *, struct event *);
    enum status (*wait)(struct device *, struct event *);
    /* Whether it has happened, without waiting. */
    enum status (*poll)(struct device *, struct event *, bool *happened);
    /* Waits for all that is in the stream. */
    enum status (*drain)(struct device *, struct stream *);
    /* Waits for all that anybody in this process has told the device to do. */
    enum status (*finish)(struct device *);

    /* Host memory must be pinned, and must not change until the copy is done. */
    enum status (*upload)(struct device *, struct stream *, device_address to, const void *from,
                          struct copied_rows);
    enum status (*download)(struct device *, struct stream *, void *to, device_address from,
                            struct copied_rows);
    /* Moves the pages of managed memory, sooner than by faults. Only a hint: operations find them
     * wherever they are. */
    enum status (*move)(struct device *, struct stream *, const void *data, size_t bytes,
                        bool to_device);
    /* Whether the host has touched managed memory since it was moved to the device, by some of its
     * pages. False where that cannot be known. */
    bool (*came_back)(struct device *, const void *data, size_t bytes);
    enum status (*multiply)(struct device *, struct stream *, const struct gemm *);
    /* Sets `nonfinite`, which is pinned, if one of the floats is infinite or a NaN. */
    enum status (*scan)(struct device *, struct stream *, struct element_type, device_address at,
                        ptrdiff_t count, bool *nonfinite);
    /* Makes c symmetric: what is above the diagonals is copied to below them. */
    enum status (*mirror)(struct device *, struct stream *, const struct gemm *);
    /* Sets those of the words `raised`, in pinned memory, whose exceptions there are, to 1. */
    enum status (*compute)(struct device *, struct stream *, const struct elementwise_work *,
                           uint32_t raised[RAISED_WORDS]);
};

/* ---- a library of devices of one kind, loaded when one of them is asked for first ---- */

struct device_library {
    /* The number of devices. 0 or less: `why` says what is missing. Takes no memory on any. */
    int (*count)(char *why, size_t size);
    void (*describe)(int ordinal, char *text, size_t size);
    /* Makes device `ordinal`, which lives as long as the process. `blas`: paths or names of the
     * vendor's BLAS (cuBLAS) to be tried, the last NULL; the device may compute without any. */
    enum status (*open)(int ordinal, const char *const blas[], struct device **device, char *why,
                        size_t size);
};

/* What the library of kind "cuda" exports as numc_cuda_library. NULL if it was built from another
 * version of this file. */
typedef const struct device_library *device_entry(int version);

#endif
