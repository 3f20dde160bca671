"""Values of this package as JSON and arrays, and back: what pickle does, but it runs no code.

What is read can only be numbers, texts, containers, arrays of numbers, and objects of classes that
this package has. A class of somebody else is found among the modules that are imported, and none is
imported for it. An object that occurs twice is written once.
"""

from __future__ import annotations

import base64
import datetime
import importlib
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

import numpy as np

from distspmd.errors import SavedError
from distspmd.plans.messages import Messages
from distspmd.runtime.calls.form import CallForm
from distspmd.runtime.calls.portable import Unsent

_OURS = "distspmd."
_PLAIN = (bool, int, float, str)


class CannotSave(Exception):
    """A value that is no record: it is told by its type."""


class Writer:
    """Writes values one after the other.

    Attributes:
        arrays: bytes of all arrays that were written.
    """

    def __init__(self) -> None:
        self.arrays = bytearray()
        self._kinds: dict[type, int] = {}
        self._known: dict[int, int] = {}
        self._held: list[Any] = []  # so that no address is used again
        self._in_call_form = False

    def text(self, value: Any) -> str:
        """JSON of a value, with the classes in it.

        Raises:
            CannotSave: something in it is no record.
        """
        found = self._value(value)
        return json.dumps({"classes": [*map(_described, self._kinds)], "value": found})

    def _value(self, value: Any) -> Any:
        if value is None or type(value) in _PLAIN:
            return value
        if isinstance(value, Enum):
            return ["enum", self._kind(type(value)), value.name]
        kind: type = type(value)
        if kind in (tuple, list):
            return [kind.__name__, *map(self._value, value)]
        if kind in (set, frozenset):
            return [kind.__name__, *map(self._value, sorted(value, key=repr))]
        if kind in (dict, OrderedDict, MappingProxyType):
            return ["dict", *([self._value(k), self._value(v)] for k, v in value.items())]
        write = self._special(value)
        if write is not None:
            return write(value)
        if id(value) in self._known:
            return ["same", self._known[id(value)]]
        found = self._object(value)
        self._known[id(value)] = len(self._known)
        self._held.append(value)
        return found

    def _special(self, value: Any) -> Callable[[Any], Any] | None:
        """How a value is written that is neither a container nor an object of ours."""
        kind = type(value)
        if isinstance(value, np.dtype):
            return lambda v: ["dtype", _descr(v)]
        if isinstance(value, np.generic):
            return lambda v: ["number", _descr(v.dtype), base64.b64encode(v.tobytes()).decode()]
        if isinstance(value, type):
            return lambda v: ["class", v.__module__, v.__qualname__]
        if (kind.__module__, kind.__name__) == ("torch", "dtype"):
            return lambda v: ["torch", str(v).removeprefix("torch.")]
        return _SPECIAL.get(kind)

    def _object(self, value: Any) -> Any:
        if type(value) is np.ndarray:
            return self._array(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return ["named", *self._value(type(value))[1:], *map(self._value, value)]
        if not _is_ours(type(value)):
            if not self._in_call_form:
                raise CannotSave(type(value).__qualname__)
            return ["unsent", type(value).__qualname__]
        outer = self._in_call_form
        self._in_call_form |= isinstance(value, CallForm)
        state = [self._value(part) for part in _state_of(value)]
        self._in_call_form = outer
        return ["object", self._kind(type(value)), *state]

    def _array(self, array: Any) -> Any:
        descr, start = _descr(array.dtype), len(self.arrays)
        self.arrays += np.ascontiguousarray(array).tobytes()
        return ["array", descr, [*array.shape], start]

    def _kind(self, kind: type) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))


class Reader:
    """Reads what a :class:`Writer` wrote.

    Args:
        arrays: bytes of all arrays.
    """

    def __init__(self, arrays: bytes | memoryview) -> None:
        self._arrays = arrays
        self._kinds: list[tuple[type, tuple[str, ...]]] = []
        self._known: list[Any] = []

    def value(self, text: str | bytes) -> Any:
        """The value of its JSON.

        Raises:
            SavedError: it is of another version of this package, or names a class that is not here.
        """
        read = json.loads(text)
        self._kinds = [_found(*described) for described in read["classes"]]
        return self._value(read["value"])

    def _value(self, read: Any) -> Any:
        if not isinstance(read, list):
            return read
        tag, *rest = read
        if tag in ("object", "array", "named", "unsent"):
            found = getattr(self, f"_{tag}")(*rest)
            self._known.append(found)
            return found
        if tag in _CONTAINERS:
            return _CONTAINERS[tag](map(self._value, rest))
        if tag == "dict":
            return {self._value(key): self._value(value) for key, value in rest}
        if tag == "same":
            return self._known[rest[0]]
        if tag == "enum":
            return self._kinds[rest[0]][0][rest[1]]  # type: ignore[index]  # an Enum
        if tag == "torch":
            return getattr(importlib.import_module("torch"), rest[0])
        return _READ[tag](*rest)

    def _object(self, number: int, *values: Any) -> Any:
        kind, names = self._kinds[number]
        state = dict(zip(names, map(self._value, values), strict=True))
        made: Any = object.__new__(kind)
        if isinstance(made, Messages):
            made.__setstate__(state)
        else:
            for name, value in state.items():
                object.__setattr__(made, name, value)
        return made

    def _array(self, descr: Any, shape: Sequence[int], start: int) -> Any:
        dtype = _dtype(descr)
        count = int(np.prod(shape, dtype=np.int64))
        found = np.frombuffer(self._arrays, dtype, count, start) if count else np.empty(0, dtype)
        return found.reshape(shape).copy()

    def _named(self, module: str, name: str, *values: Any) -> Any:
        return _class(module, name)._make(map(self._value, values))

    def _unsent(self, kind: str) -> Unsent:
        return Unsent(kind)


