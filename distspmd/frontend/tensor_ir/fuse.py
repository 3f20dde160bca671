"""Kernels that run over the same indices become one, if no other kernel stands between them.

before -> after:  ``t = f(x); y = g(t)``  ->  ``y = g(f(x))``; ``t`` stays if others read it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from distspmd.expressions.ir import Expression, Load, depth_of
from distspmd.frontend.tensor_ir.indices import (
    Index,
    Variable,
    move_load,
    replace_loads,
    substitute_indices,
)
from distspmd.frontend.tensor_ir.kernels import WHOLE, Kernel, current_indices
from distspmd.plans.heuristics import HEURISTICS


def _has_room(kernel: Kernel) -> bool:
    """Whether results of another kernel may be added to it."""
    return len(kernel.results) < HEURISTICS.kernel_results


def here(load: Load, variables: Sequence[Variable]) -> bool:
    """Whether a load is of the element at the kernel's own indices."""
    at = [(((v, 1),) if v.length != 1 else (), 0) for v in variables]
    found = current_indices(load)
    return [(i.terms, i.constant) for i in found] == at and all(i.within is None for i in found)


def inline_into_updates(kernels: Sequence[Kernel], late: Sequence[Kernel]) -> list[Kernel]:
    """Compute in the updates what only they read; the kernels that are left."""
    left = list(kernels)
    read = {id(kernel): _read(kernel) for kernel in (*kernels, *late)}
    for kernel in reversed(kernels):
        names = {array.name for array, _ in kernel.results}
        users = [k for k in (*left, *late) if names & read[id(k)]]
        if not users or kernel.operation is not None:
            continue
        if all(any(u is k for k in late) and _fits(kernel, u) for u in users):
            for user in users:
                _inline(kernel, user)
                read[id(user)] = _read(user)
            left.remove(kernel)
    return left


def fuse(kernels: Sequence[Kernel], late: Sequence[Kernel]) -> list[Kernel]:
    """Join maps with maps that read them, in an order in which all can run."""
    done: list[Kernel] = []
    for kernel in kernels:
        place = _partner(kernel, done)
        if place is None:
            done.append(kernel)
            continue
        first = done[place]
        _inline(first, kernel)
        by, known = _renaming(kernel, first), dict[int, Expression]()
        first.results += [(a, substitute_indices(e, by, known)) for a, e in kernel.results]
        for array, _ in kernel.results:
            if array.written is not None:
                array.written = move_load(array.written, by)
    return _needed(done, late)


def _needed(kernels: Sequence[Kernel], late: Sequence[Kernel]) -> list[Kernel]:
    """Without results that nobody reads."""
    read = {load.array.name for kernel in late for load in kernel.read}
    left = []
    for kernel in reversed(kernels):
        wanted = [r for r in kernel.results if r[0].name in read or r[0].is_argument]
        if kernel.operation not in WHOLE or not wanted:  # which make all or nothing
            kernel.results = wanted
        if wanted:
            left.append(kernel)
            read |= {load.array.name for load in kernel.read}
    return left[::-1]


def _partner(kernel: Kernel, done: Sequence[Kernel]) -> int | None:
    """The place of an earlier map into which a kernel can go: all else that it reads is older."""
    if kernel.operation is not None or not done:
        return None
    made = {a.name: place for place, k in enumerate(done) for a, _ in k.results}
    newest = max((made.get(load.array.name, -1) for load in kernel.read), default=-1)
    if newest < 0:
        return _scalars(kernel, done, newest)
    other = done[newest]
    if other.operation is None and _fits(other, kernel) and _has_room(other):
        return newest
    return _scalars(kernel, done, newest)


def _scalars(kernel: Kernel, done: Sequence[Kernel], newest: int) -> int | None:
    """Maps of one element go together, whatever they read."""
    if kernel.variables:
        return None
    for place in range(max(newest, 0), len(done)):
        other = done[place]
        if not other.variables and other.operation is None and _has_room(other):
            return place
    return None


def _depth(kernel: Kernel, names: Collection[str] | None = None) -> int:
    """Operations that follow each other in what a kernel computes of some arrays, or of all."""
    results = (e for array, e in kernel.results if names is None or array.name in names)
    return max(map(depth_of, results), default=0)


def _read(kernel: Kernel) -> set[str]:
    return {load.array.name for load in kernel.read}


def _fits(kernel: Kernel, user: Kernel) -> bool:
    """Whether a user runs over the same indices, and reads the kernel's results at its own."""
    if user.operation is not None or _lengths(kernel) != _lengths(user):
        return False
    if _depth(kernel, _read(user)) + _depth(user) > HEURISTICS.kernel_depth:
        return False
    names = {array.name for array, _ in kernel.results}
    leaves = _leaves(user)
    return all(here(load, leaves) for load in user.read if load.array.name in names)


def _inline(kernel: Kernel, user: Kernel) -> None:
    """Let a user compute what it read."""
    by, known = _renaming(kernel, user), dict[int, Expression]()
    read = {load.array.name for load in user.read}
    made: dict[str, Expression] = {
        a.name: substitute_indices(e, by, known) for a, e in kernel.results if a.name in read
    }
    if not made:
        return
    replaced: dict[int, Expression] = {}
    user.results = [
        (array, replace_loads(e, lambda load: made.get(load.array.name, load), replaced))
        for array, e in user.results
    ]


def _renaming(kernel: Kernel, other: Kernel) -> dict[Variable, Index]:
    pairs = zip(_leaves(kernel), _leaves(other), strict=True)
    return {mine: Index(((theirs, 1),)) for mine, theirs in pairs}


def _leaves(kernel: Kernel) -> list[Variable]:
    return [leaf for v in kernel.variables for leaf in v.leaves()]


def _lengths(kernel: Kernel) -> list[int]:
    return [leaf.length for leaf in _leaves(kernel)]
