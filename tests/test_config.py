"""Options, and what is reported of them."""

import asyncio
import contextvars
import os
import re
import subprocess
import sys
import threading

import _numc_test
import numpy as np
import pytest

import numc_ufuncs as nc

pytestmark = pytest.mark.thread_unsafe  # of the whole process


@pytest.fixture(autouse=True)
def restore():
    yield
    nc.set_config(threads=None, device=None, precision=None, gemm=None, memory=None)


def in_thread(function):
    """What it returns in a new thread."""
    results = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


def test_set_config_is_for_all_threads():
    nc.set_config(threads=7, device="cpu")
    expected = {
        "threads": 7,
        "device": "cpu",
        "precision": "ieee",
        "gemm": "auto",
        "memory": "system",
    }
    assert in_thread(nc.get_config) == nc.get_config() == expected


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cuda:15", "auto"])
def test_devices_have_names(device, monkeypatch):
    monkeypatch.setattr(nc._core, "device_problem", lambda number: "")
    nc.set_config(device=device, precision="tf32", gemm="cublas")
    config = nc.get_config()
    assert (config["device"], config["precision"], config["gemm"]) == (device, "tf32", "cublas")
    nc.set_config(device="cuda:0", precision=None)
    config = nc.get_config()
    assert (config["device"], config["precision"], config["gemm"]) == ("cuda", "ieee", "cublas")


def test_config_nests_and_restores():
    before = nc.get_config()
    with nc.config(threads=3):
        with nc.config(precision="tf32", gemm="tiled"):
            expected = {**before, "threads": 3, "precision": "tf32", "gemm": "tiled"}
            assert nc.get_config() == expected
        with pytest.raises(ValueError, match="no number"), nc.config(threads=9):
            int("no number")
        assert nc.get_config() == {**before, "threads": 3}
    assert nc.get_config() == before


def test_one_config_object_may_be_used_again():
    five = nc.config(threads=5)
    before = nc.get_config()
    with five, nc.config(threads=6), five:
        assert nc.get_config()["threads"] == 5
    assert nc.get_config() == before


def test_config_takes_precedence():
    nc.set_config(threads=7)
    with nc.config(threads=2):
        nc.set_config(threads=8)
        assert nc.get_config()["threads"] == 2
    assert nc.get_config()["threads"] == 8


def test_config_decides_how_many_run():
    x = np.ones(100_000)
    before = _numc_test.set_parallel_threshold(1)
    try:
        count = nc._core.regions()
        with nc.config(threads=1):
            nc.add(x, x)
        assert nc._core.regions() == count
        with nc.config(threads=2):
            nc.add(x, x)
        assert nc._core.regions() == count + 1
    finally:
        _numc_test.set_parallel_threshold(before)


