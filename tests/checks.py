"""What several test files assert."""

import gc
import os
import signal
import sys
import threading

import numpy as np

# In which every op but float products works; on aarch64 the least that a thread may have.
STACK_BYTES = max(65536, os.sysconf("SC_THREAD_STACK_MIN"))


def assert_same(ours, theirs):
    """Of one type, dtype, shape and memory order, with equal elements."""
    assert type(ours) is type(theirs) and ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape and ours.strides == theirs.strides
    np.testing.assert_array_equal(ours, theirs)


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_references_stay(calls, watched):
    """However often `calls` runs, nobody keeps or loses references to the objects."""

    def counts():
        gc.collect()
        return [sys.getrefcount(x) for x in watched]

    calls()
    before = counts()
    for _ in range(50):
        calls()
    assert all(abs(x - y) < 10 for x, y in zip(before, counts(), strict=True))


def in_threads(count, function):
    """Call `function` with the number of the thread, in so many threads at once."""
    threads = [threading.Thread(target=function, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def status_of_child(work):
    """How a forked child ends that does this: 0 if it is true."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs fails
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]


def in_thread_of_small_stack(function):
    """What `function` yields or returns in a thread of STACK_BYTES of stack, as a list."""
    found = []
    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=lambda: found.extend(function()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    return found


def layouts(array):
    """The same elements in other places, or of other types, by what is peculiar about them."""
    padded = np.zeros([2 * n for n in array.shape], array.dtype)
    strided = padded[tuple(slice(None, None, 2) for _ in array.shape)]
    strided[...] = array
    unaligned = np.ndarray(array.shape, array.dtype, np.zeros(array.nbytes + 1, np.uint8), 1)
    unaligned[...] = array
    fixed = array.copy()
    fixed.flags.writeable = False
    return {
        "strided": strided,
        "reversed": np.flip(np.flip(array).copy()),
        "Fortran": np.asfortranarray(array),
        "unaligned": unaligned,
        "swapped bytes": array.astype(array.dtype.newbyteorder()),
        "read-only": fixed,
        "one item for all": np.broadcast_to(array[:1], array.shape),
        "float32": array.astype(np.float32),
        "integers": array.astype(int),
        "objects": array.astype(object),
        "list": array.tolist(),
        "subclass": array.view(np.matrix if array.ndim == 2 else np.ma.MaskedArray),
    }
