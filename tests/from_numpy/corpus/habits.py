"""Habits of authors: reports as texts, checks of types, decorators, defaults, units, signals."""

import functools
import math
from typing import Sequence, Union

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("habits")

ArrayLike = Union[Sequence[float], np.ndarray]


def vectorised(func):
    @functools.wraps(func)
    def wrapper(x, *args, **kwargs):
        x = np.atleast_1d(np.asarray(x, dtype=float))
        return func(x, *args, **kwargs)

    return wrapper


@vectorised
def soft_threshold(x, lam=0.5):
    return np.sign(x) * np.maximum(np.abs(x) - lam, 0)


@program("blog", lambda rng, n: (rng.standard_normal(n),), 5, 9)
def decorated_threshold(x):
    return soft_threshold(x, lam=0.3), soft_threshold(0.75)


@program("github", lambda rng, n: (rng.random(n), 3), 8, 13)
def rolling_window_checks(x: ArrayLike, window: int = 3, mode: str = "valid") -> np.ndarray:
    if not isinstance(x, (list, tuple, np.ndarray)):
        raise TypeError(f"expected an array, got {type(x).__name__}")
    x = np.asarray(x)
    if x.ndim != 1:
        raise ValueError("1-D only")
    if not 0 < window <= len(x):
        raise ValueError("bad window: {}".format(window))
    if mode not in ("valid", "same"):
        raise ValueError("mode %r" % mode)
    out = np.array([x[i : i + window].mean() for i in range(len(x) - window + 1)])
    if mode == "same":
        pad = (window - 1) // 2
        out = np.pad(out, (pad, window - 1 - pad), mode="edge")
    return out


@program("lecture", lambda rng, n: (rng.random((n, 3)),), 4, 6)
def trajectory_report(x):
    name = "run"
    lines = []
    for i, row in enumerate(x):
        label = f"{name}_{i:02d}"
        if label.endswith("3"):
            continue
        lines.append(label.upper())
    title = ", ".join(lines)
    return x.sum() * len(title), len(lines)


@program("matlab", lambda rng, n: (rng.random((n, n)) + n * np.eye(n), rng.random(n)), 4, 5)
def sor_with_flags(A, b, omega=1.1, tol=1e-4, maxiter=200):
    n = A.shape[0]
    x = np.zeros(n)
    flag = 1
    for it in range(maxiter):
        x_old = x.copy()
        for i in range(n):
            sigma = A[i, :i] @ x[:i] + A[i, i + 1 :] @ x_old[i + 1 :]
            x[i] = (1 - omega) * x_old[i] + omega * (b[i] - sigma) / A[i, i]
        err = np.linalg.norm(x - x_old, np.inf)
        if err < tol:
            flag = 0
            break
    return x, err, it + 1, flag


@program("numerical recipes", lambda rng, n: (rng.random(n),), 3, 5)
def brent_like(c):
    def f(x):
        return np.cos(x) - x * (0.5 + c.mean())

    a, b = 0.0, 2.0
    fa, fb = f(a), f(b)
    if fa * fb > 0:
        raise ValueError("root not bracketed")
    for _ in range(60):
        if fa == fb:
            x = (a + b) / 2
        else:
            x = b - fb * (b - a) / (fb - fa)
        if not a < x < b:
            x = 0.5 * (a + b)
        fx = f(x)
        if abs(fx) < 1e-10:
            break
        if fa * fx < 0:
            b, fb = x, fx
        else:
            a, fa = x, fx
    else:
        x = float("nan")
    return x


@program("numerical recipes", lambda rng, n: (rng.random(n) + 0.1,), 3, 5)
def rk45_step_control(y0):
    def f(t, y):
        return -2.0 * t * y

    t, y, h = 0.0, y0.copy(), 0.1
    t_end = 1.0
    accepted = rejected = 0
    while t < t_end:
        h = min(h, t_end - t)
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + 3 * h / 4, y + 3 * h / 4 * k2)
        y_new = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
        k4 = f(t + h, y_new)
        err = np.max(np.abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8)))
        if err < 1e-4:
            t += h
            y = y_new
            accepted += 1
        else:
            rejected += 1
        h *= min(5.0, max(0.2, 0.9 * (1e-4 / (err + 1e-16)) ** (1 / 3)))
    return y, accepted, rejected


