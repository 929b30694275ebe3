/* Products of halves: packed as floats, summed in ascending order of k, rounded once. A product of two halves is
 * exact in float, so that fused and separate additions agree. */
#include "matmul_kernels.h"

#include "kernels/half_convert.h"
#include "panel_transpose.h"
#include "register_tile.h"

typedef uint16_t element;
typedef float sum_element;
typedef float lane;
typedef lane lanes __attribute__((vector_size(TILE_BYTES)));

enum { ROWS = TILE_ROWS, VECTORS = TILE_VECTORS, A_WORDS = 1, B_WORDS = 1 };
enum { GROUP = 1, SUMS = 1, STEPS = 1, IN_ORDER = 1 };

INLINE void add_products(int step, lanes *sum, const lanes *a, const lanes *b)
{
    (void)step;
#if defined(__AVX512F__)
    sum[0] = (lanes)_mm512_fmadd_ps((__m512)a[0], (__m512)b[0], (__m512)sum[0]);
#elif defined(__FMA__)
    sum[0] = (lanes)_mm256_fmadd_ps((__m256)a[0], (__m256)b[0], (__m256)sum[0]);
#elif defined(__aarch64__)
    sum[0] = (lanes)vfmaq_f32((float32x4_t)sum[0], (float32x4_t)a[0], (float32x4_t)b[0]);
#else
    sum[0] += a[0] * b[0];
#endif
}

INLINE lanes total(const lanes *sum)
{
    return sum[0];
}

#include "tile_template.h"

_Static_assert((int)ROWS <= (int)COLUMNS, "what fits a panel of b fits one of a");

/* ---- packing: HALF_BLOCK elements are converted at once ---- */

/* The units of a full panel (rows of a or columns of b) are contiguous. */
INLINE void convert_along_units(float *to, const char *from, ptrdiff_t k_step, ptrdiff_t k,
                                int units)
{
    for (ptrdiff_t at = 0; at < k; at++) {
        for (int unit = 0; unit < units; unit += HALF_BLOCK) {
            uint16_t halves[HALF_BLOCK] = {0};
            float floats[HALF_BLOCK];
            const int left = units - unit < HALF_BLOCK ? units - unit : HALF_BLOCK;
            memcpy(halves, (const uint16_t *)from + unit, left * sizeof *halves);
            halves_to_floats(halves, floats);
            memcpy(to + unit, floats, left * sizeof *floats);
        }
        to += units;
        from += k_step;
    }
}

INLINE void convert_along_k(float *to, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                            ptrdiff_t count, ptrdiff_t k, int units)
{
    for (ptrdiff_t at = 0; at < k; at += HALF_BLOCK) {
        const ptrdiff_t end = k - at < HALF_BLOCK ? k - at : HALF_BLOCK;
        float floats[COLUMNS][HALF_BLOCK];
        for (ptrdiff_t unit = 0; unit < units; unit++) {
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
        transpose_to_panel((const char *)floats, sizeof floats[0], units, units, end,
                           (char *)(to + at * units), sizeof(float));
    }
}

INLINE void pack_panel(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t count, ptrdiff_t k, int units)
{
    const ptrdiff_t size = sizeof(uint16_t);
    if (unit_step == size && count == units) {
        convert_along_units((float *)panel, from, k_step, k, units);
    } else if (k_step == size) {
        convert_along_k((float *)panel, from, unit_step, size, count, k, units);
    } else {
        convert_along_k((float *)panel, from, unit_step, k_step, count, k, units);
    }
}

static void pack_a(char *panel, const char *from, ptrdiff_t row_step, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(panel, from, row_step, k_step, count, k, ROWS);
}

static void pack_b(char *panel, const char *from, ptrdiff_t column_step, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(panel, from, column_step, k_step, count, k, COLUMNS);
}

/* ---- results ---- */

static void round_sums(const char *sums, ptrdiff_t sums_row, char *c, ptrdiff_t c_row,
                       ptrdiff_t c_column, ptrdiff_t rows, ptrdiff_t columns)
{
    int flags = 0;
    for (ptrdiff_t row = 0; row < rows; row++) {
        const float *from = (const float *)(sums + row * sums_row);
        char *to = c + row * c_row;
        for (ptrdiff_t column = 0; column < columns; column += HALF_BLOCK) {
            const ptrdiff_t left = columns - column;
            if (left >= HALF_BLOCK && c_column == sizeof(uint16_t)) {
                floats_to_halves(from + column, (uint16_t *)(to + column * c_column), &flags);
                continue;
            }
            for (ptrdiff_t i = column; i < columns && i < column + HALF_BLOCK; i++) {
                uint32_t bits;
                memcpy(&bits, from + i, sizeof bits);
                *(uint16_t *)(to + i * c_column) = float_to_half(bits, &flags);
            }
        }
    }
    if (flags != 0) {
        feraiseexcept(flags);
    }
}

#include "half_direct.h"

const struct matmul_kernel KERNEL = {
    .kind = 'e',
    .item_size = sizeof(uint16_t),
    .sum_size = sizeof(float),
    .rows = ROWS,
    .columns = COLUMNS,
    .group = GROUP,
    .a_group_bytes = sizeof(float),
    .b_group_bytes = sizeof(float),
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = compute_tile,
    .finish = round_sums,
    .direct = compute_directly,
};
