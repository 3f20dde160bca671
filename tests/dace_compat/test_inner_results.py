import dace
import numpy as np
import pytest
from dace import SDFG, Memlet, float64
from dace.sdfg.validation import InvalidSDFGError

from distspmd.dace_compat.inner_results import rename_inner_results


def nested() -> SDFG:
    """A program whose second result comes out of a nested SDFG under its own name."""
    inner = SDFG("inner")
    outer = SDFG("outer")
    for name in ("x", "__return_1"):
        inner.add_array(name, [4], float64)
    for name in ("x", "__return_0", "__return_1"):
        outer.add_array(name, [4], float64)
    memlets = {"a": Memlet("x[i]")}, {"b": Memlet("__return_1[i]")}
    inner.add_state().add_mapped_tasklet(
        "doubled", {"i": "0:4"}, memlets[0], "b = 2 * a", memlets[1], external_edges=True
    )
    state = outer.add_state()
    node = state.add_nested_sdfg(inner, {"x"}, {"__return_1"})
    state.add_edge(state.add_read("x"), None, node, "x", Memlet("x[0:4]"))
    state.add_edge(node, "__return_1", state.add_write("__return_1"), None, Memlet("__return_1"))
    memlets = {"a": Memlet("x[i]")}, {"b": Memlet("__return_0[i]")}
    state.add_mapped_tasklet(
        "copied", {"i": "0:4"}, memlets[0], "b = a", memlets[1], external_edges=True
    )
    return outer


def test_a_result_that_a_nested_sdfg_has_alone_is_no_result_of_it(unoptimised: None) -> None:
    sdfg = nested()
    with pytest.raises(InvalidSDFGError, match="not consecutively named"):
        sdfg.validate()
    rename_inner_results(sdfg)
    sdfg.validate()
    x = np.arange(4.0)
    with dace.config.set_temporary("cache", value="unique"):
        first, second = sdfg(x=x)
    assert np.array_equal(first, x)
    assert np.array_equal(second, 2 * x)
