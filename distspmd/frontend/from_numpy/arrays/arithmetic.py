"""NumPy's universal functions on tensors: types as NumPy resolves them, elements as expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Constant, Expression, apply, cast
from distspmd.expressions.operations import OPERATIONS, DType
from distspmd.frontend.from_numpy.arrays.comparisons import (
    COMPARISONS,
    HALF,
    comparison,
    known_comparison,
)
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_real
from distspmd.frontend.from_numpy.arrays.elements import is_one, truth_of
from distspmd.frontend.from_numpy.arrays.real_or_complex import (
    RealOrComplex,
    as_typed,
    found_in,
    real_type,
)
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import PYTHON_TYPES, told
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, is_carried, number
from distspmd.frontend.tensor_ir.statements import Container, Index, Statement

Build = Callable[..., Expression]
FLOAT32 = np.dtype(np.float32)


def sum_of_powers(
    power: str, log: Callable[[Expression], Expression], of_two: float
) -> Callable[..., Expression]:
    """``logaddexp`` and its like, of equal infinities, too."""

    def build(a: Expression, b: Expression) -> Expression:
        high, low = apply("maximum", a, b), apply("minimum", a, b)
        apart = apply("subtract", low, high)
        found = apply("add", high, log(apply(power, apart)))
        twice = apply("add", a, number(of_two, a.dtype))
        return apply("where", apply("equal", a, b), twice, found)

    return build


def log2_of_rest(a: Expression) -> Expression:
    """``log2(1 + a)``."""
    return apply("multiply", apply("log1p", a), number(1 / math.log(2), a.dtype))


def _square(a: Expression) -> Expression:
    return apply("multiply", a, a)


def _parts(a: Expression) -> list[Expression]:
    """The parts of a complex number."""
    return [apply(part, a, dtype=real_type(a.dtype)) for part in ("real", "imag")]


def _is_inf(a: Expression) -> Expression:
    if a.dtype.kind in "biu":
        return number(False, np.dtype(bool))
    if a.dtype.kind == "c":
        return apply("logical_or", *map(_is_inf, _parts(a)))
    return apply("equal", apply("absolute", a), number(math.inf, a.dtype))


def _is_finite(a: Expression) -> Expression:
    if a.dtype.kind in "biu":
        return number(True, np.dtype(bool))
    if a.dtype.kind == "c":
        return apply("logical_and", *map(_is_finite, _parts(a)))
    return apply("less", apply("absolute", a), number(math.inf, a.dtype))


def _is_nan(a: Expression) -> Expression:
    return apply("isnan", a) if a.dtype.kind in "fc" else number(False, np.dtype(bool))


def _keeps_other(name: str) -> Build:
    """``fmax`` and ``fmin``: a NaN loses."""

    def build(a: Expression, b: Expression) -> Expression:
        both = apply(name, a, b)
        if a.dtype.kind != "f":
            return both
        return apply("where", _is_nan(a), b, apply("where", _is_nan(b), a, both))

    return build


def _floor_divide(a: Expression, b: Expression) -> Expression:
    """A quotient, rounded down; of real numbers from their exact remainder, as NumPy does."""
    if a.dtype.kind != "f":
        return _guarded("floor_divide", a, b)
    zero, rest = number(0, a.dtype), apply("fmod", a, b)
    apart = apply("not_equal", apply("less", b, zero), apply("less", rest, zero))
    below = apply("logical_and", apply("not_equal", rest, zero), apart)
    whole = apply("rint", apply("divide", apply("subtract", a, rest), b))
    found = apply("where", below, apply("subtract", whole, number(1, a.dtype)), whole)
    quotient = apply("divide", a, b)
    of_infinity = apply("add", quotient, apply("subtract", a, a))  # NaN
    undefined = apply("where", apply("equal", b, zero), quotient, of_infinity)
    return apply("where", _is_nan(rest), undefined, found)


def _remainder(a: Expression, b: Expression) -> Expression:
    return _guarded("remainder", a, b)


def _guarded(name: str, a: Expression, b: Expression) -> Expression:
    """A division of whole numbers, of which NumPy gives 0 where the divisor is 0."""
    if a.dtype.kind not in "iu" or (isinstance(b, Constant) and b.value != 0):
        return apply(name, a, b)
    zero = number(0, b.dtype)
    nothing = apply("equal", b, zero)
    inside = apply(name, a, apply("where", nothing, number(1, b.dtype), b))
    return apply("where", nothing, number(0, a.dtype), inside)


def _power(a: Expression, b: Expression) -> Expression:
    if isinstance(b, Constant) and b.dtype.kind in "iufc" and not isinstance(b.value, complex):
        exponent = float(b.value)
        if exponent == 0.5 and a.dtype.kind in "f":
            return apply("sqrt", a)
        most = 3 if a.dtype.kind == "f" else 64  # a cube is right but for the last bit
        if exponent.is_integer() and 0 <= exponent <= most:
            return _repeated(a, int(exponent))
        if exponent == -1 and a.dtype.kind in "fc":
            return apply("divide", number(1, a.dtype), a)
    if a.dtype.kind in "iu":
        return _integer_power(a, b)
    return apply("power", a, b)


def _repeated(a: Expression, exponent: int) -> Expression:
    if exponent == 0:
        return number(1, a.dtype)
    found, factor = None, a
    while True:
        if exponent & 1:
            found = factor if found is None else apply("multiply", found, factor)
        exponent >>= 1
        if not exponent:
            assert found is not None
            return found
        factor = apply("multiply", factor, factor)


def _integer_power(a: Expression, b: Expression) -> Expression:
    """By squares, over all bits of an exponent of which more than 64 give zero or one alone."""
    found: Expression = number(1, a.dtype)
    factor = a
    for bit in range(6):
        shifted = apply("right_shift", b, number(bit, b.dtype))
        odd = apply("equal", apply("bitwise_and", shifted, number(1, b.dtype)), number(1, b.dtype))
        found = apply("where", odd, apply("multiply", found, factor), found)
        factor = apply("multiply", factor, factor)
    return found


def _logical(name: str) -> Build:
    return lambda *operands: apply(name, *(truth_of(o) for o in operands))


def _of_truths(name: str, for_truths: str) -> Build:
    """An operation that is another one on truth values."""

    def build(*operands: Expression) -> Expression:
        kind = for_truths if operands[0].dtype.kind == "b" else name
        return apply(kind, *operands)

    return build


def _scaled(factor: float) -> Build:
    return lambda a: apply("multiply", a, number(factor, a.dtype))


def _absolute(a: Expression) -> Expression:
    if a.dtype.kind in "bu":
        return a
    if a.dtype.kind == "c":
        return apply("absolute", a, dtype=real_type(a.dtype))
    return apply("absolute", a)


def _sign(a: Expression) -> Expression:
    if a.dtype.kind == "u":
        return cast(apply("not_equal", a, number(0, a.dtype)), a.dtype)
    if a.dtype.kind == "f":
        return apply("where", _is_nan(a), a, apply("sign", a))
    return apply("sign", a)


def _maximum(name: str, truth: str) -> Build:
    def build(a: Expression, b: Expression) -> Expression:
        return apply(truth if a.dtype.kind == "b" else name, a, b)

    return build


def _heaviside(a: Expression, b: Expression) -> Expression:
    zero = number(0, a.dtype)
    found = apply(
        "where",
        apply("less", a, zero),
        zero,
        apply("where", apply("equal", a, zero), b, number(1, a.dtype)),
    )
    return apply("where", _is_nan(a), a, found)


def _hypot(a: Expression, b: Expression) -> Expression:
    high = apply("maximum", _absolute(a), _absolute(b))
    safe = apply("where", apply("equal", high, number(0, a.dtype)), number(1, a.dtype), high)
    x, y = apply("divide", a, safe), apply("divide", b, safe)
    found = apply("multiply", high, apply("sqrt", apply("add", _square(x), _square(y))))
    infinite = apply("logical_or", _is_inf(a), _is_inf(b))
    return apply("where", infinite, number(math.inf, a.dtype), found)


def _reciprocal(a: Expression) -> Expression:
    return (
        _guarded("floor_divide", number(1, a.dtype), a)
        if a.dtype.kind in "iu"
        else apply("divide", number(1, a.dtype), a)
    )


def _conjugate(a: Expression) -> Expression:
    return apply("conjugate", a) if a.dtype.kind == "c" else a


def _rounding(name: str) -> Build:
    return lambda a: a if a.dtype.kind in "biu" else apply(name, a)


_SAME = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "arctan2", "sinh", "cosh", "tanh", "arcsinh", "arccosh"),
    *("arctanh", "negative", "divide", "fmod", "bitwise_and", "bitwise_or"),
    *("bitwise_xor", "invert", "left_shift", "right_shift", "equal", "not_equal"),
    *("cbrt", "copysign", "signbit", "nextafter"),
}
BUILDS: dict[str, Build] = {
    **{name: lambda *operands, _name=name: apply(_name, *operands) for name in _SAME},
    **{name: comparison(name) for name in COMPARISONS},
    "add": _of_truths("add", "logical_or"),
    "multiply": _of_truths("multiply", "logical_and"),
    "subtract": lambda a, b: apply("subtract", a, b),
    "true_divide": lambda a, b: apply("divide", a, b),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "mod": _remainder,
    "power": _power,
    "float_power": _power,
    "pow": _power,
    "positive": lambda a: a,
    "absolute": _absolute,
    "fabs": _absolute,
    "sign": _sign,
    "square": _square,
    "reciprocal": _reciprocal,
    "maximum": _maximum("maximum", "logical_or"),
    "minimum": _maximum("minimum", "logical_and"),
    "fmax": _keeps_other("maximum"),
    "fmin": _keeps_other("minimum"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "logical_not": _logical("logical_not"),
    "isnan": _is_nan,
    "isinf": _is_inf,
    "isfinite": _is_finite,
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "trunc": _rounding("trunc"),
    "rint": _rounding("rint"),
    "conjugate": _conjugate,
    "deg2rad": _scaled(math.pi / 180),
    "radians": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "degrees": _scaled(180 / math.pi),
    "logaddexp": sum_of_powers("exp", lambda a: apply("log1p", a), math.log(2)),
    "logaddexp2": sum_of_powers("exp2", log2_of_rest, 1.0),
    "heaviside": _heaviside,
    "hypot": _hypot,
}
"""Elements of universal functions, by the functions' names; operands have the loop's types."""


def apply_ufunc(
    tracer: Tracer, ufunc: np.ufunc, operands: Sequence[Any], **keywords: object
) -> Any:
    """A universal function of operands, with the keywords of NumPy."""
    operands = list(operands)
    out = keywords.pop("out", None)
    where = keywords.pop("where", True)
    dtype = keywords.pop("dtype", None)
    keywords.pop("casting", None)
    keywords.pop("order", None)
    keywords.pop("subok", None)
    if keywords:
        tracer.refuse(f"np.{ufunc.__name__} with the keyword {next(iter(keywords))!r}")
    if len(operands) > ufunc.nin:
        out = operands.pop()
    if isinstance(out, tuple):
        (out,) = out
    if ufunc.__name__ == "divmod":
        return (
            apply_ufunc(tracer, np.floor_divide, operands),
            apply_ufunc(tracer, np.remainder, operands),
        )
    if ufunc.__name__ not in BUILDS or len(operands) != ufunc.nin:
        tracer.refuse(f"np.{ufunc.__name__} of {len(operands)} operands is not covered")
    found = combine(tracer, ufunc, operands, dtype)
    if out is None and where is True:
        return found
    if out is None:
        tracer.refuse(f"np.{ufunc.__name__} with where= leaves elements undefined without out=")
    return _put(tracer, ufunc, found, out, where)


def _put(tracer: Tracer, ufunc: np.ufunc, found: Tensor, out: object, where: object) -> View:
    """Write a result to ``out``."""
    if not isinstance(out, View):
        tracer.refuse("out= has to be an array, or a part of one by slices")
    if not np.can_cast(found.dtype, out.dtype, "same_kind"):
        tracer.refuse(
            f"the result of np.{ufunc.__name__} ({found.dtype}) is not cast to {out.dtype}"
        )
    found = as_typed(found, out.dtype)
    if where is not True:
        found = choose(tracer, tracer.tensor(where), found, out, out.dtype)
    tracer.assign(out, found)
    return out


def combine(
    tracer: Tracer, ufunc: np.ufunc, operands: Sequence[Any], dtype: object = None
) -> Tensor:
    """The tensor that a universal function of one result gives, of NumPy's type."""
    if found_in(operands):
        from distspmd.frontend.from_numpy.arrays.decided_types import of_ufunc

        return of_ufunc(tracer, ufunc, operands, dtype)
    tensors = _of_one_choice(tracer, [tracer.tensor(o) for o in operands])
    known = known_comparison(ufunc, operands, tensors)
    if known is not None:
        return _everywhere(tracer, known, tensors)
    return _combined(tracer, ufunc, operands, tensors, dtype)


