"""First calls of a program are timed, and compared with what was predicted.

What a rank moves is timed by the engine anyway; the rest of a run is its work. Of a few calls the
least counts, of the ranks that move something the one that waited least, and the first call not at
all, for it touches memory for the first time. A call that takes less than a millisecond tells
nothing. Behind these calls nothing is left but the look whether they are over.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.lowering import Lowering, PlannedMemlet, RecordedMove
from distspmd.plans.calibration import Part, is_wanted, keep
from distspmd.plans.machine import Machine
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.launch.driver_ranks import machine_here
from distspmd.runtime.notices import notice
from distspmd.scheduling.prediction import predict

CALLS = 4
"""Calls that are timed."""
LEAST = 1e-3
"""Seconds of a call from which on times say something of the machine."""
PREDICTED = 1e-4
"""Predicted seconds below which times are those of other things than the model has."""
Learned = dict[Part, tuple[float, float]]
"""How many times as long as predicted parts took, and how much that counts for each."""
FAR = 2.0
"""How many times as long as predicted something takes that is told of."""


class FirstCalls:
    """Those of one program on one rank.

    Args:
        lowering: of the program.
        engine: counts the seconds of what moves; None where nobody does, and nothing is timed.
        comm: of the ranks that call it, all together.
    """

    def __init__(self, lowering: Lowering, engine: Engine | None, comm: Any) -> None:
        self.lowering, self.engine, self.comm = lowering, engine, comm
        machine = lowering.machine
        wanted = is_wanted() and machine == machine_here() and not machine.cores
        self.left = CALLS if engine is not None and comm.bcast(wanted) else 0
        self._found: list[NDArray[np.float64]] = []

    def run(self, run: Callable[[], None]) -> None:
        """Run the program, as one of its first calls."""
        before = self._moved()
        begin = time.perf_counter()
        run()
        seconds = time.perf_counter() - begin
        moved = self._moved() - before
        self._found.append(np.array([seconds - moved.sum(), *moved]))
        self.left -= 1
        if not self.left:
            least = np.min(self._found[1:], axis=0)
            ranks = self.comm.gather(least)
            if ranks is not None:
                self._compare(np.array(ranks))

    def _moved(self) -> NDArray[np.float64]:
        """Seconds of this rank so far in what moves, in the order of the prediction."""
        engine, lowering = self.engine, self.lowering
        assert engine is not None
        found = [engine.statistics(n).seconds for n in range(len(lowering.memlets))]
        found += [engine.fetch_statistics(n).seconds for n in range(len(lowering.fetches))]
        found += [engine.exchange_statistics(n).seconds for n in range(len(lowering.row_exchanges))]
        for n, talk in enumerate(lowering.talks):
            seconds = engine.talk_statistics(n).seconds
            found += [seconds] if talk.is_split else []
        return np.array(found)

    def _compare(self, ranks: NDArray[np.float64]) -> None:
        """Compare the times of all ranks with the prediction; keep it, and say what is far off."""
        lowering = self.lowering
        ranks = ranks[: lowering.ranks]
        work = float(ranks[:, 0].max())
        every = np.where(ranks[:, 1:] > 0, ranks[:, 1:], np.inf).min(axis=0, initial=np.inf)
        predicted = predict(lowering)
        parts = [("the work of its ranks", work, predicted.compute)]
        moves: list[tuple[Part, float, float]] = []
        made: list[RecordedMove] = [*lowering.memlets, *lowering.fetches, *lowering.within_nodes]
        for move, seconds, (data, _, _, asked) in zip(made, every, predicted.moves, strict=True):
            if np.isfinite(seconds) and move.times is not None:
                parts.append((f"{move.steps} of {data}", float(seconds), asked))
                is_asked = isinstance(move, PlannedMemlet) and move.asked
                moves.append((Part.ASKING if is_asked else Part.MOVING, float(seconds), asked))
        learned = {**self._of_work(work), **_of_moves(moves)}
        if learned:
            with contextlib.suppress(OSError):  # no place to keep it
                keep(Machine.measured(), learned)
        told = [(name, ratio) for name, *of in parts if (ratio := _ratio(*of)) is not None]
        far = [(max(ratio, 1 / ratio), name, ratio) for name, ratio in told]
        most, name, ratio = max(far, default=(1.0, "", 1.0))
        if most > FAR:
            how = f"{most:.0f}x {'slower' if ratio > 1 else 'faster'} than predicted"
            notice(
                f"{lowering.name}: {name}: {how}; run distspmd doctor --measure", of="first calls"
            )

    def _of_work(self, seconds: float) -> Learned:
        """How many times as long as predicted the work took, for each part of it by its share."""
        lowering, shares = self.lowering, dict.fromkeys(Part, 0.0)
        for space in lowering.spaces:
            part = Part.of_work(space.work, lowering.machine)
            if part is not None:
                shares[part] += space.work.seconds(lowering.machine)
        total = predict(lowering).compute
        ratio = _ratio(seconds, total)
        if ratio is None:
            return {}
        return {part: (ratio, own / total) for part, own in shares.items() if own > 0}


def _of_moves(moves: Sequence[tuple[Part, float, float]]) -> Learned:
    """How many times as long as predicted the parts of what moves took, each for itself."""
    learned = {}
    for part in {part for part, *_ in moves}:
        own = [(found, by) for of, found, by in moves if of is part and by >= PREDICTED]
        ratio = _ratio(sum(found for found, _ in own), sum(by for _, by in own))
        if ratio is not None:
            learned[part] = (ratio, 1.0)
    return learned


def _ratio(found: float, predicted: float) -> float | None:
    """How many times as long as predicted something took; None where that says nothing."""
    if (found < LEAST and predicted < LEAST) or predicted < PREDICTED or found <= 0:
        return None
    return found / predicted
