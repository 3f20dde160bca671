"""What a lowered program will communicate: all decisions, and the alternatives that were rejected.

It reads the objects that run, so it describes what happens: the bytes received are those that the
steps of the plans move, as the runtime counts them (``Program.statistics``). The fewest bytes are
those that the ranks must receive whatever the plan.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from distspmd.errors import ScheduleError
from distspmd.layouts.layout import Layout
from distspmd.lowering import Lowering, PlannedMemlet, RecordedMove, lowering_of
from distspmd.plans.cost import Cost
from distspmd.plans.heuristics import HEURISTICS, STAGES
from distspmd.plans.plan import Plan
from distspmd.plans.pull_table import received_by_pulls
from distspmd.plans.staged_boxes import StagedBoxes
from distspmd.runtime.devices.machine import LAST as STAGED
from distspmd.runtime.devices.transports import TRANSPORTS
from distspmd.tables import Table, as_html, as_text, shorten

if TYPE_CHECKING:
    from distspmd.runtime.devices.kinds import DeviceBuild


def explain(lowered: Any) -> Explanation:
    """Explain a lowering, its SDFG, or the compiled program.

    Raises:
        ScheduleError: it is not lowered.
    """
    for found in (lowering_of(lowered), getattr(lowered, "lowering", None)):
        if isinstance(found, Lowering):
            device = getattr(lowered, "device", None)
            because = getattr(lowered, "staged_because", "")
            ways = (getattr(lowered, name, ()) for name in ("transports", "piece_bytes"))
            return Explanation(found, device, because, *ways)
    if hasattr(lowered, "at"):
        raise ScheduleError(
            "nothing is decided yet of a program with symbolic sizes. Explain it for some: "
            "distspmd.explain(lowering.at(N=100))."
        )
    raise ScheduleError(
        f"there is nothing to explain: {type(lowered).__name__} is not lowered. Pass what "
        "distspmd.lower(...) returned."
    )


@dataclass(frozen=True)
class Explanation:
    """Homes, communication and its totals; prints as text, and as HTML in Jupyter.

    Of a program that was compiled for a device, also which of its nodes run there, and how its
    tiles are moved.
    """

    lowering: Lowering
    device: DeviceBuild | None = None
    staged_because: str = ""
    transports: tuple[str, ...] = ()
    piece_bytes: tuple[int, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes that all ranks receive in a run, of the memlets whose number of moves is known."""
        foreseen = sum(memlet.received or 0 for memlet in self._foreseen)
        foreseen += sum(each.received or 0 for each in self.lowering.within_nodes)
        return foreseen + sum(times * price.nbytes for times, price in self._counted)

    @property
    def least(self) -> int:
        """The fewest bytes that all ranks must receive in the moves of ``nbytes``, by any plan."""
        foreseen = sum(memlet.received or 0 for memlet in self._foreseen)
        foreseen += sum(each.received or 0 for each in self.lowering.within_nodes)
        memlets = self.lowering.memlets
        return foreseen + sum(m.times * _least(m.solution.plan) for m in memlets if m.times)

    @property
    def seconds(self) -> float:
        """Predicted seconds of a run in the memlets whose number of moves is known."""
        machine = self.lowering.machine
        foreseen = sum(machine.passing(m.times or 0, m.received or 0) for m in self._foreseen)
        return foreseen + sum(times * price.seconds for times, price in self._counted)

    @property
    def peak(self) -> int:
        """Most bytes that live on a rank in one memlet: its tiles, scratch and staging."""
        return max((_peak(memlet.solution.plan) for memlet in self.lowering.memlets), default=0)

    @property
    def resident(self) -> int:
        """Bytes of the homes' largest tiles, of all arrays together."""
        return sum(home.nbytes for home in self.lowering.homes)

    @property
    def undetermined(self) -> tuple[PlannedMemlet, ...]:
        """Memlets of which only the run tells how often they move."""
        return tuple(memlet for memlet in self.lowering.memlets if memlet.times is None)

    @property
    def _counted(self) -> list[tuple[int, Cost]]:
        memlets = self.lowering.memlets
        return [(m.times, m.solution.cost) for m in memlets if m.times is not None]

    @property
    def _foreseen(self) -> list[PlannedMemlet]:
        """What is fetched of which the bytes are known before the run."""
        return [memlet for memlet in self.lowering.fetches if memlet.received is not None]

    # -- text -----------------------------------------------------------------------------------

    def __str__(self) -> str:
        blocks = [_block(*numbered) for numbered in enumerate(self.lowering.memlets)]
        said = [
            as_text([self._homes, self._candidates]),
            "Communication",
            *(blocks or ["none"]),
            *self._fetches,
            "",
            *([as_text([self._host])] if self._host.rows else []),
            as_text([self._totals, self._heuristics]).rstrip("\n"),
            *self.lowering.sentences,
            *([as_text([self._places]).rstrip("\n"), *self._staged] if self.device else []),
        ]
        return "\n".join(said)

    def _repr_html_(self) -> str:
        rows = "".join(_row(*numbered) for numbered in enumerate(self.lowering.memlets))
        head = "".join(f"<th>{name}</th>" for name in _HEAD)
        moves = f"<h4>Communication</h4><table><tr>{head}</tr>{rows}</table>"
        sentences = (*self._fetches, *self.lowering.sentences, *self._staged)
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in sentences)
        return (
            as_html([self._homes, self._candidates])
            + moves
            + (as_html([self._host]) if self._host.rows else "")
            + as_html([self._totals, self._heuristics, *([self._places] if self.device else [])])
            + notes
        )

    @property
    def _fetches(self) -> list[str]:
        """What is resolved at run time, as sentences; totals have what is known before."""
        return [
            f"{memlet.data} at {memlet.source or 'the program'}, {_times(memlet)}: "
            f"{shorten(memlet.layouts, _LAYOUT)}, only {memlet.inspection}, {memlet.found}: "
            + (
                f"at most {memlet.solution.cost.nbytes:,} bytes received"
                if memlet.received is None
                else f"{memlet.received:,} bytes received in a run"
            )
            for memlet in self.lowering.fetches
        ] + [
            f"{rows.data} at {rows.source or 'the program'}, {_times(rows)}: {rows.steps}, "
            f"{rows.layouts}, {rows.found}: {rows.bytes_text}"
            for rows in self.lowering.within_nodes
        ]

    @property
    def _host(self) -> Table:
        """What Python runs, on which ranks, and what moves for that."""
        rows = []
        for space in self.lowering.spaces:
            if not space.python:
                continue
            moved = [
                m
                for m in self.lowering.memlets
                if m.source == space.source and not m.to_caller and space.source
            ]
            nbytes = sum(m.solution.cost.nbytes * (m.times or 1) for m in moved)
            each = " each time" if any(m.times is None for m in moved) else ""
            rows.append((space.name, space.python, space.where, f"{nbytes:,}{each}", space.source))
        head = ("space", "Python runs", "on", "bytes that move for it", "source")
        return Table("Host spaces, which Python runs", head, tuple(rows))

    @property
    def _places(self) -> Table:
        """Where each node of a program for a device runs, and how."""
        assert self.device is not None
        title = f"Nodes of the program on the device {self.device.kind!r}"
        return Table(title, ("node", "runs on", ""), self.device.spaces)

    @property
    def _staged(self) -> list[str]:
        """How tiles move that lie in the memory of a device, as sentences."""
        if not self.device:
            return []
        plans = [(memlet.solution.plan, StagedBoxes.of) for memlet in self.lowering.memlets]
        plans += [(memlet.solution.plan, StagedBoxes.whole) for memlet in self.lowering.fetches]
        ranks = range(self.lowering.ranks)
        most = max((of(plan, rank).nbytes(plan) for plan, of in plans for rank in ranks), default=0)
        return [
            *self._between_devices,
            "What is not is moved by way of mirrors in pinned memory of the host: for each "
            "distributed memlet a kernel copies what its plan reads, messages carry it, and a "
            "kernel copies what was written back; at most "
            f"{most:,} bytes are copied so on a rank at once.",
        ]

    @property
    def _ways(self) -> list[tuple[PlannedMemlet, str, int]]:
        """Each distributed memlet with its transport, and the bytes of its pieces."""
        memlets = self.lowering.memlets
        names = self.transports or (STAGED,) * len(memlets)
        return list(zip(memlets, names, self.piece_bytes or (0,) * len(memlets), strict=True))

    @property
    def _between_devices(self) -> list[str]:
        """Which tiles go from device to device, and why others do not."""
        said = []
        if self.staged_because:
            said = [f"No tile goes from device to device: {self.staged_because}."]
        moved: dict[tuple[str, int], list[str]] = {}
        reasons: dict[str, list[str]] = {}
        for memlet, name, piece in self._ways:
            why = TRANSPORTS[name].refuses(memlet.solution.plan)
            if why:
                reasons.setdefault(why, []).append(memlet.data)
            elif name != STAGED or piece:
                moved.setdefault((name, piece), []).append(memlet.data)
        found = reasons.setdefault("the run decides what moves", [])
        found += [memlet.data for memlet in self.lowering.fetches]
        found += [rows.data for rows in self.lowering.within_nodes]
        for (name, piece), data in moved.items():
            how = f"in pieces of up to {piece:,} bytes" if piece else "from device to device"
            said.append(
                f"Tiles that lie in the memory of devices on all ranks go {how}, by {name!r}, "
                f"where {TRANSPORTS[name].described}: {', '.join(dict.fromkeys(data))}."
            )
        if more := self.more_by_pulls:
            said.append(
                "Who gets the operands of a small reduction so gets all of them: that is at most "
                f"{more:,} bytes more in a run than are explained."
            )
        return said + [
            f"Not so: {', '.join(dict.fromkeys(names))}, because {why}."
            for why, names in reasons.items()
            if names
        ]

    @property
    def more_by_pulls(self) -> int:
        """Bytes at most that all ranks of a device receive in a run beyond ``nbytes``.

        Where kernels combine the operands of a reduction, a rank reads all of them.
        """
        if not self.device:
            return 0
        pulled = [
            memlet
            for memlet, name, piece in self._ways
            if (name != STAGED or piece) and not TRANSPORTS[name].refuses(memlet.solution.plan)
        ]
        moves = [(m.solution.plan, 1 if m.times is None else m.times) for m in pulled]
        ranks = range(self.lowering.ranks)
        return sum(
            times * (received_by_pulls(plan, rank) - plan.received(rank))
            for plan, times in moves
            for rank in ranks
        )

    @property
    def _homes(self) -> Table:
        rows = tuple(
            (
                home.data,
                str(home.dtype),
                str(home.layout),
                str(home.layout.mesh) or "rank 0",
                f"{home.nbytes:,}",
            )
            for home in self.lowering.homes
        )
        head = ("array", "dtype", "lives in", "on", "bytes on a rank")
        return Table("Homes of the arrays", head, rows)

    @property
    def _candidates(self) -> Table:
        """Of each home that was chosen, its traffic and that of the nearest it was chosen over."""
        rows: list[tuple[str, ...]] = []
        for home in self.lowering.homes:
            if not home.over:
                continue
            rows.append(_weighed(home.data, home.layout, home.traffic, "the home"))
            for layout, traffic in sorted(home.over, key=lambda pair: pair[1])[:_CANDIDATES]:
                rows.append(_weighed("", layout, traffic, _behind(traffic, home.traffic)))
        head = ("array", "could live in", "on", "traffic, bytes", "")
        return Table("What the homes were chosen over", head, tuple(rows))

    @property
    def _totals(self) -> Table:
        rows = [
            ("bytes received by all ranks", f"{self.nbytes:,}"),
            ("the fewest that any plans need", f"{self.least:,}"),
            ("predicted seconds", f"{self.seconds:.1e}"),
            ("most memory on a rank in one memlet, bytes", f"{self.peak:,}"),
            ("tiles of the homes on a rank, bytes", f"{self.resident:,}"),
        ]
        if self.undetermined:
            each = sum(memlet.solution.cost.nbytes for memlet in self.undetermined)
            rows.append(("and each time that the run decides on, bytes", f"{each:,}"))
        return Table("Totals of a run", ("", ""), tuple(rows))

    @property
    def _heuristics(self) -> Table:
        """The numbers by which the compiler decides where nothing is proved."""
        rows = tuple(
            (stage, ", ".join(f"{n} {v:_}" for n, v in HEURISTICS.of_stage(stage).items()))
            for stage in STAGES
        )
        return Table("Heuristics", ("of", "numbers"), rows)


