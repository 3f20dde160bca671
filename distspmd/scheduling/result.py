"""What a search found: a schedule, what it costs, and how far from the best it can be at most."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from distspmd.charts import Bars, Chart, Line, as_svg
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.passes.deal_blocks import asked_by
from distspmd.schedule import Grid, OnMesh, Schedule
from distspmd.scheduling.candidates import coarsened
from distspmd.scheduling.columns import Columns
from distspmd.scheduling.container_choices import ChoiceCost, ContainerChoice
from distspmd.scheduling.footprints import Candidate, Tilings
from distspmd.scheduling.model import Model
from distspmd.scheduling.tiles import Tiles
from distspmd.tables import Table, as_html, as_text
from distspmd.wcsp.solver import Solution

LONGER = "to move its data would take longer"
"""Why nothing is split that could be."""
MOST_BARS = 40
"""Spaces that are drawn."""


@dataclass(frozen=True)
class Placed:
    """What was chosen for a space, and what stood next.

    Attributes:
        name: of the space.
        choice: parts of each parameter as text.
        seconds: of its work in a run.
        runner_up: the best other candidate, if nothing else changes.
        more: seconds that the program would take longer with it.
        held: bytes that live on the busiest rank as the space runs.
    """

    name: str
    choice: str
    seconds: float
    runner_up: str
    more: float
    held: int = 0


@dataclass(frozen=True)
class SearchResult:
    """A schedule that was searched for; prints as tables, also in Jupyter.

    Attributes:
        schedule: names all spaces; :func:`distspmd.lower` takes it.
        ranks: that were given; the schedule may need fewer.
        cost: predicted seconds of a run.
        bound: no schedule among the candidates takes fewer seconds, as the model has it.
        compute: seconds of the work of all spaces.
        communication: seconds of all that moves.
        nbytes: that all ranks receive in a run.
        peak: bytes that live on the busiest rank at once.
        spaces: what was chosen for each space.
        solver: that found it.
        why_whole: why no space is split, if none is.
        history: seconds of the search, with cost and bound.
        moving: seconds of what moves of each container.
        alone: predicted seconds of a run on one rank; None where spaces were given.
    """

    schedule: Schedule
    ranks: int
    cost: float
    bound: float
    compute: float
    communication: float
    nbytes: int
    peak: int
    spaces: tuple[Placed, ...]
    solver: str
    history: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)
    why_whole: str = ""
    moving: Mapping[str, float] = field(default_factory=dict, repr=False)
    alone: float | None = None

    @property
    def gap(self) -> float:
        """By which part of its cost it could be cheaper at most."""
        return max(0.0, (self.cost - self.bound) / self.cost) if self.cost else 0.0

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        said = (
            f"The schedule was searched for: predicted {self.cost:.1e} s a run, and no other "
            f"candidate takes less than {self.bound:.1e} s."
        )
        if self.is_split or self.ranks == 1:
            return said
        return f"{said} Nothing is split: {self.why_whole}."

    @property
    def used(self) -> int:
        """Ranks that the schedule needs."""
        asked = (a for a in self.schedule.values() if isinstance(a, OnMesh))
        return max((each.mesh.size for each in asked if each.split), default=1)

    @property
    def line(self) -> str:
        """What was found, in one line."""
        ranks = f"{self.ranks:,} rank{'s' * (self.ranks > 1)}"
        if not self.is_split:
            return f"searched: {ranks}, and one is predicted to be the fastest: {self.why_whole}"
        used = f", of which {self.used:,} are the fastest" if self.used < self.ranks else ""
        if not self.alone or not self.cost:
            return f"searched: {ranks}{used}, predicted {self.cost:.1e} s a run"
        return f"searched: {ranks}{used}, predicted {self.alone / self.cost:.1f}x of one rank"

    @property
    def reason(self) -> str:
        """Why no more is split."""
        if not self.is_split:
            return self.why_whole
        if self.used == self.ranks:
            return f"the search was for {self.ranks:,} ranks"
        return "more ranks are predicted to take longer"

    @property
    def is_split(self) -> bool:
        """Whether any space is shared by several ranks."""
        return any(isinstance(asked, OnMesh) and asked.split for asked in self.schedule.values())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schedule into a file that :func:`distspmd.lower` reads.

        Raises:
            ScheduleError: the file cannot be written.
        """
        self.schedule.save(path)

    def _tables(self) -> list[Table]:
        totals = (
            ("predicted seconds of a run", f"{self.cost:.3e}"),
            ("no schedule takes less than", f"{self.bound:.3e}"),
            ("gap", f"{self.gap:.2%}"),
            ("seconds of work", f"{self.compute:.3e}"),
            ("seconds of communication", f"{self.communication:.3e}"),
            ("bytes received by all ranks", f"{self.nbytes:,}"),
            ("bytes on the busiest rank at once", f"{self.peak:,}"),
        )
        rows = tuple(
            (
                p.name,
                p.choice,
                f"{p.seconds:.1e}",
                p.runner_up,
                f"+{p.more:.1e}" * bool(p.runner_up),
                f"{p.held:,}",
            )
            for p in self.spaces
        )
        head = ("space", "runs", "work, s", "next best", "costs", "memory, bytes")
        homes = tuple((name, str(home)) for name, home in self.schedule.homes.items())
        return [
            Table(f"A schedule for {self.ranks:,} rank{'s' * (self.ranks > 1)}", ("", ""), totals),
            Table("Iteration spaces", head, rows),
            *[Table("Homes that it gives", ("array", "layout"), homes)] * bool(homes),
        ]

    def drawing(self) -> str:
        """Charts as SVG: the search over time, memory over the program, and what spaces cost."""
        return as_svg([self._progress(), self._memory(), self._costs()], columns=1)

    def _memory(self) -> Chart:
        held = tuple((number + 1.0, float(p.held)) for number, p in enumerate(self.spaces))
        line = Line("bytes that live at once", held, is_stepped=True)
        title = "Memory of the busiest rank over the program"
        return Chart(title, "iteration spaces in their order", "bytes", (line,))

    def _progress(self) -> Chart:
        end = self.history[-1][0] if self.history else 0.0
        steps = [*self.history, (end * 1.05, self.cost, self.bound)]
        costs = tuple((at, cost) for at, cost, _ in steps if math.isfinite(cost))
        bounds = tuple((at, bound) for at, _, bound in steps if math.isfinite(bound))
        return Chart(
            "Cost, and what none can undercut",
            "seconds of the search",
            "predicted seconds of a run",
            (
                Line("cost", costs, colour=0, is_stepped=True),
                Line("bound", bounds, colour=1, is_dashed=True, is_stepped=True),
            ),
            begins_at_zero=False,
        )

    def _costs(self) -> Bars:
        dearest = sorted(self.spaces, key=lambda space: -(space.seconds + space.more))
        left = len(dearest) - MOST_BARS
        return Bars(
            "Iteration spaces" + f", all but the {left} cheapest" * (left > 0),
            "predicted seconds of a run",
            ("work", "what the next best choice would cost beside"),
            tuple((p.name, (p.seconds, p.more)) for p in dearest[:MOST_BARS]),
        )

    def __str__(self) -> str:
        return f"{as_text(self._tables())}\n{self.sentence}"

    def _repr_html_(self) -> str:
        told = f"<p>{html.escape(self.sentence)}</p>"
        return f"{as_html(self._tables())}{told}{self.drawing()}"


