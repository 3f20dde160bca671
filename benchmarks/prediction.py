"""Predicted against measured: ``python benchmarks/prediction.py [programs] [--ranks 4 8]``.

Each program is lowered with random schedules and with the one that a search finds. All of them are
called in turn, in several rounds, so that what else runs on the machine meets all alike; the figure
of a schedule is the fastest of its calls, each as long as the slowest rank takes. Beside it stands
what the model predicts, on a machine that is measured first, by other programs on as many ranks,
with the cores that these share. Bytes of plans are compared with those that the runtime counts.

Compiling takes longer than timing: ``--prepare`` compiles all programs and times none, so that
later little else is left than calls, with the same ``DISTSPMD_CACHE`` and the same ``--machine
FILE``, the machine for which plans are chosen. It is measured where there is no such file. What is
searched for and predicted is so with the machine as it is when programs are timed.

Where the machine has other work, ``--first`` lets the ranks run before it in what is timed: by the
priority of real time, for which the system wants a right, and yields to nobody but the others.

Per program and number of ranks it prints Spearman's correlation of prediction and time, and the
time of the found schedule against the best of all; beside them the correlation of one half of the
calls with the other, and how many pairs that differ by a tenth are predicted in their order.
``--out FILE`` keeps all figures as JSON, and ``--plot FILE`` draws those of such files.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import itertools
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from schedule_programs import CASES, MEASURED, TURNED, Case

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.plans.cost import cost
from distspmd.plans.machine import Machine
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch

ALPHA_MESSAGES = 2
"""Messages of a rank between its neighbours in one sweep of `swept`."""


@dataclass(frozen=True)
class Figure:
    """What is known of one schedule of a program.

    Attributes:
        schedule: as text.
        is_found: whether a search found it.
        predicted: seconds of a call.
        measured: seconds of the fastest call, of the slowest rank.
        halves: the same of every other call, and of the calls between these.
        planned: bytes of the plans of a call.
        counted: bytes that all ranks received in a call, as the runtime counted them.
        parts: seconds of each space, and of what moves of each array.
    """

    schedule: str
    is_found: bool
    predicted: float
    measured: float
    planned: float
    counted: float
    parts: dict[str, float] = field(default_factory=dict)
    halves: tuple[float, float] = (0.0, 0.0)


# -- schedules --


def random_schedule(names: list[tuple[str, int]], ranks: int, rng: random.Random) -> dict[str, Any]:
    """Parts for some of the spaces, given with their numbers of parameters."""
    chosen = [pair for pair in names if rng.random() < 0.5] or [rng.choice(names)]
    return {name: _random_parts(count, ranks, rng) for name, count in chosen}


def _random_parts(parameters: int, ranks: int, rng: random.Random) -> tuple[int, ...]:
    """The prime factors of the ranks, each to one of the parameters, or sometimes to none."""
    parts = [1] * parameters
    while ranks > 1:
        factor = next(n for n in range(2, ranks + 1) if ranks % n == 0)
        ranks //= factor
        if rng.random() > 0.1:
            parts[rng.randrange(parameters)] *= factor
    return tuple(parts)


def lowered(
    case: Case, schedules: int, ranks: int, machine: Machine, searched_for: Machine
) -> list[Any]:
    """SDFGs that are lowered: the one of the search first, then random ones, each once."""
    base = case.sdfg()
    arguments = case.arguments(base)
    found = copy.deepcopy(base)
    best = distspmd.search(base, ranks, machine=searched_for, arguments=arguments)
    found = distspmd.lower(found, best, machine=machine, arguments=arguments).sdfg
    sdfgs, seen = [found], {str(distspmd.predict(found).spaces) + _grids(found)}
    rng = random.Random(0)
    spaces = [(s.name, len(s.parameters)) for s in distspmd.iteration_spaces(base) if s.parameters]
    for _ in range(20 * schedules):
        if len(sdfgs) > schedules:
            break
        twin = copy.deepcopy(base)
        try:
            schedule = random_schedule(spaces, ranks, rng)
            twin = distspmd.lower(twin, schedule, machine=machine, arguments=arguments).sdfg
        except DistSPMDError:
            continue  # it cannot be split so
        key = str(distspmd.predict(twin).spaces) + _grids(twin)
        if key not in seen:
            seen.add(key)
            sdfgs.append(twin)
    return sdfgs


def _grids(sdfg: Any) -> str:
    return str(_record(sdfg).schedule)


def _record(sdfg: Any) -> distspmd.lowering.Lowering:
    from distspmd.lowering import ATTRIBUTE

    record: distspmd.lowering.Lowering = getattr(sdfg, ATTRIBUTE)
    return record


# -- ranks --


FIRST = "DISTSPMD_BENCHMARK_FIRST"
"""Of the surroundings: whether ranks run before all else while they are timed."""


@contextlib.contextmanager
def running_first(rank: int) -> Iterator[None]:
    """Within it all threads run before those of other processes, on one core, where asked."""
    if not os.environ.get(FIRST):
        yield
        return
    threads = [int(name) for name in os.listdir("/proc/self/task")]
    cores = sorted(os.sched_getaffinity(0))
    for thread in threads:
        os.sched_setaffinity(thread, {cores[rank % len(cores)]})
        os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(1))
    try:
        yield
    finally:
        for thread in threads:
            os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))
            os.sched_setaffinity(thread, cores)


def timed(programs: list[Any], given: dict[str, np.ndarray], comm: Any, rounds: int) -> list[Any]:
    """Least seconds of both halves of the calls of each program, called in turn, and its bytes."""
    with running_first(comm.rank):
        return _timed(programs, given, comm, rounds)


def _timed(programs: list[Any], given: dict[str, np.ndarray], comm: Any, rounds: int) -> list[Any]:
    from mpi4py import MPI

    tiles = []
    for program in programs:
        names = [n for n in given if n in program.signature.parameters]
        held = {n: program.signature.parameters[n].layout for n in names}
        mine = {n: program.tile(n, given[n]) if held[n] else given[n] for n in names}
        tiles.append(mine if comm.rank == 0 else {n: mine[n] for n in names if held[n]})
    seconds: list[list[float]] = [[] for _ in programs]
    for turn in range(rounds + 1):
        for number, (program, mine) in enumerate(zip(programs, tiles, strict=True)):
            comm.Barrier()
            begin = time.perf_counter()
            program(**mine)
            taken = comm.allreduce(time.perf_counter() - begin, MPI.MAX)
            if turn == 0:
                program.reset_statistics()  # the first call touches the memory
            else:
                seconds[number].append(taken)
    bytes_of = [
        comm.allreduce(sum(s.received_bytes for _, s in program.statistics())) / rounds
        for program in programs
    ]
    halves = [(min(own[::2]), min(own[1::2] or own)) for own in seconds]
    return list(zip(halves, bytes_of, strict=True))


def measured_machine(comm: Any, rounds: int) -> Machine:
    """The machine of so many ranks, by programs that are none of the ten."""
    from distspmd.runtime.measure.hosts import measured_on

    with running_first(comm.rank):
        machine = measured_on(comm)
    together = {
        name: of_work(case, comm, last(case, comm.size), rounds) for name, case in MEASURED.items()
    }
    alone = {name: of_work(case, comm, last(case, 1), rounds) for name, case in MEASURED.items()}
    rows, columns = (comm.size, 1), (1, comm.size)
    stays = of_work(TURNED, comm, {"b": rows, "a": rows}, rounds)
    turns = of_work(TURNED, comm, {"b": rows, "a": columns}, rounds)
    if comm.rank == 0:
        faster = [
            alone[name].seconds / together[name].seconds
            for name in ("filled", "computed", "squared")
        ]
        most = float(min(comm.size, len(os.sched_getaffinity(0))))
        cores = min(most, max(1.0, math.prod(faster) ** (1 / len(faster))))
        squared, packing = alone["squared"], machine.packing * cores / comm.size
        operation = alone["computed"].seconds / alone["computed"].operations
        shared, stream = comm.size / cores, alone["filled"].seconds / alone["filled"].nbytes
        machine = replace(
            machine,
            cores=cores,
            cache=machine.cache * shared,
            stream=stream,
            cached=min(1.0, machine.cached * machine.stream / shared / stream),
            function=alone["raised"].seconds / alone["raised"].operations / operation,
            operation=operation,
            product=(squared.seconds - packing * squared.nbytes) / squared.operations,
            packing=packing,
            alpha=max(machine.alpha, together["swept"].seconds / 100 / ALPHA_MESSAGES),
            beta=max(machine.beta, (turns.seconds - stays.seconds) / turns.received / shared),
            copy=machine.copy / shared,
            lone=min(1.0, machine.lone * shared),
            run=machine.run / shared,
        )
    found: Machine = comm.bcast(machine)
    return found


@dataclass(frozen=True)
class OfWork:
    """Seconds of a program, and the operations and bytes of the busiest rank.

    Attributes:
        received: bytes that the busiest rank of each move receives, of all moves.
    """

    seconds: float
    operations: float
    nbytes: float
    received: float


COUNTED = Machine(alpha=0, beta=1, copy=0)
"""On which the seconds of a move are the bytes of its busiest rank."""


def last(case: Case, ranks: int) -> dict[str, tuple[int, ...]]:
    """A schedule that splits the last space of a program along its first parameter."""
    space = distspmd.iteration_spaces(case.sdfg())[-1]
    return {space.name: (ranks, *[1] * (len(space.parameters) - 1))}


def of_work(case: Case, comm: Any, schedule: dict[str, Any], rounds: int) -> OfWork:
    """Time a program with a schedule."""
    sdfg, work, received = None, [], 0.0
    if comm.rank == 0:
        sdfg = case.sdfg()
        sdfg = distspmd.lower(sdfg, schedule, arguments=case.arguments(sdfg)).sdfg
        work = [space.work for space in _record(sdfg).spaces]
        received = distspmd.predict(sdfg, COUNTED).communication
    with distspmd.compile(sdfg, comm) as program:
        seconds = min(timed([program], drawn(case), comm, rounds)[0][0])
    return OfWork(seconds, sum(w.operations for w in work), sum(w.nbytes for w in work), received)


def drawn(case: Case) -> dict[str, np.ndarray]:
    """Arguments of a program, the same in each process."""
    rng = np.random.default_rng(0)
    sdfg = case.sdfg()
    return {
        name: rng.random([int(n) for n in sdfg.arrays[name].shape]).astype(
            sdfg.arrays[name].dtype.type
        )
        / 64
        for name in sdfg.arglist()
        if name in sdfg.arrays and not name.startswith("__return")
    }


def on_ranks(options: argparse.Namespace) -> None:
    """Print figures of all programs on the ranks that were started, and keep them."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    lowered_for = kept_machine(options.machine, comm, options.rounds)
    machine = lowered_for if options.prepare else measured_machine(comm, options.rounds)
    kept: dict[str, Any] = {"ranks": comm.size, "machine": asdict(machine), "programs": {}}
    for name in options.programs or list(CASES):
        begin = time.perf_counter()
        case = CASES[name]
        sdfgs = []
        if comm.rank == 0:
            sdfgs = lowered(case, options.schedules, comm.size, lowered_for, machine)
        count = comm.bcast(len(sdfgs))
        sdfgs = sdfgs or [None] * count
        programs = [distspmd.compile(sdfg, comm) for sdfg in sdfgs]
        ready = time.perf_counter()
        found = [] if options.prepare else timed(programs, drawn(case), comm, options.rounds)
        for program in programs:
            program.close()
        if comm.rank == 0 and options.prepare:
            print(f"{name}: {count} schedules in {ready - begin:.0f} s", flush=True)
        elif comm.rank == 0:
            own = [
                _figure(sdfg, machine, number == 0, *times)
                for number, (sdfg, times) in enumerate(zip(sdfgs, found, strict=True))
            ]
            kept["programs"][name] = [asdict(figure) for figure in own]
            if options.out:
                options.out.write_text(json.dumps(kept, indent=1) + "\n")
            print(
                f"{line(name, comm.size, own)}  ({ready - begin:.0f} s to compile, "
                f"{time.perf_counter() - ready:.0f} s to run)",
                flush=True,
            )


