"""Layouts in the notations of other systems: mesh axes by number, partition specs, and placements.

============  =============================  ==========================================
distspmd      ``[6{x}12, 2{z,y}12]``         the axes of a dimension, minor first
mesh axes     ``[[0], [1, 2]]``              MLIR's meshes: by number, major first
spec          ``("x", ("y", "z"))``          JAX's PartitionSpec: by name, major first
placements    ``("S(0)", "S(1)", "S(1)")``   DTensor's: what each axis does
============  =============================  ==========================================

All of them have tiles of ``ceil(extent / parts)``.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Sequence

from distspmd.errors import LayoutError, refuses_as
from distspmd.layouts.layout import Layout, Partial, Split
from distspmd.layouts.mesh import Mesh

Spec = tuple[str | tuple[str, ...] | None, ...]


@refuses_as(LayoutError)
def from_mesh_axes(
    axes: str | Sequence[Sequence[int]], extents: Sequence[int], mesh: Mesh
) -> Layout:
    """Read ``[[0], [1, 2]]``; dimensions that are left out are not split.

    Raises:
        LayoutError: no such text, an axis that the mesh lacks, or more dimensions than the array.
    """
    try:
        held = json.loads(axes) if isinstance(axes, str) else axes
        numbers = [[operator.index(axis) for axis in dimension] for dimension in held]
    except (TypeError, ValueError, RecursionError):
        raise LayoutError(
            f"mesh axes {axes!r}: write a list for each dimension, [[0], [1, 2]]."
        ) from None
    for axis in (axis for dimension in numbers for axis in dimension):
        if not 0 <= axis < len(mesh.names):
            raise LayoutError(
                f"mesh axes {axes!r}: there is no axis {axis} in the mesh {mesh}, which has "
                f"{len(mesh.names)}."
            )
    names = [tuple(mesh.names[axis] for axis in dimension) for dimension in numbers]
    return _of_names(names, extents, mesh, f"mesh axes {axes!r}")


@refuses_as(LayoutError)
def mesh_axes(layout: Layout) -> list[list[int]]:
    """Write ``[[0], [1, 2]]``.

    Raises:
        LayoutError: the layout is partial, or no product of blocks.
    """
    numbers = {name: number for number, name in enumerate(layout.mesh.names)}
    return [[numbers[name] for name in names] for names in _names(layout)]


@refuses_as(LayoutError)
def from_spec(
    spec: Sequence[str | Sequence[str] | None], extents: Sequence[int], mesh: Mesh
) -> Layout:
    """Read ``("x", None, ("y", "z"))``; dimensions that are left out are not split.

    Raises:
        LayoutError: an axis that the mesh lacks, or more dimensions than the array has.
    """
    names = [
        () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
        for entry in spec
    ]
    return _of_names(names, extents, mesh, f"partition spec {tuple(spec)!r}")


@refuses_as(LayoutError)
def spec(layout: Layout) -> Spec:
    """Write ``("x", None, ("y", "z"))``, an entry for each dimension.

    Raises:
        LayoutError: the layout is partial, or no product of blocks.
    """
    return tuple(
        None if not names else names[0] if len(names) == 1 else names for names in _names(layout)
    )


_PLACEMENT = re.compile(
    r"(?:(?P<shard>S|Shard)\((?:dim=)?(?P<dim>-?\d+)\)|(?P<replicate>R|Replicate\(\))|"
    r"(?:P|Partial)(?:\((?:reduce_op=)?(?P<op>\w*)\))?)\Z"
)


@refuses_as(LayoutError)
def from_placements(placements: Sequence[object], extents: Sequence[int], mesh: Mesh) -> Layout:
    """Read ``("S(0)", "R", "P(sum)")``, one for each mesh axis, or DTensor's own objects.

    Axes that split one dimension cut it in the order of the mesh, the first axis major.

    Raises:
        LayoutError: not one placement for each axis, a dimension that the array lacks, or tiles
            that DTensor cuts otherwise.
    """
    if len(placements) != len(mesh.names):
        raise LayoutError(
            f"{len(placements)} placements for the {len(mesh.names)} axes of the mesh {mesh}."
        )
    names: list[list[str]] = [[] for _ in extents]
    partial: dict[str, list[str]] = {}
    for axis, placement in zip(mesh.names, placements, strict=True):
        match = _PLACEMENT.match(str(placement))
        if not match:
            raise LayoutError(f"placement {placement!r}: write S(0), R or P(sum).")
        if match["shard"]:
            at = int(match["dim"])
            if not -len(extents) <= at < len(extents):
                raise LayoutError(
                    f"placement {placement!r}: the array has {len(extents)} dimensions."
                )
            names[at].append(axis)
        elif not match["replicate"]:
            partial.setdefault(match["op"] or "sum", []).append(axis)
    if len(partial) > 1:
        raise LayoutError(f"placements {placements!r} are partial with two reductions.")
    layout = _of_names([tuple(held) for held in names], extents, mesh, f"placements {placements!r}")
    _check_chunks(layout)
    if not partial:
        return layout
    ((operation, axes),) = partial.items()
    return Layout(
        mesh, tuple(extents), splits=layout.splits, partial=Partial(operation, tuple(axes))
    )


@refuses_as(LayoutError)
def placements(layout: Layout) -> tuple[str, ...]:
    """Write ``("S(0)", "R", "P(sum)")``.

    Raises:
        LayoutError: axes in another order than that of the mesh, tiles that DTensor cuts
            otherwise, or no product of blocks.
    """
    _check_chunks(layout)
    held = dict.fromkeys(layout.mesh.names, "R")
    for at, names in enumerate(_names(layout, partial=True)):
        if sorted(names, key=layout.mesh.names.index) != list(names):
            raise LayoutError(f"{layout}: placements have only the axis order of the mesh.")
        held.update(dict.fromkeys(names, f"S({at})"))
    if layout.partial:
        used = [axis for axis, what in held.items() if what == "R"]
        axes = used if layout.partial.axes is None else layout.partial.axes
        held.update(dict.fromkeys(axes, f"P({layout.partial.reduction})"))
    return tuple(held.values())


def _check_chunks(layout: Layout) -> None:
    """Refuse what DTensor cuts otherwise: it chunks the chunks of the axis before."""
    for at, split in enumerate(layout.splits or ()):
        extent, parts = split.extent, split.parts(layout.mesh)
        for axis in reversed(split.axes[1:]):
            extent, parts = -(-extent // layout.mesh[axis]), parts // layout.mesh[axis]
            if extent != parts * split.tile(layout.mesh):
                raise LayoutError(
                    f"{layout}: placements split dimension {at} axis by axis, into other tiles."
                )


def _of_names(
    names: Sequence[tuple[str, ...]], extents: Sequence[int], mesh: Mesh, what: str
) -> Layout:
    """The layout of axes by name, major first."""
    if len(names) > len(extents):
        raise LayoutError(f"{what}: {len(names)} dimensions, but the array has {len(extents)}.")
    padded = [*names, *[()] * (len(extents) - len(names))]
    splits = tuple(
        Split(extent, tuple(reversed(axes))) for extent, axes in zip(extents, padded, strict=True)
    )
    return Layout(mesh, tuple(extents), splits=splits)


def _names(layout: Layout, partial: bool = False) -> list[tuple[str, ...]]:
    """Axes of each dimension by name, major first."""
    if not layout.is_blocks or layout.splits is None:
        raise LayoutError(
            f"{layout} is not a product of blocks; only its own notation can express it."
        )
    if layout.partial and not partial:
        raise LayoutError(f"{layout} is partial; write it as placements, or in its own notation.")
    return [tuple(reversed(split.axes)) for split in layout.splits]
