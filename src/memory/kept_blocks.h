/* Large blocks of memory that stay when they are freed, for whoever asks next: fresh pages cost as much as
 * a sum that is written to them. For any thread, and for a child after a fork. */
#ifndef NUMC_KEPT_BLOCKS_H
#define NUMC_KEPT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Smaller ones are malloc's, which keeps them itself. `python benchmarks/kept_memory.py` */
    KEPT_FROM_BYTES = 32 << 10,
    KEPT_PAGE_BYTES = 4096, /* the least of any machine */
};

/* What the blocks are kept by. Tests have one of their own. */
struct kept_system {
    int64_t (*clock)(void);    /* nanoseconds */
    size_t (*available)(void); /* bytes that this process can still take */
};

/* Call once, before anything else here. `limit`: bytes that are kept at most. */
void kept_initialize(const struct kept_system *system, size_t limit);

/* From now on. They may be replaced while blocks are in use, but not while other threads are in here. */
void kept_replace_system(const struct kept_system *system);
void kept_set_limit(size_t limit);

/* Whether new blocks are huge pages where the system has them: they are. */
void kept_use_huge_pages(bool use);

/* A block, which begins with a page; NULL if it is smaller than KEPT_FROM_BYTES, or too many are in use, or the
 * system refuses it even after all that was kept has been given back. */
void *kept_allocate(size_t bytes);

/* The same, of zeros that take no memory yet. */
void *kept_allocate_zeros(size_t bytes);

/* Blocks begin with pages; malloc's large ones begin 16 bytes into them. */
static inline bool kept_may_be_block(const void *data)
{
    return (uintptr_t)data % KEPT_PAGE_BYTES == 0 && data != NULL;
}

/* False, and nothing else, for what is no block of these: any address may be asked about. Not kept, its memory
 * is the system's at once. */
bool kept_free(void *data, bool keep);

/* The bytes that a block was asked for with; 0 for what is none. */
size_t kept_size(const void *data);

/* The block with another size, and perhaps elsewhere. NULL if the system refuses:
 * the block stays as it is. */
void *kept_resize(void *data, size_t bytes);

/* Gives back all that is kept. Returns its bytes. */
size_t kept_release(void);

/* Gives back what nobody has asked for in a while. Quick if nothing is kept. */
void kept_release_unused(void);

struct kept_bytes {
    size_t kept;  /* by free blocks, and behind the end of those in use */
    size_t limit; /* for that, now: what is available bounds it, too */
};
struct kept_bytes kept_bytes(void);

#endif
