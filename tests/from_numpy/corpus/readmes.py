"""First examples of libraries, as their users write them with NumPy."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("readmes")


@program("numba", lambda rng, n, m: (np.arange(n * m).reshape(n, m),), (3, 3), (7, 5))
def sum2d(arr):
    M, N = arr.shape
    result = 0.0
    for i in range(M):
        for j in range(N):
            result += arr[i, j]
    return result


@program("numba", lambda rng, n: (np.arange(n * n, dtype=float).reshape(n, n),), 10, 7)
def go_fast(a):
    trace = 0.0
    for i in range(a.shape[0]):
        trace += np.tanh(a[i, i])
    return a + trace


@program(
    "jax",
    lambda rng, n, d: (
        [
            (rng.normal(size=(d, 8)), rng.normal(size=8)),
            (rng.normal(size=(8, 3)), rng.normal(size=3)),
        ],
        rng.normal(size=(n, d)),
        rng.normal(size=(n, 3)),
    ),
    (7, 4),
    (5, 6),
)
def predict_and_loss(params, inputs, targets):
    for W, b in params:
        outputs = np.dot(inputs, W) + b
        inputs = np.tanh(outputs)
    return outputs, np.sum((outputs - targets) ** 2)


@program("jax", lambda rng, n: (rng.normal(size=n),), 9, 16)
def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * np.where(x > 0, x, alpha * np.exp(x) - alpha)


@program(
    "cupy",
    lambda rng, n, m: (
        rng.random((n, m)).astype(np.float32),
        rng.random((n, m)).astype(np.float32),
    ),
    (2, 3),
    (7, 13),
)
def squared_difference(x, y):
    l2 = np.linalg.norm(x - y)
    log1p = np.maximum(0, x) + np.log1p(np.exp(-abs(x)))
    return (x - y) ** 2, l2, log1p.sum(axis=1)


@program("pythran", lambda rng, n: (rng.random(n).tolist(), rng.random(n)), 7, 13)
def dprod(l0, l1):
    return sum(x * y for x, y in zip(l0, l1))


@program(
    "pythran", lambda rng, n: (rng.random(n), rng.random(n), rng.random(n), rng.random(n)), 9, 14
)
def arc_distance(theta_1, phi_1, theta_2, phi_2):
    """
    Calculates the pairwise arc distance
    between all points in vector a and b.
    """
    temp = (
        np.sin((theta_2 - theta_1) / 2) ** 2
        + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    )
    distance_matrix = 2 * np.arctan2(np.sqrt(temp), np.sqrt(1 - temp))
    return distance_matrix


@program("numexpr", lambda rng, n: (np.arange(n, dtype=np.float64), rng.random(n)), 10, 17)
def chained_expressions(a, b):
    c = 2 * a + 3 * b
    d = np.sin(a) ** 2 + np.cos(b) ** 2
    e = np.where(a > b, c, d)
    return e, np.prod(1 + b), (a**2 + b**2 + 2 * a * b).sum()


@program("dask", lambda rng, n: (rng.random((n, n)),), 10, 13)
def blocked_mean(x):
    y = x + x.T
    z = y[::2, 5:].mean(axis=1)
    return z, y.std(), (y > 1).mean(axis=0)


@program("bohrium", lambda rng, n: (np.zeros((n, n)), 0.05), 9, 14)
def heat2d(grid, epsilon):
    grid[:, 0] = -273.15
    grid[:, -1] = -273.15
    grid[0, :] = 40.0
    grid[-1, :] = -273.15
    center = grid[1:-1, 1:-1]
    north = grid[0:-2, 1:-1]
    south = grid[2:, 1:-1]
    east = grid[1:-1, 2:]
    west = grid[1:-1, 0:-2]
    delta = epsilon + 1
    iteration = 0
    while delta > epsilon and iteration < 12:
        tmp = 0.2 * (center + north + south + east + west)
        delta = np.sum(np.abs(tmp - center))
        center[:] = tmp
        iteration += 1
    return delta, iteration


@program("legate", lambda rng, n: (rng.random(n), 0.1), 10, 15)
def stencil_with_views(grid, scale):
    left, right = grid[:-2], grid[2:]
    middle = grid[1:-1]
    work = middle.copy()
    for _ in range(3):
        np.add(left, right, out=work)
        work *= 0.5
        middle += scale * (work - middle)
    return grid.sum()


@program(
    "xarray", lambda rng, t, n: (rng.normal(15, 8, (t, n)), np.arange(t) % 12), (24, 3), (31, 5)
)
def monthly_anomalies(air, month):
    climatology = np.empty((12, air.shape[1]))
    for m in range(12):
        climatology[m] = air[month == m].mean(axis=0)
    anomalies = air - climatology[month]
    rolling = np.array([anomalies[max(0, i - 2) : i + 1].mean(axis=0) for i in range(len(air))])
    return anomalies, rolling


@program("theano", lambda rng, n, k: (rng.normal(size=(k, k)), k, n), (4, 3), (6, 5))
def repeated_product(A, n, steps):
    result = np.ones_like(A)
    for i in range(steps):
        result = result * A
    powers, accumulator = [], np.eye(n)
    for _ in range(steps):
        accumulator = accumulator @ A
        powers.append(accumulator.trace())
    return result, powers


@program("tinygrad", lambda rng, n: (np.eye(3), np.array([[2.0, 0, -2.0]]), n), 2, 4)
def backward_by_hand(x, y, times):
    z = y @ x
    loss = z.sum()
    grad_x = y.T @ np.ones_like(z)
    grad_y = np.ones_like(z) @ x.T
    for _ in range(times):
        x -= 0.1 * grad_x
        y = y - 0.1 * grad_y
    return loss, x, y


@program(
    "awkward and uproot",
    lambda rng, n: (
        rng.exponential(20, (n, 2)),
        rng.uniform(-2.4, 2.4, (n, 2)),
        rng.uniform(-np.pi, np.pi, (n, 2)),
        rng.choice([-1, 1], (n, 2)),
    ),
    30,
    47,
)
def dimuon_mass(pt, eta, phi, charge):
    opposite = charge[:, 0] != charge[:, 1]
    hard = (pt > 5).all(axis=1)
    selected = opposite & hard
    pt, eta, phi = pt[selected], eta[selected], phi[selected]
    mass = np.sqrt(
        2 * pt[:, 0] * pt[:, 1] * (np.cosh(eta[:, 0] - eta[:, 1]) - np.cos(phi[:, 0] - phi[:, 1]))
    )
    counts, edges = np.histogram(mass, bins=6, range=(0, 120))
    return mass.size, counts, edges
