"""What a reading of a loop has found that the next one begins with."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.syntax.alternatives import is_wider
from distspmd.frontend.from_numpy.syntax.bound_at_times import FIXED, BoundAtTimes
from distspmd.frontend.from_numpy.syntax.carried_places import is_carried
from distspmd.frontend.from_numpy.syntax.carried_variables import Loop
from distspmd.frontend.from_numpy.syntax.joined_arrays import CarryLink
from distspmd.frontend.from_numpy.syntax.mutation import CarryEntry
from distspmd.frontend.from_numpy.syntax.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.transcript import CannotRoll
from distspmd.frontend.from_numpy.values import Tensor


def learn(loop: Loop, problem: Exception, journal: Any) -> None:
    """Let the next reading of a loop know of what ended this one.

    Raises:
        CannotRoll: the last one knew of it.
    """
    if isinstance(problem, ReadLoopAgain):
        loop.news = {problem.name: problem.kind}
        loop.learn()
    elif isinstance(problem, CarryEntry) and problem.journal is journal:
        _carry_entries(loop, problem)
    elif isinstance(problem, BoundAtTimes) and problem.loop is loop:
        _carry_first(loop, problem)
    elif isinstance(problem, CarryLink) and problem.loop is loop:
        loop.links.append(problem.pair)
    else:
        raise problem


def _carry_first(loop: Loop, missing: BoundAtTimes) -> None:
    """Let a loop carry a variable that it binds at times, from a first value of its kind.

    Raises:
        CannotRoll: it has another kind now.
    """
    if missing.name in loop.firsts and not is_wider(missing.first, loop.firsts[missing.name]):
        raise CannotRoll(f"{missing.name!r} changes its kind in the loop")
    loop.firsts[missing.name] = missing.first
    if missing.is_fixed:
        loop.kinds[missing.name] = FIXED


def _carry_entries(loop: Loop, missing: CarryEntry) -> None:
    """Let a loop carry an entry, and the arrays that are entries beside it."""
    holder = missing.holder
    keys = list(holder) if isinstance(holder, dict) else range(len(holder))
    known = {(id(h), k) for h, k, _ in loop.entries}
    key = missing.key
    if not isinstance(holder, dict):
        key %= len(holder)
    name = missing.journal.name_of(holder)
    for other in keys:
        is_array = isinstance(holder[other], Tensor | np.ndarray | float)
        is_array = is_array and is_carried(holder[other])
        if (other == key or is_array) and (id(holder), other) not in known:
            loop.entries.append((holder, other, f"{name}[{other!r}]"))
