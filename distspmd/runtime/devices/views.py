"""Arrays in the memory of a device as programs take them: where they lie, without a copy.

An array of another library says by ``__dlpack__`` or by ``__cuda_array_interface__`` where it
lies, and on which stream somebody may still write it; one of our own is asked directly. Results are
of the kind that went in.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ArgumentError, DeviceError
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.arrays import LEGACY, DeviceArray, checked, described, handle_of
from distspmd.runtime.devices.dlpack import Described
from distspmd.runtime.devices.kinds import Device


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
        return self.lies.size

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.lies.nbytes

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after another."""
        return self.lies.is_contiguous

    @property
    def base(self) -> Any:
        """Whose memory it is."""
        return self.source

    @property
    def memory(self) -> Any:
        """The allocation of ours in which it lies; None if it lies in another one."""
        return self.lies.keep if isinstance(self.source, DeviceArray) else None

    def misfit(self, dtype: np.dtype[Any], shape: tuple[int, ...], is_written: bool) -> str:
        """Why a program cannot take it for an argument, and what to write; empty if it can."""
        lies = self.lies
        if lies.dtype is None or lies.dtype != dtype:  # None is float64 for NumPy
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
    if isinstance(value, DeviceArray):
        return True
    found = dlpack.device_of(value)
    if found is not None:
        return found[0] not in (dlpack.CPU, dlpack.PINNED)
    return hasattr(value, "__cuda_array_interface__")


def stand_in(value: Any) -> Any:
    """An array of the host like one in the memory of a device; anything else as it is."""
    if not is_on_device(value):
        return value
    lies = _told(f"a {type(value).__name__}", value, None)
    if lies.dtype is None:
        what = f"a {type(value).__name__} of {lies.type_name}{list(lies.shape)}"
        raise ArgumentError(
            f"{what} was given, a type that NumPy has not. Convert it to one it has."
        )
    return np.empty(lies.shape, lies.dtype)


def view_of(name: str, value: Any, device: Device, waits: bool = True) -> DeviceView:
    """What a program needs of an array of its device; the program's stream waits for its writer.

    Of a tensor of PyTorch it need not, if it has waited for another one of the same call.

    Raises:
        ArgumentError: it lies on another device, or cannot be handed out.
    """
    if isinstance(value, DeviceArray) and value.device == device.kind:  # nobody else is asked
        return DeviceView(described(value, waits), value, device)
    needs_gradient = bool(getattr(value, "requires_grad", False))
    source = value.detach() if needs_gradient else value
    own, found = device.dlpack_device, dlpack.device_of(source)
    if found is not None and found != own and found[0] != dlpack.MANAGED:
        raise ArgumentError(
            f"{name!r} lies in the memory of {dlpack.name_of(found)}, but the program runs on the "
            f"device {device.kind!r}, number {own[1]} of type {own[0]}. Copy it there, or pass a "
            "NumPy array."
        )
    lies = _told(f"{name!r}, a {type(value).__name__},", source, device if waits else None)
    view = DeviceView(lies, value, device, needs_gradient)
    if view.size and device.has(lies.address) != 1:
        raise ArgumentError(
            f"{name!r}, a {type(value).__name__}, lies at an address that is none of the device "
            f"{device.kind!r} on which the program runs. Pass a NumPy array, or one of that device."
        )
    return view


def _told(what: str, value: Any, device: Device | None) -> Described:
    """The same as :func:`_described`.

    Raises:
        ArgumentError: whatever its library raises.
    """
    try:
        return _described(value, device)
    except Exception as problem:  # libraries have types of their own
        said = str(problem) or type(problem).__name__
        raise ArgumentError(f"{what} cannot be used where it lies: {said}") from problem


def _described(value: Any, device: Device | None) -> Described:
    """What an array says of itself; with a device, its default stream waits for who writes it."""
    if isinstance(value, DeviceArray):
        return described(value, device is not None)
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
        checked(device, device.order(LEGACY, stream), stream)
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


def wait_for(device: Device, stream: Any) -> None:
    """Let programs begin when what was queued on a stream is done.

    Raises:
        ArgumentError: it is no stream of the device.
    """
    handle = handle_of(stream)
    checked(device, device.order(LEGACY, handle), handle)


def _library_of(array: Any) -> str:
    return type(array).__module__.partition(".")[0]


def returned_like(source: Any, made: Any) -> Any:
    """A result of ours as an array of the library of another one, if that takes it where it lies.

    That are those with ``__array_namespace__().from_dlpack``, as JAX has it, and Numba.

    Raises:
        ArgumentError: the library does not take it, though it has such a function.
    """
    if not isinstance(made, DeviceArray) or isinstance(source, DeviceArray):
        return made
    try:
        if _library_of(source) == "numba":
            from numba import cuda  # type: ignore[import-not-found,unused-ignore]

            return cuda.as_cuda_array(made)
        if hasattr(source, "__array_namespace__"):
            return source.__array_namespace__().from_dlpack(made)
    except Exception as problem:
        raise ArgumentError(
            f"a result, {made!r}, cannot be a {type(source).__name__}: {problem}. Pass arguments "
            "as arrays of distspmd.runtime.DeviceArray, PyTorch or CuPy to get results of these."
        ) from problem
    return made


def empty_like(source: Any, shape: tuple[int, ...], dtype: np.dtype[Any], device: Device) -> Any:
    """A new array of the kind of another one; programs may write it from now on.

    Raises:
        ArgumentError: the other library has no such type.
        DeviceError: the device has no memory for it.
    """
    library = "" if isinstance(source, DeviceArray) else _library_of(source)
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
        return DeviceArray.for_result(shape, dtype, device.kind)
    except DeviceError as problem:
        raise DeviceError(f"a result of {dtype}{list(shape)}: {problem}") from None
