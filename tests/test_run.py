"""Unchanged programs: `run`, the start-up file, IPython. What differs from Python is the patch."""

import json
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import types
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import numc_ufuncs as nc
from numc_ufuncs import __main__ as command_line
from numc_ufuncs import _run, _startup_file

PACKAGE = Path(nc.__file__).parent
# Of the environment of these tests, what would decide instead of `run`.
VARIABLES = ("NUMC_PATCH", "NUMC_MEMORY", "OPENBLAS_THREAD_TIMEOUT", "NUMC_NUM_THREADS")
# Does not import numc_ufuncs itself.
IS_PATCHED = """
def is_patched():
    import sys, numpy
    return "numc_ufuncs" in sys.modules and sys.modules["numc_ufuncs"].is_patched()
"""
PRINT_PATCHED = IS_PATCHED + "print(is_patched())"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def python(*arguments, executable=sys.executable, **options):
    options = {"capture_output": True, "text": True, "timeout": 100, **options}
    return subprocess.run([executable, *map(str, arguments)], **options)


def run(*arguments, before=(), **options):
    return python(*before, "-m", "numc_ufuncs", "run", "--quiet", *arguments, **options)


def printed(done):
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.strip()


def with_path(*folders):
    """The environment with folders at the front of PYTHONPATH."""
    paths = [*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


DESCRIPTION = """
import os, pickle, sys
import {before_numpy}
main = sys.modules["__main__"]
class Pickled: pass
assert type(pickle.loads(pickle.dumps(Pickled()))) is Pickled
print(__name__, __package__, globals().get("__file__"), main.__dict__ is globals())
print(__spec__ and (__spec__.name, __spec__.origin, __spec__.parent))
print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions, sys.orig_argv[0])
print(sys.modules.get("sitecustomize"), os.getcwd(), __doc__, sys.stdin.read())
"""
WITHOUT_NUMPY = DESCRIPTION.format(before_numpy="re")
ENDINGS = {
    "exits with 7": "sys.exit(7)",
    "exits with text": "sys.exit('text')",
    "raises": "def f():\n    raise ValueError('mine')\nf()",
    "is killed": f"os.kill(os.getpid(), {signal.SIGKILL:d})",
    "is interrupted": "raise KeyboardInterrupt",
    "ends": "",
}


class TestIsPython:
    """Output, exit status and traceback of a program are those without us."""

    def check(self, *arguments, before=(), **options):
        expected = python(*before, *arguments, **options)
        found = run(*arguments, before=before, **options)
        assert found.stdout == expected.stdout
        assert found.stderr == expected.stderr
        assert found.returncode == expected.returncode
        return expected

    @pytest.mark.parametrize("ending", ENDINGS)
    def test_script(self, ending, tmp_path):
        (tmp_path / "script.py").write_text(WITHOUT_NUMPY + ENDINGS[ending])
        done = self.check(tmp_path / "script.py", "a", "--threads", "9", "-m", input="text")
        assert (done.returncode == 0) == (ending == "ends")

    def test_script_with_the_name_of_an_option(self, tmp_path):
        (tmp_path / "--threads").write_text(WITHOUT_NUMPY)
        assert self.check("--", "--threads", "x", cwd=tmp_path, input="").returncode == 0

    def test_after_numpy(self, tmp_path):
        (tmp_path / "script.py").write_text(DESCRIPTION.format(before_numpy="numpy"))
        assert "script.py" in self.check("script.py", cwd=tmp_path, input="").stdout

    @pytest.mark.parametrize("form", [["-m", "package.tool"], ["-mpackage"]])
    def test_module(self, form, tmp_path):
        package = tmp_path / "package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        for name in ("__main__.py", "tool.py"):
            (package / name).write_text(WITHOUT_NUMPY)
        done = self.check(*form, "-x", "y", cwd=tmp_path, input="")
        assert "-x" in done.stdout

    @pytest.mark.parametrize("missing", [["nowhere.py"], ["-m", "nowhere"], ["-c"]])
    def test_missing(self, missing, tmp_path):
        assert self.check(*missing, cwd=tmp_path).returncode

    def test_code(self):
        assert "'-c', '--help'" in self.check("-c", WITHOUT_NUMPY, "--help", input="").stdout
        self.check("-c" + WITHOUT_NUMPY + "1/0", input="")

    @pytest.mark.parametrize("arguments", [[], ["-"], ["-", "x"]])
    def test_stdin(self, arguments):
        assert "['" in self.check(*arguments, input="import sys\nprint(sys.argv)\n").stdout

    def test_session(self):
        lines = "import sys\nx = 4\nx * 10 + 2\nx + y\nsys.argv\n"
        done = self.check(before=["-i", "-q"], input=lines)
        assert "42" in done.stdout and "NameError" in done.stderr

    def test_session_after_a_script(self, tmp_path):
        (tmp_path / "script.py").write_text("x = 5")
        done = self.check(tmp_path / "script.py", before=["-iq"], input="x + 1\n")
        assert "6" in done.stdout

    def test_folder_and_zip(self, tmp_path):
        (tmp_path / "__main__.py").write_text(WITHOUT_NUMPY)
        with zipfile.ZipFile(tmp_path / "program.zip", "w") as archive:
            archive.write(tmp_path / "__main__.py", "__main__.py")
        assert "__main__" in self.check(tmp_path, input="").stdout
        assert "program.zip" in self.check(tmp_path / "program.zip", "x", input="").stdout

    @pytest.mark.parametrize(
        "options", [["-u"], ["-W", "error", "-X", "dev"], ["-OO", "-b"], ["-sB"], ["-Xutf8=0"]]
    )
    def test_options_of_python(self, options):
        self.check("-c", WITHOUT_NUMPY, before=options, input="")

    @pytest.mark.parametrize("form", ["-m numc_ufuncs", "-OBm numc_ufuncs", "-OBmnumc_ufuncs"])
    def test_other_ways_to_write_it(self, form):
        code = "import sys; print(sys.argv, sys.flags, sys.orig_argv[1:])"
        found = python(*form.split(), "run", "--quiet", "-c", code)
        expected = python(*(["-OB"] if "-OB" in form else []), "-c", code)
        assert printed(found) == printed(expected)

    def test_the_folder_with_sitecustomize_is_not_on_the_path(self):
        code = "import sys; print([x for x in sys.path if 'startup' in x])"
        assert printed(run("-c", code)) == "[]"


class TestPatch:
    def test_is_patched(self, tmp_path):
        (tmp_path / "script.py").write_text(PRINT_PATCHED)
        assert printed(python(tmp_path / "script.py")) == "False"
        assert printed(run(tmp_path / "script.py")) == "True"
        assert printed(run("-c", PRINT_PATCHED)) == "True"
        assert printed(run(input=PRINT_PATCHED)) == "True"

    def test_memory(self):
        code = "import numc_ufuncs; print(numc_ufuncs.get_config()['memory'])"
        assert printed(run("-c", code)) == "cached"
        assert printed(run("--memory", "system", "-c", code)) == "system"
        bad = python("-c", code, env={**os.environ, "NUMC_MEMORY": "much"})
        assert bad.stdout == "system\n" and "NUMC_MEMORY: memory must be one of" in bad.stderr

    def test_in_a_launcher(self):
        """Where the package has been imported before the command line is read."""
        code = "import runpy; runpy.run_module('numc_ufuncs', run_name='__main__')"
        assert printed(python("-c", code, "run", "--quiet", "-c", PRINT_PATCHED)) == "True"

    @pytest.mark.parametrize(
        "code",
        [
            "import numc_ufuncs",
            "import numpy.linalg",
            "from numpy import add",
            "import importlib.util; assert importlib.util.find_spec('numpy')",
            "import threading; t = threading.Thread(target=__import__, args=('numpy',))\n"
            "t.start(); t.join()",
            "import ctypes\nimport_ = ctypes.pythonapi.PyImport_ImportModule\n"
            "import_.restype = ctypes.py_object; import_(b'numpy')",
            "import sys; class_ = type('Old', (), {'find_module': lambda self, *args: None})\n"
            "sys.meta_path.insert(1, class_())",
            "import sys; import numc_ufuncs_startup; numc_ufuncs_startup.start()",
        ],
    )
    def test_ways_to_numpy(self, code):
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_lazy_import(self):
        code = """
import importlib.util, sys
spec = importlib.util.find_spec("numpy")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules["numpy"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert "numc_ufuncs" not in sys.modules
module.ones
"""
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_many_threads_import_at_once(self):
        code = """
import threading
barrier, seen = threading.Barrier(8), []
def work(name):
    barrier.wait()
    __import__(name)
    seen.append(name)
threads = [threading.Thread(target=work, args=(name,)) for name in ["numpy", "numc_ufuncs"] * 4]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(seen) == 8
"""
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_start_may_be_called_again(self):
        """Python 3.15 calls entry points twice in a virtual environment."""
        code = """
import numc_ufuncs_startup, sys
numc_ufuncs_startup.start()
print(*(type(finder).__module__ for finder in sys.meta_path if not isinstance(finder, type)))
"""
        assert printed(run("-c", code)).count("numc_ufuncs_startup") == 1

    def test_a_loader_of_several_modules(self):
        code = """
import importlib.machinery, sys
class Finder:
    loaders = {}
    def find_spec(self, name, path, target):
        if name in ("numpy", "colorsys"):
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            self.loaders[name], spec.loader = spec.loader, self
            return spec
    def create_module(self, spec): pass
    def exec_module(self, module): self.loaders[module.__name__].exec_module(module)
finder = Finder()
sys.meta_path.insert(1, finder)
sys.meta_path[0].find_spec("numpy")
import colorsys
assert "numc_ufuncs" not in sys.modules
import numpy
assert not vars(finder)
"""
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_after_another_thread_imported_numpy(self):
        code = """
import sys
finder = sys.meta_path[0]
import numpy
assert finder not in sys.meta_path and finder.find_spec("numpy") is None
"""
        assert printed(run("-c", code)) == ""

    def test_leaves_no_trace(self):
        code = """
import sys, numpy
print([x for x in sys.meta_path if "numc" in type(x).__module__], sorted(vars(numpy.__loader__)))
"""
        assert printed(run("-c", code)) == printed(python("-c", code))

    def test_without_numpy_nothing_is_loaded(self):
        code = "import sys, json; print([x for x in sys.modules if x.split('.')[0] in {!r}])"
        code = code.format(["numpy", "numc_ufuncs"])
        assert printed(run("-c", code)) == "[]"

    @pytest.mark.parametrize("off", ["", "0"])
    def test_a_program_can_turn_it_off(self, off):
        code = f"import os; os.environ['NUMC_PATCH'] = {off!r}\n" + PRINT_PATCHED
        assert printed(run("-c", code)) == "False"

    def test_numpy_is_there_already(self):
        """As another start-up file may have imported it."""
        code = "import os, numpy, numc_ufuncs_startup; os.environ['NUMC_PATCH'] = '1'\n"
        code += "numc_ufuncs_startup.start()\n"
        assert printed(python("-c", code + PRINT_PATCHED)) == "True"

    def test_importing_the_package_is_enough(self, monkeypatch):
        code = "import numc_ufuncs; print(numc_ufuncs.is_patched())"
        assert printed(python("-c", code)) == "False"
        monkeypatch.setenv("NUMC_PATCH", "1")
        assert printed(python("-c", code)) == "True"


class TestFailures:
    """A program runs, whatever is wrong with us."""

    def unpatched(self, done):
        assert done.returncode == 0 and done.stdout == "False\n", done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("numc_ufuncs: NumPy is not patched: "), done.stderr
        return done.stderr

    @pytest.mark.parametrize("error", ["ImportError('broken')", "RuntimeError('broken')"])
    @pytest.mark.parametrize("options", [[], ["-W", "error"]])
    def test_import_fails(self, error, options, tmp_path):
        (tmp_path / "numc_ufuncs.py").write_text(f"raise {error}")
        (tmp_path / "script.py").write_text(PRINT_PATCHED)
        text = self.unpatched(run(tmp_path / "script.py", before=options))
        assert "broken" in text and error.split("(")[0] in text

    def test_no_compiled_part(self, tmp_path):
        """Also `run` itself works then."""
        shutil.copytree(PACKAGE, tmp_path / "numc_ufuncs", ignore=shutil.ignore_patterns("_core*"))
        shutil.copy(PACKAGE.parent / "numc_ufuncs_startup.py", tmp_path)
        text = self.unpatched(run("-c", PRINT_PATCHED, env=with_path(tmp_path)))
        assert "has no compiled part" in text

    def test_no_startup_module(self):
        """The folder of our sitecustomize alone is left on the path."""
        code = "import site, sys; sys.modules['numc_ufuncs_startup'] = None; site.main()\n"
        environment = {**with_path(_run.STARTUP_FOLDER), "NUMC_PATCH": "1"}
        done = python("-S", "-c", code + PRINT_PATCHED, env=environment)
        assert "numc_ufuncs_startup" in self.unpatched(done)

    def test_patch_fails(self, monkeypatch):
        def fail(names=None):
            raise RuntimeError("not this NumPy")

        monkeypatch.setattr(nc._patch, "patch_numpy", fail)
        assert _run.environment_problems() == []
        monkeypatch.setenv("NUMC_PATCH", "1")
        assert _run.environment_problems() == ["NumPy is not patched: RuntimeError: not this NumPy"]

    def test_numpy_is_missing_at_first(self):
        code = f"""
import sys
paths, folders = sys.path[:], {[str(Path(np.__file__).parent.parent), str(PACKAGE.parent)]}
sys.path[:] = [path for path in paths if path not in folders]
try:
    import numpy
except ModuleNotFoundError as error:
    assert error.name == "numpy" and not error.__context__
else:
    raise AssertionError
sys.path[:] = paths
"""
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_numpy_fails_at_first(self, tmp_path):
        (tmp_path / "numpy.py").write_text("raise OSError('broken NumPy')")
        code = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
try:
    import numpy
except OSError as error:
    assert str(error) == "broken NumPy" and not error.__context__
else:
    raise AssertionError
del sys.path[0]
"""
        assert printed(run("-c", code + PRINT_PATCHED)) == "True"

    def test_a_loader_that_cannot_be_extended(self):
        code = """
import importlib.machinery, importlib.util, sys
class Loader:
    __slots__ = "loader",
    def __init__(self, loader): self.loader = loader
    def create_module(self, spec): pass
    def exec_module(self, module): self.loader.exec_module(module)
class Finder:
    def find_spec(self, name, path, target):
        if name == "numpy":
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            spec.loader = Loader(spec.loader)
            return spec
sys.meta_path.insert(1, Finder())
"""
        self.unpatched(run("-c", code + PRINT_PATCHED))

    @pytest.mark.parametrize(
        "arguments", [["--nonsense"], ["-x"], ["--threads", "0"], ["-X", "dev"]]
    )
    def test_bad_options(self, arguments):
        done = run(*arguments, "-c", "print(1)")
        assert done.returncode == 2 and done.stdout == "" and "usage: " in done.stderr

    def test_help(self):
        done = python("-m", "numc_ufuncs", "run", "--help")
        assert "--threads N" in printed(done) == printed(python("-m", "numc_ufuncs", "run", "-h"))


CHILDREN = (
    IS_PATCHED
    + """
import concurrent.futures, multiprocessing, sys
class Mine:
    def __init__(self): self.patched = is_patched()
def work(_): return Mine()
if __name__ == "__main__":
    if "numpy first" in sys.argv:
        import numpy
    context = multiprocessing.get_context(sys.argv[1])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        print(*(x.patched for x in pool.map(work, range(2))))
"""
)


class TestChildren:
    @pytest.mark.parametrize("first", ["numpy first", "numpy last"])
    @pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
    def test_pool(self, method, first, tmp_path):
        (tmp_path / "script.py").write_text(CHILDREN)
        options = ["-W", "ignore::DeprecationWarning"]  # fork with threads
        arguments = (tmp_path / "script.py", method, first)
        assert printed(run(*arguments, before=options)) == "True True"
        assert printed(python(*options, *arguments)) == "False False"

    @pytest.mark.parametrize(("options", "patched"), [([], True), (["-I"], False), (["-S"], False)])
    def test_subprocess(self, options, patched):
        # Which is not told of PYTHONPATH.
        paths = f"import sys; sys.path[:] = {sys.path!r}\n"
        child = ["-c", paths + PRINT_PATCHED]
        code = f"import subprocess, sys; subprocess.run([sys.executable, *{[*options, *child]}])"
        assert printed(run("-c", code)) == str(patched)

    def test_another_python(self, monkeypatch):
        """Other versions read our sitecustomize, too: nothing is done, and nothing said."""
        monkeypatch.setenv("NUMC_PATCH", "1")
        version = "import sys; sys.version_info = (3, 9, 0)"
        code = f"{version}; import site; site.main(); print(sys.path, sys.meta_path, sys.modules)"
        found = printed(python("-S", "-c", code, env=with_path(_run.STARTUP_FOLDER)))
        assert "_startup" not in found  # off the path, and not loaded


class TestSitecustomize:
    """The user's own has its place."""

    @pytest.mark.parametrize("end", ["", "1/0", "raise ImportError('mine')", "import nowhere"])
    def test_chain(self, end, tmp_path):
        (tmp_path / "sitecustomize.py").write_text(f"import sys; print('user', sys.path)\n{end}")
        code = "import sys; print(sys.modules.get('sitecustomize'), sys.path)"
        expected = python("-c", code, env=with_path(tmp_path))
        done = run("-c", code + PRINT_PATCHED, env=with_path(tmp_path))
        # `run` is a program under the user's, too.
        assert done.stdout.count("user") == 2 and expected.stdout.count("user") == 1
        assert done.stdout.endswith(expected.stdout + "True\n")
        assert done.stderr.endswith(expected.stderr)

    def test_that_imports_numpy(self, tmp_path):
        (tmp_path / "sitecustomize.py").write_text("import numpy")
        assert printed(run("-c", PRINT_PATCHED, env=with_path(tmp_path))) == "True"

    def test_import_by_the_program(self):
        done = run("-c", "import sitecustomize")
        assert done.stderr == python("-c", "import sitecustomize").stderr


class TestSettings:
    def said(self, *arguments, **options):
        done = python("-m", "numc_ufuncs", "run", *arguments, **options)
        assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("numc_ufuncs: set ")
        return done.stderr.removeprefix("numc_ufuncs: set ").split(), done.stdout.strip()

    CODE = (
        "import os; print(*(f'{x}={os.environ.get(x)}' for x in ('NUMC_PATCH', 'PYTHONPATH', "
        "'NUMC_NUM_THREADS', 'NUMC_MEMORY', 'OPENBLAS_THREAD_TIMEOUT')))"
    )

    def test_says_what_is_set(self):
        words, found = self.said("--threads", "1", "-c", self.CODE)
        assert words == found.split()
        assert "NUMC_NUM_THREADS=1" in words and "NUMC_MEMORY=cached" in words
        assert "OPENBLAS_THREAD_TIMEOUT=4" in words

    def test_the_users_settings_stay(self, monkeypatch):
        monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "20")
        monkeypatch.setenv("NUMC_NUM_THREADS", "3")
        monkeypatch.setenv("NUMC_MEMORY", "system")
        words, found = self.said("-c", self.CODE)
        assert [word.split("=")[0] for word in words] == ["NUMC_PATCH", "PYTHONPATH"]
        assert found.endswith("NUMC_NUM_THREADS=3 NUMC_MEMORY=system OPENBLAS_THREAD_TIMEOUT=20")

    def test_run_within_run(self):
        _, once = self.said("-c", self.CODE)
        _, twice = self.said("-m", "numc_ufuncs", "run", "--quiet", "-c", self.CODE)
        assert once == twice

    def test_python_path(self):
        ours = _run.STARTUP_FOLDER
        options = _run._parser().parse_args([])
        for before, after in ((None, ours), ("", ours), ("/a::/b", f"{ours}:/a::/b"), (ours, ours)):
            environment = {} if before is None else {"PYTHONPATH": before}
            assert _run.settings(environment, options)["PYTHONPATH"] == after

    @pytest.mark.parametrize("option", ["--threads 1", "--threads=1"])
    def test_threads(self, option):
        code = "import numpy, sys; print(sys.modules['numc_ufuncs'].info()['threads'])"
        assert printed(run(*option.split(), "-c", code)) == "1"


