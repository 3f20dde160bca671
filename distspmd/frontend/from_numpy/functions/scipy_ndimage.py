"""``scipy.ndimage``: images between their elements, ranks of neighbours, and shapes of masks."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.functions.registry import function
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.library import image_places, ranks_of_neighbours

read_in_place(
    "scipy.ndimage",
    *(image_places.map_coordinates, image_places.zoom, image_places.shift, image_places.rotate),
    image_places.affine_transform,
)
read_in_place(
    "scipy.ndimage",
    *(ranks_of_neighbours.median_filter, ranks_of_neighbours.rank_filter),
    *(ranks_of_neighbours.percentile_filter, ranks_of_neighbours.generic_filter),
    *(ranks_of_neighbours.binary_erosion, ranks_of_neighbours.binary_dilation),
    *(ranks_of_neighbours.binary_opening, ranks_of_neighbours.binary_closing),
    ranks_of_neighbours.center_of_mass,
)


@function(image_places.filter_matrix)
def _filter_matrix(run: Any, n: Any, order: Any, mode: Any) -> Any:
    if not isinstance(n, int):
        run.tracer.refuse("splines of images of which the extents are not known before the run")
    return image_places.filter_matrix(n, order, mode)


@function(ranks_of_neighbours.window_of)
def _window_of(run: Any, size: Any, footprint: Any, count: Any) -> Any:
    return _of_known(run, ranks_of_neighbours.window_of, size, footprint, count)


@function(ranks_of_neighbours.structure_of)
def _structure_of(run: Any, structure: Any, count: Any, turned: Any) -> Any:
    return _of_known(run, ranks_of_neighbours.structure_of, structure, count, turned)


def _of_known(run: Any, python: Any, *given: Any) -> Any:
    """What a function gives of what is known before the run.

    Raises:
        Refusal: something is not.
    """
    if has_data(list(given)):
        run.tracer.refuse("a size, footprint or structure that is not known before the run")
    try:
        return python(*given)
    except NotImplementedError as problem:
        run.tracer.refuse(f"{problem}")


@function(image_places.exact_turn)
def _turn(run: Any, angle: Any) -> Any:
    if has_data(angle):
        return run.call(image_places.turn, [angle], {})
    return image_places.exact_turn(angle)
