"""Managed arrays that other libraries see: what they are told, and what they make of it."""

import contextlib
import ctypes
import gc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import numc_ufuncs as nc
from numc_ufuncs import _core
from numc_ufuncs._device_memory import kind_of

MIB = 1 << 20


def address(array):
    return array.ctypes.data


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("delete", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    ]


def held_by(capsule, name, kind):
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return kind.from_address(get(capsule, name))


def described(tensor):
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else None
    device = (tensor.device_type, tensor.device_id)
    return device, tensor.data + tensor.byte_offset, shape, strides, (tensor.code, tensor.bits)


@pytest.mark.usefixtures("gpu")
class TestViews:
    def arrays(self):
        with nc.config(memory="managed"):
            x = np.arange(6000.0).reshape(60, 100)
            return [x, x.T, x[3:50:2, 10:90:3], x[::-1], x.astype("f")[5:], x > 3, x + 1j]

    def test_cuda_array_interface(self):
        for array in self.arrays():
            described = nc.memory.device_view(array).__cuda_array_interface__
            assert described["version"] == 3 and described["stream"] is None
            assert described["data"] == (address(array), False)
            assert described["shape"] == array.shape and described["typestr"] == array.dtype.str
            strides = None if array.flags.c_contiguous else array.strides
            assert described["strides"] == strides
        array.flags.writeable = False
        view = nc.memory.device_view(array)
        assert view.__cuda_array_interface__["data"] == (address(array), True)

    @pytest.mark.parametrize("stream", [None, -1, 1, 2, 0x7F001234])
    def test_dlpack(self, stream):
        codes = {"f": 2, "b": 6, "c": 5}
        for array in self.arrays():
            view = nc.memory.device_view(array)
            assert view.__dlpack_device__() == (2, 0)
            expected = (
                (2, 0),
                address(array),
                array.shape,
                tuple(step // array.itemsize for step in array.strides),
                (codes[array.dtype.kind], 8 * array.itemsize),
            )
            capsule = view.__dlpack__(stream=stream)
            tensor = held_by(capsule, b"dltensor", Tensor)
            found = described(tensor)
            assert found == expected or (array.flags.c_contiguous and found[3] is None)

    @pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.1.0", reason="no versions")
    def test_dlpack_versions(self):
        for array in self.arrays():
            for writeable in (True, False):
                array.flags.writeable = writeable
                view = nc.memory.device_view(array)
                capsule = view.__dlpack__(max_version=(1, 0), dl_device=(2, 0), copy=False)
                held = held_by(capsule, b"dltensor_versioned", Versioned)
                assert held.version[0] == 1 and held.flags & 1 == (not writeable)
                assert described(held.tensor)[:3] == ((2, 0), address(array), array.shape)
            with pytest.raises(BufferError):
                view.__dlpack__()  # which cannot say that it is read-only

    def test_lifetime(self):
        before = _core.managed_in_use()
        with nc.config(memory="managed"):
            array = np.arange(5000.0)
        view = nc.memory.device_view(array[10:20])
        capsule = view.__dlpack__()
        del array
        assert _core.managed_in_use() > before
        del view
        tensor = held_by(capsule, b"dltensor", Tensor)
        assert ctypes.c_double.from_address(tensor.data).value == 10
        del capsule
        assert _core.managed_in_use() == before

    def test_the_gpu_is_waited_for(self, monkeypatch):
        """Before memory that a library used, which may still do so, serves another array."""
        waited = []
        monkeypatch.setattr(_core, "finish_device", lambda: waited.append(_core.managed_in_use()))
        with nc.config(memory="managed"):
            array = np.arange(5000.0)
        view = nc.memory.device_view(array)
        capsule, interface = view.__dlpack__(), view.__cuda_array_interface__
        in_use = _core.managed_in_use()
        del array, view
        assert waited == [] and interface["data"][1] is False
        del capsule
        assert waited == [in_use] and _core.managed_in_use() < in_use

    @pytest.mark.parametrize("stream", [0, -2, True, 1.0, "1"])
    def test_bad_streams(self, stream):
        view = nc.memory.device_view(self.arrays()[0])
        with pytest.raises(ValueError, match="stream must be None, -1, or"):
            view.__dlpack__(stream=stream)

    def test_what_cannot_be(self):
        array = self.arrays()[0]
        view = nc.memory.device_view(array)
        with pytest.raises(BufferError, match="dl_device must be"):
            view.__dlpack__(dl_device=(1, 0))
        with pytest.raises(BufferError, match="copy must be"):
            view.__dlpack__(copy=True)
        with nc.config(memory="managed"):
            swapped, objects = array.astype(">f8"), np.zeros(500, "O")
        with pytest.raises(BufferError):
            nc.memory.device_view(swapped).__dlpack__()
        with pytest.raises(TypeError, match="objects"):
            _ = nc.memory.device_view(objects).__cuda_array_interface__
        for wrong in ([1.0], 3, None, array.data):
            with pytest.raises(TypeError, match=r"array must be a numpy\.ndarray, not"):
                nc.memory.device_view(wrong)

    def test_other_memory(self):
        small = np.ones(10)
        with nc.config(memory="pinned"):
            pinned = np.ones(1000)
        with nc.config(memory="managed"):
            managed = np.ones(1000)
        for array in (small, pinned, np.ones(MIB), np.empty(0), managed[:0]):
            with pytest.raises(ValueError, match="array must be in managed memory, and is in "):
                nc.memory.device_view(array)
            with pytest.raises(ValueError, match="array must be in managed memory, and is in "):
                nc.memory.prefetch(array, "cpu")
        with pytest.raises(ValueError, match="device must be 'cpu' or 'cuda': got 'gpu'"):
            nc.memory.prefetch(managed, "gpu")

    def test_prefetch(self):
        for array in self.arrays():
            expected = array.copy()
            for device in ("cuda", "cuda", "cpu", "cuda"):
                nc.memory.prefetch(array, device)
            assert_array_equal(array, expected)


def test_without_a_gpu_views_say_what_is_missing():
    with pytest.raises(ValueError, match="array must be in managed memory, and is in ordinary"):
        nc.memory.device_view(np.ones(1000))


# ---- libraries that compute on a GPU ----


@pytest.fixture
def managed():
    with nc.config(memory="managed"):
        array = np.arange(3000.0, dtype="f").reshape(30, 100)
    yield array
    nc.memory.release()


@pytest.mark.cuda
class TestNeighbours:
    """The same pointer, both ways."""

    def test_cupy(self, managed):
        cupy = pytest.importorskip("cupy")
        for array in (managed, managed.T, managed[::2, 5:]):
            view = nc.memory.device_view(array)
            for shared in (cupy.asarray(view), cupy.from_dlpack(view)):
                assert shared.data.ptr == address(array) and shared.shape == array.shape
                expected = array + 1
                shared += 1
                cupy.cuda.get_current_stream().synchronize()
                assert_array_equal(array, expected)

    def test_memory_of_cupy(self, managed):
        """Managed and pinned memory that CuPy made."""
        cupy = pytest.importorskip("cupy")
        memory = cupy.cuda.malloc_managed(4 * MIB)
        text = (ctypes.c_char * (4 * MIB)).from_address(memory.ptr)
        array = np.frombuffer(text, "f").reshape(1024, 1024)
        array[:] = 1
        assert kind_of(array) == "managed"
        with nc.config(device="cuda"):
            out = np.frombuffer(text, "f").reshape(1024, 1024)[:512].T
            assert (nc.matmul(array, array) == 1024).all()
            assert nc.last_call()["device"] != "cpu"
        assert cupy.asarray(nc.memory.device_view(array)).data.ptr == memory.ptr
        pinned = np.frombuffer(cupy.cuda.alloc_pinned_memory(MIB), "f", 1000)
        assert kind_of(pinned) == "pinned"
        del out

    def test_arrays_of_cupy_stay_with_cupy(self):
        cupy = pytest.importorskip("cupy")
        x = cupy.arange(1000.0)
        result = nc.add(x, x)
        assert isinstance(result, cupy.ndarray)
        assert_array_equal(result.get(), 2 * np.arange(1000.0))

    def test_torch(self, managed):
        torch = pytest.importorskip("torch")
        for array in (managed, managed.T, managed[::2, 5:]):
            view = nc.memory.device_view(array)
            for shared in (torch.from_dlpack(view), torch.as_tensor(view, device="cuda")):
                assert shared.data_ptr() == address(array) and tuple(shared.shape) == array.shape
                assert shared.device.type == "cuda"
                expected = array + 1
                shared += 1
                torch.cuda.synchronize()
                assert_array_equal(array, expected)

    def test_torch_on_a_stream_of_its_own(self, managed):
        torch = pytest.importorskip("torch")
        with torch.cuda.stream(torch.cuda.Stream()):
            for turn in range(50):
                managed[:] = turn
                shared = torch.from_dlpack(nc.memory.device_view(managed))
                shared *= 2
                torch.cuda.current_stream().synchronize()
                assert (managed == 2 * turn).all()

    def test_numba(self, managed):
        cuda = pytest.importorskip("numba.cuda")
        if not cuda.is_available():
            pytest.skip("numba finds no GPU")
        shared = cuda.as_cuda_array(nc.memory.device_view(managed))
        assert shared.device_ctypes_pointer.value == address(managed)
        assert_array_equal(shared.copy_to_host(), managed)

    def test_jax(self, managed):
        jax = pytest.importorskip("jax")
        with contextlib.suppress(RuntimeError):
            if not jax.devices("cuda"):
                pytest.skip("JAX finds no GPU")
        shared = jax.dlpack.from_dlpack(nc.memory.device_view(managed))
        assert shared.unsafe_buffer_pointer() == address(managed)
        assert_array_equal(np.asarray(shared + 1), managed + 1)

    def test_memory_of_kernels_that_still_run(self):
        """It is not another array's before they are through."""
        torch = pytest.importorskip("torch")
        with nc.config(memory="managed"):
            for turn in range(20):
                shared = torch.from_dlpack(nc.memory.device_view(np.zeros(4 * MIB)))
                for _ in range(20):
                    shared += 1
                del shared
                array = np.full(4 * MIB, float(turn))
                assert (array == turn).all()

    def test_views_outlive_arrays(self):
        torch = pytest.importorskip("torch")
        before = _core.managed_in_use()
        with nc.config(memory="managed"):
            shared = torch.from_dlpack(nc.memory.device_view(np.full(5000, 3.0)))
        gc.collect()
        assert _core.managed_in_use() > before and float(shared.sum()) == 15000
        del shared
        assert _core.managed_in_use() == before
