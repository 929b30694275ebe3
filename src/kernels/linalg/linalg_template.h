/* All kernels of one dtype. What the file that includes it defines:
 *   element, lane_bits  a part of a number, and the signed integer of its size
 *   IS_FLOAT            whether that is float: 1 or 0
 *   KIND                'f' or 'c' */
#include "lane_matrices.h"

#include "systems.h"

#include "determinants.h"

#include "cholesky.h"

#include "eigenvalues.h"

#include "singular_values.h"

#if !IS_FLOAT /* NumPy computes QR decompositions of float32 as float64 */
#include "orthogonal.h"
#endif

static const struct linalg_row rows[] = {
    {"inv", MOST_N, inv},
    {"solve", MOST_N, solve},
    {"solve1", MOST_N, solve1},
    {"det", MOST_N, det},
    {"slogdet", MOST_N, slogdet},
    {"cholesky_lo", MOST_N, cholesky_lo},
    {"cholesky_up", MOST_N, cholesky_up},
    {"eigh_lo", MOST_N_OF_VECTORS, eigh_lo},
    {"eigh_up", MOST_N_OF_VECTORS, eigh_up},
    {"eigvalsh_lo", MOST_N_OF_VALUES, eigvalsh_lo},
    {"eigvalsh_up", MOST_N_OF_VALUES, eigvalsh_up},
    {"svd_f", MOST_N_OF_SINGULAR, svd_f},
    {"svd_s", MOST_N_OF_SINGULAR, svd_f},
    {"svd", MOST_N_OF_SINGULAR_VALUES, svd},
    {"svd_n_f", MOST_N_OF_SINGULAR, svd_f}, /* NumPy 2.0's names */
    {"svd_n_s", MOST_N_OF_SINGULAR, svd_f},
    {"svd_n", MOST_N_OF_SINGULAR_VALUES, svd},
#if !IS_FLOAT
    {"qr_r_raw", MOST_N_OF_REFLECTIONS, qr_r_raw},
    {"qr_r_raw_m", MOST_N_OF_REFLECTIONS, qr_r_raw}, /* NumPy 2.0's names */
    {"qr_r_raw_n", MOST_N_OF_REFLECTIONS, qr_r_raw},
    {"qr_reduced", MOST_N_OF_REFLECTIONS, qr_reduced},
    {"qr_complete", MOST_N_OF_REFLECTIONS, qr_complete},
#endif
    {NULL, 0, NULL},
};

const struct linalg_dtype KERNEL = {KIND, PARTS * sizeof(element), rows};