class Environment:
    """A Python of its own that finds NumPy and this package, without variables."""

    def __init__(self, folder, **options):
        venv.create(folder / "venv", **options)
        self.executable = folder / "venv" / "bin" / "python"
        self.variables = {
            **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            "PYTHONUSERBASE": str(folder / "user"),
        }
        purelib = "import sysconfig; print(sysconfig.get_path('purelib'))"
        self.folder = Path(printed(self("-c", purelib)))
        paths = dict.fromkeys([Path(np.__file__).parent.parent, PACKAGE.parent])
        (self.folder / "a-paths.pth").write_text("\n".join(map(str, paths)))  # read before ours

    def __call__(self, *arguments, **variables):
        environment = {**self.variables, **variables}
        return python(*arguments, executable=self.executable, env=environment)

    def command(self, *arguments):
        return self("-m", "numc_ufuncs", *arguments)


class TestStartupFile:
    def test_install_and_remove(self, tmp_path):
        own = Environment(tmp_path)
        files = [own.folder / name for name in _startup_file.FILES]
        assert printed(own("-c", PRINT_PATCHED, NUMC_PATCH="1")) == "False"
        for _ in range(2):
            said = printed(own.command("install-startup"))
            assert all(str(file) in said and file.is_file() for file in files)
        assert f"startup        {files[0]}\n" in printed(own.command("info")) + "\n"

        assert printed(own("-c", PRINT_PATCHED, NUMC_PATCH="1")) == "True"
        assert printed(own("-I", "-c", PRINT_PATCHED, NUMC_PATCH="1")) == "True"
        assert printed(own("-c", PRINT_PATCHED)) == "False"
        loaded = "import sys; print([x for x in sys.modules if x.startswith('numc')])"
        assert "'numc_ufuncs'" not in printed(own("-c", "import numpy;" + loaded, NUMC_PATCH="0"))
        assert printed(own("-c", loaded)) == "[]"
        assert printed(own("-c", loaded, NUMC_PATCH="1")) == "['numc_ufuncs_startup']"
        assert printed(own.command("run", "--quiet", "-c", PRINT_PATCHED)) == "True"
        (tmp_path / "script.py").write_text(CHILDREN)
        done = own(tmp_path / "script.py", "spawn", NUMC_PATCH="1")
        assert printed(done) == "True True"

        said = printed(own.command("remove-startup"))
        assert all(str(file) in said and not file.exists() for file in files)
        assert printed(own.command("remove-startup")) == "there is no start-up file"
        assert "startup        none\n" in printed(own.command("info")) + "\n"

    def test_of_the_user(self, tmp_path):
        own = Environment(tmp_path, system_site_packages=True)
        printed(own.command("install-startup", "--user"))
        assert not any((own.folder / name).exists() for name in _startup_file.FILES)
        assert str(tmp_path / "user") in printed(own.command("info"))
        said = printed(own.command("remove-startup"))
        assert said.count(str(tmp_path / "user")) == 2

    def test_run_is_refused_where_it_cannot_work(self, tmp_path):
        own = Environment(tmp_path)
        for option in ("-I", "-E"):
            done = own(option, "-m", "numc_ufuncs", "run", "-c", "print(1)")
            assert done.returncode == 2 and done.stdout == ""
            assert "install-startup" in done.stderr
        done = own.command("install-startup", "--user")
        assert done.returncode == 2 and "no folder of the user" in done.stderr

    def test_entry_point(self):
        """As Python 3.15 reads the second file."""
        (line,) = _startup_file.FILES["numc_ufuncs-startup.start"].splitlines()
        import numc_ufuncs_startup

        assert pkgutil.resolve_name(line) is numc_ufuncs_startup.start

    def test_cannot_be_written(self, tmp_path, monkeypatch, capsys):
        (tmp_path / "file").write_text("")
        folders = [tmp_path / "file" / "below", tmp_path]
        monkeypatch.setattr(_startup_file, "_folders", lambda: folders)
        assert command_line.main(["install-startup"]) == 2
        text = capsys.readouterr().err
        assert f"cannot write into {folders[0]}: Not a directory; --user" in text
        assert _startup_file.find() is None and _startup_file.remove()
        (tmp_path / next(iter(_startup_file.FILES))).mkdir()
        assert command_line.main(["remove-startup"]) == 2
        assert "cannot remove" in capsys.readouterr().err


