"""Spaces whose parts are dealt in blocks: what is folded for them, on paper and on ranks."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
from dace import float64 as f8
from hypothesis import given
from hypothesis import strategies as st
from lowering.on_paper import problems
from ranks.attention_by_hand import attention_step

import distspmd
from distspmd import Schedule
from distspmd.errors import ScheduleError
from distspmd.frontend import numpy_program
from distspmd.layouts import Cyclic, Mesh, cyclic
from distspmd.layouts.layout import Layout
from distspmd.passes.fold_indices import Fold
from distspmd.schedule import OnMesh

TILES = dict.fromkeys(("w", "wo"), "distributed")
WHOLE = dict.fromkeys(("x", "y"), "replicated")


def doubled_in_blocks(n: int) -> Any:
    """A vector that is made and read once."""

    def doubled(x: f8[n]):  # type: ignore[valid-type]
        y = 2 * x
        return y + 1

    return numpy_program(doubled)


@pytest.mark.parametrize(("heads", "ranks"), [(4, 4), (4, 2), (5, 2), (5, 4)])
def test_a_fused_projection_moves_nothing_in_a_training_step(heads, ranks):
    program = numpy_program(attention_step(6, heads, 3))
    block, e = -(-heads // ranks) * 3, heads * 3
    held = {**TILES, **WHOLE}
    lowering = distspmd.lower(
        copy.deepcopy(program),
        {"qkv": {"j": ("x", cyclic(block, e))}, "z_1": {"k": ("x", cyclic(block, e))}},
        mesh={"x": ranks},
        arguments=held,
    )
    assert list(problems(lowering)) == []
    sums = [m for m in lowering.memlets if m.solution.cost.nbytes]
    assert {m.data for m in sums} <= {"z_1"}  # summands of the output projection, all-reduced
    assert all(m.solution.plan.redistribution.source.partial for m in sums)
    assert not lowering.fetches
    homes = {home.data: home.layout for home in lowering.homes}
    assert homes["w"].extents == (e, 3, heads, 3)
    assert homes["w"].box(0) == ((0, e), (0, 3), (0, block // 3), (0, 3))
    again = distspmd.lower(copy.deepcopy(program), lowering.schedule, arguments=held)
    assert [h.layout for h in again.homes] == [h.layout for h in lowering.homes]
    assert [m.layouts for m in again.memlets] == [m.layouts for m in lowering.memlets]


def test_blocks_without_cyclic_move():
    plain = distspmd.lower(
        numpy_program(attention_step(6, 4, 3)),
        {"qkv": {"j": "x"}},
        mesh={"x": 4},
        arguments={**TILES, **WHOLE},
    )
    assert {m.data for m in plain.memlets if m.solution.cost.nbytes} > {"z_1"}


def test_dealt_tiles_are_the_blocks_of_a_part():
    lowering = distspmd.lower(
        doubled_in_blocks(24), {"y": {"__i0": ("x", cyclic(2))}}, mesh={"x": 3}
    )
    home = next(home.layout for home in lowering.homes if home.data == "y")
    held = np.arange(24).reshape(home.extents)
    for rank, box in enumerate(home.boxes):
        (low, high), (first, last), *inner = box
        own = held[low:high, first:last].ravel()
        assert own.tolist() == [i for i in range(24) if i // 2 % 3 == rank]
        assert inner == [(0, 2)] * len(inner)
    assert list(problems(lowering)) == []


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (cyclic(5), "in rounds of 15, but the space 'y' .* runs over 0:24, .* whole rounds"),
        (cyclic(3, 8), "over 3 parts, in rounds of 8"),
        (cyclic(7, 8), r"parts of 3, .* Write cyclic\(3, 8\)"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(asked, message):
    schedule = {"y": {"__i0": ("x", asked)}}
    if asked == cyclic(3, 8):  # 3, 3 and 2 of each round
        distspmd.lower(doubled_in_blocks(24), schedule, mesh={"x": 3})
        return
    with pytest.raises(ScheduleError, match=message):
        distspmd.lower(doubled_in_blocks(24), schedule, mesh={"x": 3})


def across(x: f8[24]):
    y = 2 * x
    return y[3:15] + 1


def of_strides(x: f8[24]):
    y = 2 * x
    return y[::2] + 1


def sorted_too(x: f8[24]):
    y = 2 * x
    return np.sort(y)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (across, r"the space '__return' .* reaches across rounds in y\[__i0 \+ 3\]"),
        (of_strides, r"reaches across rounds in y\[2\*__i0\]"),
        (sorted_too, r"the space .* Leave out cyclic\(\), or copy"),
    ],
)
def test_what_reaches_across_rounds_is_refused_with_its_line(function, message):
    with pytest.raises(ScheduleError, match=message):
        distspmd.lower(numpy_program(function), {"y": {"__i0": ("x", cyclic(2))}}, mesh={"x": 4})


def test_two_spaces_that_deal_one_array_in_two_ways_are_refused():
    schedule = {
        "y": {"__i0": ("x", cyclic(2))},
        "__return": {"__i0": ("x", cyclic(3))},
    }
    with pytest.raises(ScheduleError, match="in rounds of 12, which touches the same arrays"):
        distspmd.lower(doubled_in_blocks(24), schedule, mesh={"x": 4})
    schedule["__return"] = {"__i0": "x"}  # type: ignore[dict-item]
    with pytest.raises(ScheduleError, match=r"in even parts. Write cyclic\(2, 8\) beside its axes"):
        distspmd.lower(doubled_in_blocks(24), schedule, mesh={"x": 4})


def test_patterns_and_searches_deal_no_blocks():
    with pytest.raises(ScheduleError, match="deals blocks: only"):
        distspmd.lower(doubled_in_blocks(24), {"*": {"__i0": ("x", cyclic(2))}}, mesh={"x": 4})
    with pytest.raises(ScheduleError, match="a search deals no blocks"):
        distspmd.lower(
            doubled_in_blocks(24), {"y": {"__i0": ("x", cyclic(2))}}, mesh={"x": 4}, ranks=4
        )


@pytest.mark.parametrize("numbers", [(0,), (2.0,), (True,), (4, 3), ("2",)])
def test_numbers_that_deal_nothing_are_refused(numbers):
    with pytest.raises(ScheduleError, match="deals no blocks; write"):
        cyclic(*numbers)


def test_files_keep_blocks(tmp_path):
    mesh = Mesh(x=4)
    schedule = Schedule({"y": OnMesh(mesh, {"__i0": ("x", cyclic(2))})})
    schedule["__return"] = OnMesh(mesh, {"__i0": ("x", cyclic(2, 8))})
    schedule.save(tmp_path / "schedule.yaml")
    read = Schedule.load(tmp_path / "schedule.yaml")
    assert dict(read) == dict(schedule)
    assert "__i0: [x, cyclic(2)]" in (tmp_path / "schedule.yaml").read_text()
    lowering = distspmd.lower(doubled_in_blocks(24), tmp_path / "schedule.yaml")
    assert lowering.schedule["y"].split == {"__i0": ("x", Cyclic(2))}
    path = tmp_path / "wrong.yaml"
    text = (tmp_path / "schedule.yaml").read_text().replace("cyclic(2)", "cyclic(0)")
    path.write_text(text)
    with pytest.raises(ScheduleError, match=r"wrong.yaml:5: cyclic\(0\) deals no blocks"):
        Schedule.load(path)


@given(st.data())
def test_digits_are_those_of_each_value(data):
    unit, units = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    fold = Fold(unit * units, unit)
    names = data.draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True))
    values, index = {}, sympy.Integer(data.draw(st.integers(-5, 40)))
    for name in names:
        low = data.draw(st.integers(-2, 3))
        values[name] = low, low + data.draw(st.integers(0, 6))
        index += data.draw(st.sampled_from([1, 2, unit, fold.round, -unit])) * sympy.Symbol(name)
    digits = fold.digits(index, values)
    if digits is None:
        return
    for point in np.ndindex(*(high - low + 1 for low, high in values.values())):
        at = {n: values[n][0] + k for n, k in zip(values, point, strict=True)}
        found = [int(digit.subs(at)) for digit in digits]
        number = int(index.subs(at))
        assert sum(f * w for f, w in zip(found, fold.weights, strict=True)) == number
        assert [number // fold.round, number % fold.round // unit] == found[:2]


def test_digits_are_found_where_factors_tell_parameters_apart():
    h, d = sympy.symbols("h d")
    values = {"h": (0, 3), "d": (0, 2)}
    assert Fold(12, 3).digits(3 * h + d + 24, values) == (2, h, d)
    assert Fold(12, 3).digits(3 * h + d - 12, values) == (-1, h, d)
    assert Fold(12, 3).digits(3 * h + d + 1, values) is None  # a unit further where d is 2
    assert Fold(12, 1).digits(3 * h + d + 12, values) == (1, 3 * h + d)


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_dealt_steps_are_right_on_ranks(ranks, launch):
    launch(Path(__file__).parent.parent / "ranks" / "dealing.py", ranks=ranks)


def test_layouts_of_dealt_arguments_say_how_they_are_folded():
    lowering = distspmd.lower(
        doubled_in_blocks(24),
        {"y": {"__i0": ("x", cyclic(2))}},
        mesh={"x": 3},
        arguments={"x": "distributed"},
    )
    assert lowering.argument_layouts["x"] == Layout.parse("[4, 1{x}3, 2]", Mesh(x=3))
    assert lowering.call_form.shapes == {"x": (24,), "__return": (24,)}
