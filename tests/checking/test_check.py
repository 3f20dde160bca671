"""The checker, as in a user's own test: it starts the ranks, and names the first difference."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import dace
import numpy as np
import pytest
from conftest import Launch

import distspmd
from distspmd.checking.check import arguments_of, oracle_of
from distspmd.checking.python_oracle import python_function
from distspmd.errors import ArgumentError, CheckError, LaunchError, PlanError, ScheduleError
from distspmd.frontend import numpy_program
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers import SOLVERS


@dace.program
def gathered(x: dace.float64[11], at: dace.int32[7], s: dace.float32, y: dace.complex64[7]):
    for i in dace.map[0:7]:
        y[i] = x[at[i]] * s
    return np.sum(x)


def numpy_gathered(x: Any, at: Any, s: Any, y: Any) -> Any:
    y[:] = x[at] * s
    return np.array([x.sum()])


def drawn(rng: np.random.Generator) -> dict[str, Any]:
    return {"at": rng.integers(0, 11, 7), "s": 3}


def test_a_program_that_is_right_is_compared_on_all_arrays() -> None:
    sdfg = gathered.to_sdfg()
    before = sdfg.to_json()
    given: dict[str, Any] = {"at": (0, 11), "x": lambda rng: rng.normal(size=11)}
    checked = distspmd.check(sdfg, {"y": (3,), "sum_x": (3,)}, 3, inputs=given, seed=5)
    assert [run.seed for run in checked.runs] == [5, 6]
    names = [[compared.name for compared in run.comparisons] for run in checked.runs]
    assert names == [["x", "at", "s", "y", "__return"]] * 2
    assert checked.difference is None
    assert all(run.seconds > 0 for run in checked.runs)
    least = distspmd.explain(checked.lowering).nbytes  # and what the indices make ranks fetch
    most = least + sum(memlet.solution.cost.nbytes for memlet in checked.lowering.fetches)
    assert all(least < run.received_bytes <= most for run in checked.runs)
    assert "2 runs on 3 ranks" in str(checked)
    assert "<td>complex64</td>" in checked._repr_html_()
    assert sdfg.to_json()["attributes"] == before["attributes"]


def pivots(x: dace.float64[11, 7]):
    found = np.zeros(7, np.int64)
    for k in range(7):
        found[k] = k + np.argmax(np.abs(x[k:, k]))
    return found


def test_loops_may_decide_sizes_of_temporaries() -> None:
    assert distspmd.check(pivots, {}, 2, runs=1).difference is None


@dace.program
def shifted(x: dace.float32[11, 4], y: dace.float32[11, 4], s: dace.float32):
    x[1:10] = y[:9] * s
    return x + y, np.sum(y, axis=1)


def test_arguments_are_passed_where_the_caller_holds_them() -> None:
    checked = distspmd.check(
        shifted.to_sdfg(),
        {"__return_0": (2, 1), "__return_1": (2, 1)},
        3,
        arguments={
            "x": "distributed",
            "y": "replicated",
            "__return_0": "replicated",
            "__return_1": "distributed",
        },
    )
    assert [c.name for c in checked.runs[0].comparisons][-2:] == ["__return_0", "__return_1"]
    assert checked.difference is None
    received = [run.received_bytes for run in checked.runs]
    assert received == [distspmd.explain(checked.lowering).nbytes] * 2


def test_the_first_difference_is_named() -> None:
    def wrong(x: Any, at: Any, s: Any, y: Any) -> Any:
        total = numpy_gathered(x, at, s, y)
        y[4] += 1
        return total

    schedule = {"y": (2,)}
    distspmd.check(gathered.to_sdfg(), schedule, 2, inputs=drawn, reference=numpy_gathered, runs=1)
    with pytest.raises(CheckError) as raised:
        distspmd.check(gathered.to_sdfg(), schedule, 2, inputs=drawn, reference=wrong, runs=1)
    told = str(raised.value)
    assert "gathered on 2 ranks" in told
    assert "y=(2,)" in told
    assert "y[4] is (" in told
    assert "1 of 7 elements of complex64 differ" in told
    assert "inputs are those of the seed 0" in told


def test_ranks_that_end_are_told() -> None:
    with pytest.raises(LaunchError, match=r"ended with code|did not end"):
        distspmd.check(
            gathered.to_sdfg(),
            {"y": (2,)},
            2,
            inputs={"at": np.full(7, 2**30)},
            runs=1,
            timeout=600,
        )


class Forgetful:
    """Leaves a step of each plan out."""

    name = "forgetful"

    def plan(self, redistribution: Redistribution) -> Plan:
        plan = SOLVERS[-1].plan(redistribution)
        assert isinstance(plan, Plan)
        return replace(plan, steps=plan.steps[:-1])


def test_plans_are_proved_before_ranks_start() -> None:
    with pytest.raises(PlanError, match="rank"):
        distspmd.check(gathered.to_sdfg(), {"y": (2,)}, 2, solvers=[Forgetful()])


def test_what_cannot_be_checked_is_told() -> None:
    sdfg = gathered.to_sdfg()
    with pytest.raises(ScheduleError, match="4 ranks, but the communicator has 2"):
        distspmd.check(sdfg, {"y": (4,)}, 2)
    with pytest.raises(ArgumentError, match="0 runs compare nothing"):
        distspmd.check(sdfg, {}, 1, runs=0)
    with pytest.raises(ArgumentError, match="no argument 'z'; it has x, at, s, y"):
        arguments_of(sdfg, 0, {"z": 1})
    with pytest.raises(ArgumentError, match=r"for 'x' of float64; ends \(low, high\)"):
        arguments_of(sdfg, 0, {"x": (0, 1)})
    with pytest.raises(ArgumentError, match=r"'x' has the shape \[3\], the program wants \[11\]"):
        arguments_of(sdfg, 0, {"x": np.ones(3)})


TOGETHER = """
import dace, numpy as np, pytest
import distspmd
from distspmd.errors import ArgumentError, CheckError