class TestContexts:
    """Blocks belong to a context: tasks and threads are apart."""

    def test_interleaved_tasks(self):
        """Each is suspended within its block, and goes on after the other has left its own."""
        before, seen = nc.get_config(), {}

        async def first(turns):
            with nc.config(threads=7):
                turns[0].set()
                await turns[1].wait()
                seen["first"] = nc.get_config()["threads"]
            turns[2].set()

        async def second(turns):
            await turns[0].wait()
            seen["no block"] = nc.get_config()
            with nc.config(threads=5, device="cpu"):
                turns[1].set()
                await turns[2].wait()
                seen["second"] = nc.get_config()["threads"], nc.get_config()["device"]
            seen["after"] = nc.get_config()

        async def main():
            turns = [asyncio.Event() for _ in range(3)]
            await asyncio.gather(first(turns), second(turns))

        asyncio.run(main())
        assert seen == {
            "first": 7,
            "no block": before,
            "second": (5, "cpu"),
            "after": before,
        }
        assert nc.get_config() == before

    def test_one_object_in_two_tasks(self):
        five, seen = nc.config(threads=5), []

        async def task(entered, others):
            with five:
                entered.set()
                await others.wait()
                seen.append(nc.get_config()["threads"])
            seen.append(nc.get_config()["threads"])

        async def main():
            one, other = asyncio.Event(), asyncio.Event()
            with nc.config(threads=3):
                await asyncio.gather(task(one, other), task(other, one))

        asyncio.run(main())
        assert sorted(seen) == [3, 3, 5, 5]

    def test_a_task_sees_the_block_it_was_started_in_until_that_ends(self):
        before, seen = nc.get_config()["threads"], []

        async def task(ended):
            seen.append(nc.get_config()["threads"])
            await ended.wait()
            seen.append(nc.get_config()["threads"])
            with nc.config(device="cpu"):
                seen.append(nc.get_config()["device"])

        async def main():
            ended = asyncio.Event()
            with nc.config(threads=9):
                started = asyncio.create_task(task(ended))
                await asyncio.sleep(0)
            ended.set()
            with nc.config(gemm="tiled"):  # the variable is read because of this block
                await started

        asyncio.run(main())
        assert seen == [9, before, "cpu"]

    def test_a_suspended_generator_shows_its_caller_its_options(self):
        """As with np.errstate."""

        def generator(threads):
            with nc.config(threads=threads):
                yield

        before = nc.get_config()
        suspended = generator(7)
        with nc.config(threads=3):
            next(suspended)
            assert nc.get_config()["threads"] == 7
        assert nc.get_config() == before
        assert next(suspended, "over") == "over"
        assert nc.get_config() == before

    def test_interleaved_generators_leave_nothing(self):
        def generator(threads):
            with nc.config(threads=threads):
                yield

        before = nc.get_config()
        first, second = generator(7), generator(5)
        next(first), next(second)
        next(first, None)
        assert nc.get_config() == before
        with nc.config(gemm="tiled"):
            next(second, None)
            assert nc.get_config() == {**before, "gemm": "tiled"}
        assert nc.get_config() == before

    def test_a_generator_that_is_never_finished(self):
        def generator():
            with nc.config(threads=7):
                yield

        before = nc.get_config()
        suspended = generator()
        next(suspended)
        del suspended
        assert nc.get_config() == before

    def test_a_call_within_a_call_leaves_its_options(self, regions):
        """NumPy converts operands, which may call a ufunc of ours, after the options were read."""

        class Operand:
            def __array__(self, dtype=None, copy=None):
                nc.add(np.ones(3), 1)
                return np.ones((300, 300), np.int32)

        ones = np.ones((300, 300), np.int32)
        before = _numc_test.set_parallel_threshold(1)
        try:
            with nc.config(threads=3):
                nc.matmul(ones, ones)
            assert regions() > 0
            with nc.config(threads=1):
                nc.matmul(Operand(), ones)
            assert regions() == 0
        finally:
            _numc_test.set_parallel_threshold(before)

    def test_another_context_may_close_a_block(self):
        before, block = nc.get_config(), nc.config(threads=7)
        context = contextvars.copy_context()
        context.run(block.__enter__)
        assert nc.get_config() == before
        assert context.run(nc.get_config)["threads"] == 7
        with nc.config(threads=3):
            block.__exit__(None, None, None)
            assert nc.get_config()["threads"] == 3
            assert context.run(nc.get_config) == before

    def test_copied_contexts(self):
        before = nc.get_config()
        with nc.config(threads=7):
            context = contextvars.copy_context()
            with nc.config(threads=5):
                assert context.run(nc.get_config)["threads"] == 7
            assert in_thread(lambda: context.run(nc.get_config))["threads"] == 7
            assert in_thread(nc.get_config) == before

    def test_exit_without_enter(self):
        with pytest.raises(RuntimeError, match="was not entered"):
            nc.config(threads=7).__exit__(None, None, None)

    def test_an_exception_within_enter_opens_nothing(self):
        before = nc.get_config()
        device = max(nc._config.DEVICES.values()) + 1
        for at, most in enumerate([65536, device - 1, 3, 3, 4]):
            numbers = [most + 1 if i == at else 0 for i in range(5)]
            with pytest.raises(ValueError, match="is more than"):
                nc._core.open_block([], *numbers)
            with pytest.raises(ValueError, match="is more than"):
                nc._core.set_process_options(*numbers)
        with nc.config():
            assert nc.get_config() == before

    @pytest.mark.usefixtures("threads_always")
    @pytest.mark.parametrize(
        "compute",
        [
            lambda add, x: add(x, x),
            lambda add, x: add.outer(x, np.ones(1)),
            lambda add, x: np.ufunc.outer(add, x, np.ones(1)),
            lambda add, x: np.frompyfunc(lambda i: add(x, x)[int(i)], 1, 1)(np.arange(3)),
        ],
        ids=["call", "outer", "NumPy's outer", "within another call"],
    )
    def test_each_way_of_calling_sees_the_block(self, compute, regions):
        x = np.ones(100_000)
        for threads in (1, 2):
            with nc.config(threads=threads):
                compute(nc.subtract, x)
            assert (regions() > 0) == (threads > 1)
        compute(nc.subtract, x)
        assert regions() > 0

    @pytest.mark.usefixtures("threads_always")
    @pytest.mark.parametrize("name", ["add", "maximum"])
    def test_methods_see_the_block(self, name, regions):
        ufunc, x = getattr(nc, name), np.ones((40, 50_000))
        with nc.config(threads=1):
            ufunc.reduce(x)
            np.ufunc.reduce(ufunc, x)
        assert regions() == 0
        ufunc.reduce(x)
        assert regions() > 0

    def test_threads_that_open_blocks_at_once(self):
        wrong = []

        def work(threads):
            for _ in range(300):
                with nc.config(threads=threads):
                    with nc.config(gemm="tiled"):
                        nc.add(1.0, np.ones(3))
                        seen = nc.get_config()
                    if seen["threads"] != threads or seen["gemm"] != "tiled":
                        wrong.append(seen)

        workers = [threading.Thread(target=work, args=(n,)) for n in range(1, 6)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert not wrong


@pytest.mark.parametrize("set_options", [nc.set_config, nc.config])
class TestErrors:
    """Each names the option, its value and what is allowed."""

    @pytest.mark.parametrize(
        "bad", [0, -1, 1.5, "2", True, np.True_, 10**6, 10**30, [], np.ones(2)]
    )
    def test_threads(self, set_options, bad):
        rule = "threads must be an integer from 1 to 65536, or None: got "
        with pytest.raises(ValueError, match=f"^{re.escape(rule + repr(bad))}$"):
            set_options(threads=bad)

    @pytest.mark.parametrize(
        "bad",
        ["gpu", 1, "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:16", "cuda:99", "cuda:01", [], {}],
    )
    def test_device(self, set_options, bad):
        rule = "one of 'auto', 'cpu', 'cuda'.*, or 'cuda:0' to 'cuda:15'.*, or None"
        with pytest.raises(
            ValueError, match=f"^device must be {rule}: got {re.escape(repr(bad))}$"
        ):
            set_options(device=bad)

    @pytest.mark.parametrize("bad", ["fast", [], {}, 1, b"auto"])
    @pytest.mark.parametrize(
        ("option", "allowed"),
        [("precision", "'ieee', 'tf32', 'bf16'"), ("gemm", "'auto', 'cublas', 'tiled'")],
    )
    def test_of_the_gpu(self, set_options, option, allowed, bad):
        rule = f"{option} must be one of {allowed}, or None: got {bad!r}"
        with pytest.raises(ValueError, match=f"^{re.escape(rule)}$"):
            set_options(**{option: bad})

    @pytest.mark.parametrize("gemm", ["cublas", "tiled"])
    def test_gemm_is_not_for_the_cpu(self, set_options, gemm):
        with pytest.raises(ValueError, match=f"gemm='{gemm}' and device='cpu' exclude each other"):
            set_options(gemm=gemm, device="cpu")

    @pytest.mark.skipif(nc.info()["cuda"] == "ready", reason="there is a GPU")
    def test_no_device(self, set_options):
        before = nc.get_config()
        with pytest.raises(RuntimeError, match=r"device='cuda:3' cannot be used: .+"):
            set_options(device="cuda:3", threads=2)
        assert nc.get_config() == before

    def test_unknown(self, set_options):
        allowed = "'threads', 'device', 'precision', 'gemm'"
        with pytest.raises(TypeError, match=f"unknown option 'thread': the options are {allowed}"):
            set_options(thread=1)

    def test_nothing_changes(self, set_options):
        before = nc.get_config()
        with pytest.raises(ValueError, match="device"):
            set_options(threads=3, device="no")
        assert nc.get_config() == before


def test_info():
    info = nc.info()
    assert info["version"] == nc.__version__
    assert info["numpy"] == np.__version__
    assert info["isa"] in info["isa_available"]
    assert info["threads"] >= 1
    assert info["devices"][0] == "cpu"
    kinds = {name.partition(":")[0] for name in info["devices"][1:]}
    assert kinds == {kind for kind in nc._config.KINDS if info[kind] == "ready"}
    with nc.config(threads=3):
        assert nc.info()["threads_reason"] == "config(threads=)"


def test_show_config(capsys):
    nc.show_config()
    printed = capsys.readouterr().out
    for name in nc.info():
        assert name in printed


def isa_with(mask):
    code = "import numc_ufuncs as nc; print(nc.info()['isa'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMC_ISA": mask},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip(), done.stderr