def kept_machine(file: Path | None, comm: Any, rounds: int) -> Machine:
    """The machine that a file keeps; it is measured and kept where there is none."""
    held = comm.bcast(file.read_text() if comm.rank == 0 and file and file.exists() else None)
    if held is not None:
        return Machine(**json.loads(held))
    machine = measured_machine(comm, rounds)
    if comm.rank == 0 and file:
        file.write_text(json.dumps(asdict(machine), indent=1) + "\n")
    return machine


def _figure(
    sdfg: Any, machine: Machine, is_found: bool, halves: tuple[float, float], counted: float
) -> Figure:
    predicted = distspmd.predict(sdfg, machine)
    parts = dict(predicted.spaces)
    for data, _, _, taken in predicted.moves:
        parts[f"-> {data}"] = parts.get(f"-> {data}", 0.0) + taken
    schedule = " ".join(str(_record(sdfg).schedule).split())
    planned = planned_bytes(sdfg, machine)
    return Figure(
        schedule, is_found, predicted.seconds, min(halves), planned, counted, parts, halves
    )


def planned_bytes(sdfg: Any, machine: Machine) -> float:
    """Bytes that the plans of a call move, where it is known how often they do."""
    return sum(
        memlet.times * cost(memlet.solution.plan, machine).nbytes
        for memlet in _record(sdfg).memlets
        if memlet.times is not None
    )


