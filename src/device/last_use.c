/* By pieces as large as those that the driver moves at most. The table forgets: two pieces that fall on the
 * same place take it from each other. */
#include "last_use.h"

#include "device_cutoffs.h"

#include <stdatomic.h>
#include <stdint.h>

enum {
    PIECE_BITS = 21,
    PLACE_BITS = 8,
    ENTRIES = 1 << 17, /* of 2 MiB each: 256 GiB */
    MOST_WAITS = 6,
};

/* The number of a piece, above its place. */
static _Atomic uint64_t entries[ENTRIES];

static uint64_t piece_of(const char *at)
{
    return (uintptr_t)at >> PIECE_BITS;
}

bool last_use_is(const char *first, const char *end, int place)
{
    bool is = true;
    for (uint64_t piece = piece_of(first); is && piece <= piece_of(end - 1); piece++) {
        const uint64_t entry =
            atomic_load_explicit(&entries[piece % ENTRIES], memory_order_relaxed);
        const int of = entry >> PLACE_BITS == piece ? (int)(entry & ((1 << PLACE_BITS) - 1)) : 0;
        is = of == place;
    }
    return is;
}

void last_use_note(const char *first, const char *end, int place)
{
    for (uint64_t piece = piece_of(first); piece <= piece_of(end - 1); piece++) {
        atomic_store_explicit(&entries[piece % ENTRIES], piece << PLACE_BITS | (uint64_t)place,
                              memory_order_relaxed);
    }
}

/* ---- programs that alternate ---- */

static _Atomic int waits;      /* how often operands were not where they were taken to be; */
static _Atomic int calls_left; /* so many calls are to stay on the processor: 2^waits at first */

/* Counts may get lost between threads, which does no harm. */
bool last_use_may_move(void)
{
    const int left = calls_left;
    if (left > 0) {
        calls_left = left - 1;
    }
    return left == 0;
}

void last_use_forget(void)
{
    for (int i = 0; i < ENTRIES; i++) {
        atomic_store_explicit(&entries[i], 0, memory_order_relaxed);
    }
    waits = calls_left = 0;
}

bool last_use_was_right(size_t bytes, double seconds)
{
    const int before = waits;
    const bool right = seconds < FAULT_SECONDS + (double)bytes / FAULT_BYTES_PER_SECOND;
    if (right) {
        waits = before > 0 ? before - 1 : 0;
    } else {
        calls_left = 1 << before;
        waits = before < MOST_WAITS ? before + 1 : before;
    }
    return right;
}
