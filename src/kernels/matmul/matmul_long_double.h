/* long double: panels of plain copies, and a tile as large as the x87 stack allows. A sum is what
 * NumPy's loop computes, to the bit: products are added to it in ascending k. */

enum { LONG_DOUBLE_TILE = 2 };

#define PACK pack_long_double
#define UNIT LONG_DOUBLE_TILE
#define WORDS 1
#define ELEMENT long double
#define LANE long double
#define GROUP 1
#define ENCODE AS_IT_IS
#define IN_PAIRS 0
#define AS_WORDS 0
#define FACTOR 0
#include "matmul_pack.h"
#undef ELEMENT
#undef LANE
#undef GROUP
#undef IN_PAIRS

static void tile_long_double(const char *a_, const char *b_, ptrdiff_t groups, char *c,
                             ptrdiff_t c_row, bool accumulate)
{
    const long double *a = (const long double *)a_, *b = (const long double *)b_;
    long double *upper = (long double *)c, *lower = (long double *)(c + c_row);
    long double sum00 = accumulate ? upper[0] : 0, sum01 = accumulate ? upper[1] : 0;
    long double sum10 = accumulate ? lower[0] : 0, sum11 = accumulate ? lower[1] : 0;
    for (ptrdiff_t k = 0; k < groups; k++) {
        sum00 += a[2 * k] * b[2 * k];
        sum01 += a[2 * k] * b[2 * k + 1];
        sum10 += a[2 * k + 1] * b[2 * k];
        sum11 += a[2 * k + 1] * b[2 * k + 1];
    }
    upper[0] = sum00;
    upper[1] = sum01;
    lower[0] = sum10;
    lower[1] = sum11;
}

static void direct_long_double(const struct product *x)
{
    for (ptrdiff_t row = 0; row < x->m; row++) {
        for (ptrdiff_t column = 0; column < x->n; column++) {
            const char *a = x->a.data + row * x->a.row_step,
                       *b = x->b.data + column * x->b.column_step;
            long double sum = 0;
            for (ptrdiff_t k = 0; k < x->k; k++) {
                sum += *(const long double *)(a + k * x->a.column_step) *
                       *(const long double *)(b + k * x->b.row_step);
            }
            *(long double *)(x->c.data + row * x->c.row_step + column * x->c.column_step) = sum;
        }
    }
}

static const struct matmul_kernel matmul_long_double = {
    .kind = 'f',
    .item_size = sizeof(long double),
    .sum_size = sizeof(long double),
    .rows = LONG_DOUBLE_TILE,
    .columns = LONG_DOUBLE_TILE,
    .group = 1,
    .a_group_bytes = sizeof(long double),
    .b_group_bytes = sizeof(long double),
    .pack_a = pack_long_double,
    .pack_b = pack_long_double,
    .tile = tile_long_double,
    .direct = direct_long_double,
};
