#include "pieces.h"

#include "elementwise_cutoffs.h"
#include "kernels/copy/copy_indexed.h"
#include "kernels/copy/copy_items.h"
#include "kernels/copy/find_bool.h"
#include "kernels/sizes.h"

enum {
    PIECE_BYTES = 4096, /* of an operand */
    /* Of NumPy's loops, which take longer to begin, and of items of so many bytes, of which there would be few. */
    WIDE_PIECE_BYTES = 8192,
    WIDE_ITEM_BYTES = 16,
    /* Kernels begin at once, so that the next piece is converted while memory answers this one; not where their
     * results are converted, too. `python benchmarks/compare.py --match contiguous` */
    KERNEL_PIECE_BYTES = 2048,
    MASKED_PIECE_ELEMENTS = 512,
};

/* Computes each run of true elements by itself. */
static void compute_runs(const struct pieces *pieces, char *const piece[], const ptrdiff_t step[],
                         const char *mask, ptrdiff_t n)
{
    const int operands = pieces->loop->operands;
    for (ptrdiff_t first, end = 0; (first = find_bool_from(true, mask, 1, end, n)) < n;) {
        char *run[PIECES_MOST_OPERANDS];
        end = find_bool_from(false, mask, 1, first, n);
        for (int op = 0; op < operands; op++) {
            run[op] = piece[op] + first * step[op];
        }
        pieces_compute(pieces, run, step, end - first);
    }
}

/* Gathers the true elements of a piece, computes them together, and scatters the results. Its frame is not that of
 * pieces_run(): threads may have little stack. */
static __attribute__((noinline)) void compute_gathered(const struct pieces *pieces,
                                                       char *const piece[], const ptrdiff_t step[],
                                                       const char *mask, ptrdiff_t all)
{
    const struct elementwise *loop = pieces->loop;
    const int out = loop->inputs;
    _Alignas(LINE_BYTES) char gathered[PIECES_MOST_INPUTS + 1][PIECE_BYTES];
    char *data[PIECES_MOST_OPERANDS];
    ptrdiff_t contiguous[PIECES_MOST_OPERANDS];
    uint16_t index[MASKED_PIECE_ELEMENTS + BOOLS_AT_ONCE];
    const ptrdiff_t n = find_all_true(mask, all, index);
    for (int in = 0; in < out; in++) {
        data[in] = step[in] == 0 ? piece[in] : gathered[in];
        contiguous[in] = step[in] == 0 ? 0 : (ptrdiff_t)loop->item_size[in];
        if (step[in] != 0) {
            gather_items(loop->item_size[in], gathered[in], piece[in], step[in], index, n);
        }
    }
    data[out] = gathered[out];
    contiguous[out] = (ptrdiff_t)loop->item_size[out];
    pieces_compute(pieces, data, contiguous, n);
    scatter_items(loop->item_size[out], piece[out], step[out], gathered[out], index, n);
}

/* What a run takes: NumPy's vectors take longer to begin than kernels do, or loops of integers that have none. */
static ptrdiff_t run_elements(const struct pieces *pieces)
{
    const struct elementwise *loop = pieces->loop;
    const bool are_integers =
        loop->same_bits == SAME_ANYWHERE && loop->item_size[loop->inputs] == loop->item_size[0];
    return pieces->kernel != NULL || are_integers ? MASKED_RUN_ELEMENTS
                                                  : MASKED_VECTOR_RUN_ELEMENTS;
}

/* Computes the true elements of a piece: others raise no flags, and are not written. */
static void compute_masked(const struct pieces *pieces, char *const piece[], const ptrdiff_t step[],
                           const char *mask, ptrdiff_t mask_step, ptrdiff_t n)
{
    char bools[MASKED_PIECE_ELEMENTS];
    if (mask_step != 1) {
        gather_bools(bools, mask, mask_step, n);
        mask = bools;
    }
    if (pieces->is_sparse) {
        compute_runs(pieces, piece, step, mask, n);
        return;
    }
    const struct true_bools found = count_true(mask, 1, n);
    if (found.count == n) {
        pieces_compute(pieces, (char **)piece, step, n);
    } else if (found.runs * run_elements(pieces) <= n + found.count * MASKED_GATHERED_ELEMENTS) {
        compute_runs(pieces, piece, step, mask, n);
    } else {
        compute_gathered(pieces, piece, step, mask, n);
    }
}

