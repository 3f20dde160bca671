"""``cmath``: functions of complex numbers of Python."""

from __future__ import annotations

import cmath
from collections.abc import Callable
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag, apply_real
from distspmd.frontend.from_numpy.arrays.failures import one_number
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS

_UFUNCS: dict[str, np.ufunc] = {
    **{n: getattr(np, n) for n in ("exp", "log", "log10", "sqrt", "sin", "cos", "tan")},
    **{n: getattr(np, n) for n in ("sinh", "cosh", "tanh")},
    **{n: getattr(np, f"arc{n[1:]}") for n in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
}
_KINDS = {"f": float, "b": bool, "c": complex}


def _add(name: str, called: Callable[..., Any]) -> None:
    """Add a function, of which NumPy computes the values that are known at run time only."""
    known = getattr(cmath, name)

    def handler(run: Context, *given: object) -> Any:
        if not any(isinstance(value, Tensor | sympy.Basic) for value in given):
            try:
                return known(*given)
            except (TypeError, ValueError, OverflowError) as problem:
                run.tracer.fail(problem, f"cmath.{name}: ")
        found = called(run, *given)
        if not isinstance(found, Tensor):
            return found
        return Tensor((), found.dtype, lambda _: found.element(()), _KINDS[found.dtype.kind])

    FUNCTIONS[known] = handler


def _complex(run: Context, value: object) -> Tensor:
    given = one_number(run.tracer, run.tracer.tensor(value))
    found: Tensor = converted(run.tracer, given, complex)
    return found


def _of_ufunc(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def call(run: Context, z: object) -> Any:
        given = _complex(run, z)
        if name.startswith("log"):
            is_zero = run.call(np.equal, [given, 0], {})
            end_if(run, is_zero, "ValueError", "math domain error", can_go_on=True)
        return apply_ufunc(run.tracer, ufunc, [given])

    return call


_LOG = _of_ufunc("log", np.log)


def _log(run: Context, z: object, base: object = None) -> Any:
    found = _LOG(run, z)
    return found if base is None else run.call(np.divide, [found, _LOG(run, base)], {})


def _phase(run: Context, z: object) -> Any:
    given = _complex(run, z)
    return run.call(np.arctan2, [apply_imag(given), apply_real(given)], {})


def _polar(run: Context, z: object) -> Any:
    size = run.call(abs, [_complex(run, z)], {})
    return size, run.call(cmath.phase, [z], {})


def _rect(run: Context, r: object, phi: object) -> Any:
    parts = [run.call(each, [phi], {}) for each in (np.cos, np.sin)]
    real, imaginary = (run.call(np.multiply, [r, part], {}) for part in parts)
    return run.call(np.add, [real, run.call(np.multiply, [imaginary, 1j], {})], {})


def _tested(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda run, z: apply_ufunc(run.tracer, ufunc, [_complex(run, z)])


for _name, _ufunc in _UFUNCS.items():
    _add(_name, _log if _name == "log" else _of_ufunc(_name, _ufunc))
for _name, _called in (("phase", _phase), ("polar", _polar), ("rect", _rect)):
    _add(_name, _called)
for _ufunc in (np.isnan, np.isinf, np.isfinite):
    _add(_ufunc.__name__, _tested(_ufunc))
