"""Courses of physics, chemistry and engineering: classes, closures, keyword arguments, events."""

import math
from functools import partial

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("courses")


@program("course of quantum mechanics", lambda rng, n: (np.linspace(-4, 4, n),), 12, 9)
def bound_states(x, n_states=3):
    """Lowest states of the harmonic oscillator by a matrix of finite differences."""
    N = len(x)
    dx = x[1] - x[0]
    T = -0.5 * (np.diag(np.ones(N - 1), 1) - 2 * np.eye(N) + np.diag(np.ones(N - 1), -1)) / dx**2
    V = np.diag(0.5 * x**2)
    E, psi = np.linalg.eigh(T + V)
    density = psi[:, :n_states] ** 2
    norm = np.sum(density, axis=0) * dx
    return E[:n_states], density / norm


@program("course of quantum mechanics", lambda rng, n: (rng.random(n),), 6)
def spin_chain(h, J=1.0):
    """Energy of a short Ising chain in a transverse field, by Kronecker products."""
    sx = np.array([[0.0, 1.0], [1.0, 0.0]])
    sz = np.array([[1.0, 0.0], [0.0, -1.0]])
    L = 3

    def site_op(op, i):
        out = np.array([[1.0]])
        for j in range(L):
            out = np.kron(out, op if j == i else np.eye(2))
        return out

    H = np.zeros((2**L, 2**L))
    for i in range(L - 1):
        H -= J * site_op(sz, i) @ site_op(sz, i + 1)
    for i in range(L):
        H -= h[i] * site_op(sx, i)
    return np.linalg.eigvalsh(H)[0], np.trace(H @ H) / 2**L


@program("course of electrodynamics", lambda rng, n: (n, np.array([[2, 2], [5, 5]])), 8, 10)
def potential_of_charges(n, positions, tol=1e-4, max_iter=200):
    phi = np.zeros((n, n))
    rho = np.zeros_like(phi)
    for (i, j), q in zip(positions, (1.0, -1.0)):
        rho[i, j] = q
    for iteration in range(max_iter):
        old = phi.copy()
        phi[1:-1, 1:-1] = 0.25 * (
            phi[2:, 1:-1] + phi[:-2, 1:-1] + phi[1:-1, 2:] + phi[1:-1, :-2] + rho[1:-1, 1:-1]
        )
        if np.max(np.abs(phi - old)) < tol:
            break
    ex, ey = np.gradient(-phi)
    return phi, np.hypot(ex, ey), iteration


@program("course of electrodynamics", lambda rng, n: (rng.random((n, 3)) * 4 + 1,), 6, 4)
def biot_savart(points, I=1.0, segments=24):
    """Magnetic field of a circular loop at some points."""
    mu0 = 4 * np.pi * 1e-7
    phi = np.linspace(0, 2 * np.pi, segments + 1)
    loop = np.stack([np.cos(phi), np.sin(phi), np.zeros_like(phi)], axis=-1)
    dl = np.diff(loop, axis=0)
    mid = (loop[1:] + loop[:-1]) / 2
    r = points[:, np.newaxis, :] - mid[np.newaxis, :, :]
    dist = np.linalg.norm(r, axis=-1, keepdims=True)
    dB = mu0 * I / (4 * np.pi) * np.cross(dl[None], r) / dist**3
    return dB.sum(axis=1) * 1e7


class Pendulum:
    g = 9.81

    def __init__(self, length=1.0, damping=0.1):
        self.length = length
        self.damping = damping
        self.history = []

    def __call__(self, t, y):
        theta, omega = y
        return np.array([omega, -self.g / self.length * np.sin(theta) - self.damping * omega])

    @property
    def period(self):
        return 2 * math.pi * math.sqrt(self.length / self.g)


