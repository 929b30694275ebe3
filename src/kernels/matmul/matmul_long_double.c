/* Products of long doubles: panels are plain copies, the tile is as large as the x87 stack allows. Products are
 * added in ascending order of k, so that a sum has the bits of NumPy's loop. */
#include "matmul_kernels.h"

#include "kernels/vector.h"

typedef long double element;
typedef long double lane;

enum { ROWS = 2, COLUMNS = 2, GROUP = 1, A_WORDS = 1, B_WORDS = 1 };
enum { A_AS_WORDS = 0, B_AS_WORDS = 0, WINOGRAD = 0 };

INLINE void encode_a(const element *e, lane *word)
{
    word[0] = e[0];
}

INLINE void encode_b(const element *e, lane *word)
{
    word[0] = e[0];
}

#include "pack_template.h"

/* Rows of a and columns of b have the same format. */
static void pack_units(char *panel, const char *from, ptrdiff_t unit_step, ptrdiff_t k_step,
                       ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(true, panel, from, unit_step, k_step, count, k);
}

static void compute_tile(const char *a_, const char *b_, ptrdiff_t groups, char *c, ptrdiff_t c_row,
                         bool accumulate)
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

static void compute_directly(const struct product *x)
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

const struct matmul_kernel KERNEL = {
    .kind = 'f',
    .item_size = sizeof(long double),
    .is_scalar = true,
    .sum_size = sizeof(long double),
    .rows = ROWS,
    .columns = COLUMNS,
    .group = 1,
    .a_group_bytes = sizeof(long double),
    .b_group_bytes = sizeof(long double),
    .pack_a = pack_units,
    .pack_b = pack_units,
    .tile = compute_tile,
    .direct = compute_directly,
};
