/* Packs rows of a, or columns of b, into a panel. Parameters, beside those of matmul_dtype.h:
 *   PACK          the function's name
 *   UNIT, WORDS   rows or columns of a panel, and words that a group becomes
 *   ENCODE(e, w)  makes words w[0 .. WORDS) of elements e[0 .. GROUP) */
#define encode_at JOIN(encode_at, PACK)
#define along_units JOIN(along_units, PACK)
#define along_k JOIN(along_k, PACK)

INLINE void encode_at(LANE *to, const char *from, ptrdiff_t k_step, ptrdiff_t count)
{
    ELEMENT e[GROUP];
    LANE w[WORDS];
    for (int i = 0; i < GROUP; i++) {
        e[i] = i < count ? *(const ELEMENT *)(from + i * k_step) : (ELEMENT)0;
    }
    ENCODE(e, w);
    for (int i = 0; i < WORDS; i++) {
        to[i * UNIT] = w[i];
    }
}

/* Units are next to each other: vectors of them are encoded at once. */
INLINE void along_units(LANE *restrict to, const char *restrict from, ptrdiff_t k_step,
                        ptrdiff_t k)
{
    ptrdiff_t at = 0;
    for (; at + GROUP <= k; at += GROUP) {
        for (int unit = 0; unit < UNIT; unit++) {
            encode_at(to + unit, from + unit * (ptrdiff_t)sizeof(ELEMENT), k_step, GROUP);
        }
        to += UNIT * WORDS;
        from += GROUP * k_step;
    }
    for (int unit = 0; at < k && unit < UNIT; unit++) {
        encode_at(to + unit, from + unit * (ptrdiff_t)sizeof(ELEMENT), k_step, k - at);
    }
}

/* Goes along k in blocks, so that the lines of the panel that a block writes stay in the cache. */
INLINE void along_k(LANE *restrict to, const char *restrict from, ptrdiff_t unit_step,
                    ptrdiff_t k_step, ptrdiff_t count, ptrdiff_t k)
{
    enum { BLOCK = 16 };
    for (ptrdiff_t at = 0; at < k; at += BLOCK * GROUP) {
        const ptrdiff_t end = k - at < BLOCK * GROUP ? k - at : BLOCK * GROUP;
        for (ptrdiff_t unit = 0; unit < UNIT; unit++) {
            const ptrdiff_t source = unit < count ? unit : count - 1;
            const char *line = from + source * unit_step + at * k_step;
            LANE *word = to + at / GROUP * (UNIT * WORDS) + unit;
            ptrdiff_t i = 0;
            for (; i + GROUP <= end; i += GROUP) {
                encode_at(word, line + i * k_step, k_step, GROUP);
                word += UNIT * WORDS;
            }
            if (i < end) {
                encode_at(word, line + i * k_step, k_step, end - i);
            }
        }
    }
}

static void PACK(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                 ptrdiff_t count, ptrdiff_t k)
{
    const ptrdiff_t size = sizeof(ELEMENT);
    if (unit_step == size && count == UNIT) {
        along_units((LANE *)panel, from, k_step, k);
    } else if (k_step == size) {
        along_k((LANE *)panel, from, unit_step, size, count, k);
    } else {
        along_k((LANE *)panel, from, unit_step, k_step, count, k);
    }
}

#undef encode_at
#undef along_units
#undef along_k
#undef PACK
#undef UNIT
#undef WORDS
#undef ENCODE
