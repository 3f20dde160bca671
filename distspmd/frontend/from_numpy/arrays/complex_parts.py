"""The parts of complex numbers."""

from __future__ import annotations

import numpy as np

from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.from_numpy.arrays.images import image_of
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, real_type
from distspmd.frontend.from_numpy.arrays.values import Tensor, number
from distspmd.frontend.tensor_ir.statements import Index


def apply_real(tensor: Tensor) -> Tensor:
    """The real part, through which the numbers are written."""
    return image_of(tensor, _real, _with_real) if _is_complex(tensor) else _real(tensor)


def apply_imag(tensor: Tensor) -> Tensor:
    """The imaginary part, likewise."""
    return image_of(tensor, _imag, _with_imag) if _is_complex(tensor) else _imag(tensor)


def _is_complex(tensor: Tensor) -> bool:
    return not isinstance(tensor, RealOrComplex) and tensor.dtype.kind == "c"


def _with_real(part: Tensor, whole: Tensor) -> Tensor:
    return from_parts(part, _imag(whole))


def _with_imag(part: Tensor, whole: Tensor) -> Tensor:
    return from_parts(_real(whole), part)


def _real(tensor: Tensor) -> Tensor:
    if isinstance(tensor, RealOrComplex):
        tensor = tensor.in_complex
    if tensor.dtype.kind != "c":
        return tensor
    kind = real_type(tensor.dtype)
    return Tensor(
        tensor.shape,
        kind,
        lambda i: apply("real", tensor.element(i), dtype=kind),
        tensor.weak and float,
        tensor.mask,
    )


def _imag(tensor: Tensor) -> Tensor:
    if isinstance(tensor, RealOrComplex):
        tensor = tensor.in_complex
    if tensor.dtype.kind != "c":
        return Tensor(tensor.shape, tensor.dtype, lambda _: number(0, tensor.dtype))
    kind = real_type(tensor.dtype)
    return Tensor(
        tensor.shape,
        kind,
        lambda i: apply("imag", tensor.element(i), dtype=kind),
        tensor.weak and float,
        tensor.mask,
    )


def from_parts(real: Tensor, imaginary: Tensor) -> Tensor:
    """The complex numbers that have such parts, of one shape."""
    kind = np.result_type(real.dtype, imaginary.dtype, np.complex64)

    def element(index: tuple[Index, ...]) -> Expression:
        return apply("from_parts", real.element(index), imaginary.element(index), dtype=kind)

    return Tensor(real.shape, kind, element)
