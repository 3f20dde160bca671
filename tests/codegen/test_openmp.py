"""How threads share maps: the time that it takes to find out."""

from __future__ import annotations

from typing import Any

import pytest
from dace import SDFG, Memlet, dtypes

from distspmd.codegen.openmp import keep_apart


def sums(count: int) -> SDFG:
    """Maps that add up rows, one behind the other."""
    sdfg = SDFG("sums")
    sdfg.add_array("x", [300, 4], dtypes.float64)
    state = sdfg.add_state()
    for number in range(count):
        sdfg.add_array(f"y{number}", [300], dtypes.float64)
        state.add_mapped_tasklet(
            f"sum{number}",
            {"i": "0:300", "j": "0:4"},
            {"a": Memlet("x[i, j]")},
            "b = a",
            {"b": Memlet(f"y{number}[i]", wcr="lambda p, q: p + q")},
            external_edges=True,
        )
    return sdfg


def test_symbols_of_a_program_are_asked_for_once_however_many_maps_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    plain: Any = SDFG.free_symbols

    def counted(sdfg: SDFG) -> Any:
        asked.append(sdfg)
        return plain.fget(sdfg)

    monkeypatch.setattr(SDFG, "free_symbols", property(counted))
    sdfg = sums(20)
    keep_apart(sdfg)
    assert len(asked) == 1
    written = [e.data for e in sdfg.start_state.edges() if e.data.wcr and e.data.data]
    assert any(memlet.wcr_nonatomic for memlet in written)