class Shell:
    """What the extension needs of an IPython shell."""

    def __init__(self):
        self.magics_manager = types.SimpleNamespace(magics={"cell": {}})

    def register_magic_function(self, function, kind, name):
        self.magics_manager.magics[kind][name] = function

    def run_cell(self, cell):
        exec(cell, {"np": np})


class TestIPython:
    def test_functions(self, capsys):
        shell = Shell()
        nc.load_ipython_extension(shell)
        assert nc.is_patched()
        shell.magics_manager.magics["cell"]["numc_profile"]("", "np.add(np.ones(9), 1)")
        assert capsys.readouterr().out.startswith("1 calls took")
        nc.unload_ipython_extension(shell)
        assert not nc.is_patched() and shell.magics_manager.magics == {"cell": {}}

    def test_magic(self, tmp_path):
        pytest.importorskip("IPython")
        lines = """
import numc_ufuncs
print(numc_ufuncs.is_patched())
%load_ext numc_ufuncs
print(numc_ufuncs.is_patched())
get_ipython().run_cell_magic("numc_profile", "", "import numpy; x = numpy.ones(9) + 1")
%reload_ext numc_ufuncs
print(numc_ufuncs.is_patched())
%unload_ext numc_ufuncs
print(numc_ufuncs.is_patched())
"""
        (tmp_path / "session.ipy").write_text(lines)
        environment = {**os.environ, "IPYTHONDIR": str(tmp_path)}
        done = python("-m", "IPython", "--quick", tmp_path / "session.ipy", env=environment)
        lines = [line for line in done.stdout.splitlines() if line in ("False", "True")]
        assert lines == ["False", "True", "True", "False"], done
        assert "1 calls took" in done.stdout


