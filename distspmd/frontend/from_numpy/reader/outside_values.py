"""What a function sees beside its arguments, as calls of it are compared.

A program is made for the values of globals, of closures, and of attributes of objects and modules,
as they are when the function is read. They may be others at a later call. So the key of a call has
a text for each of them that the code of the function names, of functions that it calls too: more
than the program may depend on, and never less.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from distspmd.execution.call_keys import is_all_code
from distspmd.frontend.from_numpy.reader.origins import is_library_module, is_own_class

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic, range, slice)
_DEPTH = 12
"""Of lists in lists and objects in objects, behind which only the identity counts."""


def outside_key(functions: Iterable[Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Values that functions and objects see from outside, which can be compared.

    Returns:
        They, and the objects of which the identity stands there: who keeps the first keeps these,
        so that no other object is taken for one of them.
    """
    found, look = look_outside(functions)
    return found, look.held


@dataclass(eq=False)
class Seen:
    """What functions see from outside, all of it objects that do not change.

    Attributes:
        names: dictionaries with names and what is there, which may be nothing.
        functions: with their code and their defaults.
        cells: of closures, with what is in them.
    """

    names: list[tuple[Mapping[str, Any], str, Any]] = field(default_factory=list)
    functions: list[tuple[Any, Any, Any]] = field(default_factory=list)
    cells: list[tuple[Any, Any]] = field(default_factory=list)

    def is_the_same(self) -> bool:
        """Whether all is there that was there."""
        for known, name, value in self.names:
            if known.get(name, _NOTHING) is not value:
                return False
        for function, code, defaults in self.functions:
            if function.__code__ is not code or function.__defaults__ is not defaults:
                return False
        return all(_is_bound(cell) and cell.cell_contents is value for cell, value in self.cells)


_NOTHING = object()


def look_outside(functions: Iterable[Any]) -> tuple[tuple[Any, ...], Look]:
    """What functions see from outside, as it is compared, and what has looked at it."""
    roots, names = list(functions), frozenset[str]()
    while True:  # attributes count that any of the code names, of which some is found on the way
        look = Look(names)
        found = tuple(look.at(root) for root in roots)
        if look.named <= names:
            return found, look
        names |= look.named


def is_seen_whole(value: object) -> bool:
    """Whether the key has all that an argument is, which is code: its type is all else of it."""
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return True
    if isinstance(value, list | tuple | dict):
        return is_all_code(value)
    return is_all_code(value) and is_own_class(type(value))


