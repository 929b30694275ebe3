/* The blocks of memory that are known, by their addresses. All under the lock of whoever keeps them. */
#ifndef NUMC_BLOCK_TABLE_H
#define NUMC_BLOCK_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum block_order { BY_SIZE, BY_AGE, BLOCK_ORDERS };

struct keeper;

struct kept_block {
    char *data;
    size_t capacity;
    size_t bytes;          /* that it is in use with; 0: it is free */
    struct keeper *keeper; /* NULL: it has none any more */
    int64_t free_since;
    struct kept_block *next[BLOCK_ORDERS], *previous[BLOCK_ORDERS]; /* if free */
    struct kept_block *left, *right;   /* of the same mapping, without a gap; NULL: none */
    struct kept_block *next_in_bucket; /* or of the spare records, or of those that go */
};

/* Memory for a block; NULL without memory. */
struct kept_block *block_table_new_record(void);
/* Takes one back, and those that follow it up to `last` by next_in_bucket. */
void block_table_spare(struct kept_block *first, struct kept_block *last);

void block_table_insert(struct kept_block *block);
void block_table_remove(struct kept_block *block);
size_t block_table_count(void);

/* The block that begins there, or NULL. */
struct kept_block *block_table_find(const void *data);

/* Each block; `visit` may remove the one that it is given. */
void block_table_visit(void (*visit)(struct kept_block *, void *context), void *context);

#endif