# -- figures --


def spearman(figures: list[Figure]) -> float:
    """Rank correlation of predicted and measured seconds."""
    return _correlation([f.predicted for f in figures], [f.measured for f in figures])


def repeated(figures: list[Figure]) -> float:
    """Rank correlation of one half of the calls with the other: what noise leaves to predict."""
    return _correlation([f.halves[0] for f in figures], [f.halves[1] for f in figures])


def _correlation(one: list[float], other: list[float]) -> float:
    a, b = ranked(one), ranked(other)
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else math.nan


def ordered(figures: list[Figure], apart: float = 1.1) -> float:
    """Part of the pairs whose times differ by so much that are predicted in their order."""
    found = [
        (a.predicted - b.predicted) * (a.measured - b.measured) > 0
        for a, b in itertools.combinations(figures, 2)
        if max(a.measured, b.measured) > apart * min(a.measured, b.measured)
    ]
    return sum(found) / len(found) if found else math.nan


def ranked(numbers: list[float]) -> np.ndarray:
    """Ranks; of equals their mean."""
    values = np.array(numbers)
    below = (values[:, None] > values[None]).sum(axis=1)
    equal = (values[:, None] == values[None]).sum(axis=1)
    return below + (equal - 1) / 2


def line(name: str, ranks: int, figures: list[Figure]) -> str:
    """The figures of a program as a row."""
    best = min(f.measured for f in figures)
    exact = sum(f.planned == f.counted for f in figures)
    (found,) = [f for f in figures if f.is_found]
    return (
        f"| {name} | {ranks} | {len(figures)} | {spearman(figures):.2f} | "
        f"{repeated(figures):.2f} | {ordered(figures):.0%} | {best * 1e3:.1f} | "
        f"{found.measured / best:.2f} | {exact} of {len(figures)} |"
    )


