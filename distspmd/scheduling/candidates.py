"""Candidates: ways to give the axes of one mesh to the parameters of each space.

Axes of equal sizes are given in one order, that of the dimensions of the whole program which the
parameters index, so that spaces that share a dimension split it along the same axes. What this
order does not reach comes from the neighbours: a space may follow each of them.
"""

from __future__ import annotations

import functools
import itertools
import math
import string
from collections.abc import Iterator, Mapping, Sequence

from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.analysis.uses import Use
from distspmd.layouts.mesh import Mesh
from distspmd.schedule import Grid
from distspmd.scheduling.footprints import Candidate, Splits

MOST_AXES = 8
"""Of a mesh: prime factors beyond are taken together, the smallest first."""
_SMALL = 7
"""Of prime factors: larger ones leave too few numbers of parts."""
MOST_SPLITS = 4096
"""Of one space, before they are compared: finer ones come first."""


def prime_factors(number: int) -> list[int]:
    """Prime factors, the largest first."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return sorted([*found, number] if number > 1 else found, reverse=True)


@functools.cache
def mesh_of(ranks: int) -> Mesh:
    """A mesh of axes of prime sizes, or of products of the smallest where there are many."""
    sizes = prime_factors(ranks)
    while len(sizes) > MOST_AXES:
        sizes = sorted([*sizes[:-2], sizes[-1] * sizes[-2]], reverse=True)
    return Mesh.of(tuple(zip(string.ascii_lowercase, sizes, strict=False)))


def mesh_with(ranks: int, grids: Sequence[Grid]) -> Mesh:
    """A mesh of so many ranks on which the largest of some grids is a choice of axes."""
    largest = max(grids, key=lambda grid: grid.mesh.size, default=None)
    if largest is None or ranks % largest.mesh.size:
        return mesh_of(ranks)
    sizes = prime_factors(ranks // largest.mesh.size)
    for _, size in largest.mesh.axes:
        sizes += prime_factors(size)
    return Mesh.of(tuple((f"a{number}", size) for number, size in enumerate(sizes)))


def on_mesh(grid: Grid, mesh: Mesh) -> Candidate:
    """A grid as axes of the mesh of all, where it has its tiles there on the same ranks."""
    if grid.mesh.size == 1:
        return None
    if grid.mesh.size != mesh.size:
        return grid
    if grid.mesh == mesh:
        return grid.splits
    axes, finer = list(mesh.axes), {}
    for name, size in grid.mesh.axes:
        own: list[str] = []
        while size > 1 and axes and size % axes[0][1] == 0:
            own.append(axes[0][0])
            size //= axes.pop(0)[1]
        if size > 1:
            return grid
        finer[name] = tuple(reversed(own))
    return tuple(tuple(axis for name in split for axis in finer[name]) for split in grid.splits)


def rank_counts(ranks: int) -> list[int]:
    """Numbers of ranks to try: all, and of a large prime factor also fewer of small ones.

    These are the largest three, and then those that have more factors than all larger ones.
    """
    found = [ranks]
    if max(prime_factors(ranks), default=1) <= _SMALL:
        return found
    smooth = (n for n in range(ranks - 1, 0, -1) if max(prime_factors(n), default=1) <= _SMALL)
    for number in itertools.islice(smooth, 12):
        factors = len(prime_factors(number))
        if len(found) <= 3 or all(factors > len(prime_factors(other)) for other in found):
            found.append(number)
    return found


def divisible(space: IterationSpace) -> tuple[int, ...]:
    """Values of each parameter that there are to be cut."""
    return tuple(extent.divisible for extent in space.ranges)


def fills(extent: int, parts: int) -> bool:
    """Whether so many tiles of equal size leave no rank idle."""
    return parts == 1 or (parts <= extent and -(-extent // -(-extent // parts)) == parts)


def canonical_splits(space: IterationSpace, mesh: Mesh, order: Sequence[int]) -> list[Splits]:
    """All numbers of parts that axes of a mesh give the parameters of a space, each once.

    Args:
        space: with numbers for ranges.
        mesh: whose axes are given.
        order: the parameters in the order in which they take axes of equal sizes.
    """
    extents = divisible(space)
    runs = [
        [name for name, _ in run] for _, run in itertools.groupby(mesh.axes, key=lambda a: a[1])
    ]
    first = itertools.islice(_given(runs, mesh, extents, order), MOST_SPLITS)
    return [tuple(tuple(reversed(axes)) for axes in given) for given in first]


def _given(
    runs: Sequence[Sequence[str]], mesh: Mesh, extents: Sequence[int], order: Sequence[int]
) -> Iterator[list[list[str]]]:
    """Axes of each parameter, major first."""
    counts = [_compositions(len(run), len(order) + 1) for run in runs]
    sizes = [mesh[run[0]] for run in runs]
    for chosen in itertools.product(*counts):
        parts = [1] * len(extents)
        for size, numbers in zip(sizes, chosen, strict=True):
            for place, parameter in enumerate(order):
                parts[parameter] *= size ** numbers[place]
        if not all(map(fills, extents, parts)):
            continue
        given: list[list[str]] = [[] for _ in extents]
        for run, numbers in zip(runs, chosen, strict=True):
            at = 0
            for place, parameter in enumerate(order):
                given[parameter] += run[at : at + numbers[place]]
                at += numbers[place]
        yield given


@functools.cache
def _compositions(total: int, bins: int) -> tuple[tuple[int, ...], ...]:
    """All ways to put so many into bins, those that leave the last bin empty first."""
    if bins == 1:
        return ((total,),)
    found = [
        (first, *rest)
        for first in range(total, -1, -1)
        for rest in _compositions(total - first, bins - 1)
    ]
    return tuple(sorted(found, key=lambda counts: counts[-1]))


Dimension = tuple[str, str | int]
"""A parameter of a space, or the dimension of a container, whose name stands in brackets."""


class Dimensions:
    """The dimensions of a program: parameters and dimensions of containers that index each other.

    Each is a class of parameters, and has a place in the order in which axes are given.
    """

    def __init__(self) -> None:
        self._parents: dict[Dimension, Dimension] = {}

    def _find(self, key: Dimension) -> Dimension:
        parents = self._parents
        while (parent := parents.setdefault(key, key)) != key:
            parents[key] = parents[parent]  # half of the way the next time
            key = parents[key]
        return key

    def add(self, space: IterationSpace, uses: Sequence[Use]) -> None:
        """Join the parameters of a space with the dimensions that they index."""
        for name in space.parameters:
            self._find((space.name, name))
        for use in uses:
            for d, parameter in enumerate(use.index):
                if parameter is not None:
                    a, b = self._find((f"[{use.data}]", d)), self._find((space.name, parameter))
                    self._parents[b] = a

    def order_of(self, space: IterationSpace) -> list[int]:
        """The parameters of a space as places, in the order of the program's dimensions."""
        ranks = self._ranks
        places = range(len(space.parameters))
        return sorted(places, key=lambda d: ranks[self._find((space.name, space.parameters[d]))])

    @functools.cached_property
    def _ranks(self) -> Mapping[Dimension, int]:
        found: dict[Dimension, int] = {}
        for key in list(self._parents):
            found.setdefault(self._find(key), len(found))
        return found


