"""Integrators, root finders, interpolation, eigenvalues: numerical analysis as courses write it."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("numerical analysis")


def odeint(method, f, y0, t):
    y = np.zeros((len(t), len(y0)))
    y[0] = y0
    for n in range(len(t) - 1):
        h = t[n + 1] - t[n]
        y[n + 1] = method(f, y[n], t[n], h)
    return y


def euler(f, y, t, h):
    return y + h * f(y, t)


def heun(f, y, t, h):
    k1 = f(y, t)
    k2 = f(y + h * k1, t + h)
    return y + h / 2 * (k1 + k2)


def rk4(f, y, t, h):
    k1 = f(y, t)
    k2 = f(y + h / 2 * k1, t + h / 2)
    k3 = f(y + h / 2 * k2, t + h / 2)
    k4 = f(y + h * k3, t + h)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def pendulum(y, t, b=0.25, c=5.0):
    theta, omega = y
    dydt = [omega, -b * omega - c * np.sin(theta)]
    return np.array(dydt)


@program("textbook", lambda rng, n: (np.array([np.pi - 0.1, 0.0]), n), 5, 9)
def compare_integrators(y0, n):
    t = np.linspace(0, 1, n)
    results = {}
    for method in (euler, heun, rk4):
        results[method.__name__] = odeint(method, pendulum, y0, t)
    errors = {name: np.abs(y - results["rk4"]).max() for name, y in results.items()}
    return results["rk4"], errors


@program("textbook", lambda rng, n: (rng.random(2), n), 12)
def dormand_prince_adaptive(y0, max_steps):
    c = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
    a = [
        [],
        [1 / 5],
        [3 / 40, 9 / 40],
        [44 / 45, -56 / 15, 32 / 9],
        [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
        [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
    ]
    b5 = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0])
    b4 = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])
    f = lambda t, y: np.array([y[1], (1 - y[0] ** 2) * y[1] - y[0]])
    t, h, y = 0.0, 0.1, y0.copy()
    accepted = 0
    for _ in range(max_steps):
        if t >= 1.0:
            break
        h = min(h, 1.0 - t)
        k = np.zeros((7, 2))
        for s in range(7):
            dy = np.zeros(2)
            for j in range(s):
                dy += a[s][j] * k[j]
            k[s] = f(t + c[s] * h, y + h * dy)
        err = np.linalg.norm(h * (b5 - b4) @ k)
        if err < 1e-6:
            t += h
            y = y + h * (b5 @ k)
            accepted += 1
        h *= min(5.0, max(0.2, 0.9 * (1e-6 / (err + 1e-16)) ** 0.2))
    return y, accepted


@program("textbook", lambda rng: (2.0, 1e-10))
def root_finders(x0, tol):
    f = lambda x: x**3 - 2 * x - 5
    df = lambda x: 3 * x**2 - 2

    def newton(x):
        for k in range(50):
            dx = f(x) / df(x)
            x = x - dx
            if abs(dx) < tol:
                return x, k
        return None

    def secant(a, b):
        while abs(b - a) > tol:
            a, b = b, b - f(b) * (b - a) / (f(b) - f(a))
        return b

    def regula_falsi(a, b, n=40):
        c = a
        for _ in range(n):
            c = (a * f(b) - b * f(a)) / (f(b) - f(a))
            if f(c) * f(a) < 0:
                b = c
            else:
                a = c
        return c

    root, k = newton(x0)
    return root, k, secant(2.0, 3.0), regula_falsi(2.0, 3.0)


@program("textbook", lambda rng, n: (rng.random((n, n)) + n * np.eye(n),), 4, 6)
def qr_algorithm(A):
    A = (A + A.T) / 2
    n = A.shape[0]
    Ak = np.copy(A)
    QQ = np.eye(n)
    for k in range(60):
        s = Ak.item(n - 1, n - 1)
        smult = s * np.eye(n)
        Q, R = np.linalg.qr(np.subtract(Ak, smult))
        Ak = np.add(R @ Q, smult)
        QQ = QQ @ Q
    return np.sort(np.diag(Ak))


@program("textbook", lambda rng, n: (rng.random((n, n)),), 4, 5)
def jacobi_eigenvalues(A):
    A = A + A.T
    n = len(A)
    for sweep in range(8):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(A[p, q]) < 1e-14:
                    continue
                theta = (A[q, q] - A[p, p]) / (2 * A[p, q])
                t = np.sign(theta) / (abs(theta) + np.sqrt(theta**2 + 1))
                c = 1 / np.sqrt(t**2 + 1)
                s = t * c
                J = np.eye(n)
                J[p, p] = J[q, q] = c
                J[p, q], J[q, p] = s, -s
                A = J.T @ A @ J
    return np.sort(A.diagonal())


@program("textbook", lambda rng, m, n: (rng.random((m, n)),), (6, 4), (7, 3))
def householder_vectorized(A):
    m, n = A.shape
    R = A.copy()
    Q = np.identity(m)
    for k in range(min(m - 1, n)):
        x = R[k:, k]
        e = np.zeros_like(x)
        e[0] = np.copysign(np.linalg.norm(x), -A[k, k])
        u = x + e
        v = u / np.linalg.norm(u)
        Q_k = np.identity(m)
        Q_k[k:, k:] -= 2.0 * np.outer(v, v)
        R = np.dot(Q_k, R)
        Q = np.dot(Q, Q_k.T)
    return np.abs(np.triu(R)), np.allclose(Q @ R, A)


@program("textbook", lambda rng, m, n: (rng.random((m, n)),), (5, 3), (6, 4))
def givens_rotations(A):
    m, n = A.shape
    Q, R = np.eye(m), A.copy()
    rows, cols = np.tril_indices(m, -1, n)
    for i, j in zip(rows, cols):
        if R[i, j] != 0:
            r = np.hypot(R[j, j], R[i, j])
            c, s = R[j, j] / r, -R[i, j] / r
            G = np.eye(m)
            G[[i, j], [i, j]] = c
            G[i, j], G[j, i] = s, -s
            R, Q = G @ R, Q @ G.T
    return Q, R


@program("textbook", lambda rng, n: (rng.random((n, n)) + 3 * np.eye(n), rng.random(n)), 4, 7)
def lu_with_pivoting(A, b):
    n = A.shape[0]
    U, L, P = A.copy(), np.eye(n), np.eye(n)
    for k in range(n - 1):
        p = k + np.argmax(np.abs(U[k:, k]))
        if p != k:
            U[[k, p], k:] = U[[p, k], k:]
            L[[k, p], :k] = L[[p, k], :k]
            P[[k, p], :] = P[[p, k], :]
        for j in range(k + 1, n):
            L[j, k] = U[j, k] / U[k, k]
            U[j, k:] -= L[j, k] * U[k, k:]
    y = np.zeros(n)
    Pb = P @ b
    for i in range(n):
        y[i] = Pb[i] - L[i, :i] @ y[:i]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (y[i] - U[i, i + 1 :] @ x[i + 1 :]) / U[i, i]
    return L, U, x


@program(
    "textbook",
    lambda rng, n: (
        np.sort(rng.random(n)) + np.arange(n),
        rng.random(n),
        rng.random(5) * (n - 2) + 1,
    ),
    5,
    8,
)
def cubic_spline(x, y, xq):
    n = len(x)
    h = np.diff(x)
    A = np.zeros((n, n))
    rhs = np.zeros(n)
    A[0, 0] = A[-1, -1] = 1
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = h[i - 1], 2 * (h[i - 1] + h[i]), h[i]
        rhs[i] = 3 * ((y[i + 1] - y[i]) / h[i] - (y[i] - y[i - 1]) / h[i - 1])
    c = np.linalg.solve(A, rhs)
    d = np.diff(c) / (3 * h)
    b = np.diff(y) / h - h * (2 * c[:-1] + c[1:]) / 3
    out = []
    for q in xq:
        i = min(max(np.searchsorted(x, q) - 1, 0), n - 2)
        dx = q - x[i]
        out.append(y[i] + b[i] * dx + c[i] * dx**2 + d[i] * dx**3)
    return np.array(out)


@program("textbook", lambda rng: (0.0, 1.0, 8))
def quadrature_rules(a, b, n):
    def f(x):
        return np.exp(-(x**2)) * np.cos(3 * x)

    def trapezoid(f, a, b, n):
        x = np.linspace(a, b, n + 1)
        y = f(x)
        return (b - a) / (2 * n) * np.sum(y[1:] + y[:-1])

    def simpson(f, a, b, n):
        if n % 2 == 1:
            raise ValueError("n must be even")
        x = np.linspace(a, b, n + 1)
        y = f(x)
        return (b - a) / (3 * n) * np.sum(y[0:-1:2] + 4 * y[1::2] + y[2::2])

    def adaptive(f, a, b, tol):
        c = (a + b) / 2
        whole = simpson(f, a, b, 2)
        halves = simpson(f, a, c, 2) + simpson(f, c, b, 2)
        if tol > 1e-3:
            return halves + (halves - whole) / 15
        return adaptive(f, a, c, tol * 4) + adaptive(f, c, b, tol * 4)

    nodes, weights = np.polynomial.legendre.leggauss(5)
    gauss = (b - a) / 2 * np.sum(weights * f((b - a) / 2 * nodes + (a + b) / 2))
    return trapezoid(f, a, b, n), simpson(f, a, b, n), adaptive(f, a, b, 1e-5), gauss


@program("textbook", lambda rng, n: (rng.random((n, n)) + n * np.eye(n), rng.random(n)), 5, 8)
def steepest_and_conjugate(A, b):
    A = A @ A.T
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs_old = r @ r
    residuals = [np.sqrt(rs_old)]
    for i in range(len(b)):
        Ap = A @ p
        alpha = rs_old / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rs_new = r @ r
        residuals.append(np.sqrt(rs_new))
        if np.sqrt(rs_new) < 1e-10:
            break
        p = r + (rs_new / rs_old) * p
        rs_old = rs_new
    return x, residuals[0]


@program("textbook", lambda rng, n: (rng.random((n, n)), rng.random(n), 4), 6, 9)
def arnoldi_iteration(A, b, m):
    n = len(b)
    eps = 1e-12
    h = np.zeros((m + 1, m))
    Q = np.zeros((n, m + 1))
    Q[:, 0] = b / np.linalg.norm(b, 2)
    for k in range(1, m + 1):
        v = np.dot(A, Q[:, k - 1])
        for j in range(k):
            h[j, k - 1] = np.dot(Q[:, j].conj(), v)
            v = v - h[j, k - 1] * Q[:, j]
        h[k, k - 1] = np.linalg.norm(v, 2)
        if h[k, k - 1] > eps:
            Q[:, k] = v / h[k, k - 1]
        else:
            return Q, h
    return Q, h


@program("textbook", lambda rng, n: (rng.random((n, n)), rng.random(n)), 5, 7)
def gauss_seidel_with_print(A, b):
    ITERATION_LIMIT = 20
    A = A + len(b) * np.eye(len(b))
    x = np.zeros_like(b, np.float64)
    for it_count in range(1, ITERATION_LIMIT):
        x_new = np.zeros_like(x, dtype=np.float64)
        for i in range(A.shape[0]):
            s1 = np.dot(A[i, :i], x_new[:i])
            s2 = np.dot(A[i, i + 1 :], x[i + 1 :])
            x_new[i] = (b[i] - s1 - s2) / A[i, i]
        if np.allclose(x, x_new, rtol=1e-8):
            break
        x = x_new
    error = np.dot(A, x) - b
    return x, error < 1e-5


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n)), 6, 9)
def richardson_and_aitken(x, y):
    def central(f, x, h):
        return (f(x + h) - f(x - h)) / (2 * h)

    D = np.zeros((4, 4))
    for i in range(4):
        D[i, 0] = central(np.sin, 1.0, 0.5 / 2**i)
        for j in range(1, i + 1):
            D[i, j] = D[i, j - 1] + (D[i, j - 1] - D[i - 1, j - 1]) / (4**j - 1)
    partial = np.cumsum((-1.0) ** np.arange(len(x)) / (2 * np.arange(len(x)) + 1))
    d = np.diff(partial)
    aitken = partial[:-2] - d[:-1] ** 2 / (d[1:] - d[:-1])
    V = np.vander(x[:4], increasing=True)
    coefficients, res, rank, sv = np.linalg.lstsq(V, y[:4], rcond=None)
    return D, aitken, coefficients, rank


@program("textbook", lambda rng, n: (rng.random((n, n)), 3), 5, 8)
def randomized_svd(A, k):
    n = A.shape[1]
    Omega = np.cos(np.arange(n * k) ** 2).reshape(n, k)
    Y = A @ Omega
    for _ in range(2):
        Q, _ = np.linalg.qr(Y)
        Y = A @ (A.T @ Q)
    Q, _ = np.linalg.qr(Y)
    B = Q.T @ A
    Uhat, s, Vt = np.linalg.svd(B, full_matrices=False)
    U = Q @ Uhat
    return s, U @ np.diag(s) @ Vt


@program("textbook", lambda rng, n: (rng.random((n, n)),), 5, 8)
def power_method_with_deflation(A):
    A = A.T @ A
    eigenvalues, vectors = [], []
    for _ in range(3):
        v = np.ones(A.shape[0])
        v /= np.linalg.norm(v)
        lam_old = 0
        for it in range(200):
            w = A @ v
            lam = v @ w
            v = w / np.linalg.norm(w)
            if abs(lam - lam_old) < 1e-13 * abs(lam):
                break
            lam_old = lam
        eigenvalues.append(lam)
        vectors.append(v)
        A = A - lam * np.outer(v, v)
    return np.array(eigenvalues)
