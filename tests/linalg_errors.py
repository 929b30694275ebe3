"""How exact decompositions of stacks of matrices are, in long double: for test_linalg_errors.py."""

from itertools import combinations

import numpy as np
from linalg_cases import adjoint, wide_of


def random_numbers(rng, dtype, *shape):
    x = rng.uniform(-1, 1, shape)
    return x + 1j * rng.uniform(-1, 1, shape) if dtype in "FD" else x


def with_values(rng, dtype, values, hermitian):
    """Matrices that have these eigenvalues, or singular values."""
    shape = (*values.shape, values.shape[-1])
    left = np.linalg.qr(random_numbers(rng, dtype, *shape))[0]
    right = left if hermitian else np.linalg.qr(random_numbers(rng, dtype, *shape))[0]
    return (left * values[:, None, :]) @ adjoint(right)


def difficult(rng, dtype, count, n, hermitian):
    """A stack with so many matrices of each kind."""
    eps = float(np.finfo(dtype).eps)
    order = np.arange(n)
    every = np.ones((count, 1))
    scales = 10.0 ** rng.uniform(-4, 4, (count, n))
    falling = np.logspace(0, -6, n)

    def numbers(*shape):
        return random_numbers(rng, dtype, count, *shape)

    def spectrum(values):
        return with_values(rng, dtype, values, hermitian)

    tall = numbers(n, max(n - 1, 1))
    made = [
        numbers(n, n),  # plain
        spectrum(eps ** rng.uniform(0, 1.2, (count, n))),  # ill-conditioned
        spectrum(1 + rng.uniform(-1, 1, (count, n)) * eps**0.5),  # clustered
        spectrum(1 + rng.uniform(-1, 1, (count, n)) * eps * 10),  # within rounding errors
        spectrum(np.where(order < (n + 1) // 2, 1.0, -2.0) * every),  # repeated
        spectrum(np.where(order == 0, 1.0, eps) * every),  # one large
        numbers(n, n) * falling[:, None] * falling,  # graded
        numbers(n, n) * falling[::-1, None] * falling[::-1],  # graded backwards
        numbers(n, n) * scales[:, :, None] * scales[:, None, :],  # badly scaled
        numbers(n, n) * scales[:, None, :],  # columns scaled
        numbers(n, n) * 10.0 ** rng.integers(-18, 18, (count, 1, 1)),  # large and small
        numbers(n, 1) @ numbers(1, n),  # rank 1
        tall @ adjoint(tall if hermitian else numbers(n, max(n - 1, 1))),  # rank n - 1
        numbers(n, n)[..., order % max(n - 1, 1)],  # equal columns
        numbers(n, n) * 0,  # zero
        numbers(n, n) * np.eye(n),  # diagonal
        numbers(n, n) * ((order[:, None] < n // 2) == (order < n // 2)),  # blocks
    ]
    a = np.concatenate(made)
    return ((a + adjoint(a)) / 2 if hermitian else a).astype(dtype)


def rotated(a, p, q, x, difference):
    """`a` after the Jacobi rotation of columns p and q that takes off x."""
    size = np.abs(x)
    sign = np.where(difference < 0, -1, 1)
    reach = np.abs(difference) + np.sqrt(difference**2 + 4 * size**2)
    tangent = sign * 2 * size / np.where(reach > 0, reach, 1)
    cosine = (1 / np.sqrt(1 + tangent**2))[:, None]
    sine = cosine * (tangent * x / np.where(size > 0, size, 1))[:, None]
    left, right = a[..., p].copy(), a[..., q].copy()
    a[..., p] = cosine * left - sine.conj() * right
    a[..., q] = sine * left + cosine * right
    return a


def eigenvalues(a):
    """By Jacobi's method in long double."""
    a, n = wide_of(a).copy(), a.shape[-1]
    for _ in range(8):
        for p, q in combinations(range(n), 2):
            x, difference = a[:, p, q].copy(), (a[:, q, q] - a[:, p, p]).real
            a = adjoint(rotated(a, p, q, x, difference)).copy()
            a = adjoint(rotated(a, p, q, x, difference)).copy()
    return np.sort(np.diagonal(a, axis1=-2, axis2=-1).real, axis=-1)


def refined_eigenvalues(a):
    """Of larger matrices, which take Jacobi's method minutes. NumPy's vectors make them next to
    diagonal in long double. Where values are so close that vectors are any of theirs, their
    distances are found once more."""
    n = a.shape[-1]
    wide, v = wide_of(a), wide_of(np.linalg.eigh(a.astype("D" if a.dtype.kind == "c" else "d"))[1])
    v = v @ (1.5 * np.eye(n) - 0.5 * (adjoint(v) @ v))
    found = []
    for b in adjoint(v) @ (wide @ v):
        diagonal = np.diagonal(b).real
        order = np.argsort(diagonal)
        apart = np.diff(diagonal[order]) > 1e-9 * np.max(np.abs(diagonal))
        clusters = np.split(order, np.flatnonzero(apart) + 1)
        found.append(np.concatenate([values_next_to(b[np.ix_(c, c)]) for c in clusters]))
    return np.sort(np.array(found), axis=-1)


def values_next_to(b):
    """Eigenvalues that differ by less than rounding errors of double."""
    first = b[0, 0].real
    distances = b - first * np.eye(len(b))
    return first + np.linalg.eigvalsh(distances.astype("D" if b.dtype.kind == "c" else "d"))


def singular_values(a):
    """By one-sided Jacobi rotations in long double."""
    a, n = wide_of(a).copy(), a.shape[-1]
    for _ in range(10):
        for p, q in combinations(range(n), 2):
            x = (a[..., p].conj() * a[..., q]).sum(-1)
            squares = (np.abs(a) ** 2).sum(-2)
            a = rotated(a, p, q, x, squares[:, q] - squares[:, p])
    return -np.sort(-np.sqrt((np.abs(a) ** 2).sum(-2)), axis=-1)


def refined_singular_values(a):
    """As refined_eigenvalues()."""
    n = a.shape[-1]
    u, _, vh = np.linalg.svd(a.astype("D" if a.dtype.kind == "c" else "d"))
    u, v = (q @ (1.5 * np.eye(n) - 0.5 * (adjoint(q) @ q)) for q in map(wide_of, (u, adjoint(vh))))
    found = []
    for b in adjoint(u) @ (wide_of(a) @ v):
        diagonal = np.diagonal(b).real
        apart = np.diff(diagonal) < -1e-9 * diagonal[0]
        clusters = np.split(np.arange(n), np.flatnonzero(apart) + 1)
        blocks = [b[np.ix_(c, c)] for c in clusters]
        found.append(np.concatenate([close_singular_values(x, diagonal[0]) for x in blocks]))
    return -np.sort(-np.abs(np.array(found)), axis=-1)


def close_singular_values(b, largest):
    """Of a matrix that is next to a multiple of the identity: those of its Hermitian part, unless
    they are next to 0."""
    if b[0, 0].real <= 1e-6 * largest:
        return np.linalg.svd(b.astype("D" if b.dtype.kind == "c" else "d"))[1]
    return values_next_to((b + adjoint(b)) / 2)


def length(a):
    return np.sqrt((np.abs(a) ** 2).sum((-2, -1)))


def from_unit(q):
    return length(adjoint(q) @ q - np.eye(q.shape[-1]))


def errors_of_qr(results, a):
    q, r = map(wide_of, results)
    size = length(wide_of(a))
    return {
        "A - Q R": length(wide_of(a) - q @ np.triu(r)) / np.where(size > 0, size, 1),
        "Q": from_unit(q),
    }


def errors(name, results, a, values):
    """Of each matrix, by what is wrong, next to the largest of its exact values."""
    if name == "qr":
        return errors_of_qr(results, a)
    size = np.max(np.abs(values), axis=-1)
    size = np.where(size > 0, size, 1)
    wide = wide_of(a)
    if name == "eigh":
        w, v = map(wide_of, results)
        found = {"A V - V W": length(wide @ v - v * w[:, None, :]) / size, "V": from_unit(v)}
    elif name == "svd":
        u, w, vh = map(wide_of, results)
        found = {
            "A - U S V": length(wide - (u * w[:, None, :]) @ vh) / size,
            "U": from_unit(u),
            "V": from_unit(adjoint(vh)),
        }
    else:
        w, found = wide_of(results), {}
    return {**found, "values": np.max(np.abs(w - values), axis=-1) / size}
