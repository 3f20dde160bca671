"""Which dimensions and parameters are folded where one is dealt, and the digits of indices.

A dimension of ``rounds * round`` elements is folded to ``(rounds, round / unit, unit)``, without
the last where a unit is one element. An index that is a sum of parameters with factors has digits
of the same form, if its parameters can be told apart by their factors: ``12 * r + 3 * h + d``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import sympy
from dace import SDFG
from dace.sdfg import nodes
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.errors import ScheduleError
from distspmd.nodes.contraction import Contraction
from distspmd.nodes.subscripts import Dimension, Subscripts, plain_letter

Values = Mapping[str, tuple[int, int]]
"""First and last value of each parameter."""
Place = tuple[IterationSpace, str] | tuple[str, int]
"""A parameter of a space, or a dimension of a container."""
Named = tuple[str, str] | tuple[str, int]
"""The same by name."""


@dataclass(frozen=True)
class Fold:
    """How a dimension is folded: rounds of so many elements, of units that stay together."""

    round: int
    unit: int

    @property
    def units(self) -> int:
        """Units in a round."""
        return self.round // self.unit

    @property
    def weights(self) -> tuple[int, ...]:
        """Elements from one value of each digit to the next, the highest digit first."""
        return (self.round, self.unit, 1) if self.unit > 1 else (self.round, 1)

    def extents(self, extent: int) -> tuple[int, ...]:
        """Extents of the digits of a dimension."""
        rest = (self.units, self.unit) if self.unit > 1 else (self.units,)
        return (extent // self.round, *rest)

    def digits(self, index: sympy.Expr, values: Values) -> tuple[sympy.Expr, ...] | None:
        """The digits of an index; None where no digit stays within its extent."""
        terms = terms_of(index, values)
        if terms is None:
            return None
        factors, rest = terms
        found = []
        extents: list[int | None] = [None, *self.extents(self.round)[1:]]
        for weight, extent in zip(self.weights, extents, strict=True):
            own = {name: f for name, f in factors.items() if f % weight == 0}
            factors = {name: f for name, f in factors.items() if f % weight}
            least, most = _span(factors, values)
            step = (least + rest) // weight
            if most + rest - step * weight >= weight:
                return None
            rest -= step * weight
            low, high = _span({n: f // weight for n, f in own.items()}, values)
            if extent is not None and not 0 <= low + step <= high + step < extent:
                return None
            found.append(
                sympy.Add(step, *(f // weight * _symbol(index, n) for n, f in own.items()))
            )
        return tuple(found)


def terms_of(index: sympy.Expr, values: Values) -> tuple[dict[str, int], int] | None:
    """The integer factor of each parameter and the constant of an index that is a sum of these."""
    found = _terms_of(sympy.sympify(index))
    if found is None or any(name not in values for name in found[0]):
        return None
    return dict(found[0]), found[1]


@functools.lru_cache(maxsize=1 << 12)
def _terms_of(index: sympy.Expr) -> tuple[Mapping[str, int], int] | None:
    """The same whatever the symbols are."""
    index = sympy.expand(index)
    factors: dict[str, int] = {}
    for symbol in index.free_symbols:
        factor = index.coeff(symbol, 1)
        if not factor.is_Integer or symbol.name in factors:
            return None
        factors[symbol.name] = int(factor)
        index = sympy.expand(index - factor * symbol)
    return (factors, int(index)) if index.is_Integer else None


def _symbol(index: sympy.Expr, name: str) -> sympy.Expr:
    return next(symbol for symbol in index.free_symbols if symbol.name == name)


def _span(factors: Mapping[str, int], values: Values) -> tuple[int, int]:
    """Least and greatest value of a sum."""
    ends = [sorted((f * values[name][0], f * values[name][1])) for name, f in factors.items()]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


@dataclass
class Folding:
    """What is folded where one parameter is dealt.

    Attributes:
        sdfg: the program.
        spaces: those that follow.
        fold: how; its unit shrinks until no index crosses one.
        what: begins the messages: what the schedule deals.
        dimensions: of each container that are folded.
        parameters: of each space that are folded.
        digits: names of the digits of each of them.
    """

    sdfg: SDFG
    spaces: Sequence[IterationSpace]
    fold: Fold
    what: str
    dimensions: dict[str, set[int]] = field(default_factory=dict)
    parameters: dict[str, list[str]] = field(default_factory=dict)
    digits: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    refused: set[Named] = field(default_factory=set)
    """What nothing can be folded with: something that would have to follow cannot."""
    bent: list[tuple[sympy.Expr, Values, IterationSpace, str]] = field(default_factory=list)
    """Indices that stay within rounds, of which no parameter is folded; by whom and of what."""

    def refuse(self, space: IterationSpace, why: str) -> ScheduleError:
        """The error of a space that cannot follow."""
        return ScheduleError(
            f"{self.what}, but the space {space.name!r} ({space.where}) {why}. Leave out cyclic(), "
            "or copy that part of the array into one of its own first."
        )

    def shrink(self, unit: int) -> None:
        """Take units that a number of elements is a multiple of."""
        self.fold = Fold(self.fold.round, math.gcd(self.fold.unit, unit))


def grow(
    folding: Folding, space: IterationSpace, parameter: str, blocks: Mapping[tuple[str, str], int]
) -> None:
    """Find all that is folded with a parameter, and units that no index crosses.

    Args:
        folding: to which it is added.
        space: that deals a parameter.
        parameter: its name.
        blocks: elements in a block of each parameter that is dealt, by space and parameter.

    Raises:
        ScheduleError: something that cannot follow.
    """
    if folding.fold.round % folding.fold.unit:
        folding.shrink(folding.fold.round)
    found_by: dict[Named, Named | None] = {(space.name, parameter): None}
    pending: list[Place] = [(space, parameter)]
    try:
        while pending:
            place = pending.pop()
            at: Named | None = _named(place)
            found = _follow(folding, place, blocks)
            for other in found:
                found_by.setdefault(_named(other), at)
            pending += found
        at = space.name, parameter
        _choose_unit(folding)
    except ScheduleError:
        while at is not None:
            folding.refused.add(at)
            at = found_by[at]
        raise
    _name_digits(folding)


def _named(place: Place) -> Named:
    first, second = place
    if isinstance(first, str):
        return first, int(second)
    return first.name, str(second)


def _follow(folding: Folding, place: Place, blocks: Mapping[tuple[str, str], int]) -> list[Place]:
    """What is folded because a parameter or a dimension is; nothing if that is known."""
    first, second = place
    if isinstance(first, str):
        own = folding.dimensions.setdefault(first, set())
        if second in own:
            return []
        own.add(int(second))
        if (first, second) in folding.refused:
            raise ScheduleError(f"{folding.what}, but {first!r} cannot be folded so.")
        return [*_from_dimension(folding, first, int(second))]
    name = str(second)
    known = folding.parameters.setdefault(first.name, [])
    if name in known:
        return []
    known.append(name)
    if (first.name, name) in folding.refused:
        raise folding.refuse(first, f"cannot be folded along {name}")
    if (first.name, name) in blocks:
        folding.shrink(blocks[first.name, name])
    return [*_from_parameter(folding, first, name)]


def _choose_unit(folding: Folding) -> None:
    """Shrink the unit until all indices have digits."""
    for index, values, space, container in folding.bent:
        while folding.fold.digits(index, values) is None:
            terms = terms_of(index, values)
            if folding.fold.unit == 1 or terms is None:
                raise _across(folding, space, container, index)
            factors, constant = terms
            crossing = [f for f in (*factors.values(), constant) if f % folding.fold.unit]
            unit = math.gcd(folding.fold.unit, max(map(abs, crossing), default=1))
            folding.shrink(unit if unit < folding.fold.unit else 1)


def _name_digits(folding: Folding) -> None:
    """Give the digits of parameters of maps names that nothing else has."""
    count = len(folding.fold.weights)
    taken = {*folding.sdfg.symbols, *folding.sdfg.arrays}
    for space in folding.spaces:
        for parameter in folding.parameters.get(space.name, ()):
            if not isinstance(space.node, nodes.MapEntry):
                continue  # letters, which are chosen with the node
            names = []
            for ending in ("round", "part", "in")[:count]:
                name = f"{parameter}_{ending}"
                while name in taken or name in space.parameters:
                    name += "_"
                names.append(name)
            folding.digits[space.name, parameter] = tuple(names)


# --- what touches a dimension, and what a parameter touches ---


def _from_dimension(
    folding: Folding, container: str, dimension: int
) -> Iterator[tuple[IterationSpace, str]]:
    """Parameters that run over whole rounds of a dimension."""
    extent = folding.sdfg.arrays[container].shape[dimension]
    touching = [space for space in folding.spaces if container in containers_of(space)]
    if not sympy.sympify(extent).is_Integer or int(extent) % folding.fold.round:
        raise folding.refuse(
            touching[0],
            f"has it along a dimension of {extent} of {container!r}, which is no number of whole "
            "rounds",
        )
    for space in touching:
        if isinstance(space.node, nodes.MapEntry):
            values = values_in(space)
            for index in _indices(folding, space, container, dimension):
                yield from _of_index(folding, space, index, values, container)
        elif isinstance(space.node, Contraction):
            yield from _of_window(folding, space, container, dimension)
        else:
            raise folding.refuse(space, f"is a {type(space.node).__name__} on {container!r}")


def _of_index(
    folding: Folding, space: IterationSpace, index: sympy.Expr, values: Values, container: str
) -> Iterator[tuple[IterationSpace, str]]:
    terms = terms_of(index, values)
    if terms is None:
        raise _across(folding, space, container, index)
    factors, constant = terms
    length = folding.fold.round
    for name, factor in factors.items():
        others = [f for other, f in factors.items() if other != name]
        if factor == 1 and name in space.parameters and _is_whole(values[name], length):
            if any(f % length for f in others) or constant % length:
                raise _across(folding, space, container, index)
            yield space, name
            return
    folding.bent.append((index, values, space, container))


def _across(
    folding: Folding, space: IterationSpace, container: str, index: sympy.Expr
) -> ScheduleError:
    """The error of an index that leaves its round; written only then, for that takes long."""
    return folding.refuse(space, f"reaches across rounds in {container}[{index}]")


def _of_window(
    folding: Folding, space: IterationSpace, container: str, dimension: int
) -> Iterator[tuple[IterationSpace, str]]:
    length = folding.fold.round
    assert isinstance(space.node, Contraction)
    for edge, term in operands(space):
        if edge.data.data != container:
            continue
        begin, end, _ = edge.data.subset.ranges[dimension]
        text = f"{container}[{begin}:{end + 1}]"
        if not (sympy.sympify(begin).is_Integer and sympy.sympify(end).is_Integer):
            raise folding.refuse(space, f"has a window that moves, {text}")
        letter = plain_letter(term[dimension])
        if letter and _is_whole((int(begin), int(end)), length):
            yield space, parameter_of_letter(letter)
        elif int(begin) // length == int(end) // length:
            folding.shrink(1)
        else:
            raise folding.refuse(space, f"reaches across rounds in {text}")


def _from_parameter(
    folding: Folding, space: IterationSpace, parameter: str
) -> Iterator[tuple[str, int]]:
    """Dimensions of which a parameter runs over whole rounds."""
    if isinstance(space.node, nodes.MapEntry):
        yield from _indexed_by(folding, space, parameter)
    elif isinstance(space.node, Contraction):
        yield from _windows_of(folding, space, parameter)
    else:
        raise folding.refuse(space, f"is a {type(space.node).__name__}")


def _indexed_by(
    folding: Folding, space: IterationSpace, parameter: str
) -> Iterator[tuple[str, int]]:
    """Dimensions that a parameter of a map indexes, beside whole rounds."""
    length, values = folding.fold.round, values_in(space)
    if parameter not in values or not _is_whole(values[parameter], length):
        extent = space.ranges[space.parameters.index(parameter)]
        raise folding.refuse(space, f"runs over {extent}, which is no number of whole rounds")
    for container, subset in _leaves(folding, space):
        for dimension, (begin, end, _) in enumerate(subset.ranges):
            terms = terms_of(begin, values) if begin == end else None
            if terms is None or terms[0].get(parameter) != 1:
                continue
            others = [f for name, f in terms[0].items() if name != parameter]
            extent = sympy.sympify(folding.sdfg.arrays[container].shape[dimension])
            rounds = extent.is_Integer and not extent % length and not terms[1] % length
            if rounds and not any(f % length for f in others):
                yield container, dimension


def _windows_of(
    folding: Folding, space: IterationSpace, parameter: str
) -> Iterator[tuple[str, int]]:
    """Dimensions that a letter of a contraction indexes."""
    assert isinstance(space.node, Contraction)
    pick = space.node.pick
    if pick and parameter_of_letter(pick.letter) == parameter:
        raise folding.refuse(space, f"looks {parameter} up in data")
    for edge, term in operands(space):
        for dimension, own in enumerate(term):
            if parameter not in {parameter_of_letter(x) for x, _ in own}:
                continue
            begin, end, _ = edge.data.subset.ranges[dimension]
            known = sympy.sympify(begin).is_Integer and sympy.sympify(end).is_Integer
            if (
                not plain_letter(own)
                or not known
                or not _is_whole((begin, end), folding.fold.round)
            ):
                raise folding.refuse(
                    space, f"reaches across rounds in {edge.data.data}[{begin}:{end + 1}]"
                )
            yield edge.data.data, dimension


def _is_whole(values: tuple[int, int], length: int) -> bool:
    """Whether values from the first to the last are whole rounds."""
    return int(values[0]) % length == 0 == (int(values[1]) + 1) % length


# --- programs ---


def containers_of(space: IterationSpace) -> set[str]:
    """Containers at the border of a space."""
    state, node = space.state, space.node
    leave = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
    return {
        edge.data.data
        for edge in (*state.in_edges(node), *state.out_edges(leave))
        if not edge.data.is_empty()
    }


def values_in(space: IterationSpace) -> dict[str, tuple[int, int]]:
    """Values of the parameters of a map and of those inside it that take every number."""
    scope = space.state.scope_subgraph(space.node)
    found = {}
    for entry in scope.nodes():
        if not isinstance(entry, nodes.MapEntry):
            continue
        for name, (begin, end, step) in zip(entry.map.params, entry.map.range.ranges, strict=True):
            ends = sympy.sympify(begin), sympy.sympify(end)
            if step == 1 and all(at.is_Integer for at in ends):
                found[str(name)] = int(ends[0]), int(ends[1])
    return found


def _leaves(folding: Folding, space: IterationSpace) -> Iterator[tuple[str, Range]]:
    """Subsets where containers at the border of a map meet its code."""
    border = containers_of(space)
    for edge in space.state.scope_subgraph(space.node).edges():
        if edge.data.is_empty() or edge.data.data not in border:
            continue
        if is_leaf(edge):
            yield edge.data.data, edge.data.subset


def is_leaf(edge: Edge) -> bool:
    """Whether an edge inside a map ends at code."""
    return any(
        not isinstance(end, nodes.EntryNode | nodes.ExitNode) for end in (edge.src, edge.dst)
    )


def _indices(
    folding: Folding, space: IterationSpace, container: str, dimension: int
) -> Iterator[sympy.Expr]:
    """Indices of a dimension where a map meets it."""
    scope = space.state.scope_subgraph(space.node)
    for edge in scope.edges():
        if edge.data.is_empty() or edge.data.data != container or not is_leaf(edge):
            continue
        begin, end, _ = edge.data.subset.ranges[dimension]
        ends = (edge.src, edge.dst)
        if begin != end or not any(isinstance(node, nodes.Tasklet) for node in ends):
            raise folding.refuse(space, f"takes several elements of {container!r} at once")
        yield sympy.sympify(begin)


def operands(space: IterationSpace) -> list[tuple[Edge, tuple[Dimension, ...]]]:
    """Edges of a contraction with the indices of their dimensions."""
    assert isinstance(space.node, Contraction)
    subscripts = Subscripts.parse(space.node.subscripts)
    edges = {e.dst_conn: e for e in space.state.in_edges(space.node) if e.dst_conn}
    edges |= {e.src_conn: e for e in space.state.out_edges(space.node) if e.src_conn}
    found = [(edges[f"_in{n}"], term) for n, term in enumerate(subscripts.operands)]
    return [*found, (edges["_out"], subscripts.result)]


def parameter_of_letter(letter: str) -> str:
    """The parameter of the space of a contraction that a letter is."""
    from distspmd.nodes.contraction_loops import parameter

    return parameter(letter)
