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
    {"inv", MOST_N, inv, two_matrices},
    {"solve", MOST_N, solve, two_matrices},
    {"solve1", MOST_N, solve1, two_matrices},
    {"det", MOST_N, det, two_matrices},
    {"slogdet", MOST_N, slogdet, two_matrices},
    {"cholesky_lo", MOST_N, cholesky_lo, two_matrices},
    {"cholesky_up", MOST_N, cholesky_up, two_matrices},
    {"eigh_lo", MOST_N_OF_VECTORS, eigh_lo, eigen_workspace},
    {"eigh_up", MOST_N_OF_VECTORS, eigh_up, eigen_workspace},
    {"eigvalsh_lo", MOST_N_OF_VALUES, eigvalsh_lo, eigen_workspace},
    {"eigvalsh_up", MOST_N_OF_VALUES, eigvalsh_up, eigen_workspace},
    {"svd_f", MOST_N_OF_SINGULAR, svd_f, singular_workspace},
    {"svd_s", MOST_N_OF_SINGULAR, svd_f, singular_workspace},
    {"svd", MOST_N_OF_SINGULAR_VALUES, svd, singular_workspace},
    {"svd_n_f", MOST_N_OF_SINGULAR, svd_f, singular_workspace}, /* NumPy 2.0's names */
    {"svd_n_s", MOST_N_OF_SINGULAR, svd_f, singular_workspace},
    {"svd_n", MOST_N_OF_SINGULAR_VALUES, svd, singular_workspace},
#if !IS_FLOAT
    {"qr_r_raw", MOST_N_OF_REFLECTIONS, qr_r_raw, one_matrix},
    {"qr_r_raw_m", MOST_N_OF_REFLECTIONS, qr_r_raw, one_matrix}, /* NumPy 2.0's names */
    {"qr_r_raw_n", MOST_N_OF_REFLECTIONS, qr_r_raw, one_matrix},
    {"qr_reduced", MOST_N_OF_REFLECTIONS, qr_reduced, one_matrix},
    {"qr_complete", MOST_N_OF_REFLECTIONS, qr_complete, one_matrix},
#endif
    {NULL, 0, NULL, NULL},
};

const struct linalg_dtype KERNEL = {KIND, PARTS * sizeof(element), rows};
