"""Ecology, epidemics and evolution."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("ecology")


@program("ecology course", lambda rng, n, t: (rng.random(n) * 10, t), (4, 9), (6, 5))
def leslie_matrix(n0, years):
    n = len(n0)
    L = np.zeros((n, n))
    L[0, :] = np.linspace(0.0, 1.5, n)
    L[np.arange(1, n), np.arange(n - 1)] = 0.7
    pop = np.zeros((years + 1, n))
    pop[0] = n0
    for t in range(years):
        pop[t + 1] = L @ pop[t]
    growth = np.max(np.abs(np.linalg.eigvals(L)))
    return pop, pop.sum(axis=1), growth


@program("ecology course", lambda rng, n: (np.linspace(0.5, 2.2, n), 12), 7, 13)
def ricker(r, steps, K=100.0):
    N = np.full_like(r, 10.0)
    for _ in range(steps):
        N *= np.exp(r * (1 - N / K))
    extinct = N < 1e-3
    N[extinct] = 0
    return N, extinct.sum()


@program("scikit-bio", lambda rng, n, s: (rng.integers(0, 20, (n, s)),), (5, 9), (8, 13))
def diversity(counts):
    totals = counts.sum(axis=1, keepdims=True)
    p = counts / totals
    with np.errstate(divide="ignore", invalid="ignore"):
        shannon = -np.nansum(np.where(p > 0, p * np.log(p), 0.0), axis=1)
    simpson = 1 - (p**2).sum(axis=1)
    richness = (counts > 0).sum(axis=1)
    singletons = np.sum(counts == 1, axis=1)
    doubletons = np.sum(counts == 2, axis=1)
    chao1 = richness + singletons * (singletons - 1) / (2 * (doubletons + 1))
    return shannon, simpson, richness, chao1


@program("scikit-bio", lambda rng, n, s: (rng.integers(0, 20, (n, s)),), (5, 7), (9, 4))
def bray_curtis(X):
    n = X.shape[0]
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            D[i, j] = D[j, i] = np.abs(X[i] - X[j]).sum() / (X[i] + X[j]).sum()
    present = X > 5
    shared = present.astype(int) @ present.T
    union = present.sum(1)[:, None] + present.sum(1) - shared
    jaccard = np.where(union > 0, shared / np.maximum(union, 1), 1.0)
    return D, jaccard


@program("game theory course", lambda rng, n: (rng.random(n), rng.random((n, n)), 30), 3, 5)
def replicator_dynamics(x, payoff, steps, dt=0.1):
    x = x / x.sum()
    for step in range(steps):
        fitness = payoff @ x
        average = x @ fitness
        x = x + dt * x * (fitness - average)
        if abs(x.sum() - 1) > 1e-6:
            raise FloatingPointError(f"step {step}: the shares sum to {x.sum()}")
    return x, average


@program(
    "landscape ecology course",
    lambda rng, n, m: (
        (rng.random((n, m)) < 0.2).astype(float),
        np.array([[0.05, 0.1, 0.05], [0.1, 0.4, 0.1], [0.05, 0.1, 0.05]]),
    ),
    (7, 9),
    (10, 6),
)
def dispersal(density, kernel):
    out = np.zeros_like(density)
    rows, cols = density.shape
    for dy in range(-1, 2):
        for dx in range(-1, 2):
            ys, xs = slice(max(0, dy), rows + min(0, dy)), slice(max(0, dx), cols + min(0, dx))
            yt, xt = slice(max(0, -dy), rows + min(0, -dy)), slice(max(0, -dx), cols + min(0, -dx))
            out[yt, xt] += kernel[dy + 1, dx + 1] * density[ys, xs]
    lost = density.sum() - out.sum()
    return out, lost


@program(
    "epidemiology course",
    lambda rng, n, t: (n, rng.random((t, n)), rng.random((t, n)), 0.3),
    (20, 9),
    (31, 7),
)
def agent_sir(n, contact, recover, beta):
    SUSCEPTIBLE, INFECTED, RECOVERED = 0, 1, 2
    state = np.zeros(n, dtype=np.int8)
    state[:3] = INFECTED
    curve = []
    for c, r in zip(contact, recover):
        prevalence = np.mean(state == INFECTED)
        newly = (state == SUSCEPTIBLE) & (c < beta * prevalence)
        healed = (state == INFECTED) & (r < 0.1)
        state[newly] = INFECTED
        state[healed] = RECOVERED
        curve.append(np.count_nonzero(state == INFECTED))
    return state, np.array(curve), np.bincount(state, minlength=3)


@program("phylogenetics course", lambda rng, n, k: (rng.integers(0, 4, (n, k)),), (5, 20), (7, 13))
def jukes_cantor(sequences):
    differing = (sequences[:, None, :] != sequences[None, :, :]).mean(axis=-1)
    p = np.minimum(differing, 0.74)
    d = -0.75 * np.log(1 - 4 * p / 3)
    np.fill_diagonal(d, 0.0)
    i, j = np.unravel_index(np.argmin(d + np.diag([np.inf] * len(d))), d.shape)
    return d, (min(i, j), max(i, j))
