"""Programs on emulated devices, as a user calls them."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import UNOPTIMISED, Launch

RANKS = Path(__file__).parents[1] / "ranks"


@pytest.fixture(autouse=True)
def quick_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in UNOPTIMISED.items():
        monkeypatch.setenv(name, value)


def test_programs_run_on_devices_and_mistakes_are_refused(launch: Launch) -> None:
    done = launch(RANKS / "on_device.py", ranks=2)
    assert "all is right on the device" in done.stdout


def test_programs_work_on_arrays_that_lie_in_the_memory_of_devices(launch: Launch) -> None:
    done = launch(RANKS / "device_arrays.py", ranks=2)
    assert "all is right" in done.stdout


def test_a_device_that_is_short_of_memory_is_an_error_on_all_ranks(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_EMULATED_BYTES", "1000000")
    done = launch(RANKS / "on_device.py", "short", ranks=2)
    assert "all is right on the device" in done.stdout