_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
}
_SPECIAL: dict[type, Callable[[Any], Any]] = {
    complex: lambda v: ["complex", v.real, v.imag],
    bytes: lambda v: ["bytes", base64.b64encode(v).decode()],
    slice: lambda v: ["slice", v.start, v.stop, v.step],
    range: lambda v: ["range", v.start, v.stop, v.step],
    type(...): lambda _: ["ellipsis"],
    datetime.date: lambda v: ["date", v.isoformat()],
}


def _class(module: str, name: str) -> Any:
    """A class of an imported module; of this package, whether it is imported or not."""
    if module.startswith(_OURS):
        try:
            importlib.import_module(module)
        except ImportError:
            raise SavedError(f"it has {module}.{name}, which this version does not have") from None
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, type):
        raise SavedError(
            f"it has objects of the class {name!r} of {module!r}, which is not imported. Import "
            "that module first; nothing is imported because a file says so"
        )
    return found


def _found(module: str, name: str, names: Sequence[str]) -> tuple[type, tuple[str, ...]]:
    """A class of this package, whose objects have the attributes that were written."""
    kind = _class(module, name) if module.startswith(_OURS) else None
    if kind is None or not _is_ours(kind) or list(_names_of(kind)) != list(names):
        raise SavedError(f"{name} of {module} is another one in this version")
    return kind, tuple(names)


def _number(descr: Any, content: str) -> Any:
    return np.frombuffer(base64.b64decode(content), _dtype(descr))[0]


_READ: Mapping[str, Callable[..., Any]] = {
    "complex": complex,
    "bytes": base64.b64decode,
    "slice": slice,
    "range": range,
    "ellipsis": lambda: ...,
    "date": datetime.date.fromisoformat,
    "dtype": lambda descr: _dtype(descr),
    "number": _number,
    "class": _class,
}


def _is_ours(kind: type) -> bool:
    own = kind.__module__.startswith(_OURS)
    return own and (is_dataclass(kind) or issubclass(kind, Enum | Messages))


def _described(kind: type) -> list[Any]:
    return [kind.__module__, kind.__qualname__, list(_names_of(kind))]


def _names_of(kind: type) -> Sequence[str]:
    """Names of the attributes by which an object of a class is written, in their order."""
    if issubclass(kind, Messages):
        return kind.STATE
    if issubclass(kind, Enum):
        return ()
    return [each.name for each in fields(kind)]  # type: ignore[arg-type]  # a dataclass


def _state_of(value: Any) -> list[Any]:
    """The attributes of an object, as it would be sent to another process."""
    has_own = any("__getstate__" in vars(kind) for kind in type(value).__mro__[:-1])
    own = value.__getstate__() if has_own else None
    state = own if isinstance(own, dict) else {}
    return [state[n] if n in state else getattr(value, n) for n in _names_of(type(value))]


def _descr(dtype: np.dtype[Any]) -> Any:
    """A dtype as texts and numbers."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return [_descr(base), list(shape)]
    if dtype.names is not None and dtype.fields is not None:
        own = [dtype.fields[name] for name in dtype.names]
        formats, offsets = [_descr(field[0]) for field in own], [field[1] for field in own]
        return [[*dtype.names], formats, offsets, dtype.itemsize, dtype.isalignedstruct]
    if dtype.hasobject or np.dtype(dtype.str) != dtype:
        raise CannotSave(f"an array of {dtype}")
    return dtype.str


def _dtype(descr: Any) -> np.dtype[Any]:
    if isinstance(descr, str):
        return np.dtype(descr)
    if len(descr) == 2:
        return np.dtype((_dtype(descr[0]), tuple(descr[1])))
    names, formats, offsets, itemsize, aligned = descr
    types = [_dtype(each) for each in formats]
    kinds = {"names": names, "formats": types, "offsets": offsets, "itemsize": itemsize}
    found: np.dtype[Any] = np.dtype(kinds, align=aligned)  # type: ignore[call-overload]
    return found
