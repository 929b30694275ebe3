/* The elements of a call, shared out among threads. */
#ifndef NUMC_SHARES_H
#define NUMC_SHARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { MOST_SHARES = 64, SHARE_ALIGNMENT = 64 };

/* Each thread has a share of its own, the same in every call of one size, so that it finds in its
 * cache what it had there before. It takes the share in chunks; who is done takes chunks of the
 * others', so that nobody waits long for a thread that the system holds up. */
struct shares {
    int count;
    ptrdiff_t chunk;
    struct share {
        _Alignas(SHARE_ALIGNMENT) _Atomic ptrdiff_t next; /* a line for each: no false sharing */
        ptrdiff_t end;
    } share[MOST_SHARES];
};

/* Shares out [first, end) among `threads`. Shares and chunks, but for the last, are multiples of
 * `block`, and chunks no smaller than `least`. */
void shares_initialize(struct shares *shares, ptrdiff_t first, ptrdiff_t end, ptrdiff_t block,
                       ptrdiff_t least, int threads);

/* Takes the next chunk [*first, *end) for the thread of this index; false when none is left. */
bool shares_take(struct shares *shares, int index, ptrdiff_t *first, ptrdiff_t *end);

#endif
