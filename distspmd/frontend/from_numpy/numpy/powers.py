"""``pow``: of two numbers the operator, of three a function of the program."""

from __future__ import annotations

import ast
import builtins
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.transcript import told
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import powers
from distspmd.frontend.from_numpy.numpy.registry import function


@function(builtins.pow)
def _pow(run: Context, base: Any, exp: Any, mod: Any = None) -> Any:
    if mod is None:
        return run.binary(ast.Pow(), base, exp)
    numbers = {"base": base, "exponent": exp, "modulus": mod}
    for value in numbers.values():
        is_whole = isinstance(value, int | sympy.Expr) or (
            isinstance(value, Tensor) and value.ndim == 0 and value.dtype.kind in "iub"
        )
        if not is_whole:
            run.tracer.refuse(
                f"TypeError: pow() with a third argument takes integers, not {told(value)}"
            )
    if all(isinstance(value, int) for value in numbers.values()):
        try:
            return pow(base, exp, mod)
        except ValueError as problem:
            run.tracer.refuse(f"ValueError: {problem}")
    return run.run_function(powers.power, numbers)
