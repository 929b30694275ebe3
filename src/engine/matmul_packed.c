/* One product by blocks for three levels of cache: panels of a and b are packed once, blocks of both
 * fit the second level, a panel of b the first, a tile of c the registers. */
#include "matmul_packed.h"
#include "memory/workspace.h"
#include "threads/region.h"
#include "threads/shares.h"

#include <string.h>

enum {
    /* What of one panel of b, and of the panels of a in one block, is used at a time. */
    PANEL_BYTES = 24 << 10,
    BLOCK_BYTES = 192 << 10,
    /* What is packed at once; larger matrices are computed in several chunks. */
    CHUNK_BYTES = 16 << 20,
    CHUNK_ROWS = 4096,
    CHUNK_K = 4096,
    BLOCK_COLUMNS = 512,
    BLOCKS_PER_THREAD = 4,
    MOST_TILE_BYTES = 4096,
};

/* Counts rows, columns and k of a matrix, unless the name says panels or groups. */
struct product {
    const struct policy *policy;
    const struct matmul_kernel *kernel;
    const struct matrices *x;
    ptrdiff_t chunk_rows, chunk_columns, chunk_k; /* multiples of panels and groups */
    ptrdiff_t block_rows, block_columns, block_groups;
    char *a, *b, *sums; /* sums: NULL where tiles are computed in c itself */
    ptrdiff_t sums_row;
    struct chunk {
        ptrdiff_t row, column, k, rows, columns, depth, groups;
    } chunk;               /* where the one at work begins, and how large it is */
    struct shares *shares; /* of its panels */
    _Atomic ptrdiff_t next_block;
};

