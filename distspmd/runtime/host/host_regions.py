"""Statements of a function that CPython runs inside of a compiled program, and their objects.

Objects that are neither arrays nor numbers stay here, on the rank that runs the statements, by a
name of the program. They are forgotten when the program has run.
"""

from __future__ import annotations

import copy
import gc
import pickle
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

import cloudpickle
import numpy as np

from distspmd.errors import ProgramValueError

OBJECTS: dict[str, Any] = {}
"""Objects of Python of the program that runs, by what it calls them."""


class KeptObjects(dict[str, Any]):
    """Objects of Python that a program returns, by their names."""

    @classmethod
    def of(cls, names: Sequence[str]) -> KeptObjects:
        """Those of the program that has just run on this rank, if it has run without an error."""
        return cls({name: OBJECTS[name] for name in names if name in OBJECTS})

    def __missing__(self, name: str) -> Any:
        raise UnboundLocalError(_UNBOUND.format(_variable(name)))

    def packed(self, program: str) -> bytes:
        """Them all for other processes; what is one object stays one.

        Raises:
            ProgramValueError: one of them cannot be copied, by its name.
        """
        whole = _packed(dict(self))
        if isinstance(whole, bytes):
            return whole
        for name, value in self.items():
            problem = _packed(value)
            if isinstance(problem, Exception):
                told = _variable(name)
                what = "what it returns" if told.startswith("__") else repr(told)
                raise ProgramValueError(
                    f"{program}: other processes cannot get {what}, a {type(value).__qualname__} "
                    f"of rank 0: {problem}. Return what it has of arrays, numbers, texts and "
                    "containers of these."
                ) from problem
        raise whole

    @classmethod
    def unpacked(cls, sent: bytes) -> KeptObjects:
        """What :meth:`packed` has made elsewhere."""
        return cls(pickle.loads(sent))


def _packed(value: Any) -> bytes | Exception:
    """A copy, by names of classes or with those that no module has; the error if there is none."""
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # an object of the user may raise anything
        try:
            return bytes(cloudpickle.dumps(value, protocol=5))
        except Exception as problem:
            return problem


NO_OBJECTS = KeptObjects()
_UNBOUND = "the variable {!r} is read before it gets a value"


def _variable(name: str) -> str:
    """The variable of the program that keeps an object, or a part of what is returned."""
    return name.split(".")[1] if "." in name else name


def own_memory(arrays: Sequence[Any]) -> None:
    """Let objects that stay here own what they have of arrays in the memory of the program.

    This memory gets other values, and is freed, when the objects are still there.

    Args:
        arrays: that a region has got and that something still refers to.
    """
    lent = {id(array) for array in arrays}
    stack: list[Any] = [*OBJECTS.values()]
    done: set[int] = set()
    while stack:
        each = stack.pop()
        if id(each) in done or isinstance(each, type | ModuleType | CodeType):
            continue
        done.add(id(each))
        if isinstance(each, np.ndarray):
            if id(each) in lent or id(each.base) in lent:
                content: Any = each.copy().__reduce__()[2]
                each.__setstate__(content)  # it stays the same object
        elif isinstance(each, FunctionType):
            stack += [*(each.__closure__ or ()), each.__defaults__, each.__kwdefaults__]
        else:
            stack += gc.get_referents(each)


