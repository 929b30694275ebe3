/* From where on a device pays, and how a product is cut for it. Measured with benchmarks/gpu.py on one
 * H200 with 16 cores; the tables are in docs/decisions/0010-offload.md. */
#ifndef NUMC_DEVICE_CUTOFFS_H
#define NUMC_DEVICE_CUTOFFS_H

/* ---- placement ---- */

/* Fewer operations than this no device is asked about: even the question would show. */
#define LEAST_FLOAT_OPERATIONS 2e6
#define LEAST_INTEGER_OPERATIONS 1e6
/* What the processor does so soon stays there: no device is reached in less. */
#define LEAST_PROCESSOR_SECONDS 60e-6
/* The device must be faster by this factor: predictions are no more exact. */
#define LEAST_SPEEDUP 1.1
/* Products of a stack that are smaller than this are as fast as small ones. */
#define SMALL_PRODUCT_MULTIPLICATIONS (128.0 * 128 * 128)
/* Of the result's way back, what the rest of a product does not hide. */
#define DOWNLOAD_SHARE 0.25
/* What the first CUDA call of a process takes, and what is measured then. */
#define STARTUP_SECONDS 0.5

enum {
    /* ---- threads that copy ---- */

    /* More gain nothing, and while little is to be copied they only get into each other's way in the
     * driver: float32 2048 takes 1.4 ms with 6 threads, 1.7 with 12. */
    LEAST_COPY_THREADS = 5,
    MOST_COPY_THREADS = 12,
    BYTES_PER_COPY_THREAD = 32 << 20, /* for each one more */
    MOST_PAGE_THREADS = 4,            /* that only make pages; the rest is for other callers */
    MOST_RINGS = 24,                  /* of all callers at once */

    /* ---- chunks ---- */

    LEAST_CHUNK_BYTES = 512 << 10,
    LEAST_LAST_CHUNK_BYTES = 64 << 10,
    DIRECT_CHUNK_BYTES = 32 << 20, /* between pinned memory of the user's and the device */

    /* ---- panels ---- */

    /* Fewer rows leave multiprocessors idle, more make the ends longer where nothing overlaps. */
    PANEL_ROWS = 400,
    LEAST_PANEL_ROWS = 256,
    PANELS_OF_SMALL = 4,
    MOST_PANELS = 16,
    LEAST_TILE_BYTES = 1 << 20,
    SMALL_MATRIX_BYTES = 8 << 20, /* tiles of smaller ones are of several matrices, */
    STACK_BYTES = 8 << 20,        /* of so much in all */
    /* From this extent on a and b come in turns: float32, all integers and complex numbers; float64. */
    LEAST_TURNS_EXTENT = 4096,
    LEAST_TURNS_EXTENT_DOUBLE = 8192,
    MOST_TURNS_EXTENT = 2048, /* of a panel then */

    /* ---- slabs: how many products are summed by one kernel ---- */

    /* With these the errors are no larger than OpenBLAS's, which sums in blocks as well. One sum over
     * all of k is up to nine times less exact, and a tenth faster where the product takes longer than
     * the operands' way. */
    SLAB_SINGLE = 384,
    SLAB_DOUBLE = 352,
    SLAB_COMPLEX_SINGLE = 80,
    SLAB_COMPLEX_DOUBLE = 64,
    SLABS_TOGETHER = 8, /* before their sum is added to c, if there is memory for it */
};

#endif
