"""Charts are SVG that a parser reads, with lines and bars where their numbers are."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from distspmd.charts import BOTTOM, HEIGHT, LEFT, TOP, Bars, Chart, Line, Scale, as_svg

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*charts: Chart | Bars) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(charts))


def paths(picture: ElementTree.Element, dashed: bool) -> list[str]:
    lines = [p for p in picture.iter(f"{SVG}path") if p.get("stroke-width") == "2"]
    found = [p.get("d") or "" for p in lines if ("stroke-dasharray" in p.attrib) is dashed]
    return [path for path in found if " h26" not in path]  # what stands in the legend


def test_lines_go_through_their_points_and_steps_hold_until_the_next() -> None:
    lines = (
        Line("a < b", ((0.0, 0.0), (10.0, 5.0))),
        Line("steps", ((0.0, 5.0), (10.0, 0.0)), 1, is_dashed=True, is_stepped=True),
    )
    picture = drawn(Chart("T & U", "x", "y", lines))
    ((x0, y0, x1, y1),) = [
        tuple(map(float, re.findall(r"[\d.]+", p))) for p in paths(picture, False)
    ]
    assert (x0, y0) == (LEFT, HEIGHT - BOTTOM)
    assert x1 > x0
    assert TOP < y1 < y0
    (steps,) = paths(picture, True)
    assert steps == f"M{x0:.1f},{y1:.1f}H{x1:.1f}V{y0:.1f}"
    assert {"a < b", "T & U", "x", "y"} <= {text.text for text in picture.iter(f"{SVG}text")}


@pytest.mark.parametrize(
    ("numbers", "base", "ticks"),
    [
        ([1, 4096], 4, [1, 4, 16, 64, 256, 1024, 4096]),
        ([0.002, 50], 10, [0.01, 0.1, 1, 10]),
        ([3, 47], 0, [0, 10, 20, 30, 40]),
        ([0], 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    ],
    ids=str,
)
def test_marks_are_powers_or_round_numbers(
    numbers: list[float], base: int, ticks: list[float]
) -> None:
    scale = Scale.over(numbers, base, 0, 100)
    assert scale.ticks() == pytest.approx(ticks)
    assert all(-1e-9 <= scale.at(tick) <= 100 + 1e-9 for tick in scale.ticks())


def test_an_axis_may_begin_near_its_least_number() -> None:
    scale = Scale.over([1.25, 1.3], 0, 0, 100, zero=False)
    assert scale.at(1.3) - scale.at(1.25) > 90
    assert all(1.24 < tick < 1.31 for tick in scale.ticks())


def test_bars_are_as_long_as_their_parts() -> None:
    picture = drawn(Bars("B", "s", ("work", "more"), (("one", (1.0, 3.0)), ("two", (2.0, 0.0)))))
    widths = [float(r.get("width") or 0) for r in picture.iter(f"{SVG}rect") if len(r)]
    assert widths == pytest.approx([widths[0], 3 * widths[0], 2 * widths[0], 0], abs=0.2)
    assert widths[0] > 10


def test_a_single_point_and_none_can_be_drawn() -> None:
    single = Chart("one", "x", "y", (Line("a", ((1.0, 1.0),)),), (2, 10))
    nothing = Chart("none", "x", "y", (Line("a", ()),))
    assert "nan" not in as_svg([single, nothing])