def _combined(
    tracer: Tracer,
    ufunc: np.ufunc,
    operands: Sequence[Any],
    tensors: Sequence[Tensor],
    dtype: Any,
) -> Tensor:
    weak = all(t.weak is not None for t in tensors)
    kinds: list[Any] = [
        t.weak if t.weak not in (None, bool) and not weak else t.dtype for t in tensors
    ]
    plain = [o for o in operands if type(o) in (int, float, complex)]
    try:
        options: dict[str, Any] = {}
        if dtype is not None:
            options["signature"] = (None,) * ufunc.nin + (np.dtype(dtype),)
        kinds = [np.dtype(k) if k is bool else k for k in kinds]
        if len(kinds) == 1 and isinstance(kinds[0], type):
            kinds = [PYTHON_TYPES[kinds[0]]]
        elif kinds and all(isinstance(k, type) for k in kinds):
            kinds = [PYTHON_TYPES[k] for k in kinds]
        *types, result = ufunc.resolve_dtypes((*kinds, None), **options)
        for value in plain:
            if not weak and isinstance(value, int) and types[0].kind in "iu":
                np.array(value, dtype=types[0])
    except (TypeError, OverflowError) as problem:
        tracer.refuse(str(problem))
    _check_operands(tracer, ufunc, operands, result)
    build = BUILDS[ufunc.__name__]
    shape = tracer.broadcast_shape([t.shape for t in tensors])
    mask = next((t.mask for t in tensors if t.mask is not None), None)
    moved = [_broadcast_masked(tracer, t, shape) for t in tensors]

    def element(index: tuple[Index, ...]) -> Expression:
        parts = [_operand(t.element(index), kind) for t, kind in zip(moved, types, strict=True)]
        return cast(build(*parts), result)

    python: Any = None
    if weak:
        python = {"b": bool, "i": int, "u": int, "f": float, "c": complex}[result.kind]
    return Tensor(shape, result, element, python, mask)


