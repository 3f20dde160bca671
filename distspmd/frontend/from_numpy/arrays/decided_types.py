"""What is computed with arrays that are real or complex, as the run decides."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine
from distspmd.frontend.from_numpy.arrays.kinds import is_plain
from distspmd.frontend.from_numpy.arrays.real_or_complex import (
    RealOrComplex,
    any_complex,
    checked_form,
    complex_form,
    found_in,
    joined,
    real_form,
    replaced,
)
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.runtime.calls.form import rebuilt


def stored(run: Context, value: RealOrComplex, name: str | None = None) -> RealOrComplex:
    """Such an array as it is now, whatever is written later."""
    found = value.in_complex
    if isinstance(found, View) or run.tracer.map.straight is not None:
        return value
    return joined([value], run.tracer.stored_anew(found, name))


def of_ufunc(tracer: Tracer, ufunc: np.ufunc, operands: Sequence[Any], dtype: object) -> Tensor:
    """A universal function: of complex numbers or of real ones, as the run decides."""
    if tracer.map.straight is None:
        operands = [
            joined([o], tracer.settled(o.in_complex)) if isinstance(o, RealOrComplex) else o
            for o in operands
        ]
    try:
        found = combine(tracer, ufunc, replaced(operands, complex_form), dtype)
    except Refusal:  # it is one of real numbers alone
        return combine(tracer, ufunc, replaced(operands, checked_form), dtype)
    return _of_both(tracer, operands, found, combine(tracer, ufunc, _real(operands), dtype))


def _real(operands: Sequence[Any]) -> Any:
    return replaced(list(operands), real_form)


def _of_both(tracer: Tracer, operands: object, of_complex: Tensor, of_real: Tensor) -> Tensor:
    sources = found_in(operands)
    chosen = choose(tracer, any_complex(sources), of_complex, of_real, of_complex.dtype)
    is_open = of_complex.dtype.kind == "c" and of_real.dtype.kind != "c"
    return joined(sources, chosen) if is_open else chosen


_WITHOUT_A_TYPE: frozenset[Any] = frozenset(
    [
        *(len, list, tuple, enumerate, zip, reversed, isinstance, type, hasattr, callable),
        *(np.shape, np.ndim, np.size, map, filter, any, all, sum),
    ]
)
"""Functions that do not ask for the numbers, or take them one by one."""
_OF_REAL: frozenset[Any] = frozenset([float, int, sorted, min, max, round, print])
"""Functions that complex numbers are not given to."""
_COMPLEX: frozenset[Any] = frozenset(
    [complex, np.sort_complex, *(f for f in vars(cmath).values() if callable(f))]
)
"""Functions whose results are complex always."""


_ERRORS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)


def _known_or_called(
    run: Context, call: Callable[..., Any], given: Sequence[Any], named: Any
) -> Any:
    """What a call gives; of what is known it may raise what Python raises."""
    try:
        return call(run, *given, **named)
    except _ERRORS as problem:
        if is_plain((list(given), dict(named))):
            run.tracer.fail(problem)
        raise


def handled(
    run: Context, call: Callable[..., Any], function: Any, given: Sequence[Any], named: Any
) -> Any:
    """What a function of NumPy gives, also of arrays that are real or complex.

    Args:
        run: the interpreter.
        call: the function of ours that says what it gives.
        function: that the program calls, or the name of a method.
        given: arguments in order; of a method the array is the first one.
        named: arguments by name.
    """
    sources = found_in((list(given), dict(named)))
    if not sources:
        return _known_or_called(run, call, given, named)
    try:
        is_known, is_real = function in _WITHOUT_A_TYPE, function in _OF_REAL
        is_complex = function in _COMPLEX or function == "astype"
    except TypeError:
        is_known, is_real, is_complex = False, False, False
    if function is np.iscomplexobj or function is np.isrealobj:
        return _kind_asked_for(run, sources, function)
    if is_known:
        return call(run, *given, **named)
    if is_real or named.get("out") is not None:
        return _called(run, call, given, named, checked_form)
    if function is np.angle:
        found = [_called(run, call, given, named, form) for form in (complex_form, real_form)]
        return choose(run.tracer, any_complex(sources), *found)
    saved = Saved(run)
    try:
        found = _called(run, call, given, named, complex_form)
    except Refusal:
        saved.restore(run)
        return _called(run, call, given, named, checked_form)
    known = is_complex or named.get("dtype") is not None
    return found if known else _opened(sources, found)


def attribute(run: Context, handler: Callable[..., Any], name: str, base: RealOrComplex) -> Any:
    """What an attribute gives."""
    if name in ("dtype", "itemsize", "nbytes"):
        run.tracer.refuse(
            f"the attribute {name!r} of what is real or complex as the run decides; write "
            "a.astype(complex) before, or take np.real(...) of it"
        )
    if name in ("shape", "ndim", "size"):
        return handler(run, base)
    found = handler(run, base.in_complex)
    return found if name in ("real", "imag") else _opened([base], found)


def _called(
    run: Context,
    call: Callable[..., Any],
    given: Sequence[Any],
    named: Mapping[str, Any],
    form: Callable[[RealOrComplex], Tensor],
) -> Any:
    return call(run, *replaced(list(given), form), **replaced(dict(named), form))


def _kind_asked_for(run: Context, sources: Sequence[RealOrComplex], function: object) -> Any:
    """``np.iscomplexobj`` and ``np.isrealobj``: truth values of Python."""
    found = any_complex(sources)
    if function is np.isrealobj:
        found = combine(run.tracer, np.logical_not, [found])
    return Tensor((), found.dtype, found.element, bool)


def _opened(sources: Sequence[RealOrComplex], found: Any) -> Any:
    """Results as they are where they are real in any case, and else real or complex."""
    if isinstance(found, tuple):
        return rebuilt(found, [_opened(sources, each) for each in found])
    if isinstance(found, list):
        return [_opened(sources, each) for each in found]
    is_open = isinstance(found, Tensor) and found.dtype.kind == "c"
    return joined(sources, found) if is_open and not isinstance(found, RealOrComplex) else found
