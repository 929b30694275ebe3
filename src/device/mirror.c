/* A product of a matrix and its own transpose is symmetric to the last bit, whatever the order of
 * additions on a device is: one half of it is copied to the other. */
#include "mirror.h"

#include "kernels/copy/tile_pack.h"
#include "kernels/copy/tile_unpack.h"
#include "threads/limit.h"
#include "threads/region.h"

#include <stdatomic.h>
#include <string.h>

enum { SIDE = 64 }; /* of the tiles that are transposed: two fit into the first cache */

bool matmul_is_symmetric(const struct matmul_task *task)
{
    return task->type.kind >= ELEMENT_FLOAT && task->m == task->n && task->a.data == task->b.data &&
           task->a.row_step == task->b.column_step && task->a.column_step == task->b.row_step &&
           (task->batch == 1 || task->a.batch_step == task->b.batch_step);
}

static void mirror_tile(const struct matmul_task *task, char *c, ptrdiff_t row, ptrdiff_t column)
{
    char packed[SIDE * SIDE * 16];
    const ptrdiff_t rows = task->m - row < SIDE ? task->m - row : SIDE;
    const ptrdiff_t columns = task->n - column < SIDE ? task->n - column : SIDE;
    if (row == column) {
        for (ptrdiff_t i = 0; i < rows; i++) {
            for (ptrdiff_t j = 0; j < i; j++) {
                memcpy(c + (row + i) * task->c.row_step + (row + j) * task->c.column_step,
                       c + (row + j) * task->c.row_step + (row + i) * task->c.column_step,
                       task->type.size);
            }
        }
        return;
    }
    /* The tile above the diagonal, column by column. */
    struct tile tile = {c + row * task->c.row_step + column * task->c.column_step, columns, rows,
                        task->c.column_step, task->c.row_step};
    tile_pack(task->type.size, &tile, packed);
    tile.data = packed;
    tile.row_step = task->c.row_step;
    tile.column_step = task->c.column_step;
    tile_unpack(task->type.size, &tile, c + column * task->c.row_step + row * task->c.column_step);
}

struct mirror {
    const struct matmul_task *task;
    ptrdiff_t rows; /* of tiles, in each matrix */
    _Atomic ptrdiff_t next;
};

/* Takes rows of tiles. */
static void mirror_share(void *context, int index)
{
    (void)index;
    struct mirror *mirror = context;
    const struct matmul_task *task = mirror->task;
    ptrdiff_t i;
    while ((i = atomic_fetch_add(&mirror->next, 1)) < task->batch * mirror->rows) {
        char *c = task->c.data + i / mirror->rows * task->c.batch_step;
        const ptrdiff_t row = i % mirror->rows * SIDE;
        for (ptrdiff_t column = row; column < task->n; column += SIDE) {
            mirror_tile(task, c, row, column);
        }
    }
}

void matmul_mirror(const struct matmul_task *task)
{
    struct mirror mirror = {.task = task, .rows = (task->m + SIDE - 1) / SIDE};
    region_run(task->policy, task->m > 4 * SIDE ? threads_limit().threads : 1, mirror_share,
               &mirror);
}
