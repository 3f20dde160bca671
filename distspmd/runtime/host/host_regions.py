"""Statements of a function that CPython runs inside of a compiled program, and their objects.

Objects that are neither arrays nor numbers stay here, on the rank that runs the statements, by a
name of the program. They are forgotten when the program has run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.errors import ProgramValueError

OBJECTS: dict[str, Any] = {}
"""Objects of Python of the program that runs, by what it calls them."""


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
        results = []
        for value, name in zip(found, kept, strict=True):
            if isinstance(name, str):
                OBJECTS[name] = value
            else:
                results.append(_filled(name) if value is MISSING else value)
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


def _filled(form: Any) -> Any:
    """Something of the form of a result that nobody reads."""
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
        variable = name.rpartition(".")[2]
        raise UnboundLocalError(f"the variable {variable!r} is read before it gets a value")
    return OBJECTS[name]


def fresh(value: Any) -> Any:
    """A value of its own, which may be changed."""
    return copy.deepcopy(value)
