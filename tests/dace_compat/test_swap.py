"""SDFGs that have swapped their content are whole."""

from __future__ import annotations

import copy

import dace

from distspmd.dace_compat.swap import swap_content


@dace.program
def looped(x: dace.float64[8], y: dace.float64[4]):
    for t in range(3):
        if x[0] > t:
            x[:] = x + 1


def test_what_is_swapped_points_to_who_has_it_now() -> None:
    one, other = looped.to_sdfg(simplify=True), dace.SDFG("empty")
    other.add_state()
    arrays, names = set(one.arrays), copy.copy(one.name)
    swap_content(one, other)
    assert set(other.arrays) == arrays
    assert (other.name, one.name) == (names, "empty")
    for sdfg in (one, other):
        assert sdfg.sdfg is sdfg
        for region in sdfg.all_control_flow_regions():
            assert region.sdfg is sdfg
            assert all(block.sdfg is sdfg for block in region.nodes())
    other.validate()
