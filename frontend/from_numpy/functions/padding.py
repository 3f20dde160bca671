"""``np.pad``."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy import indexing
from distspmd.frontend.from_numpy.arithmetic import converted
from distspmd.frontend.from_numpy.functions.joins import concatenate
from distspmd.frontend.from_numpy.functions.registry import function
from distspmd.frontend.from_numpy.shapes import broadcast_to, flip
from distspmd.frontend.from_numpy.values import Tensor
from distspmd.frontend.tensor_ir.whole_numbers import add, subtract


@function(np.pad)
def _pad(run: Any, value: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    tracer = run.tracer
    tensor = tracer.stored(tracer.tensor(value))
    widths = _pairs(run, pad_width, tensor.ndim)
    values = _pairs(run, options.get("constant_values", 0), tensor.ndim, plain=True)
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric"):
        tracer.refuse(f"np.pad with the mode {mode!r}")
    for d, ((low, high), fills) in enumerate(zip(widths, values, strict=True)):
        parts = [
            *_padding(run, tensor, d, low, mode, fills[0], before=True),
            tensor,
            *_padding(run, tensor, d, high, mode, fills[1], before=False),
        ]
        if len(parts) > 1:
            tensor = concatenate(run, parts, d, dtype=tensor.dtype)
    return tensor


def _pairs(run: Any, given: Any, rank: int, plain: bool = False) -> list[tuple[Any, Any]]:
    def whole(v: Any) -> Any:
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
    run: Any, tensor: Tensor, d: int, width: Any, mode: str, fill: Any, *, before: bool
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
