"""How long a lowered program will take on a machine, without running it: also on absent ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from distspmd.errors import ArgumentError, ScheduleError, describe
from distspmd.lowering import Lowering, lowering_of
from distspmd.plans.cost import cost
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.tables import Table, as_html, as_text, shorten

_LAYOUT = 60
"""Letters of a move that are shown."""


@dataclass(frozen=True)
class Prediction:
    """Seconds of a run by part; prints as tables, also in Jupyter.

    What runs as often as data decide is counted as loops of unknown length are.

    Attributes:
        spaces: seconds of the work of each iteration space, on the busiest rank.
        moves: what moves, how often, with its seconds.
    """

    spaces: tuple[tuple[str, float], ...]
    moves: tuple[tuple[str, str, int, float], ...]

    @property
    def compute(self) -> float:
        """Seconds of the work of all iteration spaces."""
        return sum(seconds for _, seconds in self.spaces)

    @property
    def communication(self) -> float:
        """Seconds of all that moves."""
        return sum(seconds for *_, seconds in self.moves)

    @property
    def seconds(self) -> float:
        """Of a run."""
        return self.compute + self.communication

    def _tables(self) -> list[Table]:
        totals = (
            ("work", f"{self.compute:.3e}"),
            ("communication", f"{self.communication:.3e}"),
            ("a run", f"{self.seconds:.3e}"),
        )
        spaces = tuple((name, f"{seconds:.1e}") for name, seconds in self.spaces)
        moves = tuple(
            (data, shorten(how, _LAYOUT), f"{times:,}", f"{seconds:.1e}")
            for data, how, times, seconds in self.moves
        )
        return [
            Table("Predicted seconds", ("", "s"), totals),
            Table("Iteration spaces", ("space", "s"), spaces),
            Table("Communication", ("array", "from -> to", "times", "s"), moves),
        ]

    def __str__(self) -> str:
        return as_text(self._tables())

    def _repr_html_(self) -> str:
        return as_html(self._tables())


def predict(lowered: Any, machine: Machine | None = None) -> Prediction:
    """Predict the seconds of a run by part, by the model that :func:`distspmd.search` minimises.

    Args:
        lowered: what :func:`distspmd.lower` returned, or its SDFG.
        machine: what messages, bytes and operations cost; that of the lowering where left out.

    Raises:
        ScheduleError: it is not lowered, or its sizes are not known.
        ArgumentError: no machine.
    """
    if machine is not None and not isinstance(machine, Machine):
        raise ArgumentError(f"predict: machine={describe(machine)} is no distspmd.plans.Machine.")
    found = lowering_of(lowered)
    if not isinstance(found, Lowering):
        at = hasattr(found, "at")
        raise ScheduleError(
            "nothing is decided yet of a program with symbolic sizes. Predict it for some: "
            "distspmd.predict(lowering.at(N=100))."
            if at
            else f"there is nothing to predict: {type(lowered).__name__} is not lowered. Pass what "
            "distspmd.lower(...) returned."
        )
    model = machine or found.machine
    moves = []
    for memlet in found.memlets + found.fetches:
        times = HEURISTICS.unknown_loop if memlet.times is None else memlet.times
        if memlet.received is None:
            share = HEURISTICS.inspected_share if memlet.asked else 1.0
            once = share * cost(memlet.solution.plan, model).seconds
            seconds = times * (once + float(model.asking(memlet.elements)))
        else:
            seconds = model.passing(times, memlet.received)
        moves.append((memlet.data, memlet.layouts, times, float(seconds)))
    for rows in found.within_nodes:
        times = rows.times or HEURISTICS.unknown_loop
        moves.append((rows.data, rows.layouts, times, times * rows.seconds(model)))
    return Prediction(
        tuple((space.name, space.work.seconds(model)) for space in found.spaces), tuple(moves)
    )
