"""Copies of what the caller holds in tiles: gathered for a while, freed, and gathered again.

before -> after:  one copy for all readers  ->  one for each run of uses, in memory that others have
before and after it

The caller asks for it by ``"gathered"``. A copy lasts until others of its own size have been
gathered since it was last read. So parameters of all but the last layers are gathered for the
forward pass, and again for the backward pass, as in ZeRO-3 (Rajbhandari et al., arXiv 1910.02054).
Copies of one form that are there at different times are one container: what reads the first comes
before what gathers the second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dace import SDFG, Memlet, data
from dace.sdfg import nodes

from distspmd.analysis.iteration_spaces import program_order
from distspmd.analysis.uses import Read
from distspmd.layouts import relations
from distspmd.passes.movement import dtype_of
from distspmd.placement.homes import Home, works_in_place


@dataclass(eq=False)
class GatheredCopy:
    """A copy of a container, for a run of its readers.

    Attributes:
        reads: its readers, in program order.
        first, last: places of the first and of the last one in the program.
        form: what copies have in common that can be in the same memory.
        memory: which of the memories of this form it is in.
        gather: what fills it, once there is something.
    """

    reads: list[Read]
    first: int
    last: int
    form: tuple[Any, ...]
    memory: int = 0
    gather: nodes.Node | None = None


@dataclass
class GatheredCopies:
    """All such copies of a program, and the containers that they share.

    Attributes:
        of_reads: the copy that each of the uses reads.
        names: container of each memory of each form, once there is one.
    """

    of_reads: Mapping[Read, GatheredCopy]
    names: dict[tuple[Any, ...], str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, sdfg: SDFG, homes: Mapping[str, Home], containers: Mapping[str, data.Data]
    ) -> GatheredCopies:
        """Decide which reads share a copy, and which copies share memory."""
        places: dict[nodes.Node, int] = {node: n for n, (_, node) in enumerate(program_order(sdfg))}
        reads = [
            use
            for home in homes.values()
            if home.is_gathered
            for use in home.uses
            if isinstance(use, Read)
            and use.space.state.sdfg is sdfg
            and not use.is_asked_for(home.is_written)
            and not works_in_place(use, home.layout)
        ]
        reads.sort(key=lambda use: places[use.space.node])
        copies = list(_runs(reads, places, containers))
        _share_memory(copies)
        return cls({read: copy for copy in copies for read in copy.reads})

    def keep_in_order(self) -> None:
        """Let what reads a copy come before what fills its memory again."""
        latest: dict[tuple[Any, ...], list[GatheredCopy]] = {}
        for copy in dict.fromkeys(self.of_reads.values()):
            before = latest.setdefault((copy.form, copy.memory), [])
            if before:
                _put_behind(before[-1], copy)
            before.append(copy)


def _runs(
    reads: Sequence[Read], places: Mapping[nodes.Node, int], containers: Mapping[str, data.Data]
) -> Iterator[GatheredCopy]:
    """Copies in the order of their first readers."""
    latest: dict[tuple[Any, ...], tuple[GatheredCopy, float]] = {}
    found: list[GatheredCopy] = []
    gathered = 0.0
    """Bytes, on the rank that has most, of all copies so far."""
    for read in reads:
        container, place = containers[read.data], places[read.space.node]
        form = (
            dtype_of(container),
            tuple(container.strides),
            read.layout.extents,
            read.layout.bounds.tobytes(),
        )
        nbytes = int(relations.volumes(read.layout.bounds).max()) * dtype_of(container).itemsize
        key = frozenset(edge.src for edge in read.edges), form
        known = latest.get(key)
        if known is not None and gathered - known[1] < nbytes:
            known[0].reads.append(read)
            known[0].last = place
            latest[key] = known[0], gathered
            continue
        gathered += nbytes
        found.append(GatheredCopy([read], place, place, form))
        latest[key] = found[-1], gathered
    yield from found


def _share_memory(copies: Sequence[GatheredCopy]) -> None:
    """Give each copy a memory of its form that is free while it is needed."""
    free_from: dict[tuple[Any, ...], list[int]] = {}
    for copy in copies:
        ends = free_from.setdefault(copy.form, [])
        free = (n for n, end in enumerate(ends) if end < copy.first)
        copy.memory = next(free, len(ends))
        if copy.memory == len(ends):
            ends.append(copy.last)
        ends[copy.memory] = copy.last


def _put_behind(before: GatheredCopy, after: GatheredCopy) -> None:
    """Let the readers of a copy come before what fills its memory for another one."""
    if before.reads[0].space.state is not after.reads[0].space.state:
        return  # control flow has them in order
    assert after.gather is not None
    for read in before.reads:
        state, node = read.space.state, read.space.node
        leaving: Any = state.exit_node(node) if isinstance(node, nodes.MapEntry) else node
        state.add_nedge(leaving, after.gather, Memlet())
