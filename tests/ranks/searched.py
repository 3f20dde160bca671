"""Functions without a schedule, on 4 ranks: searched for once by all, and told by rank 0."""

import sys

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.plans import Machine
from distspmd.scheduling import search

comm = MPI.COMM_WORLD
SPLIT = Machine(alpha=float(sys.argv[1]), beta=1e-16, launch=0)
DEAR = Machine(alpha=float(sys.argv[1]) + 1, beta=1.0)


@distspmd.program(machine=SPLIT)
def product(a, b):
    return a @ b


@distspmd.program(machine=DEAR)
def sum_of_all(a):
    return np.sum(a)


@distspmd.program(search=False)
def unsearched(a):
    return a + 1


@distspmd.program(machine=SPLIT, ranks=2, memory="1 GB")
def on_two(a, b):
    return a @ b


def ranks_of(function) -> int:
    (made,) = function._programs.values()
    return made.lowering.ranks


def check_decorated() -> None:
    a = np.random.default_rng(0).random((64, 64))
    assert str(product.lower(a, a).ranks) == "4"
    for function, ranks in ((product, 4), (on_two, 2)):
        for _ in range(2):
            found = function(a, a)
            if comm.rank == 0:
                np.testing.assert_allclose(found, a @ a)
        assert ranks_of(function) == ranks
    total, more = sum_of_all(a), unsearched(a)
    assert ranks_of(sum_of_all) == ranks_of(unsearched) == 1
    if comm.rank == 0:
        np.testing.assert_allclose(total, a.sum())
        np.testing.assert_array_equal(more, a + 1)


def check_each_rank_lowers_alike() -> None:
    def doubled(x: "float64[64]"):  # noqa: F821
        return x * 2

    program = distspmd.compile(distspmd.lower(doubled, machine=SPLIT), comm)
    assert program.lowering.ranks == 4
    found = program(x=np.ones(64))
    if comm.rank == 0:
        np.testing.assert_array_equal(found, np.full(64, 2.0))


def check_searches() -> None:
    """Of the processes one has searched for each program, and the others have what it found."""
    searched: list[tuple[str, int]] = []  # with how many ranks: it may try fewer, too
    search_numbers = search.search_numbers
    search.search_numbers = lambda sdfg, options, *rest, **named: (
        searched.append((sdfg.name, options.ranks)) or search_numbers(sdfg, options, *rest, **named)
    )
    check_decorated()
    check_each_rank_lowers_alike()
    every = [each for found in comm.allgather(searched) for each in found]
    assert len({*every}) == len(every), every
    most = {name: max(ranks for own, ranks in every if own == name) for name, _ in every}
    assert most == {"doubled": 4, "on_two": 2, "product": 4, "sum_of_all": 4}, every


check_searches()
