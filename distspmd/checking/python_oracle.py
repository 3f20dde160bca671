"""The Python function of a program, as NumPy runs it: what a lowered program is compared with."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from dace import symbolic
from dace.frontend.python.parser import DaceProgram

from distspmd.api.steps import undecorated

FunctionOf = Callable[..., Any]


def python_function(program: Any, sizes: Mapping[str, int]) -> FunctionOf | None:
    """The function of a program, with numbers for symbolic sizes; None of what has no function.

    Args:
        program: a function, a ``@dace.program``, or an SDFG.
        sizes: numbers of all symbols.
    """
    function = getattr(program, "f", program)
    if not isinstance(function, types.FunctionType):
        return None
    method = getattr(program, "methodobj", None)
    plain = _with_values(function, sizes, {})

    def run(**arguments: Any) -> Any:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(**arguments) if method is None else plain(method, **arguments)

    return run


def _with_values(
    function: types.FunctionType, sizes: Mapping[str, int], made: dict[int, types.FunctionType]
) -> types.FunctionType:
    """A function whose globals and closure have numbers for symbols, and functions for programs."""
    if id(function) in made:
        return made[id(function)]
    values: dict[str, Any] = {}
    cells = tuple(types.CellType(cell.cell_contents) for cell in function.__closure__ or ())
    found = types.FunctionType(
        function.__code__, values, function.__name__, function.__defaults__, cells
    )
    found.__kwdefaults__ = function.__kwdefaults__
    made[id(function)] = found
    values.update(function.__globals__)
    for name in _names(function.__code__):
        if name in values:
            values[name] = _value(values[name], sizes, made)
    for cell in cells:
        cell.cell_contents = _value(cell.cell_contents, sizes, made)
    return found


def _names(code: types.CodeType) -> set[str]:
    """Names that a function, and those inside of it, may take from outside."""
    inner = [_names(each) for each in code.co_consts if isinstance(each, types.CodeType)]
    return set(code.co_names).union(*inner)


def _value(value: Any, sizes: Mapping[str, int], made: dict[int, types.FunctionType]) -> Any:
    value = undecorated(value)
    if isinstance(value, DaceProgram):
        return _with_values(value.f, sizes, made)
    if isinstance(value, symbolic.symbol):
        return sizes.get(str(value), value)
    return value
