/* Large blocks of memory that stay when they are freed, for whoever asks next: fresh pages cost as much as
 * a sum that is written to them, pinned ones several times as much. For any thread, and for a child after a fork. */
#ifndef NUMC_KEPT_BLOCKS_H
#define NUMC_KEPT_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    /* Smaller ones are malloc's, which keeps them itself. `python benchmarks/kept_memory.py` */
    KEPT_FROM_BYTES = 32 << 10,
    /* Of memory of a device: also what a kernel takes no longer for than for its start. */
    KEPT_DEVICE_FROM_BYTES = 1 << 10,
    KEPT_PAGE_BYTES = 4096, /* the least of any machine */
};

/* What blocks are made of. Each kind is kept by itself, and up to the limit. */
enum kept_kind {
    KEPT_MAPPED = 1, /* the system's own pages */
    KEPT_PINNED,     /* memory of a device, and the next */
    KEPT_MANAGED,
    KEPT_KINDS
};

/* What the blocks are kept by. Tests have one of their own. */
struct kept_system {
    int64_t (*clock)(void);    /* nanoseconds */
    size_t (*available)(void); /* bytes that this process can still take */
};

/* Where memory of a device comes from. It goes back in the pieces in which it came. */
struct kept_source {
    void *(*take)(enum kept_kind kind, size_t bytes); /* it begins with a page; NULL: refused */
    void (*give_back)(enum kept_kind kind, void *data, size_t bytes);
};

/* Call once, before anything else here. `limit`: bytes that are kept at most. */
void kept_initialize(const struct kept_system *system, size_t limit);

/* From now on. They may be replaced while blocks are in use, but not while other threads are in here. */
void kept_replace_system(const struct kept_system *system);
void kept_set_limit(size_t limit);

/* Once, before blocks of a device are asked for. */
void kept_set_source(const struct kept_source *source);

/* Whether new blocks are huge pages where the system has them: they are. */
void kept_use_huge_pages(bool use);

/* A block, which begins with a page; NULL if it is smaller than the kind's least, or too many are in use, or
 * the system or the source refuses it even after all that was kept has been given back. */
void *kept_allocate(enum kept_kind kind, size_t bytes);

/* The same, of zeros, which take no memory yet if they are many, and the system's. */
void *kept_allocate_zeros(enum kept_kind kind, size_t bytes);

/* Blocks begin with pages; malloc's large ones begin 16 bytes into them. */
static inline bool kept_may_be_block(const void *data)
{
    return (uintptr_t)data % KEPT_PAGE_BYTES == 0 && data != NULL;
}

/* False, and nothing else, for what is no block of these: any address may be asked about. Not kept, its memory
 * is the system's at once; a part of what a source gave stays until the rest is free, too. */
bool kept_free(void *data, bool keep);

/* The bytes that a block was asked for with; 0 for what is none. */
size_t kept_size(const void *data);

/* The block with another size, and perhaps elsewhere. NULL if the system refuses:
 * the block stays as it is. */
void *kept_resize(void *data, size_t bytes);

/* KEPT_PINNED or KEPT_MANAGED if the address is within memory of that kind; 0: it is not. Nanoseconds, without a
 * lock; the memory must not be freed meanwhile. */
int kept_device_kind(const void *data);

/* Gives back all that is kept. Returns its bytes. */
size_t kept_release(void);

/* Gives back what nobody has asked for in a while. Quick if nothing is kept. */
void kept_release_unused(void);

/* Leaves all memory of devices to itself: nothing more is given back, nor kept. What is in use may be used and
 * freed as before, where that still is possible. */
void kept_abandon_devices(void);

struct kept_bytes {
    size_t kept;  /* by free blocks, and behind the end of those in use */
    size_t used;  /* by blocks in use */
    size_t limit; /* of what is kept, now: what is available bounds it, too */
};
struct kept_bytes kept_bytes(enum kept_kind kind);

#endif
