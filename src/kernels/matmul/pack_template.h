/* Packs a panel of units: rows of a or columns of b. Beside the parameters of tile_template.h, the file that
 * includes it defines
 *   encode_a(e, w), encode_b   encode elements e[0 .. GROUP) as words w[0 .. A_WORDS) or w[0 .. B_WORDS)
 *   A_AS_WORDS, B_AS_WORDS     1: a group's bytes are its word, no encoding needed
 *   WINOGRAD                   1: for Winograd's inner product, see winograd.h. The correction is stored as one
 *                              extra group of k, whose product is (1 + 0) (-sum a0 a1 - sum b0 b1)
 * All functions are inlined with a constant of_a. */
#include "panel_transpose.h"

enum {
    MOST_UNITS = (int)ROWS > (int)COLUMNS ? (int)ROWS : (int)COLUMNS,
    MOST_WORDS = (int)A_WORDS > (int)B_WORDS ? (int)A_WORDS : (int)B_WORDS,
};

INLINE int units_of(bool of_a)
{
    return of_a ? ROWS : COLUMNS;
}

INLINE int words_of(bool of_a)
{
    return of_a ? A_WORDS : B_WORDS;
}

INLINE void encode_at(bool of_a, lane *to, const char *from, ptrdiff_t k_step, ptrdiff_t count)
{
    element e[GROUP];
    lane word[MOST_WORDS];
    for (int i = 0; i < GROUP; i++) {
        e[i] = i < count ? *(const element *)(from + i * k_step) : (element)0;
    }
    if (of_a) {
        encode_a(e, word);
    } else {
        encode_b(e, word);
    }
    for (int i = 0; i < words_of(of_a); i++) {
        to[i * units_of(of_a)] = word[i];
    }
}

/* Units of a full panel are contiguous: the compiler encodes vectors of them. */
INLINE void pack_along_units(bool of_a, lane *restrict to, const char *restrict from,
                             ptrdiff_t k_step, ptrdiff_t k)
{
    const int units = units_of(of_a);
    ptrdiff_t at = 0;
    for (; at + GROUP <= k; at += GROUP) {
        for (int unit = 0; unit < units; unit++) {
            encode_at(of_a, to + unit, from + unit * (ptrdiff_t)sizeof(element), k_step, GROUP);
        }
        to += units * words_of(of_a);
        from += GROUP * k_step;
    }
    for (int unit = 0; at < k && unit < units; unit++) {
        encode_at(of_a, to + unit, from + unit * (ptrdiff_t)sizeof(element), k_step, k - at);
    }
}

/* Blocked along k, so that the lines of the panel that a block writes stay in the cache. */
INLINE void pack_along_k(bool of_a, lane *restrict to, const char *restrict from,
                         ptrdiff_t unit_step, ptrdiff_t k_step, ptrdiff_t count, ptrdiff_t k)
{
    enum { BLOCK = 16 };
    const ptrdiff_t group_words = units_of(of_a) * words_of(of_a);
    for (ptrdiff_t at = 0; at < k; at += BLOCK * GROUP) {
        const ptrdiff_t end = k - at < BLOCK * GROUP ? k - at : BLOCK * GROUP;
        for (ptrdiff_t unit = 0; unit < units_of(of_a); unit++) {
            const ptrdiff_t source = unit < count ? unit : count - 1;
            const char *line = from + source * unit_step + at * k_step;
            lane *word = to + at / GROUP * group_words + unit;
            ptrdiff_t i = 0;
            for (; i + GROUP <= end; i += GROUP) {
                encode_at(of_a, word, line + i * k_step, k_step, GROUP);
                word += group_words;
            }
            if (i < end) {
                encode_at(of_a, word, line + i * k_step, k_step, end - i);
            }
        }
    }
}

/* Each unit is contiguous along k: transpose, then encode. */
INLINE void pack_contiguous_k(bool of_a, lane *to, const char *from, ptrdiff_t unit_step,
                              ptrdiff_t count, ptrdiff_t k)
{
    enum { BLOCK = 32, SIZE = sizeof(element) };
    const int units = units_of(of_a);
    const ptrdiff_t group_words = units * words_of(of_a);
    element block[MOST_UNITS * BLOCK];
    const ptrdiff_t end = k / (4 * GROUP) * (4 * GROUP);
    ptrdiff_t at = 0;
    if (of_a ? A_AS_WORDS : B_AS_WORDS) {
        transpose_to_panel(from, unit_step, count, units, end / GROUP, (char *)to, SIZE * GROUP);
        at = end;
    }
    for (; at < end; at += BLOCK) {
        const ptrdiff_t depth = end - at < BLOCK ? end - at : BLOCK;
        transpose_to_panel(from + at * SIZE, unit_step, count, units, depth, (char *)block, SIZE);
        pack_along_units(of_a, to + at / GROUP * group_words, (const char *)block, units * SIZE,
                         depth);
    }
    pack_along_k(of_a, to + end / GROUP * group_words, from + end * SIZE, unit_step, SIZE, count,
                 k - end);
}

INLINE void pack_correction(bool of_a, lane *panel, ptrdiff_t groups)
{
    const int units = units_of(of_a);
    lane sum[MOST_UNITS] = {0};
    for (ptrdiff_t group = 0; group < groups; group++) {
        for (int unit = 0; unit < units; unit++) {
            sum[unit] += panel[unit] * panel[unit + units];
        }
        panel += words_of(of_a) * units;
    }
    for (int unit = 0; unit < units; unit++) {
        panel[unit] = of_a;
        panel[unit + units] = -sum[unit];
    }
}

INLINE void pack_panel(bool of_a, char *panel, const char *from, ptrdiff_t unit_step,
                       ptrdiff_t k_step, ptrdiff_t count, ptrdiff_t k)
{
    const ptrdiff_t size = sizeof(element);
    const bool as_words = of_a ? A_AS_WORDS : B_AS_WORDS;
    if (unit_step == size && count == units_of(of_a)) {
        pack_along_units(of_a, (lane *)panel, from, k_step, k);
    } else if (k_step == size && (as_words || size == 4 || size == 8)) {
        pack_contiguous_k(of_a, (lane *)panel, from, unit_step, count, k);
    } else if (k_step == size) {
        pack_along_k(of_a, (lane *)panel, from, unit_step, size, count, k);
    } else {
        pack_along_k(of_a, (lane *)panel, from, unit_step, k_step, count, k);
    }
    if (WINOGRAD) {
        pack_correction(of_a, (lane *)panel, (k + GROUP - 1) / GROUP);
    }
}