class Region:
    """Statements as a function of the variables that they read.

    Attributes:
        function: returns the variables that the rest of the program reads.
        lines: where they stand, in words.
    """

    def __init__(self, function: Callable[..., Any], lines: str) -> None:
        self.function, self.lines = function, lines
        self.__module__ = str(function.__module__)
        self.__qualname__ = function.__name__
        for part in ("__code__", "__closure__", "__defaults__", "__kwdefaults__"):
            setattr(self, part, getattr(function, part))

    def __reduce__(self) -> Any:
        return Region, (self.function, self.lines)

    def __call__(
        self, kept: Sequence[Any], changed: Sequence[int], told: Sequence[Any], *given: Any
    ) -> Any:
        """Run the statements.

        Args:
            kept: for each result the name by which it stays here, or the form of an array or a
                number that the program gets.
            changed: places of arrays that they change.
            told: names of what they read, names of the results, and names of arrays that the rest
                of the program may change in place.
            given: what they read.
        """
        found = self.function(*given)
        self._check_apart(given, found, *told)
        results = [
            _taken(value, form)
            for value, form in zip(found, kept, strict=True)
            if not (isinstance(form, str) and _keep(form, value))
        ]
        return (*results, *(given[place] for place in changed))

    def _check_apart(
        self,
        given: Sequence[Any],
        found: Sequence[Any],
        inputs: Sequence[str],
        results: Sequence[str],
        elsewhere: Sequence[str],
    ) -> None:
        """A result is a copy in the program: it must be no other variable's array that is changed.

        Raises:
            ProgramValueError: it is.
        """
        before = [*zip(inputs, given, strict=True)]
        for name, value in zip(results, found, strict=True):
            for other, array in before:
                is_changed = name != other and (name in elsewhere or other in elsewhere)
                if is_changed and _is_shared(value, array):
                    raise ProgramValueError(
                        f"Python runs {self.lines}, after which {name!r} and {other!r} are one "
                        "array, or parts of one. Other lines change it in place, where they are "
                        f"two. Write {name} = ... outside of these lines, or copy it: .copy()."
                    )
            before.append((name, value))


def _is_shared(one: Any, other: Any) -> bool:
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and np.may_share_memory(one, other)


class _Missing:
    """What a variable is that no statement has bound, where the program jumps."""

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = _Missing()


def found_in(names: Sequence[str], variables: Mapping[str, Any]) -> tuple[Any, ...]:
    """Variables where statements end by a jump; some may have no value."""
    return tuple(variables.get(name, MISSING) for name in names)


def _keep(name: str, value: Any) -> bool:
    """Let an object stay here; none where no statement has bound the variable."""
    OBJECTS.pop(name, None)
    if value is not MISSING:
        OBJECTS[name] = value
    return True


def _taken(value: Any, form: Any) -> Any:
    """What the program gets of a result: all of it, or its parts that do not stay here."""
    if value is MISSING:
        return _filled(form)
    if form[0] != "parts":
        return value
    _, kind, parts = form
    given = items(value) if type(value).__name__ == kind else {}
    if [*given] != [key for key, _ in parts]:
        return value  # which has another form, and is told so
    own = {
        key: _taken(given[key], part)
        for key, part in parts
        if not (isinstance(part, str) and _keep(part, given[key]))
    }
    return rebuilt_of(type(value), own)


def items(value: Any) -> dict[Any, Any]:
    """The parts of a tuple, list or dictionary by their places or keys."""
    return value if isinstance(value, dict) else dict(enumerate(value))


def rebuilt_of(kind: type, parts: Mapping[Any, Any]) -> Any:
    """A tuple, list or dictionary of parts by places or keys."""
    return dict(parts) if kind is dict else kind(parts.values())


_KINDS = {kind.__name__: kind for kind in (tuple, list, dict)}


def _filled(form: Any) -> Any:
    """Something of the form of a result that nobody reads."""
    if form[0] == "parts":
        own = {key: _filled(part) for key, part in form[2] if not isinstance(part, str)}
        return rebuilt_of(_KINDS[form[1]], own)
    if isinstance(form, list) and form and form[0] == "tuple":
        return tuple(map(_filled, form[1]))
    kind, dtype, shape = form
    whole = np.zeros(shape, dtype)
    return whole if kind == "array" else whole[()].item() if kind == "python" else whole[()]


def kept_object(name: str) -> Any:
    """An object by its name.

    Raises:
        UnboundLocalError: no statement has bound the variable.
    """
    if name not in OBJECTS:
        raise UnboundLocalError(_UNBOUND.format(_variable(name)))
    return OBJECTS[name]


def fresh(value: Any) -> Any:
    """A value of its own, which may be changed."""
    return copy.deepcopy(value)