class TestReports:
    """--profile, --check and --fail-on-fallback."""

    PROGRAM = (
        "import numpy as np\na = np.ones(1000)\nfor i in range(3):\n    a = a * 2\nprint(a[0])\n"
    )
    OBJECTS = "import numpy as np\nnp.ones(3, object) + 1\n"

    def run(self, code, tmp_path, *options):
        (tmp_path / "program.py").write_text(code)
        return run(*options, tmp_path / "program.py", cwd=tmp_path)

    def test_profile(self, tmp_path):
        done = self.run(self.PROGRAM, tmp_path, "--profile")
        assert (done.returncode, done.stdout) == (0, "8.0\n")
        assert "numc_ufuncs: 3 calls took" in done.stderr
        assert "multiply" in done.stderr and "program.py:4" in done.stderr

    def test_json_and_plot(self, tmp_path):
        pytest.importorskip("matplotlib")
        done = self.run(self.PROGRAM, tmp_path, "--json", "p.json", "--plot", "p.svg")
        assert printed(done) == "8.0"
        rows = json.loads((tmp_path / "p.json").read_text())["rows"]
        assert [(row["ufunc"], row["calls"], row["line"]) for row in rows] == [("multiply", 3, 4)]
        assert "multiply" in (tmp_path / "p.svg").read_text()

    def test_a_file_that_cannot_be_written(self, tmp_path):
        done = self.run(self.PROGRAM, tmp_path, "--json", "nowhere/p.json")
        assert (done.returncode, done.stdout) == (1, "8.0\n")
        assert "nowhere" in done.stderr and "Traceback" not in done.stderr

    def test_check(self, tmp_path):
        done = self.run(self.PROGRAM, tmp_path, "--check")
        assert (done.returncode, done.stdout) == (0, "8.0\n")
        assert "checked 3 calls: 0 differ" in done.stderr

    def test_check_finds_a_difference(self, tmp_path):
        wrong = "import numc_ufuncs._check as c\nc._difference = lambda expected, found: 'wrong'\n"
        done = self.run(wrong + self.PROGRAM, tmp_path, "--check")
        assert done.returncode == 1
        assert "checked 3 calls: 3 differ" in done.stderr
        assert (
            "first: multiply(float64[1000], int)" in done.stderr and "program.py:6" in done.stderr
        )

    def test_fallbacks(self, tmp_path):
        done = self.run(self.OBJECTS, tmp_path, "--fail-on-fallback")
        assert done.returncode == 1
        assert "NumPy computed 1 calls of add(object)" in done.stderr
        assert self.run(self.PROGRAM, tmp_path, "--fail-on-fallback").returncode == 0

    def test_children_do_not_report(self, tmp_path):
        code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {self.PROGRAM!r}])\n"
        done = self.run(code + "import numpy", tmp_path, "--profile")
        assert done.stderr.count("calls took") == 1

    def test_programs_that_fail_report_too(self, tmp_path):
        done = self.run(self.PROGRAM + "1 / 0", tmp_path, "--profile")
        assert done.returncode == 1
        assert "3 calls took" in done.stderr and "ZeroDivisionError" in done.stderr
