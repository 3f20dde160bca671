"""Arrays of classes that a user has written: ``class Quaternion(np.ndarray)``.

Such an object is an array of the program with a class and attributes. What of it stays one of the
class, and what goes through ``__array_finalize__`` with which array, NumPy itself says: the call or
the operator is tried with a probe, a small array of a class like the user's that notes calls.
"""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import sympy
from numpy.matrixlib import matrix

from distspmd.frontend.from_numpy.arrays.values import ARRAY, KIND, OwnArray, Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import OfUndecidedClass
from distspmd.frontend.from_numpy.reader import matrices
from distspmd.runtime.calls.form import rebuilt

_LARGEST = 1_000_000
"""Elements of a probe, at most."""

_OF_NUMPY = ("__array_ufunc__", "__array_function__", "__array_wrap__", "__array_prepare__")


def new(run: Context, kind: type, array: Any, parent: Any) -> OwnArray:
    """An object of a class, after what its ``__array_finalize__`` does.

    Args:
        run: the reading.
        kind: the class.
        array: the elements.
        parent: the array of which it is made; None where the class makes it.
    """
    tracer = run.tracer
    for name in _OF_NUMPY:
        if _of_user(kind, name) is not None:
            tracer.refuse(f"{kind.__name__}, whose class has a method {name} of its own")
    made = OwnArray()
    vars(made).update({ARRAY: tracer.stored(tracer.tensor(array)), KIND: kind})
    tracer.made[id(vars(made))] = made
    tracer.has_own_arrays = True
    finalize = _of_user(kind, "__array_finalize__")
    if finalize is not None:
        run.call(finalize, [made, parent], {})
    return made


def make(run: Context, kind: type, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """What calling a class of arrays gives."""
    maker = _of_user(kind, "__new__") or np.ndarray.__new__
    made = run.call(maker, [kind, *arguments], keywords)
    init = _of_user(kind, "__init__")
    if init is not None and isinstance(made, OwnArray) and issubclass(made.kind, kind):
        run.call(init, [made, *arguments], keywords)
    return made


def _of_user(kind: type, name: str) -> Any:
    """A method of a class that a user has written, also a static one; None for NumPy's."""
    for each in kind.__mro__:
        if each in (np.ndarray, matrix, object):
            return None
        if name in vars(each):
            found = vars(each)[name]
            return found.__func__ if isinstance(found, staticmethod) else found
    return None


def is_of_array(own: OwnArray, name: str) -> bool:
    """Whether an attribute is one that all arrays have, which the class does not define itself."""
    return _of_user(own.kind, name) is None and hasattr(np.ndarray, name)


def plain(value: Any) -> Any:
    """A value in which arrays of a user's class are arrays."""
    if isinstance(value, OwnArray | OfUndecidedClass):
        return value.array
    if isinstance(value, tuple | list) and any(map(_has_own, value)):
        parts = [plain(part) for part in value]
        return parts if isinstance(value, list) else rebuilt(value, parts)
    return value


def writable(run: Context, value: Any) -> Any:
    """What parts are assigned into, of an array of a user's class its elements."""
    if not isinstance(value, OwnArray):
        return value
    if _of_user(value.kind, "__setitem__") is not None:
        run.tracer.refuse("an augmented assignment to a part of what sets its parts itself")
    return value.array


def _has_own(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_own, value))
    return isinstance(value, OwnArray)


# -- what NumPy says ------------------------------------------------------------------------------


class _Called(Exception):
    """NumPy, or Python, calls a method that the user has written."""

    def __init__(self, method: Any, own: Any, arguments: Sequence[Any]) -> None:
        super().__init__()
        self.method, self.own, self.arguments = method, own, arguments


def _recorder(method: Any) -> Any:
    def call(self: Any, *arguments: Any, **_: Any) -> NoReturn:
        raise _Called(method, self, arguments)

    is_called = isinstance(method, types.FunctionType) or callable(method)
    return call if is_called else property(call)