_LAYOUT = 120
"""Letters of a layout that are shown."""

_CANDIDATES = 3
"""Layouts that are shown of those that a home was chosen over."""

_HEAD = (
    "",
    "array",
    "at",
    "from",
    "to",
    "by",
    "bytes",
    "least",
    "peak",
    "seconds",
    "times",
    "over",
)


def _weighed(data: str, layout: Layout, traffic: float, why: str) -> tuple[str, ...]:
    """A layout in which an array could live: a row."""
    on = str(layout.mesh) or "rank 0"
    return data, shorten(str(layout), _LAYOUT), on, f"{traffic:,.0f}", why


def _behind(traffic: float, least: float) -> str:
    """Why a layout was not chosen."""
    if traffic == least:
        return "as cheap, considered later"
    return f"{traffic / least:.3g} times the traffic" if least else "the home has none"


def _block(number: int, memlet: PlannedMemlet) -> str:
    """A memlet in lines, as a terminal shows it."""
    plan, price = memlet.solution.plan, memlet.solution.cost
    move = f"{plan.redistribution.dtype}, {_times(memlet)}"
    source, target = memlet.ends
    facts = f"{price.nbytes:,} bytes received (at least {_least(plan):,})"
    lines = [
        f"{number}. {memlet.data} at {memlet.source or 'the program'}, {move}",
        f"   {shorten(source, _LAYOUT)} {memlet.arrow} {shorten(target, _LAYOUT)}",
        f"   {plan.solver}: {memlet.steps or 'no step'}; {facts}, "
        f"peak {_peak(plan):,} bytes on a rank, {price.seconds:.1e} s",
        *(f"     over {loser}" for loser in _losers(memlet)),
    ]
    return "\n".join(lines)


