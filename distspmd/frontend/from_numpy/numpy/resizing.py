"""``ndarray.resize``: the variable of an array gets another one, of the new shape."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import METHODS

_INSTEAD = "write np.resize(x, shape), or make an array of the new shape and assign its part"


def _resize(run: Context, base: Tensor, *shape: Any, refcheck: bool = True) -> None:
    """``base.resize(shape)``: its elements in their order, with zeros behind them."""
    tracer = run.tracer
    name = _name_of(run, base)
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    extents = tuple(tracer.as_whole(n, "a length") for n in given)
    if not all(isinstance(n, int) for n in (*extents, *base.shape)):
        tracer.refuse(f"resize to or from a length that is not a number; {_INSTEAD}")
    flat = run.call(np.ravel, [base], {})
    before, count = math.prod(base.shape), math.prod(extents)
    if count < before:
        flat = indexing.read(tracer, flat, slice(0, count))
    elif count > before:
        rest = run.call(np.zeros, [count - before], {"dtype": base.dtype})
        flat = run.call(np.concatenate, [[flat, rest]], {})
    run.variables[name] = tracer.stored_anew(run.call(np.reshape, [flat, extents], {}), name)


def _name_of(run: Context, base: Tensor) -> str:
    """The one variable of an array that has its elements for itself."""
    tracer = run.tracer
    called = next(
        (
            part.func.value.id
            for part in ast.walk(tracer.node)
            if isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "resize"
            and isinstance(part.func.value, ast.Name)
        ),
        "",
    )
    if run.variables.get(called) is not base:
        tracer.refuse(f"resize of an array that is no variable's; {_INSTEAD}")
    if tracer.inner or tracer.guarded:
        tracer.refuse(f"resize in a loop, or in a branch by a condition of the run; {_INSTEAD}")
    if isinstance(base, View):
        every = [v for frame in tracer.frames for v in frame.variables.values()]
        seen = [v for v in every if isinstance(v, View) and v.container is base.container]
        if base.container.is_argument or not base.is_whole or len(seen) > 1:
            tracer.refuse(
                f"resize of an argument, of a part of an array, or of an array that has other "
                f"names; {_INSTEAD}"
            )
    return called


METHODS["resize"] = _resize