def test_numc_isa_masks():
    available = nc.info()["isa_available"]
    for isa in available:
        assert isa_with(isa) == (isa, "")


def test_bad_numc_isa_warns():
    isa, stderr = isa_with("sse9")
    assert isa == nc.info()["isa_available"][-1]
    assert "NUMC_ISA='sse9' is ignored" in stderr


@pytest.mark.parametrize("name", ["NUMC_ISA", "NUMC_NUM_THREADS", "NUMC_GPU_MEMORY_LIMIT"])
class TestBadVariables:
    """They are warned of, where the package is imported."""

    CODE = "import warnings\n\n\nimport numc_ufuncs as nc\nprint(nc.add(1, 2))\n"

    def run(self, tmp_path, name, *options):
        script = tmp_path / "script.py"
        script.write_text(self.CODE)
        return subprocess.run(
            [sys.executable, *options, str(script)],
            env={**os.environ, name: "-5"},
            capture_output=True,
            text=True,
            check=True,
        )

    def test_the_warning_names_the_import(self, tmp_path, name):
        done = self.run(tmp_path, name)
        assert re.search(rf"script\.py:4: RuntimeWarning: {name}='-5' is ignored", done.stderr)
        assert "import numc_ufuncs as nc" in done.stderr and "importlib" not in done.stderr

    def test_the_import_works_where_warnings_are_errors(self, tmp_path, name):
        done = self.run(tmp_path, name, "-W", "error")
        assert done.stdout == "3\n" and f"{name}='-5' is ignored" in done.stderr

    def test_ignored(self, tmp_path, name):
        assert self.run(tmp_path, name, "-W", "ignore").stderr == ""


def test_version_on_the_command_line():
    done = subprocess.run(
        [sys.executable, "-m", "numc_ufuncs", "--version"], capture_output=True, text=True
    )
    assert done.stdout == f"numc_ufuncs {nc.__version__}\n"
