"""Which iterations of a loop need each other: an exact test of affine subscripts.

Two accesses to one container, of which one writes, make a dependence where two different iterations
touch one element. Subscripts, ranges of inner loops and of maps, steps and triangular bounds become
equations and inequalities of whole numbers (:mod:`distspmd.analysis.integer_systems`). All that is
not affine may be anything.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

import sympy
from dace import SDFG, SDFGState
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.transformation.passes.analysis import loop_analysis

from distspmd.analysis.accesses import (
    Access,
    Dimension,
    bound_around,
    bound_around_loop,
    control_reads_in,
    copies_in,
    loops_around,
    state_accesses,
)
from distspmd.analysis.index_bounds import Range, constant
from distspmd.analysis.integer_systems import Linear, has_solution
from distspmd.analysis.symbol_values import values_at
from distspmd.analysis.whole_program import assigned_symbols

_MOST_PAIRS = 3000
"""Pairs of accesses that are compared; of loops with more nothing is known."""
_FAR = 1 << 10
"""Distances up to which the smallest one is looked for."""


@dataclass(frozen=True)
class Dependence:
    """Why iterations of a loop have an order.

    Attributes:
        data: the container.
        first: where an earlier iteration touches it.
        second: where a later one does.
        distance: the fewest iterations between the two; None where that is not known.
    """

    data: str
    first: Access
    second: Access
    distance: int | None

    def __str__(self) -> str:
        """What the later iteration does, and what an earlier one has done, in words."""
        does = "writes" if self.second.is_write else "reads"
        done = "written" if self.first.is_write else "read"
        far = "an iteration before" if self.distance == 1 else f"{self.distance} iterations before"
        return (
            f"{_place_of(self.second)}{does} {_element(self.second)}, and "
            f"{_place_of(self.first)}has {done} {_element(self.first)} "
            f"{'in an iteration before' if self.distance is None else far}"
        )


def _place_of(access: Access) -> str:
    """The line of the user's program, where that is known."""
    for node in (access.edge.src, access.edge.dst):
        info = getattr(node, "debuginfo", None) or getattr(
            getattr(node, "map", None), "debuginfo", None
        )
        if info is not None and info.filename and not isinstance(node, nodes.AccessNode):
            return f"{PurePath(info.filename).name}:{info.start_line} "
    return ""


def _element(access: Access) -> str:
    ends = (
        ":" if d is None else str(d.first) if d.first == d.last else f"{d.first}:{d.last + 1}"
        for d in access.dimensions
    )
    return f"{access.data}[{', '.join(ends)}]"


