"""Polynomials, interpolation and quadrature."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("polynomials")


@program("wikipedia", lambda rng, n, m: (rng.normal(size=n), rng.random(m)), (5, 7), (8, 13))
def horner(coefficients, x):
    result = np.zeros_like(x)
    for c in coefficients[::-1]:
        result = result * x + c
    return result, np.polyval(coefficients[::-1], x)


@program("numpy docs", lambda rng, n: (np.sort(rng.random(n)), rng.random(n)), 9, 14)
def fit_cubic(x, y):
    V = np.vander(x, 4)
    coef = np.linalg.lstsq(V, y, rcond=None)[0]
    residuals = y - V @ coef
    r_squared = 1 - (residuals**2).sum() / ((y - y.mean()) ** 2).sum()
    return np.polyfit(x, y, 3), coef, r_squared


@program(
    "textbook", lambda rng, n, m: (rng.integers(-5, 6, n), rng.integers(-5, 6, m)), (4, 5), (7, 3)
)
def multiply(p, q):
    r = np.zeros(len(p) + len(q) - 1, dtype=p.dtype)
    for i, a in enumerate(p):
        r[i : i + len(q)] += a * q
    derivative = r[1:] * np.arange(1, len(r))
    antiderivative = np.concatenate(([0], r / np.arange(1, len(r) + 1)))
    return r, derivative, antiderivative


@program(
    "textbook",
    lambda rng, n, m: (np.linspace(0, 1, n), rng.random(n), rng.random(m)),
    (5, 7),
    (7, 4),
)
def newton_divided_differences(x, y, t):
    n = len(x)
    coef = np.zeros([n, n])
    coef[:, 0] = y
    for j in range(1, n):
        for i in range(n - j):
            coef[i][j] = (coef[i + 1][j - 1] - coef[i][j - 1]) / (x[i + j] - x[i])
    a = coef[0, :]
    p = a[-1]
    for k in range(1, n):
        p = a[-1 - k] + (t - x[-1 - k]) * p
    return p


@program(
    "textbook",
    lambda rng, n, m: (np.linspace(-1, 1, n), rng.random(n), rng.uniform(-1, 1, m)),
    (5, 7),
    (6, 9),
)
def lagrange(xi, yi, x):
    total = np.zeros(x.shape)
    for i in range(xi.size):
        basis = np.ones(x.shape)
        for j in range(xi.size):
            if j != i:
                basis *= (x - xi[j]) / (xi[i] - xi[j])
        total += yi[i] * basis
    return total


@program("textbook", lambda rng, n, m: (n, np.linspace(-1, 1, m)), (5, 7), (8, 11))
def chebyshev_and_legendre(n, x):
    T = np.zeros((n + 1, x.size))
    P = np.zeros((n + 1, x.size))
    T[0], P[0] = 1, 1
    T[1], P[1] = x, x
    for k in range(1, n):
        T[k + 1] = 2 * x * T[k] - T[k - 1]
        P[k + 1] = ((2 * k + 1) * x * P[k] - k * P[k - 1]) / (k + 1)
    return T, P


@program("blog", lambda rng, n, m: (rng.random((n, 2)), m), (4, 9), (6, 13))
def bezier_de_casteljau(control, samples):
    t = np.linspace(0, 1, samples)[:, None, None]
    pts = np.broadcast_to(control, (samples,) + control.shape).copy()
    while pts.shape[1] > 1:
        pts = (1 - t) * pts[:, :-1] + t * pts[:, 1:]
    return pts[:, 0]


@program("wikipedia", lambda rng, n: (np.append(rng.normal(size=n), 1.0),), 3, 5)
def durand_kerner(coefficients):
    c = coefficients[::-1] / coefficients[-1]
    degree = len(c) - 1
    roots = (0.4 + 0.9j) ** np.arange(degree)
    for _ in range(40):
        for i in range(degree):
            others = np.delete(roots, i)
            roots[i] = roots[i] - np.polyval(c, roots[i]) / np.prod(roots[i] - others)
    return np.sort(np.abs(roots))


@program(
    "numerical recipes",
    lambda rng, n, m: (np.arange(n, dtype=float), rng.random(n), rng.random(m) * (n - 1)),
    (6, 9),
    (9, 5),
)
def natural_cubic_spline(x, y, xq):
    n = len(x)
    h = np.diff(x)
    A = np.zeros((n, n))
    A[0, 0] = A[-1, -1] = 1
    rhs = np.zeros(n)
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 6 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    m = np.linalg.solve(A, rhs)
    k = np.clip(np.searchsorted(x, xq) - 1, 0, n - 2)
    a, b = (x[k + 1] - xq) / h[k], (xq - x[k]) / h[k]
    return a * y[k] + b * y[k + 1] + ((a**3 - a) * m[k] + (b**3 - b) * m[k + 1]) * h[k] ** 2 / 6


@program("textbook", lambda rng, n: (0.0, np.pi, n), 8, 20)
def quadrature(a, b, N):
    x = np.linspace(a, b, N + 1)
    y = np.sin(x)
    dx = (b - a) / N
    trapezoid = dx / 2 * np.sum(y[1:] + y[:-1])
    simpson = dx / 3 * np.sum(y[0:-1:2] + 4 * y[1::2] + y[2::2])
    midpoint = np.sum(np.sin((x[:-1] + x[1:]) / 2) * dx)
    return trapezoid, simpson, midpoint


@program("numerical recipes", lambda rng, n: (0.0, 1.0, n), 4, 6)
def romberg(a, b, n):
    f = lambda x: 1 / (1 + x**2)
    R = np.zeros((n, n))
    h = b - a
    R[0, 0] = 0.5 * h * (f(a) + f(b))
    for i in range(1, n):
        h /= 2
        k = np.arange(1, 2**i, 2)
        R[i, 0] = 0.5 * R[i - 1, 0] + h * f(a + k * h).sum()
        for j in range(1, i + 1):
            R[i, j] = R[i, j - 1] + (R[i, j - 1] - R[i - 1, j - 1]) / (4**j - 1)
    return R[-1, -1], np.abs(R[-1, -1] - np.pi / 4) < 1e-4


@program(
    "stackoverflow",
    lambda rng, n, m: (np.linspace(0, 5, n), rng.random(n), rng.random(m) * 5),
    (7, 9),
    (12, 5),
)
def interpolate(x, y, xnew):
    i = np.searchsorted(x, xnew, side="right") - 1
    w = (xnew - x[i]) / (x[i + 1] - x[i])
    by_hand = y[i] * (1 - w) + y[i + 1] * w
    return by_hand, np.interp(xnew, x, y, left=0.0, right=0.0)
