"""Arrays that NumPy makes real or complex by their values, as the eigenvalues of a real matrix.

They are computed in complex numbers, and so is what is computed with them; whether the run has
found complex ones is a truth value beside them. What is real in both cases, as absolute values,
real parts, comparisons and orders, is an array as all others, and a program's result has the type
that NumPy gives it in this run. Where one type has to be known, as in an array of real numbers that
they are written into, they are real, and the program ends where the run has found others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distspmd.errors import NOTED
from distspmd.expressions.ir import Expression, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, number
from distspmd.frontend.tensor_ir.statements import Index


@dataclass(eq=False)
class RealOrComplex(Tensor):
    """An array of real numbers, or of complex ones: the run decides.

    Its elements are the real numbers; where they are read and others were found, the program ends.

    Attributes:
        in_complex: the complex numbers; where none were found, their imaginary parts are 0.
        is_complex: whether others than real numbers were found, a truth value.
        tracer: of the program.
    """

    in_complex: Tensor = field(kw_only=True)
    is_complex: Tensor = field(kw_only=True)
    tracer: Any = field(kw_only=True)


NOTED_KIND = next(n for n, (_, text) in enumerate(NOTED) if text.startswith("complex numbers"))


def real_type(dtype: DType) -> DType:
    """The type of the parts of complex numbers, or a real type itself."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def real_or_complex(tracer: Tracer, in_complex: Tensor, is_complex: Tensor) -> RealOrComplex:
    """Complex numbers that are real ones unless the run has found others."""
    real = real_type(in_complex.dtype)

    def element(index: tuple[Index, ...]) -> Expression:
        found = apply("real", in_complex.element(index), dtype=real)
        guard, failed = tracer.guard(), is_complex.element(())
        test = failed if guard is None else apply("logical_and", guard, failed)
        numbers = (NOTED_KIND, tracer.line[1] if tracer.line else 0, 0, 0)
        return apply("checked", found, test, *(number(n, INT64) for n in numbers))

    return RealOrComplex(
        in_complex.shape,
        real,
        element,
        in_complex.weak and float,
        is_on_demand=True,
        in_complex=in_complex,
        is_complex=is_complex,
        tracer=tracer,
    )


def complex_form(value: RealOrComplex) -> Tensor:
    """The complex numbers."""
    return value.in_complex


def real_form(value: RealOrComplex) -> Tensor:
    """The real numbers, without the question whether they are all."""
    whole, real = value.in_complex, value.dtype
    return Tensor(
        value.shape, real, lambda i: apply("real", whole.element(i), dtype=real), value.weak
    )


def checked_form(value: RealOrComplex) -> Tensor:
    """The real numbers; the program ends where others were found."""
    return Tensor(value.shape, value.dtype, value.element, value.weak, is_on_demand=True)


def as_typed(value: Any, dtype: DType) -> Any:
    """A value for elements of a type: of complex numbers, where those take what the run finds."""
    is_taken = isinstance(value, RealOrComplex) and dtype.kind == "c"
    return value.in_complex if is_taken else value


def found_in(value: object) -> list[RealOrComplex]:
    """All such arrays in arguments."""
    if isinstance(value, RealOrComplex):
        return [value]
    if isinstance(value, list | tuple):
        return [each for part in value for each in found_in(part)]
    if isinstance(value, Mapping):
        return [each for part in value.values() for each in found_in(part)]
    return []


def replaced(value: Any, form: Callable[[RealOrComplex], Tensor]) -> Any:
    """Arguments in which such arrays have one of their forms."""
    if isinstance(value, RealOrComplex):
        return form(value)
    if not found_in(value):
        return value
    if isinstance(value, Mapping):
        return {key: replaced(part, form) for key, part in value.items()}
    made = [replaced(part, form) for part in value]
    return made if isinstance(value, list) else tuple(made)


def joined(sources: Sequence[RealOrComplex], in_complex: Tensor) -> RealOrComplex:
    """What is computed of such arrays: complex where the run has found any of them to be."""
    return real_or_complex(sources[0].tracer, in_complex, any_complex(sources))


def to_be_written(tracer: Tracer, base: object, value: object) -> tuple[Any, Any]:
    """What elements are assigned to, and what is assigned, where the run decides on the types."""
    if not isinstance(base, RealOrComplex):
        return base, as_typed(value, base.dtype) if isinstance(base, Tensor) else value
    if isinstance(value, RealOrComplex):
        is_alike = value.is_complex is base.is_complex
        value = value.in_complex if is_alike else checked_form(value)
    elif np.result_type(getattr(value, "dtype", type(value))).kind == "c":
        tracer.refuse(
            "complex numbers are assigned to elements that are real or complex as the run decides; "
            "write a.astype(complex) before"
        )
    return base.in_complex, value


def any_complex(sources: Sequence[RealOrComplex]) -> Tensor:
    """Whether the run has found complex numbers in any of some arrays."""
    truths = list({id(each.is_complex): each.is_complex for each in sources}.values())

    def element(_: tuple[Index, ...]) -> Expression:
        found = truths[0].element(())
        for other in truths[1:]:
            found = apply("logical_or", found, other.element(()))
        return found

    return truths[0] if len(truths) == 1 else Tensor((), truths[0].dtype, element)
