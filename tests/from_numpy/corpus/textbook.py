"""Exercises of textbooks and tutorials."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("exercises")


@program("100 numpy exercises", lambda rng, n: (n,), 10, 7)
def first_arrays(n):
    Z = np.zeros(n)
    Z[4] = 1
    W = np.arange(10, 50)
    W = W[::-1]
    E = np.eye(3)
    nz = np.nonzero([1, 2, 0, 0, 4, 0])
    cube = np.arange(9).reshape(3, 3)
    return Z, W, E, nz[0], cube


@program("100 numpy exercises", lambda rng, n, m: (n, m), (8, 5), (7, 13))
def borders(n, m):
    Z = np.ones((n, m))
    Z[1:-1, 1:-1] = 0
    P = np.pad(Z, pad_width=1, mode="constant", constant_values=2)
    Z[:, [0, -1]] = 0.5
    Z[[0, -1], :] = 0.25
    D = np.diag(1 + np.arange(4), k=-1)
    C = np.tile(np.array([[0, 1], [1, 0]]), (4, 4))
    return Z, P, D, C


@program("100 numpy exercises", lambda rng, n: (rng.random((n, n)), rng.random(n), 0.5), 5, 11)
def normalise_and_nearest(Z, v, scalar):
    Z = (Z - np.mean(Z)) / (np.std(Z))
    closest = v.flat[np.abs(v - scalar).argmin()]
    v[v.argmax()] = 0
    rows = Z - Z.mean(axis=1, keepdims=True)
    return Z, closest, v, rows


@program("100 numpy exercises", lambda rng, n: (np.arange(n),), 11, 14)
def negate_between(Z):
    Z[(3 < Z) & (Z < 8)] *= -1
    return Z


@program("100 numpy exercises", lambda rng, n: (rng.uniform(-10, 10, n),), 9, 12)
def integer_parts(Z):
    a = Z - Z % 1
    b = Z // 1
    c = np.floor(Z)
    d = Z.astype(int)
    e = np.trunc(Z)
    away = np.copysign(np.ceil(np.abs(Z)), Z)
    return a, b, c, d, e, away


@program("100 numpy exercises", lambda rng, n: (rng.integers(0, 9, n),), 6, 10)
def interleave_zeros(Z):
    nz = 3
    Z0 = np.zeros(len(Z) + (len(Z) - 1) * (nz))
    Z0[:: nz + 1] = Z
    return Z0


@program("100 numpy exercises", lambda rng, n: (rng.random((n, n)), rng.random((n, n))), 5, 9)
def diagonal_of_product(A, B):
    slow = np.diag(np.dot(A, B))
    fast = np.sum(A * B.T, axis=1)
    faster = np.einsum("ij,ji->i", A, B)
    A[[0, 1]] = A[[1, 0]]
    return slow, fast, faster


@program("100 numpy exercises", lambda rng, n: (np.arange(n, dtype=np.int32), 4), 14, 11)
def sliding_windows(Z, width):
    n = Z.shape[0] - width + 1
    R = Z[np.arange(n)[:, None] + np.arange(width)]
    V = np.lib.stride_tricks.sliding_window_view(Z, window_shape=width)
    return R, V.sum(axis=1), (R == V).all()


@program("100 numpy exercises", lambda rng, n, m: (rng.integers(0, 5, (n, m)),), (5, 5), (7, 3))
def rank_and_unique_rows(Z):
    rank = np.linalg.matrix_rank(Z)
    E = np.all(Z[:, 1:] == Z[:, :-1], axis=1)
    U = Z[~E]
    most = np.bincount(Z.ravel()).argmax()
    return rank, U, most


@program(
    "100 numpy exercises", lambda rng, n, k: (np.ones(n), rng.integers(0, n, k)), (10, 20), (7, 5)
)
def add_by_index(Z, I):
    Z += np.bincount(I, minlength=len(Z))
    F = np.zeros(len(Z))
    np.add.at(F, I, 2.5)
    return Z, F


@program("100 numpy exercises", lambda rng, n: (rng.integers(0, 3, (n, n)),), 10, 12)
def block_sums(Z, k=4):
    S = np.add.reduceat(
        np.add.reduceat(Z, np.arange(0, Z.shape[0], k), axis=0), np.arange(0, Z.shape[1], k), axis=1
    )
    return S


@program(
    "100 numpy exercises",
    lambda rng, n: (np.array([0, 1, 2, 3, 15, 16, 32, n], dtype=np.uint8),),
    64,
    128,
)
def binary_representation(I):
    B = ((I.reshape(-1, 1) & (2 ** np.arange(8))) != 0).astype(int)
    return B[:, ::-1], np.unpackbits(I[:, np.newaxis], axis=1)


@program(
    "100 numpy exercises",
    lambda rng, n: (rng.random((n, 2)), rng.random((n, 2)), rng.random((1, 2))),
    10,
    7,
)
def distance_to_lines(P0, P1, p):
    T = P1 - P0
    L = (T**2).sum(axis=1)
    U = -((P0[:, 0] - p[..., 0]) * T[:, 0] + (P0[:, 1] - p[..., 1]) * T[:, 1]) / L
    U = U.reshape(len(U), 1)
    D = P0 + U * T - p
    return np.sqrt((D**2).sum(axis=1))


@program("SciPy lecture notes", lambda rng, n: (rng.integers(1000, 60000, (n, 3)) * 1.0,), 21, 13)
def population_statistics(populations):
    year = 1900 + np.arange(len(populations))
    mean = populations.mean(axis=0)
    std = populations.std(axis=0)
    species = np.argmax(populations, axis=1)
    above = np.any(populations > 50000, axis=1)
    lowest = np.argsort(populations, axis=0)[:2]
    diff = np.gradient(populations[:, 0])
    corr = np.corrcoef(diff, -populations[:, 1])[0, 1]
    return mean, std, species, year[above], lowest, corr


@program("SciPy lecture notes", lambda rng, n: (n,), 24, 12)
def crude_integral(points):
    f = lambda a, b, c: a**b - c
    x = np.linspace(0, 1, points)[:, np.newaxis, np.newaxis]
    y = np.linspace(0, 1, points // 2)[np.newaxis, :, np.newaxis]
    z = np.linspace(0, 1, points // 3)[None, None, :]
    samples = f(x, y, z)
    integral = samples.mean()
    return integral, abs(integral - (np.log(2) - 0.5)) < 0.1


@program(
    "SciPy lecture notes",
    lambda rng, n: (np.array([0, 198, 303, 736, 871, 1175, 1475, 1544, 1913, 2448])[:n],),
    10,
    7,
)
def distances_along_a_road(mileposts):
    return np.abs(mileposts - mileposts[:, np.newaxis])


@program("numpy quickstart", lambda rng, n: (np.arange(n) ** 3,), 10, 13)
def slices_and_steps(a):
    b = a[2:5]
    a[:6:2] = 1000
    total = 0.0
    for i in a[::-1]:
        total += i ** (1 / 3.0)
    c = a.reshape(-1, 1)
    c[0] = -1
    return b, a[::-1], total, c.T


@program("numpy quickstart", lambda rng, n: (rng.integers(0, 100, (n, 4)),), 3, 5)
def stacking_and_shapes(a):
    raveled = a.ravel()
    transposed = a.T
    h = np.hstack((a, a * 2))
    v = np.vstack((a, -a))
    left, right = np.hsplit(a, 2)
    columns = np.column_stack((raveled[:3], raveled[-3:]))
    a.shape = (2, -1)
    return raveled, transposed, h, v, left, right, columns, a


@program("Python Data Science Handbook", lambda rng, n: (rng.integers(0, 400, n) / 10.0,), 31, 59)
def rainy_days(inches):
    rainy = inches > 0.5
    days = np.arange(len(inches))
    summer = (days > 10) & (days < 25)
    print("Median precip on rainy days:   ", np.median(inches[rainy]))
    return (
        np.median(inches[rainy]),
        np.max(inches[summer]),
        np.sum((inches > 0.5) & (inches < 1)),
        np.median(inches[rainy & ~summer]),
    )


@program(
    "From Python to NumPy", lambda rng, n: (rng.random((n, 2)), rng.random((n, 2)) - 0.5), 9, 13
)
def boids(position, velocity, max_speed=0.4):
    dx = np.subtract.outer(position[:, 0], position[:, 0])
    dy = np.subtract.outer(position[:, 1], position[:, 1])
    distance = np.hypot(dx, dy)
    mask_0 = distance > 0
    mask_1 = (distance < 0.5) * mask_0
    mask_2 = distance < 0.25
    mask_2 *= mask_0
    count = np.maximum(mask_1.sum(axis=1), 1).reshape(-1, 1)
    alignment = np.dot(mask_1, velocity) / count
    cohesion = np.dot(mask_1, position) / count - position
    target = np.dstack((dx, dy))
    separation = (target * mask_2[..., None]).sum(axis=1)
    acceleration = 1.5 * separation + alignment + cohesion
    velocity += acceleration * 0.1
    speed = np.sqrt((velocity**2).sum(axis=1)).reshape(-1, 1)
    fast = speed.ravel() > max_speed
    velocity[fast] *= max_speed / speed[fast]
    position += velocity
    return position, velocity, fast.sum()


@program("From Python to NumPy", lambda rng, n: (rng.random((n, n)) < 0.75,), 9, 13)
def maze_distances(Z):
    Z[1, 1] = True
    Z[0] = Z[-1] = Z[:, 0] = Z[:, -1] = False
    G = np.zeros(Z.shape)
    G[1, 1] = 1
    gamma = 0.99
    G_gamma = np.empty_like(G)
    while True:
        np.multiply(G, gamma, out=G_gamma)
        candidates = np.stack(
            (G_gamma[:-2, 1:-1], G_gamma[2:, 1:-1], G_gamma[1:-1, :-2], G_gamma[1:-1, 2:])
        )
        new = np.maximum(G[1:-1, 1:-1], Z[1:-1, 1:-1] * candidates.max(axis=0))
        if np.allclose(new, G[1:-1, 1:-1], rtol=0, atol=1e-12):
            break
        G[1:-1, 1:-1] = new
    return G


@program(
    "matlab users guide", lambda rng, n, m: (rng.random((n, m)), rng.random((n, m))), (5, 7), (8, 3)
)
def for_matlab_users(a, b):
    last = a[-1]
    middle = a[1:4][:, [0, 2]]
    a_t = a.conj().T
    a[a < 0.5] = 0
    picked = a[np.ix_([0, 2, 1], [1, 0])]
    ends = a[np.r_[: len(a), 0]]
    biggest = np.maximum(a, b), a.max(), a.max(0), b.max(1)
    linear = a.ravel(order="F")
    return last, middle, a_t, picked, ends, biggest[0], biggest[1], biggest[2], biggest[3], linear
