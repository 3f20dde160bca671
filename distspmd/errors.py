"""The tree of errors: each says what was asked, what was found, and what to write instead."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

import numpy as np

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

__all__ = [
    "ArgumentError",
    "CacheError",
    "CheckError",
    "CompilationError",
    "DeviceError",
    "DisagreementError",
    "DistSPMDError",
    "LaunchError",
    "LayoutError",
    "MeshError",
    "MissingResultError",
    "NoAssignment",
    "NoSchedule",
    "NoSolver",
    "NothingSplit",
    "PlanError",
    "PluginError",
    "ProgramArithmeticError",
    "ProgramAssertionError",
    "ProgramAttributeError",
    "ProgramError",
    "ProgramIndexError",
    "ProgramKeyError",
    "ProgramLinAlgError",
    "ProgramNameError",
    "ProgramOverflowError",
    "ProgramRuntimeError",
    "ProgramTypeError",
    "ProgramUnboundLocalError",
    "ProgramValueError",
    "ProgramWarning",
    "ProgramZeroDivisionError",
    "SavedError",
    "ScheduleError",
    "ScheduleWarning",
    "ToolchainError",
    "UnsupportedProgram",
]


class DistSPMDError(Exception):
    """Root of every error that distspmd raises on purpose."""


class MeshError(DistSPMDError):
    """A mesh that cannot exist: no axis, a size below one, a name used twice."""


class LayoutError(DistSPMDError):
    """A layout that cannot be read, or does not fit its mesh or its array."""


class PlanError(DistSPMDError):
    """A plan that does not do what its redistribution asks; names the first rank and box."""


class NoSolver(DistSPMDError):
    """No solver answers a redistribution with a plan; says why each refused."""


class PluginError(DistSPMDError):
    """A solver of another distribution that cannot be used; names the distribution."""


class ScheduleError(DistSPMDError):
    """A schedule that names an unknown iteration space or gives it an impossible grid."""


class NothingSplit(ScheduleError):
    """Patterns split nothing of a program: it has none of their dimensions."""


class NoSchedule(ScheduleError):
    """No schedule keeps all ranks within the memory; says the least that would do, and for what.

    Attributes:
        least: bytes of that.
    """

    def __init__(self, message: str, least: int = 0) -> None:
        super().__init__(message)
        self.least = least


class ScheduleWarning(UserWarning):
    """A schedule that leaves ranks idle; says of which space, and what to write instead."""


class ProgramWarning(UserWarning):
    """An SDFG that may do something else than the function that it was parsed from; says where."""


class NoAssignment(DistSPMDError):
    """No choices meet all limits; says which limit is exceeded, and the least that would do."""


class UnsupportedProgram(DistSPMDError):
    """A program that cannot be lowered; names the source line and what to change."""


class ArgumentError(DistSPMDError):
    """A missing, misshapen or mistyped argument; raised on all ranks before work starts."""


class MissingResultError(ArgumentError):
    """A result is used on a rank that has not got it; says where it is, and what to write.

    Attributes:
        first: the first of the ranks that have not got it; it tells of the error for all of them.
    """

    def __init__(self, message: str, first: int = 0) -> None:
        super().__init__(message)
        self.first = first


class DisagreementError(DistSPMDError):
    """Ranks call different things, or one has ended; on all ranks, with who called what."""


class CompilationError(DistSPMDError):
    """The generated program did not compile; carries the compiler's message."""


class ToolchainError(DistSPMDError):
    """A compiler, an MPI or a BLAS is missing or does not work; says what to install."""


class DeviceError(DistSPMDError):
    """A device refuses what it is told to do, or has no memory; with what it said."""


class CacheError(DistSPMDError):
    """A folder for files cannot be used, or others could put code into it; says which, and why."""


class SavedError(DistSPMDError):
    """A file that is no lowered program, or not of this version; or what cannot become one."""


class LaunchError(DistSPMDError):
    """Ranks could not be started, died, or ran past their time."""


class CheckError(DistSPMDError):
    """A lowered program that computes something else than the original; names the first index."""


class ProgramError(DistSPMDError):
    """An error that the program itself raises while it runs; on all ranks, with the source line."""


class ProgramAssertionError(ProgramError, AssertionError):
    """An assertion of the program that is false."""


class ProgramValueError(ProgramError, ValueError):
    """A ``ValueError`` of the program."""


class ProgramTypeError(ProgramError, TypeError):
    """A ``TypeError`` of the program."""


