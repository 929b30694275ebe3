/* A product of a matrix and its own transpose is symmetric to the last bit, whatever the order of
 * additions on a device is: one half of it is copied to the other. */
#include "mirror.h"

#include "kernels/copy/tile_pack.h"
#include "kernels/copy/tile_unpack.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <string.h>

enum {
    SIDE = 64,       /* of the tiles that are transposed: two fit into the L1 cache */
    LINE_BYTES = 64, /* of a tile's rows that are transposed at a time */
};

bool matmul_is_symmetric(const struct matmul_task *task)
{
    return task->type.kind >= ELEMENT_FLOAT && task->product.m == task->product.n &&
           task->product.a.data == task->product.b.data &&
           task->product.a.row_step == task->product.b.column_step &&
           task->product.a.column_step == task->product.b.row_step &&
           (task->product.batch == 1 || task->product.a.batch_step == task->product.b.batch_step);
}

/* Some columns above the diagonal, one after the other, become rows. */
static void mirror_columns(const struct matmul_task *task, char *c, ptrdiff_t row, ptrdiff_t rows,
                           ptrdiff_t column, ptrdiff_t columns)
{
    char packed[SIDE * LINE_BYTES]; /* threads may have small stacks */
    struct tile tile = {c + row * task->product.c.row_step + column * task->product.c.column_step,
                        columns, rows, task->product.c.column_step, task->product.c.row_step};
    tile_pack(task->type.size, &tile, packed);
    tile.data = packed;
    tile.row_step = task->product.c.row_step;
    tile.column_step = task->product.c.column_step;
    tile_unpack(task->type.size, &tile,
                c + column * task->product.c.row_step + row * task->product.c.column_step);
}

static void mirror_tile(const struct matmul_task *task, char *c, ptrdiff_t row, ptrdiff_t column)
{
    const ptrdiff_t rows = task->product.m - row < SIDE ? task->product.m - row : SIDE;
    const ptrdiff_t columns = task->product.n - column < SIDE ? task->product.n - column : SIDE;
    if (row == column) {
        for (ptrdiff_t i = 0; i < rows; i++) {
            for (ptrdiff_t j = 0; j < i; j++) {
                memcpy(c + (row + i) * task->product.c.row_step +
                           (row + j) * task->product.c.column_step,
                       c + (row + j) * task->product.c.row_step +
                           (row + i) * task->product.c.column_step,
                       task->type.size);
            }
        }
        return;
    }
    const ptrdiff_t most = LINE_BYTES / (ptrdiff_t)task->type.size;
    for (ptrdiff_t i = 0; i < columns; i += most) {
        mirror_columns(task, c, row, rows, column + i, columns - i < most ? columns - i : most);
    }
}

struct mirror {
    const struct matmul_task *task;
    ptrdiff_t rows; /* of tiles, in each matrix */
    _Atomic ptrdiff_t next;
};

static void mirror_share(void *context, int index)
{
    (void)index;
    struct mirror *mirror = context;
    const struct matmul_task *task = mirror->task;
    ptrdiff_t i;
    while ((i = atomic_fetch_add(&mirror->next, 1)) < task->product.batch * mirror->rows) {
        char *c = task->product.c.data + i / mirror->rows * task->product.c.batch_step;
        const ptrdiff_t row = i % mirror->rows * SIDE;
        for (ptrdiff_t column = row; column < task->product.n; column += SIDE) {
            mirror_tile(task, c, row, column);
        }
    }
}

void matmul_mirror(const struct matmul_task *task)
{
    struct mirror mirror = {.task = task, .rows = (task->product.m + SIDE - 1) / SIDE};
    region_run(task->policy, task->product.m > 4 * SIDE ? threads_limit().threads : 1, mirror_share,
               &mirror);
}
