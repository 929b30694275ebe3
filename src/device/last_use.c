/* By pieces as large as those that the driver moves at most. The table forgets: two pieces that fall on the
 * same place take it from each other. */
#include "last_use.h"

#include <stdatomic.h>

enum {
    PIECE_BITS = 21,
    PLACE_BITS = 8,
    ENTRIES = 1 << 17, /* of 2 MiB each: 256 GiB */
    MOST_WAITS = 6,
};

/* The number of a piece, above its place: 0, or one more than the number of a device. */
static _Atomic uint64_t entries[ENTRIES];

static uint64_t place_of(const struct device *device)
{
    return device == NULL ? 0 : 1 + (uint64_t)device->number;
}

static uint64_t piece_of(uintptr_t address)
{
    return address >> PIECE_BITS;
}

bool last_use_is(struct extent extent, const struct device *device)
{
    const uint64_t place = place_of(device);
    bool is = true;
    for (uint64_t piece = piece_of(extent.first); is && piece <= piece_of(extent.end - 1);
         piece++) {
        const uint64_t entry =
            atomic_load_explicit(&entries[piece % ENTRIES], memory_order_relaxed);
        const uint64_t of = entry >> PLACE_BITS == piece ? entry & ((1 << PLACE_BITS) - 1) : 0;
        is = of == place;
    }
    return is;
}

void last_use_note(struct extent extent, const struct device *device)
{
    const uint64_t place = place_of(device);
    for (uint64_t piece = piece_of(extent.first); piece <= piece_of(extent.end - 1); piece++) {
        atomic_store_explicit(&entries[piece % ENTRIES], piece << PLACE_BITS | place,
                              memory_order_relaxed);
    }
}

bool last_use_left_on(struct extent extent, struct device *device)
{
    return last_use_is(extent, device) &&
           !device->came_back(device, (const void *)extent.first, extent.end - extent.first);
}

/* ---- programs that alternate ---- */

static _Atomic int waits;      /* how often operands came back, less how often they stayed; */
static _Atomic int calls_left; /* so many calls are to stay on the processor: 2^waits at first */

void last_use_forget(void)
{
    for (int i = 0; i < ENTRIES; i++) {
        atomic_store_explicit(&entries[i], 0, memory_order_relaxed);
    }
    waits = calls_left = 0;
}

/* Counts may get lost between threads, which does no harm. */
bool last_use_may_move(bool came_back)
{
    if (came_back) {
        const int before = waits;
        calls_left = 1 << before;
        waits = before < MOST_WAITS ? before + 1 : before;
    }
    const int left = calls_left;
    if (left > 0) {
        calls_left = left - 1;
    }
    return left == 0;
}

void last_use_stayed(void)
{
    const int before = waits;
    waits = before > 0 ? before - 1 : 0;
}
