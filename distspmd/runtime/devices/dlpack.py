"""DLPack: how libraries of arrays hand memory to each other, also of devices, without a copy.

An array hands out a capsule around a structure of C. Whoever takes it keeps the capsule, and with
it the memory, for as long as it uses either. See https://dmlc.github.io/dlpack.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

CPU, CUDA, PINNED, MANAGED, EXTENSION = 1, 2, 3, 13, 12
"""Types of devices, of those that DLPack counts: of the emulated one it knows no more than that."""

_NAMES = {CPU: "the host", CUDA: "CUDA device", PINNED: "pinned memory", MANAGED: "managed memory"}
_CODE = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLPack's number of each kind of types, by its letter in NumPy."""
_TYPES = {(_CODE[kind.kind], 8 * kind.itemsize): kind for kind in map(np.dtype, "?bhiqBHIQefdFD")}
"""By their numbers and bits."""
_BFLOAT = 4
"""A kind that NumPy has not."""
_TENSORS = {"cpu": CPU, "cuda": CUDA, "emulated": EXTENSION}
"""By the names of PyTorch's devices; its tensors do not hand themselves out on all of them."""
_READ_ONLY = 1
_FIRST, _VERSIONED = b"dltensor", b"dltensor_versioned"  # capsules keep the address of their name
_NEWEST = (1, 0)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("number", ctypes.c_int32),
        ("dimensions", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    """The first form, whose capsule is called ``dltensor``."""

    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    """The form since version 1, whose capsule is called ``dltensor_versioned``."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


@dataclass(frozen=True)
class Described:
    """An array as DLPack or another protocol describes it.

    Attributes:
        address: of its first element.
        shape: its extents.
        strides: in elements.
        dtype: of its elements; None where NumPy has none, and then ``type_name`` says which.
        is_read_only: whether nobody may write it.
        keep: what keeps its memory.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype[Any] | None
    is_read_only: bool
    keep: Any
    type_name: str = ""

    @property
    def size(self) -> int:
        """The number of its elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of its elements."""
        return self.size * (self.dtype.itemsize if self.dtype else 1)

    @cached_property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after another."""
        steps = zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        return not self.size or all(n == 1 or own == whole for n, own, whole in steps)


def device_of(value: Any) -> tuple[int, int] | None:
    """The type and the number of the device in which an array lies; None if it cannot say."""
    asked = getattr(value, "__dlpack_device__", None)
    if asked is None:
        return None
    if is_tensor(value) and value.device.type in _TENSORS:
        return _TENSORS[value.device.type], value.device.index or 0
    try:
        kind, number = asked()
    except Exception:  # it has no such place, as a tensor without memory
        return None
    return int(kind), int(number)


def is_tensor(value: Any) -> bool:
    """Whether something is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, getattr(torch, "Tensor", ()))


def name_of(device: tuple[int, int]) -> str:
    """A device, for messages."""
    kind, number = device
    return f"{_NAMES.get(kind, f'device of type {kind}')} {number}" if kind != CPU else _NAMES[CPU]


def take(value: Any, stream: int | None) -> Described:
    """An array of another library, ready for what comes into a stream from now on.

    Raises:
        BufferError, RuntimeError, ValueError: the library does not hand it out.
    """
    named = {} if stream is None else {"stream": stream}
    try:
        capsule = value.__dlpack__(**named, max_version=_NEWEST)
    except TypeError:  # of a library that knows the first form alone
        capsule = value.__dlpack__(**named)
    versioned = bool(_is_valid(capsule, _VERSIONED))
    if versioned:
        whole = ctypes.cast(_pointer(capsule, _VERSIONED), _AsVersioned).contents
        if whole.major > _NEWEST[0]:  # of which nobody knows what it has behind this number
            raise BufferError(
                f"it is handed out in version {whole.major}.{whole.minor} of DLPack, though "
                f"{_NEWEST[0]}.{_NEWEST[1]} was asked for"
            )
        tensor, is_read_only = whole.tensor, bool(whole.flags & _READ_ONLY)
    else:
        tensor = ctypes.cast(_pointer(capsule, _FIRST), _AsManaged).contents.tensor
        is_read_only = False
    shape = tuple(tensor.shape[d] for d in range(tensor.dimensions))
    strides = contiguous(shape)
    if tensor.strides:
        strides = tuple(tensor.strides[d] for d in range(tensor.dimensions))
    dtype, name = _type_of(tensor)
    address = (tensor.data or 0) + tensor.offset
    return Described(address, shape, strides, dtype, is_read_only, capsule, name)


def _type_of(tensor: _Tensor) -> tuple[np.dtype[Any] | None, str]:
    """The type of elements, None where NumPy has none, and its name."""
    code, bits, lanes = tensor.code, tensor.bits, tensor.lanes
    if lanes == 1 and (found := _TYPES.get((code, bits))):
        return found, found.name
    of_lanes = f" in {lanes} lanes" if lanes != 1 else ""
    kind = f"bfloat{bits}" if code == _BFLOAT else f"type {code} of DLPack with {bits} bits"
    return None, kind + of_lanes


@dataclass(frozen=True)
class LettingGo:
    """Functions of C by which others let go of what they were handed, as they are in a library.

    Attributes:
        delete: the address of what they call with the structure.
        drop: the address of the destructor of a capsule.
        following: gives the address of a structure that nobody needs any more, each once, or None.
    """

    delete: int
    drop: int
    following: Callable[[], int | None]


def hand_out(described: Described, device: tuple[int, int], by: LettingGo, versioned: bool) -> Any:
    """A capsule of an array, which keeps its memory until whoever takes it lets it go.

    Of a type that NumPy has not, ``dtype`` is one of as many bits, and ``type_name`` is its own.
    """
    assert described.dtype is not None
    free_returned(by)
    rank = len(described.shape)
    shape = (ctypes.c_int64 * max(1, rank))(*described.shape)
    strides = (ctypes.c_int64 * max(1, rank))(*described.strides)
    made = _Versioned() if versioned else _Managed()
    tensor = made.tensor
    tensor.data, tensor.device, tensor.number = described.address, *device
    tensor.dimensions, tensor.lanes, tensor.offset = rank, 1, 0
    is_bfloat = described.type_name.startswith("bfloat")
    tensor.code = _BFLOAT if is_bfloat else _CODE[described.dtype.kind]
    tensor.bits = described.dtype.itemsize * 8
    tensor.shape = ctypes.cast(shape, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
    made.deleter = by.delete
    if isinstance(made, _Versioned):
        made.major, made.minor = _NEWEST
        made.flags = _READ_ONLY if described.is_read_only else 0
    at = ctypes.addressof(made)
    _handed_out[at] = (made, shape, strides, described.keep)
    return _capsule(at, _VERSIONED if versioned else _FIRST, by.drop)


def free_returned(by: LettingGo) -> int:
    """Forget what others have let go; how many arrays they still have."""
    while (at := by.following()) is not None:
        _handed_out.pop(at, None)
    return len(_handed_out)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of an array without gaps, in elements."""
    found: list[int] = []
    after = 1
    for extent in reversed(shape):
        found.append(after)
        after *= max(1, extent)
    return tuple(reversed(found))


_handed_out: dict[int, Any] = {}
"""What others may still use, by the address of its structure."""

_AsManaged, _AsVersioned = ctypes.POINTER(_Managed), ctypes.POINTER(_Versioned)

_python = ctypes.pythonapi
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _python)
)
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _python)
)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", _python)
)
