"""What first calls of programs have taught of this host: factors on the machine model.

A program's first calls are timed (``execution/first_calls.py``). How much longer its work and what
it moved took than predicted is kept beside the measurements of the host, for each part of the
machine as it was before, and the next process predicts by it. A program teaches most of the part
that it is predicted to spend its time on. ``distspmd doctor --measure`` finds the figures one by
one, and begins again: what it finds is another machine.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from distspmd.plans.machine import RATES, Kind, Machine, measurements
from distspmd.plans.tile_work import TileWork

MOST = 100.0
"""No factor is more, or less than its inverse."""
_WEIGHT = 4
"""Programs that count as much as those before them."""
_NOT_CODE = (Kind.FETCH, Kind.PYTHON)


def is_wanted() -> bool:
    """Whether first calls are timed; ``DISTSPMD_CALIBRATE=0`` says no."""
    return os.environ.get("DISTSPMD_CALIBRATE", "1") != "0"


class Part(Enum):
    """What has a factor of its own, by the parameters of the machine that it is on."""

    LOOPS = "operations of loops"
    MEMORY = "bytes that loops read and write"
    PRODUCTS = "products of matrices"
    CALLS = "library calls"
    MOVING = "bytes on their way"
    ASKING = "elements that are asked for"

    @classmethod
    def of_work(cls, work: TileWork, machine: Machine) -> Part | None:
        """The part that decides how long work takes; None for calls of Python."""
        if work.kind.is_product:
            return cls.PRODUCTS
        if work.kind in RATES:
            return None if work.kind in _NOT_CODE else cls.CALLS
        coding = work.operations * machine.rate(work.kind)[0]
        return cls.LOOPS if coding > work.nbytes * machine.stream else cls.MEMORY


_FIELDS = {
    Part.LOOPS: ("operation",),
    Part.MEMORY: ("stream",),
    Part.PRODUCTS: ("product", "packing"),
    Part.MOVING: ("beta", "copy", "run", "far_beta"),
}
_KINDS = {Part.CALLS: {*RATES} - {*_NOT_CODE}, Part.ASKING: {Kind.FETCH}}


@dataclass(frozen=True)
class Factor:
    """How many times as long as by the machine a part takes, and how many programs say so.

    A program counts for a part by the share of its time that the part is predicted to take.
    """

    times: float = 1.0
    weight: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether it can be used."""
        return 1 / MOST <= self.times <= MOST and self.weight >= 0

    def after(self, times: float, share: float) -> Factor:
        """With what another program took."""
        before = min(self.weight, _WEIGHT)
        found = (before * math.log(self.times) + share * math.log(times)) / (before + share)
        return Factor(min(MOST, max(1 / MOST, math.exp(found))), before + share)


Factors = Mapping[Part, Factor]
"""What programs have taught of the parts of a machine."""


def adjusted(machine: Machine, factors: Factors) -> Machine:
    """The machine whose parts take so long."""
    given: dict[str, Any] = {}
    rates = {Kind[name]: (operation, byte) for name, operation, byte in machine.rates}
    for part, factor in factors.items():
        for name in _FIELDS.get(part, ()):
            given[name] = getattr(machine, name) * factor.times
        for kind in _KINDS.get(part, ()):
            operation, byte = machine.rate(kind)
            rates[kind] = operation * factor.times, byte * factor.times
    return replace(machine, rates=tuple((k.name, *rate) for k, rate in rates.items()), **given)


@functools.cache
def known_of(machine: Machine) -> Factors:
    """What was kept of a machine when this process first asked, so that all its ranks go by one."""
    return _kept(machine) if is_wanted() else {}


def keep(machine: Machine, found: Mapping[Part, tuple[float, float]]) -> None:
    """Keep how many times as long as by the known factors parts took, with the share of each."""
    by, held, factors = known_of(machine), _read(), dict(_kept(machine))
    for part, (times, share) in found.items():
        own = factors.get(part, Factor())
        factors[part] = own.after(times * by.get(part, Factor()).times, share)
    held[_key(machine)] = {part.name: asdict(factor) for part, factor in factors.items()}
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
        factors = {Part[name]: Factor(**each) for name, each in dict(found or {}).items()}
        return factors if all(factor.is_sound for factor in factors.values()) else {}
    except (KeyError, TypeError, ValueError):
        return {}


def _read() -> dict[str, Any]:
    try:
        held = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def _key(machine: Machine) -> str:
    text = json.dumps(asdict(machine), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
