"""The solver toulbar2, in a process of its own, behind the questions that our search asks.

Costs become whole numbers, rounded down, of which the largest is near 2**44: a bound stays one,
and loses at most 2**-44 of the cost for each table. Usages become whole numbers, too, if they are
not, as bytes are.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from multiprocessing.connection import Connection
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from distspmd.errors import ToolchainError
from distspmd.wcsp.neighbourhoods import Answer, search
from distspmd.wcsp.part import Part
from distspmd.wcsp.problem import Costs, Problem
from distspmd.wcsp.run import Run
from distspmd.wcsp.worker import Question, Reply

_FINEST = 2.0**44
_WORK = "from distspmd.wcsp.worker import work; work"
_NEGLIGIBLE = 1e-5  # part of the cost below which consistency is not worth its time


@dataclass(frozen=True, slots=True)
class Toulbar2:
    """Parts of the problem solved by toulbar2, the last of which is the whole."""

    name: str = "toulbar2"

    def refusal(self, problem: Problem) -> str:
        """It takes every problem where it is installed."""
        if importlib.util.find_spec("pytoulbar2") is None:
            return "pytoulbar2 is not installed; pip install 'distspmd[search]'"
        return ""

    def solve(self, run: Run) -> None:
        """Search neighbourhoods that grow to the whole problem."""
        with Toulbar2Process() as process:
            search(run, process)


class Toulbar2Process:
    """A process that solves parts of problems, and ends with the block that it is used in."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._messages = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the block
        self._has_replied = False

    def __enter__(self) -> Toulbar2Process:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
        self._messages.close()

    def improve(self, part: Part, *, effort: int, seconds: float, proof: bool) -> Answer:
        """Look for choices that cost less than the present ones.

        Args:
            effort: The backtracks after which to stop.
            seconds: The time after which to stop, at the latest.
            proof: Whether a high bound is worth a long preparation. Usages that are no whole
                numbers are rounded down for it, and up otherwise.
        """
        unit = _unit(part)
        ceiling = float(np.floor((part.ceiling - part.least) / unit))
        if unit < 1:
            ceiling -= len(part.unary) + len(part.pairs)
        if ceiling <= 0:
            return Answer(None, part.ceiling, True, 0)
        negligible = int(ceiling * _NEGLIGIBLE) if proof else None
        question = Question(
            tuple(_whole(costs, unit, ceiling) for costs in part.unary),
            tuple((i, j, _whole(costs, unit, ceiling)) for i, j, costs in part.pairs),
            tuple(_whole_row(capacity, terms, not proof) for capacity, terms in part.rows),
            ceiling,
            effort,
            max(1, int(seconds)),
            negligible,
        )
        reply = self._ask(question, seconds)
        if reply is None:
            return Answer(None, part.least, False, effort)
        choices = None if reply.choices is None else np.array(reply.choices, np.int64)
        bound = part.least + reply.bound * unit
        return Answer(choices, min(bound, part.ceiling), reply.complete, reply.backtracks)

    def _ask(self, question: Question, seconds: float) -> Reply | None:
        """The reply, or None if it does not come in time, or the process dies of the question.

        Raises:
            ToolchainError: The process dies before its first reply.
        """
        if self._connection is None:
            self._connection = self._start()
        try:
            self._connection.send(question)
            if self._connection.poll(seconds):
                reply = self._connection.recv()
                assert isinstance(reply, Reply)
                self._has_replied = True
                return reply
        except (EOFError, OSError) as error:
            if not self._has_replied:
                self._end()
                self._messages.seek(0)
                said = self._messages.read().decode(errors="replace").strip()
                raise ToolchainError(f"the process of toulbar2 does not work: {said}") from error
        self._end()
        return None

    def _start(self) -> Connection:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"{_WORK}({theirs.fileno()})"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._messages,
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )
        return Connection(ours.detach())

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        if self._connection is not None:
            self._connection.close()
        self._process = self._connection = None


def _unit(part: Part) -> float:
    """What one unit of toulbar2's costs stands for; 1 where all costs are whole already."""
    spread = part.ceiling - part.least
    tables = (*part.unary, *(costs for _, _, costs in part.pairs))
    if spread < _FINEST and all(np.array_equal(costs, np.rint(costs)) for costs in tables):
        return 1.0
    return float(np.exp2(np.ceil(np.log2(spread / _FINEST)))) if spread > 0 else 1.0


def _whole(costs: Costs, unit: float, ceiling: float) -> NDArray[np.float64]:
    """Costs above the least of a table in units; infinite from the ceiling on."""
    whole: NDArray[np.float64] = np.floor((costs - costs.min()) / unit)
    whole[whole >= ceiling] = np.inf
    return whole


def _whole_row(
    capacity: float, terms: tuple[tuple[int, Costs], ...], up: bool
) -> tuple[int, tuple[tuple[int, NDArray[np.int64]], ...]]:
    """A row in whole numbers: the same if it consists of such, else finely rounded."""
    unit = 1.0
    if capacity >= _FINEST or not all(
        np.array_equal(amounts, np.rint(amounts)) for _, amounts in terms
    ):
        unit = capacity * 2.0**-30 or 1.0
    rounded = np.ceil if up else np.floor
    return int(np.floor(capacity / unit)), tuple(
        (variable, rounded(amounts / unit).astype(np.int64)) for variable, amounts in terms
    )
