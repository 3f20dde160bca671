"""Spaces that are alike: layers that repeat are analysed once, and can be given one choice.

Two spaces are alike if they touch containers of equal shapes and types in the same way, whatever
these are called. What is found of one of them holds for the other. They are tied if all that is
near them is alike, too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from dace.sdfg import nodes

from distspmd.analysis.accesses import Access, bound_around, happens_once
from distspmd.analysis.constraints import Touched, touched_by
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.loop_runs import times
from distspmd.analysis.passing import is_read_as_written
from distspmd.scheduling.footprints import Footprint


def footprints_of(
    spaces: Iterable[IterationSpace], unsplit: Mapping[str, frozenset[str]]
) -> dict[str, Footprint]:
    """Footprints of spaces by name; of those that are alike all but the first follow that one.

    Args:
        spaces: of a program, in its order.
        unsplit: by name of the space, parameters that are not to be split.
    """
    found: dict[str, Footprint] = {}
    first: dict[Hashable, tuple[Footprint, list[str]]] = {}
    for space in spaces:
        touched = touched_by(space)
        whole = unsplit.get(space.name, frozenset())
        footprint = Footprint(space, touched, unsplit=whole)
        containers = _containers(touched)
        key = _key(space, touched, containers)
        if key is not None:
            like, theirs = first.setdefault((key, whole), (footprint, containers))
            footprint.like = like
            footprint.names = dict(zip(theirs, containers, strict=True))
        found[space.name] = footprint
    return found


def tied_variables(
    own: Sequence[Hashable],
    neighbours: Sequence[Iterable[tuple[int, Hashable]]],
    reach: int,
    whole: Sequence[bool],
) -> list[tuple[int, ...]]:
    """Groups of variables that are alike as far as so many steps around them.

    Args:
        own: what a variable is by itself.
        neighbours: other variables of each one, with what they are to it.
        reach: steps.
        whole: whether no choice of a variable splits anything, so that it matters to its
            neighbours by itself alone. Such are counts of steps, which maps work on together that
            have nothing else in common.
    """
    first = colours = _numbered(own)
    for _ in range(reach):
        around = [
            tuple(
                sorted(
                    (str(kind), first[other] if whole[other] else colours[other])
                    for other, kind in near
                )
            )
            for near in neighbours
        ]
        colours = _numbered(list(zip(colours, around, strict=True)))
    groups: dict[int, list[int]] = {}
    for variable, colour in enumerate(colours):
        groups.setdefault(colour, []).append(variable)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def joined(groups: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Groups of variables, of which those that share one are one."""
    found: list[set[int]] = []
    for group in groups:
        own = set(group)
        apart = [other for other in found if not own & other]
        for other in found:
            own |= other if own & other else set()
        found = [*apart, own]
    return [tuple(sorted(group)) for group in found]


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _containers(touched: Touched) -> list[str]:
    """Containers in the order in which accesses name them, and then what is initialised."""
    return list(dict.fromkeys([*(access.data for access in touched[0]), *touched[1]]))


def _key(space: IterationSpace, touched: Touched, containers: Sequence[str]) -> Hashable | None:
    """Equal for spaces that are alike; None where more matters than this key says."""
    accesses, initialised = touched
    state = space.state
    if any(access.values for access in accesses) or _has_nested(space):
        return None
    numbers = {name: number for number, name in enumerate(containers)}
    edges = {edge: n for n, edge in enumerate(dict.fromkeys(id(a.edge) for a in accesses))}
    arrays = [state.sdfg.arrays[name] for name in containers]
    return (
        isinstance(space.node, nodes.MapEntry) or type(space.node),
        space.parameters,
        space.ranges,
        space.chosen,
        tuple((tuple(array.shape), array.dtype) for array in arrays),
        tuple(_access_key(access, numbers, edges) for access in accesses),
        tuple(sorted(numbers[name] for name in initialised)),
        tuple(sorted(numbers[n] for n in initialised if is_read_as_written(state, n))),
        None if state.parent_graph is state.sdfg else id(state.parent_graph),
        tuple(bound_around(state).items()),
        happens_once(state),
        times(state),
    )


def _access_key(access: Access, numbers: dict[str, int], edges: dict[int, int]) -> Hashable:
    return (
        numbers[access.data],
        edges[id(access.edge)],
        access.is_write,
        access.dimensions,
        tuple(access.scope.items()),
        access.conditional,
        access.reduction,
    )


def _has_nested(space: IterationSpace) -> bool:
    """Whether a body may both read and write a container in one tile."""
    if not isinstance(space.node, nodes.MapEntry):
        return False
    inside = space.state.scope_subgraph(space.node).nodes()
    return any(isinstance(node, nodes.NestedSDFG) for node in inside)
