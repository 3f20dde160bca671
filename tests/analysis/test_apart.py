"""Which code makes zeros of zeros, whatever else it reads."""

from __future__ import annotations

import dace
import pytest

import distspmd
from distspmd.analysis.apart import keeps_zero
from distspmd.nodes.contraction import add_contraction

SIGMOID = "sigmoid(_v0@float64)"
ZERO, ONE, OTHER = "0.0@float64", "1.0@float64", "_v1@float64"
CASES = {
    f"multiply(_v0@float64, {SIGMOID})": True,
    f"multiply({OTHER}, tanh(_v0@float64))": True,
    f"divide(_v0@float64, {OTHER})": True,
    f"divide({OTHER}, _v0@float64)": False,
    "divide(_v0@float64, _v0@float64)": False,
    "multiply(_v0@float64, log(_v0@float64))": False,
    f"multiply({OTHER}, {SIGMOID})": False,
    f"add(_v0@float64, {OTHER})": False,
    f"subtract(exp(_v0@float64), {ONE})": True,
    f"where(greater({OTHER}, {ZERO})@bool, _v0@float64, {ZERO})": True,
    f"where(greater({OTHER}, {ZERO})@bool, _v0@float64, {OTHER})": False,
    f"maximum(_v0@float64, {ZERO})": True,
    f"maximum(_v0@float64, {OTHER})": False,
    "": True,
}


@pytest.mark.parametrize(("expression", "keeps"), CASES.items())
def test_zero_is_kept_where_nothing_else_can_come_of_it(expression: str, keeps: bool) -> None:
    sdfg = dace.SDFG("of_two")
    for name in ("x", "z", "y"):
        sdfg.add_array(name, [6], dace.float64)
    state = sdfg.add_state()
    operands = [state.add_read("x"), state.add_read("z")]
    add_contraction(state, "of", "r,r->r", operands, state.add_write("y"), expression=expression)
    (space,) = distspmd.iteration_spaces(sdfg)
    assert keeps_zero(space, {"x"}) is keeps


def test_a_maximum_over_zeros_is_no_operand() -> None:
    sdfg = dace.SDFG("greatest")
    sdfg.add_array("x", [6, 3], dace.float64)
    sdfg.add_array("y", [6], dace.float64)
    state = sdfg.add_state()
    operands = [state.add_read("x")]
    add_contraction(state, "of", "rk->r", operands, state.add_write("y"), operation="max")
    (space,) = distspmd.iteration_spaces(sdfg)
    assert not keeps_zero(space, {"x"})
