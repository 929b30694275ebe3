/* Free blocks are listed by size, the last one freed first, and by age. A table of addresses tells blocks
 * from other memory, which is never read.
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

#include "pages.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* See docs/decisions/0016-kept-memory.md and docs/measurements/memory.md. */
enum {
    CLASS_BITS = 3, /* size classes per power of two: 8 */
    CLASSES = 64 << CLASS_BITS,
    /* A block serves requests of its own class, or of so many classes less: of two thirds of its size. */
    CLASSES_ABOVE = 3,
    /* From larger ones, up to four times its size, it is split off: less would break blocks that are asked for
     * again. */
    SPLIT_CLASSES_ABOVE = 2 << CLASS_BITS,
    LOOKED_AT = 16, /* free blocks of the request's own class, some of which are too small */
    FIRST_BUCKETS = 1024,
    RECORDS_BYTES = 64 << 10,
    /* A process may have 65530 mappings, unless the system says otherwise; others need some, too. */
    MOST_BLOCKS = 32768,
    HUGE_FROM_BYTES = 4 << 20,    /* as NumPy does: huge pages take more where little is written */
    FREELY_KEPT_BYTES = 16 << 20, /* whatever was in use before */
    LEAST_PAGES = 8,              /* of a block: the last one may be empty but for a byte */
    AVAILABLE_PARTS = 4, /* mapping such a part of what was available asks for that again */
};
static const int64_t UNUSED_NS = 10000000000, LOOK_AGAIN_NS = 500000000;
static const size_t MOST_BYTES = (size_t)1 << 46;

enum order { BY_SIZE, BY_AGE, ORDERS };

struct kept_block {
    char *data;
    size_t capacity; /* of its mapping */
    size_t bytes;    /* that it is in use with; 0: it is free */
    int64_t free_since;
    struct kept_block *next[ORDERS], *previous[ORDERS]; /* if free */
    struct kept_block *left, *right;   /* of the same mapping, without a gap; NULL: none */
    struct kept_block *next_in_bucket; /* or of the spare records, or of those to be unmapped */
};

