/* A device that multiplies matrices: what it is asked, and what it answers.
 * Knows nothing of Python, NumPy, OpenMP or CUDA. */
#ifndef NUMC_DEVICE_H
#define NUMC_DEVICE_H

#include "kernels/matmul/product.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_VERSION = 2 }; /* of everything in this file, which two libraries are built from */

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
    const struct policy *policy; /* of threads that copy, or look at the result */
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
    device_address c;     /* m by n, row by row, matrix after matrix */
    device_address spare; /* as much memory to compute in; 0: none, see gemm_has_spare */
};

/* Long sums of complex numbers are as exact as a processor's only if parts of them are summed apart. */
static inline bool gemm_has_spare(struct element_type type, ptrdiff_t k)
{
    return type.kind == ELEMENT_COMPLEX && k > 512;
}

/* ---- the device ---- */

/* What is put into a stream is done in that order, some time after the call returns. */
struct stream;
/* A mark in a stream, see `record`. */
struct event;

/* Every entry may be called from several threads at once, those after `leave` between `enter` and
 * `leave` only. Releases accept NULL or 0 and do not fail. */
struct device {
    const char *name;
    const char *model; /* with its driver: what rates of it belong to */
    size_t memory;     /* bytes that it has */

    /* Whether it can compute the task; if not, `why` says what it cannot. */
    bool (*supports)(struct device *, const struct matmul_task *task, const char **why);
    /* Whether device and host can copy from and to this memory without a detour. */
    bool (*is_pinned)(struct device *, const void *data);
    /* What went wrong last, for humans. */
    void (*explain)(struct device *, char *text, size_t size);

    /* The calling thread begins and ends to use the device; `leave` gets what `enter` returned. */
    int (*enter)(struct device *);
    void (*leave)(struct device *, int before);

    /* The memory may be used, and is given back, in the order of the stream. */
    enum status (*alloc)(struct device *, struct stream *, size_t bytes, device_address *);
    void (*release)(struct device *, struct stream *, device_address);
    enum status (*alloc_pinned)(struct device *, size_t bytes, void **);
    void (*release_pinned)(struct device *, void *);
    enum status (*new_stream)(struct device *, struct stream **);
    void (*release_stream)(struct device *, struct stream *);
    enum status (*new_event)(struct device *, struct event **);
    void (*release_event)(struct device *, struct event *);

    /* The event has happened when all is done that is in the stream by now. */
    enum status (*record)(struct device *, struct event *, struct stream *);
    /* What is put into the stream from now on is done after the event. */
    enum status (*follow)(struct device *, struct stream *, struct event *);
    enum status (*wait)(struct device *, struct event *);
    /* Whether it has happened, without waiting. */
    enum status (*poll)(struct device *, struct event *, bool *happened);
    /* Waits for all that is in the stream. */
    enum status (*drain)(struct device *, struct stream *);

    /* `from` and `to` on the host are pinned, and stay as they are until the copy is done. */
    enum status (*upload)(struct device *, struct stream *, device_address to, const void *from,
                          size_t bytes);
    enum status (*download)(struct device *, struct stream *, void *to, device_address from,
                            size_t bytes);
    enum status (*multiply)(struct device *, struct stream *, const struct gemm *);
};

#endif
