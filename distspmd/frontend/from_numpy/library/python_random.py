"""What Python's own ``random`` draws, of a generator of a program."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def randrange(rng: Any, start: Any, stop: Any = None, step: Any = 1) -> Any:
    """A whole number of a range."""
    if stop is None:
        start, stop = 0, start
    return start + step * int(rng.integers(-((start - stop) // step)))


def randint(rng: Any, a: Any, b: Any) -> Any:
    """A whole number from a to b, both included."""
    return a + int(rng.integers(b - a + 1))


def getrandbits(rng: Any, k: Any) -> Any:
    """A whole number of so many bits."""
    return int(rng.integers(2**k))


def choice(rng: Any, seq: Any) -> Any:
    """An element."""
    return seq[int(rng.integers(len(seq)))]


def choices(
    rng: Any, population: Any, weights: Any = None, *, cum_weights: Any = None, k: Any = 1
) -> Any:
    """Elements, with repetitions."""
    if weights is None and cum_weights is None:
        places = rng.integers(0, len(population), k)
    else:
        sums = np.cumsum(weights) if cum_weights is None else np.asarray(cum_weights)
        places = np.searchsorted(sums, rng.random(k) * sums[-1], side="right")
    return [population[place] for place in places]


def sample(rng: Any, population: Any, k: Any, *, counts: Any = None) -> Any:
    """Elements without repetitions."""
    if counts is not None:
        raise NotImplementedError("random.sample with counts; repeat the elements")
    order = rng.permutation(len(population))
    return [population[order[i]] for i in range(k)]


def shuffle(rng: Any, x: Any) -> None:
    """Bring a list in another order."""
    order = rng.permutation(len(x))
    before = list(x)
    for i in range(len(x)):
        x[i] = before[order[i]]


def uniform(rng: Any, a: Any, b: Any) -> Any:
    """A number between two."""
    return a + (b - a) * rng.random()


def triangular(rng: Any, low: Any = 0.0, high: Any = 1.0, mode: Any = None) -> Any:
    """A number between two, of which one between them is the likeliest."""
    return rng.triangular(low, (low + high) / 2 if mode is None else mode, high)


def gauss(rng: Any, mu: Any = 0.0, sigma: Any = 1.0) -> Any:
    """A number of a normal distribution."""
    return mu + sigma * rng.standard_normal()


def lognormvariate(rng: Any, mu: Any, sigma: Any) -> Any:
    """A number of which the logarithm is normal."""
    return math.exp(mu + sigma * rng.standard_normal())


def expovariate(rng: Any, lambd: Any = 1.0) -> Any:
    """A number of an exponential distribution."""
    return rng.standard_exponential() / lambd


def betavariate(rng: Any, alpha: Any, beta: Any) -> Any:
    """A number of a beta distribution."""
    return rng.beta(alpha, beta)


def gammavariate(rng: Any, alpha: Any, beta: Any) -> Any:
    """A number of a gamma distribution."""
    return beta * rng.standard_gamma(alpha)


def paretovariate(rng: Any, alpha: Any) -> Any:
    """A number of Pareto's distribution."""
    return 1.0 + rng.pareto(alpha)


def weibullvariate(rng: Any, alpha: Any, beta: Any) -> Any:
    """A number of Weibull's distribution."""
    return alpha * rng.weibull(beta)


def vonmisesvariate(rng: Any, mu: Any, kappa: Any) -> Any:
    """An angle of [0, 2 pi)."""
    return rng.vonmises(mu, kappa) % (2 * math.pi)
