"""Arrays in which what belongs together lies in rounds: parts of their spaces may be dealt.

A projection that makes queries, keys and values at once has a head in three places: what splits it
by heads is no box, unless the array is folded in rounds. A search tries that where moves of such
arrays take time, on a copy of the program in which they are folded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from distspmd.analysis.accesses import Access
from distspmd.analysis.constraints import touched_by
from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.passes.compilation import Compilation
from distspmd.passes.deal_blocks import fold_rounds
from distspmd.passes.fold_indices import Fold, Named, Values, terms_of
from distspmd.scheduling.candidates import divisible
from distspmd.scheduling.footprints import Footprint

Folded = Mapping[str, Mapping[str, tuple[Fold, tuple[str, ...]]]]
"""By space and parameter how it was folded, and its digits."""
Rounds = tuple[str, int, int]
"""A container, a dimension of it, and elements of a round."""


def unsplit_of(folded: Folded) -> dict[str, frozenset[str]]:
    """Digits that no schedule can split, by space: rounds, and what is within a unit."""
    return {
        name: frozenset(digit for _, (first, _, *rest) in own.values() for digit in (first, *rest))
        for name, own in folded.items()
    }


def rounds_in(footprints: Iterable[Footprint]) -> list[Rounds]:
    """Dimensions that programs read in rounds, each once, in program order."""
    found: dict[Rounds, None] = {}
    for footprint in footprints:
        if footprint.like is not footprint:
            footprint, names = footprint.like, footprint.names
        else:
            names = {}
        values = _values(footprint.space)
        for access in footprint.touched[0]:
            for d, length in _rounds_of(footprint, access, values):
                found[names.get(access.data, access.data), d, length] = None
    return list(found)


def _values(space: IterationSpace) -> Values:
    """First and last value of each parameter that takes every number."""
    pairs = zip(space.parameters, space.ranges, divisible(space), strict=True)
    return {
        name: (int(r.begin), int(r.begin) + count - 1)
        for name, r, count in pairs
        if int(r.step) == 1 and count
    }


def _rounds_of(footprint: Footprint, access: Access, values: Values) -> Iterator[tuple[int, int]]:
    """Dimensions of an access with rounds in which it reads them."""
    extents = footprint.extents(access.data)
    for d, (dimension, extent) in enumerate(zip(access.dimensions, extents, strict=True)):
        if dimension is None or dimension.first != dimension.last:
            continue
        terms = terms_of(dimension.first, values)
        if terms is None:
            continue
        factors, constant = terms
        coarse = [f for f in factors.values() if any(1 < g < f for g in factors.values())]
        shift = [math.gcd(constant, extent)] if constant > 0 else []
        for length in (*coarse, *shift):
            if 1 < length < extent and not extent % length and _within(factors, values, length):
                yield d, length


def _within(factors: Mapping[str, int], values: Values, length: int) -> bool:
    """Whether what is no multiple of a round stays within one."""
    rest = [(f, values[name]) for name, f in factors.items() if f % length]
    return sum(f * last for f, (_, last) in rest) < length and all(f > 0 for f, _ in rest)


def fold_all(compilation: Compilation, rounds: Iterable[Rounds]) -> bool:
    """Fold dimensions of a program whose maps are aligned, where all that touches them can follow.

    Returns:
        whether anything was folded.
    """
    done: set[tuple[str, int]] = set()
    refused: dict[int, set[Named]] = {}
    touched: dict[str, list[Access]] = {}
    for data, d, length in rounds:
        if (data, d) in done:
            continue
        for space, parameter in _makers(compilation, data, d, touched):
            known = refused.setdefault(length, set())
            if fold_rounds(compilation, space, parameter, length, known):
                done.add((data, d))
                refused.clear()  # the program is another one
                touched.clear()
                break
    return bool(done)


def _makers(
    compilation: Compilation, data: str, dimension: int, touched: dict[str, list[Access]]
) -> Iterator[tuple[IterationSpace, str]]:
    """Spaces with a parameter that runs over all of a dimension: those that write it first.

    Args:
        touched: what is known of the accesses of each space; more is added.
    """
    for is_write, space in itertools.product((True, False), list(compilation.spaces)):
        extent = compilation.sdfg.arrays[data].shape[dimension]
        if space.name not in touched:
            touched[space.name] = list(touched_by(space)[0])
        for access in touched[space.name]:
            if access.data != data or access.is_write != is_write:
                continue
            own = access.dimensions[dimension] if dimension < len(access.dimensions) else None
            names = {str(s) for s in own.first.free_symbols} if own else set()
            for parameter, r in zip(space.parameters, space.ranges, strict=True):
                # of a range that loops choose no count is the extent
                if names == {parameter} and -(-(r.end - r.begin) // r.step) == extent:
                    yield space, parameter
