"""What the two functions return, refuse, and keep."""

import gc
import importlib.util
import sys
import weakref

import pytest
import smallest


def fresh():
    """The module once more, with a state of its own."""
    spec = importlib.util.spec_from_file_location("smallest", smallest.__file__)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_hello():
    assert smallest.hello() == "Hello, world!"
    assert smallest.hello("Ada 🙂") == "Hello, Ada 🙂!"


@pytest.mark.parametrize("arguments", [(b"Ada",), (None,), ("Ada", "Eve")])
def test_hello_refuses(arguments):
    with pytest.raises(TypeError, match=r"hello\(\)"):
        smallest.hello(*arguments)


@pytest.mark.parametrize(("n", "number"), [(0, 0), (1, 1), (2, 1), (10, 55), (True, 1)])
def test_fibonacci(n, number):
    assert smallest.fibonacci(n) == number


def test_numbers_that_fill_no_int64():
    assert smallest.fibonacci(100) == 354224848179261915075
    assert (
        smallest.fibonacci(10000) == smallest.fibonacci(9999) + smallest.fibonacci(9998) > 2**6900
    )


@pytest.mark.parametrize("n", [-1, 10001, 2**100, -(2**100)])
def test_fibonacci_refuses_values(n):
    with pytest.raises(ValueError, match=r"fibonacci\(\): n is .*, not 0 to 10000|cannot fit"):
        smallest.fibonacci(n)


@pytest.mark.parametrize("n", [1.0, "1", None, [1]])
def test_fibonacci_refuses_types(n):
    with pytest.raises(TypeError, match="integer"):
        smallest.fibonacci(n)


def test_numbers_are_kept():
    assert smallest.fibonacci(500) is smallest.fibonacci(500)


def test_each_module_has_its_memo():
    assert fresh().fibonacci(600) is not smallest.fibonacci(600)


def test_no_reference_is_lost():
    module = fresh()
    number = module.fibonacci(700)
    before = sys.getrefcount(number)
    for _ in range(100):
        module.fibonacci(700)
    assert sys.getrefcount(number) == before
    gone = weakref.ref(module)
    del module
    gc.collect()  # the module refers to its functions, and they to it
    assert gone() is None
    assert sys.getrefcount(number) == before - 1  # the memo is gone as well
    other = number + 1
    assert sys.getrefcount(number) == sys.getrefcount(other)
