"""Arrays of other libraries as these hand them out: each form of DLPack and of CUDA's interface.

Stand-ins behave as the libraries are documented to; their memory is that of an emulated device.
"""

import ctypes
import re
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.arrays import DeviceArray, DeviceStream

rank = MPI.COMM_WORLD.rank
N = 12


class CuPy:
    """As CuPy has it: both protocols, all arguments by keywords."""

    def __init__(self, array: DeviceArray, **changed: Any) -> None:
        self.array, self.changed = array, changed
        self.asked: list[dict[str, Any]] = []

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        raise AssertionError("DLPack comes first")

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        self.asked.append({"stream": stream, "max_version": max_version})
        assert dl_device in (None, self.__dlpack_device__())
        assert not copy
        return with_fields(self.array.__dlpack__(max_version=max_version), **self.changed)


class OldCuPy(CuPy):
    """Before it knew versions."""

    def __dlpack__(self, stream: int | None = None) -> Any:  # type: ignore[override]
        self.asked.append({"stream": stream})
        return self.array.__dlpack__()


class Jax(CuPy):
    """It makes arrays of those of other libraries itself."""

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return SimpleNamespace(from_dlpack=lambda made: taken_in(Jax, made))

    def __getitem__(self, index: Any) -> Any:
        return Jax(self.array[index])


class Numba:
    """It has CUDA's interface alone, with strides in any case and the stream of the writer."""

    def __init__(self, array: DeviceArray, **changed: Any) -> None:
        self.array = array
        own = {"strides": array.strides, "stream": None, **changed}
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **own}

    def copy_to_host(self) -> np.ndarray:
        return self.array.numpy()


Numba.__module__ = "numba.cuda.cudadrv.devicearray"


def taken_in(kind: type, made: DeviceArray) -> Any:
    assert made.__dlpack__(stream=1, max_version=(1, 0)) is not None
    return kind(made)


def with_fields(capsule: Any, **fields: Any) -> Any:
    """A capsule of the versioned form, in which a producer has other values."""
    if fields:
        whole = ctypes.cast(dlpack._pointer(capsule, b"dltensor_versioned"), dlpack._AsVersioned)
        for name, value in fields.items():
            at = whole.contents if hasattr(whole.contents, name) else whole.contents.tensor
            if name == "shift":  # an array that begins so many bytes behind its data
                at.data, at.offset = at.data - value, value
            else:
                setattr(at, name, value)
    return capsule


def on(array: Any) -> DeviceArray:
    return DeviceArray.of(array, "emulated")


def added(x, y):
    y += x
    return x * 2


def pointed(x, total):
    total += np.sum(x)
    return total * 1


def masked(x, m):
    return np.where(m, x, 0)


def values() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random(N), rng.random(N)


def call(program: Any, *arguments: Any, **named: Any) -> Any:
    return program(*arguments, **named) if rank == 0 else program()


def refused(program: Any, text: str, *arguments: Any, **named: Any) -> None:
    with pytest.raises(distspmd.errors.ArgumentError, match=re.escape(text)):
        call(program, *arguments, **named)


def compiled(function: Callable[..., Any], *examples: Any) -> Any:
    def lowered() -> Any:
        return distspmd.program(function).lower(*examples)

    return distspmd.compile(lowered, MPI.COMM_WORLD, device="emulated")


def kinds(program: Any) -> None:
    """What goes in comes out, where its library makes arrays of it."""
    numba = ModuleType("numba")
    numba.cuda = SimpleNamespace(as_cuda_array=lambda made: Numba(made))
    sys.modules["numba"] = numba
    for kind, wanted in ((CuPy, DeviceArray), (OldCuPy, DeviceArray), (Jax, Jax), (Numba, Numba)):
        x, y = values()
        given = on(y)
        first = kind(on(x))
        found = call(program, x=first, y=kind(given))
        if rank == 0:
            assert isinstance(found, wanted)
            array = found if isinstance(found, DeviceArray) else found.array
            assert np.array_equal(array.numpy(), 2 * x)
            assert np.array_equal(given.numpy(), x + y)
        if rank == 0 and kind is not Numba:
            version = {} if kind is OldCuPy else {"max_version": (1, 0)}
            assert first.asked[-1] == {"stream": 1, **version}
    del sys.modules["numba"]

    class Refusing(Jax):
        def __array_namespace__(self, api_version: str | None = None) -> Any:
            return SimpleNamespace(from_dlpack=lambda made: 1 / 0)

    if rank == 0:
        x, y = values()
        with pytest.raises(
            distspmd.errors.ArgumentError, match="cannot be a Refusing: division by zero"
        ):
            call(program, x=Refusing(on(x)), y=y)
    else:
        call(program)


