"""One price: what a search says, what a lowered program is predicted to take, and for what."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.plans.machine import TURN, Machine
from distspmd.runtime.launch import driver_ranks
from distspmd.scheduling import search

N = 1 << 14
SHARED = Machine(run=1e-8, near=32768, cache=1 << 20, cached=0.6, lone=0.7).shared_by(4, 2)


def gather(x: Any, index: Any, y: Any) -> None:
    for _ in range(10):
        y[:] = x[index] * 2
        x[1:-1] = (y[:-2] + y[2:]) * 0.5


def scatter(y: Any, index: Any, v: Any) -> None:
    for _ in range(10):
        y[index] = v
        y *= 1.01


def stencil(u: Any) -> None:
    for _ in range(10):
        u[1:-1] = (u[:-2] + u[2:]) / 2


def sorted_rows(a: Any) -> Any:
    return np.sort(a, axis=1) @ a.T


def solved(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, np.sin(b)).sum(axis=1)


def compacted(x: Any) -> Any:
    return x[x > 0.5].sum() + np.cumsum(np.exp(x))


def around(spins: Any) -> None:
    for _ in range(40):
        near = np.roll(spins, 1, 0) + np.roll(spins, -1, 0) + np.roll(spins, 1, 1)
        spins[:] = near - 3 * np.roll(np.roll(spins, -1, 0), -1, 1)


def transformed(x: Any) -> Any:
    return np.fft.fft(x)


def in_order(x: Any) -> Any:
    return np.sort(np.sin(x)), np.argsort(x)


def deposits(y: Any, index: Any, v: Any) -> None:
    for _ in range(10):
        np.add.at(y, index, v)
        y *= 1.01


def factors(a: Any) -> Any:
    return np.linalg.cholesky(a), np.linalg.qr(a[:, :4])[0]


def sweeps(u: Any) -> None:
    for i in range(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4


def programs() -> dict[Callable[..., Any], tuple[Any, ...]]:
    rng = np.random.default_rng(0)
    line, places = rng.random(N), rng.integers(0, N, N)
    square = rng.random((128, 128)) + 128 * np.eye(128)
    return {
        gather: (line, places, line),
        scatter: (line, places[: N // 4], line[: N // 4]),
        stencil: (line,),
        sorted_rows: (square,),
        solved: (square, square),
        compacted: (line,),
        around: (rng.random((256, 256)),),
        transformed: (rng.random(1 << 17),),
        in_order: (rng.random(1 << 16),),
        deposits: (rng.random(1 << 17), rng.integers(0, 1 << 17, 1 << 17), rng.random(1 << 17)),
        factors: (square @ square.T,),
        sweeps: (rng.random((1000, 1000)),),
    }


@pytest.mark.parametrize("machine", [Machine(alpha=1e-8), SHARED], ids=["apart", "shared"])
@pytest.mark.parametrize("function", programs(), ids=lambda function: function.__name__)
def test_what_a_search_says_is_what_is_predicted(
    function: Callable[..., Any], machine: Machine
) -> None:
    sdfg = numpy_program(function, *programs()[function])
    found = distspmd.search(copy.deepcopy(sdfg), 4, machine=machine)
    lowering = distspmd.lower(sdfg, found, machine=machine)
    assert distspmd.predict(lowering).seconds == pytest.approx(found.cost, rel=0.05)


def test_ranks_that_are_more_than_the_cores_share_them(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(alpha=1e-6)
    assert machine.shared_by(2, 2) == machine
    shared = machine.shared_by(4, 2)
    assert (shared.cores, shared.alpha) == (2, TURN)
    assert Machine(cores=3).shared_by(4, 2).cores == 3
    monkeypatch.setattr(Machine, "measured", classmethod(lambda cls, mpi=None: machine))
    monkeypatch.setattr(driver_ranks, "ranks_here", lambda: 1 << 20)
    monkeypatch.setattr(driver_ranks, "is_job", lambda: False)
    assert 0 < driver_ranks.machine_here().cores < 1 << 20
    monkeypatch.setattr(driver_ranks, "is_job", lambda: True)
    assert driver_ranks.machine_here() == machine
    monkeypatch.setattr(driver_ranks, "ranks_here", lambda: None)
    assert driver_ranks.machine_here() == machine


def heavy_and_light(x: Any, y: Any) -> Any:
    """Two lines of work that share nothing: naming one leaves the other whole."""
    return np.sin(x).sum(), (np.exp(y) * np.cos(y)).sum()


def named_one(n: int, **options: Any) -> Any:
    """Two lines of work, of which the schedule names the first."""
    program = numpy_program(heavy_and_light, np.zeros(n), np.zeros(n))
    name = distspmd.iteration_spaces(program)[0].name
    return distspmd.lower(program, {name: (4,)}, machine=Machine(), **options)


def test_what_a_schedule_leaves_open_is_searched_for_where_that_pays() -> None:
    follows = named_one(1 << 20, search=False)
    assert follows.whole > 0.4
    found = named_one(1 << 20)
    assert found.whole < 0.01
    assert next(s.parts for s in found.spaces if s.can_split and s.label != "x") == (4,)
    assert "What the schedule leaves open was searched for" in str(found)
    assert "(search=False)" in str(found)
    assert distspmd.predict(found).seconds < distspmd.predict(follows).seconds


def test_a_small_program_is_not_searched_for_what_its_schedule_leaves_open() -> None:
    assert str(named_one(64)) == str(named_one(64, search=False))


def test_the_record_opens_with_the_work_that_is_split_and_the_lines_that_are_not() -> None:
    follows = named_one(1 << 20, search=False)
    opening = str(follows).splitlines()[0]
    assert opening == follows.opening
    assert opening.startswith(f"{1 - follows.whole:.0%} of the predicted work is split over 4 rank")
    assert "test_agreement.py:" in opening
    assert "rank 0" in opening
    shares = follows.shares
    assert sum(shares.values()) == pytest.approx(1)
    assert f"{shares[follows.spaces[0].name]:.0%}" in str(follows)
    alone = named_one(1 << 20, search=False)
    program = numpy_program(heavy_and_light, np.zeros(8), np.zeros(8))
    alone = distspmd.lower(program, {})
    assert alone.opening == (
        "No work is split: one rank runs all of it, because nothing asks for more."
    )


def test_a_call_that_no_ranks_share_is_named_as_such() -> None:
    def program(a: Any, x: Any) -> Any:
        return np.linalg.eigvals(a), np.sin(x).sum()

    given = np.eye(256, dtype=complex), np.zeros(1 << 20)
    lowering = distspmd.lower(numpy_program(program, *given), ranks=2, machine=Machine())
    assert lowering.ranks == 2
    assert "(one call that no ranks share)" in lowering.opening


def moving(x: Any) -> Any:
    for _ in range(20):
        x = np.cos(x) + x[::-1]
    return x


def test_a_schedule_that_takes_longer_than_one_rank_says_so() -> None:
    dear = Machine(alpha=1e-3, beta=1e-8)
    program = numpy_program(moving, np.zeros(1 << 14))
    names = [space.name for space in distspmd.iteration_spaces(program)]
    wished = distspmd.lower(program, dict.fromkeys(names, (4,)), machine=dear)
    (said,) = (s for s in wished.remarks if "times as long as one rank" in s)
    assert "Leave the schedule out" in said
    assert distspmd.lower(program, ranks=4, machine=dear).ranks == 1
    cheap = distspmd.lower(program, dict.fromkeys(names, (4,)), machine=Machine(1e-9, 1e-14))
    assert "as long as one rank" not in str(cheap)


def test_what_is_searched_for_is_never_dearer_than_one_rank() -> None:
    program = numpy_program(moving, np.zeros(1 << 14))
    alone = distspmd.search(copy.deepcopy(program), 4, machine=Machine()).alone
    assert alone is not None
    for alpha in np.geomspace(1e-8, 1e-3, 12):
        found = distspmd.search(copy.deepcopy(program), 4, machine=Machine(alpha=float(alpha)))
        assert found.cost <= 1.0001 * alone
        assert found.alone == pytest.approx(alone)


def rows_in_turn(x: Any, where: Any) -> Any:
    total = np.zeros((len(where), x.shape[1]))
    for _ in range(5):
        x *= 1.5
        total += x[where]
    return total


def test_a_row_that_data_choose_is_asked_for_once() -> None:
    given = np.ones((4000, 9)), np.arange(3000)
    program = numpy_program(rows_in_turn, *given, host="refuse")
    spaces = distspmd.iteration_spaces(program)
    grids = {space.name: (3, 1)[: len(space.parameters)] for space in spaces}
    lowering = distspmd.lower(program, grids, search=False)
    asked = {fetch.data: fetch.elements for fetch in lowering.fetches if fetch.asked}
    assert asked
    assert set(asked.values()) == {1000.0}


def heavy(x: Any) -> Any:
    return np.cos(x).sum() + np.sort(x)[0]


def test_what_takes_longer_lowered_than_searched_for_gives_way_to_fewer_ranks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path))
    machine = Machine(alpha=1.0, beta=1e-6)
    real = search.search_numbers

    def hopeful(*given: Any, **options: Any) -> Any:
        return real(*given, **{**options, "machine": Machine(alpha=0, beta=0, copy=0)})

    program = numpy_program(heavy, np.zeros(1 << 16))
    assert distspmd.lower(program, ranks=4, machine=machine).ranks == 1
    monkeypatch.setattr(search, "search_numbers", hopeful)
    assert hopeful(copy.deepcopy(program), search.Options(4)).used == 4
    twin = copy.deepcopy(program)
    monkeypatch.setenv("DISTSPMD_CACHE", str(tmp_path / "other"))
    found = distspmd.lower(twin, ranks=4, machine=machine)
    assert found.ranks == 1
    assert "to move its data would take longer" in found.opening


def test_homes_have_what_rims_alone_touch() -> None:
    sdfg = numpy_program(shifted, np.ones((20, 7)), np.ones((20, 7)), host="refuse")
    cheap = Machine(alpha=1e-9, beta=1e-13, launch=0)
    lowering = distspmd.lower(sdfg, ranks=2, machine=cheap)
    distspmd.verify(lowering)
    assert max(own.layout.bounds[:, 0, 1].max() for own in lowering.homes if own.data == "t") == 20


def shifted(a: Any, b: Any) -> Any:
    t = 0.5 * (np.roll(a, 1, axis=1) + np.roll(b, -1, axis=0))
    for _ in range(2):
        b += 0.1 * np.roll(t, 1, axis=0)
    return a, b, a.sum()


@pytest.mark.parametrize("shape", [(2, 5), (5, 2), (3, 7)])
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_lines_of_all_elements_are_searched_and_proved(shape: tuple[int, int], ranks: int) -> None:
    sdfg = numpy_program(flattened, np.ones(shape), host="refuse")
    cheap = Machine(alpha=1e-9, beta=1e-13, launch=0)
    lowering = distspmd.lower(sdfg, ranks=ranks, machine=cheap)
    distspmd.verify(lowering)


def flattened(b: Any) -> Any:
    t = np.roll(b, (1, 2), axis=(0, 1))
    return np.roll(t, 1) + b
