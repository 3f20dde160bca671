"""Cellular automata and lattices."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("cellular automata")


def bits(rng, *shape):
    return rng.integers(0, 2, shape)


@program("From Python to NumPy", lambda rng, n, m: (bits(rng, n, m), 4), (7, 13), (12, 9))
def game_of_life(Z, generations):
    for _ in range(generations):
        N = (
            Z[0:-2, 0:-2]
            + Z[0:-2, 1:-1]
            + Z[0:-2, 2:]
            + Z[1:-1, 0:-2]
            + Z[1:-1, 2:]
            + Z[2:, 0:-2]
            + Z[2:, 1:-1]
            + Z[2:, 2:]
        )
        birth = (N == 3) & (Z[1:-1, 1:-1] == 0)
        survive = ((N == 2) | (N == 3)) & (Z[1:-1, 1:-1] == 1)
        Z[...] = 0
        Z[1:-1, 1:-1][birth | survive] = 1
    return Z


@program("blog", lambda rng, n, m: (bits(rng, n, m).astype(bool),), (7, 13), (10, 10))
def life_step(X):
    """Game of life step using generator expressions"""
    nbrs_count = sum(
        np.roll(np.roll(X, i, 0), j, 1)
        for i in (-1, 0, 1)
        for j in (-1, 0, 1)
        if (i != 0 or j != 0)
    )
    return (nbrs_count == 3) | (X & (nbrs_count == 2))


@program("rosetta code", lambda rng, n: (bits(rng, n, n).astype(np.uint8), 3), 8, 11)
def life_with_loops(grid, generations):
    rows, cols = grid.shape
    for g in range(generations):
        new = grid.copy()
        for i in range(rows):
            for j in range(cols):
                total = 0
                for di in (-1, 0, 1):
                    for dj in (-1, 0, 1):
                        if di == 0 and dj == 0:
                            continue
                        total += int(grid[(i + di) % rows, (j + dj) % cols])
                if grid[i, j] == 1:
                    if total < 2 or total > 3:
                        new[i, j] = 0
                elif total == 3:
                    new[i, j] = 1
        grid = new
    return grid


@program("blog", lambda rng, n, r: (n, 8, r), (17, 30), (22, 110))
def elementary_automaton(width, steps, rule):
    rule_bits = np.array([(rule >> i) & 1 for i in range(8)], dtype=np.uint8)
    x = np.zeros((steps, width), dtype=np.uint8)
    x[0, width // 2] = 1
    for t in range(steps - 1):
        y = np.vstack((np.roll(x[t], 1), x[t], np.roll(x[t], -1)))
        z = np.sum(np.array([[4], [2], [1]]) * y, axis=0)
        x[t + 1] = rule_bits[z]
    return x


@program(
    "scipython",
    lambda rng, n: (rng.integers(0, 3, (n, n)), rng.random((4, n, n)), 0.05, 0.01),
    9,
    13,
)
def forest_fire(X, draws, p, f):
    EMPTY, TREE, FIRE = 0, 1, 2
    neighbourhood = ((-1, 0), (0, -1), (0, 1), (1, 0))
    for r in draws:
        X1 = np.zeros(X.shape, dtype=int)
        ny, nx = X.shape
        for iy in range(1, ny - 1):
            for ix in range(1, nx - 1):
                if X[iy, ix] == EMPTY and r[iy, ix] <= p:
                    X1[iy, ix] = TREE
                if X[iy, ix] == TREE:
                    X1[iy, ix] = TREE
                    for dx, dy in neighbourhood:
                        if X[iy + dy, ix + dx] == FIRE:
                            X1[iy, ix] = FIRE
                            break
                    else:
                        if r[iy, ix] <= f:
                            X1[iy, ix] = FIRE
        X = X1
    return X


@program(
    "physics course",
    lambda rng, n: (rng.choice([-1, 1], (n, n)), rng.random((3, n, n)), 0.44),
    8,
    11,
)
def ising_checkerboard(spins, draws, beta):
    n, m = spins.shape
    i, j = np.ogrid[:n, :m]
    for u in draws:
        for colour in (0, 1):
            nb = (
                np.roll(spins, 1, 0)
                + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1)
                + np.roll(spins, -1, 1)
            )
            dE = 2 * spins * nb
            flip = ((i + j) % 2 == colour) & (u < np.exp(-beta * dE))
            spins[flip] *= -1
    return spins, spins.mean()


@program(
    "blog",
    lambda rng, n, k: (rng.choice([-1, 1], (n, n)), rng.integers(0, n, (k, 2)), rng.random(k), 2.0),
    (7, 40),
    (10, 30),
)
def ising_metropolis(config, sites, rand, T):
    N = len(config)
    beta = 1.0 / T
    energy = 0.0
    for k in range(sites.shape[0]):
        a, b = sites[k]
        s = config[a, b]
        nb = (
            config[(a + 1) % N, b]
            + config[a, (b + 1) % N]
            + config[(a - 1) % N, b]
            + config[a, (b - 1) % N]
        )
        cost = 2 * s * nb
        if cost < 0:
            s *= -1
        elif rand[k] < np.exp(-cost * beta):
            s *= -1
        config[a, b] = s
        energy += -nb * s
    return config, energy / 4.0


@program("blog", lambda rng, n: (rng.integers(0, 8, (n, n)),), 7, 9)
def sandpile(grid):
    topples = 0
    while np.max(grid) >= 4:
        too_many = grid >= 4
        topples += np.count_nonzero(too_many)
        grid[too_many] -= 4
        grid[1:, :][too_many[:-1, :]] += 1
        grid[:-1, :][too_many[1:, :]] += 1
        grid[:, 1:][too_many[:, :-1]] += 1
        grid[:, :-1][too_many[:, 1:]] += 1
    return grid, topples


@program("rosetta code", lambda rng, n, k: (np.zeros((n, n), dtype=bool), k), (11, 60), (8, 45))
def langtons_ant(grid, max_steps):
    h, w = grid.shape
    x, y = h // 2, w // 2
    dx, dy = 0, 1
    step = 0
    while 0 <= x < h and 0 <= y < w and step < max_steps:
        if grid[x, y]:
            dx, dy = -dy, dx
        else:
            dx, dy = dy, -dx
        grid[x, y] = not grid[x, y]
        x += dx
        y += dy
        step += 1
    return grid, step


@program("blog", lambda rng, n, m: (rng.random((n, m)) < 0.6,), (7, 13), (11, 9))
def percolates(open_sites):
    full = np.zeros_like(open_sites)
    full[0] = open_sites[0]
    while True:
        new = full.copy()
        new[1:] |= full[:-1]
        new[:-1] |= full[1:]
        new[:, 1:] |= full[:, :-1]
        new[:, :-1] |= full[:, 1:]
        new &= open_sites
        if (new == full).all():
            break
        full = new
    return full, bool(full[-1].any())


@program("repository", lambda rng, n: (rng.integers(0, 4, (n, n)), 5), 9, 14)
def cyclic_automaton(state, steps, k=4, threshold=1):
    for _ in range(steps):
        nxt = (state + 1) % k
        count = np.zeros(state.shape, dtype=int)
        for shift, axis in [(1, 0), (-1, 0), (1, 1), (-1, 1)]:
            count += np.roll(state, shift, axis=axis) == nxt
        state = np.where(count >= threshold, nxt, state)
    return state


@program(
    "blog", lambda rng, n, m: (rng.integers(0, 3, (n, m)).astype(np.int8), 4), (8, 13), (11, 7)
)
def brians_brain(world, steps):
    for _ in range(steps):
        on = np.pad((world == 1).astype(np.int8), 1)
        neighbours = sum(
            on[1 + dy : on.shape[0] - 1 + dy, 1 + dx : on.shape[1] - 1 + dx]
            for dy in (-1, 0, 1)
            for dx in (-1, 0, 1)
            if dy or dx
        )
        ready = world == 0
        world = np.where(world == 1, 2, 0).astype(np.int8)
        world[ready & (neighbours == 2)] = 1
    return world


@program("social simulation", lambda rng, n: (rng.integers(0, 3, (n, n)), 0.42), 9, 12)
def schelling_unhappy(city, tolerance):
    unhappy = np.zeros(city.shape, dtype=bool)
    for (i, j), kind in np.ndenumerate(city):
        if kind == 0:
            continue
        hood = city[max(0, i - 1) : i + 2, max(0, j - 1) : j + 2]
        same = (hood == kind).sum() - 1
        occupied = (hood != 0).sum() - 1
        if occupied > 0 and same / occupied < tolerance:
            unhappy[i, j] = True
    return unhappy, unhappy.sum() / (city > 0).sum()
