"""Functions of Python inside of compiled programs: whole, on all ranks, or by blocks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Launch
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, ProgramValueError, ScheduleError, UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.nodes.host_call import HostCall
from from_numpy.corpus.registry import Case
from from_numpy.harness import run_here
from from_numpy.outcomes import RIGHT

RANKS = Path(__file__).parents[1] / "ranks"


@distspmd.host(like=lambda codes, most: np.zeros(most))
def counted(codes, most):
    """What only Python does well: a dictionary."""
    seen: dict[int, int] = {}
    for code in codes:
        seen[int(code)] = seen.get(int(code), 0) + 1
    return np.array([float(seen.get(k, 0)) for k in range(most)])


@distspmd.host(signature="(n),(m)->(n)")
def moved(lines, weights):
    return np.sort(lines, axis=-1) * weights.sum(axis=-1, keepdims=True)


@distspmd.host(signature="(),()->(),()", like=(np.float64, np.int64))
def both(a, b):
    return np.maximum(a, b), np.argmax(np.stack(np.broadcast_arrays(a, b)), axis=0)


@distspmd.host
def norm(x) -> float:
    return float(np.sqrt((x * x).sum()))


@distspmd.host(like=lambda x: {"least": 0.0, "rest": (np.zeros(2), 0)})
def described(x):
    return {"least": x.min().item(), "rest": (x.ravel()[:2] + 1.0, x.size)}


def of_blocks(x, codes):
    y = moved(x * 2.0, np.arange(3.0))
    larger, which = both(y, x[0])
    return larger, which, counted(codes, 5)


def in_a_loop(x):
    for k in range(3):
        x = x / norm(x + k)
        if x[0, 0] > 0.1:
            x = x + norm(x)
    return x


def of_parts(x):
    found = described(x)
    return x + found["least"], found["rest"][0], found["rest"][1] * 2


def of_columns(x):  # blocks of what no dimension of the array is first
    return moved(x.T, x.T[:, :4]).T


X = np.random.default_rng(0).random((7, 5))
CODES = np.array([1, 2, 2, 4, 0, 2])


def _case(function: Any, *arguments: Any) -> Case:
    return Case(function.__name__, function, "tests", "tests", lambda rng: arguments, ())


CASES = [
    _case(of_blocks, X, CODES),
    _case(in_a_loop, X),
    _case(of_parts, X),
    _case(of_columns, X),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_host_functions_give_what_python_gives(case: Case) -> None:
    outcome = run_here(case)
    assert outcome.kind == RIGHT, outcome.reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("ranks", [3, 4, 8])
def test_plans_around_host_functions_are_proved(case: Case, ranks: int) -> None:
    """Rows are split unevenly, and some ranks are idle."""
    sdfg = numpy_program(case.function, *case.arguments()[0])
    split = [s for s in distspmd.iteration_spaces(sdfg) if s.parameters[0] != "__once"]
    names = {s.name: (ranks,) + (1,) * (len(s.parameters) - 1) for s in split}
    lowering = distspmd.lower(numpy_program(case.function, *case.arguments()[0]), names)
    assert lowering.ranks == ranks
    distspmd.verify(lowering)


def test_a_signature_is_split_and_moves_nothing() -> None:
    @distspmd.host(signature="(n)->(n)")
    def sorted_lines(lines):
        return np.sort(lines, axis=-1)

    def program(x):
        return sorted_lines(x * 2.0) + 1.0

    sdfg = numpy_program(program, X)
    space = next(s for s in distspmd.iteration_spaces(sdfg) if s.parameters == ("__bA",))
    lowering = distspmd.lower(numpy_program(program, X), {space.name: (4,)})
    assert [m.data for m in lowering.memlets] == ["x", "__return"]  # from the caller, and to it


def test_one_rank_runs_what_has_no_signature() -> None:
    lowering = distspmd.lower(numpy_program(in_a_loop, X), ranks=4)
    own = [s for s in lowering.spaces if "norm" in s.name]
    assert own
    assert all(s.mesh.size == 1 and "Python runs it once" in str(s.chosen_by) for s in own)


def test_a_schedule_cannot_have_several_ranks_run_it() -> None:
    name = next(
        s.name
        for s in distspmd.iteration_spaces(numpy_program(in_a_loop, X))
        if s.name.startswith("norm")
    )
    on_all = {name: distspmd.schedule.OnMesh(distspmd.layouts.Mesh(r=4), {})}
    with pytest.raises(ScheduleError, match=f"4 ranks run all of the space '{name}', which Python"):
        distspmd.lower(numpy_program(in_a_loop, X), on_all)
    one = distspmd.lower(numpy_program(in_a_loop, X), {name: (1,)})
    assert next(s for s in one.spaces if s.name == name).mesh.size == 1


def test_a_key_is_the_same_in_all_processes() -> None:
    code = (
        "import distspmd\n"
        "@distspmd.host(like=float)\n"
        "def f(x):\n"
        "    return 1.0 if x in {'a', 'b', 'c', 'd'} else 2.0\n"
        "print(f.reference()['host'][0])\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(found) == 1


@pytest.mark.parametrize("ranks", [2, 3])
def test_host_functions_run_on_ranks(ranks: int, launch: Launch) -> None:
    said = launch(RANKS / "host_functions.py", ranks=ranks).stdout
    assert said.splitlines().count("all is as in Python") == 1


def test_closures_are_told_apart_by_what_they_hold() -> None:
    def times(factor):
        @distspmd.host(signature="()->()")
        def scaled(x):
            return x * factor

        return scaled

    two, three = times(2.0), times(3.0)
    assert two.reference() != three.reference()
    assert times(2.0).reference() == two.reference()

    def program(x):
        return two(x) + three(x)

    outcome = run_here(_case(program, X))
    assert outcome.kind == RIGHT, outcome.reason


def test_what_cannot_be_copied_stays_in_this_process() -> None:
    def locked():
        lock = threading.Lock()

        @distspmd.host(like=float)
        def number(x):
            with lock:
                return float(x[0, 0])

        return number

    first, second = locked(), locked()
    assert first.reference() != second.reference()
    assert first.reference()["host"][1] == ""


def test_calling_a_host_function_is_calling_the_function() -> None:
    assert counted([1, 1], 2).tolist() == [0.0, 2.0]
    assert norm.__name__ == "norm"
    assert repr(norm) == "<host function norm>"


@pytest.mark.parametrize("text", ["n->n", "(n)", "(n)->", "(n)->(m)", "(1n)->(n)", "(n);(m)->(n)"])
def test_a_signature_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ArgumentError, match=r"signature=.* (cannot be read|result alone)"):
        distspmd.host(signature=text)(abs)


def test_what_is_asked_of_the_decorator_is_checked() -> None:
    with pytest.raises(ArgumentError, match="where='two' of a host function"):
        distspmd.host(where="two")(abs)
    with pytest.raises(ArgumentError, match="each rank runs it on its part"):
        distspmd.host(where="all", signature="()->()")(abs)
    with pytest.raises(ArgumentError, match="which cannot be called"):
        distspmd.host(3)


@distspmd.host
def unknown(x):
    return x


@distspmd.host(like=lambda x: np.zeros(int(x.sum() * 1000)))
def as_values_say(x):
    return np.zeros(int(x.sum() * 1000))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: unknown(x), r"what the host function unknown returns is not known: write @dist"),
        (lambda x: as_values_say(x), r"like= of the host function as_values_say: its shape is for"),
        (lambda x: moved(x), r"has the signature '\(n\),\(m\)->\(n\)', of 2 arrays, and gets 1"),
        (lambda x: moved(x[0, 0], x), r"gets an array of 0 dimensions for \(n\)"),
    ],
)
def test_what_is_not_known_before_the_run_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, X)


def with_gradients(x):
    x.requires_grad_()
    loss = np.sum(x) * norm(x)
    loss.backward()
    return x.grad


SHOWN: list[tuple[Any, float]] = []


@distspmd.host
def shown(name, x) -> None:
    SHOWN.append((name, float(np.sum(x))))


@distspmd.host
def largest(x) -> float:
    return float(np.abs(x).max())


@distspmd.host
def is_positive(x) -> bool:
    return bool(x.sum() > 0)


def with_effects(x):
    shown(1, x)
    shown("two", x * 2)
    shown(3, x[1:])
    shown(4, 7.0)
    while largest(x) > 1.0:
        x = x / 2
        if is_positive(x):
            shown(5, x)
    return x


def test_what_is_done_beside_results_comes_in_order() -> None:
    x = np.linspace(0, 7, 12)
    sdfg = numpy_program(with_effects, x)
    SHOWN.clear()
    expected, wanted = with_effects(x), [*SHOWN]
    SHOWN.clear()
    with distspmd.compile(distspmd.lower(sdfg, {}), MPI.COMM_SELF) as program:
        np.testing.assert_array_equal(program(x), expected)
    assert wanted == SHOWN
    assert [name for name, _ in wanted] == [1, "two", 3, 4, 5, 5, 5]


def test_gradients_through_a_host_function_need_a_vjp() -> None:
    with pytest.raises(UnsupportedProgram, match="through the host function norm, which has none"):
        distspmd.lower(numpy_program(with_gradients, X), {})


@pytest.mark.parametrize("ranks", [1, 3])
def test_gradients_pass_through_host_functions(ranks: int, launch: Launch) -> None:
    assert "right" in launch(RANKS / "host_gradients.py", ranks=ranks).stdout


@distspmd.host(like=lambda x, w: x, vjp=lambda g, x, w: (g * w, None))
def half_derived(x, w):
    return x * w


@distspmd.host(like=lambda x, w: x, vjp=lambda g, x, w: g[:1])
def derived_as_one(x, w):
    return x * w


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            half_derived,
            r"vjp of half_derived returns None as the gradient of argument 1, which has",
        ),
        (derived_as_one, r"vjp of derived_as_one returns 1 gradient\(s\) for 2 arguments"),
    ],
)
def test_a_vjp_returns_a_gradient_for_each_argument(function: Any, message: str) -> None:
    def program(x):
        x.requires_grad_()
        loss = np.sum(function(x, x * 2))
        loss.backward()
        return x.grad

    lowering = distspmd.lower(numpy_program(program, X), {})
    compiled = distspmd.compile(lowering, MPI.COMM_SELF)
    with pytest.raises(ProgramValueError, match=message):
        compiled(X)


def test_a_host_function_by_itself_is_run_by_python() -> None:
    sdfg = numpy_program(norm, X)
    assert [n.label for n, _ in sdfg.all_nodes_recursive() if isinstance(n, HostCall)] == ["norm"]


def test_a_device_calls_host_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    lowering = distspmd.lower(numpy_program(in_a_loop, X), {})
    with distspmd.compile(lowering, MPI.COMM_SELF, device="emulated") as program:
        np.testing.assert_allclose(program(X), in_a_loop(X))


def test_a_driver_gives_its_ranks_a_copy(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, distspmd\n"
        "def made(factor):\n"
        "    @distspmd.host(signature='(n)->(n)')\n"
        "    def ordered(lines):\n"
        "        return np.sort(lines, axis=-1) * factor\n"
        "    return ordered\n"
        "ordered = made(3.0)\n"
        "@distspmd.program(ranks=2)\n"
        "def f(x):\n"
        "    return ordered(x) + 1.0\n"
        "x = np.random.default_rng(0).random((300, 200))\n"
        "with distspmd.ranks(2):\n"
        "    print(np.array_equal(f(x), np.sort(x, axis=-1) * 3.0 + 1.0))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True\n", done.stderr
