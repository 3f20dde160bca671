import pytest
from dace import SDFG, InterstateEdge, Memlet, float64
from dace.sdfg.state import LoopRegion

from distspmd.dace_compat.names import free_names


@pytest.mark.parametrize("extent", [8, "N"])
@pytest.mark.parametrize("code", ["o = a * k", "o = a * t"])
def test_free_names_are_those_that_dace_finds(extent: int | str, code: str) -> None:
    sdfg = SDFG("names")
    sdfg.add_array("x", [extent], float64)
    sdfg.add_array("unused", ["M" if extent == "N" else 3], float64)
    before = sdfg.add_state()
    loop = LoopRegion("loop", "t < n", "t", "t = 0", "t = t + 1")
    sdfg.add_node(loop)
    sdfg.add_edge(before, loop, InterstateEdge(assignments={"k": "m + 1"}))
    state = loop.add_state(is_start_block=True)
    memlets = {"a": Memlet("x[i + s]")}, {"o": Memlet("x[i]")}
    state.add_mapped_tasklet("map", {"i": "0:4"}, memlets[0], code, memlets[1], external_edges=True)
    assert free_names(sdfg) == set(map(str, sdfg.free_symbols))
    assert free_names(sdfg) >= {"m", "n", "s"}
