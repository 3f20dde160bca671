"""Functions of ``math`` on numbers that the run decides, beside its universal functions."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import counted
from distspmd.frontend.from_numpy.numpy.registry import function


def _of_data(called: Callable[..., Any], by: Callable[..., Any]) -> None:
    @function(called)
    def handler(run: Context, *operands: Any, **named: Any) -> Any:
        if not has_data((list(operands), named)):
            try:
                return called(*operands, **named)
            except (TypeError, ValueError, OverflowError) as problem:
                run.tracer.refuse(f"math.{called.__name__}: {type(problem).__name__}: {problem}")
        return by(run, *operands, **named)


def _by_ufunc(ufunc: np.ufunc) -> Any:
    def call(run: Context, first: object, *others: object) -> Any:
        found = first
        for other in others:
            found = run.call(ufunc, [found, other], {})
        return run.call(int, [found], {})

    return call


def _by_loop(written: Any, *names: str) -> Any:
    def call(run: Context, *operands: Any) -> Any:
        return run.run_function(written, dict(zip(names, operands, strict=True)))

    return call


def _dist(run: Context, p: object, q: object) -> Any:
    apart = run.call(np.subtract, [p, q], {})
    squares = run.call(np.multiply, [apart, apart], {})
    return run.call(math.sqrt, [run.call(np.sum, [squares], {})], {})


def _isclose(
    run: Context, a: object, b: object, *, rel_tol: object = 1e-09, abs_tol: object = 0.0
) -> Any:
    return run.run_function(
        counted.isclose, {"a": a, "b": b, "rel_tol": rel_tol, "abs_tol": abs_tol}
    )


def _prod(run: Context, values: object, *, start: object = 1) -> Any:
    return run.call(functools.reduce, [operator.mul, values, start], {})


def _fsum(run: Context, values: object) -> Any:
    return run.call(float, [run.call(sum, [values], {})], {})


_of_data(math.isclose, _isclose)
_of_data(math.prod, _prod)
_of_data(math.fsum, _fsum)
_of_data(math.gcd, _by_ufunc(np.gcd))
_of_data(math.lcm, _by_ufunc(np.lcm))
_of_data(math.factorial, _by_loop(counted.factorial, "n"))
_of_data(math.comb, _by_loop(counted.comb, "n", "k"))
_of_data(math.perm, _by_loop(counted.perm, "n", "k"))
_of_data(math.isqrt, _by_loop(counted.isqrt, "n"))
_of_data(math.dist, _dist)
