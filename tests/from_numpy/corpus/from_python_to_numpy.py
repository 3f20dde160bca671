"""In the manner of "From Python to NumPy", "100 NumPy exercises" and the SciPy lecture notes."""

import itertools

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("tutorials of NumPy")


@program("rougier", lambda rng, n: ((rng.random((n, n + 2)) < 0.4).astype(int),), 7, 10)
def life_iterate(Z):
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


@program("rougier", lambda rng, n: (-2.0, 0.5, -1.25, 1.25, n, n + 1, 12), 7, 11)
def mandelbrot_np(xmin, xmax, ymin, ymax, xn, yn, itermax, horizon=2.0):
    Xi, Yi = np.mgrid[0:xn, 0:yn]
    X = np.linspace(xmin, xmax, xn, dtype=np.float64)[Xi]
    Y = np.linspace(ymin, ymax, yn, dtype=np.float64)[Yi]
    C = X + Y * 1j
    N_ = np.zeros(C.shape, dtype=np.uint32)
    Z_ = np.zeros(C.shape, dtype=np.complex128)
    Xi.shape = Yi.shape = C.shape = xn * yn
    Z = np.zeros(C.shape, np.complex128)
    for i in range(itermax):
        if not len(Z):
            break
        np.multiply(Z, Z, Z)
        np.add(Z, C, Z)
        I = abs(Z) > horizon
        N_[Xi[I], Yi[I]] = i + 1
        Z_[Xi[I], Yi[I]] = Z[I]
        np.logical_not(I, I)
        Z = Z[I]
        Xi, Yi = Xi[I], Yi[I]
        C = C[I]
    return Z_.T, N_.T


@program("rougier", lambda rng, n: (rng.random((2, n, n)), 0.16, 0.08, 0.035, 0.065), 7, 9)
def gray_scott_rougier(start, Du, Dv, F, k):
    n = start.shape[1]
    Z = np.zeros((n + 2, n + 2), [("U", np.double), ("V", np.double)])
    U, V = Z["U"], Z["V"]
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    u[...] = 1.0
    v += 0.05 * start[0]
    for i in range(4):
        Lu = U[0:-2, 1:-1] + U[1:-1, 0:-2] - 4 * U[1:-1, 1:-1] + U[1:-1, 2:] + U[2:, 1:-1]
        Lv = V[0:-2, 1:-1] + V[1:-1, 0:-2] - 4 * V[1:-1, 1:-1] + V[1:-1, 2:] + V[2:, 1:-1]
        uvv = u * v * v
        u += Du * Lu - uvv + F * (1 - u)
        v += Dv * Lv + uvv - (F + k) * v
    return u, v


@program("rougier", lambda rng, n: (rng.random((n, 2)), rng.random((n, 2)) - 0.5), 7, 12)
def flock(position, velocity):
    n = len(position)
    max_velocity, max_acceleration = 2.0, 0.03
    for _ in range(3):
        dx = np.subtract.outer(position[:, 0], position[:, 0])
        dy = np.subtract.outer(position[:, 1], position[:, 1])
        distance = np.hypot(dx, dy)
        mask_0 = distance > 0
        mask_1 = (distance < 0.25) * mask_0
        mask_2 = (distance < 0.5) * mask_0
        mask_1_count = np.maximum(mask_1.sum(axis=1), 1)
        mask_2_count = np.maximum(mask_2.sum(axis=1), 1)
        mask_3_count = mask_2_count
        mask = np.dstack((mask_1, mask_1))
        target = np.dstack((dx, dy))
        target = np.divide(target, distance.reshape(n, n, 1) ** 2, out=target, where=mask)
        count = mask_1_count.reshape(n, 1)
        steer = target.sum(axis=1) / count
        norm = np.sqrt((steer * steer).sum(axis=1)).reshape(n, 1)
        steer = max_velocity * np.divide(steer, norm, out=steer, where=norm != 0)
        steer -= velocity
        norm = np.sqrt((steer * steer).sum(axis=1)).reshape(n, 1)
        steer = np.multiply(
            steer, max_acceleration / norm, out=steer, where=norm > max_acceleration
        )
        separation = steer
        count = mask_2_count.reshape(n, 1)
        alignment = np.dot(mask_2, velocity) / count
        center = np.dot(mask_2, position) / mask_3_count.reshape(n, 1)
        cohesion = center - position
        velocity += 1.5 * separation + alignment + cohesion
        position += velocity
        position += 1
        position %= 1
    return position, velocity


