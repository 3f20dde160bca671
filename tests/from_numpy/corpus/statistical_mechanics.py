"""Spins, walks, molecules and lattice gases, with numbers drawn before."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("statistical mechanics and molecules")


@program(
    "rajesh",
    lambda rng, n: (
        np.where(rng.random((n, n)) < 0.5, 1, -1),
        rng.integers(0, n, (3 * n, 2)),
        rng.random(3 * n),
        0.6,
    ),
    5,
    8,
)
def ising_mcmove(config, sites, uniforms, beta):
    N = config.shape[0]
    energies = []
    for (a, b), u in zip(sites, uniforms):
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
        elif u < np.exp(-cost * beta):
            s *= -1
        config[a, b] = s
        energies.append(cost)
    energy = 0
    for i in range(len(config)):
        for j in range(len(config)):
            S = config[i, j]
            nb = config[(i + 1) % N, j] + config[i, (j + 1) % N]
            energy += -nb * S
    return config, energy / 2.0, np.sum(config), energies


@program("textbook", lambda rng, n: (rng.random((n, n)), 0.6), 6, 9)
def hoshen_kopelman(lattice, p):
    occupied = lattice < p
    n, m = occupied.shape
    label = np.zeros((n, m), dtype=int)
    parent = np.arange(n * m + 1)

    def find(x):
        while parent[x] != x:
            x = parent[x]
        return x

    largest = 0
    for i in range(n):
        for j in range(m):
            if not occupied[i, j]:
                continue
            left = label[i, j - 1] if j > 0 else 0
            above = label[i - 1, j] if i > 0 else 0
            if left == 0 and above == 0:
                largest += 1
                label[i, j] = largest
            elif left != 0 and above == 0:
                label[i, j] = find(left)
            elif left == 0 and above != 0:
                label[i, j] = find(above)
            else:
                a, b = find(left), find(above)
                parent[max(a, b)] = min(a, b)
                label[i, j] = min(a, b)
    for i in range(n):
        for j in range(m):
            if label[i, j]:
                label[i, j] = find(label[i, j])
    return label, len(set(label[0]) & set(label[-1]) - {0}) > 0


@program(
    "textbook",
    lambda rng, n: (rng.random((n, 3)) * 5, rng.normal(size=(n, 3)), 5.0, 0.005, 3),
    4,
    7,
)
def molecular_dynamics(r, v, L, dt, steps):
    n = len(r)

    def forces(r):
        F = np.zeros_like(r)
        potential = 0.0
        for i in range(n - 1):
            rij = r[i] - r[i + 1 :]
            rij -= L * np.rint(rij / L)
            d2 = np.sum(rij**2, axis=1)
            inv6 = 1.0 / (d2 + 0.5) ** 3
            potential += np.sum(4 * (inv6**2 - inv6))
            f = (24 * (2 * inv6**2 - inv6) / (d2 + 0.5))[:, np.newaxis] * rij
            F[i] += f.sum(axis=0)
            F[i + 1 :] -= f
        return F, potential

    F, pot = forces(r)
    trajectory = np.empty((steps, n, 3))
    for step in range(steps):
        v += 0.5 * dt * F
        r += dt * v
        r %= L
        F, pot = forces(r)
        v += 0.5 * dt * F
        trajectory[step] = r
    kinetic = 0.5 * np.sum(v * v)
    hist, edges = np.histogram(np.linalg.norm(v, axis=1), bins=4, range=(0, 4))
    return trajectory, kinetic + pot, hist


@program("blog", lambda rng, n: (n, n + 3, 3), 6, 8)
def lattice_boltzmann_cylinder(Ny, Nx, Nt):
    tau = 0.6
    NL = 9
    idxs = np.arange(NL)
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    X, Y = np.meshgrid(range(Nx), range(Ny))
    F = np.ones((Ny, Nx, NL))
    F[:, :, 3] += 2 * (1 + 0.2 * np.cos(2 * np.pi * X / Nx * 4))
    rho = np.sum(F, 2)
    for i in idxs:
        F[:, :, i] *= 100 / rho
    cylinder = (X - Nx / 4) ** 2 + (Y - Ny / 2) ** 2 < (Ny / 4) ** 2
    for it in range(Nt):
        for i, cx, cy in zip(idxs, cxs, cys):
            F[:, :, i] = np.roll(F[:, :, i], cx, axis=1)
            F[:, :, i] = np.roll(F[:, :, i], cy, axis=0)
        bndryF = F[cylinder, :]
        bndryF = bndryF[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]
        rho = np.sum(F, 2)
        ux = np.sum(F * cxs, 2) / rho
        uy = np.sum(F * cys, 2) / rho
        Feq = np.zeros(F.shape)
        for i, cx, cy, w in zip(idxs, cxs, cys, weights):
            Feq[:, :, i] = (
                rho
                * w
                * (
                    1
                    + 3 * (cx * ux + cy * uy)
                    + 9 * (cx * ux + cy * uy) ** 2 / 2
                    - 3 * (ux**2 + uy**2) / 2
                )
            )
        F += -(1.0 / tau) * (F - Feq)
        F[cylinder, :] = bndryF
    ux[cylinder] = 0
    uy[cylinder] = 0
    vorticity = (np.roll(ux, -1, axis=0) - np.roll(ux, 1, axis=0)) - (
        np.roll(uy, -1, axis=1) - np.roll(uy, 1, axis=1)
    )
    vorticity[cylinder] = np.nan
    return F, vorticity


@program(
    "blog",
    lambda rng, n: (rng.random((n, 2)), rng.random((n, 2)) * 0.1, rng.random(n) + 0.5, 0.02, 3),
    5,
    8,
)
def sph_density(pos, vel, m, dt, Nt):
    h = 0.3

    def W(x, y):
        r = np.sqrt(x**2 + y**2)
        return (1.0 / (h * np.sqrt(np.pi))) ** 3 * np.exp(-(r**2) / h**2)

    def getPairwiseSeparations(ri, rj):
        M, N = ri.shape[0], rj.shape[0]
        rix = ri[:, 0].reshape((M, 1))
        riy = ri[:, 1].reshape((M, 1))
        rjx = rj[:, 0].reshape((N, 1))
        rjy = rj[:, 1].reshape((N, 1))
        return rix - rjx.T, riy - rjy.T

    for i in range(Nt):
        dx, dy = getPairwiseSeparations(pos, pos)
        rho = np.sum(m * W(dx, dy), 1).reshape((len(pos), 1))
        P = 0.1 * rho ** (1 + 1 / 1)
        r = np.sqrt(dx**2 + dy**2)
        n = -2 * np.exp(-(r**2) / h**2) / h**5 / (np.pi) ** (3 / 2)
        ax = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * n * dx, 1).reshape((-1, 1))
        ay = -np.sum(m * (P / rho**2 + P.T / rho.T**2) * n * dy, 1).reshape((-1, 1))
        acc = np.hstack((ax, ay)) - 2.0 * pos - 1.0 * vel
        vel += acc * dt / 2
        pos += vel * dt
    return rho, pos


@program(
    "blog",
    lambda rng, n: (rng.random(n) * 2 * np.pi, rng.random((n, 2)), rng.random((3, n)) - 0.5),
    6,
    9,
)
def vicsek(theta, pos, noise):
    L, R, v0, eta = 1.0, 0.3, 0.05, 0.5
    x, y = pos[:, [0]], pos[:, [1]]
    order = []
    for eps in noise:
        x += v0 * np.cos(theta)[:, None]
        y += v0 * np.sin(theta)[:, None]
        x = x % L
        y = y % L
        mean_theta = theta.copy()
        for b in range(len(theta)):
            neighbors = (x - x[b]) ** 2 + (y - y[b]) ** 2 < R**2
            sx = np.sum(np.cos(theta[neighbors[:, 0]]))
            sy = np.sum(np.sin(theta[neighbors[:, 0]]))
            mean_theta[b] = np.arctan2(sy, sx)
        theta = mean_theta + eta * eps
        order.append(np.hypot(np.cos(theta).mean(), np.sin(theta).mean()))
    return x, y, theta, np.array(order)


@program("textbook", lambda rng, n: (rng.integers(0, 4, n), n), 12, 20)
def self_avoiding_walk(moves, n):
    directions = [(1, 0), (-1, 0), (0, 1), (0, -1)]
    grid = np.zeros((2 * n + 1, 2 * n + 1), dtype=bool)
    x = y = n
    grid[x, y] = True
    steps = 0
    path = [(x, y)]
    for m in moves:
        dx, dy = directions[m]
        if grid[x + dx, y + dy]:
            break
        x, y = x + dx, y + dy
        grid[x, y] = True
        path.append((x, y))
        steps += 1
    return steps, np.sum(grid), (x - n) ** 2 + (y - n) ** 2


@program("textbook", lambda rng, n: (rng.random(n) * 4 - 2, rng.random(n), 1.0, 0.4), 12, 20)
def simulated_annealing(proposals, uniforms, T0, cooling):
    f = lambda x: x**2 + 10 * np.sin(3 * x)
    x, T = 1.5, T0
    best, best_value = x, f(x)
    history = np.zeros(len(proposals))
    for k in range(len(proposals)):
        candidate = x + proposals[k] * T
        delta = f(candidate) - f(x)
        if delta < 0 or uniforms[k] < np.exp(-delta / T):
            x = candidate
            if f(x) < best_value:
                best, best_value = x, f(x)
        T *= cooling if k % 5 == 4 else 1.0
        history[k] = best_value
    return best, best_value, history


@program(
    "textbook", lambda rng, n: (rng.random(n), np.array([1.0, 0.005, 0.6]), np.array([50, 100])), 12
)
def gillespie_lotka(uniforms, rates, start):
    prey, predators = start
    t = 0.0
    times, populations = [0.0], [(prey, predators)]
    for k in range(0, len(uniforms), 2):
        a = np.array([rates[0] * prey, rates[1] * prey * predators, rates[2] * predators])
        a0 = a.sum()
        if a0 == 0:
            break
        t += -np.log(uniforms[k]) / a0
        reaction = np.searchsorted(np.cumsum(a) / a0, uniforms[k + 1])
        if reaction == 0:
            prey += 1
        elif reaction == 1:
            prey -= 1
            predators += 1
        else:
            predators -= 1
        times.append(t)
        populations.append((prey, predators))
    return np.array(times), np.array(populations)


@program("textbook", lambda rng, n: (rng.normal(size=(n, 5)), 0.5), 6, 9)
def autocorrelation_and_blocking(samples, tau):
    x = samples[:, 0] - samples[:, 0].mean()
    result = np.correlate(x, x, mode="full")
    acf = result[result.size // 2 :] / result[result.size // 2]
    msd = np.array([np.mean((samples[d:] - samples[:-d]) ** 2) for d in range(1, len(samples))])
    errors = []
    data = samples[:, 1]
    while len(data) >= 2:
        errors.append(data.std(ddof=1) / np.sqrt(len(data)))
        data = (data[: len(data) // 2 * 2 : 2] + data[1::2]) / 2
    return acf, msd, errors
