/* Packs rows of a, or columns of b, into a panel. Parameters, beside those of matmul_dtype.h:
 *   PACK          the function's name
 *   UNIT, WORDS   rows or columns of a panel, and words that a group becomes
 *   ENCODE(e, w)  makes words w[0 .. WORDS) of elements e[0 .. GROUP)
 *   AS_WORDS      1: a group becomes the word that its bytes are already
 * Winograd's inner product: a0 b0 + a1 b1 = (a0 + b1) (a1 + b0) - a0 a1 - b0 b1, which halves the
 * multiplications. With what is to be subtracted summed over k, one more group does it for all of
 * them: (1 + 0) (-sum a0 a1 - sum b0 b1). FACTOR is its 1 or 0. */
#define encode_at JOIN(encode_at, PACK)
#define along_units JOIN(along_units, PACK)
#define along_k JOIN(along_k, PACK)
#define along_neighbours JOIN(along_neighbours, PACK)
#define one_more_group JOIN(one_more_group, PACK)

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

/* Units are next to each other, all of them there: vectors of them are encoded at once. */
INLINE void along_units(LANE *restrict to, const char *restrict from, ptrdiff_t k_step, ptrdiff_t k)
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

/* The elements of a unit are next to each other: whole groups are transposed, and then encoded. */
INLINE void along_neighbours(LANE *to, const char *from, ptrdiff_t unit_step, ptrdiff_t count,
                             ptrdiff_t k)
{
    enum { BLOCK = 32, SIZE = sizeof(ELEMENT), WHOLE = AS_WORDS ? GROUP : 1 };
    ELEMENT block[UNIT * BLOCK];
    const ptrdiff_t end = k / (4 * GROUP) * (4 * GROUP);
    ptrdiff_t at = 0;
    if (AS_WORDS) {
        transpose(from, unit_step, count, UNIT, end / GROUP, (char *)to, SIZE * WHOLE);
        at = end;
    }
    for (; at < end; at += BLOCK) {
        const ptrdiff_t depth = end - at < BLOCK ? end - at : BLOCK;
        transpose(from + at * SIZE, unit_step, count, UNIT, depth, (char *)block, SIZE);
        along_units(to + at / GROUP * (UNIT * WORDS), (const char *)block, UNIT * SIZE, depth);
    }
    along_k(to + end / GROUP * (UNIT * WORDS), from + end * SIZE, unit_step, SIZE, count, k - end);
}

INLINE void one_more_group(LANE *panel, ptrdiff_t groups)
{
    LANE sum[UNIT] = {0};
    for (ptrdiff_t group = 0; group < groups; group++) {
        for (int unit = 0; unit < UNIT; unit++) {
            sum[unit] += panel[unit] * panel[unit + UNIT];
        }
        panel += WORDS * UNIT;
    }
    for (int unit = 0; unit < UNIT; unit++) {
        panel[unit] = FACTOR;
        panel[unit + UNIT] = -sum[unit];
    }
}

static void PACK(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                 ptrdiff_t count, ptrdiff_t k)
{
    const ptrdiff_t size = sizeof(ELEMENT);
    if (unit_step == size && count == UNIT) {
        along_units((LANE *)panel, from, k_step, k);
    } else if (k_step == size && (AS_WORDS || size == 4 || size == 8)) {
        along_neighbours((LANE *)panel, from, unit_step, count, k);
    } else if (k_step == size) {
        along_k((LANE *)panel, from, unit_step, size, count, k);
    } else {
        along_k((LANE *)panel, from, unit_step, k_step, count, k);
    }
    if (IN_PAIRS) {
        one_more_group((LANE *)panel, (k + GROUP - 1) / GROUP);
    }
}

#undef encode_at
#undef along_units
#undef along_k
#undef one_more_group
#undef along_neighbours
#undef PACK
#undef UNIT
#undef WORDS
#undef ENCODE
#undef FACTOR
#undef AS_WORDS
