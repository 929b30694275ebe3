/* How a product is cut into tiles that are uploaded, multiplied and downloaded one after the other.
 * Pure arithmetic. */
#ifndef NUMC_DEVICE_PLAN_H
#define NUMC_DEVICE_PLAN_H

#include "device.h"

enum {
    PLAN_MOST_DEPTH = 32,
    PLAN_STREAMS = 3, /* tile i is multiplied in stream i % PLAN_STREAMS */
};

/* What is sent at a time: a block of each matrix of a stack. It lies on the device without gaps. */
struct panel {
    struct strided from; /* the first element, rows and columns as they are sent */
    ptrdiff_t batch, rows, columns;
    ptrdiff_t number; /* which of the operand's panels it is */
};

static inline ptrdiff_t panel_elements(const struct panel *panel)
{
    return panel->batch * panel->rows * panel->columns;
}

/* Whether the elements lie on the host as they are sent. */
static inline bool panel_is_contiguous(const struct panel *panel, size_t size)
{
    const ptrdiff_t row = panel->columns * (ptrdiff_t)size;
    return (panel->from.column_step == (ptrdiff_t)size || panel->columns == 1) &&
           (panel->from.row_step == row || panel->rows == 1) &&
           (panel->from.batch_step == panel->rows * row || panel->batch == 1);
}

/* The panels of one operand, numbered in the order in which they are needed. Panel i lies in buffer
 * i % depth of the device. */
struct panels {
    ptrdiff_t count;
    ptrdiff_t uses; /* how many tiles in a row use the same panel, unless they come in turns */
    ptrdiff_t depth;
    size_t bytes;  /* of a buffer */
    size_t offset; /* of the first one */
    bool transposed;
};

enum operand { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };

struct device_plan {
    struct matmul_task task;        /* as given, or its transpose: c is stored row by row */
    ptrdiff_t batch, rows, columns; /* extents of a tile */
    ptrdiff_t batches, row_count, column_count, tiles;
    bool in_turns; /* columns of b and rows of a come in turns, and stay */
    struct panels panels[OPERANDS];
    size_t spare_offset; /* of a buffer of c's size per stream; 0: products need none */
    size_t bytes;        /* on the device */
};

struct plan_tile {
    ptrdiff_t batch, m, n;
    ptrdiff_t panel[OPERANDS]; /* which of the operand's panels it uses */
};

/* Makes a plan that needs at most `budget` bytes on the device; false if there is none. */
bool plan_make(struct device_plan *plan, const struct matmul_task *task, size_t budget);

/* The same, in turns: of one product, whose operands fit as a whole. */
bool plan_make_in_turns(struct device_plan *plan, const struct matmul_task *task, size_t budget);

struct plan_tile plan_tile(const struct device_plan *plan, ptrdiff_t index);

/* Whether it is the first to use the operand's panel. */
bool plan_tile_is_first(const struct device_plan *plan, ptrdiff_t index, enum operand operand);

/* The operand's panel of a tile. */
struct panel plan_panel(const struct device_plan *plan, ptrdiff_t tile, enum operand operand);

device_address plan_address(const struct device_plan *plan, device_address base,
                            enum operand operand, ptrdiff_t panel);

/* What the product of a tile may compute in, or 0. */
device_address plan_spare(const struct device_plan *plan, device_address base, ptrdiff_t tile);

#endif
