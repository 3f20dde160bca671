"""The search: the program as it is tiled, candidates on some meshes, and the best answer."""

from __future__ import annotations

import copy
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dace import SDFG

from distspmd.analysis.whole_program import unchanged_control_flow
from distspmd.dace_compat.carried import carry
from distspmd.dace_compat.fast_graphs import quick_graphs
from distspmd.dace_compat.settings import placed_by_us, rare_collections
from distspmd.errors import ArgumentError, NoAssignment, NoSchedule, ScheduleError, describe
from distspmd.layouts.dimension import is_count
from distspmd.layouts.mesh import MOST_RANKS, Mesh
from distspmd.lowering import Lowering, Reason, SpaceOrigin
from distspmd.passes.compilation import Compilation
from distspmd.passes.select_tilings import as_tiled
from distspmd.pipeline import (
    begin_compilation,
    check_not_lowered,
    check_options,
    lower_numbers,
    on_copy,
    run_passes,
    with_held,
)
from distspmd.placement.argument_layouts import ranks_of
from distspmd.plans.machine import Machine
from distspmd.plans.solver import Solver
from distspmd.runtime.launch.driver_ranks import machine_here
from distspmd.runtime.notices import notice, notice_if_long
from distspmd.schedule import Entries, Grid, Holding, Patterns
from distspmd.scheduling import candidates
from distspmd.scheduling.interleaved import fold_all, rounds_in
from distspmd.scheduling.kept_schedules import found_or_kept, key_of
from distspmd.scheduling.model import Model, Program
from distspmd.scheduling.prediction import predict
from distspmd.scheduling.result import LONGER, SearchResult, found_on
from distspmd.wcsp.solver import Solution, solve

_TRIES = 50
"""Answers of the solver that may turn out not to be possible."""
SECONDS = 60.0
"""Of a search whose budget is not given."""
MANY = 400
"""Spaces, beyond which those that are alike are tied unless something else is asked for."""
_ENOUGH = 2e-3
"""Of the cost of so many spaces: a gap that is not worth the time to close it."""
_HALF = 0.5
"""Of the time: where communication takes more, fewer ranks may be faster."""
_MORE = 1.05
"""Times that a schedule of the user's takes longer than one rank before it is told."""
_AGREED = 1.05
"""Times the cost of a schedule as searched for, within which what is lowered takes as long."""
_WORTHWHILE = 0.01
"""Of the time: what moves of an array must take, for the search to deal its parts in blocks."""
_LEAST = 0.5
"""Seconds for the solver, even if there is no time left."""
_WORTH_SECONDS, _WORTH_SHARE = 1e-3, 0.1
"""Of a run: work that stays whole, for which a search looks at what a schedule leaves open."""
_SHOWN = 5
"""Arrays that a refusal names."""
_SECONDS_TOLD = 3.0
"""Of a search that nobody has asked for: after that it is told."""
_LONG = (
    "searching a schedule of {} for {} ranks, at most about {:.0f} s; what it finds is kept "
    "for later calls and processes"
)
Progress = Callable[[float, float, float], None]


@dataclass(frozen=True)
class Options:
    """What a search is asked for.

    Attributes:
        ranks: that there are.
        memory: most bytes that may live on a rank at once, or a text such as ``"80 GB"``.
        seconds: after which the best so far is the answer.
        mesh: on whose axes to search; of all factors of the number of ranks where left out.
        tied: whether layers that are alike take one choice; None: where there are many spaces.
        progress: told seconds, cost and bound whenever one of the latter improves.
    """

    ranks: int
    memory: int | str | None = None
    seconds: float = SECONDS
    mesh: Mesh | None = None
    tied: bool | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not is_count(self.ranks) or not 1 <= self.ranks <= MOST_RANKS:
            raise ArgumentError(
                f"search: ranks={describe(self.ranks)} is no number of ranks from 1 to "
                f"{MOST_RANKS:,}."
            )
        seconds: Any = self.seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
            raise ArgumentError(f"search: seconds={describe(seconds)} is no time above zero.")
        object.__setattr__(self, "memory", bytes_of(self.memory))
        if self.mesh is not None and self.mesh.size != self.ranks:
            raise ArgumentError(
                f"search: mesh={self.mesh} has {self.mesh.size} ranks, but ranks={self.ranks}. "
                "Write a mesh of so many ranks, or leave it out."
            )


