/* Cuts a product into tiles: large enough to keep the device busy, small enough to fit into its
 * memory and to let uploads, products and downloads of different tiles overlap. */
#include "device_plan.h"

#include "device_cutoffs.h"
#include "kernels/matmul/product_steps.h"
#include "kernels/sizes.h"

enum { ROUND = 64 };

/* The extent of each of `count` panels; the last one may be smaller. */
static ptrdiff_t extent_of_panel(ptrdiff_t extent, ptrdiff_t count)
{
    return ceiling(ceiling(extent, count), ROUND) * ROUND;
}

/* Transposes the product where c is stored by columns: tiles of c are then stored by rows. */
static struct matmul_task stored_by_rows(const struct matmul_task *task)
{
    const bool by_columns = task->product.n == 1
                                ? task->product.m > 1
                                : task->product.m > 1 && magnitude(task->product.c.row_step) <
                                                             magnitude(task->product.c.column_step);
    if (!by_columns) {
        return *task;
    }
    struct matmul_task turned = *task;
    turned.product = product_transposed(&task->product);
    return turned;
}

static bool is_shared(const struct matmul_task *task, const struct strided *of)
{
    return task->product.batch == 1 || of->batch_step == 0;
}

static bool lies_transposed(const struct strided *of, ptrdiff_t rows, ptrdiff_t columns)
{
    return rows > 1 && (columns == 1 || magnitude(of->row_step) < magnitude(of->column_step));
}

static size_t matrix_bytes(const struct matmul_task *task)
{
    return task->type.size *
           (size_t)(task->product.m * task->product.k + task->product.k * task->product.n +
                    task->product.m * task->product.n);
}

static void choose_extents(struct device_plan *plan)
{
    const struct matmul_task *task = &plan->task;
    const size_t bytes = matrix_bytes(task);
    plan->batch = 1;
    plan->rows = task->product.m;
    plan->columns = task->product.n;
    if (task->product.batch > 1 && bytes < SMALL_MATRIX_BYTES) {
        const ptrdiff_t enough = (ptrdiff_t)(STACK_BYTES / bytes) + 1;
        plan->batch =
            size_min(size_max(task->product.batch / MOST_PANELS, enough), task->product.batch);
        return;
    }
    const ptrdiff_t longer = size_max(task->product.m, task->product.n);
    ptrdiff_t panels = size_min(longer / LEAST_PANEL_ROWS, PANELS_OF_SMALL);
    panels = size_min(size_max(panels, longer / PANEL_ROWS), MOST_PANELS);
    panels = size_min(panels, (ptrdiff_t)(bytes / LEAST_TILE_BYTES));
    panels = size_max(size_max(panels / task->product.batch, panels > 1 ? 2 : 1), 1);
    const ptrdiff_t extent = size_min(extent_of_panel(longer, panels), longer);
    if (task->product.n > task->product.m) {
        plan->columns = extent;
    } else {
        plan->rows = extent;
    }
}

/* Whether the operand's panels, once uploaded, all stay on the device (plans `alternates`). */
static bool stays_on_device(const struct device_plan *plan, enum operand operand)
{
    return plan->alternates && operand != OPERAND_C;
}

static void describe(struct device_plan *plan)
{
    const struct matmul_task *task = &plan->task;
    const bool a_shared = is_shared(task, &task->product.a),
               b_shared = is_shared(task, &task->product.b);
    plan->batches = ceiling(task->product.batch, plan->batch);
    plan->row_count = ceiling(task->product.m, plan->rows);
    plan->column_count = ceiling(task->product.n, plan->columns);
    plan->tiles = plan->batches * plan->row_count * plan->column_count;

    struct panels *a = &plan->panels[OPERAND_A], *b = &plan->panels[OPERAND_B],
                  *c = &plan->panels[OPERAND_C];
    if (plan->row_count > 1) {
        a->uses = 1;
    } else if (a_shared) {
        a->uses = plan->tiles;
    } else {
        a->uses = b_shared ? 1 : plan->column_count;
    }
    b->uses = plan->row_count * (b_shared ? plan->batches : 1);
    c->uses = 1;
    const size_t size = task->type.size;
    a->bytes = size * (size_t)((a_shared ? 1 : plan->batch) * plan->rows * task->product.k);
    b->bytes = size * (size_t)((b_shared ? 1 : plan->batch) * task->product.k * plan->columns);
    c->bytes = size * (size_t)(plan->batch * plan->rows * plan->columns);
    a->transposed = lies_transposed(&task->product.a, task->product.m, task->product.k);
    b->transposed = lies_transposed(&task->product.b, task->product.k, task->product.n);
    c->transposed = false;
    for (enum operand i = OPERAND_A; i < OPERANDS; i++) {
        struct panels *panels = &plan->panels[i];
        panels->count = !stays_on_device(plan, i) ? ceiling(plan->tiles, panels->uses)
                        : i == OPERAND_A          ? plan->row_count
                                                  : plan->column_count;
        panels->bytes = plan_aligned(panels->bytes);
    }
}

