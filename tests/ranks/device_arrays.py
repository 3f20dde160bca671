"""Arrays in the memory of devices as arguments: without copies, in order, or refused.

What is missing shows on the emulated device alone, whose streams are lazy.
"""

import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.runtime.devices import arrays as device_arrays
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.arrays import DeviceArray, DeviceStream
from distspmd.runtime.devices.kinds import KINDS, Device, device_of_process
from distspmd.runtime.devices.views import wait_for_tensors

sys.path.insert(0, str(Path(__file__).parents[1]))
comm = MPI.COMM_WORLD
rank = comm.Get_rank()
DEVICE = os.environ.get("DISTSPMD_TEST_DEVICE", "emulated")
N = 30
LARGE = 400_003  # more than 1 MiB on each rank


def damped(x: dace.float64[N], y: dace.float64[N]):
    y[1:-1] += x[:-2] - x[2:]
    return np.sum(y)


def scaled(x: dace.float64[N], by: dace.float64):
    return x * by


def until(x: dace.float64[N], limit: dace.float64[1]):
    while x[0] < limit[0]:
        x[:] = x * 2
    return x + limit


class Interface:
    """What another library's array says by ``__cuda_array_interface__`` alone."""

    def __init__(self, array: DeviceArray, **other: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **other}


class FirstForm:
    """An array of a library that knows the first form of DLPack."""

    def __init__(self, array: DeviceArray, device: tuple[int, int] | None = None) -> None:
        self.array, self.device = array, device
        self.asked: list[int | None] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, stream: int | None = None) -> Any:
        self.asked.append(stream)
        return self.array.__dlpack__(stream=stream)


class Differentiable(Interface):
    requires_grad = True

    def detach(self) -> Interface:
        return Interface(self.array)


def on(array: Any) -> DeviceArray:
    return DeviceArray.of(array, DEVICE)


def compiled(function: Any, **options: Any) -> Any:
    def lowered() -> distspmd.lowering.Lowering:
        schedule = {space.name: (2,) for space in distspmd.iteration_spaces(function)}
        return distspmd.lower(function, schedule, **options)

    return distspmd.compile(lowered, comm, device=DEVICE)


def call(program: Any, **named: Any) -> Any:
    return program(**named) if rank == 0 else program()


def refused(program: Any, text: str, **named: Any) -> None:
    with pytest.raises(distspmd.errors.ArgumentError, match=re.escape(text)):
        call(program, **named)


def values() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.random(N), rng.random(N)


def kinds() -> None:
    """What goes in comes out, whoever describes it; NumPy's arrays may be beside it."""
    with compiled(damped) as program:
        wrappers: Sequence[Callable[[DeviceArray], Any]] = (lambda a: a, Interface, FirstForm)
        for wrap in wrappers:
            x, y = values()
            given = on(y)
            found = call(program, x=wrap(on(x)), y=wrap(given))
            y[1:-1] += x[:-2] - x[2:]
            if rank == 0:
                assert isinstance(found, DeviceArray)
                assert found.shape == ()
                assert np.isclose(found.numpy(), y.sum())
                assert np.array_equal(given.numpy(), y), "it is written where it lies"
        x, y = values()
        found = call(program, x=on(x), y=y)
        if rank == 0:
            assert isinstance(found, DeviceArray)
            assert np.isclose(found.numpy(), y.sum())
        x, y = values()
        assert rank != 0 or isinstance(program(x=x, y=y), float)
        assert rank == 0 or isinstance(program(), distspmd.runtime.MissingResult)
        view = on(np.stack([x, x]))[1]  # a row of a larger array
        _, y = values()
        found = call(program, x=view, y=on(y))
        y[1:-1] += x[:-2] - x[2:]
        assert rank != 0 or np.isclose(found.numpy(), np.sum(y))


