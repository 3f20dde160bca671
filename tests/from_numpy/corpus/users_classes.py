"""Classes as users write them: optimizers, trees, simulations, filters, with None and results."""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass, field
from typing import Callable, List, NamedTuple, Optional, Tuple

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("users' classes")


class AdamOptimizer:
    """Adam, with moments that are made at the first step."""

    def __init__(self, lr: float = 0.01, beta1=0.9, beta2=0.999, eps=1e-8) -> None:
        self.lr = lr
        self.beta1, self.beta2, self.eps = beta1, beta2, eps
        self.m = None
        self.v = None
        self.t = 0

    def update(self, params: np.ndarray, grads: np.ndarray) -> np.ndarray:
        if self.m is None:
            self.m = np.zeros_like(params)
            self.v = np.zeros_like(params)
        self.t += 1
        self.m = self.beta1 * self.m + (1 - self.beta1) * grads
        self.v = self.beta2 * self.v + (1 - self.beta2) * grads**2
        m_hat = self.m / (1 - self.beta1**self.t)
        v_hat = self.v / (1 - self.beta2**self.t)
        return params - self.lr * m_hat / (np.sqrt(v_hat) + self.eps)


@program("readme", lambda rng, n: (rng.random((2 * n, n)), rng.random(2 * n)), 3, 5)
def fit_with_adam(X, y):
    opt = AdamOptimizer(lr=0.05)
    w = np.zeros(X.shape[1])
    losses = []
    for epoch in range(5):
        residual = X @ w - y
        losses.append(np.mean(residual**2))
        w = opt.update(w, 2 * X.T @ residual / len(y))
    return w, np.array(losses)


class DecisionStump:
    def __init__(self):
        self.polarity = 1
        self.feature_idx = None
        self.threshold = None
        self.alpha = None

    def predict(self, X):
        n_samples = X.shape[0]
        X_column = X[:, self.feature_idx]
        predictions = np.ones(n_samples)
        if self.polarity == 1:
            predictions[X_column < self.threshold] = -1
        else:
            predictions[X_column > self.threshold] = -1
        return predictions


class Adaboost:
    def __init__(self, n_clf=5):
        self.n_clf = n_clf
        self.clfs = []

    def fit(self, X, y):
        n_samples, n_features = X.shape
        w = np.full(n_samples, (1 / n_samples))
        self.clfs = []
        for _ in range(self.n_clf):
            clf = DecisionStump()
            min_error = float("inf")
            for feature_i in range(n_features):
                X_column = X[:, feature_i]
                thresholds = np.unique(X_column)
                for threshold in thresholds:
                    p = 1
                    predictions = np.ones(n_samples)
                    predictions[X_column < threshold] = -1
                    misclassified = w[y != predictions]
                    error = sum(misclassified)
                    if error > 0.5:
                        error = 1 - error
                        p = -1
                    if error < min_error:
                        clf.polarity = p
                        clf.threshold = threshold
                        clf.feature_idx = feature_i
                        min_error = error
            EPS = 1e-10
            clf.alpha = 0.5 * np.log((1.0 - min_error + EPS) / (min_error + EPS))
            predictions = clf.predict(X)
            w *= np.exp(-clf.alpha * y * predictions)
            w /= np.sum(w)
            self.clfs.append(clf)

    def predict(self, X):
        clf_preds = [clf.alpha * clf.predict(X) for clf in self.clfs]
        y_pred = np.sum(clf_preds, axis=0)
        y_pred = np.sign(y_pred)
        return y_pred


@program("readme", lambda rng, n: (rng.random((n, 2)), rng.choice([-1, 1], n)), 6, 9)
def adaboost_class(X, y):
    clf = Adaboost(n_clf=2)
    clf.fit(X, y)
    return clf.predict(X)


@program("readme", lambda rng, n: (rng.random((n, 3)), rng.random((n, 1))), 5, 8)
def network_of_layers(X, y):
    class Dense:
        def __init__(self, n_in, n_out, rng):
            self.W = rng[:n_in, :n_out] - 0.5
            self.b = np.zeros((1, n_out))
            self.x = None

        def forward(self, x):
            self.x = x
            return x @ self.W + self.b

        def backward(self, grad, lr):
            dx = grad @ self.W.T
            self.W = self.W - lr * self.x.T @ grad
            self.b = self.b - lr * grad.sum(axis=0, keepdims=True)
            return dx

    class Tanh:
        def forward(self, x):
            self.out = np.tanh(x)
            return self.out

        def backward(self, grad, lr):
            return grad * (1 - self.out**2)

    table = np.linspace(0, 1, 16).reshape(4, 4)
    layers = [Dense(3, 4, table), Tanh(), Dense(4, 1, table)]
    history = []
    for epoch in range(3):
        out = X
        for layer in layers:
            out = layer.forward(out)
        grad = 2 * (out - y) / len(y)
        for layer in reversed(layers):
            grad = layer.backward(grad, lr=0.1)
        history.append(((out - y) ** 2).mean())
    return np.array(history), layers[0].W