static void choose_depths(struct device_plan *plan, ptrdiff_t depth)
{
    plan->bytes = 0;
    for (enum operand i = OPERAND_A; i < OPERANDS; i++) {
        struct panels *panels = &plan->panels[i];
        /* Two buffers are enough for a panel that several tiles use: the next is uploaded
         * meanwhile. */
        panels->depth = size_min(panels->count, panels->uses == 1 ? depth : size_min(depth, 2));
        if (stays_on_device(plan, i)) {
            panels->depth = panels->count;
        }
        panels->offset = plan->bytes;
        plan->bytes += (size_t)panels->depth * panels->bytes;
    }
    plan->spare_offset = 0;
    if (gemm_has_spare(plan->task.type, plan->task.product.k)) {
        plan->spare_offset = plan->bytes;
        plan->bytes += (size_t)size_min(plan->tiles, PLAN_STREAMS) * plan->panels[OPERAND_C].bytes;
    }
}

/* Makes tiles smaller: first in the dimension where that costs least. */
static bool shrink(struct device_plan *plan)
{
    if (plan->batch > 1) {
        plan->batch = ceiling(plan->batch, 2);
    } else if (plan->rows > LEAST_PANEL_ROWS && plan->rows >= plan->columns / 8) {
        plan->rows = extent_of_panel(plan->rows, 2);
    } else if (plan->columns > LEAST_PANEL_ROWS) {
        plan->columns = extent_of_panel(plan->columns, 2);
    } else if (plan->rows > 1) {
        plan->rows = ceiling(plan->rows, 2);
    } else if (plan->columns > 1) {
        plan->columns = ceiling(plan->columns, 2);
    } else {
        return false;
    }
    return true;
}

static bool fits(struct device_plan *plan, size_t budget)
{
    describe(plan);
    for (ptrdiff_t depth = PLAN_MOST_DEPTH; depth >= 2; depth /= 2) {
        choose_depths(plan, depth);
        if (plan->bytes <= budget) {
            return true;
        }
    }
    return false;
}

bool plan_gains_by_alternating(const struct matmul_task *task)
{
    const ptrdiff_t extent =
        size_min(size_min(task->product.m, task->product.n), 2 * task->product.k);
    ptrdiff_t least = LEAST_ALTERNATING_EXTENT;
    if (task->type.kind == ELEMENT_FLOAT && task->type.size != 4) { /* on tensor cores */
        least = task->type.size == 8 ? LEAST_ALTERNATING_EXTENT_DOUBLE : PTRDIFF_MAX;
    }
    return task->product.batch == 1 && extent >= least;
}

static ptrdiff_t alternating_extent(ptrdiff_t extent)
{
    enum { LEAST_COUNT = 4 };
    return extent_of_panel(extent, size_max(extent / MOST_ALTERNATING_EXTENT, LEAST_COUNT));
}

bool plan_make_alternating(struct device_plan *plan, const struct matmul_task *task, size_t budget)
{
    plan->task = stored_by_rows(task);
    plan->alternates = true;
    plan->batch = 1;
    plan->rows = alternating_extent(plan->task.product.m);
    plan->columns = alternating_extent(plan->task.product.n);
    return fits(plan, budget);
}

bool plan_make(struct device_plan *plan, const struct matmul_task *task, size_t budget)
{
    if (plan_gains_by_alternating(task) && plan_make_alternating(plan, task, budget)) {
        return true;
    }
    plan->task = stored_by_rows(task);
    plan->alternates = false;
    choose_extents(plan);
    do {
        if (fits(plan, budget)) {
            return true;
        }
    } while (shrink(plan));
    choose_depths(plan, 1);
    return plan->bytes <= budget;
}

struct tile_origin {
    ptrdiff_t batch, row, column;
};