def _check_operands(
    tracer: Tracer, ufunc: np.ufunc, operands: Sequence[Any], result: DType
) -> None:
    exponent = operands[-1]
    is_negative = isinstance(exponent, int | np.integer) and exponent < 0
    if ufunc is np.power and result.kind in "iu" and is_negative:
        tracer.refuse("Integers to negative integer powers are not allowed.")
    if ufunc is np.rint and result.kind == "c":
        tracer.refuse("complex numbers are rounded; round x.real and x.imag")


def _everywhere(tracer: Tracer, truth: bool, tensors: Sequence[Tensor]) -> Tensor:
    shape = tracer.broadcast_shape([t.shape for t in tensors])
    mask = next((t.mask for t in tensors if t.mask is not None), None)
    return Tensor(shape, np.dtype(bool), lambda _: number(truth, np.dtype(bool)), None, mask)


def _converted(expression: Expression, dtype: DType) -> Expression:
    """Of a number the number in the type."""
    if isinstance(expression, Constant) and expression.dtype != dtype:
        return number(expression.value, dtype)
    return cast(expression, dtype)


def _operand(expression: Expression, dtype: DType) -> Expression:
    """An operand in the type of a loop, of which NumPy computes those of float16 in float32."""
    found = _converted(expression, dtype)
    return cast(found, FLOAT32) if dtype == HALF else found


