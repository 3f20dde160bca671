"""Lowering as a whole: what it refuses, what it records, and that every plan of it is proved."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import sys
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import distspmd
from distspmd.errors import NoSolver, ScheduleError, UnsupportedProgram
from distspmd.layouts import intervals
from distspmd.lowering import Lowering
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.passes.normalize.callbacks import REPLACEMENTS
from distspmd.plans.collectives import StepKind
from distspmd.solvers.exchange import Exchange
from distspmd.solvers.local import Nothing

M, N, K = 10, 6, 8


@dace.program
def product(a: dace.float64[M, K], b: dace.float64[K, N]):
    return a @ b


@dace.program
def chain(x: dace.float64[M, N], y: dace.float64[N]):
    return np.sin(x) * 2 + y


@dace.program
def in_place(x: dace.float64[M, N]):
    x[:] = x * 2 + 1


def lowered(
    program: dace.SDFG, schedule: dict[str, object], **options: bool
) -> tuple[dace.SDFG, Lowering]:
    sdfg = program.to_sdfg()
    lowering = distspmd.lower(sdfg, schedule, **options)
    return lowering.sdfg, lowering


def received(lowering: Lowering, rank: int) -> int:
    return sum(memlet.solution.plan.received(rank) for memlet in lowering.memlets)


@pytest.mark.parametrize("parts", list(itertools.product((1, 2, 3), repeat=3)))
def test_every_plan_is_proved_and_receives_the_fewest_bytes(parts: tuple[int, int, int]) -> None:
    _, lowering = lowered(product, {"_MatMult_": parts})
    for memlet in lowering.memlets:
        distspmd.verify(memlet.solution.plan)
    kinds = {
        memlet.data: [s.kind for s in memlet.solution.plan.steps] for memlet in lowering.memlets
    }
    for name in "ab":
        assert kinds.get(name, []) in (
            [],
            [StepKind.COPY],
            [StepKind.SCATTER],
            [StepKind.BROADCAST],
            [StepKind.SCATTER, StepKind.BROADCAST],
        )
    rows, columns, inner = (-(-n // p) for n, p in zip((M, N, K), parts, strict=True))
    for rank, (i, j, k) in enumerate(itertools.product(*map(range, parts))):
        tile = [
            max(0, min(n, (r + 1) * b) - min(n, r * b))
            for n, r, b in zip((M, N, K), (i, j, k), (rows, columns, inner), strict=True)
        ]
        needed = 0 if rank == 0 or 0 in tile else 8 * (tile[0] * tile[2] + tile[2] * tile[1])
        got = sum(
            memlet.solution.plan.received(rank)
            for memlet in lowering.memlets
            if memlet.data in "ab"
        )
        assert got == needed


def test_a_chain_on_one_grid_moves_arguments_and_results_alone() -> None:
    _, lowering = lowered(chain, {"__return": (2, 3)})
    assert [memlet.data for memlet in lowering.memlets] == ["x", "y", "__return"]
    assert {space.parts for space in lowering.spaces} == {(2, 3)}
    assert received(lowering, 5) == 8 * (5 * 2 + 2)


def test_spaces_that_nobody_named_follow_and_the_record_says_so() -> None:
    _, lowering = lowered(chain, {"__return": (2, 3)}, fuse=False)
    chosen = [str(space.chosen_by) for space in lowering.spaces]
    assert chosen[2] == "the schedule"
    assert all(why.startswith("its neighbour ") for why in chosen[:2])
    assert chosen[0] in str(lowering)
    _, lowering = lowered(chain, {})
    assert str(lowering.spaces[0].chosen_by) == "rank 0: no neighbour"


def test_one_rank_works_on_the_arguments_themselves() -> None:
    for program in (product, chain, in_place):
        _, lowering = lowered(program, {})
        assert lowering.memlets == ()
        assert lowering.ranks == 1


def test_an_array_in_place_is_loaded_and_stored() -> None:
    _, lowering = lowered(in_place, {"x": (2, 1)})
    assert [memlet.data for memlet in lowering.memlets] == ["x", "x"]
    assert lowering.memlets[0].from_caller
    assert lowering.memlets[1].to_caller


@dace.program
def overwritten(x: dace.float64[M], y: dace.float64[M]):
    y[:] = x + 1


@dace.program
def partly(x: dace.float64[M], y: dace.float64[M]):
    y[2:7] = x[2:7] + 1


def test_what_is_overwritten_is_not_loaded() -> None:
    for program in (overwritten, partly):
        _, lowering = lowered(program, {"y": (3,)})
        moved = [memlet for memlet in lowering.memlets if memlet.data == "y"]
        (store,) = moved
        assert store.to_caller


def test_the_rest_of_a_result_stays_as_it_was() -> None:
    _, lowering = lowered(partly, {"y": (3,)})
    (store,) = (memlet for memlet in lowering.memlets if memlet.data == "y")
    boxes = {box for step in store.solution.plan.steps for *_, box in _ends(step)}
    assert all(intervals.contains(((2, 7),), box) for box in boxes)


def _ends(step: object) -> list[tuple[int, int, intervals.Box]]:
    return [(m.sender, m.receiver, m.box) for m in step.messages]  # type: ignore[attr-defined]


def test_the_nodes_show_both_layouts_and_survive_json() -> None:
    sdfg, lowering = lowered(product, {"_MatMult_": (2, 1, 2)})
    again = dace.SDFG.from_json(sdfg.to_json())
    again.validate()
    labels = [str(n) for n, _ in again.all_nodes_recursive() if isinstance(n, DistributedMemlet)]
    assert len(labels) == len(lowering.memlets)
    assert "a: root [10, 8] -> [5{__i0}10, 4{__i2}8] (scatter, 480 bytes)" in labels
    assert any("partial(sum){__i2} -> root [10, 6]" in label for label in labels)


def test_the_record_travels_and_prints() -> None:
    sdfg, lowering = lowered(product, {"_MatMult_": (2, 1, 2)})
    travelled = pickle.loads(pickle.dumps(lowering))
    assert str(travelled) == str(lowering)
    assert "scatter + broadcast" in lowering._repr_html_()
    assert copy.deepcopy(sdfg)._distspmd_lowering.ranks == 4


def test_symbols_that_agree_on_all_ranks_are_constants() -> None:
    _, lowering = lowered(product, {"_MatMult_": (2, 1, 1)})
    uniform, mine = lowering.uniform_symbols(2), lowering.symbol_values(1)
    assert set(uniform.values()) <= {K, N}
    assert set(mine) - set(uniform)
    assert all(value == 0 for value in lowering.symbol_values(2).values())
    assert not lowering.uniform_symbols(3)


def test_what_is_lowered_is_a_new_object_and_the_program_stays_as_it_was() -> None:
    sdfg = product.to_sdfg()
    before = sdfg.to_json()
    spaces = str(distspmd.iteration_spaces(sdfg))
    first = distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)})
    assert first.sdfg is not sdfg
    assert first.original is sdfg
    assert sdfg.to_json() == before
    assert str(distspmd.iteration_spaces(sdfg)) == spaces
    assert distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)}) == first
    assert distspmd.lower(sdfg, {"_MatMult_": (1, 2, 1)}).schedule != first.schedule
    assert distspmd.search(sdfg, 2).schedule
    assert distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)}) == first


def test_the_lowered_sdfg_itself_is_not_lowered_again() -> None:
    lowering = distspmd.lower(product, {"__return": (2, 1, 1)})
    for refuses in (distspmd.iteration_spaces, lambda sdfg: distspmd.lower(sdfg, {})):
        with pytest.raises(ScheduleError, match=r"is lowered already. Pass the program that"):
            refuses(lowering.sdfg)


@dace.program
def unknown_range(x: dace.float64[M], n: dace.int64[1]):
    for i in dace.map[0 : n[0]]:
        x[i] = 1.0


@dace.program
def counted(x: dace.bool[M, N]):
    return np.sum(x, axis=0)


@dace.program
def all_of_many(x: dace.bool[M, N]):
    return np.multiply.reduce(x, axis=1)


@dace.program
def multiplied(x: dace.float64[M, N]):
    return np.prod(x, axis=0)


@dace.program
def outer(x: dace.float64[M], y: dace.float64[N]):
    return np.outer(x, y)


@dace.program
def length(x: dace.float64[M]):
    return np.linalg.norm(x)


@dace.program
def running(x: dace.float64[M]):
    return np.cumsum(x)


@dace.program
def called_in_a_map(x: dace.float64[M, N], y: dace.float64[M]):
    for i in dace.map[0:M]:
        y[i] = np.prod(x[i])


@pytest.mark.parametrize(
    ("program", "line", "message"),
    [
        (counted, "np.sum(x", "of bools by np.sum gives a bool at DaCe, where NumPy counts"),
        (counted, "np.sum(x", "np.sum(x.astype(np.int64), axis=...)"),
        (all_of_many, "np.multiply", "np.multiply.reduce(x.astype(np.int64), axis=...)"),
        (multiplied, "np.prod(x", "'np.prod' is a function that DaCe does not know, and calls"),
        (multiplied, "np.prod(x", "Write np.multiply.reduce(x, axis=...) instead"),
        (outer, "np.outer", "Write np.multiply.outer(x, y) instead"),
        (length, "np.linalg", "'np.linalg.norm' is"),
        (running, "np.cumsum", "'np.cumsum' is a function"),
        (running, "np.cumsum", "Take the call out of the program"),
        (called_in_a_map, "np.prod(x[i])", "Write np.multiply.reduce"),
    ],
)
def test_what_dace_computes_otherwise_is_refused_with_what_to_write(
    program: dace.SDFG, line: str, message: str
) -> None:
    with pytest.raises(UnsupportedProgram) as caught:
        lowered(program, {})
    assert message in str(caught.value)
    name, number, _ = str(caught.value).split(":", 2)
    assert name == Path(__file__).name
    assert line in Path(__file__).read_text().splitlines()[int(number) - 1]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("np.multiply.reduce(x, axis=0)", np.prod),
        ("np.mean((x - np.mean(x, axis=0)) ** 2, axis=0)", np.var),
        ("np.sqrt(np.mean((x - np.mean(x, axis=0)) ** 2, axis=0))", np.std),
        ("np.sum((x != 0).astype(np.int64), axis=0)", np.count_nonzero),
        ("np.max(x, axis=0) - np.min(x, axis=0)", np.ptp),
        ("x[1:] - x[:-1]", np.diff),
    ],
)
def test_the_replacements_of_calls_compute_the_same(code: str, wanted: Any) -> None:
    advised = [text.replace("...", "0") for text in REPLACEMENTS.values()]
    assert code in advised
    x = np.random.default_rng(1).random((M, N))
    assert np.allclose(eval(code), wanted(x, axis=0))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (unknown_range, "which is not known before the run"),
    ],
)
def test_what_cannot_be_partitioned_is_refused(program: dace.SDFG, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        lowered(program, {})


def test_a_program_that_is_refused_still_lowers_with_another_schedule() -> None:
    sdfg = product.to_sdfg()
    with pytest.raises(ScheduleError):
        distspmd.lower(sdfg, {"_MatMult_": (2, 1)})
    assert distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)}).ranks == 2


def test_a_program_without_a_plan_still_lowers_with_other_solvers() -> None:
    sdfg = product.to_sdfg()
    with pytest.raises(NoSolver, match=r"test_lowering.py:\d+: 'a': no solver moves"):
        distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)}, solvers=[Nothing()])
    assert distspmd.lower(sdfg, {"_MatMult_": (2, 1, 1)}).ranks == 2


def test_what_is_no_program_is_refused_with_what_to_pass() -> None:
    for function in (distspmd.iteration_spaces, lambda given: distspmd.lower(given, {})):
        with pytest.raises(UnsupportedProgram, match=r"int was given. Pass an SDFG, a @dace"):
            function(3)


def test_a_dace_program_and_a_function_are_parsed_first() -> None:
    by_sdfg = distspmd.lower(distspmd.frontend.numpy_program(product), {"__return": (2, 1, 1)})
    for given in (product, product.f):
        names = [space.name for space in distspmd.iteration_spaces(given)]
        assert names == ["__return"]  # the name is what is written
        assert str(distspmd.lower(given, {"__return": (2, 1, 1)})) == str(by_sdfg)


def test_an_sdfg_that_was_lowered_and_saved_is_known_as_such() -> None:
    sdfg, _ = lowered(product, {"_MatMult_": (2, 1, 1)})
    with pytest.raises(ScheduleError, match="is lowered already"):
        distspmd.lower(dace.SDFG.from_json(sdfg.to_json()), {"_MatMult_": (2, 1, 1)})


def test_the_solvers_can_be_chosen() -> None:
    sdfg = product.to_sdfg()
    lowering = distspmd.lower(sdfg, {"_MatMult_": (2, 2, 1)}, solvers=[Exchange()])
    assert {memlet.solution.plan.solver for memlet in lowering.memlets} == {"exchange"}


@pytest.mark.parametrize("rounds", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_a_function_that_is_lowered_again_and_again_leaves_nothing(rounds: int) -> None:
    def scaled(x: dace.float64[12], w: dace.float64[12]):
        return x * w + 1

    def blocks_after(times: int) -> int:
        for _ in range(times):
            distspmd.lower(scaled, {"__return": (2,)})
        gc.collect()
        return sys.getallocatedblocks()

    grown = -blocks_after(10) + blocks_after(rounds)
    assert grown < 10 * rounds, f"{grown} blocks of memory in {rounds} rounds"