class Look:
    """Goes from functions to what they see.

    Attributes:
        held: objects of which the identity counts.
        seen_alone: all that is seen; None where it may change while it stays the same object.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self.names, self.named = names, set[str]()
        self.seen: dict[int, int] = {}
        self.held: list[Any] = []
        self.kinds: set[type] = set()
        self.depth = 0
        self.seen_alone: Seen | None = Seen()

    def at(self, value: object) -> Any:
        """What a value is, as it is compared."""
        if isinstance(value, _PLAIN):
            return type(value).__name__, repr(value)
        if isinstance(value, ModuleType) and is_library_module(value.__name__):
            return value.__name__
        if id(value) in self.seen:
            return "again", self.seen[id(value)]
        if self.depth > _DEPTH:
            return "deep", self._itself(value)
        if not _stays_as_it_is(value):
            self.seen_alone = None
        self.seen[id(value)] = len(self.seen)
        self.depth += 1
        try:
            return type(value).__name__, *self._parts(value)
        finally:
            self.depth -= 1

    def _parts(self, value: object) -> Iterator[Any]:
        if isinstance(value, np.ndarray):
            yield from self._array(value)
        elif isinstance(value, Mapping):
            yield from ((self.at(key), self.at(each)) for key, each in list(value.items()))
        elif isinstance(value, Sequence):
            yield from map(self.at, list(value))
        elif isinstance(value, set | frozenset):
            yield from sorted(repr(self.at(each)) for each in value)
        elif isinstance(value, FunctionType):
            yield from self._function(value)
        elif isinstance(value, MethodType):
            yield from map(self.at, (value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            yield from map(self.at, (value.func, value.args, value.keywords))
        elif isinstance(value, ModuleType):
            yield from self._named_in(vars(value))
        elif isinstance(value, type):
            yield from self._class(value)
        else:
            yield from self._object(value)

    def _itself(self, value: object) -> int:
        self.held.append(value)
        return id(value)

    def _array(self, value: np.ndarray[Any, Any]) -> Iterator[Any]:
        yield value.dtype.str
        yield value.shape
        if value.dtype.hasobject:
            yield from map(self.at, value.ravel())
        else:
            yield hashlib.blake2b(np.ascontiguousarray(value).data, digest_size=16).digest()

    def _function(self, function: FunctionType) -> Iterator[Any]:
        yield self._itself(function.__code__)
        self._see_function(function)
        if is_library_module(str(function.__module__)):
            return
        used, named = _names_in(function.__code__)
        self.named |= named
        known = function.__globals__
        yield from ((name, self.at(known[name])) for name in used if name in known)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
        yield from ((name, self._cell(cell)) for name, cell in cells)
        yield from map(self.at, (function.__defaults__, function.__kwdefaults__))
        yield from self._named_in({"__wrapped__": getattr(function, "__wrapped__", None)})

    def _see_function(self, function: FunctionType) -> None:
        """Note what the function is, and what its names stand for."""
        seen, own = self.seen_alone, vars(function)
        cells = function.__closure__ or ()
        if seen is None or function.__kwdefaults__ or not all(map(_is_bound, cells)):
            self.seen_alone = None
            return
        seen.functions.append((function, function.__code__, function.__defaults__))
        seen.names.append((own, "__wrapped__", own.get("__wrapped__", _NOTHING)))
        seen.cells += [(cell, cell.cell_contents) for cell in cells]
        known, (used, _) = function.__globals__, _names_in(function.__code__)
        seen.names += [(known, name, known.get(name, _NOTHING)) for name in used]

    def _cell(self, cell: Any) -> Any:
        try:
            return self.at(cell.cell_contents)
        except ValueError:  # not bound yet
            return None

    def _class(self, kind: type, without: str = "") -> Iterator[Any]:
        yield self._itself(kind)
        if is_own_class(kind):
            for each in kind.__mro__[:-1]:
                own = {name: part for name, part in vars(each).items() if name != without}
                yield from self._named_in(own, are_methods_seen=True)

    def _object(self, value: object) -> Iterator[Any]:
        inner = getattr(value, "f", None) or getattr(value, "function", None)
        if isinstance(inner, FunctionType):  # what others have decorated
            yield self.at(inner)
        if not is_own_class(type(value)):
            yield self._itself(value)
            return
        if type(value) not in self.kinds:
            self.kinds.add(type(value))  # of an object that is there, nothing more is initialised
            yield from self._class(type(value), without="__init__")
        yield from self._named_in(getattr(value, "__dict__", {}))
        slots = (n for kind in type(value).__mro__ for n in getattr(kind, "__slots__", ()))
        yield from self._named_in({n: getattr(value, n) for n in slots if hasattr(value, n)})

    def _named_in(
        self, values: Mapping[str, Any], *, are_methods_seen: bool = False
    ) -> Iterator[Any]:
        """Attributes that some code names."""
        for name, each in list(values.items()):
            inner = getattr(each, "fget", None) or getattr(each, "__func__", each)
            is_method = are_methods_seen and isinstance(inner, FunctionType)
            if is_method or name in self.names or name == "__wrapped__":
                yield name, self.at(inner)


def _stays_as_it_is(value: object) -> bool:
    """Whether an object has no parts that may change, but those that are looked at for themselves.

    A function may get other code and defaults, which are looked at as well.
    """
    if isinstance(value, FunctionType | tuple | frozenset):
        return True
    if isinstance(value, type):
        return not is_own_class(value)
    is_decorated = hasattr(value, "f") or hasattr(value, "function")
    return not (isinstance(value, _OF_PARTS) or is_decorated or is_own_class(type(value)))


_OF_PARTS = (np.ndarray, Mapping, Sequence, set, MethodType, functools.partial, ModuleType)


def _is_bound(cell: Any) -> bool:
    try:
        return cell.cell_contents is not _NOTHING
    except ValueError:
        return False


@functools.lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """Names that code may read from its module, and those that it may read as attributes."""
    used, texts = dict.fromkeys(code.co_names), set[str]()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner, named = _names_in(constant)
            used |= dict.fromkeys(inner)
            texts |= named
        elif isinstance(constant, str) and constant.isidentifier():  # getattr(x, "name")
            texts.add(constant)
    return tuple(used), frozenset(texts | used.keys())
