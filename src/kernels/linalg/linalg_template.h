/* All kernels of one dtype. What the file that includes it defines:
 *   element, lane_bits  a part of a number, and the signed integer of its size
 *   IS_FLOAT            whether that is float: 1 or 0
 *   KIND                'f' or 'c' */
#include "lane_matrices.h"

#include "systems.h"

#include "determinants.h"

#include "cholesky.h"

static const struct linalg_row rows[] = {
    {"inv", MOST_N, inv},
    {"solve", MOST_N, solve},
    {"solve1", MOST_N, solve1},
    {"det", MOST_N, det},
    {"slogdet", MOST_N, slogdet},
    {"cholesky_lo", MOST_N, cholesky_lo},
    {"cholesky_up", MOST_N, cholesky_up},
    {NULL, 0, NULL},
};

const struct linalg_dtype KERNEL = {KIND, PARTS * sizeof(element), rows};
