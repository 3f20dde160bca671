"""Arguments that are lists, tuples or dictionaries of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.errors import ArgumentError
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.values import View, is_carried
from distspmd.runtime.calls.form import Part, rebuilt

_PLAIN = (np.ndarray, np.memmap)


def element_type(program: str, name: str, value: Any) -> DType:
    """The type of the elements of an argument.

    Raises:
        ArgumentError: it is not covered, or the array is of a class that means something else.
    """
    if isinstance(value, np.ndarray) and type(value) not in _PLAIN:
        raise ArgumentError(
            f"{program}: the argument {name!r} is a {type(value).__name__}, whose methods and "
            f"operators may mean something else than those of arrays. Pass np.asarray({name}); "
            "the program may make an array of that class of it."
        )
    dtype: DType = np.dtype(value.dtype)
    if not is_carried(dtype):
        raise ArgumentError(
            f"{program}: the argument {name!r} has elements of the type {dtype}, which are not "
            "covered."
        )
    return dtype


def form_of(value: object) -> Any:
    """An argument with the name of the argument of the SDFG in the place of each array in it."""
    if isinstance(value, View):
        return Part(value.container.name)
    if isinstance(value, list | tuple):
        return rebuilt(value, [form_of(each) for each in value])
    return {k: form_of(v) for k, v in value.items()} if isinstance(value, dict) else value
