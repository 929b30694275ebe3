/* Rows are added to columns one after the other: threads share the columns, and, where their order does not
 * matter, rows. */
#include "reduction_columns.h"

#include "kernels/sizes.h"
#include "kernels/vector.h"
#include "reduction_cutoffs.h"
#include "threads/policy.h"

static void reduce_columns(const struct reduction_split *split, const char *data, ptrdiff_t columns,
                           ptrdiff_t rows, bool onto, char *sums)
{
    const struct reduction *reduction = split->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const ptrdiff_t next = fastest(&reduction->kept).step,
                    step = fastest(&reduction->repeated).step;
    if (reduction->conversion.convert == NULL) {
        kernel->reduce_rows(kernel, data, step, rows, next, columns, split->from_memory, onto,
                            sums);
        return;
    }
    for (ptrdiff_t row = 0; row < rows; row++) {
        reduction->conversion.convert(data + row * step, next, sums, columns, onto || row > 0);
    }
}

/* Where rows are cut: the results of one cut, of an index of the other kept axes. */
static char *results_of(const struct reduction_split *split, ptrdiff_t others, ptrdiff_t cut)
{
    const struct reduction *reduction = split->reduction;
    return split->partials + (others * split->cuts + cut) * fastest(&reduction->kept).n *
                                 (ptrdiff_t)reduction->kernel->sum_size;
}

/* Of two cuts the thread that is there last combines the results, as long as it is the last one: it has them in its
 * cache, and those of several pairs are combined at a time. Returns whether it has combined all. */
static bool combine_cuts(const struct reduction_split *split, ptrdiff_t others, ptrdiff_t slice,
                         ptrdiff_t cut, ptrdiff_t columns)
{
    const struct reduction_kernel *kernel = split->reduction->kernel;
    const ptrdiff_t size = (ptrdiff_t)kernel->sum_size, first = slice * split->results * size;
    atomic_bool *const arrived = split->arrived + (others * split->slices + slice) * split->cuts;
    for (ptrdiff_t apart = 1; apart < split->cuts; apart *= 2) {
        cut -= cut % (2 * apart);
        if (cut + apart >= split->cuts) {
            continue;
        }
        if (!atomic_exchange(&arrived[cut + apart], true)) {
            return false;
        }
        kernel->combine(kernel, results_of(split, others, cut) + first,
                        results_of(split, others, cut + apart) + first, (size_t)(columns * size));
    }
    return true;
}

/* Whether columns are reduced to where their results are to be. */
static bool are_in_place(const struct reduction *reduction)
{
    const struct reduction_kernel *kernel = reduction->kernel;
    return kernel->sums_are_results && !reduction->onto &&
           fastest(&reduction->kept).out_step == (ptrdiff_t)kernel->sum_size;
}

static void run_columns(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const struct axis axis = fastest(&reduction->kept);
    const ptrdiff_t slice = block % split->slices, first = slice * split->results;
    const ptrdiff_t cut = block / split->slices % split->cuts;
    const ptrdiff_t others = block / split->slices / split->cuts;
    const ptrdiff_t columns = size_min(split->results, axis.n - first);
    const ptrdiff_t sum_size = (ptrdiff_t)reduction->kernel->sum_size;
    const char *data =
        reduction->data + first * axis.step + offset_of(&reduction->kept, 1, others, false);
    struct axes repeated = reduction->repeated;
    if (split->cuts > 1) {
        struct axis *along = &repeated.axis[split->cut];
        const ptrdiff_t begin = along->n * cut / split->cuts;
        along->n = along->n * (cut + 1) / split->cuts - begin;
        data += begin * along->step;
    }
    const ptrdiff_t out = first * axis.out_step + offset_of(&reduction->kept, 1, others, true);
    const bool in_place = split->cuts == 1 && are_in_place(reduction);
    char *sums = split->cuts > 1 ? results_of(split, others, cut) + first * sum_size
                 : in_place      ? reduction->out + out
                                 : scratch;
    const ptrdiff_t times = size_from(&repeated, 1);
    for (ptrdiff_t i = 0; i < times; i++) {
        reduce_columns(split, data + offset_of(&repeated, 1, i, false), columns,
                       fastest(&repeated).n, i > 0, sums);
    }
    if (split->cuts > 1) {
        sums = combine_cuts(split, others, slice, cut, columns)
                   ? results_of(split, others, 0) + first * sum_size
                   : NULL;
    }
    if (sums != NULL && !in_place) {
        store_results(reduction, sums, out, columns, reduction->onto);
    }
}