def whole() -> None:
    """Programs on one rank, whose kernels work where the caller's arrays lie; no second memory."""
    lowered = distspmd.lower(damped, {}) if rank == 0 else None
    with distspmd.compile(lowered, comm, device=DEVICE) as program:
        x, y = values()
        for _ in range(2):
            given = on(y)
            found = call(program, x=on(x), y=given)
            y[1:-1] += x[:-2] - x[2:]
            if rank == 0:
                assert set(program.device.arguments) >= {"x", "y"}
                assert np.array_equal(given.numpy(), y)
                assert np.isclose(found.numpy(), y.sum())
                assert not program._executable._memory.keys() & {
                    program.signature.parameters[name].position for name in ("x", "y")
                }, "memory of the program's own is given back"
            found = call(program, x=x, y=y)  # and taken again for arrays of the host
            assert rank != 0 or np.isclose(found, y.sum())


def control() -> None:
    """What the host reads for control flow is copied there, also from the device."""
    lowered = distspmd.lower(until, {}) if rank == 0 else None
    with distspmd.compile(lowered, comm, device=DEVICE) as program:
        x = np.full(N, 0.75)
        given = on(x)
        found = call(program, x=given, limit=on(np.array([5.0])))
        if rank == 0:
            assert np.array_equal(given.numpy(), x * 8)
            assert np.array_equal(found.numpy(), x * 8 + 5)


def held() -> None:
    """Each rank passes its own, and gets the kind that it passes."""
    options = {"arguments": {"x": "replicated", "y": "distributed", "__return": "replicated"}}
    with compiled(damped, **options) as program:
        x, y = values()
        tile = on(program.tile("y", y))
        found = program(x=on(x), y=tile)
        y[1:-1] += x[:-2] - x[2:]
        (box,) = program.layout("y").box(rank)
        assert np.array_equal(tile.numpy(), y[slice(*box)])
        assert isinstance(found, DeviceArray)
        assert np.isclose(found.numpy(), y.sum())


def streams() -> None:
    """Programs begin when those who write their arguments are done; without, values are older."""
    stream = DeviceStream("emulated")

    def late(array: Any) -> DeviceArray:
        made = DeviceArray(array.shape, array.dtype, "emulated")
        made.write(np.zeros_like(array))
        made.write(array, stream=stream)
        return made

    def hidden(array: Any) -> DeviceArray:
        """Whose writer nobody is told."""
        made = late(array)
        made.stream = None
        return made

    with compiled(scaled) as program:
        x = np.arange(1.0, N + 1)
        for wrap in (lambda a: a, Interface, FirstForm):
            found = call(program, x=wrap(late(x)), by=2.0)
            assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
        first = FirstForm(late(x))
        call(program, x=first, by=2.0)
        assert rank != 0 or first.asked == [1], "the writer is told the program's stream"
        found = call(program, x=hidden(x), by=2.0)
        assert rank != 0 or np.array_equal(found.numpy(), 0 * x), "a wait that is missing shows"
        for same in (stream, stream.handle):
            found = call(program, x=hidden(x), by=2.0, stream=same)
            assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
        found = call(program, x=Interface(hidden(x), stream=stream.handle), by=2.0)
        assert rank != 0 or np.array_equal(found.numpy(), 2 * x)
        for known in (1, 2):
            call(program, x=Interface(on(x), stream=known), by=2.0, stream=known)
        for waits in (False, True):  # for the current stream of PyTorch
            given = hidden(x)
            if waits:
                with_current(stream, wait_for_tensors, given._device, given)
            found = call(program, x=given, by=2.0)
            assert rank != 0 or np.array_equal(found.numpy(), 2 * x if waits else 0 * x)
        kept, Device.order = Device.order, lambda *_: 0  # no wait
        found = call(program, x=late(x), by=2.0)
        Device.order = kept
        assert rank != 0 or np.array_equal(found.numpy(), 0 * x), "a wait that is missing shows"
        refused(program, "stream='s' is no stream", x=on(x), by=2.0, stream="s")
        refused(program, "the stream 0x10 is none of the device", x=on(x), by=2.0, stream=16)
        given = Interface(on(x), stream=0)
        refused(program, "its stream is 0, which the protocol forbids", x=given, by=2.0)