def offered(space: IterationSpace, own: Use, neighbour: Use, splits: Splits) -> Splits:
    """The axes of a neighbour for the parameters that index what it splits."""
    by_name = dict(zip(neighbour.space.parameters, splits, strict=True))
    found: dict[str, tuple[str, ...]] = {}
    for mine, theirs in zip(own.index, neighbour.index, strict=True):
        if mine is not None and theirs is not None and mine not in found:
            found[mine] = by_name[theirs]
    return tuple(found.get(name, ()) for name in space.parameters)


def possible(space: IterationSpace, mesh: Mesh, splits: Splits) -> bool:
    """Whether no axis splits twice, and no rank along it is idle."""
    axes = [axis for each in splits for axis in each]
    if len(set(axes)) < len(axes):
        return False
    sizes = dict(mesh.axes)
    parts = [math.prod(sizes[axis] for axis in each) for each in splits]
    return all(map(fills, divisible(space), parts))


def coarsened(mesh: Mesh, all_splits: Sequence[Splits]) -> tuple[Mesh, list[Splits]]:
    """The mesh with axes as one that all spaces use as one, and the splits on it."""
    axes = list(mesh.axes)
    splits = [list(map(list, each)) for each in all_splits]
    at = 0
    while at + 1 < len(axes):
        (major, m), (minor, n) = axes[at], axes[at + 1]
        if all(_go_together(major, minor, each) for each in splits):
            axes[at : at + 2] = [(major, m * n)]
            splits = [[[a for a in own if a != minor] for own in each] for each in splits]
        else:
            at += 1
    names = dict(zip((name for name, _ in axes), "xyzwvutsr", strict=False))
    renamed = [tuple(tuple(names[axis] for axis in own) for own in each) for each in splits]
    return Mesh.of(tuple((names[name], size) for name, size in axes)), renamed


def _go_together(major: str, minor: str, splits: Sequence[Sequence[str]]) -> bool:
    """Whether a space splits a parameter along both, the minor one just before, or along none."""
    for axes in splits:
        if minor in axes:
            at = axes.index(minor)
            return list(axes[at : at + 2]) == [minor, major]
        if major in axes:
            return False
    return True