void reduction_begin_columns(struct reduction_split *split)
{
    const ptrdiff_t others = size_from(&split->reduction->kept, 1);
    split->arrived = (atomic_bool *)results_of(split, others, 0);
    memset(split->arrived, 0, (size_t)(others * split->slices * split->cuts));
}

/* Where only columns can be shared: wide slices, since rows are read in their order. */
static ptrdiff_t results_of_slice(const struct reduction *reduction, int threads, ptrdiff_t others)
{
    const ptrdiff_t item = (ptrdiff_t)reduction->conversion.from_size;
    const ptrdiff_t all = fastest(&reduction->kept).n, threads_each = ceiling(threads, others);
    const bool are_wide =
        all * item >= threads_each * REDUCTION_BLOCKS_PER_THREAD * REDUCTION_WIDE_BYTES;
    const ptrdiff_t even =
        ceiling(all, threads_each * (are_wide ? REDUCTION_BLOCKS_PER_THREAD : 1));
    const ptrdiff_t in_line = size_max(1, LINE_BYTES / item);
    return size_max(ceiling(even, in_line) * in_line, REDUCTION_SLICE_BYTES / item);
}

/* Where rows can be shared, too: not in pieces so short that prefetchers do not get ahead, nor so few rows that their
 * results take as long to combine. */