/* Order of tiles when panels of a and b are uploaded alternately: a square that grows by a column and
 * a row, then what is left of the longer side. */
static struct tile_origin origin_in_turn(const struct device_plan *plan, ptrdiff_t tile)
{
    const ptrdiff_t side = size_min(plan->row_count, plan->column_count);
    ptrdiff_t row, column;
    if (tile < side * side) {
        ptrdiff_t done = 0; /* rows and columns of the square so far */
        while ((done + 1) * (done + 1) <= tile) {
            done++;
        }
        const ptrdiff_t next = tile - done * done;
        row = next < done ? next : done;
        column = next < done ? done : next - done;
    } else {
        row = tile / side;
        column = tile % side;
        if (plan->column_count > side) {
            column = tile / side;
            row = tile % side;
        }
    }
    return (struct tile_origin){.row = row * plan->rows, .column = column * plan->columns};
}

static struct tile_origin origin_of(const struct device_plan *plan, ptrdiff_t tile)
{
    if (plan->alternates) {
        return origin_in_turn(plan, tile);
    }
    const bool stays = is_shared(&plan->task, &plan->task.product.b);
    const ptrdiff_t outer = tile / plan->row_count;
    return (struct tile_origin){
        .batch = (stays ? outer % plan->batches : outer / plan->column_count) * plan->batch,
        .row = tile % plan->row_count * plan->rows,
        .column = (stays ? outer / plan->batches : outer % plan->column_count) * plan->columns,
    };
}

struct plan_tile plan_tile(const struct device_plan *plan, ptrdiff_t index)
{
    const struct tile_origin origin = origin_of(plan, index);
    struct plan_tile tile = {
        .batch = size_min(plan->batch, plan->task.product.batch - origin.batch),
        .m = size_min(plan->rows, plan->task.product.m - origin.row),
        .n = size_min(plan->columns, plan->task.product.n - origin.column),
    };
    for (int i = 0; i < OPERANDS; i++) {
        tile.panel[i] = index / plan->panels[i].uses;
    }
    if (plan->alternates) {
        tile.panel[OPERAND_A] = origin.row / plan->rows;
        tile.panel[OPERAND_B] = origin.column / plan->columns;
    }
    return tile;
}

bool plan_tile_is_first(const struct device_plan *plan, ptrdiff_t index, enum operand operand)
{
    if (stays_on_device(plan, operand)) {
        const struct tile_origin origin = origin_of(plan, index);
        return (operand == OPERAND_A ? origin.column : origin.row) == 0;
    }
    return index % plan->panels[operand].uses == 0;
}

struct panel plan_panel(const struct device_plan *plan, ptrdiff_t index, enum operand operand)
{
    const struct matmul_task *task = &plan->task;
    const struct tile_origin origin = origin_of(plan, index);
    const struct plan_tile tile = plan_tile(plan, index);
    struct panel panel = {
        operand == OPERAND_A   ? task->product.a
        : operand == OPERAND_B ? task->product.b
                               : task->product.c,
        tile.batch,
        operand == OPERAND_B ? task->product.k : tile.m,
        operand == OPERAND_A ? task->product.k : tile.n,
        tile.panel[operand],
    };
    panel.from.data += origin.batch * panel.from.batch_step;
    if (operand != OPERAND_B) {
        panel.from.data += origin.row * panel.from.row_step;
    }
    if (operand != OPERAND_A) {
        panel.from.data += origin.column * panel.from.column_step;
    }
    if (operand != OPERAND_C && is_shared(task, &panel.from)) {
        panel.batch = 1;
    }
    if (plan->panels[operand].transposed) {
        const ptrdiff_t rows = panel.rows;
        panel.rows = panel.columns;
        panel.columns = rows;
        panel.from = strided_transposed(panel.from);
    }
    return panel;
}

device_address plan_address(const struct device_plan *plan, device_address base,
                            enum operand operand, ptrdiff_t panel)
{
    const struct panels *panels = &plan->panels[operand];
    return base + panels->offset + (size_t)(panel % panels->depth) * panels->bytes;
}

device_address plan_spare(const struct device_plan *plan, device_address base, ptrdiff_t tile)
{
    const size_t stream = (size_t)(tile % PLAN_STREAMS);
    return plan->spare_offset == 0
               ? 0
               : base + plan->spare_offset + stream * plan->panels[OPERAND_C].bytes;
}
