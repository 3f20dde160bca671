"""What the examples communicate, to the byte at full size; that they are right, in small."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import UNOPTIMISED

import distspmd
from distspmd.plans.machine import Machine
from distspmd.runtime.launch.mpiexec import launch

MODULES = ("matrix_products", "softmax", "attention", "stencils", "reductions", "gradients")


@pytest.fixture(scope="module")
def examples(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    sys.path.insert(0, str(request.config.rootpath / "examples"))
    yield {name: importlib.import_module(name) for name in (*MODULES, "showing")}
    sys.path.pop(0)


def moved(examples: dict[str, Any], module: str, number: int) -> tuple[dict[str, int], Any]:
    """Bytes that all ranks receive of each array between ranks, each time; and the lowering."""
    _, lowering = examples[module].EXAMPLES[number].lowered()
    found: dict[str, int] = {}
    for memlet in examples["showing"].inside(lowering):
        found[memlet.data] = found.get(memlet.data, 0) + memlet.solution.cost.nbytes
    return found, lowering


def to_caller(lowering: Any, name: str) -> list[Any]:
    return [memlet for memlet in lowering.memlets if memlet.to_caller and memlet.data == name]


@pytest.mark.parametrize("number", range(5))
def test_matrix_products_move_only_arguments_and_results(
    examples: dict[str, Any], number: int
) -> None:
    found, lowering = moved(examples, "matrix_products", number)
    assert not found
    parts = list(examples["matrix_products"].SCHEMES)[number]
    (result,) = to_caller(lowering, "__return")
    partial = result.solution.plan.redistribution.source.partial
    assert bool(partial) == (parts[2] > 1)


@pytest.mark.parametrize("number", [0, 1])
def test_softmax_over_its_rows_moves_nothing(examples: dict[str, Any], number: int) -> None:
    assert moved(examples, "softmax", number)[0] == {}


def test_softmax_along_the_rows_combines_two_values_a_row(examples: dict[str, Any]) -> None:
    module = examples["softmax"]
    found, lowering = moved(examples, "softmax", 2)
    rows = module.B * module.H * module.S
    assert found.keys() == {"top", "sum_e"}
    assert set(found.values()) == {2 * 3 * rows * 4}  # a float for each row, of 4 ranks and to them
    partials = [
        m.solution.plan.redistribution.source.partial for m in examples["showing"].inside(lowering)
    ]
    assert [partial.reduction for partial in partials] == ["max", "sum"]


def test_gradients_inside_of_a_program_are_each_reduced_once(examples: dict[str, Any]) -> None:
    module = examples["gradients"]
    _, lowering = moved(examples, "gradients", 0)
    found = sorted(m.solution.cost.nbytes for m in lowering.memlets if m.solution.cost.nbytes)
    ranks = 4
    whole = [4 * module.CLASSES, 4 * module.INPUTS * module.CLASSES]
    assert found == [2 * (ranks - 1) * nbytes for nbytes in whole]  # the loss is read by nobody


@pytest.mark.parametrize("number", [0, 1])
def test_attention_by_heads_moves_nothing_until_its_end(
    examples: dict[str, Any], number: int
) -> None:
    module = examples["attention"]
    found, lowering = moved(examples, "attention", number)
    assert found == {}
    (result,) = to_caller(lowering, "__return")
    plan = result.solution.plan
    assert plan.redistribution.source.partial is not None
    assert [str(step.kind) for step in plan.steps] == ["reduce"]
    assert plan.redistribution.source.extents == (module.B, module.S, module.E)


def test_attention_ends_with_one_all_reduce_or_one_reduce_scatter(examples: dict[str, Any]) -> None:
    module = examples["attention"]
    ranks, nbytes = module.RANKS, module.B * module.S * module.E * 4
    _, lowering = moved(examples, "attention", 2)
    (summed,) = lowering.memlets  # weights and inputs are there, nothing else moves
    assert summed.data == "__return"
    plan = summed.solution.plan
    assert plan.redistribution.source.partial.reduction == "sum"
    # An all-reduce in two halves: each rank gets its part of the sum, then those of the others.
    assert [str(step.kind) for step in plan.steps] == ["reduce_scatter", "all_gather"]
    assert summed.solution.cost.nbytes == 2 * (ranks - 1) * nbytes
    assert sum(map(plan.bound.received, range(ranks))) == ranks * nbytes
    _, lowering = moved(examples, "attention", 3)
    (summed,) = lowering.memlets
    assert summed.data == "projected"
    assert [str(step.kind) for step in summed.solution.plan.steps] == ["reduce_scatter"]
    assert summed.solution.cost.nbytes == (ranks - 1) * nbytes
    assert sum(map(summed.solution.plan.bound.received, range(ranks))) == nbytes
    assert (
        str(lowering.argument_layouts["__return"])
        == f"[{module.B}, {module.S // ranks}{{__i1}}{module.S}, {module.E}]"
    )


def test_stencils_move_the_rims_of_their_blocks(examples: dict[str, Any]) -> None:
    module = examples["stencils"]
    inner, deep = module.N - 2, module.M - 2
    square, _ = moved(examples, "stencils", 0)
    assert square == dict.fromkeys("ab", 4 * 2 * (inner // 2) * 4)  # 4 ranks, 2 sides, floats
    rows, _ = moved(examples, "stencils", 1)
    assert rows == dict.fromkeys("ab", 3 * 2 * inner * 4)  # 3 borders, 2 ways
    space, _ = moved(examples, "stencils", 2)
    assert space == dict.fromkeys("ab", 4 * 2 * (deep // 2) * deep * 8)


def test_reductions_combine_the_operands_of_ranks_once(examples: dict[str, Any]) -> None:
    for number, name in enumerate(("y", "__return", "__return")):
        found, lowering = moved(examples, "reductions", number)
        assert found == {}
        (result,) = to_caller(lowering, name)
        assert result.solution.plan.redistribution.source.partial is not None
    assert moved(examples, "reductions", 3)[0] == {}
    assert moved(examples, "reductions", 4)[0] == {"inside": 24}


def predicted(examples: dict[str, Any], example: Any) -> float:
    """Seconds of a run on the machine that is assumed where none was measured."""
    given = {**example.lower, "machine": Machine()}
    _, lowering = replace(example, lower=given).lowered()
    return distspmd.predict(lowering).seconds


@pytest.mark.parametrize("module", MODULES)
def test_what_a_search_finds_is_predicted_about_as_fast_as_what_is_written_or_faster(
    examples: dict[str, Any], module: str
) -> None:
    for example in examples["showing"].searched(examples[module].EXAMPLES):
        found = predicted(examples, example)
        for written in examples[module].EXAMPLES:
            if written.program is example.program and written.lower == example.lower:
                assert found <= 1.01 * predicted(examples, written), written.schedule


@pytest.mark.parametrize(
    "modules",
    [
        ["softmax", "gradients"],
        pytest.param(
            ["matrix_products", "attention", "stencils", "reductions"],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_the_examples_compute_what_numpy_computes(modules: list[str], root: Path) -> None:
    code = (
        f"import sys, importlib; sys.path.insert(0, {str(root / 'examples')!r})\n"
        "sys.argv.append('--small')\n"
        "from mpi4py import MPI\n"
        "from showing import searched, show\n"
        f"modules = map(importlib.import_module, {modules!r})\n"
        "right = [show(e, MPI.COMM_WORLD) for m in modules\n"
        "         for e in [*searched(m.EXAMPLES), *m.EXAMPLES]]\n"
        "assert all(right), right\n"
    )
    launch(["-c", code], ranks=4, timeout=600, capture=True, env=UNOPTIMISED).check()