def _probe_class(kind: type) -> type:
    """A class like a user's, of which methods that NumPy may call say that they are called."""
    return kind if kind in (np.ndarray, matrix) else _made_probe(kind)


@functools.cache
def _made_probe(kind: Any) -> type:
    bases = tuple(
        _probe_class(b) if issubclass(b, np.ndarray) else object
        for b in kind.__bases__
        if issubclass(b, np.ndarray) or b is not object
    )
    content: dict[str, Any] = {"__array_finalize__": _note_parent}
    for name, value in vars(kind).items():
        if name in _NOT_RECORDED or not (hasattr(np.ndarray, name) or name in _REFLECTED):
            continue
        content[name] = value if name == "__array_priority__" else _recorder(value)
    return type(kind.__name__, tuple(dict.fromkeys(bases)), content)


_NOT_RECORDED = frozenset(
    [
        *("__array_finalize__", "__new__", "__init__", "__module__", "__doc__", "__dict__"),
        *("__weakref__", "__class__", "__setattr__", "__getattribute__", "__repr__", "__str__"),
        "__format__",
    ]
)
_REFLECTED = frozenset(f"__r{name}__" for name in ("add", "sub", "mul", "truediv", "matmul", "pow"))


def _note_parent(self: Any, parent: Any) -> None:
    self._parent = parent