def with_current(stream: DeviceStream, function: Callable[..., Any], *arguments: Any) -> None:
    """Call a function where PyTorch says that a stream is its current one."""
    import torch

    current = SimpleNamespace(cuda_stream=stream.handle)
    kept, torch.cuda.current_stream = torch.cuda.current_stream, lambda _: current
    function(*arguments)
    torch.cuda.current_stream = kept


def of_cupy() -> None:
    """An array of a library called CuPy goes in, and one of it comes out, behind its stream."""
    stream = DeviceStream("emulated")
    made: list[Any] = []

    class Array(Interface):
        pass

    def empty(shape: Any, dtype: Any) -> Array:
        made.append(DeviceArray(shape, dtype, "emulated"))
        return Array(made[-1])

    library = ModuleType("cupy")
    library.empty, Array.__module__ = empty, "cupy"
    library.cuda = SimpleNamespace(get_current_stream=lambda: stream)
    sys.modules["cupy"] = library
    with compiled(scaled) as program:
        x = np.arange(1.0, N + 1)
        found = call(program, x=Array(on(x)), by=2.0)
        if rank == 0:
            assert isinstance(found, Array)
            assert found.array is made[-1]
            assert np.array_equal(found.array.numpy(), 2 * x)
    del sys.modules["cupy"]


def refusals() -> None:
    """What cannot be used where it lies is refused on all ranks, with what to write instead."""
    with pytest.raises(distspmd.errors.ArgumentError, match="no negative extents"):
        DeviceArray((3, -1), float, DEVICE)
    with pytest.raises(TypeError, match=r"Write \.numpy\(\) for a copy"):
        np.asarray(DeviceArray(3, float, DEVICE))
    x, y = values()
    with compiled(damped) as program:
        good = on(x)
        refused(program, "float64[30], but it has the type float32.", x=on(np.float32(x)), y=y)
        refused(program, "float64[30], but it has the shape [29].", x=on(x[1:]), y=y)
        wide = on(np.stack([x, x], axis=1))[:, 0]
        refused(program, "C-contiguous, but it has the strides [2]", x=wide, y=y)
        refused(program, "but it is read-only", x=x, y=good.read_only())
        found = call(program, x=good.read_only(), y=y.copy())
        assert rank != 0 or found is not None
        refused(program, "but it requires a gradient", x=x, y=Differentiable(good))
        call(program, x=Differentiable(good), y=y.copy())
        refused(program, "shares memory with", x=good, y=good)
        elsewhere = FirstForm(good, (dlpack.CUDA, 0))
        refused(program, "lies in the memory of CUDA device 0, but the program", x=elsewhere, y=y)
        host = Interface(good, data=(y.ctypes.data, False))
        refused(program, "lies at an address that is none of the device", x=host, y=y)
        masked = Interface(good, mask=good)
        refused(program, "cannot be used where it lies: it has a mask", x=masked, y=y)
        odd = Interface(good, data=(good.address + 4, False))
        refused(program, "begins at an address that is no multiple of 8", x=odd, y=y)
    with compiled(scaled) as program:
        refused(program, "an array in the memory of a device was given", x=x, by=on([2.0]))
    lowered = distspmd.lower(scaled, {}) if rank == 0 else None
    with distspmd.compile(lowered, comm) as program:
        refused(program, "or compile the program with device=", x=on(x), by=2.0)
        refused(program, "has no argument 'stream'", x=x, by=2.0, stream=1)


