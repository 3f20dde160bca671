"""All layouts of an array on a mesh, and how many there are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from distspmd.layouts.layout import Layout, Split
from distspmd.layouts.mesh import Mesh


def layouts(extents: Sequence[int], mesh: Mesh, several: bool = False) -> Iterator[Layout]:
    """All layouts of blocks: each axis splits one dimension or none.

    Args:
        extents: of the array.
        mesh: whose axes split it.
        several: whether several axes may split one dimension, in any order.
    """
    names = mesh.names
    for where in itertools.product(range(-1, len(extents)), repeat=len(names)):
        held = [
            [name for name, at in zip(names, where, strict=True) if at == dimension]
            for dimension in range(len(extents))
        ]
        if not several and any(len(axes) > 1 for axes in held):
            continue
        for order in itertools.product(*map(itertools.permutations, held)):
            splits = tuple(map(Split, extents, order))
            yield Layout(mesh, tuple(extents), splits=splits)


def count(axes: int, dimensions: int, several: bool = False) -> int:
    """How many layouts there are; see ``layouts``.

    With one axis for a dimension at most: ``sum over k of C(axes, k) C(dimensions, k) k!``.
    """
    if several:
        return sum(
            math.comb(axes, used) * math.perm(used + dimensions - 1, used)
            for used in range(axes + 1)
        )
    return sum(
        math.comb(axes, k) * math.comb(dimensions, k) * math.factorial(k)
        for k in range(min(axes, dimensions) + 1)
    )
