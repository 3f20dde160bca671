"""Fourier transforms, ``np.fft``: lines are transformed where they are, and others are split.

A transform over several dimensions is one after the other; between them the array is redistributed,
so that each dimension is whole when it is transformed (the pencil transform). A long line alone is
transformed by all ranks (:class:`distspmd.nodes.line_in_parts.LineInParts`). Lines are
transformed by ``kernels/fourier.hpp``, many at once and wherever they lie: no dimension is moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.lines import cpp, in_parts, is_long, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import long_transforms
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.tensor_ir.statements import Length
from distspmd.frontend.tensor_ir.whole_numbers import (
    add,
    floor_divide,
    multiply,
    remainder,
    same,
    simplified,
    subtract,
)
from distspmd.nodes.line_in_parts import TRANSFORM

HEADER = "kernels/fourier.hpp"
_OPPOSITE = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}


def _halves(run: Context, norm: object, inverse: bool) -> int:
    """The power of the square root of the length by which a transform is divided."""
    if norm not in _OPPOSITE:
        run.tracer.refuse(f'norm has to be "backward", "ortho" or "forward", not {norm!r}')
    if norm == "ortho":
        return 1
    return 2 if inverse == (norm != "forward") else 0


def _scale(run: Context, norm: object, inverse: bool, length: Length) -> str:
    """The factor of a transform, in C++."""
    of = f"double({cpp(length)})"
    return ("1.0", f"1 / std::sqrt({of})", f"1 / {of}")[_halves(run, norm, inverse)]


def _length(run: Context, n: object, default: Length) -> Length:
    if n is None:
        return default
    found = run.tracer.as_whole(n, "the length of a transform")
    if isinstance(found, int) and found < 1:
        run.tracer.refuse(f"Invalid number of FFT data points ({found}) specified.")
    return found


def _prepared(run: Context, value: Any, called: Callable[..., Any]) -> tuple[Tensor, np.dtype[Any]]:
    """A tensor with elements that are transformed, and the type of the results."""
    tensor = run.tracer.tensor(value)
    if tensor.ndim == 0:
        run.tracer.refuse("the transform of a number: an array has to have a dimension")
    kind = called(np.ones(4, tensor.dtype)).dtype
    own = np.dtype(f"f{kind.itemsize // 2}" if kind.kind == "c" else kind)
    if tensor.dtype.kind == "c":
        own = np.dtype(f"c{own.itemsize * 2}")
    if tensor.dtype != own:
        tensor = converted(run.tracer, tensor, own)
    return tensor, kind


def _on_lines(
    run: Context, name: str, tensor: Tensor, d: int, made: tuple[Length, np.dtype[Any]], code: str
) -> Tensor:
    """What code makes of the lines along a dimension, wherever they lie."""
    batch = (*tensor.shape[:d], *tensor.shape[d + 1 :])
    (found,) = run_on_lines(run.tracer, name, batch, [tensor], [], [made], code, HEADER, along=d)
    return found


def transform(
    run: Context,
    value: object,
    n: object = None,
    axis: object = -1,
    norm: object = None,
    inverse: bool = False,
) -> Tensor:
    """``np.fft.fft`` or ``np.fft.ifft``."""
    tensor, kind = _prepared(run, value, np.fft.fft)
    d = normal_axis(run.tracer, axis, tensor.ndim)
    length = _length(run, n, tensor.shape[d])
    name = "ifft" if inverse else "fft"
    if is_long(run.tracer, tensor) and same(length, tensor.shape[d]):
        options = [str(inverse).lower(), str(_halves(run, norm, inverse))]
        return in_parts(run.tracer, name, TRANSFORM, {"_in": tensor}, kind, options)
    code = (
        f"distspmd::fourier::complex_to_complex(_lines, _line0, {cpp(tensor.shape[d])}, _result0, "
        f"{cpp(length)}, {str(inverse).lower()}, {_scale(run, norm, inverse, length)});"
    )
    return _on_lines(run, name, tensor, d, (length, kind), code)


def real_transform(
    run: Context, value: object, n: object = None, axis: object = -1, norm: object = None
) -> Tensor:
    """``np.fft.rfft``."""
    if run.tracer.tensor(value).dtype.kind == "c":
        run.tracer.refuse("np.fft.rfft of complex numbers: use np.fft.fft")
    tensor, kind = _prepared(run, value, np.fft.rfft)
    d = normal_axis(run.tracer, axis, tensor.ndim)
    length = _length(run, n, tensor.shape[d])
    if (
        is_long(run.tracer, tensor)
        and same(length, tensor.shape[d])
        and same(remainder(length, 2), 0)
    ):
        found = run.call(long_transforms.rfft, [tensor, _halves(run, norm, False)], {})
        return converted(run.tracer, found, kind)
    code = (
        f"distspmd::fourier::real_to_complex(_lines, _line0, {cpp(tensor.shape[d])}, _result0, "
        f"{cpp(length)}, {_scale(run, norm, False, length)});"
    )
    many = add(floor_divide(length, 2), 1)
    return _on_lines(run, "rfft", tensor, d, (many, kind), code)


def real_inverse(
    run: Context, value: object, n: object = None, axis: object = -1, norm: object = None
) -> Tensor:
    """``np.fft.irfft``."""
    tensor, kind = _prepared(run, value, np.fft.irfft)
    d = normal_axis(run.tracer, axis, tensor.ndim)
    whole = multiply(2, subtract(tensor.shape[d], 1))
    length = _length(run, n, whole)
    if is_long(run.tracer, tensor) and same(length, whole):
        found = run.call(long_transforms.irfft, [tensor, _halves(run, norm, True)], {})
        return converted(run.tracer, found, kind)
    code = (
        f"distspmd::fourier::complex_to_real(_lines, _line0, {cpp(tensor.shape[d])}, _result0, "
        f"{cpp(length)}, {_scale(run, norm, True, length)});"
    )
    return _on_lines(run, "irfft", tensor, d, (length, kind), code)


def _one_dimension(made: Any) -> Any:
    def call(
        run: Context, a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None
    ) -> Any:
        return finished(run, made(run, a, n, axis, norm), out)

    return call


def _inverse(run: Context, value: object, n: object, axis: object, norm: object) -> Tensor:
    return transform(run, value, n, axis, norm, inverse=True)


def _hermitian(run: Context, value: object, n: object, axis: object, norm: object) -> Tensor:
    conjugate = combine(run.tracer, np.conjugate, [value])
    return real_inverse(run, conjugate, n, axis, _opposite(run, norm))


def _inverse_hermitian(
    run: Context, value: object, n: object, axis: object, norm: object
) -> Tensor:
    found = real_transform(run, value, n, axis, _opposite(run, norm))
    return combine(run.tracer, np.conjugate, [found])


def _opposite(run: Context, norm: Any) -> Any:
    if norm not in _OPPOSITE:
        _scale(run, norm, False, 1)
    return _OPPOSITE[norm]


function(np.fft.fft)(_one_dimension(transform))
function(np.fft.ifft)(_one_dimension(_inverse))
function(np.fft.rfft)(_one_dimension(real_transform))
function(np.fft.irfft)(_one_dimension(real_inverse))
function(np.fft.hfft)(_one_dimension(_hermitian))
function(np.fft.ihfft)(_one_dimension(_inverse_hermitian))


# -- several dimensions ---------------------------------------------------------------------------


def _sizes(
    run: Context, tensor: Tensor, s: Any, axes: Any, is_real_inverse: bool
) -> tuple[list[Any], list[int]]:
    """Lengths, of which None keeps what is there, and dimensions."""
    tracer = run.tracer
    if axes is None:
        chosen = list(range(tensor.ndim))
        if s is not None:
            chosen = chosen[tensor.ndim - len(s) :]
    else:
        chosen = [normal_axis(tracer, a, tensor.ndim) for a in axes]
    lengths = [None] * len(chosen) if s is None else [*s]
    if len(lengths) != len(chosen):
        tracer.refuse("Shape and axes have different lengths.")
    lengths = [None if isinstance(n, int) and n == -1 else n for n in lengths]
    if is_real_inverse and s is not None and lengths and lengths[-1] is None:
        lengths[-1] = tensor.shape[chosen[-1]]
    return lengths, chosen


def _complex_over(inverse: bool) -> Any:
    def made(
        run: Context, tensor: Tensor, lengths: Sequence[Any], axes: Sequence[int], norm: object
    ) -> Any:
        for n, d in reversed(list(zip(lengths, axes, strict=True))):
            tensor = transform(run, tensor, n, d, norm, inverse)
        return tensor

    return made


def _real_over(
    run: Context, tensor: Tensor, lengths: Sequence[Any], axes: Sequence[int], norm: object
) -> Tensor:
    found = real_transform(run, tensor, lengths[-1], axes[-1], norm)
    for n, d in reversed(list(zip(lengths[:-1], axes[:-1], strict=True))):
        found = transform(run, found, n, d, norm)
    return found


def _real_inverse_over(
    run: Context, tensor: Tensor, lengths: Sequence[Any], axes: Sequence[int], norm: object
) -> Tensor:
    for n, d in zip(lengths[:-1], axes[:-1], strict=True):
        tensor = transform(run, tensor, n, d, norm, inverse=True)
    return real_inverse(run, tensor, lengths[-1], axes[-1], norm)


def _several_dimensions(made: Any, default: object) -> Any:
    def call(
        run: Context, a: Any, s: Any = None, axes: Any = default, norm: Any = None, out: Any = None
    ) -> Any:
        tensor = run.tracer.tensor(a)
        lengths, chosen = _sizes(run, tensor, s, axes, made is _real_inverse_over)
        if not chosen:
            run.tracer.refuse("a transform over no dimensions")
        return finished(run, made(run, tensor, lengths, chosen, norm), out)

    return call


for _kind, _made in (
    ("fft", _complex_over(False)),
    ("ifft", _complex_over(True)),
    ("rfft", _real_over),
    ("irfft", _real_inverse_over),
):
    function(getattr(np.fft, f"{_kind}2"))(_several_dimensions(_made, (-2, -1)))
    function(getattr(np.fft, f"{_kind}n"))(_several_dimensions(_made, None))


# -- frequencies and their order ------------------------------------------------------------------


def _shifting(sign: int) -> Any:
    def call(run: Context, x: object, axes: object = None) -> Any:
        tensor = run.tracer.tensor(x)
        if axes is None:
            axes = range(tensor.ndim)
        chosen = axes if isinstance(axes, tuple | list | range) else (axes,)
        for a in chosen:
            d = normal_axis(run.tracer, a, tensor.ndim)
            half = floor_divide(tensor.shape[d], 2)
            tensor = run.call(np.roll, [tensor, multiply(sign, half), d], {})
        return tensor

    return call


function(np.fft.fftshift)(_shifting(1))
function(np.fft.ifftshift)(_shifting(-1))


@function(np.fft.fftfreq)
def _fftfreq(run: Context, n: object, d: object = 1.0, **_: object) -> Tensor:
    length = run.tracer.as_whole(n, "the length of a transform")
    numbers = run.call(np.arange, [length], {})
    positive = combine(run.tracer, np.less, [numbers, floor_divide(add(length, 1), 2)])
    below = combine(run.tracer, np.subtract, [numbers, simplified(length)])
    return _over_spacing(run, choose(run.tracer, positive, numbers, below), length, d)


@function(np.fft.rfftfreq)
def _rfftfreq(run: Context, n: object, d: object = 1.0, **_: object) -> Tensor:
    length = run.tracer.as_whole(n, "the length of a transform")
    numbers = run.call(np.arange, [add(floor_divide(length, 2), 1)], {})
    return _over_spacing(run, numbers, length, d)


def _over_spacing(run: Context, numbers: Tensor, length: Length, d: object) -> Tensor:
    tracer = run.tracer
    width = combine(tracer, np.multiply, [length, d])
    value = combine(tracer, np.divide, [1.0, width])
    found = combine(tracer, np.multiply, [numbers, value])
    result: Tensor = tracer.stored_anew(converted(tracer, found, dtype_of(run, None, found.dtype)))
    return result
