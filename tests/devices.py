"""What the tests of matmul on a device share."""

import json
import os
import subprocess
import sys

import numpy as np

import numc_ufuncs as nc

DTYPES = "?bBhHiIlLqQefdFD"
FLOATS = "efdFD"


def operand(rng, shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.1
    if dtype.kind in "iu":
        return np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), dtype).reshape(shape)
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def exact(a, b):
    """The product, in the widest type; integers modulo 2**n."""
    if a.dtype.kind == "b":
        return a.astype(int) @ b.astype(int) > 0
    if a.dtype.kind in "iu":
        with nc.config(device="cpu"):
            return np.matmul(a, b)
    return a.astype("G" if a.dtype.kind == "c" else "g") @ b.astype("G")


def assert_right(result, a, b):
    expected = exact(a, b)
    assert result.dtype == a.dtype and result.shape == expected.shape
    if a.dtype.kind in "biu":
        assert (result == expected).all()
        return
    eps = np.finfo(np.float32 if a.dtype.char == "e" else a.dtype).eps
    magnitude = np.abs(a).astype("d") @ np.abs(b).astype("d")
    allowed = 4 * eps * np.sqrt(a.shape[-1]) * magnitude
    if a.dtype.char == "e":
        allowed = allowed + np.finfo(a.dtype).eps * np.abs(expected)
    assert (np.abs(result - expected) <= allowed).all()


def on_device():
    return nc.last_call()["device"] != "cpu"


def run(code, **environment):
    """What a new process prints, as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