@dace.program
def doubled(x: dace.float64[10]):
    return 2 * x

sdfg = doubled.to_sdfg()
checked = distspmd.check(sdfg, {"__return": (2,)}, 2)
assert [c.name for c in checked.runs[1].comparisons] == ["x", "__return"]
with pytest.raises(ArgumentError, match="3 ranks are asked for, but mpiexec started 2"):
    distspmd.check(sdfg, {"__return": (2,)}, 3)
with pytest.raises(CheckError, match=r"__return\\[0\\] is"):
    distspmd.check(sdfg, {"__return": (2,)}, 2, reference=lambda x: 3 * x)
print("checked")
"""


def test_ranks_of_mpiexec_check_together(launch: Launch) -> None:
    assert launch(TOGETHER, ranks=2).stdout.count("checked") == 2


N = dace.symbol("N")
SCALE = 3.0


@dace.program
def halved(x: dace.float64[N]):
    return x / 2


@dace.program
def with_symbols(x: dace.float64[N, 3]):
    total = np.zeros((N,), dtype=np.float64)
    for i in dace.map[0:N]:
        total[i] = halved(x[:, 1])[i] * SCALE
    return total


def test_symbols_and_programs_of_a_function_are_numbers_and_functions_for_numpy() -> None:
    function = python_function(with_symbols, {"N": 4})
    x = np.arange(12.0).reshape(4, 3)
    assert function is not None
    np.testing.assert_array_equal(function(x=x), x[:, 1] * 1.5)
    assert python_function(halved.to_sdfg(), {"N": 4}) is None


@dace.program
def wrapped(x: dace.float64[4], y: dace.int32[4]):
    x[:] = x * 2
    return np.sum(y)


def without_numpy(x: dace.float64[4]):
    return x.requires_grad_()


def test_the_oracle_is_the_python_function_where_numpy_can_run_it() -> None:
    checked = distspmd.check(wrapped, {}, 1, runs=1)
    assert checked.oracle == "the Python function, run by NumPy"
    assert "compared with the Python function" in str(checked)
    function, oracle = oracle_of(without_numpy, {}, {"x": np.ones(4)})
    assert function is None
    assert oracle.startswith("the SDFG in one process: Python cannot run the function ('numpy.nd")


def test_programs_of_which_no_function_is_known_are_compared_with_what_they_were() -> None:
    """The rank that runs the original knows the kinds of its nodes, which came from a file."""

    def doubled(x: dace.float64[9, 9]) -> Any:  # type: ignore[valid-type]
        return 2 * x @ x

    sdfg = dace.SDFG.from_json(numpy_program(doubled).to_json())
    checked = distspmd.check(sdfg, {"__return": (3, 1, 1)}, 3)
    assert checked.difference is None
