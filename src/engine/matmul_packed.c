/* One product by blocks for three levels of cache: panels of a and b are packed once, blocks of both
 * fit the second level, a panel of b the first, a register tile of c the registers. */
#include "matmul_packed.h"

#include "kernels/sizes.h"
#include "matmul_cutoffs.h"
#include "memory/workspace.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <string.h>

enum {
    MOST_TILE_BYTES = 4096,
    /* Each attempt to get memory halves the sides of the outer blocks; the last one needs LAST_RESORT_BYTES. */
    ATTEMPTS = 7,
};

/* Counts rows, columns and k of a matrix, unless the name says panels or groups. */
struct packed_product {
    const struct policy *policy;
    const struct matmul_kernel *kernel;
    const struct product *x;
    ptrdiff_t outer_rows, outer_columns, outer_k; /* multiples of panels and groups */
    ptrdiff_t block_rows, block_columns, block_groups;
    bool in_place;      /* tiles are computed in c itself, without `sums` */
    char *a, *b, *sums; /* sums: NULL if in_place */
    ptrdiff_t a_bytes, b_bytes, sums_bytes, sums_row;
    struct outer_block {
        ptrdiff_t row, column, k, rows, columns, depth, groups;
    } outer; /* where the one at work begins, and how large it is */
    _Atomic ptrdiff_t next_block;
};

/* Groups in a panel that is k deep. */
static ptrdiff_t groups_of(const struct matmul_kernel *kernel, ptrdiff_t k)
{
    return ceiling(k, kernel->group) + kernel->extra_groups;
}

static ptrdiff_t round_up(ptrdiff_t n, ptrdiff_t multiple)
{
    return ceiling(n, multiple) * multiple;
}

static void pack_panel_of_a(const struct packed_product *packed, ptrdiff_t panel)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const struct product *x = packed->x;
    const struct outer_block *outer = &packed->outer;
    const ptrdiff_t row = panel * kernel->rows;
    kernel->pack_a(packed->a + row * (ptrdiff_t)kernel->a_group_bytes * outer->groups,
                   x->a.data + (outer->row + row) * x->a.row_step + outer->k * x->a.column_step,
                   x->a.row_step, x->a.column_step, size_min(kernel->rows, outer->rows - row),
                   outer->depth);
}

static void pack_panel_of_b(const struct packed_product *packed, ptrdiff_t panel)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const struct product *x = packed->x;
    const struct outer_block *outer = &packed->outer;
    const ptrdiff_t column = panel * kernel->columns;
    kernel->pack_b(packed->b + column * (ptrdiff_t)kernel->b_group_bytes * outer->groups,
                   x->b.data + (outer->column + column) * x->b.column_step +
                       outer->k * x->b.row_step,
                   x->b.column_step, x->b.row_step,
                   size_min(kernel->columns, outer->columns - column), outer->depth);
}

static void pack_panels(void *context, ptrdiff_t first, ptrdiff_t count)
{
    const struct packed_product *packed = context;
    const ptrdiff_t of_a = ceiling(packed->outer.rows, packed->kernel->rows);
    for (ptrdiff_t panel = first; panel < first + count; panel++) {
        if (panel < of_a) {
            pack_panel_of_a(packed, panel);
        } else {
            pack_panel_of_b(packed, panel - of_a);
        }
    }
}

/* A tile that reaches beyond c. */
static void edge_tile(const struct matmul_kernel *kernel, const char *a, const char *b,
                      ptrdiff_t groups, char *c, ptrdiff_t c_row, ptrdiff_t rows, ptrdiff_t columns,
                      bool accumulate)
{
    _Alignas(64) char tile[MOST_TILE_BYTES];
    const ptrdiff_t size = (ptrdiff_t)kernel->sum_size;
    const ptrdiff_t tile_row = kernel->columns * size;
    for (ptrdiff_t row = 0; accumulate && row < kernel->rows; row++) {
        memset(tile + row * tile_row, 0, (size_t)tile_row);
        if (row < rows) {
            memcpy(tile + row * tile_row, c + row * c_row, (size_t)(columns * size));
        }
    }
    kernel->tile(a, b, groups, tile, tile_row, accumulate);
    for (ptrdiff_t row = 0; row < rows; row++) {
        memcpy(c + row * c_row, tile + row * tile_row, (size_t)(columns * size));
    }
}

/* Computes tiles of rows [row, row_end) and columns [column, column_end) of an outer block, whose first
 * element lies at c. */