def found_on(model: Model, solution: Solution, ranks: int) -> SearchResult:
    """The answer of a solver as a schedule."""
    chosen = [int(choice) for choice in solution.choices]
    spaces, first = model.spaces, len(model.spaces)
    picked = [space.candidates[chosen[number]] for number, space in enumerate(spaces)]
    compute = sum(float(s.seconds[chosen[n]]) for n, s in enumerate(spaces))
    homes = model.cost_of(chosen)
    communication = sum(home.seconds for home in homes)
    mesh, splits = coarsened(model.mesh, [pick for pick in picked if isinstance(pick, tuple)])
    rest, loads = iter(splits), _loads(model, chosen, homes)
    schedule = {}
    for space, pick in zip(spaces, picked, strict=True):
        own = next(rest) if isinstance(pick, tuple) else pick
        if space.name in model.program.compilation.named:
            schedule[space.name] = _on_mesh(model, space.name, mesh, own)
    given = {
        home.name: _layout(home.container_choice, settled.tiles, mesh, model.mesh)
        for home, settled in zip(model.homes, homes, strict=True)
        if settled.is_given
    }
    by_name = {space.name: chosen[number] for number, space in enumerate(spaces)}
    moving: dict[str, float] = {}
    for home, settled in zip(model.homes, homes, strict=True):
        moving[home.container_choice.data] = (
            moving.get(home.container_choice.data, 0.0) + settled.seconds
        )
    return SearchResult(
        Schedule(schedule, homes=given),
        ranks,
        compute + communication,
        min(solution.bound, compute + communication),
        compute,
        communication,
        round(sum(home.nbytes for home in homes)),
        max(loads, default=0),
        tuple(replace(_placed(model, n, by_name), held=loads[n]) for n in range(first)),
        solution.solver,
        tuple((step.seconds, step.cost, step.bound) for step in solution.history),
        _why_whole(model),
        moving,
    )


