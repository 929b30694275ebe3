"""Has NumPy patched when a program imports it: ``start`` waits for that import.

Called at the start of the interpreter, by the start-up file or the sitecustomize of
``python -m numc_ufuncs run``. Not in the package, because to import that is to import NumPy.
"""

import os
import sys


def start():
    """Wait for NumPy's import if ``NUMC_PATCH`` is set. May be called again."""
    if os.environ.get("NUMC_PATCH", "") in ("", "0"):
        return
    if "numpy" in sys.modules:
        _import_package()
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def report(error):
    """Say why the program runs unpatched. No warning: a filter would make it an exception."""
    if sys.stderr is not None:
        text = f"numc_ufuncs: NumPy is not patched: {type(error).__name__}: {error}"
        print(text, file=sys.stderr, flush=True)


def _import_package():
    # If it is being imported already, by the program, it patches NumPy at its end, too.
    if "numc_ufuncs" not in sys.modules:
        try:
            import numc_ufuncs  # noqa: F401
        except Exception as error:
            report(error)


class _Finder:
    """Lets the finders after it find NumPy, and adds a step to what their loader does."""

    def find_spec(self, name, path=None, target=None):
        if name != "numpy":
            return None
        finders = list(sys.meta_path)
        if self not in finders:  # another thread has imported NumPy meanwhile
            return None
        for finder in finders[finders.index(self) + 1 :]:
            find_spec = getattr(finder, "find_spec", None)  # finders of old have none
            spec = find_spec(name, path, target) if find_spec else None
            if spec is not None:
                self._extend(spec.loader)
                return spec
        return None

    def _extend(self, loader):
        """Shadow a method of the loader, once: nobody sees another loader than without us."""

        def exec_module(module):
            if module.__name__ != "numpy":  # a loader of several modules
                return execute(module)
            attributes.pop("exec_module", None)
            execute(module)  # if it fails, the program may try again: stay
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            _import_package()

        try:
            attributes, execute = vars(loader), loader.exec_module
            attributes["exec_module"] = exec_module
        except (AttributeError, TypeError) as error:  # no loader; without a __dict__; a class
            sys.meta_path.remove(self)
            report(error)