struct block_list {
    struct kept_block *first, *last;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what follows */
static struct block_list of_class[CLASSES], all_free;
static struct kept_block *spare, *first_buckets[FIRST_BUCKETS], **buckets = first_buckets;
static size_t bucket_count = FIRST_BUCKETS, block_count;
static size_t unused;          /* bytes behind the end of blocks in use */
static size_t used, used_most; /* by blocks in use, and at most so far */
static size_t limit_set, limit_now;
static size_t mapped, look_again; /* bytes mapped since the last look at what is available */
static int64_t next_look;

static struct kept_system from_system;
static size_t page_bytes;
static _Atomic size_t kept; /* by free blocks */
static _Atomic bool huge_pages = true;

/* ---- lists ---- */

static void list_prepend(struct block_list *list, enum order order, struct kept_block *block)
{
    block->previous[order] = NULL;
    block->next[order] = list->first;
    *(list->first != NULL ? &list->first->previous[order] : &list->last) = block;
    list->first = block;
}

static void list_remove(struct block_list *list, enum order order, struct kept_block *block)
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

static size_t capacity_for(size_t bytes)
{
    return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

static size_t unused_by(const struct kept_block *block)
{
    return block->capacity - capacity_for(block->bytes);
}

static void list_free(struct kept_block *block)
{
    list_prepend(&of_class[class_of(block->capacity)], BY_SIZE, block);
    list_prepend(&all_free, BY_AGE, block);
    kept += block->capacity;
}

static void take_out(struct kept_block *block)
{
    list_remove(&of_class[class_of(block->capacity)], BY_SIZE, block);
    list_remove(&all_free, BY_AGE, block);
    kept -= block->capacity;
}

static void begin_use(struct kept_block *block, size_t bytes)
{
    block->bytes = bytes;
    unused += unused_by(block);
    used += block->capacity;
    used_most = used > used_most ? used : used_most;
}

static void end_use(struct kept_block *block)
{
    used -= block->capacity;
    unused -= unused_by(block);
    block->bytes = 0;
}

/* ---- the table of addresses ---- */

static struct kept_block **bucket_of(const void *data)
{
    const uint64_t hash = ((uintptr_t)data / KEPT_PAGE_BYTES) * UINT64_C(0x9E3779B97F4A7C15);
    return &buckets[(hash >> 32) & (bucket_count - 1)];
}

/* Where the address stands, or would: NULL is what is there then. */
static struct kept_block **place_of(const void *data)
{
    struct kept_block **place = bucket_of(data);
    while (*place != NULL && (*place)->data != data) {
        place = &(*place)->next_in_bucket;
    }
    return place;
}

static void insert(struct kept_block *block)
{
    struct kept_block **bucket = bucket_of(block->data);
    block->next_in_bucket = *bucket;
    *bucket = block;
}

/* malloc's lock may be held by a fork() that waits for ours: what is needed in here is mapped. */
static void *map_private(size_t bytes)
{
    void *data = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return data != MAP_FAILED ? data : NULL;
}

static void widen_table(void)
{
    struct kept_block **before = buckets;
    const size_t count = bucket_count;
    struct kept_block **wider = map_private(4 * count * sizeof *wider);
    if (wider == NULL) {
        return; /* its chains grow longer */
    }
    buckets = wider;
    bucket_count = 4 * count;
    for (size_t i = 0; i < count; i++) {
        for (struct kept_block *block = before[i], *next; block != NULL; block = next) {
            next = block->next_in_bucket;
            insert(block);
        }
    }
    if (before != first_buckets) {
        munmap(before, count * sizeof *before);
    }
}

static struct kept_block *new_record(void)
{
    if (spare == NULL) {
        struct kept_block *records = map_private(RECORDS_BYTES);
        for (size_t i = 0; records != NULL && i < RECORDS_BYTES / sizeof *records; i++) {
            records[i].next_in_bucket = spare;
            spare = &records[i];
        }
    }
    struct kept_block *record = spare;
    if (record != NULL) {
        spare = record->next_in_bucket;
    }
    return record;
}

/* The block in use that begins there, or NULL. */
static struct kept_block *find(const void *data)
{
    struct kept_block *block = *place_of(data);
    return block != NULL && block->bytes > 0 ? block : NULL;
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

static void isolate(struct kept_block *block)
{
    link_right(block->left, NULL);
    link_right(NULL, block->right);
    block->left = block->right = NULL;
}

/* Appends the part on its right, which is free and in no list. */
static void join_right(struct kept_block *block)
{
    struct kept_block *part = block->right;
    *place_of(part->data) = part->next_in_bucket;
    block_count--;
    block->capacity += part->capacity;
    link_right(block, part->right);
    part->next_in_bucket = spare;
    spare = part;
}

/* Makes the rest of a block that is in no list a free block of its own, if there is room for its record. */
static void split(struct kept_block *block, size_t capacity, int64_t now)
{
    struct kept_block *rest = block_count < MOST_BLOCKS ? new_record() : NULL;
    if (rest == NULL) {
        return;
    }
    *rest = (struct kept_block){
        .data = block->data + capacity,
        .capacity = block->capacity - capacity,
        .free_since = now,
    };
    block->capacity = capacity;
    link_right(rest, block->right);
    link_right(block, rest);
    block_count++;
    insert(rest);
    list_free(rest);
}

static void keep(struct kept_block *block, int64_t now)
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
}

/* ---- giving back ---- */

/* Takes a block, which is not in the lists, to those that are to be unmapped without the lock. */
static void condemn(struct kept_block *block, struct kept_block **condemned)
{
    isolate(block);
    *place_of(block->data) = block->next_in_bucket;
    block_count--;
    block->next_in_bucket = *condemned;
    *condemned = block;
}

static void condemn_oldest(struct kept_block **condemned)
{
    struct kept_block *oldest = all_free.last;
    take_out(oldest);
    condemn(oldest, condemned);
}

static void condemn_above(size_t limit, struct kept_block **condemned)
{
    while (all_free.last != NULL && kept + unused > limit) {
        condemn_oldest(condemned);
    }
}

static void condemn_unused(int64_t now, struct kept_block **condemned)
{
    while (all_free.last != NULL && now - all_free.last->free_since >= UNUSED_NS) {
        condemn_oldest(condemned);
        used_most = used + kept;
    }
}

/* Without the lock. Returns the bytes. */
static size_t unmap(struct kept_block *condemned)
{
    size_t bytes = 0;
    struct kept_block *last = NULL;
    for (struct kept_block *block = condemned; block != NULL; block = block->next_in_bucket) {
        /* Unmapping a part of a mapping may need one more than the system allows. */
        if (munmap(block->data, block->capacity) != 0) {
            madvise(block->data, block->capacity, MADV_DONTNEED);
        }
        bytes += block->capacity;
        last = block;
    }
    if (last != NULL) {
        pthread_mutex_lock(&lock);
        last->next_in_bucket = spare;
        spare = condemned;
        pthread_mutex_unlock(&lock);
    }
    return bytes;
}

size_t kept_release(void)
{
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    while (all_free.last != NULL) {
        condemn_oldest(&condemned);
    }
    used_most = used;
    pthread_mutex_unlock(&lock);
    return unmap(condemned);
}

void kept_release_unused(void)
{
    if (atomic_load_explicit(&kept, memory_order_relaxed) > 0) {
        struct kept_block *condemned = NULL;
        const int64_t now = from_system.clock();
        pthread_mutex_lock(&lock);
        condemn_unused(now, &condemned);
        pthread_mutex_unlock(&lock);
        unmap(condemned);
    }
}

/* Whether to look at what is available: every now and then, and before so much is mapped that it would
 * matter. Under the lock. */
static bool is_due(int64_t now, size_t wanted)
{
    mapped += wanted;
    const bool due = now >= next_look || mapped > look_again;
    if (due) {
        next_look = now + LOOK_AGAIN_NS;
        mapped = 0;
    }
    return due;
}

/* Free blocks may be half of what would be available without them, once `wanted` is taken. */
static void follow_available(size_t wanted)
{
    const size_t available = from_system.available();
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    const size_t room = available < SIZE_MAX - kept ? available + kept : SIZE_MAX;
    const size_t half = room > wanted ? (room - wanted) / 2 : 0;
    look_again = available / AVAILABLE_PARTS;
    limit_now = half < limit_set ? half : limit_set;
    condemn_above(limit_now, &condemned);
    pthread_mutex_unlock(&lock);
    unmap(condemned);
}

/* Before so much is mapped: whether there may be another block. What is free, and did not do, makes room. */
static bool make_room(size_t wanted)
{
    struct kept_block *condemned = NULL;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    const bool due = is_due(now, wanted), may = block_count < MOST_BLOCKS;
    const size_t later = used + wanted, most = later > used_most ? later : used_most;
    while (all_free.last != NULL && later + kept > most && kept > FREELY_KEPT_BYTES) {
        condemn_oldest(&condemned);
    }
    pthread_mutex_unlock(&lock);
    unmap(condemned);
    if (due) {
        follow_available(wanted);
    }
    return may;
}

/* ---- new blocks ---- */

static char *map_block(size_t capacity)
{
    const bool is_huge = huge_pages && capacity >= HUGE_FROM_BYTES;
    char *data = map_private(is_huge ? capacity + LARGE_PAGE_BYTES : capacity);
    if (data == NULL || !is_huge) {
        return data;
    }
    const size_t before = -(uintptr_t)data % LARGE_PAGE_BYTES;
    if (before > 0) {
        munmap(data, before);
    }
    munmap(data + before + capacity, LARGE_PAGE_BYTES - before);
    madvise(data + before, capacity, MADV_HUGEPAGE);
    return data + before;
}

static void *new_block(size_t bytes)
{
    const size_t capacity = capacity_for(bytes);
    char *data = make_room(capacity) ? map_block(capacity) : NULL;
    if (data == NULL && kept_release() > 0) { /* mappings, too */
        data = map_block(capacity);
    }
    if (data == NULL) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    struct kept_block *block = new_record();
    if (block != NULL) {
        *block = (struct kept_block){.data = data, .capacity = capacity};
        begin_use(block, bytes);
        if (block_count++ >= bucket_count) {
            widen_table();
        }
        insert(block);
    }
    pthread_mutex_unlock(&lock);
    if (block == NULL) {
        munmap(data, capacity);
    }
    return block != NULL ? data : NULL;
}

static size_t split_at(const struct kept_block *block, size_t bytes)
{
    const size_t step = block->capacity >= HUGE_FROM_BYTES && bytes >= LARGE_PAGE_BYTES
                            ? LARGE_PAGE_BYTES
                            : page_bytes;
    return (bytes + step - 1) / step * step;
}

/* A larger free block, whose first part is as large as the request; NULL if there is none. */
static struct kept_block *split_larger(size_t bytes, int64_t now)
{
    const int class = class_of(bytes);
    for (int i = CLASSES_ABOVE + 1; i <= SPLIT_CLASSES_ABOVE; i++) {
        struct kept_block *block = of_class[class + i].first;
        if (block != NULL) {
            take_out(block);
            const size_t capacity = split_at(block, bytes);
            if (block->capacity - capacity >= KEPT_FROM_BYTES) {
                split(block, capacity, now);
            }
            return block;
        }
    }
    return NULL;
}

/* A free block for a request. Of the last ones freed, whose memory may be in a cache, or of the first. */
static struct kept_block *find_free(size_t bytes, bool last)
{
    const int class = class_of(bytes);
    int left = LOOKED_AT;
    struct kept_block *block = last ? of_class[class].first : of_class[class].last;
    while (block != NULL && block->capacity < bytes && left-- > 0) {
        block = last ? block->next[BY_SIZE] : block->previous[BY_SIZE];
    }
    if (block != NULL && block->capacity >= bytes) {
        return block;
    }
    block = NULL;
    for (int i = 1; i <= CLASSES_ABOVE && block == NULL; i++) {
        block = last ? of_class[class + i].first : of_class[class + i].last;
    }
    return block;
}

static struct kept_block *take_free(size_t bytes, bool last)
{
    if (atomic_load_explicit(&kept, memory_order_relaxed) == 0) {
        return NULL;
    }
    struct kept_block *condemned = NULL;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    struct kept_block *block = find_free(bytes, last);
    if (block != NULL) {
        take_out(block);
    } else if (last) {
        block = split_larger(bytes, now);
    }
    if (block != NULL) {
        begin_use(block, bytes);
    }
    condemn_unused(now, &condemned);
    pthread_mutex_unlock(&lock);
    unmap(condemned);
    return block;
}

static bool is_in_range(size_t bytes)
{
    return bytes >= KEPT_FROM_BYTES && bytes >= LEAST_PAGES * page_bytes && bytes <= MOST_BYTES;
}

void *kept_allocate(size_t bytes)
{
    if (!is_in_range(bytes)) {
        return NULL;
    }
    struct kept_block *block = take_free(bytes, true);
    return block != NULL ? block->data : new_block(bytes);
}

void *kept_allocate_zeros(size_t bytes)
{
    if (!is_in_range(bytes)) {
        return NULL;
    }
    /* Less than huge pages is written sooner than its pages are faulted in again; more stays lazy. A free
     * block loses its pages then: were it left alone, a program that only ever asks for zeros would keep
     * blocks up to the limit, and use none of them. */
    const bool is_lazy = bytes >= HUGE_FROM_BYTES;
    struct kept_block *block = take_free(bytes, !is_lazy);
    if (block == NULL) {
        return new_block(bytes);
    }
    if (!is_lazy || madvise(block->data, block->capacity, MADV_DONTNEED) != 0) {
        memset(block->data, 0, bytes); /* or pages are locked */
    }
    return block->data;
}

bool kept_free(void *data, bool keeps)
{
    if (!kept_may_be_block(data)) {
        return false;
    }
    struct kept_block *condemned = NULL;
    const int64_t now = from_system.clock();
    pthread_mutex_lock(&lock);
    struct kept_block *block = find(data);
    if (block == NULL) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    end_use(block);
    if (keeps && block->capacity <= limit_now) {
        keep(block, now);
        condemn_above(limit_now, &condemned);
    } else {
        condemn(block, &condemned);
    }
    condemn_unused(now, &condemned);
    const bool due = is_due(now, 0);
    pthread_mutex_unlock(&lock);
    unmap(condemned);
    if (due) {
        follow_available(0);
    }
    return true;
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

void *kept_resize(void *data, size_t bytes)
{
    if (bytes > MOST_BYTES) {
        return NULL;
    }
    const size_t capacity = capacity_for(bytes);
    make_room(capacity);
    /* Out of the table while it moves: another block may be mapped where it was. */
    pthread_mutex_lock(&lock);
    struct kept_block **place = place_of(data), *block = *place;
    const size_t before = block->bytes;
    *place = block->next_in_bucket;
    isolate(block);
    end_use(block);
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
    begin_use(block, refused ? before : bytes);
    insert(block);
    pthread_mutex_unlock(&lock);
    return refused ? NULL : moved;
}

/* ---- limits, and forks ---- */

void kept_set_limit(size_t limit)
{
    struct kept_block *condemned = NULL;
    pthread_mutex_lock(&lock);
    limit_set = limit_now = limit;
    next_look = 0;
    condemn_above(limit, &condemned);
    pthread_mutex_unlock(&lock);
    unmap(condemned);
}

void kept_use_huge_pages(bool use)
{
    huge_pages = use;
}

void kept_replace_system(const struct kept_system *system)
{
    from_system = *system;
    pthread_mutex_lock(&lock);
    next_look = 0;
    pthread_mutex_unlock(&lock);
}

struct kept_bytes kept_bytes(void)
{
    pthread_mutex_lock(&lock);
    const struct kept_bytes bytes = {kept + unused, limit_now};
    pthread_mutex_unlock(&lock);
    return bytes;
}

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

/* The parent's memory: kept here as well, it would be copied as soon as either of them uses it. */
static void after_fork_in_child(void)
{
    pthread_mutex_unlock(&lock);
    kept_release();
}

void kept_initialize(const struct kept_system *system, size_t limit)
{
    from_system = *system;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    kept_set_limit(limit);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}