_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*\Z", re.IGNORECASE)


def bytes_of(given: Any) -> int | None:
    """A number of bytes, of a number or a text such as ``"80 GB"`` or ``"1.5 GiB"``.

    Raises:
        ArgumentError: neither of both.
    """
    if given is None:
        return None
    if isinstance(given, str) and (match := _BYTES.match(given)):
        unit = _UNITS[match[2].upper()]
        if match[3]:
            unit = {10**3: 2**10, 10**6: 2**20, 10**9: 2**30, 10**12: 2**40}.get(unit, 1)
        return int(float(match[1]) * unit)
    if is_count(given):
        return int(given)
    raise ArgumentError(f'memory={describe(given)} is no number of bytes. Write "80 GB".')


@rare_collections()
@placed_by_us()
def search_numbers(
    sdfg: SDFG,
    options: Options,
    fixed: Entries | None = None,
    *,
    arguments: Mapping[str, Holding] | None = None,
    machine: Machine | None = None,
    fuse: bool = True,
) -> SearchResult:
    """Search for a schedule of an SDFG with numbers for sizes; see :func:`distspmd.search`."""

    check_options(None, machine, "search")

    def aligned() -> Compilation:
        twin = copy.deepcopy(sdfg)
        compilation = begin_compilation(
            twin,
            on_copy({} if fixed is None else fixed, sdfg, twin),
            arguments=arguments,
            machine=machine,
            fuse=fuse,
        )
        run_passes(compilation, stop_after="align-maps")
        _check_dealt(compilation.grids)
        return compilation

    begin, compilation = time.monotonic(), aligned()
    compilation.spaces = as_tiled(compilation.spaces)
    with unchanged_control_flow(), quick_graphs():
        program = Program.of(compilation)
    found = _search(program, options)
    rounds = [
        each
        for each in rounds_in(program.footprints.values())
        if found.moving.get(each[0], 0.0) > _WORTHWHILE * found.cost
    ]
    if not rounds or compilation.grids:
        return found
    folded = aligned()
    if not fold_all(folded, rounds):
        return found
    folded.spaces = as_tiled(folded.spaces)
    left = max(_LEAST, options.seconds - (time.monotonic() - begin))
    other = search_fused(folded, replace(options, seconds=left))
    best = other if other.cost < found.cost else found
    return replace(best, bound=min(found.bound, other.bound))


def _check_dealt(grids: Mapping[str, Grid]) -> None:
    for name, grid in grids.items():
        if any(grid.dealt):
            raise ScheduleError(
                f"the schedule gives the space {name!r} {grid}, but a search deals no blocks that "
                "are asked for. Leave cyclic() out, or leave ranks= out and write what a search "
                "found beside it."
            )


def lower_searched(
    sdfg: SDFG,
    schedule: Entries,
    options: Options,
    *,
    arguments: Mapping[str, Holding] | None = None,
    solvers: Sequence[Solver] | None = None,
    machine: Machine | None = None,
    deterministic: bool = False,
    fuse: bool = True,
) -> Lowering:
    """Search for what a schedule leaves open, and lower an SDFG, which stays as it is."""
    check_options(solvers, machine)
    check_not_lowered(sdfg)
    machine = machine or machine_here()
    arguments = with_held(sdfg, schedule, arguments)

    made: dict[int, Lowering] = {}

    def lowered(found: SearchResult) -> Lowering:
        if id(found) not in made:
            made[id(found)] = lower_numbers(
                sdfg,
                found.schedule,
                arguments=arguments,
                solvers=solvers,
                machine=machine,
                deterministic=deterministic,
                fuse=fuse,
                there_are=options.ranks,
            )
        return made[id(found)]

    def searched(ranks: int) -> SearchResult:
        return search_numbers(
            sdfg,
            replace(options, ranks=ranks),
            schedule,
            arguments=arguments,
            machine=machine,
            fuse=fuse,
        )

    is_free = options.mesh is None and options.memory is None and not schedule
    least = ranks_of(arguments or {}) if is_free else options.ranks

    def search() -> SearchResult:
        with notice_if_long(_LONG.format(sdfg.name, options.ranks, options.seconds), _SECONDS_TOLD):
            return _cheapest(searched(options.ranks), searched, lowered, least)

    asked = replace(options, progress=None)
    found, is_kept = found_or_kept(key_of(sdfg, schedule, machine, asked, arguments, fuse), search)
    try:
        lowering = lowered(found)
    except ScheduleError:
        if not is_kept:
            raise
        lowering = lowered(found := search())
    line = f"{sdfg.name}: {found.line}"
    notice(f"{line}{' (kept from an earlier search)' * is_kept}", of=line)
    remarks = (*lowering.remarks, found.sentence)
    lowering = replace(lowering, remarks=remarks, searched=found.reason)
    carry(lowering.sdfg, lowering)
    return lowering


