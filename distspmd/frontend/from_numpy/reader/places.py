"""Indices of elements in the body of a map that is read as one kernel.

An index that is a value of the run is compared with the dimension: before the map, into a container
of which the iterations read, or in each iteration where that is inside of another map, or where it
only says to which element something is added.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from distspmd.expressions.ir import Expression, IndexValue, Load, parts
from distspmd.frontend.from_numpy.arrays.elements import known_whole
from distspmd.frontend.from_numpy.arrays.subscripts import checked_index, index_in
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, whole_expression
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Container,
    Index,
    Length,
    Parameter,
    Statement,
    Store,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import Whole, is_at_least, subtract, symbol


@dataclass
class Places:
    """The indices of a body.

    Attributes:
        tracer: writes the program down.
        parameters: of the map.
        kernels: before the map, which check indices, with the parameters that decide them.
        symbols: what is done before the map to know indices that all iterations share.
        checked: the places that they are, by index and length of the dimension.
    """

    tracer: Tracer
    parameters: Sequence[Parameter]
    kernels: list[tuple[Store, list[Parameter]]] = field(default_factory=list)
    symbols: list[Statement] = field(default_factory=list)
    checked: dict[tuple[Expression, Length], Index] = field(default_factory=dict)

    def of_symbols(self, value: Whole, length: Length) -> Index:
        """An index of symbols; where data decide the range of one, each iteration compares it."""
        tracer, bounds = self.tracer, self.tracer.known.bounds
        is_inside = is_at_least(value, 0, bounds) and is_at_least(
            subtract(subtract(length, 1), value), 0, bounds
        )
        if is_inside or tracer.guarded or not tracer.map.own or not self._is_open(value):
            return index_in(tracer, value, length)
        return checked_index(tracer, whole_expression(value), length)

    def _is_open(self, value: Whole) -> bool:
        """Whether data that only an iteration around knows decide the range of a symbol."""
        names = {s.name for s in _symbols(value)}
        ends = [e for p in self.parameters if p.name in names for e in (p.first, p.end)]
        bounds = self.tracer.known.bounds
        return any(bounds.get(s.name) == (None, None) for e in ends for s in _symbols(e))

    def of_data(
        self, expression: Expression, length: Length, written: Collection[Container]
    ) -> Index | None:
        """An index that is a value of the run; None where the body has to say when it is one.

        Args:
            expression: the index.
            length: of the dimension.
            written: containers that the body has written.
        """
        tracer, known = self.tracer, known_whole(expression)
        if known is not None:
            return index_in(tracer, known, length)
        if tracer.guarded or any(load.array in written for load in loads_of(expression)):
            return None  # it is an index in some iterations, or at this place, alone
        own = self._deciding(expression)
        if any(p.step != 1 for p in own):
            return None
        found = self.checked.get((expression, length))
        if found is None:
            found = self._checked(expression, length, own)
            self.checked[expression, length] = found
        return found

    def _deciding(self, expression: Expression) -> list[Parameter]:
        """The parameters that an index depends on."""
        every = list(loads_of(expression))
        names = {s.name for load in every for i in load.index for s in _symbols(i)}
        inside = [i for load in every for i in load.index if isinstance(i, Expression)]
        values = [p for e in (expression, *inside) for p in parts(e) if isinstance(p, IndexValue)]
        names |= {str(variable) for value in values for variable, _ in value.terms}
        return [p for p in self.parameters if p.name in names]

    def _checked(self, expression: Expression, length: Length, own: list[Parameter]) -> Index:
        tracer = self.tracer
        if tracer.map.own and not own:
            return self._symbol(expression, length)
        checked = checked_index(tracer, expression, length)
        if tracer.map.own:
            return checked
        container = tracer.container("indices", [subtract(p.end, p.first) for p in own], INT64)
        place = tuple(subtract(symbol(p.name), p.first) for p in own)
        self.kernels.append((Store(container, place, checked), own))
        return Load(container, place, INT64)

    def _symbol(self, expression: Expression, length: Length) -> Whole:
        """A symbol for an index that is the same in all iterations."""
        tracer, before, straight = self.tracer, self.tracer.program.block, self.tracer.map.straight
        known = [*before.statements, *self.symbols]
        tracer.map.straight, tracer.program.block = None, Block(known.copy())
        try:
            value = tracer.read_whole(Tensor((), INT64, lambda _: expression))
            found = index_in(tracer, value, length)
            self.symbols += tracer.program.block.statements[len(known) :]
        finally:
            tracer.program.block, tracer.map.straight = before, straight
        return found

    def put_in(self, stores: Sequence[Store]) -> None:
        """Put indices that only say where something is added into stores, in place."""
        places = [i for s in stores if not s.conflict for i in s.index if isinstance(i, Expression)]
        values = [s.value for s in (*stores, *(store for store, _ in self.kernels))]
        kept = {load.array for each in (*places, *values) for load in loads_of(each)}
        there = {s.container: s.value for s, _ in self.kernels if s.container not in kept}
        self.kernels = [(s, own) for s, own in self.kernels if s.container in kept]
        for store in stores:
            store.index = tuple(
                there.get(i.array, i) if isinstance(i, Load) else i for i in store.index
            )

    def add_statements(self) -> None:
        """Add what comes before the map."""
        for statement in self.symbols:
            self.tracer.add(statement)
        for store, parameters in self.kernels:
            self.tracer.kernel([store], parameters, store.container.name)


def _symbols(index: Index) -> set[Any]:
    """Symbols of an index; none of one in data, whose loads are looked at by themselves."""
    return index.free_symbols if isinstance(index, sympy.Basic) else set()