def decorated() -> None:
    """Functions that ranks call together take them, too, also with sizes of each call."""

    @distspmd.program(device=DEVICE)
    def doubled(x):
        return x * 2

    for shape in ((8,), (3, 4)):
        given = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
        found = doubled(on(given), stream=1) if rank == 0 else doubled()
        assert rank != 0 or np.array_equal(found.numpy(), 2 * given)
    doubled.close()


def sizes() -> None:
    """Programs of symbolic sizes find them in arrays of devices."""
    rows = dace.symbol("rows")

    def summed(x: dace.float64[rows, 3]) -> Any:
        return x + 1

    lowered = distspmd.lower(summed, {}) if rank == 0 else None
    with distspmd.compile(lowered, comm, device=DEVICE) as program:
        given = np.ones((5, 3))
        found = call(program, x=on(given))
        assert rank != 0 or np.array_equal(found.numpy(), given + 1)


def kept() -> None:
    """Later calls allocate nothing: results have the memory of those that nobody has any more."""

    def doubled(x: dace.float64[LARGE]):
        return x * 2

    device = device_of_process(KINDS["emulated"])
    fail = device._library.distspmd_emulated_fail
    with compiled(doubled, arguments={"x": "distributed", "__return": "distributed"}) as program:
        x = np.arange(float(LARGE))
        (box,) = program.layout("x").box(rank)
        mine, wanted = on(program.tile("x", x)), 2 * x[slice(*box)]
        assert wanted.nbytes > 1 << 20
        first = program(x=mine)
        row = program(x=on(program.tile("x", -x)))[1:3]  # a view has its array's memory
        fail(b"allocation:1")
        for _ in range(3):
            found = program(x=mine)
            assert np.array_equal(found.numpy(), wanted)
            del found
        fail(b"")
        assert np.array_equal(first.numpy(), wanted), "nobody else got what somebody has"
        assert np.array_equal(row.numpy(), -wanted[1:3])
        del row, first

    assert (device, wanted.nbytes) in device_arrays._kept
    fail(b"allocation:1")
    on(np.zeros(LARGE + 7))  # for this there is memory when what is kept is given back
    assert (device, wanted.nbytes) not in device_arrays._kept
    most, device.nbytes = device.nbytes, 8 * 2 * wanted.nbytes
    for count in (1, 2, 3):  # an eighth of the memory is kept at most
        made = [on(wanted) for _ in range(count)]
        del made
        assert device_arrays._bytes_kept(device) == min(count, 2) * wanted.nbytes
    device.nbytes = most

    one, others = on(wanted), [on(wanted)]

    class Interrupted(dict):
        """A finalizer runs while what is kept is being changed, as the garbage collector may."""

        def pop(self, *given):
            found = super().pop(*given)
            others.clear()
            return found

    device_arrays.free_kept()
    device_arrays._kept = Interrupted()
    del one
    assert not others
    assert device_arrays._bytes_kept(device) == 2 * wanted.nbytes, "none is lost"
    device_arrays.free_kept()
    device_arrays._kept = {}


def tensors() -> None:
    """A tensor of PyTorch goes in, and a tensor comes out; it is written where it lies."""
    import torch
    from training import emulated_torch

    if DEVICE == "emulated":
        emulated_torch.register()
    with compiled(damped) as program:
        for _ in range(2):
            x, y = values()
            given = torch.from_numpy(y.copy()).to(DEVICE)
            found = call(program, x=torch.from_numpy(x).to(DEVICE), y=given)
            y[1:-1] += x[:-2] - x[2:]
            if rank == 0:
                assert isinstance(found, torch.Tensor)
                assert found.device.type == DEVICE
                assert np.isclose(float(found.cpu()), y.sum())
                assert np.array_equal(given.cpu().numpy(), y)


for part in (kinds, whole, control, held, decorated, sizes, tensors):
    part()
if DEVICE == "emulated":
    for part in (streams, of_cupy, refusals, kept):
        part()
comm.Barrier()
if rank == 0:
    print("all is right")
