"""What Python refuses of numbers while a program runs: division by zero, roots of negative ones.

NumPy computes inf and nan of such numbers, Python raises: of its own numbers in operators, and of
all numbers in ``math``. A kernel notes the first of these errors, and the call ends with it.
"""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.errors import NOTED
from distspmd.expressions.ir import Constant, Expression, apply, cast
from distspmd.frontend.from_numpy.arrays import checks
from distspmd.frontend.from_numpy.arrays.elements import is_one
from distspmd.frontend.from_numpy.arrays.kinds import is_of_python
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import error_class, line_of_error
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, number, whole_expression
from distspmd.frontend.from_numpy.context import Context

_DIVISION, _DOMAIN, _RANGE, _COMPLEX, _NO_NUMBER, _NOT_WHOLE, _OVERFLOW = range(1, 8)
_Test = Callable[..., Expression]


def check(
    run: Context, value: Tensor, failed: Callable[[Expression], Expression], kind: int
) -> Tensor:
    """A number with which the program ends where it has failed.

    Args:
        run: the interpreter.
        value: the number.
        failed: whether it has, from the number.
        kind: the error, by its place in :data:`distspmd.errors.NOTED`.
    """
    tracer = run.tracer
    guard = tracer.guard()
    if tracer.guarded and guard is None:
        return value
    name, text = NOTED[kind]
    is_in_order = not tracer.guarded and not tracer.map.parallel and tracer.map.straight is None
    if is_in_order and tracer.frames[-1].flag_of(error_class(name)) is not None:
        value = tracer.settled(value)
        test = Tensor((), np.dtype(bool), lambda index: failed(value.element(index)))
        checks.end_if(run, test, name, text, can_go_on=True)
        return value
    note = _noting(guard, kind, line_of_error(tracer, name))

    def element(index: Any) -> Expression:
        found = value.element(index)
        return note(found, failed(found))

    return Tensor((), value.dtype, element, value.weak)


def _noting(guard: Expression | None, kind: int, at: int) -> _Test:
    zero, error, line = (number(n, INT64) for n in (0, kind, at))

    def note(value: Expression, failed: Expression) -> Expression:
        test = failed if guard is None else apply("logical_and", guard, failed)
        return apply("checked", value, test, error, line, zero, zero)

    return note


def note_index(tracer: Tracer, value: Expression, index: object, length: object) -> Expression:
    """An element that is read at an index of a map, which the run compares with the dimension."""
    where, count = whole_expression(index), whole_expression(length)
    low = apply("less", where, apply("negative", count))
    failed = apply("logical_or", low, apply("greater_equal", where, count))
    guard = tracer.guard()
    test = failed if guard is None else apply("logical_and", guard, failed)
    line = number(tracer.line[1] if tracer.line else 0, INT64)
    return apply("checked", value, test, number(0, INT64), line, where, count)


def one_number(tracer: Tracer, value: Tensor) -> Tensor:
    """An array of one element where Python wants a number.

    Raises:
        KnownError: NumPy raises a TypeError, which a handler takes.
        Refusal: no handler does.
    """
    if not value.ndim:
        return value
    like = np.zeros([1 if is_one(n) else 2 for n in value.shape])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            float(like)
    except TypeError as problem:
        tracer.fail(problem)
    place = (0,) * value.ndim
    return Tensor((), value.dtype, lambda _: value.element(place), value.weak)


# -- operators of Python --------------------------------------------------------------------------


def checked_operands(
    run: Context, op: ast.operator, left: object, right: object
) -> tuple[Any, Any]:
    """Operands of which Python raises where NumPy gives inf, nan or 0; others as they are."""
    if not (is_of_python(left) and is_of_python(right)):
        return left, right
    if isinstance(op, ast.Div | ast.FloorDiv | ast.Mod):
        return left, _divisor(run, right)
    if isinstance(op, ast.Pow):
        return _base(run, left, right), right
    return left, right


def checked_power(run: Context, base: Any, exponent: Any, found: Any) -> Any:
    """What ``base ** exponent`` gives; the program ends where Python says that it overflows."""
    if not (is_of_python(base) and is_of_python(exponent)) or found.dtype.kind != "f":
        return found
    given = [cast(run.tracer.tensor(v).element(()), found.dtype) for v in (base, exponent)]
    finite = apply("logical_not", _either(*map(_is_infinite, given)))
    return check(run, found, lambda value: _both(_is_infinite(value), finite), _OVERFLOW)


