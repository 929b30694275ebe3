/* Cuts a thin product into units of rows and, where there are few, slabs of k, whose sums are added last. */
#include "matmul_thin.h"

#include "kernels/copy/tile_unpack.h"
#include "kernels/sizes.h"
#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

enum {
    SMALL_ROOM = 16 << 10, /* on the stack, where memory is refused */
    SLAB_MULTIPLE = 64,
    PACKED_ROWS = 4, /* of a, at a time */
};

struct thin_job {
    const struct thin_task *task;
    bool by_rows; /* a's rows are contiguous: sums run over k, else k is */
    bool packs_a, packs_b;
    ptrdiff_t parts;     /* floats in an element: 2 in complex ones */
    ptrdiff_t part_size; /* bytes of one */
    ptrdiff_t columns;   /* of sums: n * parts */
    ptrdiff_t rows;      /* in a unit */
    ptrdiff_t units;     /* in a slab */
    ptrdiff_t slab, slabs;
    char *sums;    /* of all slabs; NULL if there is one */
    const char *b; /* all of it, packed; NULL: by pieces, or not at all */
    ptrdiff_t b_step;
};

/* Bytes of the sums of so many rows. */
static ptrdiff_t sums_bytes(const struct thin_job *job, ptrdiff_t rows)
{
    const ptrdiff_t parts = job->by_rows ? job->parts : 1;
    return rows * parts * job->columns * job->part_size;
}

/* k of an element of packed b, in floats. */
static ptrdiff_t b_parts(const struct thin_job *job)
{
    return job->by_rows ? 1 : job->parts;
}

static void pack_b(const struct thin_job *job, ptrdiff_t k, ptrdiff_t count, char *to,
                   ptrdiff_t step)
{
    const struct thin_task *task = job->task;
    const struct strided *b = &task->product.b;
    const char *from = b->data + k * b->row_step;
    if (task->is_complex) {
        const struct thin_complex x = {
            from,          b->row_step,        b->column_step,     count, task->product.n, step,
            !job->by_rows, task->conjugates_b, task->conjugates_a,
        };
        task->kernel->pack_complex(&x, to);
    } else {
        const struct tile tile = {from, task->product.n, count, b->column_step, b->row_step};
        tile_pack((size_t)job->part_size, &tile, to);
    }
}

/* Finished sums of rows [row, row + rows) to c. */
static void store(const struct thin_job *job, const char *sums, ptrdiff_t sums_step, ptrdiff_t row,
                  ptrdiff_t rows)
{
    const struct thin_task *task = job->task;
    const struct strided *c = &task->product.c;
    const ptrdiff_t n = task->product.n, size = job->parts * job->part_size;
    char *to = c->data + row * c->row_step;
    if (!job->by_rows) {
        const struct tile tile = {sums, rows, n, c->row_step, c->column_step};
        tile_unpack((size_t)size, &tile, to);
        return;
    }
    for (ptrdiff_t j = 0; j < n; j++, to += c->column_step) {
        const char *column = sums + j * job->parts * sums_step;
        if (task->is_complex) {
            task->kernel->combine(column, column + sums_step, task->conjugates_a, rows, to,
                                  c->row_step);
        } else {
            const struct tile tile = {column, rows, 1, c->row_step, size};
            tile_unpack((size_t)size, &tile, to);
        }
    }
}

/* What a unit needs beside its operands. */
struct unit_memory {
    char *sums, *part, *a, *b;
    ptrdiff_t rows, piece; /* that they have room for */
};

static struct unit_memory divide(const struct thin_job *job, char *memory, ptrdiff_t bytes,
                                 ptrdiff_t rows, ptrdiff_t k)
{
    const ptrdiff_t size = job->parts * job->part_size, row = sums_bytes(job, 1);
    struct unit_memory room = {.sums = memory, .piece = k};
    /* Sums along rows are read and written again and again: they stay in the first level. */
    const ptrdiff_t most =
        job->by_rows ? THIN_SUMS_BYTES / (size_min(job->columns, 8) * size) : rows;
    room.rows = size_max(1, size_min(size_min(rows, most), bytes / 3 / row));
    if (room.rows > PACKED_ROWS) {
        room.rows -=
            room.rows % PACKED_ROWS; /* rows that kernels take by themselves have other bits */
    }
    const ptrdiff_t of_sums = room.rows * row;
    const ptrdiff_t of_k = (job->packs_a ? PACKED_ROWS * size : 0) +
                           (job->packs_b ? job->columns * b_parts(job) * job->part_size : 0);
    room.piece = size_min(k, job->by_rows ? THIN_SUM_K
                                          : THIN_LANE_K * job->task->kernel->least_k / job->parts);
    if (of_k > 0) {
        room.piece = size_min(room.piece, (bytes - 2 * of_sums) / of_k);
    }
    /* A last piece of dots shorter than a vector would not be one. */
    while (k % room.piece != 0 && k % room.piece < job->task->kernel->least_k) {
        room.piece--;
    }
    room.part = room.sums + of_sums;
    room.a = room.part + (job->by_rows ? of_sums : 0);
    room.b = room.a + (job->packs_a ? PACKED_ROWS * size * room.piece : 0);
    return room;
}

