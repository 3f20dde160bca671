"""Errors that reach all ranks: at once, whatever the exception is, and however long its message."""

from __future__ import annotations

import threading
import traceback

import pytest
from conftest import Launch

from distspmd.errors import (
    ArgumentError,
    DistSPMDError,
    LayoutError,
    UnsupportedProgram,
    shorten,
)
from distspmd.layouts import Layout, Mesh
from distspmd.runtime.tracebacks import report
from distspmd.runtime.watch.errors_together import pack_error, unpack_error


class OfTwo(Exception):
    """One that is not made of a text."""

    def __init__(self, what: str, where: int) -> None:
        super().__init__(f"{what} at {where}")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (ArgumentError("no x"), ArgumentError, "rank 3: no x"),
        (FileNotFoundError(2, "No such file", "f"), FileNotFoundError, "rank 3: .*'f'"),
        (OfTwo("missing", 7), DistSPMDError, "rank 3: OfTwo: missing at 7"),
        (UnicodeDecodeError("ascii", b"\xff", 0, 1, "why"), DistSPMDError, "rank 3: UnicodeDec.*"),
        (ArgumentError("held", threading.Lock()), ArgumentError, "rank 3: .*held.*"),
    ],
)
def test_an_error_of_one_rank_is_raised_on_another(
    error: Exception, kind: type[Exception], text: str
) -> None:
    other = unpack_error(3, pack_error(error))
    assert type(other) is kind
    with pytest.raises(kind, match=f"^{text}$"):
        raise other


def test_a_class_of_a_module_that_other_ranks_have_not_imported_travels_as_the_one_above_it() -> (
    None
):
    class Refusal(UnsupportedProgram):
        pass

    Refusal.__module__ = "distspmd.frontend.somewhere"
    assert pack_error(Refusal("no")) == (UnsupportedProgram, "no")


def test_an_exception_of_a_class_of_one_rank_alone_travels_as_text() -> None:
    class Local(Exception):
        pass

    assert pack_error(Local("here")) == (DistSPMDError, "Local: here")


def test_the_middle_of_a_long_text_is_left_out_and_that_is_told() -> None:
    assert shorten("x" * 10_000) == "x" * 10_000
    text = shorten("a" * 20_000 + "b" * 10_001)
    assert text == f"{'a' * 5000}\n[... 20,001 characters left out ...]\n{'b' * 5000}"
    assert pack_error(ArgumentError("c" * 30_000_000))[1].count("c") < 10_100


def test_no_line_of_a_long_message_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="c") as caught:
        raise ValueError("a\n" * 20_000 + "c")
    monkeypatch.setattr(traceback, "TracebackException", lambda *of: pytest.fail("looked"))
    text = report(caught.value)
    assert text.startswith("Traceback (most recent call last):\n  File ")
    assert "\nValueError: a\na\n" in text
    assert text.endswith("a\nc\n")
    assert len(text) < 12_000


def test_ranks_end_at_once_though_a_message_is_long(launch: Launch) -> None:
    code = """
from mpi4py import MPI
import distspmd
comm = MPI.COMM_WORLD
if comm.rank == 1:
    raise ValueError("begin" + "x" * 30_000_000 + "end")
comm.barrier()
"""
    done = launch(code, ranks=4, check=False)
    assert done.returncode not in (0, 124)
    assert "distspmd: rank 1 failed; ending all ranks." in done.stderr
    assert "ValueError: beginxxx" in done.stderr
    assert "xxxend" in done.stderr
    assert "characters left out" in done.stderr
    assert len(done.stderr) < 50_000


REFUSED = """
import numpy as np
import distspmd
from mpi4py import MPI

def f(x):
    return np.sort(x, kind=input())

x = np.ones((4, 4)) if MPI.COMM_WORLD.rank == 0 else None
distspmd.program(f)(x)
"""


def test_an_error_that_all_ranks_raise_is_told_once_with_the_lines_of_the_user(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = launch(REFUSED, ranks=3, check=False).stderr
    assert told.count("input is not covered") == told.count("Traceback") == 1
    assert told.count("distspmd: rank 0 failed; ending all ranks.") == 1
    assert "distspmd.program(f)(x)" in told
    assert "start_rank.py" not in told
    assert "mpi4py/run.py" not in told
    assert "agreement.py" not in told
    monkeypatch.setenv("DISTSPMD_TRACEBACK", "full")
    told = launch(REFUSED, ranks=3, check=False).stderr
    assert told.count("input is not covered") > 1
    assert "start_rank.py" in told
    assert "agreement.py" in told


@pytest.mark.parametrize(
    ("code", "message", "lines"),
    [
        ("import distspmd\ndef f(x)\n    pass", "SyntaxError: expected ':'", 0),
        ("import distspmd\nimport no_such_module", "No module named 'no_such_module'", 1),
        ("import no_such_module", "No module named 'no_such_module'", 1),
    ],
)
def test_a_file_that_cannot_be_read_has_the_traceback_of_its_user_alone(
    code: str, message: str, lines: int, launch: Launch
) -> None:
    told = launch(code, ranks=3, check=False).stderr
    assert told.count(message) == 1
    assert told.count("Traceback") == lines
    assert told.count("  File ") == 1


def test_errors_of_one_rank_are_told_by_it_however_others_end(launch: Launch) -> None:
    code = """
from mpi4py import MPI
import distspmd
if MPI.COMM_WORLD.rank == 1:
    import no_such_module
MPI.COMM_WORLD.barrier()
"""
    done = launch(code, ranks=2, check=False)
    assert done.returncode not in (0, 124)
    assert done.stderr.count("No module named 'no_such_module'") == 1


def test_causes_within_us_are_left_out_and_those_of_users_stay() -> None:
    def of_user() -> None:
        raise ValueError("mine")

    def refused() -> None:
        try:
            of_user()
        except ValueError as problem:
            raise UnsupportedProgram("not this") from problem

    with pytest.raises(UnsupportedProgram) as caught:
        refused()
    text = report(caught.value)
    assert "ValueError: mine" in text
    assert text.rstrip().endswith("UnsupportedProgram: not this")
    with pytest.raises(LayoutError) as inner:
        Layout.parse("[3{x}", Mesh(x=2))
    text = report(inner.value)
    assert "Layout.parse(" in text
    assert "distspmd/layouts" not in text
    with pytest.raises(ZeroDivisionError) as foreign:
        1 / 0  # noqa: B018
    assert report(foreign.value) == "".join(traceback.format_exception(foreign.value))
