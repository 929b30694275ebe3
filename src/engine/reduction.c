/* Splits reductions: by results, by columns (reduction_columns.c), or, where results are few, by inner calls and
 * their halves. The order of additions is the same in all cases. */
#include "reduction.h"

#include "kernels/sizes.h"
#include "kernels/vector.h"
#include "memory/workspace.h"
#include "reduction_columns.h"
#include "reduction_cutoffs.h"
#include "threads/region.h"

enum { STACK_BYTES = 4096 }; /* of scratch memory; what needs more is in a workspace */

/* ---- inner calls ---- */

/* The elements of an inner call. */
struct elements {
    const char *data;
    ptrdiff_t step, n;
};

static ptrdiff_t calls_along_last(const struct reduction *reduction)
{
    const ptrdiff_t n = reduction->inner.axis[reduction->inner.count - 1].n;
    return reduction->inner_call < n ? ceiling(n, reduction->inner_call) : 1;
}

static bool is_gathered(const struct reduction *reduction)
{
    return reduction->inner.count > 1 || reduction->conversion.convert != NULL;
}

/* Those of `results` neighbours follow each other if they are gathered. */
static struct elements elements_of(const struct reduction *reduction, const char *result,
                                   ptrdiff_t call, ptrdiff_t results, char *scratch)
{
    const struct axes *inner = &reduction->inner;
    const struct axis last = inner->axis[inner->count - 1];
    const ptrdiff_t along_last = calls_along_last(reduction);
    const ptrdiff_t row = along_last > 1 ? call / along_last : call;
    const ptrdiff_t first = (call - row * along_last) * reduction->inner_call;
    const ptrdiff_t n = size_min(reduction->inner_call, last.n - first);
    const char *data = result + offset_of(&reduction->repeated, 0, row, false) + first * last.step;
    if (!is_gathered(reduction)) {
        return (struct elements){data, last.step, n};
    }
    struct axes axes;
    axes.count = 0;
    axes_append(&axes, inner);
    axes.axis[axes.count - 1].n = n;
    const ptrdiff_t each = size_from(&axes, 0);
    if (results > 1) {
        axes.axis[axes.count++] = (struct axis){results, fastest(&reduction->kept).step, 0};
    }
    return (struct elements){gather(&reduction->conversion, &axes, data, scratch),
                             (ptrdiff_t)reduction->kernel->item_size, each};
}

static size_t bytes_to_gather(const struct reduction *reduction, ptrdiff_t n)
{
    return is_gathered(reduction) ? gather_bytes(&reduction->conversion, n) : 0;
}

static ptrdiff_t elements_of_call(const struct reduction *reduction)
{
    const struct axes *inner = &reduction->inner;
    const ptrdiff_t last = inner->axis[inner->count - 1].n;
    return size_from(inner, 0) / last * size_min(last, reduction->inner_call);
}

/* ---- by results ---- */

static void run_results(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const struct axis axis = fastest(&reduction->kept);
    const ptrdiff_t first = block % split->slices * split->results, others = block / split->slices;
    const ptrdiff_t n = size_min(split->results, axis.n - first);
    const char *data =
        reduction->data + first * axis.step + offset_of(&reduction->kept, 1, others, false);
    const ptrdiff_t out = first * axis.out_step + offset_of(&reduction->kept, 1, others, true);
    char *sums = scratch + split->gathered_bytes;
    const struct reduction_kernel *kernel = reduction->kernel;
    for (ptrdiff_t call = 0; call < split->calls; call++) {
        for (ptrdiff_t k = 0, count; k < n; k += count) {
            count = size_min(split->gathered, n - k);
            const struct elements all =
                elements_of(reduction, data + k * axis.step, call, count, scratch);
            const ptrdiff_t next = is_gathered(reduction) ? all.n * all.step : axis.step;
            char *const sums_of_these = sums + (size_t)k * kernel->sum_size;
            if (call > 0 && kernel->reduce_each_onto != NULL) {
                kernel->reduce_each_onto(kernel, all.data, all.step, all.n, next, count,
                                         sums_of_these);
            } else {
                kernel->reduce_each(kernel, all.data, all.step, all.n, next, count,
                                    split->from_memory, sums_of_these);
            }
        }
        if (kernel->reduce_each_onto == NULL || call == split->calls - 1) {
            store_results(reduction, sums, out, n,
                          reduction->onto || (call > 0 && kernel->reduce_each_onto == NULL));
        }
    }
}

