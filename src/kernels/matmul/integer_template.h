/* The kernel of one integer dtype. The file that includes it defines the parameters of the three templates
 * below. */
#include "direct_template.h"

enum { IN_ORDER = 0 };

#include "tile_template.h"

#include "pack_template.h"

#include "stack_of_dots.h"

static void pack_a(char *panel, const char *from, ptrdiff_t row_step, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(true, panel, from, row_step, k_step, count, k);
}

static void pack_b(char *panel, const char *from, ptrdiff_t column_step, ptrdiff_t k_step,
                   ptrdiff_t count, ptrdiff_t k)
{
    pack_panel(false, panel, from, column_step, k_step, count, k);
}

const struct matmul_kernel KERNEL = {
    .kind = 'i',
    .item_size = sizeof(element),
    .sum_size = sizeof(sum_element),
    .rows = ROWS,
    .columns = COLUMNS,
    .group = GROUP,
    .extra_groups = WINOGRAD,
    .a_group_bytes = A_WORDS * sizeof(lane),
    .b_group_bytes = B_WORDS * sizeof(lane),
    .pack_a = pack_a,
    .pack_b = pack_b,
    .tile = compute_tile,
    .direct = compute_directly,
    .stack_row_bytes = VECTOR_BYTES,
    .stack = compute_stack,
#if !defined(SCALAR_DOTS)
    .dots = stack_of_dots,
#endif
};
