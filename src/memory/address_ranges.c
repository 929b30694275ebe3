/* Sorted by address. Readers take what they read if no range was changed meanwhile (a seqlock); acquire and
 * release keep the order of all accesses, so fences are not needed. */
#include "address_ranges.h"

#include <stdatomic.h>
#include <stdint.h>

enum { MOST_RANGES = 16384 };

static struct address_range {
    _Atomic uintptr_t first, end;
    _Atomic int kind;
} ranges[MOST_RANGES];
static _Atomic int range_count;
static _Atomic unsigned changes; /* odd: a change is being made */

static uintptr_t first_of(int i)
{
    return atomic_load_explicit(&ranges[i].first, memory_order_acquire);
}

/* The last range that begins at the address or before; -1: none does. */
static int place_of(uintptr_t address, int count)
{
    int low = 0;
    while (count > 0) {
        const int half = count / 2;
        if (first_of(low + half) <= address) {
            low += half + 1;
            count -= half + 1;
        } else {
            count = half;
        }
    }
    return low - 1;
}

int address_ranges_find(const void *data)
{
    const uintptr_t address = (uintptr_t)data;
    for (;;) {
        const unsigned before = atomic_load_explicit(&changes, memory_order_acquire);
        const int count = atomic_load_explicit(&range_count, memory_order_acquire);
        const int place = count > 0 ? place_of(address, count) : -1;
        int kind = 0;
        if (place >= 0 &&
            address < atomic_load_explicit(&ranges[place].end, memory_order_acquire)) {
            kind = atomic_load_explicit(&ranges[place].kind, memory_order_acquire);
        }
        if (before % 2 == 0 && atomic_load_explicit(&changes, memory_order_relaxed) == before) {
            return kind;
        }
    }
}

static void change(void)
{
    atomic_fetch_add_explicit(&changes, 1, memory_order_acq_rel);
}

static void set(int i, uintptr_t first, uintptr_t end, int kind)
{
    atomic_store_explicit(&ranges[i].first, first, memory_order_release);
    atomic_store_explicit(&ranges[i].end, end, memory_order_release);
    atomic_store_explicit(&ranges[i].kind, kind, memory_order_release);
}

static void copy_range(int to, int from)
{
    set(to, ranges[from].first, ranges[from].end, ranges[from].kind);
}

bool address_ranges_add(const void *data, size_t bytes, int kind)
{
    const uintptr_t first = (uintptr_t)data;
    const int count = range_count;
    if (count == MOST_RANGES) {
        return false;
    }
    const int place = place_of(first, count) + 1;
    change();
    for (int i = count; i > place; i--) {
        copy_range(i, i - 1);
    }
    set(place, first, first + bytes, kind);
    atomic_store_explicit(&range_count, count + 1, memory_order_release);
    change();
    return true;
}

static void remove_at(int place)
{
    const int count = range_count;
    change();
    for (int i = place; i < count - 1; i++) {
        copy_range(i, i + 1);
    }
    atomic_store_explicit(&range_count, count - 1, memory_order_release);
    change();
}

void address_ranges_remove(const void *data)
{
    const int place = place_of((uintptr_t)data, range_count);
    if (place >= 0 && first_of(place) == (uintptr_t)data) {
        remove_at(place);
    }
}

void address_ranges_remove_kind(int kind)
{
    for (int i = range_count - 1; i >= 0; i--) {
        if (ranges[i].kind == kind) {
            remove_at(i);
        }
    }
}