class ProgramUnboundLocalError(ProgramError, UnboundLocalError):
    """An ``UnboundLocalError`` of the program: a variable that no statement has bound is read."""


class ProgramNameError(ProgramError, NameError):
    """A program reads a name that nothing has."""


class ProgramAttributeError(ProgramError, AttributeError):
    """A program asks for an attribute that is not there."""


class ProgramIndexError(ProgramError, IndexError):
    """An ``IndexError`` of the program, or an index in data that is out of range."""


class ProgramKeyError(ProgramError, KeyError):
    """A ``KeyError`` of the program."""

    __str__ = Exception.__str__  # a KeyError shows its message as Python writes texts


class ProgramRuntimeError(ProgramError, RuntimeError):
    """A ``RuntimeError`` of the program."""


class ProgramArithmeticError(ProgramError, ArithmeticError):
    """An ``ArithmeticError`` of the program."""


class ProgramOverflowError(ProgramError, OverflowError):
    """An ``OverflowError`` of the program."""


class ProgramZeroDivisionError(ProgramError, ZeroDivisionError):
    """A ``ZeroDivisionError`` of the program."""


class ProgramLinAlgError(ProgramError, np.linalg.LinAlgError):
    """A ``numpy.linalg.LinAlgError``: a singular matrix, or values that do not converge."""


NOTED = (
    ("IndexError", "index {} is out of bounds for a dimension of {}"),
    ("ZeroDivisionError", "division by zero"),
    ("ValueError", "math domain error"),
    ("OverflowError", "math range error"),
    ("ValueError", "a negative number to a power that is not whole; in Python it is complex"),
    ("ValueError", "cannot convert float NaN to integer"),
    ("OverflowError", "cannot convert float infinity, or one of more than 64 bits, to integer"),
    ("OverflowError", "Numerical result out of range"),
    (
        "TypeError",
        "complex numbers were found, as eigenvalues or roots, and are used where the program needs "
        "real ones; write np.linalg.eig(a.astype(complex)), or take np.real(...) of them",
    ),
    (
        "LinAlgError",
        "LAPACK reports {}: a matrix is singular, or not positive definite, or what is sought of "
        "it does not converge",
    ),
)
"""Errors that a run notes of an element and goes on: their names, and what they say of two numbers.

Kernels know them by their places.
"""


NOT_TAKEN = (
    "; the handler of all errors around it does not run, since it may stand between statements "
    "that go on: ask with an if before, or name the error in the handler"
)
"""What is said of an error that a handler would take which the program does not read."""

OF_LAPACK = len(NOTED) - 1
"""The place of what LAPACK reports."""


def error_of_program(kind: str) -> type[ProgramError]:
    """The error that stands for one of Python or NumPy, by its name."""
    found: type[ProgramError] = globals().get(f"Program{kind}", ProgramError)
    assert issubclass(found, ProgramError)
    known: type[ProgramError] = found
    return known


def listed(names: Sequence[str], most: int = 4) -> str:
    """Some names as a sentence begins with them: the first few, and how many more there are."""
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def shorten(text: str, most: int = 10_000) -> str:
    """A text whose middle is left out, and said to be so, if it has more characters than ``most``.

    Ranks pass on what they print over a few pipes: megabytes keep them alive for minutes.
    """
    if len(text) <= most:
        return text
    head, tail = text[: most // 2], text[-(most // 2) :]
    return f"{head}\n[... {len(text) - 2 * (most // 2):,} characters left out ...]\n{tail}"


def describe(value: object, most: int = 60) -> str:
    """What was given, for a message: its text and type, or its type alone where that is long."""
    try:
        text = repr(value)
    except Exception:  # of a class of the user
        text = ""
    kind = type(value).__name__
    return f"{text} ({kind})" if text and len(text) <= most else f"a {kind}"


_OF_OTHER_TYPES = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(TypeError, ValueError),
)


def refuses_as(
    kind: type[DistSPMDError],
) -> Callable[[Callable[_Arguments, _Result]], Callable[_Arguments, _Result]]:
    """Let a function that is given what it cannot take say so with an error of ours."""

    def decorate(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
        @functools.wraps(function)
        def called(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
            try:
                return function(*arguments, **named)
            except _OF_OTHER_TYPES as error:
                given = [describe(value) for value in (*arguments, *named.values())]
                raise kind(
                    f"{function.__qualname__} cannot take {', '.join(given)}: "
                    f"{type(error).__name__}: {shorten(str(error), 200)}"
                ) from error

        return called

    return decorate