@dataclass
class Body:
    mass: float
    pos: np.ndarray
    vel: np.ndarray = field(default_factory=lambda: np.zeros(2))

    def kinetic(self) -> float:
        return 0.5 * self.mass * np.dot(self.vel, self.vel)


@program("tutorial", lambda rng, n: (rng.random(n) + 1, rng.random((n, 2))), 3, 4)
def gravity_of_bodies(masses, positions, dt: float = 0.01, steps: int = 3):
    bodies: List[Body] = [Body(m, p.copy()) for m, p in zip(masses, positions)]
    energies = []
    for step in range(steps):
        forces = []
        for i, a in enumerate(bodies):
            total = np.zeros(2)
            for j, b in enumerate(bodies):
                if i == j:
                    continue
                r = b.pos - a.pos
                total += a.mass * b.mass * r / (np.linalg.norm(r) ** 3 + 1e-3)
            forces.append(total)
        for body, force in zip(bodies, forces):
            body.vel += dt * force / body.mass
            body.pos += dt * body.vel
        energies.append(sum(b.kinetic() for b in bodies))
    return np.array([b.pos for b in bodies]), np.array(energies)


Result = namedtuple("Result", ["x", "fun", "nit", "success"])


@program("scipy", lambda rng, n: (rng.random(n) + 0.5,), 3, 6)
def minimise_as_scipy(c):
    def f(x):
        return np.sum((x - c) ** 2) + 1.0

    x = np.zeros_like(c)
    success = False
    for nit in range(50):
        g = 2 * (x - c)
        if np.linalg.norm(g) < 1e-3:
            success = True
            break
        x = x - 0.4 * g
    return Result(x=x, fun=f(x), nit=nit, success=success)


class Fit(NamedTuple):
    slope: float
    intercept: float
    residuals: np.ndarray


@program("blog", lambda rng, n: (np.arange(n) * 1.0, rng.random(n)), 5, 9)
def line_fit_result(x, y) -> Fit:
    xm, ym = x.mean(), y.mean()
    slope = ((x - xm) * (y - ym)).sum() / ((x - xm) ** 2).sum()
    intercept = ym - slope * xm
    return Fit(slope, intercept, y - (slope * x + intercept))


class KalmanFilter(object):
    def __init__(self, F=None, B=None, H=None, Q=None, R=None, P=None, x0=None):
        if F is None or H is None:
            raise ValueError("Set proper system dynamics.")
        self.n = F.shape[1]
        self.m = H.shape[1]
        self.F = F
        self.H = H
        self.B = 0 if B is None else B
        self.Q = np.eye(self.n) if Q is None else Q
        self.R = np.eye(self.n) if R is None else R
        self.P = np.eye(self.n) if P is None else P
        self.x = np.zeros((self.n, 1)) if x0 is None else x0

    def predict(self, u=0):
        self.x = np.dot(self.F, self.x) + np.dot(self.B, u)
        self.P = np.dot(np.dot(self.F, self.P), self.F.T) + self.Q
        return self.x

    def update(self, z):
        y = z - np.dot(self.H, self.x)
        S = self.R + np.dot(self.H, np.dot(self.P, self.H.T))
        K = np.dot(np.dot(self.P, self.H.T), np.linalg.inv(S))
        self.x = self.x + np.dot(K, y)
        I = np.eye(self.n)
        self.P = np.dot(np.dot(I - np.dot(K, self.H), self.P), (I - np.dot(K, self.H)).T) + np.dot(
            np.dot(K, self.R), K.T
        )


@program("github", lambda rng, n: (rng.random(n),), 5, 8)
def kalman_class(measurements):
    dt = 1.0 / 60
    F = np.array([[1, dt, 0], [0, 1, dt], [0, 0, 1]])
    H = np.array([1, 0, 0]).reshape(1, 3)
    Q = np.array([[0.05, 0.05, 0.0], [0.05, 0.05, 0.0], [0.0, 0.0, 0.0]])
    R = np.array([0.5]).reshape(1, 1)
    kf = KalmanFilter(F=F, H=H, Q=Q, R=R)
    predictions = []
    for z in measurements:
        predictions.append(np.dot(H, kf.predict())[0])
        kf.update(z)
    return np.array(predictions)


class Vector:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, s):
        return Vector(self.x * s, self.y * s)

    __rmul__ = __mul__

    def __repr__(self):
        return f"Vector({self.x}, {self.y})"

    def __abs__(self):
        return math.hypot(self.x, self.y)

    def __eq__(self, other):
        return isinstance(other, Vector) and self.x == other.x and self.y == other.y


@program("tutorial", lambda rng, n: (rng.random((n, 2)),), 4, 7)
def walk_of_vectors(steps):
    at = Vector(0.0, 0.0)
    lengths = []
    for dx, dy in steps:
        at = at + 2 * Vector(dx, dy)
        lengths.append(abs(at))
    return lengths, at.x, at.y


