"""What exchanges between devices cost, measured and made up, and which transport that chooses."""

import numpy as np
import pytest

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime import device_machine
from distspmd.runtime.device_machine import DeviceMachine
from distspmd.runtime.device_transports import TRANSPORTS, by_figures
from distspmd.runtime.measure_devices import measure


def plans(extent: int) -> list:
    mesh = Mesh(p=2)
    texts = f"[{extent // 2}{{p}}{extent}, 8]", f"[{extent}, 4{{p}}8]"
    return [distspmd.plan(*(Layout.parse(text, mesh) for text in texts), np.dtype(float))]


def test_small_and_large_moves_may_go_by_other_transports() -> None:
    ways = {"pulls": (1e-5, 1e-9), "nccl": (1e-4, 1e-10), "staged": (5e-5, 1e-8)}
    figures = DeviceMachine(1e-12, 1e-11, 1e-11, ways)
    assert by_figures(figures, plans(4)) == ["pulls"], "NCCL is slower than staging there"
    assert by_figures(figures, plans(1 << 16)) == ["nccl", "pulls"]
    slow = DeviceMachine(1e-12, 1e-11, 1e-11, {**ways, "staged": (1e-6, 1e-12)})
    assert by_figures(slow, plans(4)) == []


def test_figures_are_kept_for_each_kind(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_machine, "measurements", lambda: tmp_path / "figures.json")
    assert DeviceMachine.measured("cuda") is None
    made = DeviceMachine(1.0, 2.0, 3.0, {"staged": [1.0, 2.0]}, {"mpi": "blind"})
    made.store("cuda")
    assert DeviceMachine.measured("cuda") == made
    assert DeviceMachine.measured("emulated") is None
    (tmp_path / "figures.json").write_text("{")
    assert DeviceMachine.measured("cuda") is None


@pytest.mark.gpu
@pytest.mark.slow
def test_ranks_measure_each_transport_or_say_why_not() -> None:
    found = measure("emulated")
    assert {*found.transports, *found.refused} == {*TRANSPORTS}
    assert min(found.copy, found.to_host, found.to_device) > 0
    assert {"pulls", "staged"} <= {*found.transports}
