"""Random numbers of NumPy programs: the same at any number of ranks, and what is refused."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI
from scipy import stats

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.outcomes import check_same

OUTSIDE = np.random.default_rng(0)


def test_numbers_are_the_same_at_any_number_of_ranks_and_well_distributed(launch: Any) -> None:
    done = launch(Path(__file__).parent / "draws.py", ranks=3)
    assert done.stdout == "all as drawn\n"


def drawn_by_python(x: Any) -> Any:
    random.seed(int(x[0]) + 3)
    numbers, steps = np.zeros(20), 0
    for i in range(20):
        numbers[i] = random.uniform(2, 4) * x[i % 3]
        dx, dy = random.choice([(0, 1), (1, 0)])
        steps += dx - dy
    cards = list(range(9))
    random.shuffle(cards)
    mine = random.Random(7)
    y = np.sqrt(x)
    for _ in range(3):
        scale = mine.random()
        y = y * scale
    return numbers, steps, np.array(cards), y, random.gauss(0.0, 1.0)


def test_pythons_own_generators_draw_the_numbers_of_python() -> None:
    x = np.arange(1.0, 4.0)
    expected = drawn_by_python(x)
    program = distspmd.program(drawn_by_python, comm=MPI.COMM_SELF, host="allow")
    for _ in range(2):
        check_same(program(x), expected)


def _in_loop(n: int) -> Any:
    total = 0.0
    for _ in range(n):
        np.random.seed(1)  # noqa: NPY002
        total += np.random.rand()  # noqa: NPY002
    return total


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.random.default_rng(1).bytes(3), r"use rng.integers\(0, 256"),
        (lambda x: np.random.default_rng([1, x[0]]).random(3), "several numbers of the run"),
        (lambda x: np.random.default_rng(1).poisson(-1.0), "poisson distribution is below 0"),
        (lambda x: np.random.default_rng(1).binomial(3, 1.5), "binomial distribution is below 0"),
        (lambda x: np.random.default_rng(x[0]).random(3), "one whole number"),
        (lambda x: np.random.Generator(OUTSIDE).random(), "made outside of the program"),
        (lambda x: np.random.default_rng(1).integers(5, 2), "low >= high"),
        (lambda x: np.random.default_rng(1).shuffle([1, 2]), "use permutation"),
        (lambda x: _in_loop(int(x[0])), "in a loop or branch"),
    ],
)
def test_what_is_not_covered_is_refused(call: Any, message: str) -> None:
    def program(x: Any) -> Any:
        return call(x)

    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(program, np.ones(3))


ONES: list[tuple[str, Callable[[Any, Any], Any], Any]] = [
    ("gamma", lambda g, n: g.standard_gamma(0.3, n), stats.gamma(0.3)),
    ("gamma of a scale", lambda g, n: g.gamma(2.5, 3.0, n), stats.gamma(2.5, scale=3)),
    ("beta of small numbers", lambda g, n: g.beta(0.05, 0.2, n), stats.beta(0.05, 0.2)),
    ("beta", lambda g, n: g.beta(2.0, 5.0, n), stats.beta(2, 5)),
    ("chi-square", lambda g, n: g.chisquare(3, n), stats.chi2(3)),
    ("Student", lambda g, n: g.standard_t(4, n), stats.t(4)),
    ("triangular", lambda g, n: g.triangular(-1, 0.5, 3, n), stats.triang(0.375, -1, 4)),
    ("von Mises", lambda g, n: (g.vonmises(1.0, 2.0, n) + 2.0) % 6.283185307179586, None),
    ("Wald", lambda g, n: g.wald(2.0, 3.0, n), stats.invgauss(2 / 3, scale=3)),
    ("F", lambda g, n: g.f(5, 9, n), stats.f(5, 9)),
    ("chi-square around", lambda g, n: g.noncentral_chisquare(0.7, 3, n), stats.ncx2(0.7, 3)),
    ("F around", lambda g, n: g.noncentral_f(3, 20, 2.0, n), stats.ncf(3, 20, 2)),
    ("normal", lambda g, n: g.multivariate_normal([1.0], [[4.0]], n)[:, 0], stats.norm(1, 2)),
    ("Dirichlet", lambda g, n: g.dirichlet([0.5, 1, 2], n)[:, 1], stats.beta(1, 2.5)),
]
WHOLE: list[tuple[str, Callable[[Any, Any], Any], Any]] = [
    ("few of Poisson", lambda g, n: g.poisson(3.2, n), stats.poisson(3.2)),
    ("many of Poisson", lambda g, n: g.poisson(40.0, n), stats.poisson(40)),
    ("few binomial", lambda g, n: g.binomial(10, 0.3, n), stats.binom(10, 0.3)),
    ("many binomial", lambda g, n: g.binomial(100, 0.8, n), stats.binom(100, 0.8)),
    ("hypergeometric", lambda g, n: g.hypergeometric(10, 15, 8, n), stats.hypergeom(25, 10, 8)),
    ("Zipf", lambda g, n: g.zipf(2.5, n), stats.zipf(2.5)),
    ("logarithmic", lambda g, n: g.logseries(0.6, n), stats.logser(0.6)),
    ("negative", lambda g, n: g.negative_binomial(3, 0.4, n), stats.nbinom(3, 0.4)),
    ("multinomial", lambda g, n: g.multinomial(9, [0.2, 0.3, 0.5], n)[:, 1], stats.binom(9, 0.3)),
]
MANY = 20_000


def _drawn(draw: Callable[[Any, Any], Any], seed: int) -> Any:
    def program(x: Any) -> Any:
        return draw(np.random.default_rng(seed), len(x))

    x = np.zeros(MANY)
    with distspmd.compile(distspmd.lower(numpy_program(program, x)), MPI.COMM_SELF) as compiled:
        return compiled(x=x)


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(("draw", "known"), [each[1:] for each in ONES], ids=[e[0] for e in ONES])
def test_numbers_have_their_distribution(draw: Callable[[Any, Any], Any], known: Any) -> None:
    found = _drawn(draw, 7)
    if known is None:  # on a circle, which begins at -2
        found, known = np.where(found > 3 + np.pi, found - 2 * np.pi, found), stats.vonmises(2.0, 3)
    assert stats.kstest(found, known.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(("draw", "known"), [each[1:] for each in WHOLE], ids=[e[0] for e in WHOLE])
def test_whole_numbers_have_their_distribution(draw: Callable[[Any, Any], Any], known: Any) -> None:
    found = _drawn(draw, 8)
    assert found.dtype == np.int64
    numbers = np.arange(200)
    counts = np.bincount(np.minimum(found, 200), minlength=201)[:200]
    expected = known.pmf(numbers) * MANY
    often = expected > 8
    have, want = ([*c[often], MANY - c[often].sum()] for c in (counts, expected))
    assert stats.chisquare(have, want).pvalue > 1e-3


@pytest.mark.usefixtures("unoptimised")
def test_numbers_without_a_size_are_numbers_of_python() -> None:
    def program(x: Any) -> Any:
        g = np.random.default_rng(3)
        legacy = np.random.RandomState(4)
        kinds = g.poisson(2.0), g.gamma(2.0), g.choice(4), g.geometric(0.5), legacy.randint(3)
        return kinds, g.integers(3), legacy.poisson(x[0], 2)

    lowered = distspmd.lower(numpy_program(program, np.ones(2)))
    with distspmd.compile(lowered, MPI.COMM_SELF) as compiled:
        numbers, whole, two = compiled(x=np.ones(2))
        assert [type(n) for n in numbers] == [int, float, int, int, int]
        assert type(whole) is np.int64
        assert two.shape == (2,)
        with pytest.raises(ValueError, match="poisson distribution is below 0, or NaN"):
            compiled(x=-np.ones(2))


def test_a_generator_from_outside_is_pythons() -> None:
    def program(x: Any) -> Any:
        return x + OUTSIDE.random(3)

    with pytest.raises(UnsupportedProgram, match="gives something else at each call"):
        numpy_program(program, np.ones(3), host="refuse")