def _of_one_choice(tracer: Tracer, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    """Operands that one mask chooses from, or none."""
    return tensors if _choose_alike(tracer, tensors) else [tracer.chosen(t) for t in tensors]


def _choose_alike(tracer: Tracer, tensors: Sequence[Tensor]) -> bool:
    """Whether the masks of operands choose the same elements, or rows, of all of them."""
    masks = [t.mask for t in tensors if t.mask is not None]
    if not masks:
        return True
    rank = max(t.ndim for t in tensors if t.mask is not None)
    rest = rank - masks[0].ndim  # dimensions of a row
    return (
        all(same_mask(tracer, masks[0], m) for m in masks[1:])
        and all(t.ndim == rank for t in tensors if t.mask is not None)
        and all(
            t.ndim <= rest or (t.ndim == rest + 1 and is_one(t.shape[0]))
            for t in tensors
            if t.mask is None
        )
    )


def _kept_from(tracer: Tracer, mask: Tensor) -> Tensor:
    """The array of which a mask is a copy, if nothing was written to it since."""
    while isinstance(mask, View) and mask.container in tracer.links.copies:
        origin, block, first = tracer.links.copies[mask.container]
        if not isinstance(origin, View) or not origin.is_whole:
            return mask
        if block is not tracer.program.block or tracer.links.aliases:
            return mask
        if any(origin.container in _written_by(each) for each in block.statements[first:]):
            return mask
        mask = origin
    return mask


def _written_by(statement: Statement) -> Iterator[Container]:
    """Containers that a statement writes, those of its blocks, too."""
    yield from statement.writes()
    for block in statement.blocks():
        for inner in block.statements:
            yield from _written_by(inner)


def same_mask(tracer: Tracer, a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two masks choose the same elements; one may be what was kept of the other."""
    if a is None or b is None or a is b:
        return a is b
    if a.ndim != b.ndim:
        return False
    a, b = _kept_from(tracer, a), _kept_from(tracer, b)
    index = tuple(sympy.Symbol(f"__probe{d}", integer=True) for d in range(a.ndim))
    return a.element(index) == b.element(index)


def _broadcast_masked(tracer: Tracer, tensor: Tensor, shape: Sequence[Any]) -> Tensor:
    whole = Tensor(tensor.shape, tensor.dtype, tensor.element, tensor.weak)
    return tracer.broadcast(whole, shape)


def choose(tracer: Tracer, condition: Tensor, a: Tensor, b: Tensor, dtype: Any = None) -> Tensor:
    """``np.where(condition, a, b)``."""
    if dtype is None:
        kinds = [t.weak(0) if t.weak not in (None, bool) else t.dtype for t in (a, b)]
        if all(t.weak for t in (a, b)):
            kinds = [t.dtype for t in (a, b)]
        dtype = np.result_type(*kinds)
    shape = tracer.broadcast_shape([condition.shape, a.shape, b.shape])
    moved = [tracer.broadcast(t, shape) for t in (condition, a, b)]

    def element(index: tuple[Index, ...]) -> Expression:
        test, one, other = (t.element(index) for t in moved)
        return apply("where", truth_of(test), _converted(one, dtype), _converted(other, dtype))

    weak = a.weak if a.weak is not None and a.weak == b.weak else None
    return Tensor(shape, dtype, element, weak)


def converted(tracer: Tracer, value: object, dtype: Any) -> Tensor:
    """A tensor in another type, as ``astype`` converts it."""
    tensor = tracer.tensor(value)
    try:
        wanted = np.dtype(dtype)
    except TypeError:
        tracer.refuse(f"{told(dtype)} is no type of elements")
    if not is_carried(wanted):
        tracer.refuse(f"elements of the type {wanted}")
    if isinstance(tensor, RealOrComplex):
        tensor = tensor.in_complex
    if tensor.dtype.kind == "c" and wanted.kind in "fiu":
        real = apply_real(tensor)
        return Tensor(
            tensor.shape, wanted, lambda i: cast(real.element(i), wanted), None, tensor.mask
        )
    if wanted.kind == "b":
        return Tensor(
            tensor.shape, wanted, lambda i: truth_of(tensor.element(i)), None, tensor.mask
        )
    return Tensor(
        tensor.shape, wanted, lambda i: _converted(tensor.element(i), wanted), None, tensor.mask
    )


assert set(BUILDS) & set(OPERATIONS), "operations have NumPy's names"
