/* Running results of small integers, a vector of 16 bytes at a time; for running.c. Parameters:
 *   SCANNED  the unsigned type, LAST, ... the index of its last lane, once for each lane */
#define vector JOIN(scan, SCANNED)
#define name(what) JOIN(what, SCANNED)

typedef SCANNED vector __attribute__((vector_size(SCAN_BYTES)));

INLINE vector name(combine)(enum scan op, vector a, vector b)
{
    if (op == SCAN_OR) {
        return a | b;
    }
    if (op == SCAN_XOR) {
        return a ^ b;
    }
#if defined(__x86_64__) /* compilers do not find these instructions */
    if (sizeof(SCANNED) == 1) {
        return (vector)_mm_max_epu8((__m128i)a, (__m128i)b);
    }
    if (sizeof(SCANNED) == 2) {
        return (vector)_mm_subs_epu16((__m128i)a, (__m128i)b) + b;
    }
#endif
    const vector is_larger = (vector)(a > b);
    return (a & is_larger) | (b & ~is_larger);
}

/* Each lane is combined with the one before, these pairs with the pairs before them, and so on; all of them with what
 * precedes the vector: only that waits for the vector before. The output is contiguous. Returns how many elements are
 * done. */
INLINE ptrdiff_t name(scan_of)(enum scan op, SCANNED flip, bool is_bool, char *const data[],
                               ptrdiff_t step, ptrdiff_t n)
{
    const SCANNED first = *(const SCANNED *)data[0];
    vector before = {0};
    before += (SCANNED)((is_bool ? first != 0 : first) ^ flip);
    const ptrdiff_t bytes = n * (ptrdiff_t)sizeof(SCANNED) / SCAN_BYTES * SCAN_BYTES;
    SCANNED gathered[GATHERED_BYTES / sizeof(SCANNED)];
    for (ptrdiff_t at = 0; at < bytes; at += SCAN_BYTES) {
        const char *from = data[1] + at;
        if (step != sizeof(SCANNED)) {
            const ptrdiff_t size = sizeof(SCANNED), in = at % GATHERED_BYTES;
            if (in == 0) {
                copy_items_of(sizeof(SCANNED), (char *)gathered, size, data[1] + at / size * step,
                              step, size_min(bytes - at, GATHERED_BYTES) / size);
            }
            from = (const char *)gathered + in;
        }
        vector v;
        memcpy(&v, from, sizeof v);
        v = (is_bool ? (vector)(v != 0) & 1 : v) ^ flip;
        for (int by = sizeof(SCANNED); by < SCAN_BYTES; by *= 2) {
            v = name(combine)(op, v, (vector)shifted((scan_bytes)v, by));
        }
        const vector last = __builtin_shufflevector(v, v, LAST);
        v = name(combine)(op, v, before) ^ flip;
        memcpy(data[2] + at, &v, sizeof v);
        before = name(combine)(op, before, last);
    }
    return bytes / (ptrdiff_t)sizeof(SCANNED);
}

#undef vector
#undef name
#undef SCANNED
#undef LAST
