/* From which sizes element-wise calls are computed otherwise. Why: docs/decisions/0002-splitting.md and
 * 0006-short-calls.md; each comment names the command that measures again. */
#ifndef NUMC_ELEMENTWISE_CUTOFFS_H
#define NUMC_ELEMENTWISE_CUTOFFS_H

enum {
    /* A call that is below either is computed at once: looking at the overlap of its operands costs more
     * than threads and kernels gain. `python benchmarks/random_calls.py` */
    TINY_BELOW_ELEMENTS = 1024,
    TINY_BELOW_OUTPUT_BYTES = 16384,

    /* Threads pay in calls that take longer than this on one: a region costs 1 to 5 us while its workers
     * spin. `python benchmarks/never_slower.py` */
    BREAK_EVEN_NS = 20000,
    /* Taking a chunk pays from so many parts of that on. `python benchmarks/compare.py --worst` */
    CHUNK_PARTS_OF_BREAK_EVEN = 16,

    /* Outputs of more bytes than so many sixteenths of the last-level cache are stored past it.
     * `python benchmarks/streaming.py` */
    STREAMING_FROM_CACHE_SIXTEENTHS = 16,

    /* Rows of fewer bytes that are not joined are stored as usual: of packed tiles, streaming 1 KiB takes 1.4 times
     * as long, 2 KiB 0.9 times; of others, 280 bytes 4 times, 1200 bytes 0.95 times.
     * `python benchmarks/compare.py`, `random_calls.py` */
    STREAMED_FROM_ROW_BYTES = 1024,
    STREAMED_FROM_PACKED_ROW_BYTES = 2048,

    /* New outputs of so many bytes get their pages from the thread that writes them.
     * `python benchmarks/streaming.py` */
    POPULATE_FROM_BYTES = 16 << 20,

    /* Operands in several dimensions, all by `python benchmarks/compare.py --worst`.
     * Rows of the output that are shorter are joined to one row for each tile: */
    JOIN_ROWS_BELOW_BYTES = 2048,
    JOIN_ROWS_BELOW_BYTES_IF_PACKED = 256, /* if an input must be packed anew for each tile */
    JOIN_ROWS_BELOW_BYTES_IF_CONVERTED = 1024,
    /* A row that fewer ones repeat is as good as converted for each of them. */
    LEAST_REPETITIONS = 8,
    /* If one is gathered beside another that is converted. Smaller items are worth as much as converted ones:
     * vectors hold many of them. */
    JOIN_ROWS_BELOW_BYTES_IF_GATHERED = 512,
    GATHERED_BELOW_ITEM_BYTES = 4,
    /* Of tiles that are packed, rows that are converted, if they are shorter, are packed first, too.
     * `python benchmarks/random_calls.py` */
    CONVERTED_APART_BELOW_BYTES = 512,
    /* So many elements, or so many bytes of an operand, are gathered where some are converted.
     * `python benchmarks/random_calls.py` */
    WHOLE_ELEMENTS = 1024,
    WHOLE_BYTES = 8192,
    /* Joined rows of an operand fit the first-level cache beside those of the others that are in use. */
    JOINED_TILE_BYTES = 16384,
    /* Where an input lies closest along a third axis, planes of short rows that are computed one by one, if there
     * would be fewer that follow each other. `python benchmarks/random_calls.py` */
    MOST_PLANES_APART = 16,
    LEAST_PLANES_APART = 8,
    /* Of their tiles, at least, if an operand has so many bytes, and the second-level cache does not hold them all: of few
     * rows of each plane, prefetchers fall behind. */
    PLANES_APART_ELEMENTS = 8192,
    PLANES_APART_FROM_BYTES = 1 << 19,
    /* Where an input lies across, tiles are wide: the other operands' rows are long enough for the prefetcher, and
     * lines that reach beyond a tile are still in a cache for the one below. Unpacked, a call of the inner loop
     * for each row takes little of the time. */
    PACKED_TILE_BYTES = 49152,
    WIDE_TILE_COLUMNS = 768,
    /* If nothing is converted or masked, what is packed of few rows stays in the first-level cache, and narrow tiles
     * have more rows of each line that is read. `python benchmarks/compare.py --worst` */
    NARROW_TILE_COLUMNS = 128,
    NARROW_TILE_BYTES = 12288,
    /* A row that all others repeat is packed in parts that stay in the first-level cache. */
    PACKED_ROW_BYTES = 8192,
    /* An input across the output is not packed if its lines stay in the second-level cache. */
    UNPACKED_BELOW_LINES = 512,
    /* Other tiles hide what taking them costs. */
    TILE_ELEMENTS = 16384,
    /* With `where=`, the true elements of a piece are gathered, or each run of them is computed by itself. What
     * a run takes, and gathering and scattering an element, as elements of a mask that are looked at.
     * `python benchmarks/compare.py --match where=` */
    MASKED_RUN_ELEMENTS = 11,
    MASKED_VECTOR_RUN_ELEMENTS = 28, /* by vectors of NumPy's */
    MASKED_GATHERED_ELEMENTS = 2,
    /* Nothing is packed where at most one element in so many is true, as a row tells that is not shorter, or rows of
     * a mask that are one: each row with a true element takes a call then. `python benchmarks/random_calls.py` */
    SPARSE_ONE_OF = 16,
    SPARSE_ONE_OF_ROWS = 128, /* if only rows are copied */
    SPARSE_LOOKED_AT = 256,
    SPARSE_FROM_ELEMENTS = 128,
    /* Across shorter rows of the output, lines of a sparse mask are searched in less time than it is packed. */
    LEAST_MASKED_ROW = 16,
    /* Of fewer rows, an input across the output is read as it lies: its lines are needed as often as there are
     * rows, and most of them are in a cache then. Not of so many items that are smaller than
     * GATHERED_BELOW_ITEM_BYTES. `python benchmarks/random_calls.py` */
    LEAST_PACKED_ROWS = 4,
    LEAST_PACKED_ELEMENTS = 1024,
    /* Elements of a column that are so near to each other share lines: half of one. */
    MOST_NEAR_BYTES = 32,
    /* What a tile and a call of the inner loop cost, beside 1 ns for an element that lies apart. */
    TILE_NS = 30,
    PACKED_TILE_NS = 200,
    INNER_LOOP_NS = 10,
};

#endif