def _cheapest(
    found: SearchResult,
    searched: Callable[[int], SearchResult],
    lowered: Callable[[SearchResult], Lowering],
    least: int,
) -> SearchResult:
    """What was found, or what takes fewer ranks where that is predicted to be faster once lowered.

    A search prices what it has not lowered. Where that is as it said, nothing else is tried.

    Args:
        found: by a search.
        searched: searches for so many ranks.
        lowered: lowers what was found.
        least: ranks that a schedule has at least.
    """
    if found.used <= max(1, least):
        return found
    seconds = predict(lowered(found)).seconds
    if seconds <= min(_AGREED * found.cost, found.alone or math.inf):
        return found
    best, ranks = (seconds, found), found.used
    while ranks > max(1, least):
        ranks = max(1, least, ranks // min(candidates.prime_factors(ranks)))
        other = searched(ranks)
        if not other.is_split:
            other = replace(other, why_whole=LONGER)
        other = replace(other, ranks=found.ranks, alone=found.alone)
        best = min(best, (predict(lowered(other)).seconds, other), key=lambda each: each[0])
    return best[1]


def lower_open(sdfg: SDFG, schedule: Entries, **options: Any) -> Lowering:
    """Lower an SDFG with a schedule that names some spaces; what it leaves open is searched for.

    The others follow their neighbours first. If these leave much work whole that would be worth a
    search, the better of both is the answer, as predicted.

    Args:
        sdfg: the program, which stays as it is.
        schedule, options: of :func:`distspmd.lower`.
    """
    followed = lower_numbers(sdfg, schedule, **options)
    is_whole_list = isinstance(schedule, Patterns) or not schedule
    if is_whole_list or followed.ranks == 1 or not _is_worth_a_search(followed):
        return _with_wish(followed)
    found = lower_searched(sdfg, schedule, Options(followed.ranks), **options)
    seconds, others = predict(found).seconds, predict(followed).seconds
    if seconds >= others:
        return _with_wish(followed)
    said = (
        f"What the schedule leaves open was searched for: predicted {seconds:.2e} s a run, and "
        f"{others:.2e} s where it follows its neighbours (search=False)."
    )
    return _with_wish(_remarked(found, said))


def _remarked(lowering: Lowering, sentence: str) -> Lowering:
    """The lowering with one more remark."""
    found = replace(lowering, remarks=(*lowering.remarks, sentence))
    carry(found.sdfg, found)
    return found


def _with_wish(lowering: Lowering) -> Lowering:
    """The lowering of a schedule that a user named; if one rank would be faster, it says so."""
    predicted = predict(lowering)
    if lowering.ranks == 1 or predicted.seconds < _WORTH_SECONDS:
        return lowering
    machine = replace(lowering.machine, cores=0)
    alone = sum(math.prod(s.parts) * s.work.seconds(machine) for s in lowering.spaces)
    if predicted.seconds <= _MORE * alone:
        return lowering
    data, *_, most = max(predicted.moves, key=lambda move: move[-1], default=("nothing", 0.0))
    said = (
        f"The schedule is predicted to take {predicted.seconds / alone:.1f} times as long as one "
        f"rank, {predicted.seconds:.1e} s a run: what moves takes {predicted.communication:.1e} s, "
        f"most of it {data!r}, {most:.1e} s. Leave the schedule out to let one be searched for."
    )
    notice(f"{lowering.name}: {said}")
    return _remarked(lowering, said)


def _is_worth_a_search(lowering: Lowering) -> bool:
    """Whether spaces that no schedule names leave so much work whole that a search may pay."""
    open_ones = [
        space.work.seconds(lowering.machine)
        for space in lowering.spaces
        if space.origin is SpaceOrigin.PROGRAM
        and space.chosen_by.reason is not Reason.SCHEDULE
        and space.can_split
        and max(space.parts, default=1) == 1
    ]
    total = predict(lowering).seconds
    return sum(open_ones) > max(_WORTH_SECONDS, _WORTH_SHARE * total)


def search_fused(compilation: Compilation, options: Options) -> SearchResult:
    """Search for a schedule of a program whose maps are fused and aligned.

    Raises:
        NoSchedule: nothing fits the memory; says the least that would do.
    """
    with unchanged_control_flow(), quick_graphs():
        program = Program.of(compilation)
    return _search(program, options)


def _search(program: Program, options: Options) -> SearchResult:
    """Search on all meshes, and with fewer ranks where that may be faster."""
    begin = time.monotonic()
    grids = program.compilation.grids
    held = _checked_ranks(program, options)
    bounds: list[float] = []
    refused: list[NoSchedule] = []

    def on(mesh: Mesh) -> SearchResult | None:
        if mesh.size < held:
            return None
        fixed = {name: candidates.on_mesh(grid, mesh) for name, grid in grids.items()}
        assert options.memory is None or isinstance(options.memory, int)
        tied = len(program.footprints) > MANY if options.tied is None else options.tied
        model = Model(program, mesh, fixed, options.memory, tied)
        left = max(_LEAST, options.seconds - (time.monotonic() - begin))
        try:
            found = _solved(model, replace(options, seconds=left))
        except NoSchedule as error:
            refused.append(error)
            return None
        bounds.append(found.bound)
        return found

    with unchanged_control_flow(), quick_graphs():
        answers = [found for mesh in _meshes(options, list(grids.values())) if (found := on(mesh))]
        if not answers:
            raise min(refused, key=lambda error: error.least)
        best, alone = min(answers, key=lambda found: found.cost), None
        if options.mesh is None and not grids:
            best = _on_fewer(best, on, options, program.machine.cores)
        if not grids:
            lone = best if not best.is_split else _alone(program)
            alone = lone.cost
            if best.cost > alone and options.memory is None and held <= 1:
                best = lone
    return replace(best, bound=min(bounds), ranks=options.ranks, alone=alone)


def _checked_ranks(program: Program, options: Options) -> int:
    """Ranks on which the caller holds arguments.

    Raises:
        ArgumentError: the schedule or the arguments ask for more ranks than there are.
    """
    for name, grid in program.compilation.grids.items():
        if grid.mesh.size > options.ranks:
            raise ArgumentError(
                f"search: the schedule gives the space {name!r} {grid.mesh.size} ranks, but "
                f"ranks={options.ranks}."
            )
    held = ranks_of(program.compilation.arguments)
    if held > options.ranks:
        raise ArgumentError(
            f"search: arguments= has layouts on {held} ranks, but ranks={options.ranks}."
        )
    return held


def _alone(program: Program) -> SearchResult:
    """A run on one rank, whatever memory it has."""
    model = Model(program, candidates.mesh_of(1), {})
    return found_on(model, solve(model.problem, seconds=_LEAST), 1)


def _on_fewer(
    best: SearchResult, on: Callable[[Mesh], SearchResult | None], options: Options, cores: float
) -> SearchResult:
    """The same or a better one with idle ranks, which are tried where moves take long.

    So they are where ranks share cores, which may do as much with fewer of them.
    """
    ranks = options.ranks
    while ranks > 1 and (
        not best.is_split or best.communication > _HALF * best.cost or 0 < cores < ranks
    ):
        ranks //= min(candidates.prime_factors(ranks))
        found = on(candidates.mesh_of(ranks))
        if found is None or found.cost >= best.cost:
            break
        best = found
    return best


def _meshes(options: Options, grids: list[Grid]) -> Iterator[Mesh]:
    if options.mesh is not None:
        yield options.mesh
    elif grids:
        yield candidates.mesh_with(options.ranks, grids)
    else:
        yield from map(candidates.mesh_of, candidates.rank_counts(options.ranks))


def _solved(model: Model, options: Options) -> SearchResult:
    """The best of a model whose choices are all possible: those that are not are left out."""
    _check_memory(model)
    begin, memory, best = time.monotonic(), model.capacity, None
    enough = _ENOUGH if len(model.spaces) > MANY else 0.0
    for _ in range(_TRIES):
        left = max(_LEAST, options.seconds - (time.monotonic() - begin))
        try:
            solution = solve(model.problem, seconds=left, progress=options.progress, enough=enough)
        except NoAssignment:
            break
        refused = _refused(model, solution)
        for number, choice in refused:
            model.forbid(number, choice)
        if refused:
            continue
        found = found_on(model, solution, options.ranks)
        if best is None or found.peak < best.peak:
            best = found
        if memory is None or model.capacity is None or found.peak <= memory:
            return found
        if not model.tighten(model.capacity - (found.peak - memory)):
            break
    if best is None:
        raise NoSchedule(
            f"no schedule was found for {model.mesh.size} ranks that keeps each within "
            f"{memory or 0:,} bytes. Give more memory, more ranks or more seconds.",
            memory or 0,
        )
    at = max(best.spaces, key=lambda space: space.held)
    raise NoSchedule(
        f"no schedule was found for {model.mesh.size} ranks that keeps each within {memory:,} "
        f"bytes. The least that was found is {best.peak:,} bytes, in the space {at.name!r}. Give "
        "more memory or more ranks.",
        best.peak,
    )


def _refused(model: Model, solution: Solution) -> list[tuple[int, int]]:
    """Choices of spaces that cannot be tiled so: variables with their choices."""
    found = []
    for number, variable in enumerate(model.spaces):
        choice = int(solution.choices[number])
        footprint = model.program.footprints[variable.name]
        mesh, splits = footprint.on(model.mesh, variable.candidates[choice])
        if len(variable.candidates) == 1 or not any(splits):
            continue
        if footprint.refuses(mesh, splits):
            found.append((number, choice))
    return found


def _check_memory(model: Model) -> None:
    """See to it that some schedule fits the memory.

    What each variable takes does not depend on the others, so that the least of each is the least
    of all.

    Raises:
        NoSchedule: none does.
    """
    if model.capacity is None:
        return
    least = [usage.amounts.min() for usage in model.usages]
    loads = model.least_loads
    if loads.max(initial=0) <= model.capacity:
        return
    at = int(loads.argmax())
    space, first = model.spaces[at], len(model.spaces)
    living = sorted(
        (
            (float(amount), model.homes[usage.variable - first].container_choice.data)
            for usage, amount in zip(model.usages, least, strict=True)
            if usage.variable >= first and usage.begin <= at < usage.end
        ),
        reverse=True,
    )
    held = [f"{name!r} {nbytes:,.0f}" for nbytes, name in living[:_SHOWN]]
    if others := living[_SHOWN:]:
        held.append(f"{len(others)} others {sum(nbytes for nbytes, _ in others):,.0f}")
    raise NoSchedule(
        f"no schedule for {model.mesh.size} ranks keeps each within {model.capacity:,} bytes. "
        f"The least that would do is {loads.max():,.0f} bytes, in the space {space.name!r}: "
        f"what it works on takes {space.tiles.min():,.0f}, and tiles of arrays hold "
        f"{', '.join(held) or 'none'}. Give more memory or more ranks, or pass arguments as "
        "'distributed'.",
        int(loads.max()),
    )