@program("rougier", lambda rng, n: (rng.random((n, 2)), 0.15), 12, 20)
def bridson_cells(P, radius):
    cellsize = radius / np.sqrt(2)
    rows = int(np.ceil(1.0 / cellsize))
    cols = int(np.ceil(1.0 / cellsize))
    grid = -np.ones((rows, cols), dtype=int)
    kept = []
    for index, p in enumerate(P):
        i, j = int(p[0] / cellsize), int(p[1] / cellsize)
        ok = True
        for a in range(max(i - 2, 0), min(i + 3, rows)):
            for b in range(max(j - 2, 0), min(j + 3, cols)):
                other = grid[a, b]
                if other >= 0 and np.sum((P[other] - p) ** 2) < radius**2:
                    ok = False
        if ok:
            grid[i, j] = index
            kept.append(index)
    return grid, len(kept)


@program("100 exercises", lambda rng: (rng.random((5, 3)), rng.random((3, 2)), rng.random(10)))
def exercises_one(a, b, v):
    Z = np.zeros(10)
    Z[4] = 1
    reverse = np.arange(50)[::-1]
    nz = np.nonzero([1, 2, 0, 0, 4, 0])
    I = np.eye(3)
    pad = np.pad(np.ones((5, 5)), pad_width=1, mode="constant", constant_values=0)
    below = np.diag(1 + np.arange(4), k=-1)
    board = np.zeros((8, 8), dtype=int)
    board[1::2, ::2] = 1
    board[::2, 1::2] = 1
    tiled = np.tile(np.array([[0, 1], [1, 0]]), (4, 4))
    normal = (v - np.mean(v)) / (np.std(v))
    product = np.dot(a, b)
    return Z, reverse, nz[0], I, pad, below, board, tiled, normal, product


@program("100 exercises", lambda rng: (rng.random((10, 10)), rng.uniform(0, 10, 10), rng.random(9)))
def exercises_two(Z, U, v):
    Zmin, Zmax = Z.min(), Z.max()
    away = np.trunc(U + np.copysign(0.5, U))
    integer = U - U % 1
    rows = np.zeros((5, 5))
    rows += np.arange(5)
    generated = np.fromiter(iter(range(10)), dtype=float, count=-1)
    inner = np.linspace(0, 1, 11, endpoint=False)[1:]
    v.sort()
    total = np.add.reduce(np.arange(10))
    v[v.argmax()] = 0
    m = Z[:, 0]
    nearest = Z.flat[np.abs(Z - 0.5).argmin()]
    X, Y = np.atleast_2d(Z[:, 0], Z[:, 1])
    D = np.sqrt((X - X.T) ** 2 + (Y - Y.T) ** 2)
    return Zmin, Zmax, away, integer, rows, generated, inner, v, total, m, nearest, D


@program(
    "100 exercises",
    lambda rng, n: (rng.random((n, 3)), rng.integers(0, 5, n), rng.random((16, 16))),
    8,
)
def exercises_three(Z, D, big):
    X, Y = np.meshgrid(np.linspace(-1, 1, 10), np.linspace(-1, 1, 10))
    G = np.exp(-((np.sqrt(X * X + Y * Y) - 0.0) ** 2 / (2.0 * 1.0**2)))
    centred = Z - Z.mean(axis=1, keepdims=True)
    by_column = Z[Z[:, 1].argsort()]
    null_columns = (~Z.any(axis=0)).any()
    F = np.zeros(10)
    I = np.array([1, 2, 1, 8, 1])
    np.add.at(F, I, 1)
    B = np.bincount(D, weights=Z[:, 0], minlength=6)
    S_sums = np.bincount(D, weights=Z[:, 1], minlength=6)
    S_counts = np.bincount(D, minlength=6)
    means = S_sums / np.maximum(S_counts, 1)
    lengths = np.einsum("ij,ij->i", Z, Z)
    interleaved = np.zeros(5 + 4 * 3)
    interleaved[::4] = np.array([1, 2, 3, 4, 5])
    swapped = Z.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    k = 4
    block = np.add.reduceat(
        np.add.reduceat(big, np.arange(0, big.shape[0], k), axis=0),
        np.arange(0, big.shape[1], k),
        axis=1,
    )
    return G, centred, by_column, null_columns, F, B, means, lengths, interleaved, swapped, block


