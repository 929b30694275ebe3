/* Packs rows of a, or columns of b, of halves as floats: PACK is the function's name, UNIT the rows or
 * columns of a panel. Converts HALF_BLOCK elements at once, next to each other wherever they are. */
#define along_units JOIN(along_units, PACK)
#define along_k JOIN(along_k, PACK)

INLINE void along_units(float *to, const char *from, ptrdiff_t k_step, ptrdiff_t k)
{
    for (ptrdiff_t at = 0; at < k; at++) {
        for (int unit = 0; unit < UNIT; unit += HALF_BLOCK) {
            uint16_t halves[HALF_BLOCK] = {0};
            float floats[HALF_BLOCK];
            const int left = UNIT - unit < HALF_BLOCK ? UNIT - unit : HALF_BLOCK;
            memcpy(halves, (const uint16_t *)from + unit, left * sizeof *halves);
            halves_to_floats(halves, floats);
            memcpy(to + unit, floats, left * sizeof *floats);
        }
        to += UNIT;
        from += k_step;
    }
}

INLINE void along_k(float *to, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                    ptrdiff_t count, ptrdiff_t k)
{
    for (ptrdiff_t at = 0; at < k; at += HALF_BLOCK) {
        const ptrdiff_t end = k - at < HALF_BLOCK ? k - at : HALF_BLOCK;
        float floats[UNIT][HALF_BLOCK];
        for (ptrdiff_t unit = 0; unit < UNIT; unit++) {
            const char *line = from + (unit < count ? unit : count - 1) * unit_step + at * k_step;
            if (k_step == sizeof(uint16_t) && end == HALF_BLOCK) {
                halves_to_floats((const uint16_t *)line, floats[unit]);
                continue;
            }
            uint16_t halves[HALF_BLOCK] = {0};
            for (ptrdiff_t i = 0; i < end; i++) {
                halves[i] = *(const uint16_t *)(line + i * k_step);
            }
            halves_to_floats(halves, floats[unit]);
        }
        transpose((const char *)floats, sizeof floats[0], UNIT, UNIT, end, (char *)(to + at * UNIT),
                  sizeof(float));
    }
}

static void PACK(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                 ptrdiff_t count, ptrdiff_t k)
{
    const ptrdiff_t size = sizeof(uint16_t);
    if (unit_step == size && count == UNIT) {
        along_units((float *)panel, from, k_step, k);
    } else if (k_step == size) {
        along_k((float *)panel, from, unit_step, size, count, k);
    } else {
        along_k((float *)panel, from, unit_step, k_step, count, k);
    }
}

#undef along_units
#undef along_k
#undef PACK
#undef UNIT
#undef WORDS
#undef ENCODE
#undef FACTOR
#undef AS_WORDS
