"""The table of operations that expressions are made of.

An operation has the name of NumPy's function where there is one. Its form in a target language is
in the table of that language's printer; its value is in :mod:`distspmd.expressions.evaluation`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

DType = np.dtype[Any]
TypeRule = Callable[[Sequence[DType]], DType]
Derivative = Callable[..., Sequence[Any]]
"""From the functions of expressions, the operation itself, and its arguments: the derivative by
each argument. None stands for zero."""

BOOL = np.dtype(bool)
FLOAT32, UINT16 = np.dtype(np.float32), np.dtype(np.uint16)


def promote_types(types: Sequence[DType]) -> DType:
    """The type to which NumPy promotes."""
    return np.result_type(*types)


def real(types: Sequence[DType]) -> DType:
    """The promoted type; whole numbers become NumPy's default of real numbers."""
    found = np.result_type(*types)
    return found if found.kind not in "biu" else np.dtype(np.float64)


def real_part(types: Sequence[DType]) -> DType:
    """The type of the parts of a complex number."""
    (found,) = types
    return np.dtype(f"f{found.itemsize // 2}") if found.kind == "c" else found


def of_parts(types: Sequence[DType]) -> DType:
    """The type of complex numbers with such parts."""
    return np.result_type(*types, np.complex64)


def truth(types: Sequence[DType]) -> DType:
    """A truth value."""
    return BOOL


def chosen(count: int) -> TypeRule:
    """The promoted type of the last arguments, which are what is chosen from."""
    return lambda types: np.result_type(*types[-count:])


def first(types: Sequence[DType]) -> DType:
    """The type of the first argument."""
    return types[0]


def unknown(types: Sequence[DType]) -> DType:
    """No rule: whoever builds the operation says the type.

    Raises:
        TypeError: always.
    """
    raise TypeError("the type of a conversion must be given.")


@dataclass(frozen=True)
class OperationKind:
    """A row of the table.

    Attributes:
        name: of the operation.
        arity: its number of arguments.
        result: type of the result, from those of the arguments.
        work: of one element, in additions, about.
        derivative: by each argument; None where it is not known.
        is_step: whether the derivative is zero wherever there is one.
        linear: how the result depends on the arguments, if linearly: "sum", "difference",
            "negation", "product", "quotient" or "conversion".
        chooses: how many of the last arguments it chooses one of.
    """

    name: str
    arity: int
    result: TypeRule
    work: int
    derivative: Derivative | None = None
    is_step: bool = False
    linear: str = ""
    chooses: int = 0


def _sign(f: Any, e: Any, a: Any) -> list[Any]:
    return [f.where(f.greater(a, 0), 1.0, f.where(f.less(a, 0), -1.0, 0.0))]


def _of_greater(f: Any, e: Any, a: Any, b: Any) -> list[Any]:
    """Halves of both sides where they are equal, as in torch."""
    return [
        f.where(f.greater(a, b), 1.0, f.where(f.equal(a, b), 0.5, 0.0)),
        f.where(f.greater(b, a), 1.0, f.where(f.equal(a, b), 0.5, 0.0)),
    ]


def _of_less(f: Any, e: Any, a: Any, b: Any) -> list[Any]:
    return [
        f.where(f.less(a, b), 1.0, f.where(f.equal(a, b), 0.5, 0.0)),
        f.where(f.less(b, a), 1.0, f.where(f.equal(a, b), 0.5, 0.0)),
    ]


def _of_power(f: Any, e: Any, a: Any, b: Any) -> list[Any]:
    by_base = f.where(f.equal(b, 0), 0.0, b * a ** (b - 1))
    nothing = f.logical_and(f.equal(a, 0), f.greater_equal(b, 0))
    return [by_base, f.where(nothing, 0.0, a**b * f.log(a))]


def _of_arctan2(f: Any, e: Any, a: Any, b: Any) -> list[Any]:
    square = a * a + b * b
    return [b / square, -(a / square)]


def _row(*columns: Any, **more: Any) -> OperationKind:
    return OperationKind(*columns, **more)


DISTRIBUTIONS = {
    **dict.fromkeys(("gamma", "log_gamma", "poisson", "von_mises", "zipf", "log_series"), 1),
    "binomial": 2,
    "hypergeometric": 3,
}
"""Distributions that numbers are drawn of by rejection, with the numbers of their parameters."""

