"""Assertions, errors that a program raises, and what it prints: on all ranks as in Python."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ProgramError, UnsupportedProgram, error_of_program
from distspmd.execution.messages import Messages
from distspmd.frontend import numpy_program


@pytest.mark.parametrize("ranks", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_programs_print_and_raise_what_python_does(launch: Any, ranks: int) -> None:
    done = launch(Path(__file__).parent / "messages.py", ranks=ranks)
    assert done.stdout.endswith("all as in Python\n")


def test_errors_of_programs_are_pythons_too() -> None:
    assert issubclass(error_of_program("LinAlgError"), np.linalg.LinAlgError)
    assert issubclass(error_of_program("AssertionError"), AssertionError)
    assert error_of_program("Nothing").__name__ == "ProgramError"


def test_a_message_that_cannot_be_formatted_ends_the_program() -> None:
    messages = Messages()
    assert messages._told(b'{"kind": "print", "parts": [{"value": 0}]}', None, None) == 1
    assert "a message of the program" in str(messages.take_error())
    assert messages.take_error() is None


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("print(np.outer(x, x))", "more than 1000000 elements; print a part"),
        ("print(x[0], file=np)", "print into a file"),
        ("raise ValueError('always')", "the program raises here"),
        ("sys.exit(1)", "the program ends here"),
        ("assert len(x) == 3, 'three'", "the assertion is false: three"),
    ],
)
def test_what_cannot_be_told_is_refused(tmp_path: Path, lines: str, message: str) -> None:
    file = tmp_path / "program_with_messages.py"
    file.write_text(
        f"import sys; import numpy as np\ndef program(x):\n    {lines}\n    return x + 1\n"
    )
    space: dict[str, Any] = {}
    exec(compile(file.read_text(), file, "exec"), space)
    with pytest.raises(UnsupportedProgram, match=message) as refused:
        numpy_program(space["program"], np.zeros(2000))
    assert "program_with_messages.py:3" in str(refused.value)


@pytest.mark.usefixtures("unoptimised")
def test_exits_end_the_program_and_not_who_reads_it() -> None:
    def fail(told: str) -> None:
        print(told)
        sys.exit(told)

    def checked(x: Any) -> Any:
        if x[0] < 0:
            fail("it is negative")
        return x * 2

    sdfg = numpy_program(checked, np.zeros(3))
    sdfg = distspmd.lower(sdfg, {}).sdfg
    with distspmd.compile(sdfg, MPI.COMM_SELF) as program:
        assert (program(np.ones(3)) == 2).all()
        with pytest.raises(ProgramError, match=r"SystemExit: .*it is negative"):
            program(-np.ones(3))


@pytest.mark.usefixtures("unoptimised")
def test_python_writes_logs_that_settings_let_through(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("of_a_module")

    def program(x: Any) -> Any:
        logging.info("never written")
        log.debug("never, %g", x[0])
        total = x.sum()
        if total > 2:
            logging.error("large: %s", "the sum")
        else:
            logging.error("small")
        log.warning(f"{total:.1f} in all")
        return total

    sdfg = numpy_program(program, np.ones(3))
    assert len([s for s in distspmd.iteration_spaces(sdfg) if "_line" in s.label]) == 1
    caplog.clear()
    with distspmd.compile(distspmd.lower(sdfg), MPI.COMM_SELF) as made:
        assert made(x=np.ones(3)) == 3
    own = [r for r in caplog.records if r.name in ("root", "of_a_module")]
    assert [r.getMessage() for r in own] == ["large: the sum", "3.0 in all"]
