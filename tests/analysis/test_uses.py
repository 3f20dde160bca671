"""Which values of its tile a use needs, and on which tiles it works."""

from typing import Any

import dace
import pytest
from strategies import tiling_on_grid

from distspmd.analysis.constraints import uses
from distspmd.analysis.iteration_spaces import spaces_of
from distspmd.analysis.uses import Read, Update, Use, Write
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh

MESH = Mesh(i=2)
TILES, ALL = Layout.parse("[4{i}8]", MESH), Layout.parse("[8]", MESH)
OPERANDS = Layout.parse("[8] + partial(sum)", MESH)


def made(kind: Any, layout: Layout, **options: Any) -> Any:
    return kind(None, "x", layout, (), **options)


@pytest.mark.parametrize(
    ("use", "needed"),
    [
        (made(Read, TILES), True),
        (made(Read, OPERANDS), True),
        (made(Write, TILES), False),
        (made(Write, TILES, exact=False), True),
        (made(Write, TILES, accumulates=True), True),
        (made(Write, OPERANDS, accumulates=True), False),
        (made(Update, TILES, works_on=ALL), True),
    ],
)
def test_what_is_replaced_is_not_needed(use: Use, needed: bool) -> None:
    assert use.needs_values == needed


def test_an_update_works_on_the_tiles_of_its_body_and_writes_its_own() -> None:
    update = made(Update, TILES, works_on=ALL)
    assert (update.layout, update.tiles, update.needs) == (TILES, ALL, (ALL,))


def test_a_read_needs_its_parts_where_they_are_less_than_its_box() -> None:
    assert made(Read, ALL).needs == (ALL,)
    assert made(Read, ALL, parts=(TILES,)).needs == (TILES,)


def test_what_data_decide_is_asked_for_and_what_loops_choose_only_if_it_changes() -> None:
    whole = made(Read, ALL)
    data, loops = (made(Read, ALL, inspection=object(), approximate=d) for d in ((0,), ()))
    asked = [[use.is_asked_for(written) for written in (False, True)] for use in (data, loops)]
    assert asked == [[True, True], [False, True]]
    assert not whole.is_asked_for(True)


def test_what_a_nested_program_reads_and_writes_is_one_update() -> None:
    @dace.program
    def powers(x: dace.float64[8], y: dace.float64[8]):
        for i in dace.map[0:8]:
            for _ in range(3):
                x[i] = x[i] * y[i]

    (space,) = spaces_of(powers.to_sdfg())
    found = {
        use.data: use for use in uses(space, tiling_on_grid(space.parameters, space.ranges, (2,)))
    }
    assert isinstance(found["x"], Update)
    assert str(found["x"].works_on) == "[4{i}8]"
    assert isinstance(found["y"], Read)
