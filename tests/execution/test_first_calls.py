"""First calls are compared with the prediction: what is said, what is kept, what comes of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from distspmd.plans import calibration
from distspmd.plans.calibration import Factor, Part, adjusted, keep, known_of
from distspmd.plans.machine import Kind, Machine, measurements
from distspmd.plans.tile_work import TileWork
from distspmd.runtime.launch.mpiexec import Completed, launch

HERE = Path(__file__).parent
WRONG = Machine(operation=1e-10, stream=1e-12, copy=1e-12, product=1e-12)
"""Its work takes far less than on any machine."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path))
    monkeypatch.setenv("DISTSPMD_CALIBRATE", "1")
    known_of.cache_clear()
    yield tmp_path
    known_of.cache_clear()


def called(name: str, ranks: int = 2) -> tuple[Completed, float, float]:
    """The output, predicted seconds, and measured ones."""
    done = launch(
        [HERE / "calling_first.py", name],
        ranks=ranks,
        timeout=300,
        capture=True,
        env={"OMP_NUM_THREADS": "1", "DACE_compiler_build_type": "None"},
    ).check()
    predicted, measured = map(float, done.stdout.split())
    return done, predicted, measured


def test_what_is_far_from_the_prediction_is_told_once_and_the_next_one_is_nearer(
    cache: Path,
) -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("ranks that share a core are not timed")
    WRONG.store("any")
    done, predicted, measured = called("worked")
    assert predicted < measured / 5
    said = [line for line in done.stderr.splitlines() if "predicted" in line]
    assert [line.split(": ")[:3] for line in said] == [
        ["distspmd", "worked", "the work of its ranks"]
    ]
    assert said[0].endswith("x slower than predicted; run distspmd doctor --measure")
    (kept,) = json.loads(next(cache.glob("first-calls-*")).read_text()).values()
    assert kept["LOOPS"]["times"] > 5
    done, predicted, measured = called("worked")
    assert measured / 4 < predicted < 4 * measured


def test_tiny_programs_say_and_teach_nothing(cache: Path) -> None:
    WRONG.store("any")
    done, *_ = called("tiny")
    assert "predicted" not in done.stderr
    assert not list(cache.glob("first-calls-*"))


def test_factors_are_kept_of_each_machine_for_the_next_process(cache: Path) -> None:
    other = replace(WRONG, alpha=1.0)
    keep(WRONG, {Part.LOOPS: (8.0, 1.0), Part.CALLS: (8.0, 1.0)})
    assert known_of(WRONG) == {}  # as this process began with, on all of its ranks
    keep(WRONG, {Part.LOOPS: (2.0, 1.0), Part.CALLS: (1.0, 1 / 3), Part.MOVING: (3.0, 1.0)})
    known_of.cache_clear()
    factors = known_of(WRONG)
    assert factors[Part.LOOPS] == Factor(pytest.approx(4.0), 2)
    assert factors[Part.CALLS].times == pytest.approx(8 ** (3 / 4))  # little of a program's time
    assert factors[Part.MOVING] == Factor(pytest.approx(3.0), 1)
    assert known_of(other) == {}
    found = adjusted(WRONG, factors)
    assert found.operation == pytest.approx(4 * WRONG.operation)
    assert found.rate(Kind.SORT)[0] == pytest.approx(8 ** (3 / 4) * WRONG.rate(Kind.SORT)[0])
    assert found.rate(Kind.PYTHON) == WRONG.rate(Kind.PYTHON)
    assert found.rate(Kind.FETCH) == WRONG.rate(Kind.FETCH)
    assert (found.stream, found.product) == (WRONG.stream, WRONG.product)
    assert (found.beta, found.alpha) == (pytest.approx(3 * WRONG.beta), WRONG.alpha)
    keep(WRONG, {Part.LOOPS: (1.0, 1.0)})  # as predicted by these factors
    known_of.cache_clear()
    assert known_of(WRONG)[Part.LOOPS].times == pytest.approx(4.0)


def test_each_part_of_work_is_told_by_what_it_spends_its_time_on() -> None:
    machine = Machine()
    work = {
        Part.LOOPS: TileWork(1e9, 8.0),
        Part.MEMORY: TileWork(1.0, 1e9),
        Part.PRODUCTS: TileWork(1e9, 8.0, Kind.PRODUCT),
        Part.CALLS: TileWork(1e9, 8.0, Kind.SORT),
        None: TileWork(1e9, 8.0, Kind.PYTHON),
    }
    assert {part: Part.of_work(each, machine) for part, each in work.items()} == {
        part: part for part in work
    }


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "[]",
            "{",
            '{"KEY": 3}',
            '{"KEY": {"work": 2.0}}',
            '{"KEY": {"LOOPS": {"times": "x"}}}',
        ),
        *('{"KEY": {"LOOPS": {"times": 0.0}}}', '{"KEY": {"LOOPS": 3.0}}'),
    ],
)
def test_a_file_that_cannot_be_used_is_none(cache: Path, text: str) -> None:
    file = measurements().with_name(f"first-calls-{measurements().name}")
    file.write_text(text.replace("KEY", calibration._key(WRONG)))
    assert known_of(WRONG) == {}


def test_first_calls_are_not_timed_where_nobody_wants_it(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(WRONG, {Part.LOOPS: (8.0, 1.0)})
    known_of.cache_clear()
    monkeypatch.setenv("DISTSPMD_CALIBRATE", "0")
    assert known_of(WRONG) == {}