static ptrdiff_t results_of_cut(const struct reduction *reduction, ptrdiff_t wanted,
                                ptrdiff_t most_cuts)
{
    const ptrdiff_t sum_size = (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t all = fastest(&reduction->kept).n;
    const ptrdiff_t widest = ceiling(all, ceiling(wanted, most_cuts));
    const ptrdiff_t least = size_min(ceiling(REDUCTION_LONG_PIECE_BYTES, sum_size), widest);
    return size_max(size_max(least, ceiling(all, wanted)), ceiling(REDUCTION_WIDE_BYTES, sum_size));
}

/* The longest of the axes along which rows are repeated; the first if there are none. */
static int axis_to_cut(const struct axes *repeated)
{
    int cut = 0;
    for (int i = 1; i < repeated->count; i++) {
        cut = repeated->axis[i].n > repeated->axis[cut].n ? i : cut;
    }
    return cut;
}

/* ---- short rows side by side ---- */

/* How many rows of so many bytes are packed before they are reduced. */
static ptrdiff_t packed_rows(const struct reduction *reduction, ptrdiff_t row_bytes)
{
    return size_min(size_max(1, REDUCTION_PACKED_BYTES / row_bytes),
                    fastest(&reduction->repeated).n);
}

/* Rows of several places are packed to one, converted. */
static void run_packed_columns(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct axis axis = fastest(&reduction->kept), place = reduction->kept.axis[1];
    const struct axis repeated = fastest(&reduction->repeated);
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size, sum_size = (ptrdiff_t)kernel->sum_size;
    const ptrdiff_t groups = ceiling(place.n, split->places), others = block / groups;
    const ptrdiff_t first = block % groups * split->places;
    const ptrdiff_t places = size_min(split->places, place.n - first), columns = places * axis.n;
    const ptrdiff_t out = first * place.out_step + offset_of(&reduction->kept, 2, others, true);
    const char *data =
        reduction->data + first * place.step + offset_of(&reduction->kept, 2, others, false);
    const struct axes row = {2, {axis, {places, place.step, 0}}};
    const bool follow = place.out_step == axis.n * axis.out_step;
    const bool in_place = follow && are_in_place(reduction);
    char *sums = in_place ? reduction->out + out : scratch;
    char *packed = scratch + split->places * axis.n * sum_size;
    const ptrdiff_t row_bytes = columns * size;
    const ptrdiff_t most = packed_rows(reduction, split->places * axis.n * size);
    const ptrdiff_t times = size_from(&reduction->repeated, 1);
    for (ptrdiff_t i = 0; i < times; i++) {
        const char *from = data + offset_of(&reduction->repeated, 1, i, false);
        for (ptrdiff_t k = 0, rows; k < repeated.n; k += rows) {
            rows = size_min(most, repeated.n - k);
            for (ptrdiff_t r = 0; r < rows; r++, from += repeated.step) {
                gather(&reduction->conversion, &row, from, packed + r * row_bytes);
            }
            kernel->reduce_rows(kernel, packed, row_bytes, rows, size, columns, false, i + k > 0,
                                sums);
        }
    }
    if (in_place) {
        return;
    }
    if (follow) {
        store_results(reduction, sums, out, columns, reduction->onto);
        return;
    }
    for (ptrdiff_t k = 0; k < places; k++) {
        store_results(reduction, sums + k * axis.n * sum_size, out + k * place.out_step, axis.n,
                      reduction->onto);
    }
}

/* Short rows take longer one by one than packed; those of our own kernels, which keep sums of a few columns in
 * registers, only if they are few. Columns are added up as before. */
static bool packs_columns(const struct reduction *reduction)
{
    const struct reduction_kernel *kernel = reduction->kernel;
    const struct axis axis = fastest(&reduction->kept);
    const ptrdiff_t size = (ptrdiff_t)kernel->item_size;
    const ptrdiff_t rows = size_from(&reduction->repeated, 0);
    return reduction->kept.count > 1 && axis.step == (ptrdiff_t)reduction->conversion.from_size &&
           axis.n * size < REDUCTION_PACKED_ROW_BYTES && rows > 1 &&
           (kernel->sums_are_results || rows * axis.n * size <= REDUCTION_PACKED_COLUMN_BYTES);
}

static bool split_packed_columns(struct reduction_split *split, const struct reduction *reduction)
{
    if (!packs_columns(reduction)) {
        return false;
    }
    const struct axis axis = fastest(&reduction->kept), place = reduction->kept.axis[1];
    const ptrdiff_t row_bytes = axis.n * (ptrdiff_t)reduction->kernel->item_size;
    const ptrdiff_t others = size_from(&reduction->kept, 2);
    const ptrdiff_t evenly = ceiling(place.n, ceiling(reduction->threads, others));
    const ptrdiff_t places = size_min(evenly, REDUCTION_PACKED_BYTES / row_bytes);
    if (places < REDUCTION_LEAST_PACKED) {
        return false;
    }
    *split = (struct reduction_split){
        .reduction = reduction,
        .run = run_packed_columns,
        .places = places,
        .cuts = 1,
        .blocks = others * ceiling(place.n, places),
        .scratch_bytes = (size_t)(places * axis.n * (ptrdiff_t)reduction->kernel->sum_size +
                                  packed_rows(reduction, places * row_bytes) * places * row_bytes),
    };
    split->chunk = ceiling(REDUCTION_CHUNK_BYTES, total_bytes(reduction) / split->blocks + 1);
    return true;
}

struct reduction_split reduction_split_columns(const struct reduction *reduction)
{
    struct reduction_split packed;
    if (split_packed_columns(&packed, reduction)) {
        return packed;
    }
    const int threads = reduction->threads;
    const struct reduction_kernel *kernel = reduction->kernel;
    const ptrdiff_t sum_size = (ptrdiff_t)kernel->sum_size;
    const ptrdiff_t all = fastest(&reduction->kept).n, others = size_from(&reduction->kept, 1);
    const ptrdiff_t wanted =
        threads > 1 ? ceiling((ptrdiff_t)threads * REDUCTION_BLOCKS_PER_THREAD, others) : 1;
    const int cut = axis_to_cut(&reduction->repeated);
    const ptrdiff_t rows = reduction->repeated.count > 0 ? reduction->repeated.axis[cut].n : 1;
    const ptrdiff_t least_rows = reduction->policy->small_blocks ? 2 : REDUCTION_LEAST_CUT_ROWS;
    const ptrdiff_t most_cuts = kernel->any_order ? ceiling(rows, least_rows) : 1;
    ptrdiff_t results = size_min(REDUCTION_ROW_BYTES / sum_size, all);
    if (ceiling(all, results) < wanted) {
        results =
            size_min(results, kernel->any_order ? results_of_cut(reduction, wanted, most_cuts)
                                                : results_of_slice(reduction, threads, others));
    }
    const ptrdiff_t slices = ceiling(all, results);
    struct reduction_split split = {
        .reduction = reduction,
        .run = run_columns,
        .results = results,
        .slices = slices,
        .cut = cut,
        .cuts = 1,
    };
    if (slices < wanted) {
        const ptrdiff_t blocks = wanted * others * all * sum_size > REDUCTION_CUTS_BYTES
                                     ? ceiling(threads, others)
                                     : wanted;
        split.cuts = size_min(ceiling(blocks, slices), most_cuts);
    }
    split.blocks = others * slices * split.cuts;
    split.chunk = ceiling(REDUCTION_CHUNK_BYTES, total_bytes(reduction) / split.blocks + 1);
    if (split.cuts > 1) {
        split.partial_bytes = (size_t)(others * split.cuts * (all * sum_size + slices));
    } else {
        split.scratch_bytes = (size_t)(results * sum_size);
    }
    return split;
}