@program("100 exercises", lambda rng, n: (rng.random((n, n)), rng.integers(0, 10, (n, 3)), 3), 6)
def exercises_four(Z, E, n):
    largest = Z.ravel()[np.argsort(Z.ravel())[-n:]]
    unequal = E[np.logical_not(np.all(E[:, 1:] == E[:, :-1], axis=1))]
    U, S, V = np.linalg.svd(Z)
    rank = np.sum(S > 1e-10)
    most = np.bincount(E.ravel(), minlength=10).argmax()
    p = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
    windows = np.lib.stride_tricks.sliding_window_view(p, 4)[::2]
    upper = np.zeros((5, 5))
    for i, j in itertools.combinations(range(5), 2):
        upper[i, j] = upper[j, i] = i * 10 + j
    bits = ((E[:, 0].reshape(-1, 1) & (2 ** np.arange(8))) != 0).astype(int)[:, ::-1]
    return largest, len(unequal), rank, most, windows, upper, bits


@program(
    "100 exercises", lambda rng, n: (rng.random((n, 2)), rng.random((n, 2)), rng.random((3, 2))), 5
)
def distance_of_points(P0, P1, p):
    T = P1 - P0
    L = (T**2).sum(axis=1)
    out = np.zeros((len(p), len(P0)))
    for k, each in enumerate(p):
        U = -((P0[:, 0] - each[..., 0]) * T[:, 0] + (P0[:, 1] - each[..., 1]) * T[:, 1]) / L
        U = U.reshape(len(U), 1)
        D = P0 + U * T - each
        out[k] = np.sqrt((D**2).sum(axis=1))
    return out


