"""A program is read until all that is refused of it, and that Python can run, is a region."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dace import SDFG

from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.frontend.from_numpy.arrays.transcript import (
    AsksForGradients,
    EndsHere,
    Fails,
    NeedsObject,
)
from distspmd.frontend.from_numpy.host.region_calls import (
    NeedsTrial,
    RegionRefusal,
    Result,
    TooMuchWork,
)
from distspmd.frontend.from_numpy.host.regions import RETURNED, WHOLE, Hosted
from distspmd.frontend.from_numpy.host.trials import CallFails, HasEffects, Wanted, is_said, show
from distspmd.frontend.from_numpy.host.work import Kinds

CHOICES = ("tell", "allow", "refuse")
_MOST = 100
"""Readings of a program, at most."""


@dataclass
class Hosting:
    """What of a program Python runs.

    Attributes:
        choice: what the user wants of regions, of :data:`CHOICES`.
        call: the function and the arguments of a call that is being made, if there is one.
        files: what Python runs of the functions of each file.
    """

    choice: str
    call: tuple[Callable[..., Any], Mapping[str, Any]] | None = None
    files: dict[str, Hosted] = field(default_factory=dict)

    def take(self, refusal: UnsupportedProgram) -> bool:
        """Have Python run what is refused; whether there is something more for it to run."""
        if isinstance(refusal, Fails | EndsHere | AsksForGradients):
            return False
        if self.call is None and not getattr(refusal, "is_of_python", False) and not self.files:
            return False
        for place in getattr(refusal, "places", ()):
            hosted = self.files.setdefault(place.file, Hosted())
            mark = (place.line, place.column)
            if hosted.marks.get(mark, 0) >= WHOLE:
                continue
            hosted.marks[mark] = hosted.marks.get(mark, 0) + 1
            kinds = hosted.kinds.setdefault(place.function, Kinds())
            kinds.shapes.update(place.shapes)
            kinds.objects |= place.objects
            kinds.others |= place.others
            return True
        return False

    def try_out(self, needed: NeedsTrial) -> None:
        """Find out the types of what a region gives, by a run.

        Raises:
            UnsupportedProgram: there is no call, or the run does not show it.
        """
        if self.call is None:
            raise UnsupportedProgram(needed.message)
        region, hosted = needed.region, self.files[needed.file]
        missing = [n for n in region.results if n not in region.annotations and n[:2] != "__"]
        function = region.function
        wanted = Wanted(
            function.__code__.co_filename,
            region.name,
            *region.lines,
            missing,
            RETURNED if RETURNED in region.results else "",
            region.parts,
        )
        try:
            show(*self.call, wanted)
        except HasEffects as effect:
            raise UnsupportedProgram(f"{needed.message} (not here: {effect})") from None
        for name, value in wanted.found.items():
            hosted.shown[region.key, name] = Result.like(value, is_returned=name == RETURNED)
        if needed.name not in wanted.found:
            raise UnsupportedProgram(f"{needed.message} (in this call it gets no value)")


_CALLS: list[tuple[Callable[..., Any], Mapping[str, Any]]] = []


@contextlib.contextmanager
def of_a_call(function: Callable[..., Any], given: Mapping[str, Any]) -> Iterator[None]:
    """Read a program for a call: these are its arguments, by which types can be found out."""
    _CALLS.append((function, given))
    try:
        yield
    finally:
        _CALLS.pop()


def read_with_regions(read: Callable[[Hosting], SDFG], choice: str) -> SDFG:
    """The SDFG of a program.

    Args:
        read: reads it with what Python runs.
        choice: what the user wants of regions.

    Raises:
        ArgumentError: no such choice.
        UnsupportedProgram: what neither is covered nor can be run by Python; or what may not be.
    """
    if choice not in CHOICES:
        raise ArgumentError(f"host={choice!r}; it is 'tell', 'allow' or 'refuse'.")
    return _read(read, Hosting(choice, _CALLS[-1] if _CALLS else None))


def _try_out(hosting: Hosting, needed: NeedsTrial, first: UnsupportedProgram | None) -> None:
    """Find out the types of what a region gives.

    Raises:
        UnsupportedProgram: they are not to be found out; with what was refused first.
        CallFails: the function raises an error.
    """
    try:
        hosting.try_out(needed)
    except UnsupportedProgram as problem:
        told = str(problem) if first is None else f"{first}\n{problem}"
        raise UnsupportedProgram(told) from first
    except Exception as problem:
        if is_said(problem) or first is None:
            raise CallFails(problem) from problem
        raise first from problem


def _read(read: Callable[[Hosting], SDFG], hosting: Hosting) -> SDFG:
    first: UnsupportedProgram | None = None
    for _ in range(_MOST):
        try:
            return read(hosting)
        except NeedsObject as needed:  # noqa: PERF203 (a reading takes longer)
            hosting.files.setdefault(needed.file, Hosted()).opaque.add((needed.line, needed.name))
        except NeedsTrial as needed:
            _try_out(hosting, needed, first)
        except TooMuchWork as refusal:
            told = f"{first}\n{refusal}" if first is not None else str(refusal)
            raise TooMuchWork(told) from first
        except UnsupportedProgram as refusal:
            first = first or refusal
            if hosting.choice == "refuse" or not hosting.take(refusal):
                if refusal is not first and isinstance(refusal, RegionRefusal):
                    raise UnsupportedProgram(f"{first}\n{refusal}") from None
                raise first from None
    assert first is not None
    raise first
