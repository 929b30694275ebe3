/* Free blocks are listed by size, the last one freed first, and by age. */
#include "keeper.h"

#include "address_ranges.h"
#include "pages.h"

#include <unistd.h>

/* See docs/decisions/0016-kept-memory.md and docs/measurements/memory.md. */
enum {
    CLASS_BITS = 3, /* size classes per power of two: 8 */
    /* A block serves requests of its own class, or of so many classes less: of two thirds of its size. */
    CLASSES_ABOVE = 3,
    /* From larger ones, up to four times its size, it is split off: less would break blocks that are asked for
     * again. */
    SPLIT_CLASSES_ABOVE = 2 << CLASS_BITS,
    LOOKED_AT = 16, /* free blocks of the request's own class, some of which are too small */
    /* A process may have 65530 mappings, unless the system says otherwise; others need some, too. */
    MOST_BLOCKS = 32768,
    LEAST_PAGES = 8, /* of the system's blocks: the last page may be empty but for a byte */
};
static const int64_t UNUSED_NS = 10000000000;
_Static_assert(KEEPER_CLASSES == 64 << CLASS_BITS, "one for each size");

/* ---- lists ---- */

static void list_prepend(struct block_list *list, enum block_order order, struct kept_block *block)
{
    block->previous[order] = NULL;
    block->next[order] = list->first;
    *(list->first != NULL ? &list->first->previous[order] : &list->last) = block;
    list->first = block;
}

static void list_remove(struct block_list *list, enum block_order order, struct kept_block *block)
{
    struct kept_block *next = block->next[order], *previous = block->previous[order];
    *(previous != NULL ? &previous->next[order] : &list->first) = next;
    *(next != NULL ? &next->previous[order] : &list->last) = previous;
}

/* Eight classes from each power of two to the next; the first sizes of a class begin it. */
static int class_of(size_t bytes)
{
    const int power = 63 - __builtin_clzll(bytes);
    const int part = (int)(bytes >> (power - CLASS_BITS)) & ((1 << CLASS_BITS) - 1);
    return power << CLASS_BITS | part;
}

static size_t page_bytes(void)
{
    static _Atomic size_t known;
    if (known == 0) {
        known = (size_t)sysconf(_SC_PAGESIZE);
    }
    return known;
}

