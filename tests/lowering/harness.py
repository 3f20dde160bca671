"""Cases: a program, a schedule and data; and what it means that the lowered program is right.

The oracle is the program itself, run as plain Python on copies of the same NumPy arrays.
"""

import copy
import functools
import math
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dace import SDFG
from dace.frontend.python.parser import DaceProgram

import distspmd
from distspmd.execution.builds import build_for
from distspmd.frontend import numpy_program
from distspmd.lowering import ATTRIBUTE
from distspmd.passes.normalize.uninitialised import find_uninitialised
from distspmd.plans.machine import Machine
from lowering.on_paper import problems
from lowering.running import Prepared

RANKS = (1, 2, 3, 4, 6, 8)
Schedule = Mapping[str, Any]
Generator = np.random.Generator


@dataclass(frozen=True)
class Case:
    """A program under one schedule, on one number of ranks.

    Attributes:
        inputs: how to draw arguments that are not just random numbers, by name.
        reference: stands for the program where plain Python cannot run it.
        frontend: that reads the program.
    """

    program: DaceProgram
    schedule: Schedule
    ranks: int
    inputs: Mapping[str, Callable[[Generator], Any]] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    frontend: str = "dace"

    @property
    def name(self) -> str:
        grids = ",".join(f"{key}={_parts(parts)}" for key, parts in self.schedule.items())
        return f"{self.program.f.__name__}[{grids}]-{self.ranks}"

    def lowered(self, sdfg: SDFG) -> SDFG:
        """The parsed program, lowered."""
        found: SDFG = distspmd.lower(sdfg, self.schedule, machine=self.machine).sdfg
        return found

    @property
    def machine(self) -> Machine:
        """Half of the programs pull all that they can out of the memory of other ranks."""
        pulls = zlib.crc32(self.name.encode()) % 2 == 0
        return Machine(single_copy_bytes=0) if pulls else Machine()

    def arguments(self, parsed: SDFG, seed: int) -> dict[str, Any]:
        """Random arguments of the parsed program, by name."""
        rng = np.random.default_rng(seed)
        return {
            name: self.inputs[name](rng) if name in self.inputs else _drawn(rng, container)
            for name, container in parsed.arglist().items()
            if not name.startswith("__return") and name in {*parsed.arrays, *parsed.arg_names}
        }

    def expected(self, arguments: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        """What the program returns, and its arguments after the call."""
        after = copy.deepcopy(dict(arguments))
        with np.errstate(all="ignore"):
            result = (self.reference or self.program.f)(**after)
        return result, after


@functools.lru_cache(maxsize=4)
def _parsed(program: DaceProgram, frontend: str) -> SDFG:
    sdfg = numpy_program(program, frontend=frontend)
    alarms = [found.name for found in find_uninitialised(sdfg)]
    assert not alarms, f"{alarms} of {program.name} are said to start as anything"
    return sdfg


def parsed(program: DaceProgram, frontend: str = "dace") -> SDFG:
    """A program as an SDFG of its own; those who ask for it in turn share the parsing."""
    return copy.deepcopy(_parsed(program, frontend))


def cases(
    program: DaceProgram,
    *schedules: Schedule,
    ranks: int | tuple[int, ...] = (),
    reference: Callable[..., Any] | None = None,
    frontend: str = "dace",
    **inputs: Callable[[Generator], Any],
) -> list[Case]:
    """A case for each schedule, on as many ranks as it needs (or as are given)."""
    found = []
    for schedule in schedules:
        needed = max((math.prod(_values(parts)) for parts in schedule.values()), default=1)
        counts = (ranks,) if isinstance(ranks, int) else ranks
        counts = counts or (next(count for count in RANKS if count >= needed),)
        found += [Case(program, schedule, count, inputs, reference, frontend) for count in counts]
    return found


def _values(parts: Any) -> list[int]:
    return list(parts.values()) if isinstance(parts, Mapping) else list(parts)


def _parts(parts: Any) -> str:
    return "x".join(map(str, _values(parts)))


def _drawn(rng: Generator, container: Any) -> Any:
    dtype = np.dtype(container.dtype.as_numpy_dtype())
    shape = tuple(container.shape)
    if dtype.kind == "b":
        values = rng.random(shape) < 0.5
    elif dtype.kind in "iu":
        values = rng.integers(-9 if dtype.kind == "i" else 0, 9, shape).astype(dtype)
    elif dtype.kind == "c":
        values = (rng.random(shape) - 0.5 + 1j * (rng.random(shape) - 0.5)).astype(dtype)
    else:
        values = (rng.random(shape) - 0.5).astype(dtype)
    return (
        values
        if hasattr(container, "lifetime") and _is_array(container)
        else dtype.type(values.flat[0])
    )


def _is_array(container: Any) -> bool:
    return type(container).__name__ == "Array"


def prepared(case: Case, calls: int = 2) -> Prepared:
    """Lower a case, prove its plans, compile it into the cache, and draw data."""
    try:
        sdfg = parsed(case.program, case.frontend)
        drawn = [case.arguments(sdfg, seed) for seed in range(1, calls + 1)]
        sdfg = case.lowered(sdfg)
        lowering = getattr(sdfg, ATTRIBUTE)
        problem = "; ".join(problems(lowering))
        if problem:
            return Prepared(None, [], problem)
        build_for(sdfg, case.ranks, device=os.environ.get("DISTSPMD_DEVICE"))
        return Prepared(sdfg, [(given, *case.expected(given)) for given in drawn])
    except Exception as error:
        return Prepared(None, [], f"{type(error).__name__}: {error}")
