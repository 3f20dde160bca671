"""Indices of parallel maps are compared with their dimensions before the map, once on all ranks.

Iterations of maps have no order in which to end, and a comparison in each would cost time. An index
that is affine in the parameters is greatest and least at corners of the ranges, where it is looked
at: ``y[i] = x[i + 1]`` over ``0:n`` reads at most ``x[n]``. It is no error if the iteration of that
corner does not run. What runs in branches and loops of a map alone is compared where it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.states import MapOfIndices
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.reader.conditions import decided, relation_text
from distspmd.frontend.tensor_ir.statements import Block, Branch, Parameter, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    floor_divide,
    is_at_least,
    multiply,
    simplified,
    subtract,
    symbol,
)


@dataclass(frozen=True)
class _Check:
    """An index is out of range where a number is not negative, if some lengths are at least 1."""

    excess: sympy.Expr
    lengths: tuple[sympy.Expr, ...]
    message: str
    node: Any = field(compare=False)

    def at(self, name: sympy.Symbol, value: Whole) -> _Check:
        """The check with a value for a parameter."""
        by = {name: sympy.sympify(value)}
        lengths = tuple(sympy.sympify(n).xreplace(by) for n in self.lengths)
        excess = sympy.expand(self.excess.xreplace(by))
        return _Check(excess, lengths, self.message, self.node)


@dataclass
class IndicesOfMap(MapOfIndices):
    """The indices in the body of a map, of which it is not known that they are in range."""

    depth: int
    """How many blocks are around the body."""
    around: frozenset[str] = frozenset()
    """Symbols of loops and of the run that are known around the map."""
    checks: list[_Check] = field(default_factory=list)

    def note(self, tracer: Tracer, value: sympy.Expr, length: Whole) -> bool:
        """Look at an index of the body, of a dimension of some length; False in inner blocks."""
        if tracer.inner != self.depth:
            return False
        message = f"the index {value} is out of bounds for a dimension of {length}"
        for excess in (subtract(value, length), subtract(subtract(-1, length), value)):
            if not is_at_least(subtract(-1, excess), 0, tracer.known.bounds):
                check = _Check(sympy.expand(sympy.sympify(excess)), (), message, tracer.node)
                if check not in self.checks:
                    self.checks.append(check)
        return True


@contextmanager
def where_in_range(tracer: Tracer) -> Iterator[None]:
    """Write in an inner block of a map, but not where an index is out of range."""
    is_inner = bool(tracer.map.maps) and tracer.inner != tracer.map.maps[-1].depth
    if not is_inner or tracer.map.straight is not None:
        yield
        return
    body, known = Block(), len(tracer.map.in_range)
    with tracer.within(body):
        yield
    conditions = tracer.map.in_range[known:]
    del tracer.map.in_range[known:]
    checks = [s for s in body.statements if isinstance(s, SetSymbol)] if conditions else []
    tracer.program.block.statements += checks or body.statements
    if conditions:
        body.statements = [s for s in body.statements if s not in checks]
        tracer.add(Branch(relation_text(sympy.And(*conditions)), body, Block()))


@contextmanager
def noted(tracer: Tracer) -> Iterator[IndicesOfMap]:
    """Look at the indices of what is read."""
    found = IndicesOfMap(tracer.inner, frozenset(tracer.known.bounds))
    tracer.map.maps.append(found)
    try:
        yield found
    finally:
        tracer.map.maps.pop()


def add_checks(tracer: Tracer, own: IndicesOfMap, parameters: Sequence[Parameter]) -> None:
    """Check the indices of a map: before it, or before the map around it."""
    checks = [c for c in _at_corners(own.checks, parameters) if _is_known(tracer, own, c)]
    if tracer.map.maps:
        outer = tracer.map.maps[-1]
        if isinstance(outer, IndicesOfMap) and outer.depth == tracer.inner:
            outer.checks += [c for c in checks if c not in outer.checks]
        return
    if tracer.hooks.ends_if is None:
        return
    parallel, straight, node = tracer.map.parallel, tracer.map.straight, tracer.node
    tracer.map.parallel, tracer.map.straight = [], None
    try:
        for check in checks:
            tracer.node = check.node
            _add(tracer, check)
    finally:
        tracer.map.parallel, tracer.map.straight, tracer.node = parallel, straight, node


def _is_known(tracer: Tracer, own: IndicesOfMap, check: _Check) -> bool:
    """Whether nothing in a check is a value of the run that only the body of the map has."""
    every = [check.excess, *map(sympy.sympify, check.lengths)]
    names = {s.name for e in every for s in e.free_symbols}
    return names.isdisjoint(tracer.known.bounds.keys() - own.around)


def _add(tracer: Tracer, check: _Check) -> None:
    conditions = [sympy.Ge(check.excess, 0), *(sympy.Ge(n, 1) for n in check.lengths)]
    known = [decided(tracer, c) for c in conditions]
    if False in known:
        return
    if None not in known and not tracer.inner:
        tracer.refuse(check.message)
    if tracer.hooks.ends_if is not None:
        open_ones = [c for c, k in zip(conditions, known, strict=True) if k is None]
        tracer.hooks.ends_if(sympy.And(*open_ones), "IndexError", check.message)


def _at_corners(checks: Iterable[_Check], parameters: Sequence[Parameter]) -> Iterator[_Check]:
    """The checks where their numbers are greatest; none of those that are not affine."""
    for check in checks:
        for parameter in reversed(parameters):
            name = symbol(parameter.name)
            factor = sympy.diff(check.excess, name)
            if not factor.is_Integer:
                break
            length = subtract(parameter.end, parameter.first)
            turns = floor_divide(subtract(length, 1), parameter.step)
            last = add(parameter.first, multiply(turns, parameter.step))
            found = check.at(name, last if factor > 0 else parameter.first)
            check = _Check(
                found.excess, (*found.lengths, simplified(length)), check.message, check.node
            )
        else:
            yield check
