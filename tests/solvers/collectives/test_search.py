"""The typed search against looking at everything, on random problems."""

import pytest
from exhaustive import optimum, weak_optimum

from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.planning.random_problems import random_problem
from distspmd.plans.collectives import StepKind
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.solvers.collectives.search import (
    Problem,
    Seconds,
    Transfers,
    WeakType,
    divisors,
    primes,
    sequences,
)
from distspmd.solvers.collectives.solver import Collectives, best, padded_extent, problem_of

PRICES = {"transfers": Transfers(), "seconds": Seconds(Machine(), 4)}


def blocks(seeds, **limits):
    """Random problems that have a sequence of collectives."""
    for seed in seeds:
        move = random_problem(seed, **limits)
        if all(padded_extent(move, dimension) for dimension in range(len(move.source.extents))):
            yield move


def test_the_search_finds_the_optimum_between_weak_types():
    for move in blocks(range(400), most_ranks=64, most_dimensions=4):
        problem = problem_of(move)
        cost, _ = next(sequences(problem, Transfers()))
        assert cost == pytest.approx(weak_optimum(problem, Transfers()), abs=1e-3), str(move)


@pytest.mark.parametrize("price", PRICES.values(), ids=PRICES)
def test_the_permutation_included_95_of_100_are_optimal_and_all_within_a_tile(price):
    optimal = count = 0
    for move in blocks(range(300), most_ranks=16, most_dimensions=3):
        problem = problem_of(move)
        found, least = best(move, problem, price).cost, optimum(move, problem, price)
        a_tile = price.of(StepKind.PERMUTE, 1, problem.tile(problem.target))
        assert found <= least * (1 + 1e-6) + a_tile + 1e-12, str(move)
        optimal += found <= least * (1 + 1e-6) + 1e-6 * a_tile
        count += 1
    assert optimal >= 0.95 * count


def test_at_most_one_permutation_and_no_tile_above_those_of_the_ends():
    for move in blocks(range(200), most_ranks=128):
        plan = Collectives().plan(move)
        assert isinstance(plan, Plan)
        assert [step.kind for step in plan.steps].count(StepKind.PERMUTE) <= 1
        problem = problem_of(move)
        highest = max(problem.tile(problem.source), problem.tile(problem.target))
        for layout in plan.scratch:
            assert layout.volumes.max() <= highest


def test_uneven_tiles_have_a_common_padding():
    mesh = Mesh(x=4, y=3)
    source, target = Layout.parse("[251{x}1001, 8]", mesh), Layout.parse("[1001, 2{x}8]", mesh)
    plan = Collectives().plan(Redistribution(source, target, "int8"))
    assert [str(step.kind) for step in plan.steps] == ["all_to_all"]


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("[3{x}10]", "[5{z}10]", "of 10, has tiles of 3 and of 5, which cut no common"),
        ("boxes[8]{0: 0:5; 1: 3:8}", "[3{y}8]", "is not a product of blocks"),
        ("[0]", "[0{x}0]", "the array is empty"),
    ],
)
def test_what_has_no_sequence_is_refused(source, target, reason):
    mesh = Mesh(x=4, y=3, z=2)
    move = Redistribution(Layout.parse(source, mesh), Layout.parse(target, mesh), "int8")
    assert reason in Collectives().plan(move).reason


def test_meshes_of_different_sizes_are_refused():
    move = Redistribution(Layout.root((8,)), Layout.parse("[4{x}8]", Mesh(x=2)), "int8")
    assert Collectives().plan(move).reason == "the meshes have 1 and 2 ranks"


def test_meshes_whose_axes_cut_across_each_other_are_planned_on_ranks():
    source = Layout.parse("[2{x}8, 9]", Mesh(x=4, y=3))
    target = Layout.parse("[8, 3{a}9]", Mesh(a=3, b=4))
    assert isinstance(Collectives().plan(Redistribution(source, target, "int8")), Plan)


def test_weak_types_of_a_swap():
    problem = Problem((12, 12), 24, WeakType((4, 6)), WeakType((6, 4)))
    cost, moves = next(sequences(problem, Transfers()))
    assert cost == pytest.approx(12)
    assert sorted((move.factor, move.take) for move in moves) == [(2, 0), (3, 1)]


def test_divisors_and_primes():
    assert divisors(12) == (2, 3, 4, 6, 12)
    assert primes(12) == (2, 2, 3)
    assert divisors(1) == primes(1) == ()
