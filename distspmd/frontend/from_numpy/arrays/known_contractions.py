"""Reductions over lengths that data decide, and over no elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy

from distspmd.expressions.ir import Expression
from distspmd.frontend.from_numpy.arrays.contractions import neutral_element
from distspmd.frontend.from_numpy.arrays.elements import substitute
from distspmd.frontend.from_numpy.arrays.lengths import neutral_outside
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, make_view, number
from distspmd.frontend.tensor_ir.statements import Length


def contract_known(
    tracer: Any,
    kept: Sequence[tuple[sympy.Symbol, Length]],
    gone: Sequence[tuple[sympy.Symbol, Length]],
    expression: Expression,
    operation: str,
    name: str | None,
) -> View:
    """Reduce over lengths that data decide, neutral beyond them; or over no elements."""
    every = (*kept, *gone)
    by = [s for s, _ in every]
    neutral = number(neutral_element(operation, expression.dtype), expression.dtype)
    if any(n == 0 for _, n in gone):
        nothing = Tensor(tuple(n for _, n in kept), expression.dtype, lambda _: neutral)
        stored: View = tracer.stored_anew(nothing, name or tracer.target or "reduced")
        return stored
    tensor = Tensor(
        tuple(n for _, n in every),
        expression.dtype,
        lambda index: substitute(expression, dict(zip(by, index, strict=True))),
    )
    room = [tracer.capacity(n) for _, n in every]
    padded = tracer.stored_anew(
        neutral_outside(tensor, room, lambda _: neutral, tracer.bounds), "operand"
    )
    known = list(zip(by, room, strict=True))
    found = tracer.contract(
        known[: len(kept)], known[len(kept) :], padded.element(tuple(by)), operation, name
    )
    return make_view(found.container, [n for _, n in kept], found.place)
