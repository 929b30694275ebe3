/* Cuts a product into tiles: large enough to keep the device busy, small enough that the first are
 * back while the last are on their way, and that they fit into the memory. */
#include "plan.h"

enum {
    /* Rows of one large product. Fewer rows leave multiprocessors idle, more make the ends longer
     * where nothing overlaps. */
    PANEL = 400,
    LEAST_PANEL = 256,
    PANELS_OF_SMALL = 4,
    MOST_PANELS = 16,
    ROUND = 64,
    ALIGNMENT = 256,
};

static const size_t LEAST_TILE_BYTES = (size_t)1 << 20;
static const size_t SMALL_MATRIX_BYTES = (size_t)8 << 20; /* below, tiles are of many matrices */
static const size_t STACK_BYTES = (size_t)8 << 20;

static ptrdiff_t at_least(ptrdiff_t a, ptrdiff_t b)
{
    return a > b ? a : b;
}

static ptrdiff_t at_most(ptrdiff_t a, ptrdiff_t b)
{
    return a < b ? a : b;
}

static ptrdiff_t divide_up(ptrdiff_t a, ptrdiff_t b)
{
    return (a + b - 1) / b;
}

/* Of each of so many parts of an extent, the last of which may be smaller. */
static ptrdiff_t extent_of_part(ptrdiff_t extent, ptrdiff_t count)
{
    return divide_up(divide_up(extent, count), ROUND) * ROUND;
}

static ptrdiff_t magnitude(ptrdiff_t step)
{
    return step < 0 ? -step : step;
}

static struct strided transpose(struct strided of)
{
    return (struct strided){of.data, of.batch_step, of.column_step, of.row_step};
}

/* The transposed product gives c in the order in which it is stored. */
static struct matmul_task stored_by_rows(const struct matmul_task *task)
{
    const bool by_columns =
        task->n == 1 ? task->m > 1
                     : task->m > 1 && magnitude(task->c.row_step) < magnitude(task->c.column_step);
    if (!by_columns) {
        return *task;
    }
    struct matmul_task turned = *task;
    turned.m = task->n;
    turned.n = task->m;
    turned.a = transpose(task->b);
    turned.b = transpose(task->a);
    turned.c = transpose(task->c);
    return turned;
}

static bool is_shared(const struct matmul_task *task, const struct strided *of)
{
    return task->batch == 1 || of->batch_step == 0;
}

static bool lies_transposed(const struct strided *of, ptrdiff_t rows, ptrdiff_t columns)
{
    return rows > 1 && (columns == 1 || magnitude(of->row_step) < magnitude(of->column_step));
}

static size_t matrix_bytes(const struct matmul_task *task)
{
    return task->type.size * (size_t)(task->m * task->k + task->k * task->n + task->m * task->n);
}

static void choose_extents(struct plan *plan)
{
    const struct matmul_task *task = &plan->task;
    const size_t bytes = matrix_bytes(task);
    plan->batch = 1;
    plan->rows = task->m;
    plan->columns = task->n;
    if (task->batch > 1 && bytes < SMALL_MATRIX_BYTES) {
        const ptrdiff_t enough = (ptrdiff_t)(STACK_BYTES / bytes) + 1;
        plan->batch = at_most(at_least(task->batch / MOST_PANELS, enough), task->batch);
        return;
    }
    const ptrdiff_t longer = at_least(task->m, task->n);
    ptrdiff_t panels = at_most(longer / LEAST_PANEL, PANELS_OF_SMALL);
    panels = at_most(at_least(panels, longer / PANEL), MOST_PANELS);
    panels = at_most(panels, (ptrdiff_t)(bytes / LEAST_TILE_BYTES));
    panels = at_least(at_least(panels / task->batch, panels > 1 ? 2 : 1), 1);
    const ptrdiff_t extent = at_most(extent_of_part(longer, panels), longer);
    if (task->n > task->m) {
        plan->columns = extent;
    } else {
        plan->rows = extent;
    }
}

/* Whether all of the operand's parts stay on the device, from their turn on. */
static bool comes_in_turns(const struct plan *plan, enum operand operand)
{
    return plan->in_turns && operand != OPERAND_C;
}

