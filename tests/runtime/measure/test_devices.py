"""What exchanges between devices cost, measured and made up, and which transport that chooses."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.plan import Plan
from distspmd.runtime.devices import machine as device_machine
from distspmd.runtime.devices.machine import (
    LEAST_PORTION,
    DeviceMachine,
    most_messages,
    sent_bytes,
)
from distspmd.runtime.devices.transports import NODE_VARIABLE, TRANSPORTS, by_figures
from distspmd.runtime.measure.devices import measure


def plan(extent: int, ranks: int = 2) -> Plan:
    mesh, rows = Mesh(p=ranks), extent // ranks
    texts = f"[{rows}{{p}}{extent}, {8 * ranks}]", f"[{extent}, 8{{p}}{8 * ranks}]"
    return distspmd.plan(*(Layout.parse(text, mesh) for text in texts), np.dtype(float))


WAYS = {"pulls": (1e-5, 1e-9, 0.0), "nccl": (1e-4, 1e-10, 0.0), "staged": (5e-5, 1e-8, 1e-5)}


def test_small_and_large_moves_may_go_by_other_transports() -> None:
    figures = DeviceMachine(1e-12, 1e-11, 1e-11, WAYS)
    assert by_figures(figures, plan(4)) == ["pulls"], "NCCL is slower than staging there"
    assert by_figures(figures, plan(1 << 16)) == ["nccl", "pulls"]
    slow = DeviceMachine(1e-12, 1e-11, 1e-11, {**WAYS, "staged": (1e-6, 1e-12, 0.0)})
    assert by_figures(slow, plan(4)) == []


def test_many_messages_may_go_by_another_transport_than_one() -> None:
    ways = {"mpi": (1e-5, 1e-9, 0.0), "staged": (5e-6, 1e-9, 4e-6)}
    figures = DeviceMachine(1e-12, 1e-11, 1e-11, ways)
    assert most_messages(plan(8), 0) == 1
    assert by_figures(figures, plan(8)) == []
    assert most_messages(plan(8, 4), 0) == 3
    assert by_figures(figures, plan(8, 4)) == ["mpi"]


def test_ranks_of_several_nodes_have_figures_of_their_own() -> None:
    far = {"nccl": (1e-6, 1e-10, 0.0), "staged": (1e-5, 1e-9, 0.0)}
    figures = DeviceMachine(1e-12, 1e-11, 1e-11, WAYS, far=far)
    assert by_figures(figures, plan(4), several_nodes=True) == ["nccl"]


def test_pieces_are_larger_where_messages_cost_more_and_smaller_where_copies_do() -> None:
    large = plan(1 << 16)
    figures = DeviceMachine(1e-12, 2e-11, 2e-11, {"staged": (1e-5, 1e-10, 1e-6)})
    sent = sent_bytes(large, 0)
    assert sent == (1 << 15) * 8 * 8
    assert figures.portion(large) == int((sent * 1e-6 / 4e-11) ** 0.5)
    slow = replace(figures, to_host=2e-9)
    assert LEAST_PORTION <= slow.portion(large) < figures.portion(large)
    late = replace(figures, transports={"staged": (1e-5, 1e-10, 1e-5)})
    assert late.portion(large) > figures.portion(large)
    assert figures.portion(plan(4)) == LEAST_PORTION


def test_figures_are_kept_for_each_kind_and_between_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_machine, "measurements", lambda: tmp_path / "figures.json")
    assert DeviceMachine.measured("cuda") is None
    made = DeviceMachine(1.0, 2.0, 3.0, {"staged": [1.0, 2.0, 3.0]}, {"mpi": "blind"})
    made.store("cuda")
    assert DeviceMachine.measured("cuda") == made
    assert DeviceMachine.measured("emulated") is None
    far = DeviceMachine(1.0, 2.0, 3.0, far={"staged": [4.0, 5.0, 6.0]})
    far.store("cuda")
    assert DeviceMachine.measured("cuda") == replace(far, transports=made.transports)
    earlier = {"cuda": {"copy": 1, "to_host": 1, "to_device": 1, "transports": {"staged": [1, 2]}}}
    (tmp_path / "figures.json").write_text(json.dumps(earlier))
    assert DeviceMachine.measured("cuda") is None
    (tmp_path / "figures.json").write_text("{")
    assert DeviceMachine.measured("cuda") is None


@pytest.mark.slow
def test_ranks_measure_each_transport_or_say_why_not() -> None:
    found = measure("emulated")
    assert {*found.transports, *found.refused} == {*TRANSPORTS}
    assert min(found.copy, found.to_host, found.to_device) > 0
    assert {"pulls", "staged"} <= {*found.transports}


@pytest.mark.slow
def test_ranks_of_several_nodes_measure_what_goes_between_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(NODE_VARIABLE, "2")
    found = measure("emulated")
    assert not found.transports
    assert {"nccl", "staged"} <= {*found.far}
    assert found.refused["pulls"] == "the ranks are on several nodes"
