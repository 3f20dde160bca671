"""What first calls of programs have taught of this host: factors on the machine model.

A program's first calls are timed (``execution/first_calls.py``). How much longer its work and what
it moved took than predicted is kept beside the measurements of the host, for each machine as it was
before, and the next process predicts by it. ``distspmd doctor --measure`` finds the figures one by
one, and begins again: what it finds is another machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from distspmd.plans.machine import RATES, Kind, Machine, measurements

MOST = 100.0
"""Neither factor is more, or less than its inverse."""
_WEIGHT = 4
"""Programs that count as much as those before them."""
_NOT_CODE = (Kind.FETCH, Kind.PYTHON)


def is_wanted() -> bool:
    """Whether first calls are timed; ``DISTSPMD_CALIBRATE=0`` says no."""
    return os.environ.get("DISTSPMD_CALIBRATE", "1") != "0"


@dataclass(frozen=True)
class Factors:
    """How many times as long as by the machine work takes, and bytes on their way.

    Attributes:
        work: of what each rank computes.
        moving: of what ranks send and copy.
        programs: that were timed.
    """

    work: float = 1.0
    moving: float = 1.0
    programs: int = 0

    def of(self, machine: Machine) -> Machine:
        """The machine that takes so long."""
        if self.work == self.moving == 1:
            return machine
        rates = tuple(
            (kind.name, machine.rate(kind)[0] * self.work, machine.rate(kind)[1] * self.work)
            for kind in RATES
            if kind not in _NOT_CODE
        )
        kept = tuple(rate for rate in machine.rates if Kind[rate[0]] in _NOT_CODE)
        own = ("operation", "product", "packing", "stream")
        moves = ("beta", "copy", "run", "far_beta")
        work = {name: getattr(machine, name) * self.work for name in own}
        moving = {name: getattr(machine, name) * self.moving for name in moves}
        return replace(machine, rates=(*rates, *kept), **work, **moving)

    def after(self, work: float | None, moving: float | None) -> Factors:
        """With what another program took, as a multiple of the machine's; None if not known."""
        count = min(self.programs, _WEIGHT)

        def mean(own: float, found: float | None) -> float:
            if found is None:
                return own
            mean = math.exp((count * math.log(own) + math.log(found)) / (count + 1))
            return min(MOST, max(1 / MOST, mean))

        return Factors(mean(self.work, work), mean(self.moving, moving), self.programs + 1)


@functools.cache
def known_of(machine: Machine) -> Factors:
    """What was kept of a machine when this process first asked, so that all its ranks go by one."""
    return _kept(machine) if is_wanted() else Factors()


def keep(machine: Machine, work: float | None, moving: float | None) -> None:
    """Keep how many times as long as by the known factors a program took; None if not known."""
    by, held = known_of(machine), _read()
    work, moving = work and work * by.work, moving and moving * by.moving
    held[_key(machine)] = asdict(_kept(machine).after(work, moving))
    file = _file()
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(held, indent=2) + "\n")
    draft.replace(file)


def _file() -> Path:
    return measurements().with_name(f"first-calls-{measurements().name}")


def _kept(machine: Machine) -> Factors:
    found = _read().get(_key(machine))
    try:
        factors = Factors(**found) if isinstance(found, dict) else Factors()
        is_sound = all(1 / MOST <= each <= MOST for each in (factors.work, factors.moving))
        return factors if is_sound and factors.programs >= 0 else Factors()
    except TypeError:
        return Factors()


def _read() -> dict[str, Any]:
    try:
        held = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _key(machine: Machine) -> str:
    text = json.dumps(asdict(machine), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
