"""The home of every container, and a plan for each redistribution that the homes make necessary.

Both passes decide and leave the SDFG as it is: what cannot be planned is refused before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from distspmd.analysis.uses import Use
from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.errors import NoSolver, ScheduleError
from distspmd.passes.compilation import Compilation
from distspmd.passes.windows import Windows, windows_of
from distspmd.placement.homes import moves, stores
from distspmd.placement.propagation import Tiled
from distspmd.planning.select import Solution, select_plan
from distspmd.plans.redistribution import Redistribution
from distspmd.runtime.calls.form import call_form_of


@dataclass(frozen=True)
class ChooseHomes:
    """One layout for each container, in which it lives between its uses."""

    name: str = "choose-homes"

    def apply(self, compilation: Compilation) -> None:
        """Choose by the traffic that a layout causes, what the schedule does not say.

        Raises:
            ScheduleError: a home that the schedule gives is of no array, or on ranks that no space
                has, or no array fits into it.
        """
        uses_of = _uses_of_containers(compilation.tiled)
        places = getattr(compilation.schedule, "places", {})
        for name, home in compilation.given_homes.items():
            place = places.get(f"home of {name}", "the schedule")
            if name not in uses_of:
                raise ScheduleError(
                    f"{place}: there is no array {name!r} that iteration spaces touch. Leave its "
                    "home out."
                )
            if home.mesh.size > compilation.ranks:
                raise ScheduleError(
                    f"{place}: {name!r} lives on {home.mesh.size} ranks, but iteration spaces run "
                    f"on {compilation.ranks}. Write a layout on so many ranks, or leave it out."
                )
        with unchanged_control_flow():
            compilation.homes = {
                name: compilation.choose_home(name, uses, compilation.ranks)
                for name, uses in uses_of.items()
            }
        compilation.dtypes = {name: compilation.dtype(name) for name in compilation.homes}
        compilation.call_form = call_form_of(compilation.sdfg)


@dataclass(frozen=True)
class PlanMoves:
    """A plan for each redistribution between the homes and the uses."""

    name: str = "plan-moves"

    def apply(self, compilation: Compilation) -> None:
        """Ask the solvers.

        Raises:
            NoSolver: all refuse; the message has the source line of the first use.
        """
        solutions = compilation.solutions
        for name, home in compilation.homes.items():
            for _, move in moves(home, compilation.dtypes[name]):
                if move in solutions:
                    continue
                try:
                    solutions[move] = _planned(compilation, move)
                except NoSolver as error:
                    where = home.uses[0].space.where
                    raise NoSolver(f"{where}: {name!r}: {error}") from None
            for use in home.uses:
                for move in stores(use, home, compilation.dtypes[name]):
                    if (found := windows_of(use, move)) and _plan_windows(compilation, found):
                        compilation.windows[use, move] = found


def _plan_windows(compilation: Compilation, windows: Windows) -> bool:
    """Plan the parts of a move; whether there is a plan for each."""
    try:
        found = {move: _planned(compilation, move) for move in windows.moves}
    except NoSolver:
        return False
    compilation.solutions.update(found)
    return True


def _planned(compilation: Compilation, move: Redistribution) -> Solution:
    return select_plan(
        move, compilation.solvers, compilation.machine, in_order=compilation.deterministic
    )


def _uses_of_containers(tiled: Mapping[str, Tiled]) -> dict[str, list[Use]]:
    """Uses of each container, in program order."""
    found: dict[str, list[Use]] = {}
    for use in (use for space in tiled.values() for use in space.uses):
        found.setdefault(use.data, []).append(use)
    return found
