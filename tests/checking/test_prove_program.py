"""Lowered programs are proved as wholes, and wrong ones are found."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from dace.sdfg import nodes
from lowering import mutants
from lowering.harness import parsed
from lowering.programs import CASES

import distspmd
from distspmd.errors import ArgumentError, PlanError
from distspmd.lowering import ATTRIBUTE, Lowering

NAMED = {case.name: case for case in CASES}
FEW = (
    "jacobi[y=3x2,x=3x2]-6",
    "matmul[_MatMult_=2x2x2]-8",
    "sums[__return_0=4x2,__return_1=4x2,sum_x_1=4x2]-8",
    "accumulated[y=2x2]-4",
    "counted[a=4]-6",
    "triangle[x=3]-3",
    "stepped[y=8]-8",
    "spmv[y=4]-4",
)
"""Halos, products, partial values, loops that data end, ranges that move, steps, fetches."""


HARMLESS = {
    # no iteration writes row 0, of which rank 0 has the caller's values all the time
    (
        "triangle[x=3]-3",
        "the plan of x is [9, 3{__i0}7] -> boxes[9, 7]{0: 1:9, 0:7} of float64 and not "
        "[9, 3{__i0}7] -> [9, 7] of float64",
    ),
    # the first sweep writes all that it reads of b before, so nothing needs what b began with
    (
        "until_small[b=4]-4",
        "nothing makes the redistribution b: [6{__i0}22] -> boxes[22]{0: 0:6; 1: 6:11; 2: 11:16; "
        "3: 16:22} (exchange, 24 bytes)",
    ),
    # all of y is written again before anything reads it
    (
        "overwritten[y=3]-3",
        "nothing makes the redistribution y: boxes[9]{0: 2:3; 1: 3:4; 2: 4:5} -> [3{__i0}9] "
        "(exchange, 8 bytes)",
    ),
    # the first sweep writes all that it reads of b before, so nothing needs what b began with
    (
        "until_small[b.2=3]-3",
        "nothing makes the redistribution b: boxes[22]{0: 1:8; 1: 8:15; 2: 15:21} -> "
        "boxes[22]{0: 0:8; 1: 8:16; 2: 15:22} (exchange, 8 bytes)",
    ),
    # row 0 is written in column 0 alone, so the caller's values beside it stay
    (
        "cholesky[a.3=1x3]-3",
        "the plan of a is boxes[13, 13]{0: 0:13, 0:5; 1: 0:13, 5:10; 2: 1:13, 10:13} ->"
        " [13, 13] of float64 and not [13, 5{j}13] -> [13, 13] of float64",
    ),
    # no iteration writes row 0, of which each rank has the caller's values all the time
    (
        "wide_and_narrow[x=4]-4",
        "the plan of x is boxes[3, 20]{0: 0:3, 1:8; 1: 0:3, 8:12; 2: 1:3, 12:16; 3: "
        "0:3, 16:19} => boxes[3, 20]{0: 0:3, 0:8; 1: 0:3, 7:12; 2: 0:3, 11:16; 3: 0:3, "
        "15:20} of float64 and not boxes[3, 20]{0: 0:3, 1:8; 1: 0:3, 8:12; 2: 0:3, "
        "12:16; 3: 0:3, 16:19} => boxes[3, 20]{0: 0:3, 0:8; 1: 0:3, 7:12; 2: 0:3, "
        "11:16; 3: 0:3, 15:20} of float64",
    ),
    # rows 0 are never written, and the caller has their values all the time
    (
        "inner_sweeps[v=6,u=4]-6",
        "the plan of v is boxes[14, 12]{0: 0:14, 0:3; 1: 0:14, 3:5; 2: 0:14, 5:7; 3: "
        "0:14, 7:9; 4: 0:14, 9:12} -> boxes[14, 12]{0: 1:14, 0:12} of float64 and not "
        "boxes[14, 12]{0: 0:14, 0:3; 1: 0:14, 3:5; 2: 0:14, 5:7; 3: 0:14, 7:9; 4: 0:14,"
        " 9:12} -> [14, 12] of float64",
    ),
    (
        "inner_sweeps[v=6,u=4]-6",
        "the plan of u is boxes[14, 12]{0: 0:4, 0:12; 1: 4:7, 0:12; 2: 7:10, 0:12; 3: "
        "10:14, 0:12} -> boxes[14, 12]{0: 1:14, 0:12} of float64 and not boxes[14, "
        "12]{0: 0:4, 0:12; 1: 4:7, 0:12; 2: 7:10, 0:12; 3: 10:14, 0:12} -> [14, 12] of "
        "float64",
    ),
    # ranges are cut off at the last index of the array, too
    ("products_of_parts[a_slice_matmul_x_slice=3]-3", "x_k0_hi is 10 on rank 2 and not 9"),
    ("cholesky[a.3=1x3]-3", "a_k1_hi is 14 on rank 2 and not 13"),
    # this end stands in windows of redistributions alone, whose plans say what moves
    ("odd_from_even[x=3]-3", "x_part_hi0 is 18 on rank 1 and not 19"),
}
"""Mutants that still do what the program does, each with the reason."""


@functools.cache
def lowered(name: str) -> Lowering:
    case = NAMED[name]
    return getattr(case.lowered(parsed(case.program, case.frontend)), ATTRIBUTE)


def refusal(lowering: Lowering) -> str:
    """Why a program has no proof; empty if it has one."""
    try:
        distspmd.verify(lowering)
    except PlanError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FEW)
def test_programs_are_proved_and_their_mutants_are_not(name: str) -> None:
    lowering = lowered(name)
    assert not refusal(lowering)
    rng = np.random.default_rng(len(name))
    found = [m.what for m in mutants.mutants(lowering, rng, 8) if not refusal(m.lowering)]
    assert [what for what in found if (name, what) not in HARMLESS] == []


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("jacobi[y=3x2,x=3x2]-6", mutants.left_out, "nothing brings it before"),
        ("jacobi[y=3x2,x=3x2]-6", mutants.storage, "stores"),
        ("jacobi[y=3x2,x=3x2]-6", mutants.span, "which has the part from"),
        ("sums[__return_0=4x2,__return_1=4x2,sum_x_1=4x2]-8", mutants.other_plan, "redistribution"),
        ("accumulated[y=2x2]-4", mutants.left_out, "is never added to"),
    ],
)
def test_a_refusal_says_what_is_wrong(
    name: str, kind: Callable[..., mutants.Mutant | None], words: str
) -> None:
    rng, lowering = np.random.default_rng(0), lowered(name)
    found = [kind(lowering, rng) for _ in range(12)]
    assert any(words in refusal(mutant.lowering) for mutant in found if mutant is not None)


def test_operands_that_two_ranks_add_are_found() -> None:
    lowering = lowered("accumulated[y=2x2]-4")
    space = next(s for s in lowering.spaces if s.name == "y")
    assert space.bounds is not None
    bounds = space.bounds.copy()
    bounds[1] = bounds[0]
    wrong = replace(space, bounds=bounds)
    spaces = tuple(wrong if s is space else s for s in lowering.spaces)
    assert "no rank runs the iterations" in refusal(replace(lowering, spaces=spaces))


def test_verify_takes_plans_programs_and_nothing_else() -> None:
    lowering = lowered("matmul[_MatMult_=2x2x2]-8")
    distspmd.verify(lowering.memlets[0].solution.plan)
    distspmd.verify(lowering.sdfg)
    with pytest.raises(ArgumentError, match="no plan and no lowered program"):
        distspmd.verify(np.zeros(3))


def test_spaces_whose_nodes_are_copies_are_told_apart() -> None:
    sdfg = copy.deepcopy(parsed(NAMED["map_chain[t.2=4,y=2]-4"].program))
    entries = [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, nodes.MapEntry)]
    for entry in entries:
        entry.guid = entries[0].guid
    names = [space.name for space in distspmd.iteration_spaces(sdfg)]
    lowering = distspmd.lower(sdfg, dict.fromkeys(names, (2,)), fuse=False)
    guids = [space.node for space in lowering.spaces]
    assert len(guids) == len(set(guids)) > 1
    assert not refusal(lowering)


@pytest.mark.slow
def test_of_a_thousand_mutants_none_is_proved() -> None:
    rng, made = np.random.default_rng(2), 0
    survivors: list[str] = []
    several = [case for case in CASES if case.ranks > 1]
    for number in rng.permutation(len(several)):
        case = several[number]
        lowering = getattr(case.lowered(parsed(case.program, case.frontend)), ATTRIBUTE)
        for mutant in mutants.mutants(lowering, rng, 5):
            made += 1
            if not refusal(mutant.lowering) and (case.name, mutant.what) not in HARMLESS:
                survivors.append(f"{case.name}: {mutant.what}")
        if made >= 1000:
            break
    assert made >= 1000
    assert not survivors
