/* The plan of a product: tiles, and the panels of a, b and c that they need. Pure arithmetic. */
#ifndef NUMC_DEVICE_PLAN_H
#define NUMC_DEVICE_PLAN_H

#include "device.h"

enum {
    PLAN_MOST_DEPTH = 32,
    PLAN_STREAMS = 3, /* tile i is multiplied in stream i % PLAN_STREAMS */
};

/* A block of each matrix of a stack, contiguous on the device: the unit of device buffers. */
struct panel {
    struct strided from; /* the first element; strides in the order of the device */
    ptrdiff_t batch, rows, columns;
    ptrdiff_t number; /* which of the operand's panels it is */
};

static inline ptrdiff_t panel_elements(const struct panel *panel)
{
    return panel->batch * panel->rows * panel->columns;
}

/* Whether the panel is contiguous on the host, too. */
static inline bool panel_is_contiguous(const struct panel *panel, size_t size)
{
    const ptrdiff_t row = panel->columns * (ptrdiff_t)size;
    return (panel->from.column_step == (ptrdiff_t)size || panel->columns == 1) &&
           (panel->from.row_step == row || panel->rows == 1) &&
           (panel->from.batch_step == panel->rows * row || panel->batch == 1);
}

/* As the device copies it: at once if it is contiguous, else it has rows. */
static inline struct copied_rows panel_copied_rows(const struct panel *panel, size_t size)
{
    if (panel_is_contiguous(panel, size)) {
        return one_row((size_t)panel_elements(panel) * size);
    }
    return (struct copied_rows){(size_t)panel->columns * size, (size_t)panel->rows,
                                (size_t)panel->from.row_step};
}

enum { LEAST_ROW_BYTES = 2048 }; /* of copies by rows: short ones are slow */

/* Whether its rows are, as copies by rows need. */
static inline bool panel_has_rows(const struct panel *panel, size_t size)
{
    const ptrdiff_t row = panel->columns * (ptrdiff_t)size;
    return panel->batch == 1 && panel->from.column_step == (ptrdiff_t)size &&
           row >= LEAST_ROW_BYTES && panel->from.row_step >= row;
}

/* The panels of one operand, numbered in the order in which they are needed. Panel i lies in buffer
 * i % depth of the device. */
struct panels {
    ptrdiff_t count;
    ptrdiff_t uses; /* consecutive tiles that use the same panel, unless `alternates` */
    ptrdiff_t depth;
    size_t bytes;  /* of a buffer */
    size_t offset; /* of the first one */
    bool transposed;
};

enum operand { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };

struct device_plan {
    struct matmul_task task;        /* as given, or transposed so that c is stored by rows */
    ptrdiff_t batch, rows, columns; /* extents of a tile */
    ptrdiff_t batches, row_count, column_count, tiles;
    bool alternates; /* panels of a and b are uploaded alternately, and all stay on the device */
    struct panels panels[OPERANDS];
    size_t spare_offset; /* of scratch memory of c's size, one per stream; 0: none is needed */
    size_t bytes;        /* on the device */
};

struct plan_tile {
    ptrdiff_t batch, m, n;
    ptrdiff_t panel[OPERANDS]; /* which of the operand's panels it uses */
};

/* Bytes of a buffer of the device, such that the next one is aligned. */
static inline size_t plan_aligned(size_t bytes)
{
    enum { ALIGNMENT = 256 };
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Whether the product takes longer than the upload of a and b and than the download of c: then the
 * device should begin before all of b is uploaded. */
bool plan_gains_by_alternating(const struct matmul_task *task);

/* Plans with at most `budget` bytes on the device; false if that is impossible. */
bool plan_make(struct device_plan *plan, const struct matmul_task *task, size_t budget);

/* The same with `alternates`: for a single product whose operands fit as a whole. */
bool plan_make_alternating(struct device_plan *plan, const struct matmul_task *task, size_t budget);

struct plan_tile plan_tile(const struct device_plan *plan, ptrdiff_t index);

/* Whether the tile is the first to use its panel of the operand. */
bool plan_tile_is_first(const struct device_plan *plan, ptrdiff_t index, enum operand operand);

struct panel plan_panel(const struct device_plan *plan, ptrdiff_t tile, enum operand operand);

device_address plan_address(const struct device_plan *plan, device_address base,
                            enum operand operand, ptrdiff_t panel);

/* Scratch memory for the product of a tile, or 0. */
device_address plan_spare(const struct device_plan *plan, device_address base, ptrdiff_t tile);

#endif