HEAD = (
    "| program | ranks | schedules | Spearman | again | 10 % apart | best ms | found / best | "
    "bytes exact |"
)


def draw(files: list[Path], target: Path) -> None:
    """Predicted against measured of all programs as a picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    given = [json.loads(file.read_text()) for file in files]
    names = [name for name in CASES if any(name in g["programs"] for g in given)]
    columns = 5
    rows = -(-len(names) // columns)
    figure, axes = pyplot.subplots(rows, columns, figsize=(3.1 * columns, 3.1 * rows))
    for axis, name in zip(np.ravel(axes), names, strict=False):
        for colour, g in zip(("#1f77b4", "#d62728", "#2ca02c"), given, strict=False):
            own = [Figure(**f) for f in g["programs"].get(name, [])]
            some = [f for f in own if not f.is_found]
            axis.loglog(
                [f.predicted * 1e3 for f in some],
                [f.measured * 1e3 for f in some],
                ".",
                color=colour,
                label=f"{g['ranks']} ranks, {spearman(own):.2f}",
            )
            for f in own:
                if f.is_found:
                    axis.loglog(f.predicted * 1e3, f.measured * 1e3, "*", color=colour, ms=13)
        axis.set_title(name.replace("_", " "), fontsize=10)
        axis.legend(fontsize=7)
    for axis in np.ravel(axes)[len(names) :]:
        axis.axis("off")
    figure.supxlabel("predicted ms (stars: found by the search)")
    figure.supylabel("measured ms")
    figure.tight_layout()
    figure.savefig(target, dpi=80)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", choices=[*CASES, []])
    parser.add_argument("--schedules", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ranks", type=int, nargs="*", default=[4, 8])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--first", action="store_true", help="run before other work")
    parser.add_argument("--prepare", action="store_true", help="compile only")
    parser.add_argument("--machine", type=Path, help="for which programs are lowered: a file")
    parser.add_argument("--plot", nargs="+", type=Path, metavar=("PICTURE", "FILE"))
    options = parser.parse_args()
    if options.plot:
        draw(options.plot[1:], options.plot[0])
        return
    if launched_ranks() is not None:
        on_ranks(options)
        return
    if not options.prepare:
        print(f"{HEAD}\n|{'---|' * 9}", flush=True)
    if options.first:
        os.environ[FIRST] = "1"
    for ranks in options.ranks:
        argv = [*options.programs, f"--schedules={options.schedules}", f"--rounds={options.rounds}"]
        argv += ["--prepare"] * options.prepare
        for key in ("out", "machine"):
            if file := getattr(options, key):
                argv.append(f"--{key}={file.with_stem(f'{file.stem}-{ranks}')}")
        done = launch([Path(__file__).resolve(), *argv], ranks=ranks, threads=1)
        if done.returncode:
            sys.exit(done.returncode)


if __name__ == "__main__":
    main()
