/* A table of addresses tells blocks from other memory, which is never read.
 *
 * Blocks are mapped with the size that they are first asked for, and given to others that ask for a little
 * less. What those leave unused behind their end has pages, too, and counts as kept: so a program never
 * holds more than the limit beyond what it asked for. Larger ones are split, and joined again when both parts
 * are free.
 *
 * What is kept and what is in use are together no more than what was in use at the same time already: memory
 * that the process never had costs several times as much as what it gave back just now, where a hypervisor
 * has to find it first. */
#include "kept_blocks.h"

#include "address_ranges.h"
#include "keeper.h"
#include "pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000 /* of Linux 4.17; a hint before */
#endif

/* See docs/decisions/0016-kept-memory.md, 0020-device-memory.md and docs/measurements/memory.md. */
enum {
    FREELY_KEPT_BYTES = 16 << 20, /* whatever was in use before */
    AVAILABLE_PARTS = 4, /* mapping such a part of what was available asks for that again */
};
static const int64_t LOOK_AGAIN_NS = 500000000;

static pthread_mutex_t lock =
    PTHREAD_MUTEX_INITIALIZER; /* of keepers, and of the table of blocks */
static struct keeper keepers[KEPT_KINDS] = {
    [KEPT_MAPPED] = {.kind = KEPT_MAPPED, .least = KEPT_FROM_BYTES},
    [KEPT_PINNED] = {.kind = KEPT_PINNED, .least = KEPT_DEVICE_FROM_BYTES, .is_of_device = true},
    [KEPT_MANAGED] = {.kind = KEPT_MANAGED, .least = KEPT_DEVICE_FROM_BYTES, .is_of_device = true},
};
static size_t limit_set;

static struct kept_system from_system;
static struct kept_source from_device;
static _Atomic bool huge_pages = true;

/* The block in use that begins there, or NULL. Under the lock. */
static struct kept_block *find(const void *data)
{
    struct kept_block *block = block_table_find(data);
    return block != NULL && block->bytes > 0 ? block : NULL;
}

/* ---- giving back ---- */

static void give_back(enum kept_kind kind, char *data, size_t capacity)
{
    if (kind != KEPT_MAPPED) {
        from_device.give_back(kind, data, capacity);
    } else if (munmap(data, capacity) != 0) {
        /* Unmapping a part of a mapping may need one more than the system allows. */
        madvise(data, capacity, MADV_DONTNEED);
    }
}

/* Without the lock. Returns the bytes. */
static size_t give_back_all(struct kept_block *condemned)
{
    size_t bytes = 0;
    struct kept_block *last = NULL;
    for (struct kept_block *block = condemned; block != NULL; block = block->next_in_bucket) {
        give_back((enum kept_kind)block->keeper->kind, block->data, block->capacity);
        bytes += block->capacity;
        last = block;
    }
    if (last != NULL) {
        pthread_mutex_lock(&lock);
        block_table_spare(condemned, last);
        pthread_mutex_unlock(&lock);
    }
    return bytes;
}

static size_t release(struct keeper *keeper)
{
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    while (keeper_condemn_oldest(keeper, &condemned)) {
    }
    keeper->used_most = keeper->used;
    pthread_mutex_unlock(&lock);
    return give_back_all(condemned);
}

size_t kept_release(void)
{
    size_t bytes = 0;
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        bytes += release(&keepers[kind]);
    }
    return bytes;
}

void kept_release_unused(void)
{
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        struct keeper *keeper = &keepers[kind];
        if (atomic_load_explicit(&keeper->kept, memory_order_relaxed) > 0) {
            struct kept_block *condemned = NULL;
            const int64_t now = from_system.clock();
            pthread_mutex_lock(&lock);
            keeper_condemn_unused(keeper, now, &condemned);
            pthread_mutex_unlock(&lock);
            give_back_all(condemned);
        }
    }
}