size_t keeper_capacity(size_t bytes)
{
    return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

static size_t unused_by(const struct kept_block *block)
{
    return block->capacity - keeper_capacity(block->bytes);
}

static void list_free(struct kept_block *block)
{
    struct keeper *keeper = block->keeper;
    list_prepend(&keeper->of_class[class_of(block->capacity)], BY_SIZE, block);
    list_prepend(&keeper->all_free, BY_AGE, block);
    keeper->kept += block->capacity;
}

static void take_out(struct kept_block *block)
{
    struct keeper *keeper = block->keeper;
    list_remove(&keeper->of_class[class_of(block->capacity)], BY_SIZE, block);
    list_remove(&keeper->all_free, BY_AGE, block);
    keeper->kept -= block->capacity;
}

void keeper_begin_use(struct kept_block *block, size_t bytes)
{
    struct keeper *keeper = block->keeper;
    block->bytes = bytes;
    keeper->unused += unused_by(block);
    keeper->used += block->capacity;
    keeper->used_most = keeper->used > keeper->used_most ? keeper->used : keeper->used_most;
}

void keeper_end_use(struct kept_block *block)
{
    block->keeper->used -= block->capacity;
    block->keeper->unused -= unused_by(block);
    block->bytes = 0;
}

/* ---- parts of a mapping ---- */

static void link_right(struct kept_block *block, struct kept_block *right)
{
    if (block != NULL) {
        block->right = right;
    }
    if (right != NULL) {
        right->left = block;
    }
}

void keeper_isolate(struct kept_block *block)
{
    link_right(block->left, NULL);
    link_right(NULL, block->right);
    block->left = block->right = NULL;
}

/* Appends the part on its right, which is free and in no list. */
static void join_right(struct kept_block *block)
{
    struct kept_block *part = block->right;
    block_table_remove(part);
    block->capacity += part->capacity;
    link_right(block, part->right);
    block_table_spare(part, part);
}

/* The system bounds mappings; a device bounds what it gives. */
bool keeper_may_grow(const struct keeper *keeper)
{
    return keeper->is_of_device || block_table_count() < MOST_BLOCKS;
}

/* Makes the rest of a block that is in no list a free block of its own, if there is room for its record. */
static void split(struct kept_block *block, size_t capacity, int64_t now)
{
    struct kept_block *rest = keeper_may_grow(block->keeper) ? block_table_new_record() : NULL;
    if (rest == NULL) {
        return;
    }
    *rest = (struct kept_block){
        .data = block->data + capacity,
        .capacity = block->capacity - capacity,
        .keeper = block->keeper,
        .free_since = now,
    };
    block->capacity = capacity;
    link_right(rest, block->right);
    link_right(block, rest);
    block_table_insert(rest);
    list_free(rest);
}

/* Returns what it becomes a part of. */
static struct kept_block *keep(struct kept_block *block, int64_t now)
{
    struct kept_block *left = block->left, *right = block->right;
    if (right != NULL && right->bytes == 0) {
        take_out(right);
        join_right(block);
    }
    if (left != NULL && left->bytes == 0) {
        take_out(left);
        join_right(left);
        block = left;
    }
    block->free_since = now;
    list_free(block);
    return block;
}

/* ---- giving back ---- */

/* Whether it can be given back by itself: parts of what a source gave wait for each other. */
static bool may_go(const struct kept_block *block)
{
    return !block->keeper->is_of_device || (block->left == NULL && block->right == NULL);
}

/* Takes a free block to those that are to be given back without the lock. */
static void condemn(struct kept_block *block, struct kept_block **condemned)
{
    take_out(block);
    keeper_isolate(block);
    block_table_remove(block);
    if (block->keeper->is_of_device) {
        address_ranges_remove(block->data);
    }
    block->next_in_bucket = *condemned;
    *condemned = block;
}

/* The one that has been free for longest, of those that can be given back; NULL: there is none. */
static struct kept_block *oldest(const struct keeper *keeper)
{
    struct kept_block *block = keeper->all_free.last;
    while (block != NULL && !may_go(block)) {
        block = block->previous[BY_AGE];
    }
    return block;
}

bool keeper_condemn_oldest(struct keeper *keeper, struct kept_block **condemned)
{
    struct kept_block *block = oldest(keeper);
    if (block != NULL) {
        condemn(block, condemned);
    }
    return block != NULL;
}

void keeper_condemn_above(struct keeper *keeper, size_t limit, struct kept_block **condemned)
{
    while (keeper->kept + keeper->unused > limit && keeper_condemn_oldest(keeper, condemned)) {
    }
}

void keeper_condemn_unused(struct keeper *keeper, int64_t now, struct kept_block **condemned)
{
    struct kept_block *block;
    while ((block = oldest(keeper)) != NULL && now - block->free_since >= UNUSED_NS) {
        condemn(block, condemned);
        keeper->used_most = keeper->used + keeper->kept;
    }
}

void keeper_free(struct kept_block *block, bool stays, int64_t now, struct kept_block **condemned)
{
    keeper_end_use(block);
    if (stays || block->keeper->is_of_device) {
        block = keep(block, now);
    } else {
        list_free(block); /* its neighbours stay */
    }
    if (!stays && may_go(block)) {
        condemn(block, condemned);
    }
}

/* ---- requests ---- */

static size_t split_at(const struct kept_block *block, size_t bytes)
{
    const size_t step = block->capacity >= KEEPER_HUGE_BYTES && bytes >= LARGE_PAGE_BYTES
                            ? LARGE_PAGE_BYTES
                            : page_bytes();
    return (bytes + step - 1) / step * step;
}

/* The class of the largest block that such a request is split off from. */
static int last_class_to_split(const struct keeper *keeper, int class)
{
    const int last = class + SPLIT_CLASSES_ABOVE, of_piece = class_of(KEEPER_PIECE_BYTES);
    return keeper->is_of_device && last < of_piece ? of_piece : last;
}

/* A larger free block, whose first part is as large as the request; NULL if there is none. */
static struct kept_block *split_larger(struct keeper *keeper, size_t bytes, int64_t now)
{
    const int class = class_of(bytes), last = last_class_to_split(keeper, class);
    for (int i = class + CLASSES_ABOVE + 1; i <= last; i++) {
        struct kept_block *block = keeper->of_class[i].first;
        if (block != NULL) {
            take_out(block);
            const size_t capacity = split_at(block, bytes);
            if (block->capacity - capacity >= keeper->least) {
                split(block, capacity, now);
            }
            return block;
        }
    }
    return NULL;
}

/* A free block for a request. Of the last ones freed, whose memory may be in a cache, or of the first. */
static struct kept_block *find_free(const struct keeper *keeper, size_t bytes, bool last)
{
    const int class = class_of(bytes);
    const struct block_list *list = &keeper->of_class[class];
    int left = LOOKED_AT;
    struct kept_block *block = last ? list->first : list->last;
    while (block != NULL && block->capacity < bytes && left-- > 0) {
        block = last ? block->next[BY_SIZE] : block->previous[BY_SIZE];
    }
    if (block != NULL && block->capacity >= bytes) {
        return block;
    }
    block = NULL;
    for (int i = 1; i <= CLASSES_ABOVE && block == NULL; i++) {
        block = last ? list[i].first : list[i].last;
    }
    return block;
}

bool keeper_accepts(const struct keeper *keeper, size_t bytes)
{
    const size_t pages = keeper->is_of_device ? 0 : LEAST_PAGES * page_bytes();
    return bytes >= keeper->least && bytes >= pages && bytes <= KEEPER_MOST_BYTES;
}

struct kept_block *keeper_take(struct keeper *keeper, size_t bytes, bool last, int64_t now)
{
    /* Less than a page of a device takes one, whose class is its own. */
    const size_t wanted = keeper->is_of_device ? keeper_capacity(bytes) : bytes;
    struct kept_block *block = find_free(keeper, wanted, last);
    if (block != NULL) {
        take_out(block);
    } else if (last) {
        block = split_larger(keeper, wanted, now);
    }
    if (block != NULL) {
        keeper_begin_use(block, bytes);
    }
    return block;
}

struct kept_block *keeper_add(struct keeper *keeper, char *data, size_t capacity, size_t bytes,
                              int64_t now)
{
    struct kept_block *block = block_table_new_record();
    if (block == NULL) {
        return NULL;
    }
    *block = (struct kept_block){.data = data, .capacity = capacity, .keeper = keeper};
    if (keeper->is_of_device && !address_ranges_add(data, capacity, keeper->kind)) {
        block_table_spare(block, block);
        return NULL;
    }
    block_table_insert(block);
    if (keeper_capacity(bytes) < capacity) {
        split(block, keeper_capacity(bytes), now);
    }
    keeper_begin_use(block, bytes);
    return block;
}
