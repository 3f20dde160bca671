"""Operations that Python refuses: Python itself does them, on values that stand in for the run's.

So the error and its words are Python's. A handler in the program takes it, if one is for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader.objects import class_of
from distspmd.frontend.from_numpy.reader.origins import is_own_class

_IMMUTABLE = (bool, int, float, complex, str, bytes, tuple, range, set, frozenset, type(None))
"""Classes of Python of which no part can be assigned to."""


def stand_in(value: object) -> Any:
    """A value of the class that a value has in the program; of a user's class without its methods.

    What Python does with it runs nothing of the program.
    """
    if isinstance(value, Tensor):
        is_array = value.ndim or value.is_array
        return np.zeros((1,) * value.ndim, value.dtype) if is_array else value.python_class(0)
    if isinstance(value, sympy.Basic):
        return False if value.is_Boolean else 0
    if isinstance(value, RunList):
        return []
    if isinstance(value, type) or not is_own_class(type(value)) or isinstance(value, tuple):
        return value
    name = getattr(class_of(value), "__name__", "object")
    return type(name, (), {})()


def fail(
    run: Context, operation: Callable[..., Any], *operands: object, otherwise: str = ""
) -> NoReturn:
    """Read no further: what the program does with some values, Python refuses.

    Args:
        run: the reading.
        operation: what is done, of Python, which changes none of its operands.
        operands: its values.
        otherwise: why it is refused where Python does it.

    Raises:
        KnownError: a handler around takes the error.
        Refusal: none does, or Python does it.
    """
    try:
        operation(*map(stand_in, operands))
    except Exception as problem:
        run.tracer.fail(problem)
    run.tracer.refuse(otherwise or f"{operation.__name__} of these values is not covered")


def check_item_of(run: Context, base: object, items: object, value: object) -> None:
    """Refuse ``base[items] = value`` of what has no parts that can be assigned to."""
    is_all = items is Ellipsis or (isinstance(items, tuple) and not items)
    may_be_array = isinstance(base, View) and is_all
    is_number = isinstance(base, np.generic | sympy.Basic) or (
        isinstance(base, Tensor) and not (base.ndim or base.is_array or may_be_array)
    )
    if is_number or isinstance(base, _IMMUTABLE):
        fail(run, _set_item, base, items, value)


def check_attribute_of(run: Context, base: object, name: str, value: object) -> None:
    """Refuse ``base.name = value`` of a value that has no attributes of its own in Python."""
    is_array = isinstance(base, Tensor | np.ndarray | RunList | sympy.Basic)
    if is_array or isinstance(base, (*_IMMUTABLE, list, dict, np.generic)):
        fail(run, setattr, base, name, value)


def _set_item(base: Any, items: Any, value: Any) -> None:
    base[items] = value


def check_count(run: Context, values: Sequence[Any], targets: Sequence[Any], least: int) -> None:
    """Refuse too few or too many values for the variables that they are assigned to.

    Args:
        run: the reading.
        values: that are assigned.
        targets: the variables, one of which may take several.
        least: how many of them take one value each.
    """
    have, has_star = len(values), least < len(targets)
    if have < least:
        wanted = f"at least {least}" if has_star else str(least)
        told = f"not enough values to unpack (expected {wanted}, got {have})"
        run.tracer.fail(ValueError(told))
    if have > least and not has_star:
        told = f"too many values to unpack (expected {least}, got {have})"
        run.tracer.fail(ValueError(told))


def unpack(value: Any) -> list[Any]:
    """What Python does to assign a value to several variables."""
    first, *rest = value
    return [first, *rest]


def enter(manager: Any) -> None:
    """What Python does first of ``with manager``."""
    with manager:
        pass


def iterate(values: Any) -> None:
    """What Python does first of a loop over values."""
    iter(values)
