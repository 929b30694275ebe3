/* Packs rows of a, or columns of b, that are contiguous along k: transposes them into a panel. */
#include "kernels/copy/transpose.h"

/* Moves word w, of `size` bytes, of unit u (a row of a or a column of b) to to[w][u]. The panel has `units`
 * units, of which `count` exist; the rest are copies of the last. */
INLINE void transpose_to_panel(const char *from, ptrdiff_t unit_step, ptrdiff_t count,
                               ptrdiff_t units, ptrdiff_t words, char *to, ptrdiff_t size)
{
    const ptrdiff_t in_squares = (count < units ? count : units) / 4 * 4;
    for (ptrdiff_t unit = 0; unit < in_squares; unit += 4) {
        const char *line = from + unit * unit_step;
        ptrdiff_t word = 0;
        for (; word + 4 <= words; word += 4) {
            (size == 4 ? transpose_4x4_of_32_bits : transpose_4x4_of_64_bits)(
                line + word * size, unit_step, to + (word * units + unit) * size, units * size);
        }
        for (; word < words; word++) {
            for (int i = 0; i < 4; i++) {
                memcpy(to + (word * units + unit + i) * size, line + i * unit_step + word * size,
                       (size_t)size);
            }
        }
    }
    for (ptrdiff_t unit = in_squares; unit < units; unit++) {
        const char *line = from + (unit < count ? unit : count - 1) * unit_step;
        for (ptrdiff_t word = 0; word < words; word++) {
            memcpy(to + (word * units + unit) * size, line + word * size, (size_t)size);
        }
    }
}
