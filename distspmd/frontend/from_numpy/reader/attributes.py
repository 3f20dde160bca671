"""Attributes of arrays: what they give, and what becomes of those that are assigned to."""

from __future__ import annotations

import ast
import types
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import decided_types
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag, apply_real, from_parts
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex
from distspmd.frontend.from_numpy.arrays.shapes import transpose
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader import objects, python_errors
from distspmd.frontend.from_numpy.reader.calls import Method
from distspmd.frontend.from_numpy.reader.mutation import before_change, may_change

_OF_MEMORY = frozenset(["base", "ctypes", "data", "flags", "strides", "__array_interface__"])
_KINDS = (np.ndarray, np.float64, np.int64, float, int)
"""What an array may be in Python, numbers among them."""


def attribute(run: Context, base: object, name: str) -> Any:
    """``base.name``."""
    tracer = run.tracer
    if isinstance(base, Tensor):
        return of_tensor(run, base, name)
    if objects.has_operators(base):
        return objects.attribute(run, base, name)
    if isinstance(base, super):
        return objects.above(run, base, name)
    if isinstance(base, np.ufunc) and name in ("reduce", "accumulate", "outer", "at"):
        return Method(base, name)
    if isinstance(base, sympy.Basic):
        if name in ("real", "numerator"):
            return base
        return Method(tracer.whole(base), name)
    if isinstance(base, RunList):
        return lists.ListMethod(base, name)
    if may_change(base, name):
        before_change(run, base)
    try:
        return run.outside(name, getattr(base, name))
    except AttributeError as problem:
        is_module = isinstance(base, types.ModuleType)
        tracer.fail(problem, told=str(problem), by_name=is_module)


def of_tensor(run: Context, base: Tensor, name: str) -> Any:
    """``base.name`` of an array: a value, or a method."""
    handler = run.functions.get(("attribute", name))
    if handler is not None and isinstance(base, RealOrComplex):
        return decided_types.attribute(run, handler, name, base)
    if handler is not None:
        return handler(run, base)
    if name in _OF_MEMORY:
        run.tracer.refuse(f"{name!r} is about an array in memory, and a program has tiles of it")
    if name not in run.methods and not any(hasattr(kind, name) for kind in _KINDS):
        run.tracer.fail(AttributeError(f"an array has no attribute {name!r}"))
    return Method(base, name)


def assign(run: Context, target: ast.Attribute, value: object) -> None:
    """``target.value.attr = value``."""
    tracer, base, name = run.tracer, run.value(target.value), target.attr
    if isinstance(base, Tensor | np.ndarray) and name == "shape":
        _set_shape(run, target.value, base, value)
    elif isinstance(base, Tensor | np.ndarray) and name in ("T", "real", "imag"):
        array = run.writable(target.value)
        if not isinstance(array, View):
            tracer.refuse(f"an assignment to the attribute {name!r} of what is no stored array")
        _set_part(run, array, name, tracer.tensor(value))
    elif objects.is_own(base):
        objects.set_attribute(run, base, name, value)
    elif objects.is_closure(base) and not (has_data(value) or tracer.inner):
        vars(base)[name] = value
    else:
        python_errors.check_attribute_of(run, base, name, value)
        tracer.refuse(f"an assignment to the attribute {name!r}")


def _set_part(run: Context, array: View, name: str, value: Tensor) -> None:
    """``array.T = value``, or one of its parts."""
    tracer = run.tracer
    if name == "T":
        tracer.assign(transpose(tracer, array), value)  # type: ignore[arg-type]
        return
    if array.dtype.kind != "c":
        if name == "imag":
            tracer.refuse("TypeError: array does not have imaginary part to set")
        tracer.assign(array, value)
        return
    value = tracer.broadcast(apply_real(value), array.shape)
    rest = (apply_imag if name == "real" else apply_real)(array)
    tracer.assign(array, from_parts(value, rest) if name == "real" else from_parts(rest, value))


def _set_shape(run: Context, node: ast.expr, base: object, shape: object) -> None:
    """``x.shape = shape``: the variable is a view of the same elements from now on."""
    tracer = run.tracer
    every = [v for frame in tracer.frames for v in frame.variables.values() if v is base]
    if not isinstance(node, ast.Name) or len(every) > 1:
        tracer.refuse("an assignment to the shape of an array that has several names; reshape")
    if isinstance(base, View) and base.container.is_argument:
        tracer.refuse("an assignment to the shape of an argument; write x = x.reshape(...)")
    if isinstance(base, Tensor) and not isinstance(base, View):
        base = tracer.stored(base)
    made = run.call(np.reshape, [base, shape], {})
    if isinstance(base, View) and made.container is not base.container:
        tracer.refuse("an assignment to 'shape' that needs a copy; write x = x.reshape(...)")
    run.variables[node.id] = made
