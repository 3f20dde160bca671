"""The machine as assumed, and as measured on this host."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Launch

import distspmd
from distspmd import Layout, Mesh, cli, doctor
from distspmd.doctor import Check
from distspmd.plans.machine import Machine, measurements
from distspmd.runtime.measure import NEVER, threshold

SLOW = Machine(alpha=1.0, beta=2.0, copy=3.0, single_copy_bytes=4, run_bytes=5)


def stored(alpha: str) -> str:
    numbers = f'{{"alpha": {alpha}, "beta": 1, "copy": 1, "single_copy_bytes": 1, "run_bytes": 1}}'
    return f'{{"latest": "x", "machines": {{"x": {numbers}}}}}'


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "cache"))


def test_a_machine_that_was_not_measured_is_as_assumed() -> None:
    assert Machine.measured() == Machine()


def test_the_last_measurement_counts_unless_an_mpi_is_named() -> None:
    SLOW.store("one")
    fast = Machine(alpha=0.5)
    fast.store("other")
    assert Machine.measured() == fast
    assert Machine.measured("one") == SLOW
    assert Machine.measured("none") == Machine()
    SLOW.store("other")
    assert Machine.measured() == SLOW
    assert [file.name for file in measurements().parent.iterdir()] == [measurements().name]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"latest": "x"}',
        '{"latest": "x", "machines": {"x": {"alpha": 1}}}',
        stored('"1"'),
        stored("-1"),
    ],
)
def test_a_damaged_measurement_is_passed_over(content: str) -> None:
    SLOW.store("x")
    measurements().write_text(stored("7"))
    assert Machine.measured().alpha == 7
    measurements().write_text(content)
    assert Machine.measured() == Machine()
    SLOW.store("x")
    assert Machine.measured() == SLOW


def test_pulls_begin_where_they_win_for_all_larger_sizes() -> None:
    assert threshold((1, 2, 3), (True, False, True)) == 3
    assert threshold((1, 2, 3), (True, True, True)) == 1
    assert threshold((1, 2, 3), (True, True, False)) == NEVER


def test_what_the_doctor_measures_is_what_plans_and_all_ranks_go_by(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "checks", lambda: (Check("all", True, "well"),))
    monkeypatch.setenv("COLUMNS", "400")
    assert cli.main(["doctor", "--measure"]) == 0
    assert str(measurements()) in capsys.readouterr().out
    found = Machine.measured()
    assert found != Machine()
    assert 1e-8 < found.alpha < 1
    assert 1e-12 < found.beta < 1e-6
    assert 1e-12 < found.copy < 1e-6
    assert 1e-13 < found.product < found.operation < 1e-6
    assert 1e-12 < found.stream < 1e-6
    assert 1 << 12 <= found.single_copy_bytes <= NEVER
    assert 1 << 12 <= found.run_bytes <= NEVER
    rows, columns = (Layout.parse(text, Mesh(x=2)) for text in ("[2{x}4, 4]", "[4, 2{x}4]"))
    assert distspmd.plan(rows, columns).machine == found
    assert distspmd.plan(rows, columns, machine=SLOW).machine == SLOW
    launch(
        f"""
import os
from mpi4py import MPI
from distspmd.plans.machine import Machine
from distspmd.runtime.redistribute import known_of

if MPI.COMM_WORLD.rank == 1:
    os.environ["DISTSPMD_CACHE"] += "-of-another-host"
    assert Machine.measured() == Machine()
assert known_of(MPI.COMM_WORLD).machine == {found}
""",
        ranks=2,
    )
