import re
import runpy
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

TREE = Path(__file__).resolve().parent.parent
MUTATIONS = runpy.run_path(str(TREE / "tools" / "mutations.py"))["MUTATIONS"]


@pytest.mark.parametrize("name", MUTATIONS)
def test_mutations_still_apply(name):
    file, old, new = MUTATIONS[name]
    assert old != new and old in (TREE / file).read_text()


def test_every_kernel_of_products_is_built():
    """A file without its row in the build's table would be left out in silence."""
    folder = TREE / "src" / "kernels"
    build = (folder / "meson.build").read_text()
    table = re.search(r"matmul_dtypes = \{(.*?)\n\}", build, re.DOTALL)
    rows = set(re.findall(r"^  '(\w+)':", table[1], re.MULTILINE))
    files = {path.stem.removeprefix("matmul_") for path in folder.glob("matmul/matmul_*.c")}
    assert files - {"kernels"} == rows


# ---- check_structure.py: a small tree that keeps its rules, and one breach at a time ----

SOUND = {
    "kernels/sum.h": """/* void not_declared(void); */
#ifndef SUM_H
typedef int sum_function(int n);
sum_function sum_bytes, sum_words;
extern struct counts {
    int sums;
} counts;
extern struct limits { int most; } least, most[2];
#endif
""",
    "kernels/sum.c": """#include "sum.h"
struct counts_of_file;
struct counts counts = {.sums = 1};
struct limits least = {1}, most[2] = {{2}, {3}};
static int helper(int n) { return n; }
int sum_bytes(int n) { return helper(n); }
__attribute__((noinline)) int sum_words(int n)
{
    return n;
}
""",
    "kernels/template.h": "static int JOIN(sum, DTYPE)(int n) { return n; }\nint KERNEL(int n);\n",
    "kernels/instance.c": '#include "template.h"\nint KERNEL(int n) { return n; }\n',
    "kernels/meson.build": "table_h = configure_file(output: 'table.h')\n",
    "threads/pool.h": """struct pool {
    struct { int index; } *first;
    void (*run)(int);
};
int pool_run(struct pool *pool, void (*task)(int index));
static inline int pool_size(void) { return 1; }
""",
    "threads/pool.c": """#include "pool.h"
int pool_run(struct pool *pool, void (*task)(int index)) { return pool->first->index; }
""",
    "engine/reduce.h": "int reduce(int n);\n",
    "engine/reduce.c": """#include "reduce.h"
#include "kernels/sum.h"
#include "kernels/table.h"
#include "threads/pool.h"
#include <stdint.h>
int reduce(int n) { return sum_bytes(n) + pool_run(0, 0); }
""",
    "device/fast.cu": 'extern "C" {\nint fast(void) { return 1; }\n}\n',
    "device/fast.h": '#ifdef __cplusplus\nextern "C" {\n#endif\nint fast(void);\n}\n',
    "numpy/reduce_call.c": '#include "engine/reduce.h"\nint call(void) { return reduce(1); }\n',
    "numc_ufuncs/__init__.py": "",
}

