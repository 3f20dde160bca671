"""Functions of sequences: between points, filters, polynomials, integrals and phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine, converted
from distspmd.frontend.from_numpy.arrays.lines import cpp, run_on_lines
from distspmd.frontend.from_numpy.arrays.shapes import expand_dims, normal_axis, reshape
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, axis, make_view
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.numpy.scans import scan
from distspmd.frontend.from_numpy.numpy.sorting import look_up
from distspmd.frontend.tensor_ir.whole_numbers import (
    add,
    floor_divide,
    is_at_least,
    subtract,
)

FLOAT64 = np.dtype(np.float64)
LONGEST_FORMULA = 16
"""Polynomials of so many coefficients are written as one expression."""


# -- between points -------------------------------------------------------------------------------


@function(np.interp)
def _interp(
    run: Context,
    x: object,
    xp: object,
    fp: object,
    left: object = None,
    right: object = None,
    period: object = None,
) -> Tensor:
    tracer = run.tracer
    where, points, values = (tracer.tensor(v) for v in (x, xp, fp))
    kind = np.dtype(np.complex128) if values.dtype.kind == "c" else FLOAT64
    where, points = (converted(tracer, t, FLOAT64) for t in (where, points))
    values = converted(tracer, values, kind)
    if period is not None:
        where, points, values = _periodic(run, where, points, values, period)
        left = right = None
    count = cpp(points.shape[0])
    wholes: list[Tensor] = [tracer.stored(points), tracer.stored(values)]
    ends = []
    for given, default in ((left, "_whole1[0]"), (right, f"_whole1[{count} - 1]")):
        if given is None:
            ends.append(default)
        else:
            end = tracer.stored_anew(converted(tracer, given, kind), "end")
            ends.append(f"_whole{len(wholes)}[0]")
            wholes.append(reshape(tracer, end, [1]))
    code = (
        f"*_result0 = distspmd::lines::interpolate<std::decay_t<decltype(*_result0)>>(*_line0, "
        f"_whole0, _whole1, {count}, {ends[0]}, {ends[1]});"
    )
    return look_up(run, "interp", where, wholes, kind, code)


def _periodic(
    run: Context, x: object, points: Any, values: Any, period: Any
) -> tuple[Any, Any, Any]:
    """Points over one period, in order, with those next to it."""
    tracer = run.tracer
    length = combine(tracer, np.absolute, [converted(tracer, period, FLOAT64)])
    x = combine(tracer, np.remainder, [x, length])
    points = tracer.stored(combine(tracer, np.remainder, [points, length]))
    order = run.call(np.argsort, [points], {})
    points, values = (run.call(np.take, [t, order, 0], {}) for t in (points, values))
    last = slice(-1, None), slice(0, 1)
    low, high = (indexing.read(tracer, points, part) for part in last)
    around = [
        combine(tracer, np.subtract, [low, length]),
        points,
        combine(tracer, np.add, [high, length]),
    ]
    first, second = (indexing.read(tracer, values, part) for part in last)
    return (
        x,
        run.call(np.concatenate, [around], {}),
        run.call(np.concatenate, [[first, values, second]], {}),
    )


# -- filters --------------------------------------------------------------------------------------


def _is_longer(tracer: Tracer, n: Any, m: Any) -> bool:
    """Whether a length is at least as much as another one, or as the most that this one can be."""
    if is_at_least(subtract(n, m), 0, tracer.known.bounds):
        return True
    decided = [tracer.is_decided_by_data(each) for each in (n, m)]
    return decided == [False, True] and is_at_least(
        subtract(n, tracer.capacity(m)), 0, tracer.known.bounds
    )


def _filtered(run: Context, name: str, a: Tensor, v: Tensor, mode: str) -> tuple[Tensor, bool]:
    """Sums of products of windows of the longer one with the other; whether they were swapped."""
    tracer = run.tracer
    if a.ndim != 1 or v.ndim != 1:
        tracer.refuse(f"np.{name}: object of too small depth or too deep for desired array")
    if mode not in ("full", "same", "valid"):
        tracer.refuse(f"np.{name}: mode is 'full', 'same' or 'valid', not {mode!r}")
    n, m = a.shape[0], v.shape[0]
    if _is_longer(tracer, n, m):
        swapped = False
    elif _is_longer(tracer, m, n) or mode == "full":
        swapped = True
        a, v, n, m = v, a, m, n
    else:
        tracer.refuse(
            f"np.{name}(mode={mode!r}) of lengths {n} and {m}, of which the longer is not known"
        )
    kind = np.result_type(a.dtype, v.dtype)
    a, v = (t if t.dtype == kind else converted(tracer, t, kind) for t in (a, v))
    before = {"full": subtract(m, 1), "same": floor_divide(m, 2), "valid": 0}[mode]
    after = {"full": subtract(m, 1), "same": subtract(subtract(m, 1), floor_divide(m, 2))}.get(
        mode, 0
    )
    if mode != "valid":
        padded = run.call(np.zeros, [add(n, add(before, after))], {"dtype": kind})
        tracer.target, target = None, tracer.target
        indexing.write(tracer, padded, slice(before, add(before, n)), a)
        tracer.target, a = target, padded
    count = add(subtract(a.shape[0], m), 1)
    code = f"*_result0 = distspmd::lines::dot(_line0, _whole0, {cpp(m)});"
    (found,) = run_on_lines(
        tracer, name, [count], [windows(run, a, m, 0)], [v], [(None, kind)], code
    )
    return found, swapped


def windows(run: Context, tensor: Tensor, length: object, d: int) -> View:
    """All windows of a length along a dimension, as a view; the window is the last dimension."""
    tracer = run.tracer
    base = tracer.unmerged(tracer.stored(tensor))
    assert isinstance(base, View)
    shape = list(base.shape)
    shape[d] = add(subtract(shape[d], length), 1)
    index = [axis(e) for e in range(base.ndim)]
    index[d] = axis(d) + axis(base.ndim)
    return make_view(base.container, [*shape, length], base.at(index))


@function(np.correlate)
def _correlate(run: Context, a: object, v: object, mode: str = "valid") -> Tensor:
    tracer = run.tracer
    one, other = tracer.tensor(a), combine(tracer, np.conjugate, [v])
    found, swapped = _filtered(run, "correlate", one, other, mode)
    return run.call(np.flip, [found], {}) if swapped else found


@function(np.convolve)
def _convolve(run: Context, a: object, v: object, mode: str = "full") -> Tensor:
    tracer = run.tracer
    one, other = (tracer.tensor(t) for t in (a, v))
    one, other = (
        reshape(tracer, tracer.stored(t), [1]) if t.ndim == 0 else t for t in (one, other)
    )
    if one.ndim != 1 or other.ndim != 1:
        tracer.refuse("np.convolve: object too deep for desired array")
    n, m = one.shape[0], other.shape[0]
    is_known = _is_longer(tracer, n, m) or _is_longer(tracer, m, n)
    own = mode if is_known or mode not in ("same", "valid") else "full"
    found, swapped = _filtered(run, "convolve", one, run.call(np.flip, [other], {}), own)
    whole = run.call(np.flip, [found], {}) if swapped else found
    return whole if own == mode else _inside(run, whole, n, m, mode)


def _inside(run: Context, whole: Tensor, n: object, m: object, mode: str) -> Tensor:
    """The part of a whole convolution that a mode asks for, where the run says who is longer."""
    less, more = sympy.Min(n, m), sympy.Max(n, m)
    first = subtract(less, 1)
    count = add(subtract(more, less), 1)
    if mode == "same":
        first, count = subtract(first, floor_divide(less, 2)), more
    return indexing.read(run.tracer, whole, slice(first, add(first, count)))


@function(np.lib.stride_tricks.sliding_window_view)
def _sliding_window_view(
    run: Context, x: object, window_shape: object, axis: object = None, **options: object
) -> Tensor:
    tracer = run.tracer
    tensor = tracer.tensor(x)
    lengths = list(window_shape) if isinstance(window_shape, tuple | list) else [window_shape]
    chosen = list(range(tensor.ndim)) if axis is None else axis
    chosen = list(chosen) if isinstance(chosen, tuple | list) else [chosen]
    if len(chosen) != len(lengths):
        tracer.refuse("Must provide matching length window_shape and axis.")
    found: Tensor = tracer.stored(tensor)
    for n, a in zip(lengths, chosen, strict=True):
        d = normal_axis(tracer, a, tensor.ndim)
        found = windows(run, found, tracer.as_whole(n, "the length of a window"), d)
    return found


# -- polynomials ----------------------------------------------------------------------------------


@function(np.polyval)
def _polyval(run: Context, p: object, x: object) -> Tensor:
    tracer = run.tracer
    coefficients, where = tracer.tensor(p), tracer.tensor(x)
    if coefficients.ndim != 1:
        tracer.refuse("np.polyval: coefficients of one polynomial, in one dimension")
    count = coefficients.shape[0]
    kind = np.result_type(coefficients.dtype, where.weak(0) if where.weak else where.dtype)
    if isinstance(count, int) and count <= LONGEST_FORMULA and where.ndim == 0:
        coefficients, where = tracer.settled(coefficients), tracer.settled(where)
        found: Any = run.call(np.zeros_like, [where], {})
        for n in range(count):
            one = indexing.read(tracer, coefficients, n)
            product = combine(tracer, np.multiply, [found, where])
            found = combine(tracer, np.add, [product, one])
        return found  # type: ignore[no-any-return]
    coefficients, where = (converted(tracer, t, kind) for t in (coefficients, where))
    code = f"*_result0 = distspmd::lines::polynomial(_whole0, {cpp(count)}, *_line0);"
    return look_up(run, "polyval", where, [tracer.stored(coefficients)], kind, code)


@function(np.vander)
def _vander(run: Context, x: object, N: object = None, increasing: bool = False) -> Tensor:  # noqa: N803
    tracer = run.tracer
    tensor = tracer.tensor(x)
    if tensor.ndim != 1:
        tracer.refuse("x must be a one-dimensional array or sequence.")
    columns = tensor.shape[0] if N is None else tracer.as_whole(N, "the number of columns")
    kind = np.promote_types(tensor.dtype, int)
    column = expand_dims(tracer, converted(tracer, tensor, kind), [1])
    is_first = combine(tracer, np.equal, [run.call(np.arange, [columns], {}), 0])
    factors = choose(tracer, is_first, tracer.tensor(kind.type(1)), column)
    found = scan(run, "multiply", factors, 1, kind)
    if increasing:
        return found
    return run.call(np.flip, [found, 1], {})  # type: ignore[no-any-return]


# -- integrals and phases -------------------------------------------------------------------------


def _part(run: Context, tensor: Tensor, d: int, part: slice) -> Tensor:
    return indexing.read(run.tracer, tensor, (*(slice(None) for _ in range(d)), part))


@function(*(getattr(np, n) for n in ("trapezoid", "trapz") if hasattr(np, n)))
def _trapezoid(
    run: Context, y: object, x: object = None, dx: object = 1.0, axis: object = -1
) -> Any:
    tracer = run.tracer
    values = tracer.settled(tracer.tensor(y))
    d = normal_axis(tracer, axis, values.ndim)
    width: Any = dx
    if x is not None:
        points = tracer.tensor(x)
        if points.ndim == 1:
            width = run.call(np.diff, [points], {})
            width = reshape(
                tracer,
                tracer.stored(width),
                [width.shape[0] if e == d else 1 for e in range(values.ndim)],
            )
        else:
            width = run.call(np.diff, [points], {"axis": d})
    pairs = combine(
        tracer,
        np.add,
        [_part(run, values, d, slice(1, None)), _part(run, values, d, slice(None, -1))],
    )
    areas = combine(tracer, np.divide, [combine(tracer, np.multiply, [width, pairs]), 2.0])
    return run.call(np.sum, [areas, d], {})


@function(np.unwrap)
def _unwrap(
    run: Context,
    p: object,
    discont: object = None,
    axis: object = -1,
    *,
    period: object = 2 * np.pi,
) -> Tensor:
    tracer = run.tracer
    phases = tracer.tensor(p)
    if phases.dtype.kind in "biu":
        if not isinstance(period, float):
            return run.call(rarer_forms.unwrapped, [p, discont, axis, period], {})  # type: ignore[no-any-return]
        phases = converted(tracer, phases, FLOAT64)
    phases = tracer.stored(phases)
    d = normal_axis(tracer, axis, phases.ndim)
    steps = tracer.stored(run.call(np.diff, [phases], {"axis": d}))
    half = combine(tracer, np.divide, [period, 2])
    low = combine(tracer, np.negative, [half])
    shifted = combine(tracer, np.subtract, [steps, low])
    inside = combine(tracer, np.add, [combine(tracer, np.remainder, [shifted, period]), low])
    inside = tracer.stored_anew(inside)
    is_ambiguous = combine(
        tracer,
        np.logical_and,
        [combine(tracer, np.equal, [inside, low]), combine(tracer, np.greater, [steps, 0])],
    )
    inside = choose(tracer, is_ambiguous, half, inside, inside.dtype)
    least = half if discont is None else tracer.tensor(discont)
    is_small = combine(tracer, np.less, [combine(tracer, np.absolute, [steps]), least])
    correction = combine(tracer, np.subtract, [inside, steps])
    correction = choose(tracer, is_small, tracer.tensor(0.0), correction, steps.dtype)
    total = scan(run, "add", correction, d, steps.dtype)
    first = [1 if e == d else n for e, n in enumerate(phases.shape)]
    zeros = run.call(np.zeros, [first], {"dtype": steps.dtype})
    whole = run.call(np.concatenate, [[zeros, total]], {"axis": d})
    return combine(tracer, np.add, [phases, whole])