def _row(number: int, memlet: PlannedMemlet) -> str:
    plan, price = memlet.solution.plan, memlet.solution.cost
    source, target = (shorten(layout, _LAYOUT) for layout in memlet.ends)
    cells = [
        *(str(number), memlet.data, memlet.source, source, target),
        f"{plan.solver}: {memlet.steps or 'no step'}",
        *(f"{price.nbytes:,}", f"{_least(plan):,}", f"{_peak(plan):,}", f"{price.seconds:.1e}"),
        _times(memlet),
    ]
    over = "<br>".join(html.escape(loser) for loser in _losers(memlet))
    return "<tr>" + "".join(f"<td>{html.escape(c)}</td>" for c in cells) + f"<td>{over}</td></tr>"


def _losers(memlet: PlannedMemlet) -> Iterator[str]:
    """What the plan was chosen over, and why."""
    for plan, price in memlet.solution.losers:
        yield _lost(plan, price, memlet.solution.cost)
    for refusal in memlet.solution.refusals:
        yield f"{refusal.solver}: refused, {shorten(refusal.reason, 100)}"


def _lost(plan: Plan, price: Cost, winner: Cost) -> str:
    kinds = " + ".join(str(step.kind) for step in plan.steps)
    slower = f"{price.seconds / winner.seconds:.2g} times" if winner.seconds else "all"
    tie = price.seconds == winner.seconds
    why = "as cheap, asked later" if tie else f"{slower} the time"
    return (
        f"{plan.solver}: {kinds}; {price.nbytes:,} bytes, peak {_peak(plan):,}, "
        f"{price.seconds:.1e} s ({why})"
    )


def _times(memlet: RecordedMove) -> str:
    if memlet.times is None:
        return "as often as the run decides"
    return "once" if memlet.times == 1 else f"{memlet.times} times"


def _least(plan: Plan) -> int:
    """The fewest bytes that the ranks must receive, whatever the plan."""
    return sum(plan.bound.received(rank) for rank in range(plan.ranks))


def _peak(plan: Plan) -> int:
    return int(plan.peaks.max(initial=0))