/* Pieces of long sums are summed by themselves: the error grows with the root of their number, not of k. */
static void sum_rows(const struct thin_job *job, const struct unit_memory *room,
                     const struct thin_product *x)
{
    const struct thin_kernels *kernel = job->task->kernel;
    if (!x->accumulate) {
        kernel->sums(x);
        return;
    }
    struct thin_product part = *x;
    part.accumulate = false;
    part.sums = room->part;
    part.sums_step = x->rows * job->part_size;
    kernel->sums(&part);
    for (ptrdiff_t j = 0; j < x->columns; j++) {
        kernel->add(x->sums + j * x->sums_step, part.sums + j * part.sums_step, x->rows);
    }
}

/* Rows [row, row + rows), k in [first, end), to `sums`. */
static void add_up(const struct thin_job *job, const struct unit_memory *room, ptrdiff_t row,
                   ptrdiff_t rows, ptrdiff_t first, ptrdiff_t end, char *sums, ptrdiff_t sums_step)
{
    const struct strided *a = &job->task->product.a, *b = &job->task->product.b;
    const ptrdiff_t size = job->parts * job->part_size;
    struct thin_product x = {
        .a_step = job->by_rows ? a->column_step : a->row_step,
        .columns = job->columns,
        .sums = sums,
        .sums_step = sums_step,
    };
    for (ptrdiff_t k = first; k < end; k += room->piece) {
        const ptrdiff_t count = size_min(room->piece, end - k);
        x.k = count * b_parts(job);
        x.accumulate = k > first;
        x.b_step = job->b_step;
        x.b =
            job->b != NULL ? job->b + k * b_parts(job) * job->part_size : b->data + k * b->row_step;
        if (job->packs_b) {
            x.b_step = x.k * job->part_size;
            x.b = room->b;
            pack_b(job, k, count, room->b, x.b_step);
        }
        const char *from = a->data + row * a->row_step + k * a->column_step;
        if (!job->packs_a) {
            x.a = from;
            x.rows = rows * (job->by_rows ? job->parts : 1);
            if (job->by_rows) {
                sum_rows(job, room, &x);
            } else {
                job->task->kernel->dots(&x);
            }
            continue;
        }
        x.a = room->a;
        x.a_step = count * size;
        for (ptrdiff_t r = 0; r < rows; r += PACKED_ROWS) {
            x.rows = size_min(PACKED_ROWS, rows - r);
            const struct tile tile = {from + r * a->row_step, x.rows, count, a->row_step,
                                      a->column_step};
            tile_pack((size_t)size, &tile, room->a);
            x.sums = sums + r * sums_step;
            job->task->kernel->dots(&x);
        }
    }
}

static void run_rows(const struct thin_job *job, char *memory, ptrdiff_t bytes, ptrdiff_t row,
                     ptrdiff_t rows, ptrdiff_t slab)
{
    const struct product *x = &job->task->product;
    const ptrdiff_t first = slab * job->slab, end = size_min(first + job->slab, x->k);
    const struct unit_memory room = divide(job, memory, bytes, rows, end - first);
    for (ptrdiff_t r = row; r < row + rows; r += room.rows) {
        const ptrdiff_t count = size_min(room.rows, row + rows - r);
        const ptrdiff_t part_rows = job->by_rows ? job->parts : 1;
        char *sums = room.sums;
        ptrdiff_t step = (job->by_rows ? count * part_rows : job->columns) * job->part_size;
        if (job->sums != NULL) {
            step = (job->by_rows ? x->m * part_rows : job->columns) * job->part_size;
            sums = job->sums + slab * sums_bytes(job, x->m) +
                   r * (job->by_rows ? part_rows * job->part_size : step);
        }
        add_up(job, &room, r, count, first, end, sums, step);
        if (job->sums == NULL) {
            store(job, sums, step, r, count);
        }
    }
}

static __attribute__((noinline)) void run_in_small_room(const struct thin_job *job, ptrdiff_t row,
                                                        ptrdiff_t rows, ptrdiff_t slab)
{
    _Alignas(64) char memory[SMALL_ROOM];
    run_rows(job, memory, sizeof memory, row, rows, slab);
}

static void run_units(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct thin_job *job = context;
    const struct workspace workspace = workspace_take(THIN_ROOM_BYTES);
    for (ptrdiff_t unit = first; unit < first + count; unit++) {
        const ptrdiff_t row = unit % job->units * job->rows, slab = unit / job->units;
        const ptrdiff_t rows = size_min(job->rows, job->task->product.m - row);
        if (workspace.data != NULL) {
            run_rows(job, workspace.data, THIN_ROOM_BYTES, row, rows, slab);
        } else {
            run_in_small_room(job, row, rows, slab);
        }
    }
    workspace_give_back(workspace);
}

