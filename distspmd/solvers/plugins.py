"""Solvers of other distributions, which register them as entry points; docs/plugins.md has one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distspmd.errors import PlanError, PluginError, describe
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal, Solver, is_solver
from distspmd.solvers import SOLVERS

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "distspmd.solvers"
"""The group of entry points by which a distribution registers its solvers."""


@dataclass(frozen=True)
class Plugin:
    """A solver of another distribution: what it answers is proved before it is used."""

    solver: Solver
    name: str
    distribution: str

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """What the solver answers.

        Raises:
            PluginError: it raises, or answers neither a refusal nor a plan that is right.
        """
        try:
            answer = self.solver.plan(redistribution)
        except Exception as error:  # of any class: it is not ours
            raise self._error(f"raises {_said(error)} for {redistribution}") from error
        if fault := self._fault(answer, redistribution):
            raise self._error(f"{fault}, asked for {redistribution}")
        return answer

    def _fault(self, answer: Any, redistribution: Redistribution) -> str:
        """What is wrong with an answer, if anything is."""
        from distspmd.plans.verifier import verify  # ranks without plugins prove nothing

        if not isinstance(answer, (Plan, Refusal)):
            return f"answers {describe(answer)}, which is no Plan and no Refusal"
        if answer.solver != self.name:
            return f"answers what says that {answer.solver!r} made it"
        if isinstance(answer, Refusal):
            return ""
        if answer.redistribution != redistribution:
            return f"answers a plan that is for another redistribution, {answer.redistribution}"
        try:
            verify(answer)
        except PlanError as error:
            return f"answers a plan that is wrong: {str(error).rstrip('.')}"
        return ""

    def _error(self, what: str) -> PluginError:
        return _error(f"{self.name!r} of {self.distribution}", what, self.distribution)


def known_solvers() -> tuple[Solver, ...]:
    """Ours, then those of plugins; who needs ours alone takes ``SOLVERS``, which reads no files.

    Raises:
        PluginError: as of :func:`installed`.
    """
    return (*SOLVERS, *installed())


@functools.cache
def installed() -> tuple[Plugin, ...]:
    """The solvers that other distributions register, in the same order on all ranks.

    Raises:
        PluginError: one that cannot be imported, is no solver, or has a name that is taken.
    """
    from importlib import metadata  # 5 ms, and as much to read the names of all distributions

    owners = {solver.name: "distspmd" for solver in SOLVERS}
    found = [(_distribution(each), each) for each in metadata.entry_points(group=GROUP)]
    found.sort(key=lambda each: (each[0], each[1].name))
    return tuple(_loaded(found, owners))


def _loaded(found: list[tuple[str, EntryPoint]], owners: dict[str, str]) -> Iterator[Plugin]:
    """Import entry points, and note whose each name is."""
    for distribution, entry in found:
        named = f"{entry.name!r} of {distribution}"
        try:
            solver = entry.load()
        except Exception as error:  # whatever a module of others raises
            what = f"({entry.value}) cannot be imported: {_said(error)}"
            raise _error(named, what, distribution) from error
        if not is_solver(solver):
            what = f"({entry.value}) is no solver: {describe(solver)}"
            if isinstance(solver, type):
                what += f". Register an object, such as {entry.name} = {solver.__name__}()"
            raise _error(named, what, distribution)
        if solver.name in owners:
            what = f"is called {solver.name!r}, which one of {owners[solver.name]} has"
            raise _error(named, what, distribution)
        owners[solver.name] = distribution
        yield Plugin(solver, solver.name, distribution)


def _distribution(entry: EntryPoint) -> str:
    """Name and version of the distribution that an entry point comes from."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"


def _error(named: str, what: str, distribution: str) -> PluginError:
    remove = f"pip uninstall {distribution.partition(' ')[0]}"
    return PluginError(f"the solver {named} {what}.\nRepair it, or leave it out: {remove}")


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