@dataclass(frozen=True)
class LoopRange:
    """The values of a loop's variable: ``first``, ``first + step``, ... up to ``last``."""

    first: sympy.Expr
    last: sympy.Expr
    step: int

    @classmethod
    def of(cls, loop: LoopRegion) -> LoopRange | None:
        """The range of a loop; None where it is not one of whole steps."""
        if not loop.loop_variable:
            return None
        ends = [
            loop_analysis.get_init_assignment(loop),
            loop_analysis.get_loop_end(loop),
            loop_analysis.get_loop_stride(loop),
        ]
        if any(end is None for end in ends):
            return None
        first, last, step = map(sympy.sympify, ends)
        return cls(first, last, int(step)) if step.is_Integer and step else None

    @property
    def count(self) -> sympy.Expr | None:
        """Number of values, where it is not negative; None where it is not affine."""
        length = sympy.expand(self.last - self.first)
        if abs(self.step) == 1:
            return length * self.step + 1
        known = constant(length)
        return None if known is None else sympy.Integer(known // self.step + 1)

    @property
    def upwards(self) -> tuple[sympy.Expr, sympy.Expr, int] | None:
        """The least value, the greatest and the step between them."""
        if self.step > 0:
            return self.first, self.last, self.step
        count = self.count
        if count is None:
            return None
        return sympy.expand(self.first + (count - 1) * self.step), self.first, -self.step


@functools.lru_cache(maxsize=8192)
def _linear(expression: sympy.Expr) -> Linear | None:
    """A sum of symbols with whole factors; None for other expressions."""
    expanded = sympy.expand(expression)
    found: dict[str, int] = {}
    number = 0
    for term, factor in expanded.as_coefficients_dict().items():
        if not sympy.sympify(factor).is_Integer:
            return None
        if term == 1:
            number += int(factor)
        elif isinstance(term, sympy.Symbol):
            found[term.name] = found.get(term.name, 0) + int(factor)
        else:
            return None
    return Linear(found, number)


def first_dependence(
    loop: LoopRegion,
    values: LoopRange,
    own: Collection[str] = (),
    reduced: Mapping[int, str] | None = None,
) -> Dependence | None:
    """A dependence between iterations of a loop; None where these may run in any order.

    Args:
        loop: a loop without jumps.
        values: of its variable.
        own: names of which each iteration makes its own value.
        reduced: the reduction that an edge is a part of, by its identity: it reads what is there,
            or writes that combined with another value. None where the order of reductions counts.
    """
    system = _Instances(loop, values)
    compared = 0
    for write, other in _pairs(accesses_of(loop), own):
        if reduced is not None and _commute(system, write, other, reduced):
            continue
        compared += 1
        if compared > _MOST_PAIRS:
            return Dependence(write.data, write, other, None)
        for first, second in dict.fromkeys([(write, other), (other, write)]):
            if system.touch(first, second):
                return Dependence(write.data, first, second, system.distance(first, second))
    return None


def is_inside(access: Access, sdfg: SDFG) -> bool:
    """Whether an access surely touches elements that there are."""
    for dimension, extent in zip(access.dimensions, sdfg.arrays[access.data].shape, strict=True):
        if dimension is None:
            return False
        ends = (dimension.first, dimension.last)
        if not all(is_place(end, extent, access.scope) for end in ends):
            return False
    return True


def is_place(index: sympy.Expr, extent: sympy.Expr, scope: Mapping[str, Range | None]) -> bool:
    """Whether an index surely is one of so many elements, for all values of the symbols in it."""
    rows: list[Linear] = []
    for name, ends in scope.items():
        for end, sign in () if ends is None else ((ends.lower, 1), (ends.upper, -1)):
            bound = _linear(sympy.sympify(end))
            if bound is not None:
                rows.append((Linear.of(name) - bound) * sign)
    place, size = _linear(sympy.sympify(index)), _linear(sympy.sympify(extent))
    if place is None or size is None:
        return False
    outside = (place * -1 - 1, place - size)
    return not any(has_solution([], [*rows, each]) for each in outside)


def first_turning_back(
    loop: LoopRegion, values: LoopRange, inner: tuple[str, int], skew: int, own: Collection[str]
) -> Dependence | None:
    """A dependence between iterations of a loop whose distance in a loop inside is negative.

    Args:
        loop: a loop without jumps.
        values: of its variable.
        inner: the variable of the loop inside, and its step.
        skew: what each iteration adds to the distance in it.
        own: names of which each iteration makes its own value.
    """
    system = _Instances(loop, values)
    (name, step), turn = inner, skew * values.step
    first, second = (
        Linear({f"{name}@{number}": step, f"{system.variable}@{number}": turn}) for number in (1, 2)
    )
    for number, (write, other) in enumerate(_pairs(accesses_of(loop), own)):
        for pair in dict.fromkeys([(write, other), (other, write)]):
            if number > _MOST_PAIRS or system.touch(*pair, rows=[first - second - 1]):
                return Dependence(write.data, *pair, None)
    return None


def carried_between(
    loop: LoopRegion, first: Access, second: Access, reduced: Mapping[int, str]
) -> bool:
    """Whether a later iteration touches by the second access what an earlier one has touched."""
    values = LoopRange.of(loop)
    assert values is not None
    system = _Instances(loop, values)
    return not _commute(system, first, second, reduced) and system.touch(first, second)


def _commute(system: _Instances, first: Access, second: Access, reduced: Mapping[int, str]) -> bool:
    """Whether two accesses combine values with what is there in the same way, in any order.

    A map that combines values with many elements has iterations enough of its own.
    """
    kinds = {reduced.get(id(each.edge), each.reduction) for each in (first, second)}
    return len(kinds) == 1 and None not in kinds and not any(map(system.is_spread, (first, second)))


def _pairs(accesses: Sequence[Access], own: Collection[str]) -> Iterator[tuple[Access, Access]]:
    """Writes, each with itself, with writes behind it and with all reads of its container."""
    by_container: dict[str, list[Access]] = {}
    for access in accesses:
        if access.data not in own:
            by_container.setdefault(access.data, []).append(access)
    for of_one in by_container.values():
        writes = [access for access in of_one if access.is_write]
        reads = [access for access in of_one if not access.is_write]
        for number, write in enumerate(writes):
            for other in (*writes[number:], *reads):
                yield write, other


def accesses_of(loop: LoopRegion) -> list[Access]:
    """All accesses in the body of a loop, each kind of them once."""
    found: dict[object, Access] = {}
    knows = bool(assigned_symbols(loop.sdfg))
    for block in loop.all_control_flow_blocks():
        if not isinstance(block, SDFGState):
            continue
        scope, known = bound_around(block), values_at(block) if knows else {}
        for access in (*state_accesses(block, scope), *copies_in(block, scope)):
            if access.edge is not None and _is_local(block, access):
                continue
            access = replace(access, values={**known, **access.values})
            key = (access.data, access.is_write, access.dimensions, access.reduction)
            ends = tuple(sorted((n, str(r)) for n, r in access.scope.items()))
            found.setdefault((key, ends, id(access.edge)), access)
    return [*found.values(), *control_reads_in(loop)]


def _is_local(state: SDFGState, access: Access) -> bool:
    """Whether a container is one of a map's own."""
    for node in (access.edge.src, access.edge.dst):
        if isinstance(node, nodes.AccessNode) and node.data == access.data:
            return state.entry_node(node) is not None
    return False


class _Instances:
    """Two iterations of a loop, the second of which is the later one, as a linear system."""

    def __init__(self, loop: LoopRegion, values: LoopRange) -> None:
        self.variable = loop.loop_variable
        self.outer = bound_around_loop(loop)
        self.inside = _bound_inside(loop)
        self.loops = _ranges_of_loops(loop)
        self.zero: list[Linear] = []
        self.rows: list[Linear] = [Linear.of("turn"), Linear.of("later") - 1]
        first, last = _linear(values.first), _linear(values.last)
        start = Linear.of("start") if first is None else first
        for number, place in ((1, Linear.of("turn")), (2, Linear.of("turn") + Linear.of("later"))):
            own = Linear.of(f"{self.variable}@{number}")
            self.zero.append(own - start - place * values.step)
            if last is not None:
                self.rows.append((last - own) * (1 if values.step > 0 else -1))

    def touch(
        self, first: Access, second: Access, most: int | None = None, rows: Sequence[Linear] = ()
    ) -> bool:
        """Whether a later iteration touches an element that an earlier one has touched.

        Args:
            first: of the earlier iteration.
            second: of the later one.
            most: iterations between them, at most.
            rows: what else holds of both.
        """
        zero, rows = [*self.zero], [*self.rows, *rows]
        for number, access in ((1, first), (2, second)):
            rows += self._around(access, number)
        if most is not None:
            rows.append(Linear.of("later") * -1 + most)
        for d, pair in enumerate(zip(first.dimensions, second.dimensions, strict=True)):
            places = [
                self._place(each, access, number, d, rows)
                for each, access, number in zip(pair, (first, second), (1, 2), strict=True)
            ]
            if places[0] is not None and places[1] is not None:
                zero.append(places[0] - places[1])
        return has_solution(zero, rows)

    def is_spread(self, access: Access) -> bool:
        """Whether a map around an access goes along a dimension of the container."""
        if not isinstance(access.edge.src, nodes.MapExit):
            return False
        own = access.scope.keys() - self.loops.keys() - {self.variable}
        places = [sympy.sympify(d.first) for d in access.dimensions if d is not None]
        return any(symbol.name in own for place in places for symbol in place.free_symbols)

    def distance(self, first: Access, second: Access) -> int | None:
        """The fewest iterations between two that touch one element; None where they are many."""
        low, high = 0, 1
        while not self.touch(first, second, high):
            low, high = high, 2 * high
            if high > _FAR:
                return None
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.touch(first, second, middle) else (middle, high)
        return high

    def _of(self, expression: sympy.Expr, access: Access, number: int) -> Linear | None:
        """An expression in one of the iterations; None where it is not affine."""
        expression = _known(sympy.sympify(expression), access)
        found = _linear(expression)
        if found is None:
            return None
        names = {
            name: f"{name}@{number}" if self._varies(name, access) else name
            for name in found.factors
        }
        return Linear({names[n]: f for n, f in found.factors.items()}, found.constant)

    def _varies(self, name: str, access: Access) -> bool:
        return (
            name == self.variable
            or name in self.inside
            or (name in access.scope and name not in self.outer)
        )

    def _around(self, access: Access, number: int) -> list[Linear]:
        """What holds of the symbols around an access; of equations both directions."""
        rows: list[Linear] = []
        for name, ends in access.scope.items():
            symbol = self._of(sympy.Symbol(name), access, number)
            if ends is None or name == self.variable or symbol is None:
                continue
            lower, upper, step = ends.lower, ends.upper, ends.step
            if step is None and name in self.loops:
                lower, upper, step = self.loops[name]
            for end, kind, sign in ((lower, sympy.Max, 1), (upper, sympy.Min, -1)):
                for part in end.args if isinstance(end, kind) else (end,):
                    bound = self._of(part, access, number)
                    if bound is not None:
                        rows.append((symbol - bound) * sign)
            first = self._of(lower, access, number)
            if step not in (1, None) and first is not None:
                assert step is not None
                rows += _stepping(symbol - first, f"{name}@{number}", step)
        return rows

    def _place(
        self, dimension: Dimension | None, access: Access, number: int, d: int, rows: list[Linear]
    ) -> Linear | None:
        """The index in a dimension; of a range a variable of its own, whose bounds are added."""
        if dimension is None:
            return None
        first = self._of(dimension.first, access, number)
        if dimension.first == dimension.last:
            return first
        place = Linear.of(f"place {d}@{number}")
        last = self._of(dimension.last, access, number)
        if first is not None:
            rows.append(place - first)
        if last is not None:
            rows.append(last - place)
        if first is not None and dimension.step not in (1, None):
            assert dimension.step is not None
            rows += _stepping(place - first, f"{d}@{number}", dimension.step)
        return place


def _stepping(offset: Linear, name: str, step: int) -> list[Linear]:
    """An offset is a multiple of a step."""
    rest = offset - Linear.of(f"steps {name}") * step
    return [rest, rest * -1]


def _known(expression: sympy.Expr, access: Access) -> sympy.Expr:
    """An expression with the values of symbols that are known ones of others."""
    for _ in range(8):
        by = {
            symbol: access.values[symbol.name]
            for symbol in expression.free_symbols
            if isinstance(access.values.get(symbol.name), sympy.Basic)
        }
        if not by:
            return expression
        expression = expression.subs(by, simultaneous=True)
    return expression


def _bound_inside(loop: LoopRegion) -> set[str]:
    """Symbols that are bound in the body of a loop: by edges, by loops and by maps."""
    found = {n for e in loop.all_interstate_edges(recursive=False) for n in e.data.assignments}
    for region in loop.all_control_flow_regions(recursive=False):
        if isinstance(region, LoopRegion) and region is not loop and region.loop_variable:
            found.add(region.loop_variable)
    for state in loop.states():
        for node, _ in state.all_nodes_recursive():
            if isinstance(node, nodes.MapEntry):
                found.update(node.map.params)
    return found


def _ranges_of_loops(loop: LoopRegion) -> dict[str, tuple[sympy.Expr, sympy.Expr, int]]:
    """The values of the variables of loops around a loop and inside of it, of each one name."""
    every = [*loop.all_control_flow_regions(recursive=False), *loops_around(loop)]
    found: dict[str, tuple[sympy.Expr, sympy.Expr, int]] = {}
    twice = set()
    for region in every:
        if region is loop or not isinstance(region, LoopRegion):
            continue
        name, values = str(region.loop_variable), LoopRange.of(region)
        twice |= {name} & found.keys()
        if values is not None and values.upwards is not None:
            found[name] = values.upwards
    return {name: values for name, values in found.items() if name not in twice}
