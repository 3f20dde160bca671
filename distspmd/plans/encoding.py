"""The table of int64 words by which a rank tells the C++ runtime its part of all plans.

One table holds, in this order (``plan/decode.hpp`` reads it)::

    table   MAGIC, VERSION, number of words, rank, ranks, fingerprint, families, plans
    family  colour, position, size          of the rank's group; colour -1: the rank is in no group
    plan    number of words, bytes of the name, the name (8 bytes a word),
            dtype, itemsize, dimensions, buffers, steps
    buffer  box, origin, strides            strides in elements of the rank's storage
    step    kind, source, target, family, reduction, accumulate, sends, receives
    send    peer, box
    receive peer, box
    box     lo, hi                          for each dimension, in global indices

A *family* is a set of disjoint groups of ranks that communicate at the same time: one communicator
split. Steps with the same groups share a family; -1 stands for none. A peer is a position in the
group, or SELF (the rank's own memory), or ALL (a broadcast goes to all, a reduction comes from
all). A receive from SELF is a local copy. Of a REDUCE the first rank of a group has its own operand
as a send to SELF; of an ALL_REDUCE every rank's own operand is the one that it sends to ALL. Sends
and receives are in the order of the plan's messages, which is the order in which both sides pack
and in which operands are combined. The fingerprint is the same on all ranks that have the same
plans.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import PlanError
from distspmd.layouts import intervals
from distspmd.layouts.intervals import Box
from distspmd.layouts.reductions import find_reduction
from distspmd.plans.collectives import StepKind
from distspmd.plans.plan import Plan, Step

MAGIC = int.from_bytes(b"distspmd", "big")
VERSION = 1
SELF = -1
ALL = -2

_REDUCIBLE = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64", "complex64", "complex128"),
)

Function = tuple[str, np.dtype[Any]]
"""A reduction that the program has itself: its name, and the dtype of the operands."""

FUNCTIONS = 11
"""Code of the first of them, behind those of the runtime (``memory/reductions.hpp``)."""

DTYPES = {np.dtype(name): code for code, name in enumerate(_REDUCIBLE, start=1)}
"""Codes of the dtypes that the runtime can reduce; any other is 0 and moves as bytes."""

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a rank keeps a tile: a pointer goes to the element ``origin`` of the global array.

    Strides are in elements. The storage may be larger than the tile, such as a tile with a halo.
    With a ``shape``, the layout is of a folded array, and the tile an array of that shape; its
    first element lies so many elements behind the origin.
    """

    origin: tuple[int, ...]
    strides: tuple[int, ...]
    shape: tuple[int, ...] | None = None
    first: int = 0

    @classmethod
    def of(cls, box: Box) -> Storage:
        """A C-contiguous storage that holds exactly a box."""
        extents = intervals.shape(box)
        strides = tuple(math.prod(extents[d + 1 :]) for d in range(len(extents)))
        return cls(tuple(lo for lo, _ in box), strides)


def words(
    plans: Sequence[tuple[str, Plan, Sequence[Storage]]],
    rank: int,
    functions: Sequence[Function] = (),
) -> NDArray[np.int64]:
    """The table of a rank.

    Args:
        plans: of each plan a name for messages, and the rank's storage of its source and target.
        rank: whose part.
        functions: reductions that the program has itself.

    Raises:
        PlanError: a reduction of a dtype that the runtime cannot reduce, or too few storages.
    """
    families: dict[Groups, int] = {}
    bodies = [
        _plan(name, plan, storages, rank, families, functions) for name, plan, storages in plans
    ]
    fingerprint = 0
    for name, plan, _ in plans:
        fingerprint = zlib.crc32(
            name.encode() + plan.fingerprint.to_bytes(8, "little"), fingerprint
        )
    ranks = max((plan.ranks for _, plan, _ in plans), default=1)
    head = [rank, ranks, fingerprint, len(families), len(plans)]
    tail = [word for groups in families for word in _place(groups, rank)]
    for body in bodies:
        tail += body
    return np.array([MAGIC, VERSION, 3 + len(head) + len(tail), *head, *tail], dtype=np.int64)


def _place(groups: Groups, rank: int) -> tuple[int, int, int]:
    """Colour, position and size of the group that a rank is in."""
    for colour, group in enumerate(groups):
        if rank in group:
            return colour, group.index(rank), len(group)
    return -1, 0, 0


