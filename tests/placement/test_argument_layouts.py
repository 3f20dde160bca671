"""Where the caller holds arguments and results."""

from pathlib import Path

import dace
import pytest
from conftest import Launch

import distspmd
from distspmd.errors import ArgumentError, ScheduleError
from distspmd.layouts import Layout, Mesh

PROGRAM = Path(__file__).parents[1] / "ranks" / "holding.py"
STAYING = PROGRAM.with_name("staying.py")


SLOW = pytest.mark.slow


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=SLOW), pytest.param(3, marks=SLOW), 4])
def test_ranks_hold_what_they_were_asked_to(ranks: int, launch: Launch) -> None:
    assert "held as asked" in launch(PROGRAM, ranks=ranks).stdout


@pytest.mark.parametrize(
    ("ranks", "placements"),
    [
        (4, ["replicated", "distributed"]),
        pytest.param(4, ["states", "root"], marks=SLOW),
        pytest.param(1, ["replicated", "states", "distributed", "root"], marks=SLOW),
    ],
)
def test_parameters_and_states_stay_on_the_ranks(
    ranks: int, placements: list[str], launch: Launch
) -> None:
    assert "stayed" in launch(STAYING, *placements, ranks=ranks).stdout


def product(a: dace.float64[12, 5], b: dace.float64[5, 8]):
    return a @ b


@pytest.mark.parametrize("more", [(), pytest.param(("--all",), marks=SLOW)])
def test_ranks_hold_what_they_pass_and_get_in_the_layouts_that_are_given(
    more: tuple[str, ...], launch: Launch
) -> None:
    found = launch(PROGRAM.with_name("given_layouts.py"), *more, ranks=4)
    assert "in the layouts that were given" in found.stdout


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[3{x}12, 9]", r"a layout of \[12, 9\], but the program has \[12, 8\] of it"),
        ("[12, 8] + partial(sum){x}", r"a caller holds values.*Leave partial\(sum\)\{x\} out"),
        ("[6{x}12/3, 8]", r"whose tiles are no boxes\. Let the schedule deal the space"),
        ("boxes[12, 8]{0: 0:12, 0:4; 2: 0:11, 4:8}", "in which no rank has some of it"),
    ],
)
def test_layouts_that_do_not_fit_are_refused(text: str, message: str) -> None:
    layout = Layout.parse(text, Mesh(x=2) if "/3" in text else Mesh(x=4))
    with pytest.raises(ScheduleError, match=rf"arguments= wants '__return' in .*{message}"):
        distspmd.lower(product, {"__return": (4, 1, 1)}, arguments={"__return": layout})


def test_the_layout_of_a_result_is_in_schedules_and_their_files(tmp_path: Path) -> None:
    layout = Layout.parse("[12, 2{x}8]", Mesh(x=4))
    lowering = distspmd.lower(product, {"__return": (4, 1, 1)}, results=layout)
    lowering.schedule.save(tmp_path / "schedule.yaml")
    loaded = distspmd.Schedule.load(tmp_path / "schedule.yaml")
    assert loaded.arguments == {"__return": layout}
    assert distspmd.lower(product, loaded).argument_layouts == {"__return": layout}
    lowering.save(tmp_path / "product.lowered")
    assert distspmd.load(tmp_path / "product.lowered").argument_layouts == {"__return": layout}


def test_a_search_counts_what_a_layout_of_the_caller_costs() -> None:
    layout = Layout.parse("[12, 2{x}8]", Mesh(x=4))
    found = distspmd.lower(product, ranks=4, results=layout)
    told = distspmd.explain(found)
    assert found.ranks == 4
    assert found.argument_layouts == {"__return": layout}
    assert told.seconds <= distspmd.explain(distspmd.lower(product, {}, results=layout)).seconds
    with pytest.raises(ArgumentError, match="has layouts on 4 ranks, but ranks=2"):
        distspmd.lower(product, ranks=2, results=layout)
