"""What iterations of a map hand on to later ones, and by it ranks to their neighbours: a mark.

A map whose body has this node runs in order. The node has no edges, and becomes nothing on one
rank. On several, ranks run their iterations in blocks of the loop in the body, and hand on a rim of
what they have written behind each (:mod:`distspmd.codegen.pipelines`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import dace.library
from dace import SDFG, SDFGState
from dace.properties import Property
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.transformation.transformation import ExpandTransformation


@dataclass(frozen=True)
class Rim:
    """What later iterations read of a container that earlier ones have written.

    Attributes:
        data: the container, as the body names it.
        along: its dimension that the map's parameter indexes.
        place: what is added to the parameter, or its opposite, there where it is written.
        depth: iterations before, as far as which a later one reads.
        across: its dimension that the variable of the loop in the body indexes.
        offset: what is added to the variable there, where it is written.
        others: first and last index that are written in each other dimension, by its number.
        sign: of the parameter in that index; -1 where the program counts down.
    """

    data: str
    along: int
    place: int
    depth: int
    across: int
    offset: int
    others: tuple[tuple[int, int, int], ...] = ()
    sign: int = 1

    @property
    def elements(self) -> int:
        """Elements of it at one place of the loop."""
        found = self.depth
        for _, first, last in self.others:
            found *= last - first + 1
        return found


@dace.library.expansion
class ExpandToNothing(ExpandTransformation):
    """A tasklet without work."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        return nodes.Tasklet(node.label, code="pass")


@dace.library.node
class HandingOn(nodes.LibraryNode):
    """A mark in the first state of the body of a map whose iterations run in order.

    ``blocks`` is 0 where no ranks share the map. Else ``first`` and ``last`` are the iterations of
    this rank, ``before`` and ``behind`` the ranks that have what is next to them, or -1.
    """

    implementations = {"nothing": ExpandToNothing}  # noqa: RUF012
    default_implementation = "nothing"

    variable = Property(dtype=str, default="", desc="Of the loop in the body")
    skew = Property(dtype=int, default=0, desc="Values that each iteration begins the loop earlier")
    begin = Property(dtype=str, default="", desc="The first iteration on any rank")
    told = Property(dtype=str, default="[]", desc="The rims, as text")
    blocks = Property(dtype=int, default=0, desc="Into which the values of the loop are cut")
    width = Property(dtype=int, default=0, desc="Values in a block")
    number = Property(dtype=int, default=0, desc="Of the talk in the lowered program")
    first = Property(dtype=str, default="", desc="Iteration of this rank")
    last = Property(dtype=str, default="", desc="Iteration of this rank")
    before = Property(dtype=str, default="", desc="Rank")
    behind = Property(dtype=str, default="", desc="Rank")

    def __init__(self, name: str = "handing_on", rims: Sequence[Rim] = (), **keywords: Any) -> None:
        super().__init__(name, inputs=set(), outputs=set(), **keywords)
        self.told = json.dumps([asdict(rim) for rim in rims])

    @property
    def rims(self) -> tuple[Rim, ...]:
        """What is handed on."""
        found = json.loads(self.told)
        return tuple(Rim(**{**each, "others": tuple(map(tuple, each["others"]))}) for each in found)


def handed_on(state: SDFGState, entry: nodes.Node) -> tuple[nodes.NestedSDFG, HandingOn] | None:
    """The body of a map whose iterations run in order, with the mark; None for other nodes."""
    if not isinstance(entry, nodes.MapEntry):
        return None
    for edge in state.out_edges(entry):
        if isinstance(edge.dst, nodes.NestedSDFG):
            first = edge.dst.sdfg.start_block
            if isinstance(first, SDFGState):
                marks = [node for node in first.nodes() if isinstance(node, HandingOn)]
                return (edge.dst, marks[0]) if marks else None
    return None


def loop_of(nested: nodes.NestedSDFG, mark: HandingOn) -> LoopRegion:
    """The loop in the body whose values are cut into blocks."""
    (found,) = (
        block
        for block in nested.sdfg.nodes()
        if isinstance(block, LoopRegion) and str(block.loop_variable) == mark.variable
    )
    return found
