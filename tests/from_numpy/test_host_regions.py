"""Statements that are no array work: Python runs them, as regions of a compiled program."""

from __future__ import annotations

import copy
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Launch
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, ProgramValueError, UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime import notices
from from_numpy import hosted
from from_numpy.outcomes import check_same

HERE = Path(__file__).parent


def _program(function: Any, **options: Any) -> Any:
    return distspmd.program(function, comm=MPI.COMM_SELF, **{"host": "allow", **options})


@pytest.mark.parametrize("function", hosted.ARGUMENTS, ids=lambda f: f.__name__)
def test_regions_give_what_python_gives(function: Any) -> None:
    arguments = hosted.ARGUMENTS[function]
    changed = copy.deepcopy(arguments)
    expected = function(*changed)
    program = _program(function)
    for _ in range(2):
        own = copy.deepcopy(arguments)
        check_same(program(*own), expected)
        check_same(own, changed)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_regions_run_on_ranks(ranks: int, launch: Launch) -> None:
    said = launch(HERE / "hosted_on_ranks.py", ranks=ranks)
    assert said.stdout.splitlines().count("all is as in Python") == 1
    assert said.stdout.splitlines().count("new: 7") == 2  # in Python, and in the program
    assert said.stderr.count("run in Python on rank 0") == 1


def test_a_search_of_vertices_moves_nothing_between_ranks() -> None:
    sdfg = numpy_program(hosted.bfs, hosted.INDPTR, hosted.INDICES)
    assert len([s for s in distspmd.iteration_spaces(sdfg) if s.label.startswith("bfs_lines")]) == 1
    assert distspmd.explain(distspmd.lower(sdfg, ranks=2)).nbytes == 0


def test_what_python_runs_is_listed_with_the_bytes_that_it_gathers() -> None:
    def program(x, codes):
        y = np.sqrt(x) + 1.0
        seen = {}
        for v in y:
            seen[int(v)] = seen.get(int(v), 0) + 1
        return y * len(seen)

    x = np.linspace(1.0, 90.0, 64)
    sdfg = numpy_program(program, x, hosted.CODES)
    lowering = distspmd.lower(sdfg, {"y": (4,), "__return": (4,)})
    (lines,) = [s.python for s in lowering.spaces if s.python]
    found = distspmd.explain(lowering)
    row = next(line for line in str(found).splitlines() if lines in line)
    assert "rank 0" in row
    assert "408" in row  # 48 elements of the other ranks, and a number for each of these
    assert "Host spaces" in found._repr_html_()
    distspmd.verify(lowering)


def test_the_first_call_says_once_which_lines_python_runs(caplog: Any) -> None:
    notices._said.clear()
    with caplog.at_level(logging.INFO, logger="distspmd"):
        program = _program(hosted.words, host="tell")
        for _ in range(3):
            program(hosted.CODES)
    told = [r.getMessage() for r in caplog.records if "run in Python" in r.getMessage()]
    assert len(told) == 1
    assert told[0].startswith("words: lines 19-23 run in Python on rank 0: ")
    assert told[0].endswith(" % of the time")


def test_nothing_is_said_where_regions_are_allowed(caplog: Any) -> None:
    notices._said.clear()
    with caplog.at_level(logging.INFO, logger="distspmd"):
        _program(hosted.words)(hosted.CODES)
    assert not [r for r in caplog.records if "run in Python" in r.getMessage()]


def test_regions_can_be_refused() -> None:
    with pytest.raises(UnsupportedProgram, match="open is not covered"):
        _program(hosted.writing, host="refuse")(hosted.X, hosted.CODES)
    with pytest.raises(ArgumentError, match="host='never'; it is 'tell', 'allow' or 'refuse'"):
        numpy_program(hosted.words, hosted.CODES, host="never")


# -- types ----------------------------------------------------------------------------------------