/* Computes a piece, and converts the results; in a frame of its own, too. */
static __attribute__((noinline)) void compute_converted(const struct pieces *pieces,
                                                        char *const piece[], const ptrdiff_t step[],
                                                        ptrdiff_t n)
{
    const int out = pieces->loop->inputs;
    _Alignas(LINE_BYTES) char computed[WIDE_PIECE_BYTES], converted[WIDE_PIECE_BYTES];
    char *data[PIECES_MOST_OPERANDS];
    ptrdiff_t to_computed[PIECES_MOST_OPERANDS];
    const ptrdiff_t size = (ptrdiff_t)pieces->loop->item_size[out];
    const bool is_contiguous = step[out] == (ptrdiff_t)pieces->out_size;
    for (int op = 0; op < out; op++) {
        data[op] = piece[op];
        to_computed[op] = step[op];
    }
    data[out] = computed;
    to_computed[out] = size;
    pieces_compute(pieces, data, to_computed, n);
    pieces->convert[out](computed, size, is_contiguous ? piece[out] : converted, n);
    if (!is_contiguous) {
        copy_items(pieces->out_size, piece[out], step[out], converted, (ptrdiff_t)pieces->out_size,
                   n);
    }
}

/* Converts what does not vary, once for the row; returns whether anything else is converted or masked. */
static bool convert_constants(const struct pieces *pieces, char *row[], const ptrdiff_t row_step[],
                              char converted[][WIDE_PIECE_BYTES])
{
    bool varies = pieces->is_masked || pieces->convert[pieces->loop->inputs] != NULL;
    for (int in = 0; in < pieces->loop->inputs; in++) {
        if (pieces->convert[in] == NULL) {
            continue;
        }
        if (row_step[in] == 0) {
            pieces->convert[in](row[in], 0, converted[in], 1);
            row[in] = converted[in];
        }
        varies = varies || row_step[in] != 0;
    }
    return varies;
}

ptrdiff_t pieces_most_elements(const struct pieces *pieces)
{
    size_t largest = pieces->out_size;
    for (int op = 0; op < pieces->loop->operands; op++) {
        largest = pieces->loop->item_size[op] > largest ? pieces->loop->item_size[op] : largest;
    }
    if (pieces->is_masked) {
        return size_min(PIECE_BYTES / (ptrdiff_t)largest, MASKED_PIECE_ELEMENTS);
    }
    const bool is_wide = pieces->kernel == NULL || largest >= WIDE_ITEM_BYTES;
    const bool begins_at_once = pieces->convert[pieces->loop->inputs] == NULL;
    const ptrdiff_t bytes = is_wide          ? WIDE_PIECE_BYTES
                            : begins_at_once ? KERNEL_PIECE_BYTES
                                             : PIECE_BYTES;
    return bytes / (ptrdiff_t)largest;
}

/* Kernels write whole cache lines. An inner loop gets multiples of its vectors, as from NumPy: in them, it may take
 * another one of two zeros. */
static ptrdiff_t elements_of_first_piece(const struct pieces *pieces, const char *out,
                                         ptrdiff_t most, ptrdiff_t n)
{
    const ptrdiff_t into_line = (ptrdiff_t)((uintptr_t)out % LINE_BYTES);
    return pieces->kernel != NULL && n > most - LINE_BYTES
               ? most - into_line / (ptrdiff_t)pieces->out_size
               : most;
}

void pieces_run(const struct pieces *pieces, char *row[], const ptrdiff_t row_step[], ptrdiff_t n)
{
    const struct elementwise *loop = pieces->loop;
    const int mask = loop->operands;
    _Alignas(LINE_BYTES) char converted[PIECES_MOST_INPUTS][WIDE_PIECE_BYTES];
    if (!convert_constants(pieces, row, row_step, converted)) {
        pieces_compute(pieces, row, row_step, n);
        return;
    }
    const ptrdiff_t most = pieces->most;
    ptrdiff_t count = elements_of_first_piece(pieces, row[loop->inputs], most, n);
    for (ptrdiff_t done = 0; done < n; done += count, count = most) {
        char *piece[PIECES_MOST_OPERANDS];
        ptrdiff_t step[PIECES_MOST_OPERANDS];
        if (pieces->is_masked) { /* what is left out is not converted, either */
            done = find_bool_from(true, row[mask], row_step[mask], done, n);
            if (done == n) {
                break;
            }
        }
        count = size_min(count, n - done);
        for (int op = 0; op < loop->operands; op++) {
            piece[op] = row[op] + done * row_step[op];
            step[op] = row_step[op];
            if (op < loop->inputs && pieces->convert[op] != NULL && row_step[op] != 0) {
                pieces->convert[op](piece[op], row_step[op], converted[op], count);
                piece[op] = converted[op];
                step[op] = (ptrdiff_t)loop->item_size[op];
            }
        }
        if (pieces->is_masked) {
            compute_masked(pieces, piece, step, row[mask] + done * row_step[mask], row_step[mask],
                           count);
        } else if (pieces->convert[loop->inputs] != NULL) {
            compute_converted(pieces, piece, step, count);
        } else {
            pieces_compute(pieces, piece, step, count);
        }
    }
}