BREACHES = {
    "a layer includes the one above": (
        {"threads/pool.c": '#include "pool.h"\n#include "engine/reduce.h"\n'},
        "src/threads/pool.c:2: includes engine/reduce.h: threads includes kernels",
    ),
    "a layer includes the one beside": (
        {"engine/other.c": '#include "device/fast.h"\n'},
        "src/engine/other.c:1: includes device/fast.h: engine includes kernels, memory, threads",
    ),
    "a template includes the one above": (
        {"kernels/template.h": '#define PACKING "engine/reduce.h"\n#include PACKING\n'},
        "src/kernels/template.h:1: includes engine/reduce.h: kernels includes nothing else",
    ),
    "an included file is not there": (
        {"engine/other.c": '\n#include "nowhere.h"\n'},
        "src/engine/other.c:2: includes nowhere.h, which is not in src/",
    ),
    "a folder that is no layer": (
        {"util/other.c": ""},
        "src/util/other.c:1: is in none of the folders",
    ),
    "two files of one name": (
        {"numpy/pool.c": ""},
        "src/numpy/pool.c:1: the name pool is there again: threads/pool.c, threads/pool.h",
    ),
    "two sources of one name": (
        {"device/fast.c": ""},
        "src/device/fast.c:1: the name fast is there again: device/fast.cu, device/fast.h",
    ),
    "two structs of one name": (
        {"engine/other.c": "\nstruct outer {\n    union pool {\n        int i;\n    } u;\n};\n"},
        "src/engine/other.c:3: struct pool is there again: src/threads/pool.h:1",
    ),
    "a header whose function is another file's": (
        {"engine/other.h": "int pool_run(struct pool *pool, void (*task)(int index));\n"},
        "src/engine/other.h:1: pool_run is defined in src/threads/pool.c: it belongs into pool.h",
    ),
    "a source that declares another file's function": (
        {"engine/other.c": "\nint pool_run(struct pool *, void (*)(int));\n"},
        "src/engine/other.c:2: pool_run is defined in src/threads/pool.c: it belongs into pool.h",
    ),
    "a function that is nowhere": (
        {"kernels/sum.c": '#include "sum.h"\nstatic int sum_words(int n) { return n; }\n'},
        "src/kernels/sum.h:4: sum_words is defined nowhere",
    ),
    "a circle of includes": (
        {
            "engine/a.h": '#include "b.h"\n',
            "engine/b.h": "struct b { int i; };\n",
            "engine/b.c": '#include "c.h"\n',
            "engine/c.c": '\n#include "a.h"\n',
            "engine/c.h": "",
        },
        "src/engine/a.h:1: circle engine/a -> engine/b -> engine/c -> engine/a: includes b.h; "
        "src/engine/b.c:1 includes c.h; src/engine/c.c:2 includes a.h",
    ),
    "a circle by a call": (
        {
            "engine/reduce.c": '#include "other.h"\nint reduce(int n) { return other(n); }\n',
            "engine/other.h": "int other(int n);\n",
            "engine/other.c": "int other(int n)\n{\n    return reduce(n - 1);\n}\n",
        },
        "src/engine/other.c:3: circle engine/other -> engine/reduce -> engine/other: uses reduce; "
        "src/engine/reduce.c:1 includes other.h",
    ),
}


def breaches(folder, changes):
    for name, text in {**SOUND, **changes}.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return runpy.run_path(str(TREE / "tools" / "check_structure.py"))["check"](folder / "src")


def test_a_sound_tree_breaks_no_rule(tmp_path):
    assert breaches(tmp_path, {}) == []


@pytest.mark.parametrize("name", BREACHES)
def test_breaches_of_the_structure_are_seen(tmp_path, name):
    changes, message = BREACHES[name]
    assert any(breach.startswith(message) for breach in breaches(tmp_path, changes))


def test_the_exit_status_tells_of_breaches(tmp_path, capsys):
    main = runpy.run_path(str(TREE / "tools" / "check_structure.py"))["main"]
    assert breaches(tmp_path, {}) == []
    assert main([str(tmp_path / "src")]) == 0
    assert capsys.readouterr().out == ""
    breaches(tmp_path, {"util/other.c": ""})
    assert main([str(tmp_path / "src")]) == 1
    assert "util/other.c" in capsys.readouterr().out


# ---- check_wheel.py ----


def wheel_problems(path, **contents):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return [*runpy.run_path(str(TREE / "tools" / "check_wheel.py"))["problems"](path)]


def test_wheels_bring_no_libraries_of_others(tmp_path, capsys):
    contents = {"numc_ufuncs.libs/libgomp-a34b3233.so.1.0.0": b"", "numc_ufuncs/__init__.py": b""}
    (problem,) = wheel_problems(tmp_path / "x.whl", **contents)
    assert "libgomp-a34b3233" in problem and "__init__" not in problem
    assert "without CUDA" in capsys.readouterr().out


def test_wheels_are_small(tmp_path):
    (problem,) = wheel_problems(tmp_path / "x.whl", **{"numc_ufuncs/large": b"0" * 5_000_001})
    assert "more than 5000000" in problem


@pytest.mark.parametrize(
    ("tags", "found"), [("2_17", 0), ("2_28", 0), ("2_34", 1), ("2_34.2_17", 0)]
)
def test_wheels_are_for_old_glibcs(tmp_path, tags, found):
    tags = ".".join(f"manylinux_{tag}_aarch64" for tag in tags.split("."))
    problems = wheel_problems(tmp_path / f"x-1-cp311-cp311-{tags}.whl")
    assert ["glibc 2.34" in problem for problem in problems] == [True] * found


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_names_of_newer_glibcs_are_seen(tmp_path):
    source, library = tmp_path / "x.c", tmp_path / "x.so"
    # Made up: a glibc that has the name gives it a version.
    source.write_text("long __of_glibc_9(void); long f(void) { return __of_glibc_9(); }\n")
    command = ["cc", "-shared", "-fPIC", "-Wl,--allow-shlib-undefined", "-o", library, source]
    subprocess.run(command, check=True)
    contents = {"numc_ufuncs/x.so": library.read_bytes()}
    assert "__of_glibc_9" in wheel_problems(tmp_path / "x.whl", **contents)[0]