def checked_whole(run: Context, value: Tensor) -> Tensor:
    """A number that becomes a whole one of Python: no NaN, and none of more than 64 bits."""
    if value.dtype.kind != "f":
        return value
    found = check(run, value, lambda a: apply("isnan", a), _NO_NUMBER)
    return check(run, found, _is_wide, _NOT_WHOLE)


def _is_wide(a: Expression) -> Expression:
    return apply("greater_equal", apply("absolute", a), number(2.0**63, a.dtype))


def _divisor(run: Context, value: object) -> Any:
    if not isinstance(value, Tensor | sympy.Basic):
        if value == 0:
            run.tracer.refuse("division by zero")
        return value
    return check(run, run.tracer.tensor(value), _is_zero, _DIVISION)


def _is_zero(value: Expression) -> Expression:
    return apply("equal", value, number(0, value.dtype))


def _is_negative(value: Expression) -> Expression:
    return apply("less", value, number(0, value.dtype))


def _base(run: Context, base: object, exponent: object) -> Any:
    """The base of a power, which is not zero below a negative exponent."""
    tracer = run.tracer
    one, other = tracer.tensor(base), tracer.tensor(exponent)
    if "c" in (one.dtype.kind, other.dtype.kind):
        return base
    power = other.element(())
    known = _real(power)
    if known is None or known < 0:
        one = check(run, one, lambda a: _both(_is_zero(a), _is_negative(power)), _DIVISION)
    if other.dtype.kind == "f" and (known is None or not known.is_integer()):
        one = check(run, one, lambda a: _both(_is_negative(a), _has_rest(power)), _COMPLEX)
    return one


def _real(value: Expression) -> float | None:
    """A real number that is known; None for others."""
    if isinstance(value, Constant) and not isinstance(value.value, complex):
        return float(value.value)
    return None


def _has_rest(value: Expression) -> Expression:
    known = _real(value)
    if known is not None:
        return number(not known.is_integer(), np.dtype(bool))
    return apply("not_equal", apply("floor", value), value)


def _both(one: Expression, other: Expression) -> Expression:
    return apply("logical_and", one, other)


def _either(one: Expression, other: Expression) -> Expression:
    return apply("logical_or", one, other)


# -- math -----------------------------------------------------------------------------------------


def _compared(name: str, value: float) -> _Test:
    return lambda a, *_: apply(name, a, number(value, a.dtype))


def _beyond(name: str) -> _Test:
    return lambda a, *_: apply(name, apply("absolute", a), number(1, a.dtype))


def _is_infinite(a: Expression, *_: Expression) -> Expression:
    return apply("equal", apply("absolute", a), number(np.inf, a.dtype))


def _of_fmod(a: Expression, b: Expression) -> Expression:
    return _either(_is_infinite(a), _is_zero(b))


def _of_pow(a: Expression, b: Expression) -> Expression:
    zero = _both(_is_zero(a), _is_negative(b))
    return _either(zero, _both(_is_negative(a), _has_rest(b)))


_DOMAINS: dict[str, _Test] = {
    "sqrt": _compared("less", 0),
    **dict.fromkeys(("log", "log2", "log10"), _compared("less_equal", 0)),
    "log1p": _compared("less_equal", -1),
    **dict.fromkeys(("asin", "acos"), _beyond("greater")),
    "acosh": _compared("less", 1),
    "atanh": _beyond("greater_equal"),
    **dict.fromkeys(("sin", "cos", "tan"), _is_infinite),
    "fmod": _of_fmod,
    "pow": _of_pow,
}
"""Where functions of ``math`` have no value, by their arguments."""
_GROWING = {"exp", "exp2", "expm1", "sinh", "cosh", "pow", "hypot"}
"""Functions of ``math`` of which finite numbers may give infinite ones."""


def checked_result(run: Context, name: str, arguments: Sequence[Tensor], found: Tensor) -> Tensor:
    """What a function of ``math`` gives, for which the program ends where Python raises.

    Args:
        run: the interpreter.
        name: of the function.
        arguments: real numbers.
        found: what NumPy's function gives, a number.
    """
    given = [cast(a.element((0,) * a.ndim), found.dtype) for a in arguments]
    if name in _DOMAINS:
        failed = _DOMAINS[name](*given)
        found = check(run, found, lambda _: failed, _DOMAIN)
    if name in _GROWING:
        infinite = functools.reduce(_either, map(_is_infinite, given))
        grows = apply("logical_not", infinite)
        found = check(run, found, lambda value: _both(_is_infinite(value), grows), _RANGE)
    return found
