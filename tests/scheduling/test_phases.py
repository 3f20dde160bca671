"""Searches over programs whose loops sweep one array both ways, beside schedules by experts.

All on paper: seconds are those of the model, on the machine that is assumed where none is measured.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.errors import ScheduleError
from distspmd.frontend import numpy_program
from distspmd.plans.machine import Machine
from distspmd.schedule import Schedule

P = 4


def directions(u: Any) -> None:  # ADI
    for _t in range(5):
        for k in range(1, u.shape[0]):
            u[:, k] = 0.5 * u[:, k] + 0.25 * u[:, k - 1]
        for k in range(1, u.shape[0]):
            u[k, :] = 0.5 * u[k, :] + 0.25 * u[k - 1, :]


def factors(a: Any) -> None:  # LU
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])


def cholesky(a: Any) -> None:
    n = a.shape[0]
    for k in range(n):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k + 1 :, k])


def triangular(a: Any, b: Any) -> None:
    n = a.shape[0]
    for k in range(n):
        b[k, :] = b[k, :] / a[k, k]
        b[k + 1 :, :] -= np.outer(a[k + 1 :, k], b[k, :])


def orthogonal(a: Any) -> Any:  # QR, by the modified Gram-Schmidt process
    n = a.shape[0]
    q = np.zeros_like(a)
    for k in range(n):
        q[:, k] = a[:, k] / np.sqrt(a[:, k] @ a[:, k])
        a[:, k + 1 :] -= np.outer(q[:, k], q[:, k] @ a[:, k + 1 :])
    return q


def reflected(a: Any) -> None:  # QR, by Householder's reflections
    n = a.shape[0]
    for k in range(n - 1):
        v = np.copy(a[k:, k])
        v[0] += np.sign(v[0]) * np.sqrt(v @ v)
        v /= np.sqrt(v @ v)
        a[k:, k:] -= 2 * np.outer(v, v @ a[k:, k:])


def fourier(x: Any) -> Any:
    return np.fft.fft(np.fft.fft(x, axis=1), axis=0)


def wavefront(a: Any) -> None:
    for i in range(1, a.shape[0]):
        for j in range(1, a.shape[1]):
            a[i, j] = a[i - 1, j] + a[i, j - 1]


def parsed(function: Callable[..., Any], n: int, arrays: int = 1) -> Any:
    dtype = complex if function is fourier else float
    return numpy_program(function, *[np.ones((n, n), dtype)] * arrays)


def by_rows(sdfg: Any) -> dict[str, tuple[int, ...]]:
    spaces = distspmd.iteration_spaces(sdfg)
    return {s.name: (P, *[1] * (len(s.parameters) - 1)) for s in spaces if s.parameters}


def predicted(sdfg: Any, schedule: Any) -> float:
    return distspmd.predict(distspmd.lower(sdfg, schedule, machine=Machine())).seconds


@pytest.mark.parametrize(
    ("function", "arrays", "schedules"),
    [
        (directions, 1, [by_rows]),
        (factors, 1, [{"a.2": (P, 1)}, {"a.2": (1, P)}]),
        (cholesky, 1, [{"a.3": (P, 1)}, {"a.3": (1, P)}, {"a.3": (2, 2)}]),
        (triangular, 2, [{"b.2": (P, 1)}, {"b": (P,), "b.2": (1, P)}]),
        (
            orthogonal,
            1,
            [
                {
                    "a_slice_matmul_a_slice": (P,),
                    "__return.2": (P,),
                    "q_slice_matmul_a_slice": (1, P),
                    "a": (P, 1),
                }
            ],
        ),
        (reflected, 1, [by_rows]),
        (fourier, 1, [{"fft_x": (P,), "__return": (P,)}]),
        (wavefront, 1, [by_rows]),
    ],
)
@pytest.mark.parametrize("n", [pytest.param(64, marks=pytest.mark.slow), 512])
def test_what_is_found_takes_no_longer_than_schedules_of_experts(
    function: Any, arrays: int, schedules: Any, n: int
) -> None:
    sdfg = parsed(function, n, arrays)
    found = predicted(sdfg, distspmd.search(sdfg, ranks=P, machine=Machine()))
    for schedule in schedules:
        sdfg = parsed(function, n, arrays)
        asked = schedule(sdfg) if callable(schedule) else schedule
        assert found <= 1.001 * predicted(sdfg, asked)


def test_an_array_is_turned_between_sweeps_where_that_pays(tmp_path: Path) -> None:
    sdfg = parsed(directions, 512)
    found = distspmd.search(sdfg, ranks=P, machine=Machine())
    homes = {name: str(home) for name, home in found.schedule.homes.items()}
    rows, columns = "[128{x}512, 512]", "[512, 128{x}512]"
    assert homes == {"u": rows, "u in loop 1 around u.2": columns}
    assert "u in loop 1 around u.2" in str(found)
    found.save(tmp_path / "schedule.yaml")
    lowering = distspmd.lower(sdfg, tmp_path / "schedule.yaml", machine=Machine())
    assert {home.data: str(home.layout) for home in lowering.homes} == {
        "u": rows,
        "u_phase": columns,
    }
    moved = sum(memlet.times * memlet.solution.cost.nbytes for memlet in lowering.memlets)
    assert found.nbytes == moved == (2 + 10) * 8 * 512 * 512 * (P - 1) // P
    assert distspmd.predict(lowering).seconds == pytest.approx(found.cost, rel=1e-3)


def smoothed(a: Any) -> None:  # five points, twice a step
    b = np.copy(a)
    for _ in range(4):
        b[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
        a[1:-1, 1:-1] = 0.25 * (b[:-2, 1:-1] + b[2:, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:])


@pytest.mark.parametrize("copy", [1e-11, 1e-9])
def test_a_home_with_a_halo_costs_the_copies_from_tiles_that_the_caller_holds(copy: float) -> None:
    """Its tiles overlap, so the caller holds others. The loop may work on a copy with halos too."""
    sdfg, machine = parsed(smoothed, 514), Machine(alpha=1e-7, copy=copy, cores=2)
    held = {"a": "distributed"}
    found = distspmd.search(sdfg, ranks=P, machine=machine, arguments=held)
    assert found.is_split
    lowering = distspmd.lower(sdfg, found, machine=machine, arguments=held)
    assert distspmd.predict(lowering).seconds == pytest.approx(found.cost, rel=0.02)


def test_an_array_that_had_better_stay_gets_no_copy_by_the_lowering_either() -> None:
    """By bytes a copy pays; by this machine's seconds it does not, for it has slow memory."""
    machine = Machine(stream=1e-7, alpha=1e-9, beta=1e-11, operation=1e-6)
    sdfg = parsed(directions, 64)
    found = distspmd.search(sdfg, ranks=P, machine=machine)
    assert found.is_split
    lowering = distspmd.lower(sdfg, found, machine=machine)
    assert not any("phase" in home.data for home in lowering.homes)


def test_turning_an_array_keeps_to_the_memory() -> None:
    sdfg = parsed(directions, 512)
    free = distspmd.search(sdfg, ranks=P, machine=Machine())
    assert distspmd.search(sdfg, ranks=P, machine=Machine(), memory=free.peak).cost == free.cost
    less = distspmd.search(sdfg, ranks=P, machine=Machine(), memory=free.peak - 1)
    assert less.cost > free.cost
    assert less.peak < free.peak


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("u in loop 3 around u.2", "there are not so many loops around a space 'u.2'"),
        ("u in loop 1 around w", "there are not so many loops around a space 'w'"),
        ("w in loop 1 around u", "no iteration space in that loop touches 'w'"),
    ],
)
def test_a_home_in_a_loop_that_is_none_is_refused(name: str, said: str) -> None:
    sdfg = parsed(directions, 16)
    home = distspmd.layouts.Layout.parse("[4{x}16, 16]", distspmd.layouts.Mesh(x=P))
    schedule = Schedule({"u": (P,), "u.2": (P,)}, homes={name: home})
    with pytest.raises(ScheduleError, match=f"the schedule: {name!r}: {said}"):
        distspmd.lower(sdfg, schedule)
