"""``np.pad``."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.shapes import broadcast_to, flip
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.numpy.joins import concatenate
from distspmd.frontend.from_numpy.numpy.registry import METHODS, function
from distspmd.frontend.tensor_ir.whole_numbers import add, subtract


@function(np.pad)
def _pad(
    run: Context, value: object, pad_width: object, mode: object = "constant", **options: object
) -> Any:
    tracer = run.tracer
    tensor = tracer.stored(tracer.tensor(value))
    widths = _pairs(run, _by_dimension(pad_width, tensor.ndim), tensor.ndim)
    if mode in ("maximum", "minimum", "mean", "median", "linear_ramp"):
        lengths, ends = options.get("stat_length"), options.get("end_values", 0)
        lengths = None if lengths is None else _pairs(run, lengths, tensor.ndim)
        given = [tensor, widths, mode, lengths, _pairs(run, ends, tensor.ndim, plain=True)]
        return run.call(rarer_forms.padded, given, {})
    if not isinstance(mode, str):
        return run.call(rarer_forms.padded_by, [mode, tensor, widths, dict(options)], {})
    values = _pairs(run, options.pop("constant_values", 0), tensor.ndim, plain=True)
    is_odd = options.pop("reflect_type", "even") == "odd" and mode in ("reflect", "symmetric")
    if options:
        tracer.refuse(f"np.pad with the argument {next(iter(options))!r}")
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        tracer.refuse(f"np.pad with the mode {mode!r}")
    for d, ((low, high), fills) in enumerate(zip(widths, values, strict=True)):
        before = _padding(run, tensor, d, low, mode, fills[0], before=True)
        after = _padding(run, tensor, d, high, mode, fills[1], before=False)
        if is_odd:
            before, after = _turned(run, tensor, d, before, 0), _turned(run, tensor, d, after, -1)
        parts = [*before, tensor, *after]
        if len(parts) > 1:
            tensor = concatenate(run, parts, d, dtype=tensor.dtype)
    return tensor


def _turned(run: Context, tensor: Tensor, d: int, parts: list[Tensor], end: int) -> list[Tensor]:
    """Reflected parts as they are with ``reflect_type="odd"``: on the other side of the edge."""
    if not parts:
        return []
    (part,) = parts
    width, length = part.shape[d], tensor.shape[d]
    if not (isinstance(width, int) and isinstance(length, int) and width < length):
        run.tracer.refuse("np.pad with reflect_type='odd' by more than all elements but one")
    place = slice(0, 1) if end == 0 else slice(-1, None)
    edge = indexing.read(run.tracer, tensor, ((slice(None),) * d + (place,)))
    twice = combine(run.tracer, np.multiply, [edge, 2])
    return [combine(run.tracer, np.subtract, [twice, part])]


def _by_dimension(given: object, rank: int) -> Any:
    """Widths of dimensions that a dictionary names; others have none."""
    if not isinstance(given, dict):
        return given
    found: list[Any] = [(0, 0)] * rank
    for axis, width in given.items():
        found[axis] = width if isinstance(width, tuple | list) else (width, width)
    return found


def _pairs(run: Context, given: object, rank: int, plain: bool = False) -> list[tuple[Any, Any]]:
    def whole(v: object) -> Any:
        return v if plain else run.tracer.as_whole(v, "a width of padding")

    if not isinstance(given, tuple | list):
        return [(whole(given), whole(given))] * rank
    if all(not isinstance(g, tuple | list) for g in given):
        if len(given) == 1:
            return [(whole(given[0]), whole(given[0]))] * rank
        return [(whole(given[0]), whole(given[1]))] * rank
    rows = [tuple(map(whole, g if len(g) == 2 else (g[0], g[0]))) for g in given]
    return rows * rank if len(rows) == 1 else rows


def _padding(
    run: Context, tensor: Tensor, d: int, width: object, mode: str, fill: object, *, before: bool
) -> list[Tensor]:
    tracer = run.tracer
    if width == 0:
        return []
    lead = (slice(None),) * d
    length = tensor.shape[d]
    shape = [width if k == d else n for k, n in enumerate(tensor.shape)]
    if mode == "constant":
        return [broadcast_to(tracer, converted(tracer, fill, tensor.dtype), shape)]
    if mode == "edge":
        end = slice(0, 1) if before else slice(subtract(length, 1), length)
        return [broadcast_to(tracer, indexing.read(tracer, tensor, (*lead, end)), shape)]
    if (
        isinstance(length, int)
        and isinstance(width, int)
        and width > (length - 1 if mode == "reflect" else length)
    ):
        places = np.pad(np.arange(length), (width, 0) if before else (0, width), mode=mode)  # type: ignore[call-overload]
        own = places[:width] if before else places[length:]
        return [indexing.read(tracer, tensor, (*lead, own))]
    if mode == "wrap":
        part = slice(subtract(length, width), length) if before else slice(0, width)
        return [indexing.read(tracer, tensor, (*lead, part))]
    skip = 1 if mode == "reflect" else 0
    if before:
        part = slice(skip, add(width, skip))
    else:
        part = slice(subtract(subtract(length, width), skip), subtract(length, skip))
    found = indexing.read(tracer, tensor, (*lead, part))
    return [flip(tracer, found, [d])]


_INSTEAD = "write np.resize(x, shape), or make an array of the new shape and assign its part"


def _resize(run: Context, base: Tensor, *shape: object, refcheck: bool = True) -> None:
    """``base.resize(shape)``: its elements in their order, with zeros behind them."""
    tracer = run.tracer
    name = _name_of(run, base)
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    extents = tuple(tracer.as_whole(n, "a length") for n in given)
    if not all(isinstance(n, int) for n in (*extents, *base.shape)):
        tracer.refuse(f"resize to or from a length that is not a number; {_INSTEAD}")
    flat = run.call(np.ravel, [base], {})
    before, count = math.prod(base.shape), math.prod(extents)
    if count < before:
        flat = indexing.read(tracer, flat, slice(0, count))
    elif count > before:
        rest = run.call(np.zeros, [count - before], {"dtype": base.dtype})
        flat = run.call(np.concatenate, [[flat, rest]], {})
    run.variables[name] = tracer.stored_anew(run.call(np.reshape, [flat, extents], {}), name)


def _name_of(run: Context, base: Tensor) -> str:
    """The one variable of an array that has its elements for itself."""
    tracer = run.tracer
    called = next(
        (
            part.func.value.id
            for part in ast.walk(tracer.node)
            if isinstance(part, ast.Call)
            and isinstance(part.func, ast.Attribute)
            and part.func.attr == "resize"
            and isinstance(part.func.value, ast.Name)
        ),
        "",
    )
    if run.variables.get(called) is not base:
        tracer.refuse(f"resize of an array that is no variable's; {_INSTEAD}")
    if tracer.inner or tracer.guarded:
        tracer.refuse(f"resize in a loop, or in a branch by a condition of the run; {_INSTEAD}")
    if isinstance(base, View):
        every = [v for frame in tracer.frames for v in frame.variables.values()]
        seen = [v for v in every if isinstance(v, View) and v.container is base.container]
        if base.container.is_argument or not base.is_whole or len(seen) > 1:
            tracer.refuse(
                f"resize of an argument, of a part of an array, or of an array that has other "
                f"names; {_INSTEAD}"
            )
    return called


METHODS["resize"] = _resize
