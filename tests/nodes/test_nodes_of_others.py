"""Library nodes of others keep their implementation; analysis has their expansion, or is told."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Launch
from dace import SDFG, Memlet
from dace.sdfg import nodes

import distspmd
from distspmd.analysis import declared_accesses
from distspmd.errors import ScheduleWarning, UnsupportedProgram

sys.path.append(str(Path(__file__).parent.parent / "ranks"))
import nodes_of_others as others


@pytest.fixture(autouse=True)
def nothing_stated() -> Iterator[None]:
    before = dict(declared_accesses._stated)
    yield
    declared_accesses._stated.clear()
    declared_accesses._stated.update(before)


def kept(sdfg: SDFG) -> set[tuple[str, str | None]]:
    found = (n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, nodes.LibraryNode))
    return {
        (type(n).__name__, n.implementation) for n in found if declared_accesses.is_of_others(n)
    }


def grids(lowering: Any) -> dict[str, tuple[int, ...]]:
    return {space.name: space.parts for space in lowering.spaces}


def test_a_node_keeps_the_implementation_that_its_user_chose() -> None:
    sdfg = others.program(others.chosen("cpp"))
    lowering = distspmd.lower(sdfg, {"y": (2, 2)})
    assert kept(lowering.sdfg) == {("Plus", "cpp")}
    assert grids(lowering) == {"t": (2, 2), "y": (2, 2)}


@pytest.mark.parametrize("implementation", [None, "pure"])
def test_a_node_without_one_becomes_maps(implementation: str | None) -> None:
    sdfg = others.program(others.chosen(implementation))
    sdfg = distspmd.lower(sdfg, {"y": (2, 2)}).sdfg
    assert kept(sdfg) == set()


def test_a_node_that_nothing_is_known_of_runs_whole_and_that_is_said() -> None:
    sdfg = others.program(others.Shares())
    with pytest.warns(ScheduleWarning, match="'shares' .Shares. runs whole on each rank"):
        lowering = distspmd.lower(sdfg, {"y": (3, 1)})
    assert grids(lowering) == {"t": (1,), "y": (3, 1)}
    assert any("node_accesses(Shares)" in remark for remark in lowering.remarks)
    assert kept(lowering.sdfg) == {("Shares", None)}


def stated_as_sdfg(node: Any, shapes: Any) -> SDFG:
    sdfg = SDFG("rows")
    for connector in ("_x", "_y"):
        sdfg.add_array(connector, shapes[connector], others.dace.float64)
    rows, columns = shapes["_x"]
    read = {"a": Memlet(f"_x[r, 0:{columns}]")}
    written = {"b": Memlet(f"_y[r, 0:{columns}]")}
    state = sdfg.add_state()
    state.add_mapped_tasklet("m", {"r": f"0:{rows}"}, read, "b = 0", written, external_edges=True)
    return sdfg


@pytest.mark.parametrize("stated", [others.rows_apart, stated_as_sdfg])
def test_what_is_stated_of_a_node_lets_ranks_share_it(stated: Any) -> None:
    distspmd.analysis.node_accesses(others.Shares)(stated)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ScheduleWarning)
        lowering = distspmd.lower(others.program(others.Shares()), {"y": (3, 1)})
    assert grids(lowering) == {"t": (3,), "y": (3, 1)}


def test_a_reduction_that_is_stated_makes_partial_values() -> None:
    class Sum(others.Shares):
        pass

    def sums(node: Any, shapes: Any) -> Any:
        (count,) = shapes["_x"]
        add = {"_y": "lambda a, b: a + b"}
        return distspmd.analysis.NodeAccesses({"i": count}, {"_x": "i"}, {"_y": "0"}, add)

    distspmd.analysis.node_accesses(Sum)(sums)
    sdfg = SDFG("summed")
    for name, extent in (("x", 6), ("y", 1)):
        sdfg.add_array(name, [extent], others.dace.float64)
    state, node = sdfg.add_state(), Sum("sum")
    state.add_node(node)
    state.add_edge(state.add_read("x"), None, node, "_x", Memlet("x[0:6]"))
    state.add_edge(node, "_y", state.add_write("y"), None, Memlet("y[0]"))
    lowering = distspmd.lower(sdfg, {"y": (3,)})
    assert grids(lowering) == {"y": (3,)}
    assert any("reduce" in memlet.steps for memlet in lowering.memlets)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        (lambda n, s: "rows", "write NodeAccesses"),
        (
            lambda n, s: distspmd.analysis.NodeAccesses({"i": 7}, {"_x": "i, 0:5"}, {}),
            "does not name '_y'",
        ),
        (
            lambda n, s: distspmd.analysis.NodeAccesses({"i": 7}, {"_x": "i, 0:5"}, {"_z": "i"}),
            "no connector|does not name",
        ),
        (
            lambda n, s: distspmd.analysis.NodeAccesses({"i": 7}, {"_x": "i"}, {"_y": "i, 0:5"}),
            "has 1 indices for '_x'",
        ),
        (
            lambda n, s: distspmd.analysis.NodeAccesses(
                {"i": "n:"}, {"_x": "i, 0"}, {"_y": "i, 0:5"}
            ),
            "no map over its operands",
        ),
        (lambda n, s: SDFG("nothing"), "has no container '_x'"),
    ],
)
def test_what_is_stated_wrongly_is_refused(stated: Any, said: str) -> None:
    distspmd.analysis.node_accesses(others.Shares)(stated)
    with pytest.raises(UnsupportedProgram, match=said):
        distspmd.lower(others.program(others.Shares()), {})


def test_only_of_library_nodes_is_something_stated() -> None:
    with pytest.raises(UnsupportedProgram, match="no class of library nodes"):
        distspmd.analysis.node_accesses(SDFG)


def test_nodes_run_on_their_tiles_as_chosen(launch: Launch) -> None:
    assert "as chosen" in launch(Path(others.__file__), ranks=4).stdout
