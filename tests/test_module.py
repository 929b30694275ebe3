"""The extension module: how it is built, imports that are repeated, and other interpreters."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import numc_ufuncs as nc


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


IMPORT_AGAIN = """
import os, sys
import numpy as np
{count_handlers}
import numc_ufuncs as nc
a = np.arange(200_000.0).reshape(400, 500)
def compute(module):
    assert np.array_equal(module.add(a, a), a + a)
    assert np.allclose(module.matvec(a, a[0]), a @ a[0])
    assert np.allclose(module.vecmat(a[:, 0], a), a[:, 0] @ a)
    assert np.array_equal(module.add.reduce(a), a.sum(0))
with nc.config(threads=2):
    compute(nc) # the pool has a handler from its first call on
first, handlers = nc, count()
with nc.config(threads=3):
    for _ in range(3):
        for name in [name for name in sys.modules if name.startswith("numc_ufuncs")]:
            del sys.modules[name]
        import numc_ufuncs as nc
        assert nc is not first and nc.add is not first.add
        assert nc.get_config()["threads"] == 3
nc.set_config(threads=2)
assert first.get_config() == nc.get_config()
for module in (first, nc):
    compute(module)
assert count() == handlers, "handlers of fork were installed again"
pid = os.fork()
if pid == 0:
    os._exit(0 if np.array_equal(nc.add(a, a), a + a) else 1)
assert os.waitpid(pid, 0)[1] == 0
"""

# A library in front of glibc's counts them.
COUNT_HANDLERS = """
import ctypes
library = ctypes.CDLL(None)
count = lambda: ctypes.c_int.in_dll(library, "fork_handlers").value
"""

COUNTING_LIBRARY = """
#include <dlfcn.h>
int fork_handlers;
typedef void handler(void);
int __register_atfork(handler *before, handler *in_parent, handler *in_child, void *object)
{
    fork_handlers++;
    int (*next)(handler *, handler *, handler *, void *) = dlsym(RTLD_NEXT, "__register_atfork");
    return next(before, in_parent, in_child, object);
}
"""


def test_copies_are_inline():
    """Of fortified ones, each element of a loop would be a call."""
    assert b"__memcpy_chk" not in Path(nc._core.__file__).read_bytes()


def test_import_again():
    run(IMPORT_AGAIN.format(count_handlers="count = lambda: 0"))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler")
def test_fork_handlers_are_installed_once(tmp_path, monkeypatch):
    source, library = tmp_path / "count.c", tmp_path / "count.so"
    source.write_text(COUNTING_LIBRARY)
    command = ["cc", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, source, "-ldl"]
    subprocess.run(command, check=True)
    # Behind a sanitizer's library, which must come first.
    monkeypatch.setenv("LD_PRELOAD", f"{os.environ.get('LD_PRELOAD', '')} {library}".strip())
    run(IMPORT_AGAIN.format(count_handlers=COUNT_HANDLERS) + "assert handlers > 0")


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = '''
import importlib.machinery, importlib.util
found = importlib.machinery.PathFinder.find_spec("_core", {path!r})
loader = importlib.machinery.ExtensionFileLoader("numc_ufuncs._core", found.origin)
spec = importlib.util.spec_from_loader("numc_ufuncs._core", loader)
try:
    loader.exec_module(importlib.util.module_from_spec(spec))
except ImportError as error:
    assert "numc_ufuncs" in str(error) and "subinterpreter" in str(error), error
else:
    raise AssertionError("it was imported")
'''
interpreter = interpreters.create({options})
result = interpreters.run_string(interpreter, code)
interpreters.destroy(interpreter)
assert result is None, result
"""


@pytest.mark.parametrize("isolated", [True, False])
def test_subinterpreters_are_refused(isolated):
    """In words of ours, before anything of NumPy is needed there."""
    legacy = "'legacy'" if sys.version_info >= (3, 13) else "isolated=False"
    run(SUBINTERPRETER.format(options="" if isolated else legacy, path=list(nc.__path__)))
