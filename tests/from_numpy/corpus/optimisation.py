"""Optimisation and root finding."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("optimisation")


def rosen(x):
    """The Rosenbrock function"""
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2.0) ** 2.0 + (1 - x[:-1]) ** 2.0)


@program("scipy", lambda rng, n: (rng.random(n),), 5, 9)
def rosenbrock_derivatives(x):
    xm = x[1:-1]
    xm_m1 = x[:-2]
    xm_p1 = x[2:]
    der = np.zeros_like(x)
    der[1:-1] = 200 * (xm - xm_m1**2) - 400 * (xm_p1 - xm**2) * xm - 2 * (1 - xm)
    der[0] = -400 * x[0] * (x[1] - x[0] ** 2) - 2 * (1 - x[0])
    der[-1] = 200 * (x[-1] - x[-2] ** 2)
    H = np.diag(-400 * x[:-1], 1) - np.diag(400 * x[:-1], -1)
    diagonal = np.zeros_like(x)
    diagonal[0] = 1200 * x[0] ** 2 - 400 * x[1] + 2
    diagonal[-1] = 200
    diagonal[1:-1] = 202 + 1200 * x[1:-1] ** 2 - 400 * x[2:]
    H = H + np.diag(diagonal)
    return rosen(x), der, H


@program("blog", lambda rng, n: (rng.random(n), 1e-3), 4, 7)
def gradient_descent(x, learning_rate, max_iter=12, eps=1e-6):
    history = []
    for _ in range(max_iter):
        grad = np.zeros(len(x))
        for i in range(len(x)):
            step = np.zeros(len(x))
            step[i] = eps
            grad[i] = (rosen(x + step) - rosen(x - step)) / (2 * eps)
        x = x - learning_rate * grad
        history.append(rosen(x))
    return np.round(x, 4), np.round(history, 3)


@program("textbook", lambda rng, k: (0.0, 3.0, 10.0**-k), 5, 9)
def bisection(a, b, tol):
    f = lambda x: x**3 - 2 * x - 5
    if f(a) * f(b) >= 0:
        print("You have not assumed right a and b")
        return None
    while (b - a) >= tol:
        c = (a + b) / 2
        if f(c) == 0.0:
            break
        if f(c) * f(a) < 0:
            b = c
        else:
            a = c
    return c


@program("wikipedia", lambda rng, k: (-2.0, 4.0, 10.0**-k), 3, 5)
def golden_section(a, b, tolerance):
    invphi = (np.sqrt(5) - 1) / 2
    f = lambda x: (x - 1.3) ** 2 + 0.5
    c, d = b - (b - a) * invphi, a + (b - a) * invphi
    while abs(b - a) > tolerance:
        if f(c) < f(d):
            b = d
        else:
            a = c
        c = b - (b - a) * invphi
        d = a + (b - a) * invphi
    return (b + a) / 2


@program("scientific computing course", lambda rng, n: (rng.normal(size=n),), 3, 5)
def newton_system(x, tol=1e-12):
    for k in range(30):
        F = x + 0.1 * x**3 - np.roll(x, 1) / 2 - 1
        J = np.diag(1 + 0.3 * x**2) - 0.5 * np.roll(np.eye(len(x)), -1, axis=1)
        delta = np.linalg.solve(J, -F)
        x = x + delta
        if np.linalg.norm(delta, np.inf) < tol:
            break
    else:
        raise RuntimeError("Newton did not converge")
    return x


@program("wikipedia", lambda rng, n: (rng.random((3, 2)) * 4 - 2, n), 8, 15)
def nelder_mead(simplex, iterations):
    f = lambda p: (p[0] - 1) ** 2 + 3 * (p[1] + 0.5) ** 2
    for _ in range(iterations):
        values = np.array([f(p) for p in simplex])
        order = np.argsort(values)
        simplex, values = simplex[order], values[order]
        centroid = simplex[:-1].mean(axis=0)
        reflected = 2 * centroid - simplex[-1]
        if f(reflected) < values[0]:
            expanded = centroid + 2 * (reflected - centroid)
            simplex[-1] = expanded if f(expanded) < f(reflected) else reflected
        elif f(reflected) < values[-2]:
            simplex[-1] = reflected
        else:
            contracted = centroid + 0.5 * (simplex[-1] - centroid)
            if f(contracted) < values[-1]:
                simplex[-1] = contracted
            else:
                simplex[1:] = simplex[0] + 0.5 * (simplex[1:] - simplex[0])
    return simplex[0]


@program(
    "blog",
    lambda rng, n: (
        rng.permutation(n),
        rng.random((n, 2)),
        rng.integers(0, n, (40, 2)),
        rng.random(40),
    ),
    7,
    12,
)
def anneal_tour(tour, cities, swaps, uniforms, T=1.0, cooling=0.9):
    def length(order):
        p = cities[order]
        return np.sqrt(((p - np.roll(p, -1, axis=0)) ** 2).sum(axis=1)).sum()

    current = length(tour)
    for (i, j), u in zip(swaps, uniforms):
        candidate = tour.copy()
        candidate[i], candidate[j] = candidate[j], candidate[i]
        new = length(candidate)
        if new < current or u < np.exp((current - new) / T):
            tour, current = candidate, new
        T *= cooling
    return tour, current


@program(
    "repository",
    lambda rng, n, d: (rng.uniform(-2, 2, (n, d)), rng.random((6, 2, n, d))),
    (7, 2),
    (11, 4),
)
def particle_swarm(X, draws, w=0.7, c1=1.5, c2=1.5):
    V = np.zeros_like(X)
    cost = lambda x: np.sum(x**2 - 3 * np.cos(2 * np.pi * x), axis=1)
    pbest, pbest_val = X.copy(), cost(X)
    gbest = pbest[pbest_val.argmin()].copy()
    for r1, r2 in draws:
        V = w * V + c1 * r1 * (pbest - X) + c2 * r2 * (gbest - X)
        X = X + V
        val = cost(X)
        improved = val < pbest_val
        pbest[improved] = X[improved]
        pbest_val = np.where(improved, val, pbest_val)
        gbest = pbest[pbest_val.argmin()]
    return gbest, pbest_val.min()


@program(
    "genetic algorithms tutorial",
    lambda rng, n, k: (rng.integers(0, 2, (n, k)), rng.random((5, n)), rng.random((5, n, k))),
    (8, 6),
    (12, 9),
)
def genetic_onemax(population, cut_draws, flips):
    n, k = population.shape
    for cuts, flip in zip(cut_draws, flips):
        fitness = population.sum(axis=1)
        parents = population[np.argsort(-fitness, kind="stable")[: n // 2]]
        children = np.empty_like(population)
        children[: n // 2] = parents
        for i in range(n - n // 2):
            cut = int(cuts[i] * k)
            a, b = parents[i % len(parents)], parents[(i + 1) % len(parents)]
            children[n // 2 + i, :cut] = a[:cut]
            children[n // 2 + i, cut:] = b[cut:]
        mutate = flip < 0.05
        children[mutate] = 1 - children[mutate]
        population = children
    return population, population.sum(axis=1).max()


@program(
    "statistics blog",
    lambda rng, n, p: (rng.normal(size=(n, p)), rng.normal(size=n), 0.2),
    (13, 4),
    (9, 7),
)
def lasso_coordinate_descent(X, y, lam, sweeps=6):
    def soft_threshold(rho, lam):
        if rho < -lam:
            return rho + lam
        elif rho > lam:
            return rho - lam
        else:
            return 0.0

    n, p = X.shape
    beta = np.zeros(p)
    norms = (X**2).sum(axis=0)
    for _ in range(sweeps):
        for j in range(p):
            residual = y - X @ beta + X[:, j] * beta[j]
            rho = X[:, j] @ residual
            beta[j] = soft_threshold(rho, lam * n) / norms[j]
    return beta, np.count_nonzero(beta)


@program("paper", lambda rng, n, m: (rng.normal(size=(n, m)), rng.normal(size=n)), (8, 13), (6, 5))
def ista(A, b, lam=0.1, iterations=15):
    L = np.linalg.norm(A, 2) ** 2
    x = np.zeros(A.shape[1])
    z, t = x.copy(), 1
    for _ in range(iterations):
        x_old = x.copy()
        z = z + A.T @ (b - A @ z) / L
        x = np.sign(z) * np.maximum(np.abs(z) - lam / L, 0)
        t0 = t
        t = (1 + np.sqrt(1 + 4 * t**2)) / 2
        z = x + ((t0 - 1) / t) * (x - x_old)
    return x, 0.5 * np.sum((A @ x - b) ** 2) + lam * np.abs(x).sum()


@program(
    "optimal transport docs",
    lambda rng, n, m: (np.full(n, 1 / n), np.full(m, 1 / m), rng.random((n, m))),
    (7, 9),
    (5, 12),
)
def sinkhorn(a, b, M, reg=0.5, iterations=20):
    K = np.exp(-M / reg)
    u, v = np.ones_like(a), np.ones_like(b)
    for _ in range(iterations):
        u = a / (K @ v)
        v = b / (K.T @ u)
    P = u[:, None] * K * v[None, :]
    return P, (P * M).sum(), np.abs(P.sum(axis=1) - a).max() < 1e-2


@program("textbook", lambda rng, n: (rng.normal(size=n) + 2.0,), 4, 6)
def bfgs(x, iterations=6):
    def f(x):
        return 0.5 * (x * np.arange(1, len(x) + 1)) @ x

    def grad(x):
        return np.arange(1, len(x) + 1) * x

    n = x.size
    H = np.eye(n)
    g = grad(x)
    for k in range(iterations):
        p = -H @ g
        alpha = 1.0
        while f(x + alpha * p) > f(x) + 1e-4 * alpha * (g @ p):
            alpha *= 0.5
        s = alpha * p
        x_new = x + s
        g_new = grad(x_new)
        yk = g_new - g
        rho = 1.0 / (yk @ s)
        V = np.eye(n) - rho * np.outer(s, yk)
        H = V @ H @ V.T + rho * np.outer(s, s)
        x, g = x_new, g_new
    return f(x)


@program(
    "textbook",
    lambda rng, n: (
        np.linspace(0, 2, n),
        2 * np.exp(-1.3 * np.linspace(0, 2, n)) + 0.01 * rng.normal(size=n),
    ),
    9,
    15,
)
def gauss_newton_fit(t, y):
    p = np.array([1.0, -1.0])
    for _ in range(8):
        model = p[0] * np.exp(p[1] * t)
        J = np.column_stack((np.exp(p[1] * t), p[0] * t * np.exp(p[1] * t)))
        r = y - model
        p += np.linalg.solve(J.T @ J, J.T @ r)
    return p, np.sqrt((r**2).mean())