class _Probe:
    """Stand-ins of values, and what stands behind them."""

    def __init__(self, run: Context) -> None:
        self.run = run
        self.behind: dict[int, Any] = {}
        self._made: dict[int, Any] = {}

    def of(self, value: Any) -> Any:
        """A small array, or a number, in the place of a value."""
        if id(value) in self._made:
            return self._made[id(value)]
        if isinstance(value, OwnArray):
            made = self._array(value.array)
            if made.ndim == 2 and made.dtype.kind in "iu":  # it has an inverse
                made += np.eye(*made.shape, dtype=made.dtype)
            made = np.asarray(made).view(_probe_class(value.kind))
        elif isinstance(value, Tensor):
            made = self._array(value)
        elif isinstance(value, sympy.Basic):
            made = 1
        elif isinstance(value, slice):
            return slice(*(self.of(end) for end in (value.start, value.stop, value.step)))
        elif isinstance(value, tuple | list):
            parts = [self.of(part) for part in value]
            return parts if isinstance(value, list) else rebuilt(value, parts)
        elif isinstance(value, type) and issubclass(value, np.ndarray):
            return _probe_class(value)
        else:
            made = value
        self._made[id(value)] = made
        self.behind[id(made)] = value
        return made

    def _array(self, tensor: Tensor) -> Any:
        shape = [n if isinstance(n, int) else 3 for n in tensor.shape]
        if np.prod(shape, dtype=float) > _LARGEST:
            self.run.tracer.refuse("an array of a user's class that has so many elements")
        if not shape and tensor.weak is not None:
            return tensor.weak(0 if tensor.weak is bool else 1)
        made = np.zeros(shape, tensor.dtype) if tensor.dtype.kind in "iub" else np.ones(shape)
        if len(shape) > 1 and tensor.dtype.kind in "fc":
            made[...] += np.eye(shape[-2], shape[-1])
        made = made.astype(tensor.dtype)
        return made if shape else made[()]

    def value(self, probe: Any) -> Any:
        """What stands behind a probe."""
        if isinstance(probe, tuple):
            return tuple(map(self.value, probe))
        return self.behind.get(id(probe), probe)

    def asked(self, function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
        """What NumPy gives of the probes.

        Raises:
            _Called: it calls a method of the user's.
            Refusal: it refuses them.
        """
        probes = [self.of(value) for value in arguments]
        named = {name: self.of(value) for name, value in keywords.items()}
        try:
            with np.errstate(all="ignore"):
                return function(*probes, **named)
        except (_Called, RecursionError):
            raise
        except Exception as problem:
            self.run.tracer.refuse(f"{type(problem).__name__}: {problem}")

    def wrapped(self, found: Any, probe: Any, kinds: Mapping[type, type]) -> Any:
        """What the program has found, of the class that NumPy says."""
        if isinstance(probe, tuple | list) and isinstance(found, tuple | list):
            pairs = zip(found, probe, strict=True)
            parts = [self.wrapped(each, own, kinds) for each, own in pairs]
            return parts if isinstance(found, list) else rebuilt(found, parts)
        if type(probe) not in kinds:
            return found
        if id(probe) in self.behind:
            return self.behind[id(probe)]
        parent = getattr(probe, "_parent", None)
        found = plain(found)
        if isinstance(probe, matrix):
            found = matrices.as_lines(self.run, found, probe.shape)
        return new(self.run, kinds[type(probe)], found, self._behind(parent))

    def _behind(self, parent: Any) -> Any:
        """The array of the program that a probe was made of."""
        while parent is not None and id(parent) not in self.behind:
            above = getattr(parent, "_parent", getattr(parent, "base", None))
            if above is None:
                return self.run.tracer.stored(self.run.tracer.tensor(np.zeros(parent.shape)))
            parent = above
        return self.behind.get(id(parent))

    def kinds(self) -> dict[type, type]:
        """The users' classes, by those of the probes."""
        owns = [value for value in self.behind.values() if isinstance(value, OwnArray)]
        return {_probe_class(own.kind): own.kind for own in owns}


@dataclass(frozen=True)
class OwnMethod:
    """A method that all arrays have, of one of a user's class.

    Attributes:
        own: the array.
        name: of the method.
        is_above: whether it is that of ``super()``, past those that the user has written.
    """

    own: OwnArray
    name: str
    is_above: bool = False


# -- calls, operators and parts -------------------------------------------------------------------

_OF_PYTHON = frozenset([abs, float, int, complex, bool, round, sum, max, min, any, all, divmod])


def called(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a call gives that has to do with arrays of a user's class; NotImplemented for others."""
    if isinstance(function, OwnMethod):
        if function.is_above:
            return above(run, function.own, function.name, arguments)
        return method(run, function.own, function.name, arguments, keywords)
    is_of_array = isinstance(getattr(function, "owner", None), Tensor)
    if is_of_array and _has_own([*arguments, *keywords.values()]):
        return method(run, function.owner, function.name, arguments, keywords)
    if not concerns(function, arguments, keywords):
        return NotImplemented
    return applied(run, function, arguments, keywords)


def concerns(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> bool:
    """Whether a call is one of NumPy's with an array of a user's class."""
    if not _has_own([*arguments, *keywords.values()]):
        return False
    if isinstance(function, np.ufunc):
        return True
    try:
        is_of_python = function in _OF_PYTHON
    except TypeError:
        return False
    module = str(getattr(function, "__module__", "") or "")
    is_numpy = module.split(".")[0] in ("numpy", "scipy", "math", "cmath")
    return is_of_python or (is_numpy and not isinstance(function, types.MethodType))


def applied(
    run: Context, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What a function of NumPy gives of arrays of a user's class."""
    if "out" in keywords:
        run.tracer.refuse("out= with arrays of a user's class")
    probe = _Probe(run)
    try:
        shown = probe.asked(function, *arguments, **keywords)
    except _Called as called:
        return _by_user(run, probe, called, function)
    named = {name: plain(value) for name, value in keywords.items()}
    found = run.call(function, [plain(value) for value in arguments], named)
    return probe.wrapped(found, shown, probe.kinds())


def _by_user(run: Context, probe: _Probe, called: _Called, function: Any) -> Any:
    """What a method of the user's gives that NumPy or Python has called."""
    own, arguments = probe.value(called.own), [probe.value(each) for each in called.arguments]
    is_special = getattr(called.method, "__name__", "").startswith("__")
    if not isinstance(own, OwnArray) or not is_special:
        name = getattr(function, "__name__", function)
        run.tracer.refuse(f"{name} of arrays of a user's class, of which it calls a method")
    found = run.call(called.method, [own, *arguments], {})
    if found is NotImplemented:
        run.tracer.refuse("an operator of arrays of a user's class, which has no method for it")
    return found


def operate(
    run: Context,
    op: ast.AST,
    function: Callable[..., Any],
    read: Callable[..., Any],
    *values: Any,
) -> Any:
    """What an operator gives of arrays of a user's class.

    Args:
        run: the reading.
        op: the operator.
        function: Python's own.
        read: what it means of arrays of a program.
        values: its operands.
    """
    probe = _Probe(run)
    try:
        shown = probe.asked(function, *values)
    except _Called as called:
        return _by_user(run, probe, called, type(op).__name__)
    found = matrices.operate(run, op, *values) if len(values) == 2 else NotImplemented
    if found is NotImplemented:
        found = read(*map(plain, values))
    return probe.wrapped(found, shown, probe.kinds())


def part(run: Context, own: OwnArray, items: Any, read: Callable[[Any, Any], Any]) -> Any:
    """``own[items]``."""
    probe = _Probe(run)
    try:
        shown = probe.asked(lambda base, key: base[key], own, items)
    except _Called as called:
        return run.call(called.method, [own, items], {})
    return probe.wrapped(read(own.array, plain(items)), shown, probe.kinds())


def rows(run: Context, own: OwnArray) -> list[Any]:
    """What an array of a user's class has along its first dimension."""
    array = own.array
    if not array.ndim or not isinstance(array.shape[0], int):
        run.tracer.refuse("an array of a user's class, of which the number of parts is not known")
    return [run.part_of(own, n) for n in range(array.shape[0])]


def attribute(run: Context, own: OwnArray, name: str, read: Callable[[Any], Any]) -> Any:
    """``own.name`` of what all arrays have: a value, or a method."""
    if callable(getattr(np.ndarray, name)):
        return OwnMethod(own, name)
    probe = _Probe(run)
    shown = probe.asked(lambda base: getattr(base, name), own)
    return probe.wrapped(read(own.array), shown, probe.kinds())


def method(
    run: Context,
    base: Any,
    name: str,
    arguments: Sequence[Any],
    keywords: Mapping[str, Any],
) -> Any:
    """What a method gives that all arrays have."""
    probe = _Probe(run)
    try:
        shown = probe.asked(_called_by_name(name), base, *arguments, **keywords)
    except _Called as called:
        return _by_user(run, probe, called, name)
    if name == "view" and isinstance(base, OwnArray):
        kind = arguments[0] if arguments else keywords.get("type", base.kind)
        if isinstance(kind, type) and issubclass(kind, np.ndarray):
            return base.array if kind is np.ndarray else new(run, kind, base.array, base)
    called_array = run.attribute(plain(base), name)
    named = {key: plain(value) for key, value in keywords.items()}
    found = run.call(called_array, [plain(value) for value in arguments], named)
    return probe.wrapped(found, shown, probe.kinds())


def _called_by_name(name: str) -> Callable[..., Any]:
    return lambda base, *given, **named: getattr(base, name)(*given, **named)


def above(run: Context, own: OwnArray, name: str, arguments: Sequence[Any]) -> Any:
    """What a method of ``super()`` gives that is the one of all arrays."""
    if name in ("__array_finalize__", "__init__"):
        return None
    if name == "__setitem__":
        return run.write_part(own.array, *map(plain, arguments))
    if name == "__getitem__":
        found = run.part_of(own.array, plain(arguments[0]))
        return new(run, own.kind, found, own) if isinstance(found, View) and found.ndim else found
    return run.tracer.refuse(f"super().{name} of an array of a user's class")


class Above:
    """``super()`` in a method of a class of arrays."""

    def __init__(self, own: OwnArray, kind: type) -> None:
        self.own, self.kind = own, kind

    def found(self, run: Context, name: str) -> Any:
        """A method of a class above."""
        mro = self.own.kind.__mro__
        for each in mro[mro.index(self.kind) + 1 :]:
            if each in (np.ndarray, matrix):
                break
            if name in vars(each):
                method = vars(each)[name]
                return types.MethodType(method, self.own)
        return OwnMethod(self.own, name, is_above=True)