class RunningStats:
    def __init__(self):
        self.count = 0
        self.mean = 0.0
        self.M2 = 0.0
        self.min_ = None
        self.max_ = None

    def push(self, x):
        self.count += 1
        delta = x - self.mean
        self.mean += delta / self.count
        self.M2 += delta * (x - self.mean)
        if self.min_ is None or x < self.min_:
            self.min_ = x
        if self.max_ is None or x > self.max_:
            self.max_ = x

    @property
    def variance(self):
        return self.M2 / (self.count - 1) if self.count > 1 else float("nan")


@program("stackoverflow", lambda rng, n: (rng.random(n),), 5, 11)
def running_statistics(data):
    stats = RunningStats()
    for x in data:
        stats.push(x)
    return stats.mean, stats.variance, stats.min_, stats.max_


@dataclass
class OdeResult:
    t: np.ndarray
    y: np.ndarray
    nfev: int = 0


class Solver:
    """Base of solvers."""

    order = 1

    def __init__(self, fun: Callable, t0: float, y0, h: float):
        self.fun, self.t, self.y, self.h = fun, t0, np.asarray(y0, dtype=float), h
        self.nfev = 0

    def _eval(self, t, y):
        self.nfev += 1
        return self.fun(t, y)

    def step(self):
        raise NotImplementedError

    def solve(self, t_end: float) -> OdeResult:
        ts, ys = [self.t], [self.y]
        n = int(round((t_end - self.t) / self.h))
        for _ in range(n):
            self.step()
            ts.append(self.t)
            ys.append(self.y)
        return OdeResult(np.array(ts), np.array(ys), self.nfev)


class Euler(Solver):
    def step(self):
        self.y = self.y + self.h * self._eval(self.t, self.y)
        self.t += self.h


class Heun(Solver):
    order = 2

    def step(self):
        k1 = self._eval(self.t, self.y)
        k2 = self._eval(self.t + self.h, self.y + self.h * k1)
        self.y = self.y + self.h / 2 * (k1 + k2)
        self.t += self.h


@program("lecture", lambda rng, n: (rng.random(n),), 2, 5)
def solver_hierarchy(y0):
    f = lambda t, y: -y + np.sin(t)
    results = {}
    for name, cls in [("euler", Euler), ("heun", Heun)]:
        results[name] = cls(f, 0.0, y0, 0.1).solve(0.5)
    return results["euler"].y[-1], results["heun"].y, results["heun"].nfev


@program("lecture", lambda rng, n: (rng.random(n),), 2, 5)
def object_as_result(y0):
    return Heun(lambda t, y: -y, 0.0, y0, 0.1).solve(0.3).y


@program("blog", lambda rng, n: (rng.random((n, 2)), rng.integers(0, 3, n)), 9, 14)
def nearest_centroid_classifier(X, y):
    class NearestCentroid:
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            self.centroids_ = {c: X[y == c].mean(axis=0) for c in range(3)}
            return self

        def predict(self, X):
            d = np.stack([((X - self.centroids_[c]) ** 2).sum(1) for c in sorted(self.centroids_)])
            return d.argmin(axis=0)

    return NearestCentroid().fit(X, y).predict(X)


@program("blog", lambda rng, n: (rng.random(n),), 6, 9)
def ring_buffer(samples):
    class RingBuffer:
        def __init__(self, size):
            self.data = np.zeros(size)
            self.index = 0
            self.full = False

        def __len__(self):
            return len(self.data) if self.full else self.index

        def append(self, x):
            self.data[self.index] = x
            self.index = (self.index + 1) % len(self.data)
            if self.index == 0:
                self.full = True

        def mean(self):
            return self.data[: len(self)].mean() if not self.full else self.data.mean()

    buf = RingBuffer(4)
    out = np.empty(len(samples))
    for i, s in enumerate(samples):
        buf.append(s)
        out[i] = buf.mean()
    return out


def _shape_of(a: Optional[np.ndarray]) -> Tuple[int, ...]:
    return () if a is None else a.shape


@program("blog", lambda rng, n: (rng.random((n, 2)),), 4, 7)
def standard_scaler(X):
    class StandardScaler:
        def __init__(self, with_mean=True, with_std=True):
            self.with_mean = with_mean
            self.with_std = with_std
            self.mean_: Optional[np.ndarray] = None
            self.scale_: Optional[np.ndarray] = None

        def fit(self, X):
            if self.with_mean:
                self.mean_ = X.mean(axis=0)
            if self.with_std:
                s = X.std(axis=0)
                self.scale_ = np.where(s == 0, 1.0, s)
            return self

        def transform(self, X):
            if not hasattr(self, "mean_"):
                raise RuntimeError("not fitted")
            if self.mean_ is not None:
                X = X - self.mean_
            if self.scale_ is not None:
                X = X / self.scale_
            return X

    a = StandardScaler().fit(X)
    b = StandardScaler(with_mean=False).fit(X)
    return a.transform(X), b.transform(X), len(_shape_of(b.mean_))