_ROWS = [
    _row("add", 2, promote_types, 1, linear="sum"),
    _row("subtract", 2, promote_types, 1, linear="difference"),
    _row("multiply", 2, promote_types, 1, linear="product"),
    _row("divide", 2, real, 4, linear="quotient"),
    _row("negative", 1, promote_types, 1, linear="negation"),
    _row("cast", 1, unknown, 0, linear="conversion"),
    _row("bits", 1, unknown, 1, is_step=True),
    _row("power", 2, promote_types, 20, _of_power),
    _row("absolute", 1, promote_types, 1, _sign),
    _row("sign", 1, promote_types, 2, is_step=True),
    _row("floor_divide", 2, promote_types, 5, is_step=True),
    _row("remainder", 2, promote_types, 13),
    _row("fmod", 2, promote_types, 10),
    _row("modulo", 2, promote_types, 10),
    _row("floored_rest", 2, promote_types, 3),
    _row("exp", 1, real, 15, lambda f, e, a: [e]),
    _row("exp2", 1, real, 15, lambda f, e, a: [0.6931471805599453 * e]),
    _row("expm1", 1, real, 15, lambda f, e, a: [f.exp(a)]),
    _row("log", 1, real, 15, lambda f, e, a: [1.0 / a]),
    _row("log2", 1, real, 15, lambda f, e, a: [1.4426950408889634 / a]),
    _row("log10", 1, real, 15, lambda f, e, a: [0.4342944819032518 / a]),
    _row("log1p", 1, real, 15, lambda f, e, a: [1.0 / (1.0 + a)]),
    _row("sqrt", 1, real, 5, lambda f, e, a: [0.5 / e]),
    _row("rsqrt", 1, real, 8, lambda f, e, a: [-0.5 * e / a]),
    _row("reciprocal", 1, real, 4, lambda f, e, a: [-1.0 / (a * a)]),
    _row("sin", 1, real, 15, lambda f, e, a: [f.cos(a)]),
    _row("cos", 1, real, 15, lambda f, e, a: [-f.sin(a)]),
    _row("tan", 1, real, 20, lambda f, e, a: [1.0 + e * e]),
    _row("arcsin", 1, real, 20, lambda f, e, a: [1.0 / f.sqrt(1.0 - a * a)]),
    _row("arccos", 1, real, 20, lambda f, e, a: [-1.0 / f.sqrt(1.0 - a * a)]),
    _row("arctan", 1, real, 20, lambda f, e, a: [1.0 / (1.0 + a * a)]),
    _row("arctan2", 2, real, 20, _of_arctan2),
    _row("sinh", 1, real, 20, lambda f, e, a: [f.cosh(a)]),
    _row("cosh", 1, real, 20, lambda f, e, a: [f.sinh(a)]),
    _row("tanh", 1, real, 20, lambda f, e, a: [1.0 - e * e]),
    _row("arcsinh", 1, real, 20, lambda f, e, a: [1.0 / f.sqrt(a * a + 1.0)]),
    _row("arccosh", 1, real, 20, lambda f, e, a: [1.0 / f.sqrt(a * a - 1.0)]),
    _row("arctanh", 1, real, 20, lambda f, e, a: [1.0 / (1.0 - a * a)]),
    _row("erf", 1, real, 20, lambda f, e, a: [1.1283791670955126 * f.exp(-a * a)]),
    _row("erfc", 1, real, 20, lambda f, e, a: [-1.1283791670955126 * f.exp(-a * a)]),
    _row("gamma", 1, real, 30),
    _row("lgamma", 1, real, 30),
    *(_row(name, 1, real, 40) for name in ("j0", "j1", "y0", "y1")),
    _row("sigmoid", 1, real, 20, lambda f, e, a: [e * (1.0 - e)]),
    _row("relu", 1, promote_types, 1, lambda f, e, a: [f.where(f.greater(a, 0), 1.0, 0.0)]),
    _row("real", 1, real_part, 0),
    _row("imag", 1, real_part, 0),
    _row("from_parts", 2, of_parts, 0),
    _row("conjugate", 1, promote_types, 1),
    _row("cbrt", 1, real, 20),
    _row("copysign", 2, real, 2),
    _row("nextafter", 2, real, 4, is_step=True),
    _row("signbit", 1, truth, 1, is_step=True),
    _row("floor", 1, promote_types, 2, is_step=True),
    _row("ceil", 1, promote_types, 2, is_step=True),
    _row("trunc", 1, promote_types, 2, is_step=True),
    _row("rint", 1, promote_types, 2, is_step=True),
    _row("maximum", 2, promote_types, 1, _of_greater),
    _row("minimum", 2, promote_types, 1, _of_less),
    _row("at_least", 2, promote_types, 1, _of_greater),
    _row("at_most", 2, promote_types, 1, _of_less),
    _row("bitwise_and", 2, promote_types, 1, is_step=True),
    _row("bitwise_or", 2, promote_types, 1, is_step=True),
    _row("bitwise_xor", 2, promote_types, 1, is_step=True),
    _row("invert", 1, promote_types, 1, is_step=True),
    _row("left_shift", 2, promote_types, 3, is_step=True),
    _row("right_shift", 2, promote_types, 3, is_step=True),
    _row("logical_and", 2, truth, 1, is_step=True),
    _row("logical_or", 2, truth, 1, is_step=True),
    _row("logical_xor", 2, truth, 1, is_step=True),
    _row("logical_not", 1, truth, 1, is_step=True),
    _row("isnan", 1, truth, 1, is_step=True),
    _row("equal", 2, truth, 1, is_step=True),
    _row("not_equal", 2, truth, 1, is_step=True),
    _row("less", 2, truth, 1, is_step=True),
    _row("less_equal", 2, truth, 1, is_step=True),
    _row("greater", 2, truth, 1, is_step=True),
    _row("greater_equal", 2, truth, 1, is_step=True),
    _row("is_extreme", 2, truth, 1, is_step=True),
    _row("between", 3, truth, 2, is_step=True),
    _row("stepped", 4, truth, 2, is_step=True),
    _row("where", 3, chosen(2), 1, chooses=2),
    _row("pick", 4, chosen(2), 1, chooses=2),
    _row("pick_from", 4, chosen(2), 1, chooses=2),
    _row("pick_between", 5, chosen(2), 2, chooses=2),
    _row("pick_stepped", 6, chosen(2), 2, chooses=2),
    _row("uniform", 3, lambda types: np.dtype(np.float64), 10, is_step=True),
    *(
        _row(f"{name}_draw", 3 + parameters, lambda types: np.dtype(np.float64), 100, is_step=True)
        for name, parameters in DISTRIBUTIONS.items()
    ),
    *(
        _row(f"{half}_{form}", 1, rule, 3, is_step=form == "bits")
        for half in ("bfloat16", "float16")
        for form, rule in (("bits", lambda types: UINT16), ("value", lambda types: FLOAT32))
    ),
    _row("checked", 6, first, 1),
    _row("checked_index", 3, lambda types: np.dtype(np.int64), 2, is_step=True),
]
OPERATIONS: dict[str, OperationKind] = {row.name: row for row in _ROWS}
"""All operations by name. Of those that NumPy has not:

- ``modulo(a, b)`` has the sign of ``a``;
- ``floored_rest(r, b)`` is ``remainder(a, b)``, from ``r``, which is ``fmod(a, b)``;
- ``at_least(a, b)`` and ``at_most(a, b)`` keep a NaN of ``a``, but not one of ``b``;
- ``is_extreme(a, best)`` says whether ``a`` equals ``best`` or is a NaN;
- ``between(i, low, high)`` is ``low <= i < high``;
- ``stepped(i, low, high, step)`` says whether ``i`` is in ``range(low, high, step)``;
- the ``pick`` family chooses the last argument but one, or else the last: ``pick(i, place, a, b)``
  where ``i == place``, ``pick_from(i, first, a, b)`` where ``i >= first``, ``pick_between`` and
  ``pick_stepped`` by the tests of these names;
- ``uniform(seed, draw, i)`` is the number in [0, 1) that is drawn from a counter;
- ``gamma_draw(seed, draw, i, shape)`` and others of its kind are drawn likewise, of distributions
  with parameters (:data:`DISTRIBUTIONS`);
- ``bits(a)`` is the number of another type of as many bits whose bits are those of ``a``;
- ``bfloat16_bits(a)`` are the 16 bits of the number of this type that is nearest to a float32, and
  ``bfloat16_value(n)`` is the float32 of such bits; likewise of ``float16``;
- ``checked(a, failed, kind, line, m, n)`` is ``a``; where it has failed, the program ends with an
  error (:data:`distspmd.errors.NOTED`) that names the line, and the numbers ``m`` and ``n``;
- ``checked_index(i, n, line)`` is an index of ``n`` elements, from the end if it is negative;
  where it is out of range, the program ends with an error that names the line.
"""
