"""What library calls cost: each has a row, and rows count what calls do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dace.sdfg import nodes as dace_nodes

import distspmd
from distspmd.analysis.library_costs import FUNCTIONS, PARTS, ROUTINES, routine_operations
from distspmd.analysis.work import NODES
from distspmd.frontend import numpy_program
from distspmd.nodes import contraction, host_call, lapack, row_exchange, scatter, tell
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.passes.normalize.library_nodes import WINDOWED
from distspmd.plans.machine import RATES, Kind, Machine

MOVING = {DistributedMemlet, FetchedMemlet}
"""Library nodes that cost what their plans do."""
MACHINE = Machine()
N = 1 << 21


def seconds(function: Any, *arguments: Any, schedule: Any = None) -> float:
    """What a run of a program is predicted to take."""
    program = numpy_program(function, *arguments)
    return distspmd.predict(distspmd.lower(program, schedule or {}, machine=MACHINE)).seconds


def test_every_routine_that_a_front_end_calls_has_a_row(root: Path) -> None:
    called = re.compile(r"\bdistspmd::((?:lines|fourier)::\w+)")
    found = {
        name
        for file in (root / "distspmd" / "frontend").rglob("*.py")
        for name in called.findall(file.read_text())
    }
    assert len(found) > 10
    assert found - PARTS <= ROUTINES.keys()


def test_every_function_of_lapack_has_a_row() -> None:
    assert FUNCTIONS.keys() == lapack.FUNCTIONS.keys()


def test_every_library_node_has_a_row_or_moves() -> None:
    modules = (contraction, host_call, lapack, row_exchange, scatter, tell)
    own = {
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, dace_nodes.LibraryNode)
        if kind.__module__ == module.__name__
    }
    every = {k for k in own | set(WINDOWED) if k not in MOVING}
    assert len(every) > 10
    assert every <= NODES.keys()


def test_every_kind_of_library_call_has_a_rate_that_is_measured_or_assumed() -> None:
    of_loops = {kind for kind in Kind if kind.is_product or kind.is_single}
    assert set(Kind) - of_loops - {Kind.LOOP, Kind.FUNCTION} == RATES.keys()
    kinds = {row.kind for row in (*ROUTINES.values(), *FUNCTIONS.values())}
    assert kinds | {Kind.PYTHON, Kind.FETCH} == RATES.keys()


@pytest.mark.parametrize(
    ("function", "least"),
    [(np.sort, 0.05), (np.argsort, 0.1), (np.median, 0.05), (np.fft.fft, 0.01)],
)
def test_what_takes_all_of_a_line_is_not_as_cheap_as_a_copy(function: Any, least: float) -> None:
    def program(x: Any) -> Any:
        return function(x)

    assert least < seconds(program, np.zeros(N)) < 10 * least


@pytest.mark.parametrize(
    ("function", "operations"),
    [(np.linalg.inv, 8 / 3), (np.linalg.svd, 21), (np.linalg.eigh, 9), (np.linalg.cholesky, 1 / 3)],
)
def test_what_takes_a_matrix_costs_the_cube_of_its_edge(function: Any, operations: float) -> None:
    def program(a: Any) -> Any:
        return function(a)

    small, large = (seconds(program, np.eye(n)) for n in (400, 800))
    assert operations * 800**3 * 2e-11 < large < operations * 800**3 * 2e-10
    assert 3.5 < large / small < 8.5


def test_columns_of_right_hand_sides_share_the_factorisation() -> None:
    def program(a: Any, b: Any) -> Any:
        return np.linalg.solve(a, b)

    a, b = np.eye(300), np.ones((300, 300))
    one, many = (seconds(program, a, b[:, :k]) for k in (1, 300))
    assert one < many < 5 * one  # 2/3 + 2 beside 2/3
    spaces = distspmd.iteration_spaces(numpy_program(program, a, b))
    assert spaces[0].parameters == ("__i", "__j")
    split = seconds(program, a, b, schedule={spaces[0].name: (1, 4)})
    assert split > one  # each rank factorises all of the matrix


def test_indices_of_a_write_are_split_with_the_places() -> None:
    def program(y: Any, index: Any, v: Any) -> None:
        y[index] = v

    n = 1 << 12
    given = (np.zeros(2 * n), np.arange(n), np.ones(n))
    (space,) = (
        s
        for s in distspmd.lower(numpy_program(program, *given), {}).spaces
        if s.work.kind is Kind.LINE
    )
    split = distspmd.lower(numpy_program(program, *given), {space.name: (4,)}, machine=MACHINE)
    (own,) = (s for s in split.spaces if s.name == space.name)
    assert own.parts == (4,)
    assert space.work.operations == 3 * n
    assert own.work.operations == (3 + 9) * n / 4  # who has an index looks for its owner


def test_a_write_whose_indices_do_not_change_sends_values_alone() -> None:
    def program(y: Any, index: Any, v: Any) -> None:
        for _t in range(9):
            y[index] = v
            np.add.at(y, index, v)
            v += 1

    n = 1 << 12
    given = (np.zeros(n), np.arange(n), np.ones(n))
    sdfg = numpy_program(program, *given)
    lowering = distspmd.lower(sdfg, {"y": (4,), "y.2": (4,)}, machine=MACHINE)
    spaces = {space.name: space for space in lowering.spaces}
    assert spaces["y"].work.operations == spaces["y.2"].work.operations == (3 + 4) * n / 4


def test_python_is_called_once_for_all_that_a_rank_has() -> None:
    @distspmd.host(like=lambda x: x, signature="()->()")
    def own(x: Any) -> Any:
        return x + 1

    def program(x: Any) -> Any:
        return own(x)

    found = distspmd.lower(numpy_program(program, np.zeros(1000)), {})
    (work,) = (space.work for space in found.spaces if space.python)
    assert work.kind is Kind.PYTHON
    assert work.operations == 1


def test_code_without_a_row_goes_once_through_its_line() -> None:
    assert routine_operations("distspmd::lines::sort(a, b, n);", 8, 0) == {Kind.SORT: 24}
    assert routine_operations("distspmd::lines::search(w, n, x, true);", 1, 16) == {Kind.SEARCH: 4}
    assert routine_operations("for (;;) ++k;", 8, 0) == {Kind.LINE: 8}
    assert routine_operations("distspmd::ask(q, a, b, e);", 8, 0) == {Kind.PYTHON: 1}


def test_a_length_with_a_large_factor_takes_a_longer_transform() -> None:
    code = "distspmd::fourier::complex_to_complex(a, n, b, n, false, 1.0);"
    smooth, prime = (routine_operations(code, n, 0)[Kind.TRANSFORM] for n in (1 << 20, 1000003))
    assert 3 * smooth < prime < 8 * smooth
