"""Random redistribution problems; the same number gives the same problem everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

import numpy as np

from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh
from distspmd.plans.redistribution import Redistribution

_NAMES = "wxyz"


def random_problem(
    seed: int, most_ranks: int = 4096, most_dimensions: int = 6, most_elements: int = 1 << 16
) -> Redistribution:
    """One of all problems on up to four axes of sizes 2 to 8, for up to six dimensions.

    Each axis replicates, or splits one dimension; both sides are drawn alike. A quarter of the
    problems is uneven, a quarter partial over axes that split nothing in the source.
    """
    draw = Random(seed)
    while True:
        sizes = [draw.randint(2, 8) for _ in range(draw.randint(1, 4))]
        if math.prod(sizes) <= most_ranks:
            break
    mesh = Mesh(**dict(zip(_NAMES, sizes, strict=False)))
    ndim = draw.randint(1, most_dimensions)
    axes, free = _assignment(draw, mesh, ndim)
    others, _ = _assignment(draw, mesh, ndim)
    extents = _extents(draw, mesh, (axes, others), most_elements)
    partial = None
    if free and draw.random() < 0.25:
        chosen = draw.sample(free, draw.randint(1, len(free)))
        partial = Partial(draw.choice(["sum", "max"]), tuple(chosen))
    source, target = (
        tuple(map(Split, extents, (tuple(names) for names in side))) for side in (axes, others)
    )
    return Redistribution(
        Layout(mesh, extents, splits=source, partial=partial),
        Layout(mesh, extents, splits=target),
        np.dtype(draw.choice(["float32", "float64", "int16"])),
    )


def _assignment(draw: Random, mesh: Mesh, ndim: int) -> tuple[list[list[str]], list[str]]:
    """Axes of each dimension in any order, and those that split none."""
    axes: list[list[str]] = [[] for _ in range(ndim)]
    free: list[str] = []
    for name in draw.sample(mesh.names, len(mesh.names)):
        at = draw.randint(0, ndim)
        (axes[at] if at < ndim else free).append(name)
    return axes, free


def _extents(
    draw: Random, mesh: Mesh, sides: Sequence[list[list[str]]], most_elements: int
) -> tuple[int, ...]:
    if draw.random() < 0.25:
        limit = max(2, int(most_elements ** (1 / len(sides[0]))))
        return tuple(draw.randint(1, min(50, limit)) for _ in sides[0])
    extents = [
        math.lcm(*(math.prod(mesh[name] for name in names) for names in pair))
        for pair in zip(*sides, strict=True)
    ]
    for at in range(len(extents)):
        factor = draw.choice([1, 2, 3, 4, 6])
        if math.prod(extents) * factor <= most_elements:
            extents[at] *= factor
    return tuple(extents)