/* Whether to look at what is available: every now and then, and before so much is mapped that it would
 * matter. Under the lock. */
static bool is_due(struct keeper *keeper, int64_t now, size_t wanted)
{
    keeper->mapped += wanted;
    const bool due = now >= keeper->next_look || keeper->mapped > keeper->look_again;
    if (due) {
        keeper->next_look = now + LOOK_AGAIN_NS;
        keeper->mapped = 0;
    }
    return due;
}

/* Free blocks may be half of what would be available without them, once `wanted` is taken. */
static void follow_available(struct keeper *keeper, size_t wanted)
{
    const size_t available = from_system.available();
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    const size_t kept = keeper->kept;
    const size_t room = available < SIZE_MAX - kept ? available + kept : SIZE_MAX;
    const size_t half = room > wanted ? (room - wanted) / 2 : 0;
    keeper->look_again = available / AVAILABLE_PARTS;
    keeper->limit_now = half < limit_set ? half : limit_set;
    keeper_condemn_above(keeper, keeper->limit_now, &condemned);
    pthread_mutex_unlock(&lock);
    give_back_all(condemned);
}

/* Before so much is mapped: whether there may be another block. What is free, and did not do, makes room. */
static bool make_room(struct keeper *keeper, size_t wanted)
{
    struct kept_block *condemned = NULL;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    const bool due = is_due(keeper, now, wanted), may = keeper_may_grow(keeper);
    const size_t later = keeper->used + wanted,
                 most = later > keeper->used_most ? later : keeper->used_most;
    while (later + keeper->kept > most && keeper->kept > FREELY_KEPT_BYTES &&
           keeper_condemn_oldest(keeper, &condemned)) {
    }
    pthread_mutex_unlock(&lock);
    give_back_all(condemned);
    if (due) {
        follow_available(keeper, wanted);
    }
    return may;
}

/* ---- new blocks ---- */

/* What the system or the device gives. */
static char *take_memory(const struct keeper *keeper, size_t capacity)
{
    const bool is_huge = huge_pages && capacity >= KEEPER_HUGE_BYTES;
    return keeper->is_of_device ? from_device.take((enum kept_kind)keeper->kind, capacity)
                                : pages_map(capacity, is_huge);
}

static void *new_block(struct keeper *keeper, size_t bytes)
{
    size_t capacity = keeper_capacity(bytes);
    if (keeper->is_of_device && capacity < KEEPER_PIECE_BYTES) {
        capacity = KEEPER_PIECE_BYTES;
    }
    char *data = make_room(keeper, capacity) ? take_memory(keeper, capacity) : NULL;
    if (data == NULL && kept_release() > 0) { /* mappings, too */
        data = take_memory(keeper, capacity);
    }
    if (data == NULL) {
        return NULL;
    }
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    const bool is_noted = keeper_add(keeper, data, capacity, bytes, now) != NULL;
    pthread_mutex_unlock(&lock);
    if (!is_noted) {
        give_back((enum kept_kind)keeper->kind, data, capacity);
    }
    return is_noted ? data : NULL;
}

static struct kept_block *take_free(struct keeper *keeper, size_t bytes, bool last)
{
    if (atomic_load_explicit(&keeper->kept, memory_order_relaxed) == 0) {
        return NULL;
    }
    struct kept_block *condemned = NULL;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    struct kept_block *block = keeper_take(keeper, bytes, last, now);
    keeper_condemn_unused(keeper, now, &condemned);
    pthread_mutex_unlock(&lock);
    give_back_all(condemned);
    return block;
}

void *kept_allocate(enum kept_kind kind, size_t bytes)
{
    struct keeper *keeper = &keepers[kind];
    if (!keeper_accepts(keeper, bytes)) {
        return NULL;
    }
    struct kept_block *block = take_free(keeper, bytes, true);
    return block != NULL ? block->data : new_block(keeper, bytes);
}

