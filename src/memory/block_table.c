/* A hash of addresses, with chains. malloc's lock may be held by a fork() that waits for ours: what is needed
 * in here is mapped. */
#include "block_table.h"

#include "pages.h"

#include <sys/mman.h>

enum { FIRST_BUCKETS = 1024, RECORDS_BYTES = 64 << 10, PAGE_BITS = 12 };

static struct kept_block *spare, *first_buckets[FIRST_BUCKETS], **buckets = first_buckets;
static size_t bucket_count = FIRST_BUCKETS, block_count;

/* ---- records ---- */

struct kept_block *block_table_new_record(void)
{
    if (spare == NULL) {
        struct kept_block *records = pages_map(RECORDS_BYTES, false);
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

void block_table_spare(struct kept_block *first, struct kept_block *last)
{
    last->next_in_bucket = spare;
    spare = first;
}

/* ---- the table ---- */

static struct kept_block **bucket_of(const void *data)
{
    const uint64_t hash = ((uintptr_t)data >> PAGE_BITS) * UINT64_C(0x9E3779B97F4A7C15);
    return &buckets[(hash >> 32) & (bucket_count - 1)];
}

static void put(struct kept_block *block)
{
    struct kept_block **bucket = bucket_of(block->data);
    block->next_in_bucket = *bucket;
    *bucket = block;
}

static void widen(void)
{
    struct kept_block **before = buckets;
    const size_t count = bucket_count;
    struct kept_block **wider = pages_map(4 * count * sizeof *wider, false);
    if (wider == NULL) {
        return; /* its chains grow longer */
    }
    buckets = wider;
    bucket_count = 4 * count;
    for (size_t i = 0; i < count; i++) {
        for (struct kept_block *block = before[i], *next; block != NULL; block = next) {
            next = block->next_in_bucket;
            put(block);
        }
    }
    if (before != first_buckets) {
        munmap(before, count * sizeof *before);
    }
}

void block_table_insert(struct kept_block *block)
{
    if (block_count++ >= bucket_count) {
        widen();
    }
    put(block);
}

void block_table_remove(struct kept_block *block)
{
    struct kept_block **place = bucket_of(block->data);
    while (*place != block) {
        place = &(*place)->next_in_bucket;
    }
    *place = block->next_in_bucket;
    block_count--;
}

size_t block_table_count(void)
{
    return block_count;
}

struct kept_block *block_table_find(const void *data)
{
    struct kept_block *block = *bucket_of(data);
    while (block != NULL && block->data != data) {
        block = block->next_in_bucket;
    }
    return block;
}

void block_table_visit(void (*visit)(struct kept_block *, void *context), void *context)
{
    for (size_t i = 0; i < bucket_count; i++) {
        for (struct kept_block *block = buckets[i], *next; block != NULL; block = next) {
            next = block->next_in_bucket;
            visit(block, context);
        }
    }
}