/* A chunk; but several neighbours at a time where each has short inner calls, or they lie between those of one
 * result, as far as that leaves each thread some blocks. */
static ptrdiff_t results_of_block(const struct reduction *reduction, ptrdiff_t calls,
                                  ptrdiff_t elements)
{
    const ptrdiff_t bytes = elements * (ptrdiff_t)reduction->conversion.from_size;
    const struct axis kept = fastest(&reduction->kept), repeated = fastest(&reduction->repeated);
    const bool lie_between = magnitude(kept.step) < magnitude(repeated.step);
    const ptrdiff_t evenly = even_share(kept.n, reduction->threads);
    const ptrdiff_t neighbours =
        lie_between ? evenly : size_min(evenly, REDUCTION_PIECE_BYTES / bytes);
    const ptrdiff_t room = STACK_BYTES / (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t results = size_max(ceiling(REDUCTION_CHUNK_BYTES, bytes * calls), neighbours);
    return size_min(size_min(results, room), kept.n);
}

/* Of how many results the elements are gathered at a time: calls for a few take longer than they do. */
static ptrdiff_t results_to_gather(const struct reduction *reduction, ptrdiff_t elements,
                                   ptrdiff_t results)
{
    if (!is_gathered(reduction)) {
        return results;
    }
    const ptrdiff_t bytes = elements * (ptrdiff_t)reduction->conversion.to_size;
    return reduction->inner.count < MOST_AXES
               ? size_max(1, size_min(results, REDUCTION_PIECE_BYTES / bytes))
               : 1;
}

static struct reduction_split split_by_results(const struct reduction *reduction, ptrdiff_t calls)
{
    const ptrdiff_t elements = elements_of_call(reduction);
    const ptrdiff_t bytes = (ptrdiff_t)reduction->conversion.from_size * elements * calls;
    const ptrdiff_t results = results_of_block(reduction, calls, elements);
    const ptrdiff_t slices = ceiling(fastest(&reduction->kept).n, results);
    const ptrdiff_t gathered = results_to_gather(reduction, elements, results);
    const size_t gathered_bytes = bytes_to_gather(reduction, elements * gathered);
    return (struct reduction_split){
        .reduction = reduction,
        .run = run_results,
        .blocks = size_from(&reduction->kept, 1) * slices,
        .chunk = ceiling(REDUCTION_CHUNK_BYTES, results * bytes),
        .results = results,
        .slices = slices,
        .calls = calls,
        .gathered = gathered,
        .gathered_bytes = gathered_bytes,
        .scratch_bytes = gathered_bytes + (size_t)results * reduction->kernel->sum_size,
    };
}

/* ---- by elements ---- */

/* The elements of block `index` of the 2^halvings that n elements are. */
static struct elements half_of(const struct reduction *reduction, struct elements all, int halvings,
                               ptrdiff_t index)
{
    const int parts = reduction_parts(reduction->kernel);
    while (halvings-- > 0) {
        const ptrdiff_t half = reduction_half(all.n * parts) / parts;
        const bool second = index >> halvings & 1;
        all.data += second ? half * all.step : 0;
        all.n = second ? all.n - half : half;
    }
    return all;
}

/* Blocks are in the order of the inner calls, and for each of the results: neighbouring ones may be in
 * the same cache lines. */
static void run_elements(const struct reduction_split *split, ptrdiff_t block, char *scratch)
{
    const struct reduction *reduction = split->reduction;
    const ptrdiff_t results = split->results;
    const ptrdiff_t half = block & (((ptrdiff_t)1 << split->halvings) - 1);
    const ptrdiff_t result = (block >> split->halvings) % results;
    const ptrdiff_t call = (block >> split->halvings) / results + split->first_call;
    const char *data = reduction->data + offset_of(&reduction->kept, 0, result, false);
    const struct elements all =
        half_of(reduction, elements_of(reduction, data, call, 1, scratch), split->halvings, half);
    reduction->kernel->reduce_each(reduction->kernel, all.data, all.step, all.n, 0, 1,
                                   split->from_memory,
                                   split->partials + (size_t)block * reduction->kernel->sum_size);
}

/* Whether no other block can change the result that this one has. */
static bool ends_search(const struct reduction_split *split, ptrdiff_t block)
{
    const struct reduction_kernel *kernel = split->reduction->kernel;
    return split->run == run_elements && kernel->final >= 0 && split->results == 1 &&
           split->partials[(size_t)block * kernel->sum_size] == kernel->final;
}

/* Combines `count` arrays of `bytes` in pairs, by index; the result is the first. */
static void combine_in_pairs(const struct reduction_kernel *kernel, char *arrays, ptrdiff_t count,
                             ptrdiff_t bytes)
{
    for (ptrdiff_t apart = 1; apart < count; apart *= 2) {
        for (ptrdiff_t i = 0; i + apart < count; i += 2 * apart) {
            kernel->combine(kernel, arrays + i * bytes, arrays + (i + apart) * bytes,
                            (size_t)bytes);
        }
    }
}

static void finish_elements(const struct reduction_split *split)
{
    const struct reduction *reduction = split->reduction;
    if (split->is_found) {
        const char final = (char)reduction->kernel->final;
        store_results(reduction, &final, 0, 1, reduction->onto);
        return;
    }
    const ptrdiff_t size = (ptrdiff_t)reduction->kernel->sum_size;
    const ptrdiff_t count = (ptrdiff_t)1 << split->halvings;
    for (ptrdiff_t at = 0; at < split->blocks >> split->halvings; at++) {
        char *partials = split->partials + at * count * size;
        combine_in_pairs(reduction->kernel, partials, count, size);
        store_results(reduction, partials,
                      offset_of(&reduction->kept, 0, at % split->results, true), 1,
                      reduction->onto || at / split->results + split->first_call > 0);
    }
}

/* How often an inner call can be halved: blocks are large enough, and never smaller than a leaf. */
static int halvings_of(const struct reduction *reduction)
{
    const ptrdiff_t least_bytes = reduction->policy->small_blocks ? 0 : REDUCTION_HALF_BYTES;
    const int parts = reduction_parts(reduction->kernel);
    int halvings = 0;
    /* The first half is the smaller one. */
    for (ptrdiff_t n = elements_of_call(reduction);
         n * parts > REDUCTION_LEAF_PARTS &&
         n * (ptrdiff_t)reduction->conversion.from_size > least_bytes && !is_gathered(reduction) &&
         halvings < 20;
         n = reduction_half(n * parts) / parts) {
        halvings++;
    }
    return halvings;
}

static struct reduction_split split_by_elements(const struct reduction *reduction, ptrdiff_t calls)
{
    const ptrdiff_t results = size_from(&reduction->kept, 0);
    /* Only whole inner calls are halved: the last one along an axis may be shorter. */
    const int halvings = calls_along_last(reduction) == 1 ? halvings_of(reduction) : 0;
    const ptrdiff_t bytes =
        elements_of_call(reduction) * (ptrdiff_t)reduction->conversion.from_size;
    const size_t gathered_bytes = bytes_to_gather(reduction, elements_of_call(reduction));
    const ptrdiff_t at_once = size_max(1, (REDUCTION_PARTIALS >> halvings) / results);
    return (struct reduction_split){
        .reduction = reduction,
        .run = run_elements,
        .blocks = (size_min(calls, at_once) * results) << halvings,
        .chunk = ceiling(REDUCTION_CHUNK_BYTES, bytes >> halvings),
        .results = results,
        .calls = calls,
        .halvings = halvings,
        .scratch_bytes = gathered_bytes,
        .partial_bytes = (size_t)((size_min(calls, at_once) * results) << halvings) *
                         reduction->kernel->sum_size,
    };
}

/* ---- which of them ---- */

static bool is_by_columns(const struct reduction *reduction)
{
    return reduction->inner.count == 0;
}

int reduction_threads(const struct reduction *reduction)
{
    const ptrdiff_t item = (ptrdiff_t)reduction->conversion.from_size;
    const bool is_near = is_by_columns(reduction) || reduction->inner.axis[0].step == item;
    return threads_for(reduction->policy, total_bytes(reduction) / item,
                       is_near ? REDUCTION_THREADS_BYTES / item : REDUCTION_THREADS_ELEMENTS);
}

static bool is_from_memory(const struct reduction *reduction)
{
    const size_t size = reduction->conversion.from_size;
    const struct axis axis =
        fastest(is_by_columns(reduction) ? &reduction->kept : &reduction->inner);
    return bytes_of_lines(total_bytes(reduction) / (ptrdiff_t)size, size, axis.step) >
           REDUCTION_FROM_MEMORY_BYTES;
}

static struct reduction_split split_reduction(const struct reduction *reduction)
{
    const int threads = reduction->threads;
    if (is_by_columns(reduction)) {
        return reduction_split_columns(reduction);
    }
    const ptrdiff_t results = size_from(&reduction->kept, 0);
    const ptrdiff_t calls = size_from(&reduction->repeated, 0) * calls_along_last(reduction);
    const bool are_few = threads > 1 && results < REDUCTION_BLOCKS_PER_THREAD * (ptrdiff_t)threads;
    return are_few ? split_by_elements(reduction, calls) : split_by_results(reduction, calls);
}

/* ---- carried out ---- */

/* A worker that is refused memory leaves the blocks to the others. */
static void run_blocks(void *context, int index)
{
    struct reduction_split *split = context;
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace own = {0};
    char *scratch = few;
    if (split->scratch_bytes > sizeof few) {
        own = index > 0 ? workspace_take(split->scratch_bytes) : own;
        scratch = index > 0 ? own.data : split->scratch;
    }
    ptrdiff_t first;
    while (scratch != NULL &&
           (first = atomic_fetch_add(&split->next, split->chunk)) < split->blocks) {
        const ptrdiff_t end = size_min(first + split->chunk, split->blocks);
        for (ptrdiff_t block = first; block < end; block++) {
            split->run(split, block, scratch);
            if (ends_search(split, block)) {
                split->is_found = true;
                atomic_store(&split->next, split->blocks);
                break;
            }
        }
    }
    workspace_give_back(own);
}

static void run_all_blocks(struct reduction_split *split)
{
    atomic_init(&split->next, 0);
    if (split->reduction->policy->small_blocks) {
        split->chunk = 1;
    }
    /* No thread has to be called where the first block ends a search. */
    if (split->run == run_elements && split->reduction->kernel->final >= 0 &&
        split->scratch_bytes == 0) {
        run_elements(split, 0, NULL);
        split->is_found = ends_search(split, 0);
        atomic_init(&split->next, split->is_found ? split->blocks : 1);
    }
    if (split->is_found) {
        return;
    }
    region_run(split->reduction->policy,
               split->blocks > split->chunk ? split->reduction->threads : 1, run_blocks, split);
}

static void run_and_finish(struct reduction_split *split)
{
    if (split->run != run_elements) {
        if (split->cuts > 1) {
            reduction_begin_columns(split);
        }
        run_all_blocks(split);
        return;
    }
    const ptrdiff_t blocks_of_call = split->results << split->halvings;
    const ptrdiff_t at_once = split->blocks / blocks_of_call;
    for (; split->first_call < split->calls && !split->is_found; split->first_call += at_once) {
        split->blocks = size_min(at_once, split->calls - split->first_call) * blocks_of_call;
        run_all_blocks(split);
        finish_elements(split);
    }
}

bool reduction_compute(const struct reduction *reduction)
{
    struct reduction_split split = split_reduction(reduction);
    split.from_memory = is_from_memory(reduction);
    _Alignas(LINE_BYTES) char few[STACK_BYTES];
    struct workspace workspace = {0};
    split.partials = few;
    if (split.partial_bytes > sizeof few || split.scratch_bytes > sizeof few) {
        const size_t scratch_bytes =
            (split.scratch_bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
        workspace = workspace_take(scratch_bytes + split.partial_bytes);
        if (workspace.data == NULL) {
            return false;
        }
        split.scratch = workspace.data;
        split.partials = workspace.data + scratch_bytes;
    }
    run_and_finish(&split);
    workspace_give_back(workspace);
    return true;
}
