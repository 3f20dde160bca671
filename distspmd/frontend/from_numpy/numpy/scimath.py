"""``np.emath``: functions of real numbers that are complex outside of their domain.

Whether an array is real or complex is what the run finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.real_or_complex import real_or_complex
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import function


def _negative(run: Context, x: object) -> Any:
    return run.call(np.less, [x, 0], {})


def _above_one(run: Context, x: object) -> Any:
    return run.call(np.greater, [run.call(np.abs, [x], {}), 1], {})


def _opened(run: Context, called: object, outside: Any, x: Any, *rest: object) -> Any:
    """A function of an array, which is complex where any element is outside of the domain."""
    tensor = run.tracer.tensor(x)
    if tensor.dtype.kind == "c":
        return run.call(called, [x, *rest], {})
    found = np.result_type(tensor.dtype, np.complex64)
    values = run.call(called, [run.call(np.asarray, [x], {"dtype": found}), *rest], {})
    is_outside = run.tracer.tensor(run.call(np.any, [outside(run, tensor)], {}))
    is_complex = run.tracer.stored_anew(is_outside, "is_complex")
    return real_or_complex(run.tracer, run.tracer.stored(run.tracer.tensor(values)), is_complex)


def _add(name: str, outside: Callable[..., Any]) -> None:
    called = getattr(np, name)

    @function(getattr(np.emath, name))
    def handler(run: Context, x: object) -> Any:
        return _opened(run, called, outside, x)


for _name in ("sqrt", "log", "log2", "log10"):
    _add(_name, _negative)
for _name in ("arcsin", "arccos", "arctanh"):
    _add(_name, _above_one)


@function(np.emath.power)
def _power(run: Context, x: object, p: object) -> Any:
    return _opened(run, np.power, _negative, x, p)


@function(np.emath.logn)
def _logn(run: Context, n: object, x: object) -> Any:
    one, other = (run.call(np.emath.log, [value], {}) for value in (x, n))
    return run.call(np.divide, [one, other], {})