static ptrdiff_t least(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static ptrdiff_t pieces(ptrdiff_t n, ptrdiff_t size)
{
    return (n + size - 1) / size;
}

/* Of a panel of k. */
static ptrdiff_t groups_of(const struct matmul_kernel *kernel, ptrdiff_t k)
{
    return pieces(k, kernel->group) + kernel->more_groups;
}

static ptrdiff_t round_up(ptrdiff_t n, ptrdiff_t multiple)
{
    return pieces(n, multiple) * multiple;
}

static void pack_panel_of_a(const struct product *product, ptrdiff_t panel)
{
    const struct matmul_kernel *kernel = product->kernel;
    const struct matrices *x = product->x;
    const struct chunk *chunk = &product->chunk;
    const ptrdiff_t row = panel * kernel->rows;
    kernel->pack_a(product->a + row * (ptrdiff_t)kernel->a_group_bytes * chunk->groups,
                   x->a + (chunk->row + row) * x->a_row + chunk->k * x->a_k, x->a_row, x->a_k,
                   least(kernel->rows, chunk->rows - row), chunk->depth);
}

static void pack_panel_of_b(const struct product *product, ptrdiff_t panel)
{
    const struct matmul_kernel *kernel = product->kernel;
    const struct matrices *x = product->x;
    const struct chunk *chunk = &product->chunk;
    const ptrdiff_t column = panel * kernel->columns;
    kernel->pack_b(product->b + column * (ptrdiff_t)kernel->b_group_bytes * chunk->groups,
                   x->b + (chunk->column + column) * x->b_column + chunk->k * x->b_k, x->b_column,
                   x->b_k, least(kernel->columns, chunk->columns - column), chunk->depth);
}

static void pack_share(void *context, int index)
{
    struct product *product = context;
    const ptrdiff_t of_a = pieces(product->chunk.rows, product->kernel->rows);
    ptrdiff_t panel, end;
    while (shares_take(product->shares, index, &panel, &end)) {
        for (; panel < end; panel++) {
            if (panel < of_a) {
                pack_panel_of_a(product, panel);
            } else {
                pack_panel_of_b(product, panel - of_a);
            }
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

/* Computes tiles of rows [row, row_end) and columns [column, column_end) of a chunk, whose first
 * element lies at c. */
static void compute_tiles(const struct product *product, ptrdiff_t row, ptrdiff_t row_end,
                          ptrdiff_t column, ptrdiff_t column_end, char *c, ptrdiff_t c_row)
{
    const struct matmul_kernel *kernel = product->kernel;
    const struct chunk *chunk = &product->chunk;
    const ptrdiff_t a_bytes = kernel->rows * (ptrdiff_t)kernel->a_group_bytes;
    const ptrdiff_t b_bytes = kernel->columns * (ptrdiff_t)kernel->b_group_bytes;
    for (ptrdiff_t first = 0; first < chunk->groups; first += product->block_groups) {
        const ptrdiff_t groups = least(product->block_groups, chunk->groups - first);
        const bool accumulate = chunk->k > 0 || first > 0;
        for (ptrdiff_t j = column; j < column_end; j += kernel->columns) {
            const char *b = product->b + (j / kernel->columns * chunk->groups + first) * b_bytes;
            const ptrdiff_t columns = least(kernel->columns, column_end - j);
            for (ptrdiff_t i = row; i < row_end; i += kernel->rows) {
                const char *a = product->a + (i / kernel->rows * chunk->groups + first) * a_bytes;
                const ptrdiff_t rows = least(kernel->rows, row_end - i);
                char *to = c + i * c_row + j * (ptrdiff_t)kernel->sum_size;
                if (product->sums != NULL || (rows == kernel->rows && columns == kernel->columns)) {
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

static void compute_block(const struct product *product, ptrdiff_t block)
{
    const struct matmul_kernel *kernel = product->kernel;
    const struct chunk *chunk = &product->chunk;
    const struct matrices *x = product->x;
    const ptrdiff_t across = pieces(chunk->columns, product->block_columns);
    const ptrdiff_t row = block / across * product->block_rows;
    const ptrdiff_t column = block % across * product->block_columns;
    const ptrdiff_t row_end = least(row + product->block_rows, chunk->rows);
    const ptrdiff_t column_end = least(column + product->block_columns, chunk->columns);
    char *c = x->c + chunk->row * x->c_row + chunk->column * x->c_column;
    if (product->sums == NULL) {
        compute_tiles(product, row, row_end, column, column_end, c, x->c_row);
        return;
    }
    compute_tiles(product, row, row_end, column, column_end, product->sums, product->sums_row);
    if (chunk->k + chunk->depth < x->k) {
        return;
    }
    const char *sums =
        product->sums + row * product->sums_row + column * (ptrdiff_t)kernel->sum_size;
    c += row * x->c_row + column * x->c_column;
    if (kernel->finish != NULL) {
        kernel->finish(sums, product->sums_row, c, x->c_row, x->c_column, row_end - row,
                       column_end - column);
    } else {
        copy_elements(sums, product->sums_row, c, x->c_row, x->c_column, row_end - row,
                      column_end - column, kernel->item_size);
    }
}

static void compute_share(void *context, int index)
{
    (void)index;
    struct product *product = context;
    const struct chunk *chunk = &product->chunk;
    const ptrdiff_t blocks =
        pieces(chunk->rows, product->block_rows) * pieces(chunk->columns, product->block_columns);
    if (product->kernel->begin != NULL) {
        product->kernel->begin();
    }
    ptrdiff_t block;
    while ((block = atomic_fetch_add(&product->next_block, 1)) < blocks) {
        compute_block(product, block);
    }
    if (product->kernel->end != NULL) {
        product->kernel->end();
    }
}

static void compute_chunk(struct product *product, int threads)
{
    const struct chunk *chunk = &product->chunk;
    const ptrdiff_t panels = pieces(chunk->rows, product->kernel->rows) +
                             pieces(chunk->columns, product->kernel->columns);
    struct shares shares;
    shares_initialize(&shares, 0, panels, 1, 1, threads);
    product->shares = &shares;
    region_run(product->policy, threads, pack_share, product);
    product->shares = NULL;
    atomic_store(&product->next_block, 0);
    region_run(product->policy, threads, compute_share, product);
}

static void compute_chunks(struct product *product, int threads)
{
    const struct matrices *x = product->x;
    struct chunk *chunk = &product->chunk;
    for (chunk->column = 0; chunk->column < x->n; chunk->column += product->chunk_columns) {
        chunk->columns = least(product->chunk_columns, x->n - chunk->column);
        for (chunk->row = 0; chunk->row < x->m; chunk->row += product->chunk_rows) {
            chunk->rows = least(product->chunk_rows, x->m - chunk->row);
            for (chunk->k = 0; chunk->k < x->k; chunk->k += product->chunk_k) {
                chunk->depth = least(product->chunk_k, x->k - chunk->k);
                chunk->groups = groups_of(product->kernel, chunk->depth);
                compute_chunk(product, threads);
            }
        }
    }
}

/* Sizes of chunks and blocks, in multiples of panels. */
static void choose_blocks(struct product *product, int threads)
{
    const struct matmul_kernel *kernel = product->kernel;
    const struct matrices *x = product->x;
    const ptrdiff_t rows = kernel->rows, columns = kernel->columns;
    product->chunk_k = least(x->k, CHUNK_K);
    const ptrdiff_t groups = groups_of(kernel, product->chunk_k);
    const ptrdiff_t a_bytes = (ptrdiff_t)kernel->a_group_bytes,
                    b_bytes = (ptrdiff_t)kernel->b_group_bytes;
    const ptrdiff_t a_most = least(CHUNK_BYTES / (groups * a_bytes), CHUNK_ROWS) / rows * rows;
    const ptrdiff_t b_most =
        least(CHUNK_BYTES / (groups * b_bytes), CHUNK_ROWS) / columns * columns;
    product->chunk_rows = least(round_up(x->m, rows), a_most);
    product->chunk_columns = least(round_up(x->n, columns), b_most);

    const ptrdiff_t panel_bytes = kernel->panel_bytes > 0 ? kernel->panel_bytes : PANEL_BYTES;
    product->block_groups = pieces(groups, pieces(groups * columns * b_bytes, panel_bytes));
    ptrdiff_t across = round_up(least(BLOCK_COLUMNS, product->chunk_columns), columns);
    ptrdiff_t down = BLOCK_BYTES / (product->block_groups * a_bytes) / rows * rows;
    down = least(down > rows ? down : rows, product->chunk_rows);
    while (threads > 1 &&
           pieces(product->chunk_rows, down) * pieces(product->chunk_columns, across) <
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
    product->block_rows = down;
    product->block_columns = across;
}

bool matmul_packed(const struct policy *policy, const struct matmul_kernel *kernel,
                   const struct matrices *x, int threads)
{
    struct product product = {.policy = policy, .kernel = kernel, .x = x};
    choose_blocks(&product, threads);
    const size_t groups = (size_t)groups_of(kernel, product.chunk_k);
    const size_t a_bytes =
        (size_t)round_up(product.chunk_rows * (ptrdiff_t)(groups * kernel->a_group_bytes), 64);
    const size_t b_bytes =
        (size_t)round_up(product.chunk_columns * (ptrdiff_t)(groups * kernel->b_group_bytes), 64);
    const bool in_place = kernel->finish == NULL && x->c_column == (ptrdiff_t)kernel->item_size;
    product.sums_row = product.chunk_columns * (ptrdiff_t)kernel->sum_size;
    const size_t sums_bytes = in_place ? 0 : (size_t)(product.sums_row * product.chunk_rows);
    const struct workspace workspace = workspace_take(b_bytes + a_bytes + sums_bytes);
    if (workspace.data == NULL) {
        return false;
    }
    product.b = workspace.data;
    product.a = product.b + b_bytes;
    product.sums = in_place ? NULL : product.a + a_bytes;
    compute_chunks(&product, threads);
    workspace_give_back(workspace);
    return true;
}
