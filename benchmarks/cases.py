"""The redistributions that are measured: layouts on 2, 4 or 8 ranks, scaled to a size in bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np

from distspmd.layouts import Layout, Mesh, intervals
from distspmd.layouts.layout import Partial, Split

Axes = tuple[str, ...]  # of one dimension, minor first
ITEMSIZE = 4  # float32
MEGABYTE = 2**20


@dataclass(frozen=True)
class Case:
    """An array goes through layouts, from the first to the last."""

    name: str
    layouts: tuple[Layout, ...]

    @property
    def hops(self) -> list[tuple[Layout, Layout]]:
        return list(pairwise(self.layouts))

    @property
    def megabytes(self) -> float:
        return math.prod(self.layouts[0].extents) * ITEMSIZE / MEGABYTE

    @property
    def partial(self) -> bool:
        return self.layouts[0].partial is not None


def cases(ranks: int, megabytes: float) -> Iterator[Case]:
    """The named cases."""
    line = Mesh(x=ranks)
    n, uneven = _square(megabytes, ranks), math.sqrt(megabytes * MEGABYTE / ITEMSIZE / 1001 / 997)
    rows, columns, every = (("x",), ()), ((), ("x",)), ((), ())
    odd = (int(1001 * uneven) | 1, int(997 * uneven) | 1)

    def on_line(name: str, *sides: tuple[Axes, ...], partial: bool = False) -> Case:
        return _case(name, line, (n, n), sides, partial)

    yield on_line("row to column", rows, columns)
    yield on_line("column to row", columns, rows)
    yield _case("uneven", line, odd, (rows, columns))
    yield on_line("split to replicated", rows, every)
    yield on_line("replicated to split", every, rows)
    yield on_line("partial to split", every, rows, partial=True)
    yield on_line("partial to replicated", every, every, partial=True)
    if ranks < 4:
        return
    mesh = Mesh(x=ranks // 2, y=2)
    yield _case("mesh swap", mesh, (n, n), ((("x",), ("y",)), (("y",), ("x",))))
    pencils = (((), ("x",), ("y",)), (("x",), (), ("y",)), (("x",), ("y",), ()))
    yield _case("pencils x-y-z", mesh, _scaled((512, 512, 256), megabytes, ranks), pencils)
    if ranks == 8:
        yield from _of_the_paper(megabytes)


def _of_the_paper(megabytes: float) -> Iterator[Case]:
    """The problems of figure 13, minor axes first; smaller only where less is asked for."""
    mesh = Mesh(a=2, b=2, c=2)
    c, a, b, ca, bc = ("c",), ("a",), ("b",), ("c", "a"), ("b", "c")
    problems = [
        ("P1", (360, 368, 320), ((), c, ()), (ca, (), b)),
        ("P2", (80, 80, 72, 64), ((), c, (), ()), (b, (), c, ())),
        ("P3", (296, 360, 312), ((), (), c), (bc, a, ())),
        ("P4", (16,) * 6, (c, (), (), a, (), b), ((), (), (), (), (), a)),
    ]
    for name, extents, source, target in problems:
        size = math.prod(extents) * ITEMSIZE / MEGABYTE
        held = extents if megabytes >= 64 else _scaled(extents, min(size, megabytes), 4)
        yield _case(name, mesh, held, (source, target))


def sample(count: int, megabytes: float, seed: int = 2021) -> Iterator[Case]:
    """The paper's random problems: 3 axes of 2 ranks, 2 to 6 dimensions, 1 to 4 times the size.

    Each axis splits one dimension, or none.
    """
    draw, mesh = Random(seed), Mesh(a=2, b=2, c=2)
    found = 0
    while found < count:
        ndim = draw.randint(2, 6)
        size = draw.uniform(1, 4) * megabytes
        sides = tuple(_assigned(draw, mesh, ndim) for _ in range(2))
        if sides[0] == sides[1]:
            continue
        weights = tuple(draw.uniform(0.5, 2) for _ in range(ndim))
        yield _case(f"sample {found}", mesh, _scaled(weights, size, 8), sides)
        found += 1


def _assigned(draw: Random, mesh: Mesh, ndim: int) -> tuple[Axes, ...]:
    axes: list[list[str]] = [[] for _ in range(ndim)]
    for name in draw.sample(mesh.names, len(mesh.names)):
        at = draw.randint(0, ndim)
        if at < ndim:
            axes[at].append(name)
    return tuple(map(tuple, axes))


def _case(
    name: str,
    mesh: Mesh,
    extents: tuple[int, ...],
    sides: tuple[tuple[Axes, ...], ...],
    partial: bool = False,
) -> Case:
    layouts = [Layout(mesh, extents, splits=tuple(map(Split, extents, side))) for side in sides]
    if partial:
        operands = Partial("sum", mesh.names)
        layouts[0] = Layout(mesh, extents, splits=layouts[0].splits, partial=operands)
    return Case(name, tuple(layouts))


def _square(megabytes: float, ranks: int) -> int:
    return _scaled((1, 1), megabytes, ranks)[0]


def _scaled(extents: tuple[float, ...], megabytes: float, multiple: int) -> tuple[int, ...]:
    """Extents in these proportions, multiples of a number, of about a size."""
    wanted = megabytes * MEGABYTE / ITEMSIZE / math.prod(extents)
    factor = wanted ** (1 / len(extents))
    return tuple(multiple * max(1, round(e * factor / multiple)) for e in extents)


def values(box: intervals.Box, factor: float = 1) -> np.ndarray:
    """What the array holds in a box: small whole numbers that differ between neighbours."""
    found = np.zeros(intervals.shape(box), np.float32)
    for d, (lo, hi) in enumerate(box):
        shape = [1] * len(box)
        shape[d] = max(hi - lo, 0)
        found += (np.arange(lo, max(lo, hi), dtype=np.float32) * (2 * d + 1)).reshape(shape)
    found *= np.float32(factor)
    return found


def operand(layout: Layout, rank: int) -> np.ndarray:
    """A rank's tile of the array: values, or its operand of their sum."""
    return values(layout.box(rank), rank + 1 if layout.partial else 1)


def factor(case: Case) -> int:
    """By how much the sum of the operands exceeds the values."""
    ranks = case.layouts[0].ranks
    return ranks * (ranks + 1) // 2 if case.partial else 1
