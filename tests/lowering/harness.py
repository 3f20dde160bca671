"""Cases: a program, a schedule and data; and what it means that the lowered program is right.

The oracle is the program itself, run as plain Python on copies of the same NumPy arrays.
"""

import copy
import functools
import math
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from dace import SDFG
from dace.frontend.python.parser import DaceProgram

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.execution.program import build_for
from distspmd.frontend import numpy_program
from distspmd.lowering import ATTRIBUTE
from distspmd.passes.normalize.uninitialised import find_uninitialised
from distspmd.plans.machine import Machine
from distspmd.runtime.device_arrays import DeviceArray
from distspmd.runtime.engine import runnable
from distspmd.runtime.errors_together import wait_quietly
from lowering.on_paper import problems

RANKS = (1, 2, 3, 4, 6, 8)
Schedule = Mapping[str, Any]
Generator = np.random.Generator
_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


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
        """The parsed program, lowered in place."""
        distspmd.lower(sdfg, self.schedule, machine=self.machine)
        return sdfg

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
    **inputs: Callable[[Generator], Any],
) -> list[Case]:
    """A case for each schedule, on as many ranks as it needs (or as are given)."""
    found = []
    for schedule in schedules:
        needed = max((math.prod(_values(parts)) for parts in schedule.values()), default=1)
        counts = (ranks,) if isinstance(ranks, int) else ranks
        counts = counts or (next(count for count in RANKS if count >= needed),)
        found += [Case(program, schedule, count, inputs, reference) for count in counts]
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


def check(
    program: "distspmd.Program", data: Sequence[Any] | None, comm: Any, on_device: bool = False
) -> str:
    """Call a program on all ranks with arguments on rank 0; what is wrong with what it gives.

    With arrays in the memory of the device, if the program runs on one and it is asked for.
    """
    if data is None:
        given = program()
        return "" if given is None else f"rank {comm.rank} got {given!r}"
    arguments, result, after = data
    if on_device and program.device:
        arguments, given = _with_device_arrays(program, arguments)
    else:
        given = program(**arguments)
    return _difference(given, result, "result") or "; ".join(
        filter(None, (_difference(arguments[name], after[name], name) for name in after))
    )


def _with_device_arrays(
    program: "distspmd.Program", arguments: Mapping[str, Any]
) -> tuple[dict[str, Any], Any]:
    """What a call gives, and its arguments after it, brought to the host; all have one kind."""
    passed = {
        name: DeviceArray.of(value, program.device.kind)
        if isinstance(value, np.ndarray) and not program.signature.parameters[name].is_scalar
        else value
        for name, value in arguments.items()
    }
    given = program(**passed)
    after = {n: v.numpy() if isinstance(v, DeviceArray) else v for n, v in passed.items()}
    if not any(isinstance(value, DeviceArray) for value in passed.values()):
        return after, given
    each = given if isinstance(given, tuple) else (given,)
    found = tuple(value if value is None else value.numpy() for value in each)
    return after, found if isinstance(given, tuple) else found[0]


def _difference(given: Any, wanted: Any, name: str) -> str:
    if isinstance(wanted, tuple):
        if not isinstance(given, tuple) or len(given) != len(wanted):
            return f"{len(wanted)} results are wanted, {given!r} is given"
        pairs = enumerate(zip(given, wanted, strict=True))
        return "; ".join(filter(None, (_difference(g, w, f"{name} {n}") for n, (g, w) in pairs)))
    if wanted is None:
        return "" if given is None else f"no {name} is wanted, {given!r} is given"
    wanted = np.asarray(wanted)
    found = np.asarray(given)
    if found.shape != wanted.shape and not (found.size == wanted.size == 1):
        return f"{name} has the shape {found.shape}, not {wanted.shape}"
    found = found.reshape(wanted.shape)
    single = found.dtype.itemsize // (2 if found.dtype.kind == "c" else 1) == 4
    if found.dtype.kind in "biu":
        equal = found == wanted
    else:
        equal = np.isclose(
            found, wanted, 2e-5 if single else 1e-12, 1e-5 if single else 1e-13, True
        )
    if np.all(equal):
        return ""
    at = tuple(int(i) for i in np.argwhere(~np.atleast_1d(equal))[0])
    wrong = int(np.size(equal) - np.sum(equal))
    return (
        f"{name}: {wrong} of {wanted.size} elements differ, first at {at}: "
        f"{np.atleast_1d(found)[at]!r} for {np.atleast_1d(wanted)[at]!r}"
    )


