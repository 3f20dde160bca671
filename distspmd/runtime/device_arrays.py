"""Arrays in the memory of a device: our own, and those of others, used where they lie.

An array of another library says by ``__dlpack__`` or by ``__cuda_array_interface__`` where it
lies, and on which stream somebody may still write it. Programs take it without a copy, and give
results of the kind that went in. :class:`DeviceArray` is the kind that needs no other library, and
the only one on an emulated device.
"""

from __future__ import annotations

import math
import operator
import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from distspmd.errors import ArgumentError, DeviceError
from distspmd.runtime import dlpack
from distspmd.runtime.devices import Device, device_kind, device_of_process
from distspmd.runtime.dlpack import Described

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
        ArgumentError: there is no such kind of device, or elements are objects of Python.
        DeviceError: the device has no memory for it.
    """

    def __init__(self, shape: int | Sequence[int], dtype: DTypeLike, device: str) -> None:
        extents = (shape,) if isinstance(shape, int) else tuple(map(operator.index, shape))
        kind = np.dtype(dtype)
        if kind.kind not in "biufc" or not kind.isnative:
            raise ArgumentError(f"a device has no arrays of {kind}. Use numbers of this machine.")
        found = device_of_process(device_kind(device))
        nbytes = math.prod(extents) * kind.itemsize
        held = _Memory(found, nbytes)
        strides = dlpack.contiguous(extents)
        self._lies = Described(held.address, extents, strides, kind, False, held)
        self._device = found
        self.device = device
        self.stream: int | None = None
        self._written_from: Any = None

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
        _checked(self._device, self._device.copy_on(handle, self.address, values), handle)
        self._written_from, self.stream = values, handle  # the values stay until they are copied

    def numpy(self) -> NDArray[Any]:
        """A copy on the host."""
        if self.stream is not None:
            self._device.order(LEGACY, self.stream)
        if self._lies.strides == dlpack.contiguous(self.shape):
            found = np.empty(self.shape, self.dtype)
            self._device.download(self.address, found)
            return found
        rows = [self[n].numpy() for n in range(self.shape[0])]
        return np.stack(rows) if rows else np.empty(self.shape, self.dtype)

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


class _Memory:
    """Memory of a device, freed when nobody has it."""

    def __init__(self, device: Device, nbytes: int) -> None:
        dlpack.free_returned(device.letting_go)
        self.address = device.allocate(nbytes)
        weakref.finalize(self, device.free, self.address)


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
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream or LEGACY
    asked = getattr(stream, "__cuda_stream__", None)
    if asked is not None:
        found = asked() if callable(asked) else asked
        return int(found[1]) or LEGACY
    for name in ("cuda_stream", "ptr"):  # of PyTorch, and of CuPy
        if isinstance(getattr(stream, name, None), int):
            return int(getattr(stream, name)) or LEGACY
    raise ArgumentError(
        f"stream={stream!r} is no stream. Pass one of PyTorch or CuPy, something with "
        "__cuda_stream__, or the number that CUDA knows it by."
    )


# -- arrays of others -----------------------------------------------------------------------------


@dataclass(frozen=True)
class DeviceView:
    """An array in the memory of the device on which a program runs.

    Attributes:
        lies: where, and how.
        source: the caller's array.
        device: that device.
        needs_gradient: whether PyTorch would differentiate what is computed from it.
    """

    lies: Described
    source: Any
    device: Device
    needs_gradient: bool = False

    def numpy(self) -> NDArray[Any]:
        """A copy on the host, of an array whose elements lie one after another."""
        found = np.empty(self.shape, self.lies.dtype)
        self.device.download(self.lies.address, found)
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.lies.shape

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.size * (self.lies.dtype.itemsize if self.lies.dtype else 1)

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after another."""
        steps = zip(self.shape, self.lies.strides, dlpack.contiguous(self.shape), strict=True)
        return not self.size or all(n == 1 or own == whole for n, own, whole in steps)

    @property
    def base(self) -> Any:
        """Whose memory it is."""
        return self.source

    def misfit(self, dtype: np.dtype[Any], shape: tuple[int, ...], is_written: bool) -> str:
        """Why a program cannot take it for an argument, and what to write; empty if it can."""
        lies = self.lies
        if lies.dtype != dtype:
            return f"but it has the type {lies.dtype or lies.type_name}. Convert it to {dtype}."
        if lies.shape != shape:
            return f"but it has the shape {list(lies.shape)}."
        if not self.is_contiguous:
            steps = list(lies.strides)
            return f"C-contiguous, but it has the strides {steps} (elements). Pass a copy of it."
        if self.size and lies.address % max(1, dtype.alignment):
            return (
                f"but it begins at an address that is no multiple of {dtype.alignment}. "
                "Pass a copy of it."
            )
        if is_written and lies.is_read_only:
            return "that can be written, because the program writes it, but it is read-only."
        if is_written and self.needs_gradient:
            return (
                "that can be written, because the program writes it, but it requires a gradient. "
                "Pass it with .detach()."
            )
        return ""

    def as_bits(self) -> DeviceView:
        """The same memory as whole numbers of 16 bits, if its type is one of that many."""
        if self.lies.type_name not in ("float16", "bfloat16"):
            return self
        return replace(self, lies=replace(self.lies, dtype=np.dtype(np.uint16), type_name=""))

    def reshape(self, shape: Sequence[int]) -> DeviceView:
        """The same elements in another shape, if they lie one after another; else as it is."""
        if not self.is_contiguous or math.prod(shape) != self.size:
            return self
        extents = tuple(shape)
        lies = replace(self.lies, shape=extents, strides=dlpack.contiguous(extents))
        return replace(self, lies=lies)