static void compute_tiles(const struct packed_product *packed, ptrdiff_t row, ptrdiff_t row_end,
                          ptrdiff_t column, ptrdiff_t column_end, char *c, ptrdiff_t c_row)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const struct outer_block *outer = &packed->outer;
    const ptrdiff_t a_bytes = kernel->rows * (ptrdiff_t)kernel->a_group_bytes;
    const ptrdiff_t b_bytes = kernel->columns * (ptrdiff_t)kernel->b_group_bytes;
    for (ptrdiff_t first = 0; first < outer->groups; first += packed->block_groups) {
        const ptrdiff_t groups = size_min(packed->block_groups, outer->groups - first);
        const bool accumulate = outer->k > 0 || first > 0;
        for (ptrdiff_t j = column; j < column_end; j += kernel->columns) {
            const char *b = packed->b + (j / kernel->columns * outer->groups + first) * b_bytes;
            const ptrdiff_t columns = size_min(kernel->columns, column_end - j);
            for (ptrdiff_t i = row; i < row_end; i += kernel->rows) {
                const char *a = packed->a + (i / kernel->rows * outer->groups + first) * a_bytes;
                const ptrdiff_t rows = size_min(kernel->rows, row_end - i);
                char *to = c + i * c_row + j * (ptrdiff_t)kernel->sum_size;
                if (packed->sums != NULL || (rows == kernel->rows && columns == kernel->columns)) {
                    kernel->tile(a, b, groups, to, c_row, accumulate);
                } else {
                    edge_tile(kernel, a, b, groups, to, c_row, rows, columns, accumulate);
                }
            }
        }
    }
}

static void copy_elements(const char *sums, ptrdiff_t sums_row, char *c, ptrdiff_t c_row,
                          ptrdiff_t c_column, ptrdiff_t rows, ptrdiff_t columns, size_t size)
{
    for (ptrdiff_t row = 0; row < rows; row++) {
        for (ptrdiff_t column = 0; column < columns; column++) {
            memcpy(c + row * c_row + column * c_column,
                   sums + row * sums_row + column * (ptrdiff_t)size, size);
        }
    }
}

static void compute_block(const struct packed_product *packed, ptrdiff_t block)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const struct outer_block *outer = &packed->outer;
    const struct product *x = packed->x;
    const ptrdiff_t across = ceiling(outer->columns, packed->block_columns);
    const ptrdiff_t row = block / across * packed->block_rows;
    const ptrdiff_t column = block % across * packed->block_columns;
    const ptrdiff_t row_end = size_min(row + packed->block_rows, outer->rows);
    const ptrdiff_t column_end = size_min(column + packed->block_columns, outer->columns);
    char *c = x->c.data + outer->row * x->c.row_step + outer->column * x->c.column_step;
    if (packed->sums == NULL) {
        compute_tiles(packed, row, row_end, column, column_end, c, x->c.row_step);
        return;
    }
    compute_tiles(packed, row, row_end, column, column_end, packed->sums, packed->sums_row);
    if (outer->k + outer->depth < x->k) {
        return;
    }
    const char *sums = packed->sums + row * packed->sums_row + column * (ptrdiff_t)kernel->sum_size;
    c += row * x->c.row_step + column * x->c.column_step;
    if (kernel->finish != NULL) {
        kernel->finish(sums, packed->sums_row, c, x->c.row_step, x->c.column_step, row_end - row,
                       column_end - column);
    } else {
        copy_elements(sums, packed->sums_row, c, x->c.row_step, x->c.column_step, row_end - row,
                      column_end - column, kernel->item_size);
    }
}

static void compute_share(void *context, int index)
{
    (void)index;
    struct packed_product *packed = context;
    const struct outer_block *outer = &packed->outer;
    const ptrdiff_t blocks =
        ceiling(outer->rows, packed->block_rows) * ceiling(outer->columns, packed->block_columns);
    if (packed->kernel->begin != NULL) {
        packed->kernel->begin();
    }
    ptrdiff_t block;
    while ((block = atomic_fetch_add(&packed->next_block, 1)) < blocks) {
        compute_block(packed, block);
    }
    if (packed->kernel->end != NULL) {
        packed->kernel->end();
    }
}

static void compute_outer_block(struct packed_product *packed, int threads)
{
    const struct outer_block *outer = &packed->outer;
    const ptrdiff_t panels = ceiling(outer->rows, packed->kernel->rows) +
                             ceiling(outer->columns, packed->kernel->columns);
    region_run_ranges(packed->policy, threads, panels, 0, pack_panels, packed);
    atomic_store(&packed->next_block, 0);
    region_run(packed->policy, threads, compute_share, packed);
}