def forms(program: Any) -> None:
    """Offsets, strides that are left out, flags, types and versions."""
    x, y = values()
    for fields in ({"shift": 8 * N}, {"strides": None}, {"minor": 3}, {"flags": 1}, {"flags": 2}):
        found = call(program, x=CuPy(on(x), **fields), y=y.copy())
        assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
    read_only = CuPy(on(y), flags=1)
    refused(program, "that can be written, because the program writes it, but", x=x, y=read_only)
    newer = CuPy(on(x), major=2)
    refused(program, "it is handed out in version 2.0 of DLPack, though 1.0", x=newer, y=y)
    for fields, name in (
        ({"code": 4, "bits": 16}, "bfloat16"),
        ({"code": 5, "bits": 32}, "type 5 of DLPack with 32 bits"),
        ({"code": 0, "bits": 4}, "type 0 of DLPack with 4 bits"),
        ({"code": 10, "bits": 8}, "type 10 of DLPack with 8 bits"),
        ({"lanes": 2, "bits": 32}, "type 2 of DLPack with 32 bits in 2 lanes"),
        ({"bits": 16}, "float16"),
    ):
        text = f"but it has the type {name}. Convert it to float64."
        refused(program, text, x=CuPy(on(x), **fields), y=y)
    refused(program, "it has the type |V8", x=Numba(on(x), typestr="|V8"), y=y)
    refused(program, "it has the type >f8", x=Numba(on(x), typestr=">f8"), y=y)
    for steps in ((-8,), (0,), (16,)):
        text = f"C-contiguous, but it has the strides [{steps[0] // 8}]"
        refused(program, text, x=Numba(on(x), strides=steps), y=y)
    refused(program, "are no multiples of an element", x=Numba(on(x), strides=(12,)), y=y)


def faults(program: Any) -> None:
    """Whatever a library raises, and on whichever rank, all ranks learn of it."""
    x, y = values()

    class Broken(CuPy):
        def __dlpack__(self, **_: Any) -> Any:
            raise KeyError("of its own")

    class Nowhere:
        def __dlpack_device__(self) -> Any:
            raise ValueError("no memory")

    class Partial:
        def __init__(self) -> None:
            self.__cuda_array_interface__ = {"shape": (N,)}

    refused(program, "cannot be used where it lies: 'of its own'", x=Broken(on(x)), y=y)
    refused(program, "Nowhere", x=Nowhere(), y=y)
    refused(program, "cannot be used where it lies: 'typestr'", x=Partial(), y=y)
    text = "a type that NumPy has not. Convert it"
    decorated = distspmd.program(device="emulated")(masked)
    refused(decorated, text, CuPy(on(x), code=4, bits=16), on(x > 0.5))
    refused(decorated, "a Broken cannot be used where it lies", Broken(on(x)), on(x > 0.5))
    decorated.close()


def streams(program: Any) -> None:
    """By all names that libraries have for the number of a stream."""
    stream = DeviceStream("emulated")
    x, y = values()
    for given in (
        SimpleNamespace(cuda_stream=stream.handle),  # PyTorch
        SimpleNamespace(ptr=stream.handle),  # CuPy
        SimpleNamespace(handle=ctypes.c_void_p(stream.handle)),  # Numba
        SimpleNamespace(__cuda_stream__=lambda: (0, stream.handle)),  # NVIDIA's own
        np.int64(stream.handle),
    ):
        late = on(np.zeros(N))
        late.write(x, stream=stream)
        late.stream = None  # nobody is told but by the argument
        found = call(program, x=late, y=y.copy(), stream=given)
        assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
    for default in (None, SimpleNamespace(handle=ctypes.c_void_p(0)), 0):
        found = call(program, x=on(x), y=y.copy(), stream=default)
        assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
    for wrong in (True, -1, 2.5, "0"):
        refused(program, "is no stream. Pass one of", x=x, y=y, stream=wrong)


def small() -> None:
    """Arrays of no dimensions, of no elements, and of truth values."""
    with compiled(pointed, np.ones(N), np.array(1.0)) as program:
        x, _ = values()
        total = on(np.array(1.0))
        for _ in range(2):  # what came out goes in again
            found = call(program, x=x, total=total)
            assert rank != 0 or found.shape == ()
            assert rank != 0 or np.isclose(total.item(), found.item())
        assert rank != 0 or np.isclose(total.item(), 1 + 2 * x.sum())
        refused(program, "an array of no dimensions", x=x, total=on(np.ones(1)))
        refused(program, "has the type int64", x=x, total=on(np.array(1)))
    with compiled(masked, np.ones(N), np.ones(N, bool)) as program:
        x, y = values()
        for kind in (lambda array: array, CuPy, OldCuPy):
            found = call(program, x=kind(on(x)), m=kind(on(y > 0.5)))
            assert rank != 0 or np.array_equal(found.numpy(), np.where(y > 0.5, x, 0))
        bits = CuPy(on((y > 0.5).view(np.uint8)))
        refused(program, "but it has the type uint8. Convert it to bool", x=x, m=bits)
    nothing = np.empty((0, 3))
    with compiled(masked, nothing, np.empty((0, 3), bool)) as program:
        for given in (
            on(nothing),
            CuPy(on(nothing), data=None),
            Numba(on(nothing), data=(0, False)),
        ):
            found = call(program, x=given, m=on(np.empty((0, 3), bool)))
            assert rank != 0 or found.shape == (0, 3)


with compiled(added, *values()) as of_two:
    for part in (kinds, forms, faults, streams):
        part(of_two)
small()
if rank == 0:
    print("all is right")
