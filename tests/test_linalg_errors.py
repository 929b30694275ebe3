"""Decompositions of stacks of small matrices are as exact as LAPACK's, whatever the matrices."""

import numpy as np
import pytest
from linalg_errors import (
    difficult,
    eigenvalues,
    errors,
    refined_eigenvalues,
    refined_singular_values,
    singular_values,
)

import numc_ufuncs as nc

OF_EACH_KIND = 30
OF_LARGE_ONES = {12: 20, 16: 16, 24: 10, 32: 6, 48: 4, 64: 3}
# Gufuncs: NumPy's functions compute float32 as float64.
GUFUNCS = {"eigh": "eigh_lo", "eigvalsh": "eigvalsh_lo", "svd": "svd_f", "svdvals": "svd"}
# Before NumPy 2.1; qr_r_raw of matrices with no more rows than columns.
OLD_NAMES = {"svd_f": "svd_n_f", "svd": "svd_n", "qr_r_raw": "qr_r_raw_m"}
# Root mean square and maximum, next to LAPACK's.
MOST_RMS, MOST = 1.02, 1.3
# The largest error of a few large matrices depends on the processor, and on LAPACK's luck.
MOST_OF_LARGE_VALUES = 1.6


def lapacks(name):
    module = np.linalg._umath_linalg
    return getattr(module, name, None) or getattr(module, OLD_NAMES[name])


def root_mean_square(x):
    return np.sqrt(np.mean(x**2))


def compare(name, a, values, most=MOST):
    theirs = lapacks(GUFUNCS[name])
    ours = nc.parallel(theirs)
    lapack, kernels = (errors(name, gufunc(a), a, values) for gufunc in (theirs, ours))
    assert_at_most(kernels, lapack, most)


@pytest.mark.parametrize("n", [2, 3, 5, 8, 13])
@pytest.mark.parametrize("dtype", "dD")
def test_errors_of_qr_are_at_most_lapacks(dtype, n):
    a = difficult(np.random.default_rng([n, ord(dtype)]), dtype, OF_EACH_KIND, n, False)
    found = []
    for made in (lambda gufunc: gufunc, nc.parallel):
        h = a.copy()
        tau = made(lapacks("qr_r_raw"))(h)
        found.append(errors("qr", (made(lapacks("qr_reduced"))(h, tau), h), a, None))
    assert_at_most(found[1], found[0])


def assert_at_most(kernels, lapack, most=MOST):
    for what in lapack:
        rms = root_mean_square(kernels[what]) / root_mean_square(lapack[what])
        largest = np.max(kernels[what]) / np.max(lapack[what])
        assert rms <= MOST_RMS, f"{what}: root mean square {rms:.2f} times LAPACK's"
        assert largest <= most, f"{what}: up to {largest:.2f} times LAPACK's"


@pytest.mark.parametrize("n", [2, 3, 5, 8])
@pytest.mark.parametrize("dtype", "fdFD")
@pytest.mark.parametrize("name", GUFUNCS)
def test_errors_are_at_most_lapacks(name, dtype, n):
    rng = np.random.default_rng([n, ord(dtype)])
    is_eigen = name.startswith("eig")
    a = difficult(rng, dtype, OF_EACH_KIND, n, is_eigen)
    compare(name, a, (eigenvalues if is_eigen else singular_values)(a))


@pytest.mark.parametrize("n", OF_LARGE_ONES)
@pytest.mark.parametrize("dtype", "fdFD")
def test_errors_of_larger_matrices(dtype, n):
    a = difficult(np.random.default_rng([n, ord(dtype)]), dtype, OF_LARGE_ONES[n], n, True)
    values = refined_eigenvalues(a)
    compare("eigh", a, values)
    compare("eigvalsh", a, values, MOST_OF_LARGE_VALUES)


@pytest.mark.parametrize("n", [9, *OF_LARGE_ONES])
@pytest.mark.parametrize("dtype", "fdFD")
def test_errors_of_larger_svd(dtype, n):
    count = OF_LARGE_ONES.get(n, OF_EACH_KIND)
    a = difficult(np.random.default_rng([n, ord(dtype)]), dtype, count, n, False)
    values = refined_singular_values(a)
    compare("svd", a, values)
    if n <= 32:  # above, some instruction sets have no kernel, and LAPACK differs from itself
        compare("svdvals", a, values)