static void *device_zeros(enum kept_kind kind, size_t bytes)
{
    void *data = kept_allocate(kind, bytes);
    return data != NULL ? memset(data, 0, bytes) : NULL;
}

void *kept_allocate_zeros(enum kept_kind kind, size_t bytes)
{
    struct keeper *keeper = &keepers[kind];
    if (!keeper_accepts(keeper, bytes)) {
        return NULL;
    }
    if (keeper->is_of_device) {
        return device_zeros(kind, bytes);
    }
    /* Less than huge pages is written sooner than its pages are faulted in again; more stays lazy. A free
     * block loses its pages then: were it left alone, a program that only ever asks for zeros would keep
     * blocks up to the limit, and use none of them. */
    const bool is_lazy = bytes >= KEEPER_HUGE_BYTES;
    struct kept_block *block = take_free(keeper, bytes, !is_lazy);
    if (block == NULL) {
        return new_block(keeper, bytes);
    }
    if (!is_lazy || madvise(block->data, block->capacity, MADV_DONTNEED) != 0) {
        memset(block->data, 0, bytes); /* or pages are locked */
    }
    return block->data;
}

/* Under the lock. */
static void free_block(struct kept_block *block, bool keeps, int64_t now,
                       struct kept_block **condemned)
{
    struct keeper *keeper = block->keeper;
    keeper_free(block, keeps && block->capacity <= keeper->limit_now, now, condemned);
    keeper_condemn_above(keeper, keeper->limit_now, condemned);
    keeper_condemn_unused(keeper, now, condemned);
}

/* A block whose memory was left to itself. Under the lock. */
static void forget(struct kept_block *block)
{
    block_table_remove(block);
    block_table_spare(block, block);
}

bool kept_free(void *data, bool keeps)
{
    if (!kept_may_be_block(data)) {
        return false;
    }
    struct kept_block *condemned = NULL;
    bool due = false;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    struct kept_block *block = find(data);
    struct keeper *keeper = block != NULL ? block->keeper : NULL;
    if (keeper != NULL) {
        free_block(block, keeps, now, &condemned);
        due = is_due(keeper, now, 0);
    } else if (block != NULL) {
        forget(block);
    }
    pthread_mutex_unlock(&lock);
    give_back_all(condemned);
    if (due) {
        follow_available(keeper, 0);
    }
    return block != NULL;
}

size_t kept_size(const void *data)
{
    if (!kept_may_be_block(data)) {
        return 0;
    }
    pthread_mutex_lock(&lock);
    const struct kept_block *block = find(data);
    const size_t bytes = block != NULL ? block->bytes : 0;
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* ---- other sizes ---- */

/* No device moves its memory: in place, or by a copy. */
static void *resize_of_device(struct kept_block *block, size_t bytes)
{
    void *data = block->data;
    pthread_mutex_lock(&lock);
    struct keeper *keeper = block->keeper;
    const size_t before = block->bytes;
    const bool fits = bytes <= block->capacity && bytes > block->capacity / 2;
    if (keeper != NULL && fits) {
        keeper_end_use(block);
        keeper_begin_use(block, bytes);
    }
    pthread_mutex_unlock(&lock);
    if (keeper == NULL || fits) {
        return keeper != NULL ? data : NULL;
    }
    void *moved = kept_allocate((enum kept_kind)keeper->kind, bytes);
    if (moved != NULL) {
        memcpy(moved, data, before < bytes ? before : bytes);
        kept_free(data, true);
    }
    return moved;
}

static void *resize_mapped(struct kept_block *block, size_t bytes)
{
    const size_t capacity = keeper_capacity(bytes);
    make_room(block->keeper, capacity);
    /* Out of the table while it moves: another block may be mapped where it was. */
    pthread_mutex_lock(&lock);
    void *data = block->data;
    const size_t before = block->bytes;
    block_table_remove(block);
    keeper_isolate(block);
    keeper_end_use(block);
    pthread_mutex_unlock(&lock);
    char *moved = mremap(data, block->capacity, capacity, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED && kept_release() > 0) {
        moved = mremap(data, block->capacity, capacity, MREMAP_MAYMOVE);
    }
    const bool refused = moved == MAP_FAILED;
    pthread_mutex_lock(&lock);
    if (!refused) {
        block->data = moved;
        block->capacity = capacity;
    }
    keeper_begin_use(block, refused ? before : bytes);
    block_table_insert(block);
    pthread_mutex_unlock(&lock);
    return refused ? NULL : moved;
}

void *kept_resize(void *data, size_t bytes)
{
    if (bytes > KEEPER_MOST_BYTES) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct kept_block *block = find(data);
    const bool is_mapped = block->keeper == &keepers[KEPT_MAPPED];
    pthread_mutex_unlock(&lock);
    return is_mapped ? resize_mapped(block, bytes) : resize_of_device(block, bytes);
}

/* ---- limits ---- */

void kept_set_limit(size_t limit)
{
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    limit_set = limit;
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        keepers[kind].limit_now = limit;
        keepers[kind].next_look = 0;
        keeper_condemn_above(&keepers[kind], limit, &condemned);
    }
    pthread_mutex_unlock(&lock);
    give_back_all(condemned);
}

