"""Who holds an element or a panel that a loop chooses computes it: nothing else moves for it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.lowering import Lowering

N = 48


def cholesky(a: Any) -> None:
    for k in range(N):
        a[k, k] = np.sqrt(a[k, k])
        a[k + 1 :, k] = a[k + 1 :, k] / a[k, k]
        for i, j in distspmd.map[k + 1 : N, k + 1 : N]:
            a[i, j] -= a[i, k] * a[j, k]


def read_elsewhere(x: Any, y: Any) -> None:
    for k in range(N - 1):
        y[k] = x[N - 1 - k] + k
        for i in distspmd.map[k + 1 : N]:
            y[i] = y[i] + y[k]


def chosen_by_data(x: Any, y: Any) -> None:
    for k in range(N):
        y[int(x[k])] = 3.0
        for i in distspmd.map[0:N]:
            y[i] = y[i] * 2


def spaces_of(lowering: Lowering) -> dict[str, tuple[tuple[str, ...], tuple[int, ...]]]:
    return {s.name: (tuple(p for p, _ in s.iterates), s.parts) for s in lowering.spaces}


@pytest.mark.parametrize("parts", [(4, 1), (1, 4), (2, 3)])
def test_the_root_of_an_element_is_computed_where_it_lies(parts: tuple[int, ...]) -> None:
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), {"a.3": parts})
    assert spaces_of(lowering)["a"] == (("__k0", "__k1"), parts)


def test_a_cholesky_decomposition_by_rows_moves_panels_alone() -> None:
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), {"a.3": (4, 1)})
    assert all(memlet.times == 1 for memlet in lowering.memlets)
    assert {fetch.times for fetch in lowering.fetches} == {N}


def test_a_search_splits_it_by_itself() -> None:
    machine = distspmd.plans.Machine(alpha=1e-12, beta=1e-12)  # where so small a matrix pays
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), ranks=4, machine=machine)
    names, parts = spaces_of(lowering)["a"]
    assert names == ("__k0", "__k1")
    assert math.prod(parts) == 4


@pytest.mark.parametrize("parts", [(4, 1), (1, 4), (2, 3)])
def test_a_column_is_computed_where_it_lies(parts: tuple[int, ...]) -> None:
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), {"a.3": parts})
    assert spaces_of(lowering)["a.2"] == (("__i0", "__k1"), parts)
    assert all(memlet.times == 1 for memlet in lowering.memlets)


def test_a_column_is_given_back_from_a_file_with_its_place(tmp_path: Path) -> None:
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), {"a.3": (2, 3)})
    lowering.schedule.save(tmp_path / "schedule.yaml")
    again = distspmd.lower(numpy_program(cholesky, np.eye(N)), str(tmp_path / "schedule.yaml"))
    assert spaces_of(again) == spaces_of(lowering)
    assert again.schedule == lowering.schedule
    assert [home.layout for home in again.homes] == [home.layout for home in lowering.homes]


def test_parts_of_a_column_keep_its_parameters() -> None:
    schedule = {"a.2": (4,), "a.3": (4, 1)}
    lowering = distspmd.lower(numpy_program(cholesky, np.eye(N)), schedule)
    assert spaces_of(lowering)["a.2"] == (("__i0",), (4,))


def test_what_is_read_beside_the_element_is_fetched_as_before() -> None:
    lowering = distspmd.lower(numpy_program(read_elsewhere, *np.ones((2, N))), {"y.2": (4,)})
    assert spaces_of(lowering)["y"] == (("__k0",), (4,))


def test_an_element_that_data_choose_is_written_where_it_lies() -> None:
    lowering = distspmd.lower(numpy_program(chosen_by_data, *np.ones((2, N))), {"y.2": (4,)})
    assert spaces_of(lowering)["y"] == (("__k0",), (4,))
    assert not [m for m in lowering.memlets if m.data == "y" and m.times > 1]


def source_in_a_stencil(u: Any, where: Any) -> None:
    k = int(where[0])
    for _t in range(6):
        u[1:-1] = (u[:-2] + u[2:]) / 2
        u[k] += 1.0


@pytest.mark.parametrize("named", ["u", "before", "both", ""])
def test_beside_a_halo_an_element_that_data_choose_lies_on_one_rank(named: str) -> None:
    sdfg = numpy_program(source_in_a_stencil, np.ones(N * 1000), np.ones(1, int))
    schedule = {name: (4,) for name in ("u", "before") if named in (name, "both")}
    machine = distspmd.plans.Machine(alpha=1e-9)
    lowering = distspmd.lower(sdfg, schedule or None, ranks=4, machine=machine)
    assert spaces_of(lowering)["u.2"] == (("__k0",), (4,))
    in_loop = [memlet for memlet in lowering.memlets if memlet.data == "u" and memlet.times > 1]
    received = sum(sum(m.solution.plan.received(rank) for rank in range(4)) for m in in_loop)
    assert received <= 2 * 3 * 2 * 8  # bytes of two halos