def _plan(
    name: str,
    plan: Plan,
    storages: Sequence[Storage],
    rank: int,
    families: dict[Groups, int],
    functions: Sequence[Function],
) -> list[int]:
    if len(storages) != 2:
        raise PlanError(
            f"{name}: {len(storages)} storages; one of the source and one of the target."
        )
    text = name.encode()
    body = [len(text), *_packed(text)]
    dtype = plan.redistribution.dtype
    extents = plan.redistribution.target.extents
    body += [DTYPES.get(dtype, 0), dtype.itemsize, len(extents), len(plan.buffers), len(plan.steps)]
    for number, layout in enumerate(plan.buffers):
        box = layout.box(rank)
        storage = storages[number] if number < 2 else Storage.of(box)
        if len(storage.origin) != len(extents) or len(storage.strides) != len(extents):
            raise PlanError(
                f"{name}: {storage} does not have the {len(extents)} dimensions of {layout}."
            )
        body += [*intervals.bounds(box), *storage.origin, *storage.strides]
    for step in plan.steps:
        body += _step(step, rank, families, name, _code(step, dtype, functions, name))
    return [len(body) + 1, *body]


def _code(step: Step, dtype: np.dtype[Any], functions: Sequence[Function], name: str) -> int:
    """The code of a step's reduction."""
    if step.reduction is None:
        return 0
    if (step.reduction, dtype) in functions:
        return FUNCTIONS + functions.index((step.reduction, dtype))
    code = find_reduction(step.reduction).code
    if dtype not in DTYPES or code == 0:
        raise PlanError(f"{name}: the runtime has no {step.reduction} of {dtype} values.")
    return code


def _step(
    step: Step, rank: int, families: dict[Groups, int], name: str, operation: int
) -> list[int]:
    groups = tuple(group for group in step.groups if len(group) > 1)
    family = families.setdefault(groups, len(families)) if groups else -1
    kind = StepKind.EXCHANGE if step.kind.spec.exchanged else step.kind
    sends, receives = _traffic(step, rank, name)
    body = [
        kind.value,
        step.source,
        step.target,
        family,
        operation,
        int(step.accumulate),
        len(sends),
        len(receives),
    ]
    for peer, box in (*sends, *receives):
        body += [peer, *intervals.bounds(box)]
    return body


Traffic = list[tuple[int, Box]]


def _traffic(step: Step, rank: int, name: str) -> tuple[Traffic, Traffic]:
    """What a rank sends to, and receives from, the positions of its group in a step."""
    spec = step.kind.spec
    group = next((group for group in step.groups if rank in group), ())
    position = {peer: at for at, peer in enumerate(group)}
    mine = list(step.table.of_rank(rank))
    far = [(sender, receiver, box) for sender, receiver, box in mine if sender != receiver]
    combined = _combined_box(step, rank, far)
    sends: Traffic = []
    receives: Traffic = []
    for sender, receiver, box in mine:
        if sender == receiver:
            if box != combined:
                receives.append((SELF, box))
            elif spec.first is not None:
                sends.append((SELF, box))
                combined = None
        elif sender == rank:
            _append(sends, spec.to_all, position[receiver], box)
        else:
            _append(receives, spec.is_combined, position[sender], box)
    if far and spec.to_all and spec.first is None:
        _check_all_take_part(step, rank, group, mine, name)
    return sends, receives


def _append(traffic: Traffic, common: bool, peer: int, box: Box) -> None:
    """Add a box for a peer, or once for all peers."""
    if not common:
        traffic.append((peer, box))
    elif (ALL, box) not in traffic:
        traffic.append((ALL, box))


def _combined_box(step: Step, rank: int, far: list[tuple[int, int, Box]]) -> Box | None:
    """The box of which a rank's own message is an operand that MPI combines, not a copy."""
    spec = step.kind.spec
    if not spec.is_combined:
        return None
    combined = far if spec.first is None else [m for m in far if m[1] == rank]
    return combined[0][2] if combined else None


def _check_all_take_part(
    step: Step, rank: int, group: tuple[int, ...], mine: list[tuple[int, int, Box]], name: str
) -> None:
    """Each rank sends one box to all; in an all-reduce, to itself too, and the same box as all."""
    reduces = step.kind.spec.is_combined
    sent = [(receiver, box) for sender, receiver, box in mine if sender == rank]
    to = [receiver for receiver, _ in sent if reduces or receiver != rank]
    boxes = {box for receiver, box in sent if receiver != rank}
    if reduces:
        boxes |= {box for _, _, box in mine}
    wanted = set(group) if reduces else set(group) - {rank}
    if len(boxes) > 1 or (to and (len(to) != len(wanted) or set(to) != wanted)):
        raise PlanError(f"{name}: rank {rank} does not send one box to all in the {step.kind}.")


def _packed(text: bytes) -> list[int]:
    """Bytes, eight to a word."""
    padded = text + bytes(-len(text) % 8)
    return [int(word) for word in np.frombuffer(padded, dtype="<i8")]