void kept_use_huge_pages(bool use)
{
    huge_pages = use;
}

void kept_replace_system(const struct kept_system *system)
{
    from_system = *system;
    pthread_mutex_lock(&lock);
    for (int kind = KEPT_MAPPED; kind < KEPT_KINDS; kind++) {
        keepers[kind].next_look = 0;
    }
    pthread_mutex_unlock(&lock);
}

struct kept_bytes kept_bytes(enum kept_kind kind)
{
    const struct keeper *keeper = &keepers[kind];
    pthread_mutex_lock(&lock);
    const struct kept_bytes bytes = {keeper->kept + keeper->unused, keeper->used,
                                     keeper->limit_now};
    pthread_mutex_unlock(&lock);
    return bytes;
}

/* ---- memory of devices ---- */

void kept_set_source(const struct kept_source *source)
{
    from_device = *source;
}

int kept_device_kind(const void *data)
{
    return address_ranges_find(data);
}

/* A block in use stays known by its address, which must not become another's: in a forked child nothing may be
 * mapped there. */
static void abandon(struct kept_block *block, void *unused)
{
    (void)unused;
    if (block->keeper == NULL || !block->keeper->is_of_device) {
        return;
    }
    if (block->bytes == 0) {
        forget(block);
        return;
    }
    keeper_isolate(block);
    block->keeper = NULL;
    void *reserved = mmap(block->data, block->capacity, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (reserved != MAP_FAILED && reserved != block->data) {
        munmap(reserved, block->capacity);
    }
}

/* Under the lock. */
static void abandon_devices(void)
{
    block_table_visit(abandon, NULL);
    for (int kind = KEPT_PINNED; kind < KEPT_KINDS; kind++) {
        struct keeper *keeper = &keepers[kind];
        address_ranges_remove_kind(kind);
        memset(keeper->of_class, 0, sizeof keeper->of_class);
        keeper->all_free = (struct block_list){NULL, NULL};
        keeper->unused = keeper->used = keeper->used_most = 0;
        keeper->kept = 0;
    }
}

void kept_abandon_devices(void)
{
    pthread_mutex_lock(&lock);
    abandon_devices();
    pthread_mutex_unlock(&lock);
}

/* ---- forks ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* The parent's memory: kept here as well, it would be copied as soon as either of them uses it. What a device
 * gave must not be touched. */
static void after_fork_in_child(void)
{
    abandon_devices();
    pthread_mutex_unlock(&lock);
    kept_release();
}

void kept_initialize(const struct kept_system *system, size_t limit)
{
    from_system = *system;
    kept_set_limit(limit);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
