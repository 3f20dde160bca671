"""How ranks run what some of them have prepared; those that prepare nothing import no DaCe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.lowering import PlannedMemlet
from distspmd.plans.pull_table import received_by_pulls
from distspmd.runtime.devices.arrays import DeviceArray
from distspmd.runtime.engine.engine import runnable
from distspmd.runtime.watch.errors_together import wait_quietly

if TYPE_CHECKING:
    from dace import SDFG

_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def check(
    program: distspmd.execution.Program,
    data: Sequence[Any] | None,
    comm: Any,
    on_device: bool = False,
) -> str:
    """Call a program on all ranks with arguments on rank 0; what is wrong with what it gives.

    With arrays in the memory of the device, if the program runs on one and it is asked for.
    """
    if data is None:
        given = program()
        each = given if isinstance(given, tuple) else (given,)
        is_elsewhere = all(g is None or isinstance(g, distspmd.runtime.MissingResult) for g in each)
        return "" if is_elsewhere else f"rank {comm.rank} got {given!r}"
    arguments, result, after = data
    if on_device and program.device:
        arguments, given = _with_device_arrays(program, arguments)
    else:
        given = program(**arguments)
    return _difference(given, result, "result") or "; ".join(
        filter(None, (_difference(arguments[name], after[name], name) for name in after))
    )


def _with_device_arrays(
    program: distspmd.execution.Program, arguments: Mapping[str, Any]
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


def ahead(
    work: Callable[[_Item], _Done], items: Callable[[], Sequence[_Item]], comm: Any
) -> Iterator[tuple[tuple[_Item, _Done] | None, Any]]:
    """Do the work of all items, two ranks side by side; then each item, one after the other.

    An item comes with a communicator of all ranks. Rank 0 of that one gets the item and what the
    work gave; the others get None. Ranks that do no work do not ask for the items.
    """
    workers = min(2, comm.size)
    known = items() if comm.rank < workers else ()
    done = {n: work(known[n]) for n in range(comm.rank, len(known), workers)}
    wait_quietly(comm)
    led = [comm.Split(0, (comm.rank - worker) % comm.size) for worker in range(workers)]
    for n in range(comm.bcast(len(known))):
        yield ((known[n], done.pop(n)) if n in done else None), led[n % workers]


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


def _miscounted(program: distspmd.execution.Program) -> list[str]:
    """Memlets that received other bytes than their plan says; at most those if data decide.

    Where kernels combined operands, each rank received all of them.
    """
    by_kernels = program.pulls or program.device_messages or program.staged_pieces
    found = []
    for memlet, counted in program.statistics():
        if not isinstance(memlet, PlannedMemlet):  # ranks talk; tests of these calls count
            continue
        plan = runnable(memlet.solution.plan)
        planned = {plan.received(program.rank)}
        if by_kernels:  # where tiles of the host take part, operands go as they do there
            planned.add(received_by_pulls(plan, program.rank))
        least, most = counted.calls * min(planned), counted.calls * max(planned)
        if counted.received_bytes > most or (counted.received_bytes < least and not memlet.asked):
            found.append(
                f"rank {program.rank} received {counted.received_bytes} bytes in {counted.calls} "
                f"calls of {memlet.layouts}"
            )
    return found


def _misexplained(program: distspmd.execution.Program, runs: int, comm: Any) -> list[str]:
    """Whether the ranks received other bytes, or moved more often, than is explained."""
    explained, statistics = distspmd.explain(program), program.statistics()
    found = [
        f"{memlet.layouts} moved {counted.calls} times in {runs} runs of {memlet.times}"
        for memlet, counted in statistics
        if memlet.times is not None
        and isinstance(memlet, PlannedMemlet)
        and counted.calls != (runs * memlet.times if program.rank < program.lowering.ranks else 0)
    ]
    planned = [
        counted for memlet, counted in statistics if not memlet.asked or memlet.received is not None
    ]
    received = comm.allreduce(sum(counted.received_bytes for counted in planned))
    more = received - runs * explained.nbytes
    if not explained.undetermined and not 0 <= more <= runs * explained.more_by_pulls:
        found.append(f"{received} bytes came in {runs} runs; {explained.nbytes} are explained")
    return found