def rk4(f, y0, t):
    y = np.empty((len(t), len(y0)))
    y[0] = y0
    for i, (a, b) in enumerate(zip(t[:-1], t[1:])):
        h = b - a
        k1 = f(a, y[i])
        k2 = f(a + h / 2, y[i] + h / 2 * k1)
        k3 = f(a + h / 2, y[i] + h / 2 * k2)
        k4 = f(b, y[i] + h * k3)
        y[i + 1] = y[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@program("course of mechanics", lambda rng, n: (np.linspace(0, 2, n), np.array([0.4, 0.0])), 11)
def damped_pendulum(t, y0):
    p = Pendulum(damping=0.3)
    y = rk4(p, y0, t)
    energy = 0.5 * (p.length * y[:, 1]) ** 2 + p.g * p.length * (1 - np.cos(y[:, 0]))
    return y, energy, p.period


@program("course of mechanics", lambda rng, n: (np.linspace(0, 4, n),), 41)
def bouncing_ball(t, restitution=0.8):
    y = np.zeros_like(t)
    y[0], v = 1.0, 0.0
    dt = t[1] - t[0]
    bounces = []
    for i in range(1, len(t)):
        v -= 9.81 * dt
        y[i] = y[i - 1] + v * dt
        if y[i] < 0 and v < 0:
            y[i] = -y[i]
            v *= -restitution
            bounces.append(t[i])
    return y, bounces, len(bounces)


@program(
    "course of mechanics", lambda rng, n: (rng.random((n, 3)) - 0.5, rng.random(n) + 0.5), 6, 9
)
def principal_axes(r, m):
    r = r - np.average(r, axis=0, weights=m)
    inertia = np.einsum(
        "n,nij->ij", m, np.sum(r**2, axis=1)[:, None, None] * np.eye(3)
    ) - np.einsum("n,ni,nj->ij", m, r, r)
    moments, axes = np.linalg.eigh(inertia)
    return moments, np.abs(axes.T @ inertia @ axes), np.isclose(inertia, inertia.T).all()


@program("course of thermodynamics", lambda rng, n: (np.linspace(0.6, 3.0, n),), 9, 14)
def van_der_waals(v, T=0.9):
    def pressure(v, T=T):
        return 8 * T / (3 * v - 1) - 3 / v**2

    p = pressure(v)
    slope = np.gradient(p, v)
    unstable = v[slope > 0]
    work = np.trapezoid(p, v)
    isotherms = {f"T={temp:.1f}": pressure(v, temp) for temp in (0.8, 1.0, 1.2)}
    return p, unstable.size, work, isotherms


@program("course of statistical physics", lambda rng, n: (np.linspace(0.5, 5, n),), 8)
def two_level_system(T, levels=(0.0, 1.0, 1.5)):
    E = np.asarray(levels)
    beta = 1 / T
    boltzmann = np.exp(-np.outer(beta, E))
    Z = boltzmann.sum(axis=1)
    mean = (boltzmann * E).sum(axis=1) / Z
    square = boltzmann @ E**2 / Z
    heat = (square - mean**2) * beta**2
    return dict(Z=Z, U=mean, C=heat, peak=T[np.argmax(heat)])


@program("course of chemistry", lambda rng, n: (np.array([1.0, 0.0, 0.0]), n), 30)
def robertson_like(c0, steps, k=(0.4, 3.0, 1.0), dt=0.05):
    """Consecutive reactions by implicit Euler with Newton's method."""
    k1, k2, k3 = k
    c = c0.copy()
    out = [c.copy()]
    for _ in range(steps):
        new = c.copy()
        for _ in range(4):
            a, b, d = new
            rate = np.array([-k1 * a + k3 * b * d, k1 * a - k3 * b * d - k2 * b**2, k2 * b**2])
            jac = np.array(
                [
                    [-k1, k3 * d, k3 * b],
                    [k1, -k3 * d - 2 * k2 * b, -k3 * b],
                    [0.0, 2 * k2 * b, 0.0],
                ]
            )
            new = new - np.linalg.solve(np.eye(3) - dt * jac, new - c - dt * rate)
        c = new
        out.append(c.copy())
    return np.array(out)


@program("course of chemistry", lambda rng, n: (rng.random((n, 3)) * 3,), 7, 5)
def radial_distribution(xyz, box=3.0, nbins=6):
    n = len(xyz)
    i, j = np.triu_indices(n, k=1)
    d = xyz[i] - xyz[j]
    d -= box * np.round(d / box)
    r = np.sqrt((d**2).sum(axis=-1))
    hist, edges = np.histogram(r, bins=nbins, range=(0, box / 2))
    shell = 4 / 3 * np.pi * (edges[1:] ** 3 - edges[:-1] ** 3)
    g = 2 * hist / (n * (n - 1) / box**3 * shell)
    return g, 0.5 * (edges[1:] + edges[:-1])


@program("course of optics", lambda rng, n: (n,), 16)
def double_slit(n, width=3, gap=6):
    aperture = np.zeros((n, n), dtype=complex)
    c = n // 2
    for centre in (c - gap // 2, c + gap // 2):
        aperture[c - 2 : c + 2, centre - width // 2 : centre + width // 2 + 1] = 1
    far = np.fft.fftshift(np.fft.fft2(np.fft.ifftshift(aperture)))
    intensity = np.abs(far) ** 2
    intensity /= intensity.max()
    return intensity, intensity[c] > 0.5, np.unravel_index(intensity.argmax(), intensity.shape)


@program("course of optics", lambda rng, n: (np.linspace(400, 700, n),), 7)
def transfer_matrices(wavelengths, layers=((1.38, 99.6), (2.1, 65.0)), n_sub=1.52):
    R = []
    for lam in wavelengths:
        M = np.eye(2, dtype=np.complex128)
        for n, d in layers:
            delta = 2 * np.pi * n * d / lam
            M = M @ np.array(
                [
                    [np.cos(delta), 1j * np.sin(delta) / n],
                    [1j * n * np.sin(delta), np.cos(delta)],
                ]
            )
        B, C = M @ np.array([1, n_sub])
        R.append(abs((B - C) / (B + C)) ** 2)
    return np.array(R)


@program("course of structures", lambda rng, n: (rng.random(n) + 1, n), 5)
def truss(load, n, E=210.0, A=0.01):
    """Axial displacements of a chain of bars, assembled with np.ix_."""
    K = np.zeros((n + 1, n + 1))
    ke = E * A * np.array([[1, -1], [-1, 1]])
    for e in range(n):
        dofs = [e, e + 1]
        K[np.ix_(dofs, dofs)] += ke * (e + 1)
    f = np.zeros(n + 1)
    f[1:] = load
    free = np.arange(1, n + 1)
    u = np.zeros(n + 1)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], f[free])
    reaction = K @ u - f
    return u, reaction[0], np.allclose(reaction[free], 0, atol=1e-9)


@program("course of control", lambda rng, n: (np.linspace(0, 3, n),), 61)
def pid_controller(t, setpoint=1.0, **gains):
    gains = {"kp": 2.0, "ki": 1.0, "kd": 0.05, **gains}
    integral = previous = 0.0
    y = 0.0
    out = np.zeros_like(t)
    dt = t[1] - t[0]
    for k in range(len(t)):
        error = setpoint - y
        integral += error * dt
        derivative = (error - previous) / dt if k else 0.0
        u = gains["kp"] * error + gains["ki"] * integral + gains["kd"] * derivative
        u = max(-5.0, min(5.0, u))
        y += dt * (-y + u)
        previous = error
        out[k] = y
    overshoot = out.max() - setpoint
    settled = np.flatnonzero(np.abs(out - setpoint) > 0.05)
    return out, overshoot, t[settled[-1]]


@program("course of control", lambda rng, n: (rng.random((n, n)) * 0.4, rng.random((n, 1))), 3)
def linear_regulator(A, B, tol=1e-9):
    n = A.shape[0]
    Q, R = np.eye(n), np.array([[1.0]])
    P = Q.copy()
    for it in range(100):
        gain = np.linalg.inv(R + B.T @ P @ B) @ (B.T @ P @ A)
        new = Q + A.T @ P @ (A - B @ gain)
        if np.linalg.norm(new - P, "fro") < tol:
            break
        P = new
    controllable = np.hstack([np.linalg.matrix_power(A, k) @ B for k in range(n)])
    return gain, P, np.linalg.matrix_rank(controllable)


@program("course of astronomy", lambda rng, n: (np.sort(rng.random(n)) * 20, rng.random(n)), 25)
def lomb_scargle(t, y, periods=(0.8, 1.3, 2.1, 3.4)):
    y = y - y.mean()
    power = []
    for period in periods:
        w = 2 * np.pi / period
        tau = np.arctan2(np.sum(np.sin(2 * w * t)), np.sum(np.cos(2 * w * t))) / (2 * w)
        c, s = np.cos(w * (t - tau)), np.sin(w * (t - tau))
        power += [0.5 * ((y @ c) ** 2 / (c @ c) + (y @ s) ** 2 / (s @ s))]
    best = int(np.argmax(power))
    return np.array(power), periods[best]


@program("course of fluid mechanics", lambda rng, n: (np.linspace(0, 1, n),), 21, 16)
def sod_shock_lax(x, gamma=1.4, t_end=0.1, cfl=0.8):
    dx = x[1] - x[0]
    left = x < 0.5
    rho = np.where(left, 1.0, 0.125)
    p = np.where(left, 1.0, 0.1)
    U = np.array([rho, np.zeros_like(x), p / (gamma - 1)])

    def flux(U):
        rho, m, E = U
        u = m / rho
        p = (gamma - 1) * (E - 0.5 * m * u)
        return np.array([m, m * u + p, (E + p) * u]), np.max(np.abs(u) + np.sqrt(gamma * p / rho))

    t, steps = 0.0, 0
    while t < t_end:
        F, speed = flux(U)
        dt = min(cfl * dx / speed, t_end - t)
        new = U.copy()
        new[:, 1:-1] = 0.5 * (U[:, 2:] + U[:, :-2]) - 0.5 * dt / dx * (F[:, 2:] - F[:, :-2])
        U = new
        t += dt
        steps += 1
    return U, steps


@program("course of numerics", lambda rng, n: (np.linspace(-1, 1, n),), 6)
def barycentric(nodes, f=np.exp, m=11):
    w = np.array([1 / np.prod(nodes[j] - np.delete(nodes, j)) for j in range(len(nodes))])
    x = np.linspace(-0.95, 0.97, m)
    d = x[:, None] - nodes
    terms = w / d
    p = terms @ f(nodes) / terms.sum(1)
    return p, np.max(np.abs(p - f(x))) < 1e-3


@program("course of numerics", lambda rng, n: (rng.random(n) + 0.1,), 5)
def newton_with_closures(targets):
    def make(a):
        return (lambda x: x**3 - a), (lambda x: 3 * x**2)

    def newton(f, df, x0=1.0, tol=1e-10, maxit=50):
        x = x0
        for n in range(maxit):
            step = f(x) / df(x)
            x -= step
            if abs(step) < tol:
                return x, n
        raise RuntimeError("no convergence")

    roots, counts = [], []
    for a in targets:
        root, n = newton(*make(a))
        roots.append(root)
        counts.append(n)
    return np.array(roots), sum(counts)


@program("course of numerics", lambda rng, n: (rng.random(n), np.full(n, 2.5)), 9, 6)
def crank_nicolson_thomas(u, d, r=0.4, steps=3):
    """Tridiagonal systems by Thomas' algorithm, with arrays that are changed in place."""

    def thomas(a, b, c, rhs):
        n = len(rhs)
        b, x = b.copy(), rhs.copy()
        for i in range(1, n):
            w = a[i] / b[i - 1]
            b[i] -= w * c[i - 1]
            x[i] -= w * x[i - 1]
        x[-1] /= b[-1]
        for i in reversed(range(n - 1)):
            x[i] = (x[i] - c[i] * x[i + 1]) / b[i]
        return x

    off = np.full_like(u, -r / 2)
    for _ in range(steps):
        rhs = (1 - r) * u
        rhs[1:] += r / 2 * u[:-1]
        rhs[:-1] += r / 2 * u[1:]
        u[:] = thomas(off, np.full_like(u, 1 + r) + 0 * d, off, rhs)
    return u.sum()


@program("course of numerics", lambda rng, n: (rng.random((n, 2)),), 12, 7)
def monte_carlo_volume(samples, dims=(2, 3)):
    inside = partial(np.less_equal, x2=1.0) if False else (lambda r: r <= 1.0)
    found = {}
    for d in dims:
        r = np.linalg.norm(np.tile(samples, (1, d))[:, :d], axis=1)
        hits = np.count_nonzero(inside(r))
        found[d] = 2**d * hits / len(samples)
    exact = {d: math.pi ** (d / 2) / math.gamma(d / 2 + 1) for d in dims}
    return {d: (found[d], abs(found[d] - exact[d])) for d in dims}