def _layout(container_choice: ContainerChoice, home: Tiles, *meshes: Mesh) -> Layout:
    """The layout of some tiles on the first of the meshes whose axes split them."""
    bounds = home.bounds[0]
    found = [Layout.of_bounds(mesh, container_choice.extents, bounds) for mesh in meshes]
    return next((layout for layout in found if layout.splits is not None), found[0])


def _why_whole(model: Model) -> str:
    split = any(
        isinstance(candidate, tuple) and any(candidate)
        for space in model.spaces
        for candidate in space.candidates
    )
    return LONGER if split else "no iteration space can be"


def _on_mesh(model: Model, name: str, mesh: Mesh, candidate: Candidate) -> OnMesh:
    if candidate is None:
        return OnMesh(Mesh(), {})
    if isinstance(candidate, Grid):
        mesh, candidate = candidate.mesh, candidate.splits
    space = model.program.footprints[name].space
    parts = [math.prod(mesh[axis] for axis in axes) for axes in candidate]
    asked = asked_by(space, candidate, parts, model.program.compilation.folded.get(name, {}))
    assert asked is not None  # what no schedule can say is no candidate
    return OnMesh(mesh, asked)


def _loads(model: Model, chosen: Sequence[int], homes: Sequence[ChoiceCost]) -> list[int]:
    """Bytes that live on the busiest rank as each space runs."""
    change = np.zeros(len(model.spaces) + 1)
    for usage in model.usages:
        home = usage.variable - len(model.spaces)
        amount = usage.amounts[chosen[usage.variable]] if home < 0 else homes[home].tile
        change[usage.begin] += amount
        change[usage.end] -= amount
    return [int(load) for load in np.cumsum(change)[:-1]]


def _placed(model: Model, number: int, chosen: Mapping[str, int]) -> Placed:
    """The choice of a space, and the best other one while all others stay but the homes."""
    space = model.spaces[number]
    costs = space.seconds.copy()
    for home in model.homes_of[space.name]:
        costs = costs + home.table(space.name, len(costs), chosen).min(axis=0)
    here = chosen[space.name]
    text = _text(model, space.name, space.candidates[here])
    if len(costs) < 2:
        return Placed(space.name, text, float(space.seconds[here]), "", 0.0)
    others = costs.copy()
    others[here] = np.inf
    second = int(others.argmin())
    return Placed(
        space.name,
        text,
        float(space.seconds[here]),
        _text(model, space.name, space.candidates[second]),
        max(0.0, float(others[second] - costs[here])),
    )


def _text(model: Model, name: str, candidate: Candidate) -> str:
    """Parts of each parameter of a candidate."""
    if candidate is None:
        return "rank 0"
    footprint = model.program.footprints[name]
    counts = Tilings.of(footprint.space, model.mesh, [candidate], Columns(1)).parts[0].tolist()
    pairs = zip(footprint.space.parameters, counts, strict=True)
    return ", ".join(f"{p}/{n}" for p, n in pairs if n > 1) or "whole on each rank"
