"""Options, and what is reported of them."""

import os
import subprocess
import sys
import threading

import _numc_test
import numpy as np
import pytest

import numc_ufuncs as nc


@pytest.fixture(autouse=True)
def restore():
    yield
    nc.set_config(threads=None, device=None, precision=None, gemm=None)


def test_set_config_is_for_all_threads():
    nc.set_config(threads=7, device="cpu")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(nc.get_config()))
    thread.start()
    thread.join()
    expected = {"threads": 7, "device": "cpu", "precision": "ieee", "gemm": "auto"}
    assert seen == [nc.get_config()] == [expected]


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cuda:15", "auto"])
def test_devices_have_names(device):
    nc.set_config(device=device, precision="tf32", gemm="cublas")
    config = nc.get_config()
    assert (config["device"], config["precision"], config["gemm"]) == (device, "tf32", "cublas")
    nc.set_config(device="cuda:0", precision=None)
    config = nc.get_config()
    assert (config["device"], config["precision"], config["gemm"]) == ("cuda", "ieee", "cublas")


def test_config_nests_and_restores():
    before = nc.get_config()
    with nc.config(threads=3):
        with nc.config(device="cpu", gemm="tiled"):
            assert nc.get_config() == {**before, "threads": 3, "device": "cpu", "gemm": "tiled"}
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


@pytest.mark.parametrize("set_options", [nc.set_config, nc.config])
class TestErrors:
    @pytest.mark.parametrize("bad", [0, -1, 1.5, "2", True, 10**6])
    def test_threads(self, set_options, bad):
        with pytest.raises(ValueError, match=r"threads must be .* got"):
            set_options(threads=bad)

    @pytest.mark.parametrize("bad", ["gpu", 1, "CPU", "cpu:0", "cuda:", "cuda:-1", "cuda:16"])
    def test_device(self, set_options, bad):
        with pytest.raises(
            ValueError, match="device must be one of 'auto', 'cpu', 'cuda', 'cuda:1'"
        ):
            set_options(device=bad)

    @pytest.mark.parametrize("option", ["precision", "gemm"])
    def test_of_the_gpu(self, set_options, option):
        with pytest.raises(ValueError, match=f"{option} must be one of .* got 'fast'"):
            set_options(**{option: "fast"})

    def test_unknown(self, set_options):
        with pytest.raises(TypeError, match="unknown option 'thread'"):
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
    assert all(name.startswith("cuda:") for name in info["devices"][1:])
    assert (info["cuda"] == "ready") == (len(info["devices"]) > 1)
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