static void compute_outer_blocks(struct packed_product *packed, int threads)
{
    const struct product *x = packed->x;
    struct outer_block *outer = &packed->outer;
    for (outer->column = 0; outer->column < x->n; outer->column += packed->outer_columns) {
        outer->columns = size_min(packed->outer_columns, x->n - outer->column);
        for (outer->row = 0; outer->row < x->m; outer->row += packed->outer_rows) {
            outer->rows = size_min(packed->outer_rows, x->m - outer->row);
            for (outer->k = 0; outer->k < x->k; outer->k += packed->outer_k) {
                outer->depth = size_min(packed->outer_k, x->k - outer->k);
                outer->groups = groups_of(packed->kernel, outer->depth);
                compute_outer_block(packed, threads);
            }
        }
    }
}

/* Rows or columns of an outer block: whole panels, at least one. */
static ptrdiff_t outer_side(ptrdiff_t side, ptrdiff_t panel, ptrdiff_t most)
{
    const ptrdiff_t whole = most / panel * panel;
    return size_min(round_up(side, panel), whole > panel ? whole : panel);
}

static void choose_outer_block(struct packed_product *packed, int attempt)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const struct product *x = packed->x;
    const ptrdiff_t side = OUTER_BLOCK_SIDE >> attempt, bytes = OUTER_BLOCK_BYTES >> 2 * attempt;
    packed->outer_k = size_min(x->k, side);
    const ptrdiff_t groups = groups_of(kernel, packed->outer_k);
    const ptrdiff_t a_bytes = groups * (ptrdiff_t)kernel->a_group_bytes;
    const ptrdiff_t b_bytes = groups * (ptrdiff_t)kernel->b_group_bytes;
    packed->outer_rows = outer_side(x->m, kernel->rows, size_min(bytes / a_bytes, side));
    packed->outer_columns = outer_side(x->n, kernel->columns, size_min(bytes / b_bytes, side));
    packed->a_bytes = round_up(packed->outer_rows * a_bytes, 64);
    packed->b_bytes = round_up(packed->outer_columns * b_bytes, 64);
    packed->sums_row = packed->outer_columns * (ptrdiff_t)kernel->sum_size;
    packed->sums_bytes = packed->in_place ? 0 : packed->outer_rows * packed->sums_row;
}

/* Halves blocks until there are BLOCKS_PER_THREAD for each thread. */
static void choose_blocks(struct packed_product *packed, int threads)
{
    const struct matmul_kernel *kernel = packed->kernel;
    const ptrdiff_t rows = kernel->rows, columns = kernel->columns;
    const ptrdiff_t groups = groups_of(kernel, packed->outer_k);
    const ptrdiff_t panel = kernel->panel_bytes > 0 ? kernel->panel_bytes : PANEL_BYTES;
    packed->block_groups =
        ceiling(groups, ceiling(groups * columns * (ptrdiff_t)kernel->b_group_bytes, panel));
    ptrdiff_t across = round_up(size_min(BLOCK_COLUMNS, packed->outer_columns), columns);
    ptrdiff_t down =
        BLOCK_BYTES / (packed->block_groups * (ptrdiff_t)kernel->a_group_bytes) / rows * rows;
    down = size_min(down > rows ? down : rows, packed->outer_rows);
    while (threads > 1 &&
           ceiling(packed->outer_rows, down) * ceiling(packed->outer_columns, across) <
               (ptrdiff_t)threads * BLOCKS_PER_THREAD) {
        if (down >= across && down > rows) {
            down = round_up(down / 2, rows);
        } else if (across > columns) {
            across = round_up(across / 2, columns);
        } else if (down > rows) {
            down = round_up(down / 2, rows);
        } else {
            break;
        }
    }
    packed->block_rows = down;
    packed->block_columns = across;
}

static void compute_in(struct packed_product *packed, char *memory, int threads)
{
    packed->b = memory;
    packed->a = packed->b + packed->b_bytes;
    packed->sums = packed->in_place ? NULL : packed->a + packed->a_bytes;
    choose_blocks(packed, threads);
    compute_outer_blocks(packed, threads);
}

static __attribute__((noinline)) void compute_in_last_resort(struct packed_product *packed)
{
    _Alignas(64) char memory[LAST_RESORT_BYTES];
    choose_outer_block(packed, ATTEMPTS - 1);
    compute_in(packed, memory, 1);
}

void matmul_packed(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct product *product, int threads)
{
    struct packed_product packed = {
        .policy = policy,
        .kernel = kernel,
        .x = product,
        .in_place =
            kernel->finish == NULL && product->c.column_step == (ptrdiff_t)kernel->item_size,
    };
    for (int attempt = 0; attempt < ATTEMPTS - 1; attempt++) {
        choose_outer_block(&packed, attempt);
        const struct workspace workspace =
            workspace_take((size_t)(packed.a_bytes + packed.b_bytes + packed.sums_bytes));
        if (workspace.data != NULL) {
            compute_in(&packed, workspace.data, threads);
            workspace_give_back(workspace);
            return;
        }
    }
    compute_in_last_resort(&packed);
}
