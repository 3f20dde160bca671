"""The process in which toulbar2 runs, and answers questions one after the other.

toulbar2 prints, sets timers, and does not always end when its time is over. Here it can do no harm:
what it prints goes nowhere, and whoever started the process kills it when a budget is over.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

_DEATH_OF_PARENT = 1  # PR_SET_PDEATHSIG of Linux


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """A problem in whole numbers, as toulbar2 takes it.

    Attributes:
        pairs: Two variables, and a row of costs for each choice of the first.
        rows: A capacity, the variables that share it, and what their choices take.
        ceiling: Only what costs less counts; costs from here on are infinite.
        backtracks: The search ends after so many.
        negligible: If not None, the bound is raised by virtual arc consistency first, in steps that
            are not smaller.
    """

    unary: tuple[NDArray[np.float64], ...]
    pairs: tuple[tuple[int, int, NDArray[np.float64]], ...]
    rows: tuple[tuple[int, tuple[tuple[int, NDArray[np.int64]], ...]], ...]
    ceiling: float
    backtracks: int
    seconds: int
    negligible: int | None


@dataclass(frozen=True, slots=True)
class Reply:
    """The cheapest choices below the ceiling, if any were found, and what none can undercut.

    Attributes:
        backtracks: How many the search took.
    """

    choices: tuple[int, ...] | None
    bound: float
    complete: bool
    backtracks: int


def answer(question: Question) -> Reply:
    """Ask toulbar2."""
    import pytoulbar2

    network: Any = pytoulbar2.CFN(
        ubinit=question.ceiling, vac=0 if question.negligible is None else 1, verbose=-1
    )
    network.Option.backtrackLimit = question.backtracks
    if question.negligible is not None:
        network.Option.costThreshold = question.negligible
        network.Option.costThresholdPre = question.negligible
    try:
        _post(network.CFN.wcsp, question)
    except network.Contradiction:  # seen at once: nothing costs less than the ceiling
        return Reply(None, question.ceiling, True, 0)
    found = network.Solve(timeLimit=question.seconds)
    complete = not network.Option.limited
    if complete:
        bound = question.ceiling if found is None else float(found[1])
    else:
        bound = min(float(network.GetDDualBound()), question.ceiling)
    choices = None if found is None else tuple(int(choice) for choice in found[0])
    return Reply(choices, bound, complete, int(network.GetNbBacktracks()))


def _post(network: Any, question: Question) -> None:
    """Write a question down in toulbar2's terms; constants are posted by themselves there."""
    for variable, costs in enumerate(question.unary):
        network.makeEnumeratedVariable(f"x{variable}", 0, len(costs) - 1)
    for variable, costs in enumerate(question.unary):
        network.postUnaryConstraint(variable, costs.tolist(), False)
    for first, second, costs in question.pairs:
        network.postBinaryConstraint(first, second, costs.ravel().tolist(), False)
    for capacity, terms in question.rows:
        words = [str(-capacity)]
        for _, amounts in terms:
            places = np.flatnonzero(amounts)
            words.append(str(len(places)))
            words += [f"{place} {-amounts[place]}" for place in places]
        network.postKnapsackConstraint(
            [variable for variable, _ in terms], " ".join(words), kp=True
        )


def work(descriptor: int) -> None:
    """Answer what comes through a socket until nobody asks."""
    ctypes.CDLL(None).prctl(_DEATH_OF_PARENT, signal.SIGKILL)
    sys.modules["mpi4py"] = None  # type: ignore[assignment]  # pytoulbar2 would initialise MPI
    connection = Connection(descriptor)
    while True:
        try:
            question = connection.recv()
        except EOFError:
            return
        connection.send(answer(question))
