"""Arrays in the memory of a device, of the kind that needs no other library.

It is the only kind on an emulated device. How programs take it, and arrays of other libraries, says
:mod:`distspmd.runtime.devices.views`.
"""

from __future__ import annotations

import ctypes
import math
import operator
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from distspmd.errors import ArgumentError
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.dlpack import Described
from distspmd.runtime.devices.kinds import Device, device_kind, device_of_process

LEGACY = 1
"""The stream on which programs run, as both protocols call it: CUDA's legacy default stream."""


class DeviceArray:
    """An array in the memory of a device.

    It has no arithmetic: it is for what goes into programs and comes out of them. Other libraries
    take it by ``__dlpack__`` and ``__cuda_array_interface__`` where the device is one of CUDA.

    Args:
        shape: its extents.
        dtype: of its elements, a type of NumPy.
        device: the kind of device, as :func:`distspmd.compile` takes it.

    Attributes:
        shape: its extents.
        dtype: of its elements.
        strides: in bytes.
        device: the kind of device.
        stream: the stream on which it was written last, if that was not waited for.

    Raises:
        ArgumentError: there is no such kind of device, elements are objects of Python, or an
            extent is negative.
        DeviceError: the device has no memory for it.
    """

    def __init__(self, shape: int | Sequence[int], dtype: DTypeLike, device: str) -> None:
        extents = (shape,) if isinstance(shape, int) else tuple(map(operator.index, shape))
        kind = np.dtype(dtype)
        if any(extent < 0 for extent in extents):
            raise ArgumentError(f"an array has no negative extents, but the shape is {extents}.")
        if kind.kind not in "biufc" or not kind.isnative:
            raise ArgumentError(f"a device has no arrays of {kind}. Use numbers of this machine.")
        self._allocate(device_of_process(device_kind(device)), extents, kind)

    def _allocate(self, device: Device, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        held = _Memory(device, math.prod(shape) * dtype.itemsize)
        strides = dlpack.contiguous(shape)
        self._lies = Described(held.address, shape, strides, dtype, False, held)
        self._device = device
        self.device = device.kind
        self.stream: int | None = None
        self._written_from: Any = None

    @classmethod
    def for_result(cls, shape: tuple[int, ...], dtype: np.dtype[Any], device: str) -> DeviceArray:
        """The same, of a type and a kind of device that are known to be there."""
        made = object.__new__(cls)
        made._allocate(device_of_process(device_kind(device)), shape, dtype)
        return made

    @classmethod
    def of(cls, array: ArrayLike, device: str, dtype: DTypeLike | None = None) -> DeviceArray:
        """A copy of an array of the host."""
        values = np.asarray(array, dtype)
        made = cls(values.shape, values.dtype, device)
        made.write(values)
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self._lies.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its elements."""
        assert self._lies.dtype is not None
        return self._lies.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """In bytes."""
        return tuple(stride * self.dtype.itemsize for stride in self._lies.strides)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def address(self) -> int:
        """Of its first element, in the memory of the device."""
        return self._lies.address

    def __repr__(self) -> str:
        return f"DeviceArray({list(self.shape)}, {self.dtype}, device={self.device!r})"

    def __getitem__(self, index: Any) -> DeviceArray:
        """A view by integers and slices."""
        indices = index if isinstance(index, tuple) else (index,)
        if not all(i is ... or isinstance(i, int | slice) for i in indices):
            raise ArgumentError(f"an array of a device has no view at {index!r}; use slices.")
        # NumPy finds where a view begins, and its strides; nobody touches the memory
        base = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), self.shape, self.strides)
        view = base[indices if ... in indices else (*indices, ...)]
        return self._view(view, view.ctypes.data - base.ctypes.data)

    def reshape(self, *shape: Any) -> DeviceArray:
        """A view of another shape of an array without gaps."""
        extents = shape[0] if len(shape) == 1 else shape
        if self._lies.strides != dlpack.contiguous(self.shape):
            raise ArgumentError("an array of a device with gaps has no other shape.")
        view = np.empty(self.shape, np.bool_).reshape(extents)
        strides = dlpack.contiguous(view.shape)
        return self._with(replace(self._lies, shape=view.shape, strides=strides))

    def read_only(self) -> DeviceArray:
        """The same memory, which nobody may write."""
        return self._with(replace(self._lies, is_read_only=True))

    def _view(self, like: NDArray[Any], offset: int) -> DeviceArray:
        strides = tuple(step // self.dtype.itemsize for step in like.strides)
        address = self._lies.address + offset
        return self._with(replace(self._lies, address=address, shape=like.shape, strides=strides))

    def _with(self, lies: Described) -> DeviceArray:
        made = object.__new__(DeviceArray)
        made.__dict__.update(self.__dict__)
        made._lies = lies
        return made

    def write(self, array: ArrayLike, stream: Any = None) -> None:
        """Copy values of the host into an array without gaps.

        Args:
            array: of the same shape.
            stream: on which the copy is queued; where left out, it is waited for.

        Raises:
            ArgumentError: the array has another shape, or this one has gaps or is read-only.
        """
        values = np.ascontiguousarray(array, self.dtype).reshape(np.shape(array))
        self._check_whole("written")
        if values.shape != self.shape or self._lies.is_read_only:
            wrong = "is read-only" if self._lies.is_read_only else f"has {list(self.shape)}"
            raise ArgumentError(f"values of {list(values.shape)} were given, but {self!r} {wrong}.")
        if stream is None:
            self._device.upload(values, self.address)
            return
        handle = handle_of(stream)
        checked(self._device, self._device.copy_on(handle, self.address, values), handle)
        self._written_from, self.stream = values, handle  # the values stay until they are copied

    def numpy(self) -> NDArray[Any]:
        """A copy on the host."""
        described(self, waits=True)
        if self._lies.strides == dlpack.contiguous(self.shape):
            found = np.empty(self.shape, self.dtype)
            self._device.download(self.address, found)
            return found
        rows = [self[n].numpy() for n in range(self.shape[0])]
        return np.stack(rows) if rows else np.empty(self.shape, self.dtype)

    def copy(self) -> DeviceArray:
        """A copy without gaps, in memory of its own on the device."""
        described(self, waits=True)
        if self._lies.strides != dlpack.contiguous(self.shape):
            return DeviceArray.of(self.numpy(), self.device)
        made = DeviceArray(self.shape, self.dtype, self.device)
        self._device.copy(made.address, self.address, self.nbytes)
        return made

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        """NumPy would make an array of one object; a copy to the host is asked for by name."""
        raise TypeError(f"{self!r} is in the memory of a device. Write .numpy() for a copy of it.")

    def item(self) -> Any:
        """The only element, as a number of Python."""
        return self.numpy().item()

    def _check_whole(self, what: str) -> None:
        if self._lies.strides != dlpack.contiguous(self.shape):
            raise ArgumentError(f"an array of a device with gaps cannot be {what}: {self!r}.")

    # -- protocols ------------------------------------------------------------------------------

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        lies = self._lies
        whole = lies.strides == dlpack.contiguous(self.shape)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, lies.is_read_only),
            "version": 3,
            "strides": None if whole else self.strides,
            "stream": self.stream,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device.dlpack_device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule; ``stream`` is that of whoever takes it, and waits for who writes the array."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("an array of a device is handed out where it lies, without a copy")
        versioned = max_version is not None and max_version[0] >= 1
        if self._lies.is_read_only and not versioned:
            raise BufferError("the first form of DLPack has no arrays that are read-only")
        if self.stream is not None and stream != -1:
            self._device.order(stream or LEGACY, self.stream)
        keep = replace(self._lies, keep=(self._lies.keep, self._written_from))
        return dlpack.hand_out(keep, self.__dlpack_device__(), self._device.letting_go, versioned)


def described(array: DeviceArray, waits: bool) -> Described:
    """Where an array lies; if asked to, programs wait for who writes it."""
    if waits and array.stream is not None:
        array._device.order(LEGACY, array.stream)
    return array._lies


class _Memory:
    """Memory of a device, which nobody has any more when this is gone.

    To allocate and to free it takes CUDA longer than all else that a short call does. So what
    nobody has any more is kept for who asks for as much again, as the results of the next call.
    """

    def __init__(self, device: Device, nbytes: int) -> None:
        dlpack.free_returned(device.letting_go)
        self._device, self._nbytes, self.address = device, nbytes, 0
        self.address = _kept_before(device, nbytes) or device.allocate(nbytes)

    def __del__(self, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if self.address and not is_ending():  # the memory ends with the process
            _give_back(self._device, self.address, self._nbytes)


_MOST_KEPT, _PART_KEPT = 64, 8
"""How many allocations are kept, and of which part of a device's memory they are at most."""
_kept: dict[tuple[Device, int], list[int]] = {}
"""Addresses of memory that nobody has, by device and bytes; sizes that were used last are last."""
_returned: deque[tuple[Device, int, int]] = deque()
"""What is to be kept: a finalizer may run at any place, also while what is kept is changed."""
_changing = threading.Lock()


def _kept_before(device: Device, nbytes: int) -> int | None:
    if _returned:
        _settle()
    with _changing:
        addresses = _kept.pop((device, nbytes), None)
        if not addresses:
            return None
        found = addresses.pop()
        if addresses:
            _kept[device, nbytes] = addresses
    return found


def _give_back(device: Device, address: int, nbytes: int) -> None:
    if nbytes > device.nbytes // _PART_KEPT:
        device.free(address)
        return
    device.give_up(address, nbytes)
    device.make_room_by(free_kept)
    _returned.append((device, nbytes, address))
    _settle()


def _settle() -> None:
    """Keep what was returned, within the bounds, unless that is being done already."""
    if not _changing.acquire(blocking=False):
        return
    try:
        while _returned:
            device, nbytes, address = _returned.popleft()
            _kept[device, nbytes] = [*_kept.pop((device, nbytes), ()), address]
            most = device.nbytes // _PART_KEPT
            while sum(map(len, _kept.values())) > _MOST_KEPT or _bytes_kept(device) > most:
                _free_one(next(iter(_kept)))
    finally:
        _changing.release()


def _bytes_kept(device: Device) -> int:
    return sum(each * len(found) for (of, each), found in _kept.items() if of is device)


def _free_one(key: tuple[Device, int]) -> None:
    addresses = _kept[key]
    address = addresses.pop(0)
    if not addresses:
        del _kept[key]
    key[0].free(address)


def free_kept() -> int:
    """Free the memory of arrays that nobody has any more; how many allocations that were."""
    count = 0
    _settle()
    with _changing:
        while _kept:
            _free_one(next(iter(_kept)))
            count += 1
    return count


class DeviceStream:
    """A stream of a device, which work is queued on; the default stream does not wait for it.

    Raises:
        DeviceError: the device gives none.
    """

    def __init__(self, device: str) -> None:
        self._device = device_of_process(device_kind(device))
        self.handle = self._device.create_stream()
        weakref.finalize(self, self._device.destroy_stream, self.handle)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.handle

    def wait(self) -> None:
        """Wait until all that was queued is done."""
        self._device.wait_for_stream(self.handle)


def handle_of(stream: Any) -> int:
    """The number by which CUDA knows a stream: of ours, PyTorch's, CuPy's, or a number itself.

    Raises:
        ArgumentError: it is no stream.
    """
    if isinstance(stream, int | np.integer) and not isinstance(stream, bool) and stream >= 0:
        return int(stream) or LEGACY
    asked = getattr(stream, "__cuda_stream__", None)
    if asked is not None:
        found = asked() if callable(asked) else asked
        return int(found[1]) or LEGACY
    for name in ("cuda_stream", "ptr", "handle"):  # of PyTorch, of CuPy, and of Numba
        found = getattr(stream, name, None)
        if isinstance(found, ctypes.c_void_p):
            return found.value or LEGACY
        if isinstance(found, int):
            return found or LEGACY
    raise ArgumentError(
        f"stream={stream!r} is no stream. Pass one of PyTorch, CuPy or Numba, something with "
        "__cuda_stream__, or the number that CUDA knows it by."
    )


def checked(device: Device, code: int, stream: int) -> None:
    """See to it that an error's number that a call with a stream gave is none.

    Raises:
        ArgumentError: it is one.
    """
    if code:
        raise ArgumentError(
            f"the stream {stream:#x} is none of the device {device.kind!r}: "
            f"{device.describe(code)}."
        )
