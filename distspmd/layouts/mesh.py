"""Meshes: named axes with sizes, over the ranks 0, 1, ... in row-major order."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import MeshError

MOST_RANKS = 2**20
"""Of a mesh: more than any machine starts, and few enough to have a number for each."""

_DIGITS = 20
"""Of a size: more are no number of ranks."""

_AXIS = re.compile(r"[A-Za-z_]\w*\Z")


@dataclass(frozen=True, init=False)
class Mesh:
    """Named axes with sizes; the first axis is major.

    ``Mesh(x=4, y=6)`` has the ranks 0..23, rank ``6 * x + y`` at the coordinates ``(x, y)``.
    ``Mesh()`` has no axis and one rank.

    Raises:
        MeshError: a size below one, a name that is no identifier, or more than
            :data:`MOST_RANKS` ranks.
    """

    axes: tuple[tuple[str, int], ...]

    def __init__(self, /, **sizes: int) -> None:
        for name, size in sizes.items():
            if not _AXIS.match(name):
                raise MeshError(f"mesh axis {name!r}: not an identifier. Write a name such as 'x'.")
            if isinstance(size, bool) or not isinstance(size, int) or size < 1:
                raise MeshError(
                    f"mesh axis {name!r} has size {size!r}; a size is an integer of at least 1."
                )
        if math.prod(sizes.values()) > MOST_RANKS:
            raise MeshError(
                f"the mesh {','.join(f'{name}={size}' for name, size in sizes.items())} has more "
                f"than {MOST_RANKS:,} ranks."
            )
        object.__setattr__(self, "axes", tuple(sizes.items()))

    @classmethod
    def of(cls, sizes: Mapping[str, int] | tuple[tuple[str, int], ...]) -> Mesh:
        """Mesh from names and sizes in order.

        Raises:
            MeshError: no names and sizes.
        """
        try:
            named = dict(sizes)
        except (TypeError, ValueError):
            raise MeshError(f"mesh {sizes!r}: write a mapping of names to sizes.") from None
        for name in named:
            if not isinstance(name, str):
                raise MeshError(f"mesh axis {name!r}: not an identifier. Write a name such as 'x'.")
        return cls(**named)

    @classmethod
    def parse(cls, text: str) -> Mesh:
        """Read ``"x=4,y=6"``; the inverse of ``str``.

        Raises:
            MeshError: not of the form, or no mesh.
        """
        if not isinstance(text, str):
            raise MeshError(f"mesh {text!r} is no text. Write x=4,y=6.")
        sizes: dict[str, int] = {}
        for item in filter(None, (part.strip() for part in text.split(","))):
            name, equals, size = item.partition("=")
            if not equals or not size.strip().isdecimal() or len(size) > _DIGITS:
                raise MeshError(f"mesh {text!r}: {item!r} is not name=size. Write x=4,y=6.")
            if name.strip() in sizes:
                raise MeshError(f"mesh {text!r} names axis {name.strip()!r} twice.")
            sizes[name.strip()] = int(size)
        return cls(**sizes)

    def __str__(self) -> str:
        return ",".join(f"{name}={size}" for name, size in self.axes)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.axes)

    def __getstate__(self) -> dict[str, object]:
        return {"axes": self.axes}  # hashes of text differ between processes

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the axes, major first."""
        return tuple(name for name, _ in self.axes)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes, major first."""
        return tuple(size for _, size in self.axes)

    @cached_property
    def size(self) -> int:
        """Number of ranks."""
        return math.prod(self.shape)

    def __getitem__(self, name: str) -> int:
        for axis, size in self.axes:
            if axis == name:
                return size
        raise MeshError(f"no axis {name!r} in the mesh {self}; it has {', '.join(self.names)}.")

    def coordinates(self, rank: int) -> dict[str, int]:
        """Coordinate of a rank on each axis.

        Raises:
            MeshError: the mesh has no such rank.
        """
        if not 0 <= rank < self.size:
            raise MeshError(f"no rank {rank} in the mesh {self}, which has {self.size}.")
        found: dict[str, int] = {}
        for name, size in reversed(self.axes):
            rank, found[name] = divmod(rank, size)
        return {name: found[name] for name in self.names}

    def rank(self, coordinates: Mapping[str, int]) -> int:
        """Rank at the coordinates."""
        rank = 0
        for name, size in self.axes:
            rank = rank * size + coordinates[name]
        return rank

    @cached_property
    def grid(self) -> dict[str, NDArray[np.int64]]:
        """Coordinate of every rank on each axis."""
        places = np.indices(self.shape, dtype=np.int64).reshape(len(self.axes), self.size)
        return dict(zip(self.names, places, strict=True))

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.size))