@dataclass(frozen=True)
class Prepared:
    """A lowered and compiled case with data for its calls; or the problem that it has."""

    sdfg: SDFG | None
    data: Sequence[tuple[dict[str, Any], Any, dict[str, Any]]]
    """Of each call the arguments, the result, and the arguments after it."""
    problem: str = ""


def prepared(case: Case, calls: int = 2) -> Prepared:
    """Lower a case, prove its plans, compile it into the cache, and draw data."""
    try:
        sdfg = parsed(case.program, case.frontend)
        drawn = [case.arguments(sdfg, seed) for seed in range(1, calls + 1)]
        case.lowered(sdfg)
        lowering = getattr(sdfg, ATTRIBUTE)
        problem = "; ".join(problems(lowering))
        if problem:
            return Prepared(None, [], problem)
        build_for(sdfg, case.ranks, device=os.environ.get("DISTSPMD_DEVICE"))
        return Prepared(sdfg, [(given, *case.expected(given)) for given in drawn])
    except Exception as error:
        return Prepared(None, [], f"{type(error).__name__}: {error}")


def ahead(
    work: Callable[[_Item], _Done], items: Sequence[_Item], comm: Any
) -> Iterator[tuple[_Item, _Done | None, Any]]:
    """Do the work of all items, two ranks side by side; then each item, one after the other.

    An item comes with a communicator of all ranks, and, on rank 0 of that one, with what the work
    gave.
    """
    workers = min(2, comm.size)
    done = {n: work(items[n]) for n in range(comm.rank, len(items), workers) if comm.rank < workers}
    wait_quietly(comm)
    led = [comm.Split(0, (comm.rank - worker) % comm.size) for worker in range(workers)]
    for n, item in enumerate(items):
        yield item, done.pop(n, None), led[n % workers]


def outcome(ready: Prepared | None, comm: Any) -> str:
    """Run a case that rank 0 has prepared on all ranks, with all its data; what is wrong."""
    problem = comm.bcast(ready and ready.problem)
    if problem:
        return problem
    try:
        program = distspmd.compile(ready and ready.sdfg, comm)
    except DistSPMDError as error:
        return f"{type(error).__name__}: {error}"
    calls = comm.bcast(ready and len(ready.data))
    with program:
        found = [check(program, ready and ready.data[n], comm, n % 2 == 1) for n in range(calls)]
        found += [*_miscounted(program), *_misexplained(program, calls, comm)]
    return "; ".join(filter(None, comm.allreduce(found)))


def _miscounted(program: "distspmd.Program") -> list[str]:
    """Memlets that received other bytes than their plan says; at most those if data decide."""
    return [
        f"rank {program.rank} received {counted.received_bytes} bytes in {counted.calls} calls of "
        f"{memlet.layouts}"
        for memlet, counted in program.statistics()
        for planned in (counted.calls * runnable(memlet.solution.plan).received(program.rank),)
        if counted.received_bytes > planned
        or (counted.received_bytes < planned and not memlet.asked)
    ]


def _misexplained(program: "distspmd.Program", runs: int, comm: Any) -> list[str]:
    """Whether the ranks received other bytes, or moved more often, than is explained."""
    explained, statistics = distspmd.explain(program), program.statistics()
    found = [
        f"{memlet.layouts} moved {counted.calls} times in {runs} runs of {memlet.times}"
        for memlet, counted in statistics
        if memlet.times is not None
        and counted.calls != (runs * memlet.times if program.rank < program.lowering.ranks else 0)
    ]
    planned = [counted for memlet, counted in statistics if not memlet.asked]
    received = comm.allreduce(sum(counted.received_bytes for counted in planned))
    if not explained.undetermined and received != runs * explained.nbytes:
        found.append(f"{received} bytes came in {runs} runs; {explained.nbytes} are explained")
    return found
