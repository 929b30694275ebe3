/* Shares of a call, and chunks of shares. */
#include "shares.h"

enum { CHUNKS_OF_SHARE = 16 };

static ptrdiff_t multiple(ptrdiff_t n, ptrdiff_t block)
{
    return (n + block - 1) / block * block;
}

void shares_initialize(struct shares *shares, ptrdiff_t first, ptrdiff_t end, ptrdiff_t block,
                       ptrdiff_t least, int threads)
{
    shares->count = threads < MOST_SHARES ? threads : MOST_SHARES;
    const ptrdiff_t size = multiple((end - first + shares->count - 1) / shares->count, block);
    const ptrdiff_t chunk = size / CHUNKS_OF_SHARE;
    shares->chunk = multiple(chunk > least ? chunk : least, block);
    for (int i = 0; i < shares->count; i++) {
        const ptrdiff_t left = end - first;
        atomic_init(&shares->share[i].next, first);
        first += size < left ? size : left;
        shares->share[i].end = first;
    }
}

bool shares_take(struct shares *shares, int index, ptrdiff_t *first, ptrdiff_t *end)
{
    for (int i = 0; i < shares->count; i++) {
        struct share *share = &shares->share[(index + i) % shares->count];
        /* Check first: each attempt on an empty share advances `next`, which would overflow at
         * last. */
        if (atomic_load_explicit(&share->next, memory_order_relaxed) < share->end) {
            *first = atomic_fetch_add_explicit(&share->next, shares->chunk, memory_order_relaxed);
            if (*first < share->end) {
                const ptrdiff_t left = share->end - *first;
                *end = *first + (shares->chunk < left ? shares->chunk : left);
                return true;
            }
        }
    }
    return false;
}