def is_on_device(value: Any) -> bool:
    """Whether something is an array in the memory of a device, as far as it says so itself."""
    if isinstance(value, np.ndarray | np.generic | int | float | complex):
        return False
    found = dlpack.device_of(value)
    if found is not None:
        return found[0] not in (dlpack.CPU, dlpack.PINNED)
    return hasattr(value, "__cuda_array_interface__")


def stand_in(value: Any) -> Any:
    """An array of the host like one in the memory of a device; anything else as it is."""
    if not is_on_device(value):
        return value
    described = _described(value, None)
    return np.empty(described.shape, described.dtype)


def view_of(name: str, value: Any, device: Device, waits: bool = True) -> DeviceView:
    """What a program needs of an array of its device; the program's stream waits for its writer.

    Of a tensor of PyTorch it need not, if it has waited for another one of the same call.

    Raises:
        ArgumentError: it lies on another device, or cannot be handed out.
    """
    needs_gradient = bool(getattr(value, "requires_grad", False))
    source = value.detach() if needs_gradient else value
    own, found = device.dlpack_device, dlpack.device_of(source)
    if found is not None and found != own and found[0] != dlpack.MANAGED:
        raise ArgumentError(
            f"{name!r} lies in the memory of {dlpack.name_of(found)}, but the program runs on the "
            f"device {device.kind!r}, number {own[1]} of type {own[0]}. Copy it there, or pass a "
            "NumPy array."
        )
    try:
        lies = _described(source, device if waits else None)
    except (BufferError, RuntimeError, TypeError, ValueError, AttributeError) as problem:
        raise ArgumentError(
            f"{name!r}, a {type(value).__name__}, cannot be used where it lies: {problem}"
        ) from problem
    view = DeviceView(lies, value, device, needs_gradient)
    if view.size and device.has(lies.address) != 1:
        raise ArgumentError(
            f"{name!r}, a {type(value).__name__}, lies at an address that is none of the device "
            f"{device.kind!r} on which the program runs. Pass a NumPy array, or one of that device."
        )
    return view


def _described(value: Any, device: Device | None) -> Described:
    """What an array says of itself; with a device, its default stream waits for who writes it."""
    if dlpack.is_tensor(value):
        if device is not None and value.is_cuda:
            wait_for_tensors(device, value)
        return _of_tensor(value)
    if hasattr(value, "__dlpack__") and dlpack.device_of(value) is not None:
        # -1: nobody waits
        return dlpack.take(value, LEGACY if device else -1)
    found = value.__cuda_array_interface__
    if found.get("mask") is not None:
        raise ValueError("it has a mask")
    dtype = np.dtype(found["typestr"])
    address, is_read_only = found["data"]
    shape = tuple(found["shape"])
    steps = found.get("strides")
    strides = dlpack.contiguous(shape)
    if steps is not None:
        if any(step % dtype.itemsize for step in steps):
            raise ValueError(f"its strides {tuple(steps)} are no multiples of an element")
        strides = tuple(step // dtype.itemsize for step in steps)
    stream = found.get("stream")
    if stream == 0:
        raise ValueError("its stream is 0, which the protocol forbids because it is ambiguous")
    if stream is not None and device is not None:
        _checked(device, device.order(LEGACY, stream), stream)
    return Described(address or 0, shape, strides, dtype, bool(is_read_only), value)


def wait_for_tensors(device: Device, tensor: Any) -> None:
    """Let programs begin when PyTorch has done what is queued on its current stream."""
    stream = sys.modules["torch"].cuda.current_stream(tensor.device)
    if stream.cuda_stream:  # else it is the one on which programs run
        wait_for(device, stream)


def _of_tensor(tensor: Any) -> Described:
    """A tensor by its pointer: a step of training has hundreds, and capsules take too long."""
    strided = sys.modules["torch"].strided
    if tensor.layout is not strided or tensor.is_conj() or tensor.is_neg():
        raise ValueError("it is sparse, or says what is yet to be computed of its elements")
    name = str(tensor.dtype).removeprefix("torch.")
    known = name in np.sctypeDict and np.dtype(name).kind in "biufc"
    dtype = np.dtype(name) if known else None
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    return Described(tensor.data_ptr(), shape, strides, dtype, False, tensor, name)


def _checked(device: Device, code: int, stream: int) -> None:
    if code:
        raise ArgumentError(
            f"the stream {stream:#x} is none of the device {device.kind!r}: "
            f"{device.describe(code)}."
        )


def wait_for(device: Device, stream: Any) -> None:
    """Let programs begin when what was queued on a stream is done.

    Raises:
        ArgumentError: it is no stream of the device.
    """
    handle = handle_of(stream)
    _checked(device, device.order(LEGACY, handle), handle)


def empty_like(source: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> Any:
    """A new array of the kind of another one; programs may write it from now on.

    Raises:
        ArgumentError: the other library has no such type.
        DeviceError: the device has no memory for it.
    """
    library = type(source).__module__.partition(".")[0]
    if library == "torch":
        import torch

        kind = getattr(torch, dtype.name, None)
        if not isinstance(kind, torch.dtype):
            raise ArgumentError(f"PyTorch has no tensors of {dtype} for a result.")
        made = torch.empty(shape, dtype=kind, device=source.device)
        if made.is_cuda:  # memory that PyTorch had before may still be in use on its stream
            wait_for(device, torch.cuda.current_stream(source.device))
        return made
    if library == "cupy":
        import cupy  # type: ignore[import-not-found,unused-ignore]

        made = cupy.empty(shape, dtype)
        wait_for(device, cupy.cuda.get_current_stream())
        return made
    try:
        return DeviceArray(shape, dtype, device.kind)
    except DeviceError as problem:
        raise DeviceError(f"a result of {dtype}{list(shape)}: {problem}") from None
