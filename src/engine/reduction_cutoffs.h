/* From which sizes reductions are computed otherwise; why: docs/decisions/0008-reductions.md.
 * Measured again by: python benchmarks/random_calls.py (all sizes), benchmarks/compare.py (large). */
#ifndef NUMC_REDUCTION_CUTOFFS_H
#define NUMC_REDUCTION_CUTOFFS_H

enum {
    /* Threads pay from 20 us on: caches deliver contiguous elements at 40 bytes per ns, elements that
     * lie apart take half a ns each. */
    REDUCTION_THREADS_BYTES = 800000,
    REDUCTION_THREADS_ELEMENTS = 40000,
    /* NumPy's way to its loop takes longer than to look for zeros in arrays below. */
    REDUCTION_SHORT_BYTES = 32 << 10,
    /* Nor than to copy arrays up to here, of which each result is one element. */
    REDUCTION_COPIED_BYTES = 256 << 10,
    /* The same of integers that are computed with the identity each. */
    REDUCTION_COMPUTED_ALONE_BYTES = 8 << 10,
    /* Runs of a row's mask are reduced one by one if there is at most one in so many bytes of the row. */
    REDUCTION_MASKED_RUN_BYTES = 256,
    /* Operands above exceed the caches: kernels of integers read one row at a time. */
    REDUCTION_FROM_MEMORY_BYTES = 16 << 20,
    /* Least chunk of a thread: taking one costs little of its time. */
    REDUCTION_CHUNK_BYTES = 64 << 10,
    /* Elements that are converted or masked at once, on the stack. */
    REDUCTION_PIECE_BYTES = 2048,
    /* So that no thread waits long for the last one. */
    REDUCTION_BLOCKS_PER_THREAD = 4,
    /* Shorter inner axes are gathered where the order of elements does not matter. */
    REDUCTION_INNER_BYTES = 1024,
    /* So many rows of each result are reduced across first, if their order does not matter. */
    REDUCTION_LEAST_PLACES = 4,
    /* An inner call is halved down to this, where it is shared by threads. */
    REDUCTION_HALF_BYTES = 256 << 10,
    /* Sums of rows are in slices of so much: of narrower ones, rows are read in so many pieces that prefetchers
     * do not get ahead, which takes up to half as long again. `python benchmarks/compare.py --match reduce` */
    REDUCTION_ROW_BYTES = 1 << 20,
    /* Columns are shared by threads in slices of at least this, or of so much if there are several for
     * each thread. */
    REDUCTION_SLICE_BYTES = 256,
    REDUCTION_WIDE_BYTES = 4096,
    /* Where rows can be shared, too: the shortest pieces of them, as above, and the fewest rows. */
    REDUCTION_LONG_PIECE_BYTES = 64 << 10,
    REDUCTION_LEAST_CUT_ROWS = 8,
    /* Rows are cut for each thread once, not several times, if the results of all cuts take more: they come from
     * the caches of other threads. */
    REDUCTION_CUTS_BYTES = 128 << 10,
    /* Rows of fewer bytes that lie apart are packed to one of at most so many, so many of them at least; sums, if
     * all rows of a place are so short. `python benchmarks/random_calls.py` */
    REDUCTION_PACKED_ROW_BYTES = 320,
    REDUCTION_PACKED_BYTES = 16384,
    REDUCTION_LEAST_PACKED = 4,
    REDUCTION_PACKED_COLUMN_BYTES = 512,
    /* Rows of so few elements would be a call of a loop for each: columns are reduced one by one. */
    REDUCTION_FEW_COLUMNS = 8,
    /* Long lines that begin within a cache line are cut at its end. `python benchmarks/random_calls.py` */
    REDUCTION_CUT_FROM_BYTES = 16384,
    /* Partial results that are in memory at once. */
    REDUCTION_PARTIALS = 1 << 16,
    /* Calls of inner loops for fewer elements gain nothing from kernels and threads. */
    REDUCTION_LOOP_ELEMENTS = 1024,
    /* Nor do columns that are accumulated, */
    REDUCTION_ACCUMULATED_COLUMN_ELEMENTS = 40000,
    /* and segments of an axis that is shorter. */
    REDUCTION_SEGMENTED_AXIS = 16,
    /* What a segment takes beside its elements, as bytes that are read. */
    REDUCTION_SEGMENT_BYTES = 128,
    /* Arrays are accumulated by rows, in slices that fit the second-level cache, from so many columns on;
     * across lines, too, of which input and output span so little: caches are not filled ahead of rows that lie
     * far apart. `python benchmarks/compare.py --match accumulate` */
    ACCUMULATED_ROW_BYTES = 128 << 10,
    ACCUMULATED_LEAST_COLUMNS = 16,
    ACCUMULATED_SHORT_LINE_BYTES = 256,
    /* And less where a kernel computes lines, which keeps the last result in a register. */
    ACCUMULATED_SHORT_RUNNING_BYTES = 96,
    /* Lines of fewer elements are taken by rows from so many columns on; `python benchmarks/random_calls.py` */
    ACCUMULATED_LEAST_LINE = 8,
    ACCUMULATED_LEAST_COLUMNS_OF_SHORT_LINES = 4,
    /* Converted lines of fewer, one after the other on one thread, are NumPy's. */
    ACCUMULATED_CONVERTED_LINE = 16,
    /* Columns of so few elements stay in the second-level cache and are not computed in parts: each call of a loop waits
     * for what memory owes the one before. But for rows of whole pages, of which a cache holds few lines side by side.
     * `python benchmarks/random_calls.py` */
    ACCUMULATED_WHOLE_COLUMN = 900,
    ACCUMULATED_SAME_SETS_BYTES = 4096,
};

#endif
