"""Programs on emulated devices, as a user calls them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import UNOPTIMISED, Launch

from distspmd.runtime.devices import kinds as devices
from distspmd.runtime.devices.transports import VARIABLE as TRANSPORT

RANKS = Path(__file__).parents[1] / "ranks"


@pytest.fixture(autouse=True)
def quick_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in UNOPTIMISED.items():
        monkeypatch.setenv(name, value)


@pytest.mark.gpu
@pytest.mark.parametrize("ranks", [2])
def test_programs_run_on_devices_and_mistakes_are_refused(launch: Launch, ranks: int) -> None:
    done = launch(RANKS / "on_device.py", ranks=ranks)
    assert "all is right on the device" in done.stdout


@pytest.mark.gpu(ranks=2)
def test_programs_work_on_arrays_that_lie_in_the_memory_of_devices(launch: Launch) -> None:
    done = launch(RANKS / "device_arrays.py", ranks=2)
    assert "all is right" in done.stdout


@pytest.mark.parametrize("ranks", [2, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 3))])
def test_arrays_of_other_libraries_are_taken_as_these_hand_them_out(
    launch: Launch, ranks: int
) -> None:
    done = launch(RANKS / "device_protocols.py", ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "how"),
    [(2, ()), *(pytest.param(n, ("all",), marks=pytest.mark.slow) for n in (1, 3))],
)
def test_what_the_run_decides_of_results_is_right_on_devices(
    launch: Launch, ranks: int, how: tuple[str, ...]
) -> None:
    done = launch(RANKS / "device_returns.py", *how, ranks=ranks)
    assert "all is right" in done.stdout


def test_a_device_that_is_short_of_memory_is_an_error_on_all_ranks(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTSPMD_EMULATED_BYTES", "1000000")
    done = launch(RANKS / "on_device.py", "short", ranks=2)
    assert "all is right on the device" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "how"),
    [(3, ()), *(pytest.param(n, ("all",), marks=pytest.mark.slow) for n in (1, 2))],
)
def test_products_are_computed_by_the_library_of_the_device(
    launch: Launch, ranks: int, how: tuple[str, ...]
) -> None:
    done = launch(RANKS / "device_products.py", *how, ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "how"),
    [(2, ()), *(pytest.param(n, ("all",), marks=pytest.mark.slow) for n in (1, 4))],
)
def test_reductions_are_kernels_of_many_threads_with_the_same_bits_each_time(
    launch: Launch, ranks: int, how: tuple[str, ...]
) -> None:
    done = launch(RANKS / "device_reductions.py", *how, ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("ranks", "how"),
    [(3, ()), *(pytest.param(n, ("all",), marks=pytest.mark.slow) for n in (1, 3, 4))],
)
def test_maps_and_chains_over_rows_are_kernels_of_our_own(
    launch: Launch, ranks: int, how: tuple[str, ...]
) -> None:
    done = launch(RANKS / "device_kernels.py", *how, ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_mechanisms_of_programs_are_right_on_devices(launch: Launch, ranks: int) -> None:
    """Functions of the program, gradients, fetches, residuals, symbolic sizes, idle ranks."""
    done = launch(RANKS / "device_mechanisms.py", ranks=ranks, timeout=900)
    assert "all is right" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("calls", [0, 1])
def test_a_library_of_products_that_fails_is_an_error_on_all_ranks(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setenv("DISTSPMD_EMULATED_PRODUCTS", str(calls))
    done = launch(RANKS / "device_products.py", ranks=2, check=False)
    if calls == 0:
        assert "all is right" in done.stdout
        return
    assert "the first call is right" in done.stdout
    assert done.returncode != 0
    assert "the device says: a product: the function failed to launch" in done.stderr


def test_the_device_of_a_process_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    first = devices.device_of_process(devices.KINDS["emulated"])
    monkeypatch.setattr(devices, "build_device_library", lambda kind: pytest.fail("asked again"))
    assert devices.device_of_process(devices.KINDS["emulated"]) is first


@pytest.mark.parametrize(
    ("ranks", "transport"),
    [(2, "pulls"), *(pytest.param(n, "nccl", marks=pytest.mark.slow) for n in (1, 3))],
)
def test_what_is_kept_of_the_memory_is_freed_for_transports(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, ranks: int, transport: str
) -> None:
    monkeypatch.setenv(TRANSPORT, transport)
    done = launch(RANKS / "device_room.py", ranks=ranks)
    assert "all is right" in done.stdout


@pytest.mark.parametrize(
    ("failure", "transport"),
    [
        ("launch:2", "staged"),
        *(
            pytest.param(f"{kind}:{count}", way, marks=pytest.mark.slow)
            for kind, counts in (("launch", (1, 4, 7)), ("kernel", (1, 4, 7)))
            for count in counts
            for way in ("staged", "nccl", "pulls")
        ),
    ],
)
def test_a_call_of_the_device_that_fails_on_one_rank_ends_all(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, failure: str, transport: str
) -> None:
    monkeypatch.setenv(TRANSPORT, transport)
    done = launch(RANKS / "device_failures.py", failure, ranks=2, check=False, timeout=120)
    assert "the first call is right" in done.stdout
    assert "there are fewer" not in done.stdout
    assert done.returncode != 0
    assert not done.timed_out
    why = {"launch": "invalid configuration argument", "kernel": "unspecified launch failure"}
    place = r"(smoothed|the distributed memlet .* of device_failures\.py:\d+): the device"
    found = rf"distspmd: rank 1: {place}[^\n]*: {why[failure.partition(':')[0]]}"
    assert re.search(found, done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["pulls", "staged", "nccl"])
@pytest.mark.parametrize("failure", ["launch", "kernel"])
def test_a_failure_in_a_redistribution_of_device_tiles_ends_all_ranks(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, failure: str, transport: str
) -> None:
    monkeypatch.setenv(TRANSPORT, transport)
    program = RANKS / "device_failures.py"
    done = launch(program, f"{failure}:1", "redistribute", ranks=2, check=False, timeout=120)
    assert "the first call is right" in done.stdout
    assert "there are fewer" not in done.stdout
    assert done.returncode != 0
    assert not done.timed_out
    what = r"the redistribution \[32\{p\}64, 64\] -> \[64, 32\{p\}64\]: the device"
    assert re.search(rf"distspmd: rank 1: {what}", done.stderr), done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["pulls", "staged", "nccl"])
def test_a_call_allocates_no_memory_of_the_device(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """Of a program with loops, halos, products and sums, which one rank would fail to get."""
    monkeypatch.setenv(TRANSPORT, transport)
    done = launch(RANKS / "device_failures.py", "allocation:1", ranks=2)
    assert f"the first call is right, by {transport}" in done.stdout
    assert "there are fewer of that kind" in done.stdout