@program("100 exercises", lambda rng, n: (rng.random((n, n + 1)), 3, (1, 2)), 6)
def fixed_shape_around(Z, size, position):
    shape = (size, size)
    fill = 0.5
    R = np.ones(shape, dtype=Z.dtype) * fill
    P = np.array(list(position)).astype(int)
    Rs = np.array(list(R.shape)).astype(int)
    Zs = np.array(list(Z.shape)).astype(int)
    R_start = np.zeros((len(shape),)).astype(int)
    R_stop = np.array(list(shape)).astype(int)
    Z_start = P - Rs // 2
    Z_stop = (P + Rs // 2) + Rs % 2
    R_start = (R_start - np.minimum(Z_start, 0)).tolist()
    Z_start = (np.maximum(Z_start, 0)).tolist()
    R_stop = np.maximum(R_start, (R_stop - np.maximum(Z_stop - Zs, 0))).tolist()
    Z_stop = (np.minimum(Z_stop, Zs)).tolist()
    r = [slice(start, stop) for start, stop in zip(R_start, R_stop)]
    z = [slice(start, stop) for start, stop in zip(Z_start, Z_stop)]
    R[tuple(r)] = Z[tuple(z)]
    return R


@program("100 exercises", lambda rng, n: (rng.integers(0, 10, n), rng.integers(0, 10, n)), 8)
def contains_rows(a, b):
    moving = np.cumsum(a, dtype=float)
    moving[3:] = moving[3:] - moving[:-3]
    mean3 = moving[2:] / 3
    c = np.intersect1d(a, b)
    runs = np.diff(np.flatnonzero(np.concatenate(([True], a[1:] != a[:-1], [True]))))
    return mean3, len(c), c.sum(), len(runs), runs.max()


@program("scipy-lectures", lambda rng, n: (rng.random((n, 2)) * 100,), 12)
def lectures_populations(data):
    hares, lynxes = data.T
    mean, std = data.mean(axis=0), data.std(axis=0)
    best = np.argmax(data, axis=0)
    above = np.any(data > 50, axis=1)
    top2 = np.argsort(data, axis=0)[-2:]
    corr = np.corrcoef(np.gradient(hares), -lynxes)[0, 1]
    return mean, std, best, above, top2, corr


@program("scipy-lectures", lambda rng, n: (rng.integers(0, 256, (n, n + 2)).astype(np.uint8),), 9)
def lectures_face(face):
    crop = face[1:-1, 2:-2]
    lx, ly = face.shape
    X, Y = np.ogrid[0:lx, 0:ly]
    mask = (X - lx / 2) ** 2 + (Y - ly / 2) ** 2 > lx * ly / 8
    face[mask] = 0
    face[range(4), range(4)] = 255
    return face, crop.mean(), (face > 128).sum(), np.uint8(255) - face


@program("scipy-lectures", lambda rng, n: (n,), 6, 9)
def lectures_prime_sieve(n):
    is_prime = np.ones((n * n,), dtype=bool)
    is_prime[:2] = 0
    N_max = int(np.sqrt(len(is_prime) - 1))
    for j in range(2, N_max + 1):
        is_prime[2 * j :: j] = False
    return np.nonzero(is_prime)[0], is_prime.sum()


@program("numpy.org", lambda rng, n: (rng.random((n, n, 3)), 2), 6, 9)
def svd_on_images(img, k):
    img_gray = img @ [0.2126, 0.7152, 0.0722]
    U, s, Vt = np.linalg.svd(img_gray)
    Sigma = np.zeros((U.shape[1], Vt.shape[0]))
    np.fill_diagonal(Sigma, s)
    approx = U @ Sigma[:, :k] @ Vt[:k, :]
    back = U @ Sigma @ Vt
    channels = np.transpose(img, (2, 0, 1))
    norms = np.linalg.norm(channels, axis=(1, 2))
    return approx, np.linalg.norm(img_gray - back) < 1e-10, norms


@program("numpy.org", lambda rng, n: (rng.integers(0, 100, n).astype(float),), 12)
def mask_and_filter_cases(cases):
    cases[3] = np.nan
    selected = ~np.isnan(cases)
    t = np.arange(len(cases))
    fit = np.polyfit(t[selected], cases[selected], 2)
    daily = np.diff(cases)
    return np.nansum(cases), np.nanmean(daily), np.count_nonzero(selected), np.polyval(fit, t)


@program(
    "numpy.org",
    lambda rng, n: (
        rng.random((n, 6)),
        (rng.random((n, 2)) > 0.5) * 1.0,
        rng.random((6, 5)) - 0.5,
        rng.random((5, 2)) - 0.5,
        rng.random((4, n, 5)) > 0.3,
    ),
    4,
    6,
)
def deep_learning_on_mnist(images, labels, weights_1, weights_2, dropouts):
    def relu(x):
        return (x >= 0) * x

    def relu2deriv(output):
        return output >= 0

    learning_rate = 0.005
    store_training_loss = []
    for j in range(4):
        training_loss = 0.0
        training_accurate_predictions = 0
        for i in range(len(images)):
            layer_0 = images[i]
            layer_1 = np.dot(layer_0, weights_1)
            layer_1 = relu(layer_1)
            dropout_mask = dropouts[j, i]
            layer_1 *= dropout_mask * 2
            layer_2 = np.dot(layer_1, weights_2)
            training_loss += np.sum((labels[i] - layer_2) ** 2)
            training_accurate_predictions += int(np.argmax(layer_2) == np.argmax(labels[i]))
            layer_2_delta = labels[i] - layer_2
            layer_1_delta = np.dot(weights_2, layer_2_delta) * relu2deriv(layer_1)
            layer_1_delta *= dropout_mask
            weights_1 += learning_rate * np.outer(layer_0, layer_1_delta)
            weights_2 += learning_rate * np.outer(layer_1, layer_2_delta)
        store_training_loss.append(training_loss)
    return store_training_loss, training_accurate_predictions
