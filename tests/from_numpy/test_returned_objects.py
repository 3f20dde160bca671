"""Programs return objects of Python that regions have made."""

from __future__ import annotations

import copy
import gc
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Launch
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.runtime.host import host_regions
from from_numpy import returned_objects
from from_numpy.outcomes import check_same

HERE = Path(__file__).parent
ARGUMENTS = (returned_objects.X, returned_objects.CODES)


def _program(function: Any, **options: Any) -> Any:
    return distspmd.program(function, comm=MPI.COMM_SELF, host="allow", **options)


@pytest.mark.parametrize("function", returned_objects.EVERY, ids=lambda f: f.__name__)
def test_objects_are_returned_as_python_returns_them(function: Any) -> None:
    program = _program(function)
    for codes in (returned_objects.CODES, returned_objects.CODES[::-1].copy()):
        given = (returned_objects.X, codes)
        check_same(program(*copy.deepcopy(given)), function(*copy.deepcopy(given)))
    assert not host_regions.OBJECTS


def test_one_object_in_two_places_of_a_result_stays_one() -> None:
    program = _program(returned_objects.alike)
    _, both, shared = program(*ARGUMENTS)
    assert both["one"] is both["other"] is shared
    _, found = _program(returned_objects.of_the_user)(*ARGUMENTS)
    assert type(found) is returned_objects.Summary
    assert found.me is found
    _, anew, _ = program(*ARGUMENTS)
    assert anew == both
    assert anew is not both


def test_one_rank_returns_what_cannot_be_copied() -> None:
    _, later = _program(returned_objects.without_a_copy)(*ARGUMENTS)
    assert list(later) == list(returned_objects.without_a_copy(*ARGUMENTS)[1])


def test_a_returned_object_is_freed_when_the_caller_forgets_it() -> None:
    program = _program(returned_objects.of_the_user)
    found = weakref.ref(program(*ARGUMENTS)[1])
    gc.collect()
    assert found() is None


def test_arrays_in_a_returned_object_are_its_own_memory() -> None:
    program = _program(returned_objects.rows)
    _, kept = program(*ARGUMENTS)
    before = copy.deepcopy(kept)
    kept["all"][0, 0] = 5.0
    program(returned_objects.X * 3.0, returned_objects.CODES)
    del program
    gc.collect()
    before["all"][0, 0] = 5.0
    check_same(kept, before)


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_ranks_get_objects_as_they_get_other_results(ranks: int, launch: Launch) -> None:
    said = launch(HERE / "returned_objects_on_ranks.py", ranks=ranks)
    assert said.stdout.splitlines().count("all is as in Python") == 1


def test_a_region_of_a_program_that_returns_an_object_is_listed() -> None:
    program = _program(returned_objects.beside_arrays, schedule={})
    lowering = program.lower(*ARGUMENTS)
    assert all(s.python in str(distspmd.explain(lowering)) for s in lowering.spaces if s.python)
    check_same(distspmd.compile(lowering, MPI.COMM_SELF)(*ARGUMENTS), program(*ARGUMENTS))


_DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, distspmd
from from_numpy import returned_objects
from from_numpy.outcomes import check_same

class Own:
    pass

def program(x, codes):
    made = Own()
    made.codes = sorted(set(codes.tolist()))
    return x * len(made.codes), made

x, codes = returned_objects.X, returned_objects.CODES
f = distspmd.program(returned_objects.beside_arrays, host="allow")
g = distspmd.program(program, host="allow")
h = distspmd.program(returned_objects.without_a_copy, host="allow")
with distspmd.ranks(2):
    check_same(f(x, codes), returned_objects.beside_arrays(x, codes))
    y, made = g(x, codes)
    print(type(made) is Own, made.codes)
    try:
        h(x, codes)
    except distspmd.errors.ProgramValueError as problem:
        print(problem)
"""


def test_a_driver_gets_the_objects_of_rank_0(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_DRIVER.format(tests=str(HERE.parent)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    first, second = done.stdout.splitlines() or [done.stderr, ""]
    assert first == f"True {sorted(set(returned_objects.CODES.tolist()))}", done.stderr
    assert second.startswith("without_a_copy: other processes cannot get 'later', a generator of")


def test_gradients_of_a_program_that_returns_an_object_are_refused() -> None:
    def program(x, codes):
        x.requires_grad_()
        seen = {}
        for c in codes:
            seen[int(c)] = 1
        loss = np.sum(x * x)
        loss.backward()
        return x.grad, seen

    with pytest.raises(UnsupportedProgram, match="gradients in a function without objects of Py"):
        _program(program)(*ARGUMENTS)