/* Rows for each thread several times over; k is cut by the shape alone, so that threads change no bit. */
static void cut(struct thin_job *job, int threads)
{
    const struct product *x = &job->task->product;
    const double elements = (double)x->m * (double)x->k;
    const ptrdiff_t least = job->by_rows ? THIN_LEAST_ROWS : PACKED_ROWS;
    job->slabs = 1;
    if (x->m < (job->by_rows ? THIN_WIDE_ROWS : THIN_SLAB_ROWS * least)) {
        const ptrdiff_t of_memory = THIN_SLABS_BYTES / sums_bytes(job, x->m);
        const ptrdiff_t most = size_max(1, size_min(THIN_MOST_SLABS, of_memory));
        const double slabs = elements / THIN_SLAB_ELEMENTS;
        job->slabs = slabs < 1 ? 1 : slabs > (double)most ? most : (ptrdiff_t)slabs;
    }
    job->slab = ceiling(ceiling(x->k, job->slabs), SLAB_MULTIPLE) * SLAB_MULTIPLE;
    while (x->k % job->slab != 0 && x->k % job->slab < job->task->kernel->least_k) {
        job->slab += SLAB_MULTIPLE;
    }
    job->slabs = ceiling(x->k, job->slab);
    const ptrdiff_t of_elements =
        (ptrdiff_t)(THIN_UNIT_ELEMENTS / (double)size_min(x->k, job->slab));
    const ptrdiff_t of_threads = ceiling(x->m, 4 * (ptrdiff_t)threads);
    job->rows = size_max(least, size_max(of_elements, job->by_rows ? of_threads : 1));
    /* Whole rows of a slab lie next to each other. */
    const bool is_whole = threads == 1 || (job->by_rows && job->slabs > 1);
    job->rows = is_whole ? x->m : ceiling(job->rows, least) * least;
    job->units = ceiling(x->m, job->rows);
}

/* Pieces [first, first + count) of all slabs to those of the first one. */
static void add_pieces(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct thin_job *job = context;
    const ptrdiff_t bytes = sums_bytes(job, job->task->product.m);
    const ptrdiff_t all = bytes / job->part_size, start = first * THIN_ADDED_FLOATS;
    const ptrdiff_t n = size_min(count * THIN_ADDED_FLOATS, all - start);
    char *to = job->sums + start * job->part_size;
    for (ptrdiff_t slab = 1; slab < job->slabs; slab++) {
        job->task->kernel->add(to, to + slab * bytes, n);
    }
}

static void add_slabs(const struct thin_job *job, const struct policy *policy, int threads)
{
    const struct product *x = &job->task->product;
    const ptrdiff_t floats = sums_bytes(job, x->m) / job->part_size;
    const double ns = (double)(floats * job->part_size * job->slabs) / THIN_BYTES_PER_NS;
    region_run_ranges(policy, threads > 1 ? threads_for_ns(policy, ns, BREAK_EVEN_NS) : 1,
                      ceiling(floats, THIN_ADDED_FLOATS), 0, add_pieces, (void *)job);
    const ptrdiff_t step = (job->by_rows ? x->m * job->parts : job->columns) * job->part_size;
    store(job, job->sums, step, 0, x->m);
}

/* b as it lies, all of it packed, or packed piece by piece: that costs each unit as much as a few rows. */
static struct workspace prepare_b(struct thin_job *job)
{
    const struct thin_task *task = job->task;
    const struct product *x = &task->product;
    struct workspace workspace = {0};
    if (!task->is_complex && x->b.row_step == job->part_size) {
        job->b_step = x->b.column_step;
        return workspace;
    }
    const ptrdiff_t step = x->k * b_parts(job) * job->part_size;
    if (x->m > PACKED_ROWS && step * job->columns <= THIN_PACKED_BYTES) {
        workspace = workspace_take((size_t)(step * job->columns));
    }
    if (workspace.data != NULL) {
        pack_b(job, 0, x->k, workspace.data, step);
        job->b = workspace.data;
        job->b_step = step;
    }
    job->packs_b = workspace.data == NULL;
    return workspace;
}

void thin_run(const struct policy *policy, const struct thin_task *task, int threads)
{
    const struct product *x = &task->product;
    const ptrdiff_t parts = task->is_complex ? 2 : 1;
    const ptrdiff_t part_size = (ptrdiff_t)task->kernel->item_size, size = parts * part_size;
    struct thin_job job = {
        .task = task,
        .by_rows = x->a.column_step != size && x->a.row_step == size,
        .parts = parts,
        .part_size = part_size,
        .columns = x->n * parts,
    };
    job.packs_a = !job.by_rows && x->a.column_step != size;
    cut(&job, threads);
    const struct workspace of_b = prepare_b(&job);
    struct workspace of_sums = {0};
    if (job.slabs > 1) {
        of_sums = workspace_take((size_t)(job.slabs * sums_bytes(&job, x->m)));
        job.sums = of_sums.data;
    }
    if (job.slabs > 1 && job.sums == NULL) {
        job.slab = x->k;
        job.slabs = 1;
    }
    region_run_ranges(policy, threads, job.units * job.slabs, 0, run_units, &job);
    if (job.sums != NULL) {
        add_slabs(&job, policy, threads);
    }
    workspace_give_back(of_sums);
    workspace_give_back(of_b);
}
