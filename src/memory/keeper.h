/* The blocks of one kind: which are free, which of them serves a request, and which go. All under the lock of
 * kept_blocks.c. */
#ifndef NUMC_KEEPER_H
#define NUMC_KEEPER_H

#include "block_table.h"

#include <stdbool.h>

enum {
    KEEPER_CLASSES = 64 << 3,
    KEEPER_HUGE_BYTES = 4 << 20,  /* as NumPy does: huge pages take more where little is written */
    KEEPER_PIECE_BYTES = 2 << 20, /* that a device is asked for at least */
};

/* Of a request. */
#define KEEPER_MOST_BYTES ((size_t)1 << 46)

struct block_list {
    struct kept_block *first, *last;
};

struct keeper {
    int kind; /* an enum kept_kind */
    /* Blocks are parts of pieces that a device gave, and go with them; others go alone. */
    bool is_of_device;
    size_t least; /* bytes of a request */
    struct block_list of_class[KEEPER_CLASSES], all_free;
    size_t unused;          /* bytes behind the end of blocks in use */
    size_t used, used_most; /* by blocks in use, and at most so far */
    size_t limit_now;
    size_t mapped, look_again; /* bytes mapped since the last look at what is available */
    int64_t next_look;
    _Atomic size_t kept; /* by free blocks */
};

/* Whether there may be another block, and one of that size. */
bool keeper_may_grow(const struct keeper *keeper);
bool keeper_accepts(const struct keeper *keeper, size_t bytes);

/* What a block of so many bytes takes. */
size_t keeper_capacity(size_t bytes);

/* A free block for a request, in use from now on: of the last ones freed, whose memory may be in a cache, or of
 * the first. NULL: none does. */
struct kept_block *keeper_take(struct keeper *keeper, size_t bytes, bool last, int64_t now);

/* The same of new memory. NULL: there is no room for its record. */
struct kept_block *keeper_add(struct keeper *keeper, char *data, size_t capacity, size_t bytes,
                              int64_t now);

/* A block is no longer in use. If it does not stay, it goes at once where it can. */
void keeper_free(struct kept_block *block, bool stays, int64_t now, struct kept_block **condemned);

/* The same block with another size, or elsewhere: between both it is in no list, and has no neighbours. */
void keeper_end_use(struct kept_block *block);
void keeper_begin_use(struct kept_block *block, size_t bytes);
void keeper_isolate(struct kept_block *block);

/* Free blocks that are to be given back without the lock are condemned: in a list by next_in_bucket. */

/* The one that has been free for longest; false: there is none that can go. */
bool keeper_condemn_oldest(struct keeper *keeper, struct kept_block **condemned);
/* Until no more is kept. */
void keeper_condemn_above(struct keeper *keeper, size_t limit, struct kept_block **condemned);
/* Those that nobody has asked for in a while. */
void keeper_condemn_unused(struct keeper *keeper, int64_t now, struct kept_block **condemned);

#endif
