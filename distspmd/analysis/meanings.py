"""What a front end knows of its containers: where they are from, and what their dimensions mean.

A space takes the path of what it writes, and its parameters take the names of the dimensions that
they index; so names survive passes that make one map of two, or two of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dace import SDFG, SDFGState
from dace.sdfg import nodes

from distspmd.nodes.contraction import Contraction
from distspmd.nodes.contraction_loops import parameter
from distspmd.nodes.subscripts import Subscripts, plain_letter

_ATTRIBUTE = "_distspmd_meanings"
CARRIED = "carried"
"""The kind of what has a batch and goes on from call to call, as keys and values of decoders do."""


@dataclass(frozen=True)
class Meanings:
    """What a front end knows of its containers.

    Attributes:
        paths: where in the user's program each is made: modules, the operator, and the phase,
            ``"model.layers.0.mlp.up_proj.mm.backward"``.
        dimensions: name of each dimension; None where nobody knows one.
        kinds: of arguments that the caller does not pass: ``"parameters"``, ``"states"``, or
            ``"carried"``.
    """

    paths: Mapping[str, str] = field(default_factory=dict)
    dimensions: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)

    def __deepcopy__(self, memo: Any) -> Meanings:
        return self


def tell(sdfg: SDFG, meanings: Meanings) -> None:
    """Let an SDFG carry what a front end knows of it."""
    setattr(sdfg, _ATTRIBUTE, meanings)


def meanings_of(sdfg: SDFG) -> Meanings:
    """What is known of an SDFG; nothing, if no front end told."""
    found: Meanings = getattr(sdfg, _ATTRIBUTE, Meanings())
    return found


def dimensions_of(
    state: SDFGState,
    node: nodes.MapEntry | nodes.LibraryNode,
    parameters: Sequence[str],
    known: Meanings,
) -> tuple[str, ...]:
    """A name for each parameter of a space, each once: that of the dimension which it indexes.

    Of two that index dimensions of one name, the second has a number; others keep their own.
    """
    if not known.dimensions:
        return tuple(parameters)
    found: dict[str, str] = {}
    for data, index in _indices(state, node):
        names = known.dimensions.get(data, ())
        for own, name in zip(index, names, strict=False):
            if own is not None and name is not None and len(names) == len(index):
                found.setdefault(own, name)
    counts: dict[str, int] = {}
    made = []
    for own in parameters:
        name = found.get(own, own)
        count = counts[name] = counts.get(name, 0) + 1
        made.append(name if count == 1 else f"{name}{count}")
    return tuple(made)


def _indices(
    state: SDFGState, node: nodes.MapEntry | nodes.LibraryNode
) -> Iterator[tuple[str, list[str | None]]]:
    """Containers, what is written first, with the parameter that indexes each dimension."""
    if isinstance(node, nodes.MapEntry):
        leave = state.exit_node(node)
        edges = [*state.in_edges(leave), *state.out_edges(node)]
        for edge in edges:
            if not edge.data.is_empty() and edge.data.subset is not None:
                yield edge.data.data, list(_plain(edge.data.subset.ranges))
    elif isinstance(node, Contraction):
        subscripts = Subscripts.parse(node.subscripts)
        terms = {f"_in{n}": term for n, term in enumerate(subscripts.operands)}
        terms["_out"] = subscripts.result
        for edge in [*state.out_edges(node), *state.in_edges(node)]:
            term = terms.get(edge.src_conn if edge.src is node else edge.dst_conn)
            if term is not None:
                letters = (plain_letter(dimension) for dimension in term)
                yield edge.data.data, [x and parameter(x) for x in letters]


def _plain(ranges: Iterable[tuple[Any, Any, Any]]) -> Iterator[str | None]:
    for begin, end, _ in ranges:
        yield str(begin) if begin == end and getattr(begin, "is_Symbol", False) else None
