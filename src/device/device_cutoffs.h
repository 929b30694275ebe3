/* Constants of placement, and of how a product is cut for a device. Measured with
 * benchmarks/gpu.py on one H200 with 16 cores; tables in docs/decisions/0010-offload.md. */
#ifndef NUMC_DEVICE_CUTOFFS_H
#define NUMC_DEVICE_CUTOFFS_H

/* ---- placement ---- */

/* Products with fewer operations stay on the processor unasked: placement itself would cost too
 * much. */
#define LEAST_FLOAT_OPERATIONS 2e6
#define LEAST_INTEGER_OPERATIONS 1e6
/* Shorter products stay on the processor: the latency of any device is longer. */
#define LEAST_PROCESSOR_SECONDS 60e-6
/* The device must be predicted faster by this factor: predictions are about as exact. */
#define LEAST_SPEEDUP 1.25
/* Products of a stack that are smaller than this are predicted with the rate of small products. */
#define SMALL_PRODUCT_MULTIPLICATIONS (128.0 * 128 * 128)
/* Share of the download that does not overlap with products. */
#define DOWNLOAD_SHARE 0.25
/* Start of CUDA in a process, with the measuring of rates. */
#define STARTUP_SECONDS 0.5
/* Meanwhile products of BLAS leave it a processor, from so many on. */
#define LEAST_SPARING_CPUS 4

enum {
    /* OpenBLAS's threads spin so long after their work, also those that the next product does without. */
    BLAS_SPINS_MS = 120,

    /* Element-wise calls move managed operands to the device if all of them have so many bytes. */
    LEAST_MOVED_BYTES = 8 << 20,

    /* ---- threads that copy ---- */

    /* More threads than these gain nothing, and contend for the driver's locks where little is
     * copied: float32 2048 takes 1.4 ms with 6 threads, 1.7 with 12. */
    LEAST_COPY_THREADS = 5,
    MOST_COPY_THREADS = 12,
    BYTES_PER_COPY_THREAD = 32 << 20, /* for each one more */
    MOST_PAGE_THREADS = 4, /* that only populate pages; the rest is left to other callers */
    MOST_RINGS = 24,       /* of all callers at once */

    /* ---- chunks ---- */

    LEAST_CHUNK_BYTES = 512 << 10,
    LEAST_LAST_CHUNK_BYTES = 64 << 10,
    DIRECT_CHUNK_BYTES = 32 << 20, /* copied directly from or to pinned memory of the user */

    /* ---- panels ---- */

    /* Fewer rows leave multiprocessors idle; more lengthen the first upload and the last download,
     * which nothing hides. */
    PANEL_ROWS = 400,
    LEAST_PANEL_ROWS = 256,
    PANELS_OF_SMALL = 4,
    MOST_PANELS = 16,
    LEAST_TILE_BYTES = 1 << 20,
    SMALL_MATRIX_BYTES = 8 << 20, /* a tile takes several matrices of a stack that are smaller, */
    STACK_BYTES = 8 << 20,        /* of this size together */
    /* From this extent on panels of a and b are uploaded alternately: all types but float64; float64. */
    LEAST_ALTERNATING_EXTENT = 4096,
    LEAST_ALTERNATING_EXTENT_DOUBLE = 8192,
    MOST_ALTERNATING_EXTENT = 2048, /* of a panel uploaded alternately */

    /* ---- pinned operands ---- */

    /* Rows of a that are uploaded at a time: many where products take longer than copies, or are
     * summed in many short slabs. Else few: the device begins and ends with the link idle for less. */
    PINNED_ROWS = 256,
    PINNED_ROWS_OF_LONG = 512,
    /* Meanwhile so many bytes of b for each of a. Little of a before b is complete lets downloads
     * begin early; much of it lets the device begin early. */
    PINNED_LEAD = 4,
    PINNED_LEAD_OF_LONG = 2,
    PINNED_MOST_PIECES = 32, /* of an operand: to tell the device of one takes 25 to 50 us */

    /* ---- slabs: the length of k that one kernel sums ---- */

    /* With these the errors are no larger than OpenBLAS's, which sums in blocks as well. One sum
     * over all of k is up to nine times less exact, and a tenth faster where the upload does not
     * dominate. */
    SLAB_SINGLE = 384,
    SLAB_DOUBLE = 352,
    SLAB_COMPLEX_SINGLE = 80,
    SLAB_COMPLEX_DOUBLE = 64,
    SLABS_TOGETHER =
        8, /* slabs summed in scratch memory, if there is any, before that sum is added to c */
};

#endif
