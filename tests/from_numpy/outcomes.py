"""What becomes of a program: right, refused, wrong or foreign; and how results are compared."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from distspmd.checking.compare import compare, tolerance_of
from distspmd.errors import (
    CheckError,
    CompilationError,
    DisagreementError,
    DistSPMDError,
    LaunchError,
    PlanError,
    ToolchainError,
)

NO_LINE = "(no source line) "
NOT_SPLIT = "not split: "
RIGHT, REFUSED, WRONG, FOREIGN = KINDS = ("right", "refused", "wrong", "foreign")

_OF_FAULTS = (
    CheckError,
    CompilationError,
    DisagreementError,
    LaunchError,
    PlanError,
    ToolchainError,
)
"""Errors of ours that are no answer to a program: it should have been refused, or work."""


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        name: of the case.
        kind: one of KINDS.
        reason: what was refused, what differs, or the foreign error; of what is right, a remark.
        stage: where it ended: parse, lower, compile or run.
        seconds: of all its stages.
        uncompared: why values are not compared, where they are not.
    """

    name: str
    kind: str
    reason: str = ""
    stage: str = ""
    seconds: float = 0.0
    uncompared: str = ""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def has_source_line(message: str) -> bool:
    """Whether a message names a line of a file."""
    return re.search(r"\w+\.py\"?(:|, line )\d+", message) is not None


def outcome_of(name: str, stage: str, error: BaseException) -> Outcome:
    """An exception as an outcome: a refusal is an error of ours before anything is compiled."""
    text = str(error)
    ours = isinstance(error, DistSPMDError) and not isinstance(error, _OF_FAULTS)
    if ours and stage in ("parse", "lower"):
        remark = "" if has_source_line(text) else NO_LINE
        return Outcome(name, REFUSED, remark + text, stage)
    return Outcome(name, FOREIGN, f"{type(error).__name__}: {text}", stage)


def listed(result: Any) -> Any:
    """A result as it is compared: of what can be read once there is a list."""
    return list(result) if isinstance(result, Iterator) else result


def differences(
    found: Any,
    wanted: Any,
    where: str = "result",
    tolerance: float = 0.0,
    *,
    kinds: bool = False,
    rounding: Mapping[str, float] = {},
) -> Iterator[str]:
    """In what a result differs from NumPy's: structure, dtype, shape and values.

    Tuples and lists may stand for each other. A number of NumPy's is an array of shape (). One of
    NumPy's may stand for one of Python's, as it does where the run decides which of both it is.

    Args:
        found: what there is.
        wanted: what NumPy gives.
        where: the value is, in words.
        tolerance: of floating-point values relative to the largest, if their types allow no more.
        kinds: whether numbers of Python have to be such.
        rounding: larger tolerances, by where a value is.
    """
    inner: dict[str, Any] = {"kinds": kinds, "rounding": rounding}
    found, wanted = _attributes(found, wanted)
    if isinstance(wanted, tuple | list):
        if not isinstance(found, tuple | list) or len(found) != len(wanted):
            yield f"{where}: {_brief(found)} for {len(wanted)} values"
            return
        for n, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from differences(one, other, f"{where}[{n}]", tolerance, **inner)
    elif isinstance(wanted, Mapping):
        if not isinstance(found, Mapping) or list(found) != list(wanted):
            yield f"{where}: {_brief(found)} for the keys {list(wanted)}"
            return
        for key, value in wanted.items():
            yield from differences(found[key], value, f"{where}[{key!r}]", tolerance, **inner)
    elif wanted is None or isinstance(wanted, str):
        if found != wanted:
            yield f"{where}: {_brief(found)} for {_brief(wanted)}"
    else:
        if is_python(found) > is_python(wanted) or (kinds and is_python(found) < is_python(wanted)):
            yield f"{where}: {told_kind(is_python(found))} for {told_kind(is_python(wanted))}"
        most = max(tolerance, rounding.get(where, 0.0))
        yield from _array_differences(found, wanted, where, most)


def _attributes(found: Any, wanted: Any) -> tuple[Any, Any]:
    """What two objects of one class have; other values as they are."""
    if not _is_object(wanted) or type(found) is not type(wanted):
        return found, wanted
    return vars(found), vars(wanted)


def _is_object(value: Any) -> bool:
    """Whether a value is an object with attributes, and no array or number."""
    return hasattr(value, "__dict__") and not isinstance(value, np.ndarray | np.generic | type)


def _array_differences(found: Any, wanted: Any, where: str, tolerance: float) -> Iterator[str]:
    want = np.asarray(wanted)
    if found is None or isinstance(found, tuple | list | Mapping):
        yield f"{where}: {_brief(found)} for {want.dtype}{list(want.shape)}"
        return
    have = np.asarray(found)
    if have.dtype != want.dtype:
        yield f"{where}: dtype {have.dtype} for {want.dtype}"
    if have.shape != want.shape:
        yield f"{where}: shape {list(have.shape)} for {list(want.shape)}"
        if not have.size == want.size == 1:
            return
        have = have.reshape(want.shape)
    if have.dtype.kind not in "biufc" or want.dtype.kind not in "biufc":
        if not np.array_equal(have, want):
            yield f"{where}: {_brief(found)} for {_brief(wanted)}"
        return
    allowed = max(tolerance, tolerance_of(want.dtype), tolerance_of(have.dtype))
    compared = compare(where, have, want, allowed)
    if compared.first is not None:
        yield str(compared)


def is_python(value: Any) -> bool:
    """Whether a value is a number of Python, and not one of NumPy."""
    return isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic)


def told_kind(is_of_python: bool) -> str:
    """What differs, where numbers of Python and of NumPy do."""
    return "a number of Python" if is_of_python else "a value of NumPy"


def _brief(value: Any) -> str:
    text = f"{type(value).__name__} {value!r}".replace("\n", " ")
    return text if len(text) < 80 else f"{text[:77]}..."


def as_table(outcomes: list[Outcome], width: int = 150) -> str:
    """A line for each case, then the counts."""
    longest = max((len(each.name) for each in outcomes), default=0)
    lines = []
    for each in outcomes:
        reason = " ".join(each.reason.split())
        head = f"{each.name:{longest}}  {each.kind:8}{each.stage:8}{each.seconds:6.1f}  "
        lines.append(f"{head}{reason}"[:width] if width else f"{head}{reason}")
    return "\n".join([*lines, "", counts(outcomes)])


def counts(outcomes: list[Outcome]) -> str:
    """How many there are of each kind, and of refusals those that name no source line."""
    found = {kind: sum(each.kind == kind for each in outcomes) for kind in KINDS}
    text = ", ".join(f"{number} {kind}" for kind, number in found.items())
    nowhere = sum(NO_LINE in each.reason for each in outcomes)
    right = [each for each in outcomes if each.kind == RIGHT]
    unsplit = sum(each.reason.startswith(NOT_SPLIT) for each in right)
    unseen = sum(bool(each.uncompared) for each in right)
    return (
        f"{len(outcomes)} cases: {text}; {nowhere} refusals name no source line; "
        f"{unsplit} of the right ones run only where some spaces are not split"
        + (f"; of {unseen} the values are not compared" if unseen else "")
    )


def check_same(found: Any, expected: Any) -> None:
    """Assert that two results are of the same types, with the same numbers up to their rounding."""
    assert type(found) is type(expected), (found, expected)
    if isinstance(expected, dict):
        assert [*found] == [*expected]
        check_same([*found.values()], [*expected.values()])
    elif isinstance(expected, set | str):
        assert found == expected
    elif isinstance(expected, tuple | list | deque):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            check_same(one, other)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12)