@program("finance", lambda rng, n: (100 + np.cumsum(rng.standard_normal(n)),), 9, 14)
def crossover_strategy(prices):
    cash, position = 1000.0, 0
    entry = None
    trades = []
    for i in range(3, len(prices)):
        fast = prices[i - 1 : i + 1].mean()
        slow = prices[i - 3 : i + 1].mean()
        if fast > slow and position == 0:
            position = int(cash // prices[i])
            cash -= position * prices[i]
            entry = prices[i]
        elif fast < slow and position > 0:
            cash += position * prices[i]
            trades.append(prices[i] - entry)
            position = 0
    equity = cash + position * prices[-1]
    wins = len([t for t in trades if t > 0])
    return equity, wins, len(trades)


@program("finance", lambda rng, n: (rng.random(n) * 100,), 6, 9)
def portfolio_by_names(weights):
    names = ["cash", "bonds", "stocks"]
    portfolio = {name: w for name, w in zip(names, weights)}
    total = sum(portfolio.values())
    portfolio = {k: v / total for k, v in portfolio.items()}
    heaviest = None
    for name, w in portfolio.items():
        if heaviest is None or w > heaviest[1]:
            heaviest = (name, w)
    return heaviest[1], portfolio["bonds"]


@program("github", lambda rng, n: (rng.random((n, n)),), 6, 9)
def pipeline_of_functions(image):
    def normalise(im):
        lo, hi = im.min(), im.max()
        return (im - lo) / (hi - lo)

    def gamma(im, g=0.5):
        return im**g

    def crop(im, margin=1):
        return im[margin:-margin, margin:-margin]

    steps = [normalise, (gamma, {"g": 2.0}), (crop, dict(margin=2)), lambda im: 1 - im]
    out = image
    for step in steps:
        if callable(step):
            out = step(out)
        else:
            func, kwargs = step
            out = func(out, **kwargs)
    return functools.reduce(lambda acc, f: f(acc), [np.sqrt, np.abs], out)


@program("physics", lambda rng, n: (rng.random((n, 2)) * 4, rng.random((n, 2)) - 0.5), 4, 6)
def billiard_collisions(pos, vel):
    L, dt = 4.0, 0.05
    hits = 0
    last = None
    for step in range(6):
        pos += vel * dt
        for i in range(len(pos)):
            for axis in range(2):
                if pos[i, axis] < 0 or pos[i, axis] > L:
                    vel[i, axis] *= -1
                    hits += 1
                    last = i
    return pos, hits, -1 if last is None else last


@program("md", lambda rng, n: (rng.random((n, 3)) * 3,), 5, 7)
def neighbour_lists(pos, cutoff=1.2, box=3.0):
    n = len(pos)
    neighbours = [[] for _ in range(n)]
    for i in range(n):
        for j in range(i + 1, n):
            d = pos[i] - pos[j]
            d -= box * np.round(d / box)
            if d @ d < cutoff**2:
                neighbours[i].append(j)
                neighbours[j].append(i)
    energy = 0.0
    for i, near in enumerate(neighbours):
        for j in near:
            d = pos[i] - pos[j]
            d -= box * np.round(d / box)
            r2 = d @ d
            energy += 0.5 * (1 / r2**6 - 1 / r2**3)
    return energy, [len(near) for near in neighbours]


@program("signal", lambda rng, n: (rng.standard_normal(n),), 12, 17)
def pan_tompkins_like(ecg):
    diff = np.diff(ecg, prepend=ecg[0])
    squared = diff**2
    integrated = np.convolve(squared, np.ones(3) / 3, mode="same")
    threshold = 0.5 * integrated.max()
    peaks = []
    last_peak = None
    for i in range(1, len(integrated) - 1):
        if integrated[i - 1] < integrated[i] >= integrated[i + 1] and integrated[i] > threshold:
            if last_peak is None or i - last_peak > 3:
                peaks.append(i)
                last_peak = i
    rr = np.diff(peaks)
    return peaks, rr


@program("ml", lambda rng, n: (rng.random((n, 2)),), 7, 11)
def dbscan(X, eps=0.3, min_pts=3):
    labels = [None] * len(X)
    cluster = -1

    def region(p):
        return [q for q in range(len(X)) if np.linalg.norm(X[p] - X[q]) < eps]

    for p in range(len(X)):
        if labels[p] is not None:
            continue
        neighbours = region(p)
        if len(neighbours) < min_pts:
            labels[p] = -1
            continue
        cluster += 1
        labels[p] = cluster
        seeds = [q for q in neighbours if q != p]
        while seeds:
            q = seeds.pop(0)
            if labels[q] == -1:
                labels[q] = cluster
            if labels[q] is not None:
                continue
            labels[q] = cluster
            more = region(q)
            if len(more) >= min_pts:
                seeds.extend(more)
    return np.array(labels)


@program("ml", lambda rng, n: (rng.random((n, 2)), rng.random(n)), 6, 9)
def early_stopping(X, y, patience=2):
    w = np.zeros(2)
    best_loss, best_w = math.inf, None
    bad = 0
    for epoch in range(20):
        grad = 2 * X.T @ (X @ w - y) / len(y)
        w = w - 0.9 * grad
        loss = np.mean((X @ w - y) ** 2)
        if loss < best_loss - 1e-3:
            best_loss, best_w = loss, w.copy()
            bad = 0
        else:
            bad += 1
            if bad >= patience:
                break
    return best_w, best_loss, epoch


@program("image", lambda rng, n: (rng.random((n, n)) > 0.5,), 5, 7)
def components_with_queue(mask):
    labels = np.zeros(mask.shape, dtype=int)
    current = 0
    sizes = {}
    for seed in zip(*np.where(mask)):
        if labels[seed]:
            continue
        current += 1
        queue = [seed]
        labels[seed] = current
        size = 0
        while queue:
            r, c = queue.pop()
            size += 1
            for rr, cc in [(r + 1, c), (r - 1, c), (r, c + 1), (r, c - 1)]:
                if 0 <= rr < mask.shape[0] and 0 <= cc < mask.shape[1]:
                    if mask[rr, cc] and not labels[rr, cc]:
                        labels[rr, cc] = current
                        queue.append((rr, cc))
        sizes[current] = size
    return labels, current


@program("tutorial", lambda rng, n: (rng.random(n),), 5, 8)
def defaults_in_lambdas(x):
    polynomials = [lambda t, k=k: t**k for k in range(4)]
    values = np.array([p(x) for p in polynomials])
    adders = []
    for k in range(3):
        adders.append(lambda t: t + k)
    return values, [f(1) for f in adders]


@program("tutorial", lambda rng, n: (rng.random(n) * 100,), 6, 9)
def letter_grades(scores):
    grades = {"A": 90, "B": 75, "C": 50}
    counts = dict.fromkeys([*grades, "F"], 0)
    for s in scores:
        for letter, least in grades.items():
            if s >= least:
                counts[letter] += 1
                break
        else:
            counts["F"] += 1
    return counts["A"], counts["B"], counts["C"], counts["F"]