def test_reading_a_program_runs_nothing_and_asks_for_annotations(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with pytest.raises(UnsupportedProgram, match=r"the type of .*total.* is not known: annotate"):
        numpy_program(hosted.writing, hosted.X, hosted.CODES, path)
    assert not Path(path).exists()
    numpy_program(hosted.writing_as_told, hosted.X, hosted.CODES, path)
    assert not Path(path).exists()


def test_what_a_trial_would_do_twice_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    with pytest.raises(UnsupportedProgram, match=r"(?s)annotate it .*it writes the file"):
        _program(hosted.writing)(hosted.X, hosted.CODES, path)
    assert not Path(path).exists()
    program = _program(hosted.writing_as_told)
    for _ in range(2):
        check_same(program(hosted.X, hosted.CODES, path), hosted.X * 3)
    assert Path(path).read_text() == "60\n60\n"


def test_random_numbers_are_drawn_once_and_lines_printed_once(capfd: Any) -> None:
    hosted.RANDOM = np.random.default_rng(11)
    expected = hosted.drawn(hosted.X, hosted.CODES)
    hosted.RANDOM = np.random.default_rng(11)
    check_same(_program(hosted.drawn)(hosted.X, hosted.CODES), expected)
    _program(hosted.printed)(hosted.X, hosted.CODES)
    assert capfd.readouterr().out.count("new: 7") == 1


def test_each_call_checks_the_types_that_the_first_one_has_shown() -> None:
    program = _program(hosted.of_other_types)
    check_same(program(hosted.X, hosted.CODES), hosted.of_other_types(hosted.X, hosted.CODES))
    message = r"^Python runs lines 2.*an array of the shape \(1,\), where"
    with pytest.raises(ProgramValueError, match=message):
        program(hosted.X, np.zeros_like(hosted.CODES))


# -- refusals -------------------------------------------------------------------------------------


def test_array_work_that_ranks_could_share_is_not_run_by_python() -> None:
    with pytest.raises(UnsupportedProgram, match="2,000,000 elements of array work that all ranks"):
        _program(hosted.with_array_work)(np.zeros(2_000_000), hosted.CODES)


def test_the_callers_objects_are_not_changed_on_rank_0_alone() -> None:
    with pytest.raises(UnsupportedProgram, match=r"table.*got from outside: the change would be"):
        _program(hosted.of_the_caller)(hosted.X, {"a": "b"})


def test_faults_of_shapes_stay_errors() -> None:
    with pytest.raises(UnsupportedProgram, match="operands could not be broadcast together"):
        _program(lambda x, y: x + y)(hosted.X, np.zeros(7))


# -- errors ---------------------------------------------------------------------------------------


def test_an_exception_has_the_lines_of_the_user() -> None:
    program = _program(hosted.raising)
    codes = np.arange(12)
    check_same(program(hosted.X, codes), hosted.raising(hosted.X, codes))
    with pytest.raises(hosted.Unknown, match="11 names") as raised:
        program(hosted.X, np.minimum(codes, 10))
    frame = raised.traceback[-1]
    assert Path(frame.path).name == "hosted.py"
    assert "raise Unknown" in str(frame.statement)
    check_same(program(hosted.X, codes), hosted.raising(hosted.X, codes))


# -- processes ------------------------------------------------------------------------------------

_DRIVER = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, distspmd
from from_numpy import hosted
f = distspmd.program(hosted.carried, host="allow")
with distspmd.ranks(2):
    y, best, counts = f(hosted.X, hosted.CODES)
expected = hosted.carried(hosted.X, hosted.CODES)
print(np.allclose(y, expected[0]), best == expected[1], counts == expected[2])
"""


def test_a_driver_gives_its_ranks_the_regions(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(_DRIVER.format(tests=str(HERE.parent)))
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert done.stdout == "True True True\n", done.stderr


_LOADED = """
import sys
sys.path.insert(0, {tests!r})
import numpy as np, distspmd
from mpi4py import MPI
codes = np.arange(60) % 9
print(distspmd.compile(distspmd.load({path!r}), MPI.COMM_SELF)(codes))
"""


def test_a_saved_program_has_its_regions(tmp_path: Path) -> None:
    path = str(tmp_path / "words")
    lowering = distspmd.lower(numpy_program(hosted.words, hosted.CODES), {})
    lowering.save(path)
    code = _LOADED.format(tests=str(HERE.parent), path=path)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout == "9\n", done.stderr


def shared(x, codes):
    seen = set()
    for c in codes:
        seen.add(int(c))
    part = x[1:] if len(seen) > 3 else x
    part[0] = 7.0
    return x * 2.0, part


def test_an_array_that_two_names_have_after_a_region_is_not_changed_in_silence() -> None:
    message = "'part' and 'x' are one array, or parts of one. Other lines change it in place"
    with pytest.raises(ProgramValueError, match=message):
        _program(shared)(np.arange(8.0), np.arange(5))
