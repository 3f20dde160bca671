"""What is explained of a lowered program: its numbers, its reasons, and how it is shown.

That the ranks of a run receive the bytes that are explained is checked with every program of
`lowering.programs`, in `lowering.running`.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

import dace
import numpy as np
import pytest
from dace import SDFG
from dace.sdfg import nodes

import distspmd
from distspmd.analysis.loop_runs import times_exactly
from distspmd.errors import ScheduleError
from distspmd.explanation import Explanation
from distspmd.runtime.devices.kinds import DeviceBuild


@dace.program
def repeated(x: dace.float64[13, 8], y: dace.float64[13, 8]):
    for _ in range(5):
        for _ in range(2):
            y[:] = np.sin(x)
            x[:] = np.cos(y)


@dace.program
def undecided(x: dace.float64[4], n: dace.int64):
    for i in range(3):
        for j in range(i):
            x[j] = 1.0
    while n > 0:
        x[0] = 2.0
        n = n - 1
    if n == 0:
        x[0] = 3.0
    for i in range(3):
        if x[i] > 0:
            break
        x[i] = 4.0
    x[0] = 5.0


@dace.program
def product(a: dace.float32[10, 8], b: dace.float32[8, 6]):
    return a @ b


@pytest.fixture(scope="module")
def lowered() -> SDFG:
    sdfg = product.to_sdfg()
    return distspmd.lower(sdfg, {"_MatMult_": (2, 1, 2)}).sdfg


@pytest.fixture(scope="module")
def explained(lowered: SDFG) -> Explanation:
    return distspmd.explain(lowered)


def test_totals_are_those_of_the_plans(explained: Explanation) -> None:
    plans = [memlet.solution.plan for memlet in explained.lowering.memlets]
    assert explained.nbytes == sum(plan.received(rank) for plan in plans for rank in range(4))
    least = [plan.bound.received(rank) for plan in plans for rank in range(plan.ranks)]
    assert explained.least == sum(least)
    assert explained.nbytes == explained.least + 5 * 6 * 4  # rank 2 combines a tile for rank 0
    assert explained.peak == max(plan.peak(rank) for plan in plans for rank in range(plan.ranks))
    # tiles of a are 5 x 4, of b 4 x 6, and the result is reduced to rank 0
    assert explained.resident == 4 * (5 * 4 + 4 * 6 + 10 * 6)
    assert not explained.undetermined


def test_text_says_where_arrays_live_what_moves_and_why_so(explained: Explanation) -> None:
    said = str(explained)
    assert "│ a        │ float32 │ [5{__i0}10, 4{__i2}8]" in said
    assert re.search(r"0. a at test_explanation.py:\d+, float32, once", said)
    assert "root [10, 8] -> [5{__i0}10, 4{__i2}8]" in said
    assert "grid-mapped: scatter; 240 bytes received (at least 240)" in said
    assert "over exchange: exchange; 240 bytes" in said
    assert "over nothing: refused, the layouts differ" in said
    assert f"bytes received by all ranks                │ {explained.nbytes:,}" in said
    assert f"the fewest that any plans need             │ {explained.least:,}" in said


def test_jupyter_shows_the_same_as_html(explained: Explanation) -> None:
    page = explained._repr_html_()
    assert "<td>root [10, 8]</td><td>[5{__i0}10, 4{__i2}8]</td>" in page
    assert "nothing: refused, the layouts differ<br>" in page
    assert f"<td>{explained.nbytes:,}</td>" in page


def test_nodes_say_in_the_viewer_what_they_move(lowered: SDFG) -> None:
    described = json.dumps(lowered.to_json())
    label = "a: root [10, 8] -> [5{__i0}10, 4{__i2}8] (scatter, 240 bytes)"
    assert f'"label": {json.dumps(label)}' in described
    assert '"received_bytes": 240' in described


def test_a_lowering_an_sdfg_and_a_program_explain_the_same(lowered: SDFG) -> None:
    lowering = distspmd.explain(lowered).lowering
    assert str(distspmd.explain(lowering)) == str(distspmd.explain(lowered))


def test_what_is_not_lowered_has_nothing_to_explain() -> None:
    with pytest.raises(ScheduleError, match="SDFG is not lowered"):
        distspmd.explain(product.to_sdfg())


def test_loops_repeat_what_is_in_them() -> None:
    sdfg = repeated.to_sdfg()
    lowering = distspmd.lower(sdfg, {"y": (3, 1), "x": (1, 4)})
    explained = distspmd.explain(lowering)
    assert {memlet.times for memlet in lowering.memlets} == {1, 10}
    assert explained.nbytes == sum(m.times * m.solution.cost.nbytes for m in lowering.memlets)
    assert "float64, 10 times" in str(explained)


def test_homes_say_what_they_were_chosen_over_and_what_that_costs() -> None:
    lowering = distspmd.lower(repeated.to_sdfg(), {"y": (3, 1), "x": (1, 4)})
    (home,) = (home for home in lowering.homes if home.data == "x")
    # 832 bytes, written by columns and read by rows 10 times; what a rank copies counts half
    between = 10 * (832 - 26 * 8 / 2)
    assert home.traffic == 2 * (832 - 40 * 8 / 2) + between
    costs = {str(layout): traffic for layout, traffic in home.over}
    assert costs["[13, 2{__i1}8]"] == 2 * (832 - 26 * 8 / 2) + between
    assert home.traffic == min(home.traffic, *costs.values())
    said = str(distspmd.explain(lowering))
    assert re.search(r"│ x +│ \[5\{__i0\}13, 8\] │ \S+ +│ 8,624 +│ the home", said)
    assert re.search(r"│ +│ \[13, 2\{__i1\}8\] │ \S+ +│ 8,736 +│ 1.01 times the traffic", said)


def test_what_the_run_decides_is_said_to_be_so() -> None:
    sdfg = undecided.to_sdfg(simplify=False)
    written = {
        value[1]: times_exactly(state)
        for node, state in sdfg.all_nodes_recursive()
        if isinstance(node, nodes.Tasklet)
        and (value := re.search(r"= (\d\.0)", node.code.as_string))
    }
    assert written == {"1.0": 3, "2.0": None, "3.0": None, "4.0": None, "5.0": 1}

    lowering = distspmd.lower(product.to_sdfg(), {"_MatMult_": (2, 1, 2)})
    first, *rest = lowering.memlets
    lowering = replace(lowering, memlets=(replace(first, times=None), *rest))
    explained = distspmd.explain(lowering)
    assert explained.undetermined == lowering.memlets[:1]
    assert explained.nbytes == sum(memlet.solution.cost.nbytes for memlet in rest)
    assert "as often as the run decides" in str(explained)
    assert "and each time that the run decides on, bytes" in str(explained)


@dace.program
def folded_and_picked(x: dace.int64[12, 4], i: dace.int64[8], v: dace.float64[20]):
    y = np.zeros((4,), np.int64)
    for a, b in dace.map[0:12, 0:4]:
        with dace.tasklet:
            p << x[a, b]  # noqa: F821
            q >> y(1, lambda left, right: left * right + left + right)[b]  # noqa: F821
            q = p  # noqa: F821, F841
    return y, v[i], np.sum(x, axis=0)


@pytest.mark.parametrize("transport", ["pulls", "nccl", "staged"])
def test_of_a_device_each_node_and_each_movement_is_told(transport: str) -> None:
    schedule = {"__return_0.2": (4, 1), "__return_1": (4,), "__return_2": (1, 4)}
    lowering = distspmd.lower(folded_and_picked.to_sdfg(), schedule)
    assert lowering.fetches
    nodes_of_device = (
        ("x_1", "device", "an own kernel of elements"),
        ("solve", "host", "LAPACK has no device form"),
    )
    device = DeviceBuild("emulated", "", (), (), False, False, nodes_of_device)
    pieces = (65_536,) * len(lowering.memlets) if transport == "staged" else ()
    ways = (transport,) * len(lowering.memlets)
    explained = Explanation(lowering, device, "", ways, pieces)
    said = str(explained)
    for row in nodes_of_device:
        assert all(word in said for word in row)
    (*sentences, mirrors) = explained._staged
    assert mirrors.startswith("What is not is moved by way of mirrors")
    for memlet in (*lowering.memlets, *lowering.fetches):
        named = [one for one in sentences if re.search(rf"\b{memlet.data}\b", one)]
        assert named, f"nothing is said of {memlet.data}: {sentences}"
