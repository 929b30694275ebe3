/* How a product is cut into tiles that are uploaded, multiplied and downloaded one after the other.
 * Pure arithmetic. */
#ifndef NUMC_PLAN_H
#define NUMC_PLAN_H

#include "device.h"

enum {
    PLAN_MOST_DEPTH = 32,
    PLAN_QUEUES = 3, /* tile i is multiplied in queue i % PLAN_QUEUES */
};

/* A stack of blocks as it is sent and lies on the device: all rows of a block, without gaps. */
struct part {
    struct strided from; /* the first element, rows and columns as they are sent */
    ptrdiff_t batch, rows, columns;
    ptrdiff_t number; /* which of the operand's parts it is */
};

/* One operand's part of a tile. Parts are numbered in the order in which they are needed; part i lies
 * in slot i % depth. */
struct slots {
    ptrdiff_t parts;
    ptrdiff_t uses; /* how many tiles in a row use the same part, unless they come in turns */
    ptrdiff_t depth;
    size_t bytes;  /* of a slot */
    size_t offset; /* of the first slot */
    bool transposed;
};

enum operand { OPERAND_A, OPERAND_B, OPERAND_C, OPERANDS };

struct plan {
    struct matmul_task task;        /* as given, or its transpose: c is stored row by row */
    ptrdiff_t batch, rows, columns; /* extents of a tile */
    ptrdiff_t batches, row_count, column_count, tiles;
    bool in_turns; /* columns of b and rows of a come in turns, and stay */
    struct slots slots[OPERANDS];
    size_t spare_offset; /* of a slot of c's size per queue; 0: products need none */
    size_t bytes;        /* on the device */
};

struct tile_of_plan {
    ptrdiff_t batch, m, n;
    ptrdiff_t part[OPERANDS]; /* which of the operand's parts it uses */
};

/* Makes a plan that needs at most `budget` bytes on the device; false if there is none. */
bool plan_make(struct plan *plan, const struct matmul_task *task, size_t budget);

/* The same, in turns: of one product, whose operands fit as a whole. */
bool plan_make_in_turns(struct plan *plan, const struct matmul_task *task, size_t budget);

struct tile_of_plan plan_tile(const struct plan *plan, ptrdiff_t index);

/* Whether it is the first to use the operand's part. */
bool plan_tile_is_first(const struct plan *plan, ptrdiff_t index, enum operand operand);

/* The operand's part of a tile. */
struct part plan_part(const struct plan *plan, ptrdiff_t tile, enum operand operand);

device_address plan_address(const struct plan *plan, device_address base, enum operand operand,
                            ptrdiff_t part);

/* What the product of a tile may compute in, or 0. */
device_address plan_spare(const struct plan *plan, device_address base, ptrdiff_t tile);

#endif