static void describe(struct plan *plan)
{
    const struct matmul_task *task = &plan->task;
    const bool a_shared = is_shared(task, &task->a), b_shared = is_shared(task, &task->b);
    plan->batches = divide_up(task->batch, plan->batch);
    plan->row_count = divide_up(task->m, plan->rows);
    plan->column_count = divide_up(task->n, plan->columns);
    plan->tiles = plan->batches * plan->row_count * plan->column_count;

    struct slots *a = &plan->slots[OPERAND_A], *b = &plan->slots[OPERAND_B],
                 *c = &plan->slots[OPERAND_C];
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
    a->bytes = size * (size_t)((a_shared ? 1 : plan->batch) * plan->rows * task->k);
    b->bytes = size * (size_t)((b_shared ? 1 : plan->batch) * task->k * plan->columns);
    c->bytes = size * (size_t)(plan->batch * plan->rows * plan->columns);
    a->transposed = lies_transposed(&task->a, task->m, task->k);
    b->transposed = lies_transposed(&task->b, task->k, task->n);
    c->transposed = false;
    for (enum operand i = OPERAND_A; i < OPERANDS; i++) {
        struct slots *slots = &plan->slots[i];
        slots->parts = !comes_in_turns(plan, i) ? divide_up(plan->tiles, slots->uses)
                       : i == OPERAND_A         ? plan->row_count
                                                : plan->column_count;
        slots->bytes = (slots->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
}

static void choose_depths(struct plan *plan, ptrdiff_t depth)
{
    plan->bytes = 0;
    for (enum operand i = OPERAND_A; i < OPERANDS; i++) {
        struct slots *slots = &plan->slots[i];
        /* Two of what stays for several tiles: the next one comes while the last is in use. */
        slots->depth = at_most(slots->parts, slots->uses == 1 ? depth : at_most(depth, 2));
        if (comes_in_turns(plan, i)) {
            slots->depth = slots->parts;
        }
        slots->offset = plan->bytes;
        plan->bytes += (size_t)slots->depth * slots->bytes;
    }
    plan->spare_offset = 0;
    if (gemm_has_spare(plan->task.type, plan->task.k)) {
        plan->spare_offset = plan->bytes;
        plan->bytes += (size_t)at_most(plan->tiles, PLAN_QUEUES) * plan->slots[OPERAND_C].bytes;
    }
}

/* Makes tiles smaller, in the order in which it costs least. */
static bool shrink(struct plan *plan)
{
    if (plan->batch > 1) {
        plan->batch = divide_up(plan->batch, 2);
    } else if (plan->rows > LEAST_PANEL && plan->rows >= plan->columns / 8) {
        plan->rows = extent_of_part(plan->rows, 2);
    } else if (plan->columns > LEAST_PANEL) {
        plan->columns = extent_of_part(plan->columns, 2);
    } else if (plan->rows > 1) {
        plan->rows = divide_up(plan->rows, 2);
    } else if (plan->columns > 1) {
        plan->columns = divide_up(plan->columns, 2);
    } else {
        return false;
    }
    return true;
}

static bool fits(struct plan *plan, size_t budget)
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

/* Whether the product takes longer than the way of what it needs, and than that of what it gives:
 * then the device should not wait for all of b. */
static bool gains_by_turns(const struct matmul_task *task)
{
    const ptrdiff_t extent = at_most(at_most(task->m, task->n), 2 * task->k);
    ptrdiff_t least = 4096;
    if (task->type.kind == ELEMENT_FLOAT && task->type.size != 4) { /* on tensor cores */
        least = task->type.size == 8 ? 8192 : PTRDIFF_MAX;
    }
    return task->batch == 1 && extent >= least;
}

static ptrdiff_t extent_in_turns(ptrdiff_t extent)
{
    enum { LEAST_COUNT = 4, MOST = 2048 };
    return extent_of_part(extent, at_least(extent / MOST, LEAST_COUNT));
}

bool plan_make_in_turns(struct plan *plan, const struct matmul_task *task, size_t budget)
{
    plan->task = stored_by_rows(task);
    plan->in_turns = true;
    plan->batch = 1;
    plan->rows = extent_in_turns(plan->task.m);
    plan->columns = extent_in_turns(plan->task.n);
    return fits(plan, budget);
}

bool plan_make(struct plan *plan, const struct matmul_task *task, size_t budget)
{
    if (gains_by_turns(task) && plan_make_in_turns(plan, task, budget)) {
        return true;
    }
    plan->task = stored_by_rows(task);
    plan->in_turns = false;
    choose_extents(plan);
    do {
        if (fits(plan, budget)) {
            return true;
        }
    } while (shrink(plan));
    choose_depths(plan, 1);
    return plan->bytes <= budget;
}

/* The first row, column and matrix of a tile. */
struct place {
    ptrdiff_t batch, row, column;
};

/* A square of tiles grows by a column and a row, then comes what is left of the longer side. */
static struct place place_in_turn(const struct plan *plan, ptrdiff_t tile)
{
    const ptrdiff_t side = at_most(plan->row_count, plan->column_count);
    ptrdiff_t row, column;
    if (tile < side * side) {
        ptrdiff_t done = 0; /* the square of so many rows and columns */
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
    return (struct place){.row = row * plan->rows, .column = column * plan->columns};
}

static struct place place_of(const struct plan *plan, ptrdiff_t tile)
{
    if (plan->in_turns) {
        return place_in_turn(plan, tile);
    }
    const bool stays = is_shared(&plan->task, &plan->task.b);
    const ptrdiff_t outer = tile / plan->row_count;
    return (struct place){
        .batch = (stays ? outer % plan->batches : outer / plan->column_count) * plan->batch,
        .row = tile % plan->row_count * plan->rows,
        .column = (stays ? outer / plan->batches : outer % plan->column_count) * plan->columns,
    };
}

struct tile_of_plan plan_tile(const struct plan *plan, ptrdiff_t index)
{
    const struct place place = place_of(plan, index);
    struct tile_of_plan tile = {
        .batch = at_most(plan->batch, plan->task.batch - place.batch),
        .m = at_most(plan->rows, plan->task.m - place.row),
        .n = at_most(plan->columns, plan->task.n - place.column),
    };
    for (int i = 0; i < OPERANDS; i++) {
        tile.part[i] = index / plan->slots[i].uses;
    }
    if (plan->in_turns) {
        tile.part[OPERAND_A] = place.row / plan->rows;
        tile.part[OPERAND_B] = place.column / plan->columns;
    }
    return tile;
}

bool plan_tile_is_first(const struct plan *plan, ptrdiff_t index, enum operand operand)
{
    if (comes_in_turns(plan, operand)) {
        const struct place place = place_of(plan, index);
        return (operand == OPERAND_A ? place.column : place.row) == 0;
    }
    return index % plan->slots[operand].uses == 0;
}

struct part plan_part(const struct plan *plan, ptrdiff_t index, enum operand operand)
{
    const struct matmul_task *task = &plan->task;
    const struct place place = place_of(plan, index);
    const struct tile_of_plan tile = plan_tile(plan, index);
    struct part part = {
        operand == OPERAND_A   ? task->a
        : operand == OPERAND_B ? task->b
                               : task->c,
        tile.batch,
        operand == OPERAND_B ? task->k : tile.m,
        operand == OPERAND_A ? task->k : tile.n,
        tile.part[operand],
    };
    part.from.data += place.batch * part.from.batch_step;
    if (operand != OPERAND_B) {
        part.from.data += place.row * part.from.row_step;
    }
    if (operand != OPERAND_A) {
        part.from.data += place.column * part.from.column_step;
    }
    if (operand != OPERAND_C && is_shared(task, &part.from)) {
        part.batch = 1;
    }
    if (plan->slots[operand].transposed) {
        const ptrdiff_t rows = part.rows;
        part.rows = part.columns;
        part.columns = rows;
        part.from = transpose(part.from);
    }
    return part;
}

device_address plan_address(const struct plan *plan, device_address base, enum operand operand,
                            ptrdiff_t part)
{
    const struct slots *slots = &plan->slots[operand];
    return base + slots->offset + (size_t)(part % slots->depth) * slots->bytes;
}

device_address plan_spare(const struct plan *plan, device_address base, ptrdiff_t tile)
{
    const size_t queue = (size_t)(tile % PLAN_QUEUES);
    return plan->spare_offset == 0
               ? 0
               : base + plan->spare_offset + queue * plan->slots[OPERAND_C].bytes;
}
