"""What the variables of a loop are in the next iteration: all places get their values at once."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View
from distspmd.frontend.from_numpy.kinds.first_arrays import bind_in_place
from distspmd.frontend.tensor_ir.statements import Container, SetSymbol, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import Whole, symbol


def move_tensors(tracer: Tracer, tensors: Sequence[tuple[View, Tensor]]) -> None:
    """Write values to places, all as if at once."""
    places = {place.container for place, _ in tensors}
    ready: list[tuple[View, Tensor]] = []
    for place, now in tensors:
        if len(tensors) > 1 and isinstance(now, Tensor) and _reads(now, places - {place.container}):
            now = tracer.stored_anew(now, "next")
        ready.append((place, now))
    for place, now in ready:
        bind_in_place(tracer, place, now)


def move_symbols(tracer: Tracer, symbols: Sequence[tuple[sympy.Symbol, Whole]]) -> None:
    """Set symbols, all as if at once."""
    symbols = [(place, now) for place, now in symbols if now is not place]
    names = {place for place, _ in symbols}
    if any(sympy.sympify(now).free_symbols & (names - {place}) for place, now in symbols):
        fresh = []
        for place, now in symbols:
            other = tracer.unique(f"{place.name}_next")
            tracer.add(SetSymbol(other, sympy.sympify(now), INT64))
            fresh.append((place, symbol(other)))
        symbols = fresh
    for place, now in symbols:
        tracer.add(SetSymbol(place.name, sympy.sympify(now), INT64))


def _reads(tensor: Tensor, containers: set[Container]) -> bool:
    index = tuple(symbol(f"__probe{d}") for d in range(tensor.ndim))
    return any(load.array in containers for load in loads_of(tensor.element(index)))
