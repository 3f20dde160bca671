"""Finite elements, finite volumes and spectral methods, as courses write them."""

import numpy as np
from numpy.fft import fft, ifft

from from_numpy.corpus.registry import of_field

program = of_field("finite elements and spectral methods")


@program("textbook", lambda rng, n: (n, lambda x: np.sin(np.pi * x)), 6, 11)
def poisson_1d_fem(nel, f):
    nodes = np.linspace(0.0, 1.0, nel + 1)
    K = np.zeros((nel + 1, nel + 1))
    F = np.zeros(nel + 1)
    for e in range(nel):
        h = nodes[e + 1] - nodes[e]
        ke = np.array([[1.0, -1.0], [-1.0, 1.0]]) / h
        dofs = [e, e + 1]
        K[np.ix_(dofs, dofs)] += ke
        xm = 0.5 * (nodes[e] + nodes[e + 1])
        F[dofs] += f(xm) * h / 2 * np.ones(2)
    # Dirichlet boundary conditions
    free = np.arange(1, nel)
    u = np.zeros(nel + 1)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], F[free])
    return u


def triangulation(rng, n):
    x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n))
    points = np.column_stack([x.ravel(), y.ravel()])
    cells = []
    for j in range(n - 1):
        for i in range(n - 1):
            k = j * n + i
            cells += [[k, k + 1, k + n], [k + 1, k + n + 1, k + n]]
    return points, np.array(cells)


@program("scikit-fem", lambda rng, n: triangulation(rng, n), 3, 5)
def assemble_p1(points, triangles):
    """Stiffness matrix and load vector of linear triangles, all elements at once."""
    n = points.shape[0]
    x, y = points[triangles, 0], points[triangles, 1]
    b = np.stack([y[:, 1] - y[:, 2], y[:, 2] - y[:, 0], y[:, 0] - y[:, 1]], axis=1)
    c = np.stack([x[:, 2] - x[:, 1], x[:, 0] - x[:, 2], x[:, 1] - x[:, 0]], axis=1)
    area = 0.5 * np.abs(b[:, 0] * c[:, 1] - b[:, 1] * c[:, 0])
    local = (b[:, :, None] * b[:, None, :] + c[:, :, None] * c[:, None, :]) / (
        4 * area[:, None, None]
    )
    K = np.zeros((n, n))
    rows = np.repeat(triangles, 3, axis=1)
    cols = np.tile(triangles, (1, 3))
    np.add.at(K, (rows.ravel(), cols.ravel()), local.ravel())
    F = np.zeros(n)
    np.add.at(F, triangles, area[:, None] / 3)
    return K, F


@program("textbook", lambda rng, n: triangulation(rng, n), 3)
def assemble_mass_with_loops(p, t):
    M = np.zeros((len(p), len(p)))
    for tri in t:
        a, b, c = p[tri]
        J = np.array([b - a, c - a])
        detJ = abs(np.linalg.det(J))
        Me = detJ / 24.0 * (np.ones((3, 3)) + np.eye(3))
        for i in range(3):
            for j in range(3):
                M[tri[i], tri[j]] += Me[i, j]
    return M


@program("trefethen", lambda rng, n: (n,), 6, 9)
def cheb(N):
    x = np.cos(np.pi * np.arange(0, N + 1) / N)
    c = np.hstack([2, np.ones(N - 1), 2]) * (-1) ** np.arange(0, N + 1)
    X = np.tile(x, (N + 1, 1)).T
    dX = X - X.T
    D = np.outer(c, 1.0 / c) / (dX + np.eye(N + 1))
    D = D - np.diag(D.sum(axis=1))
    return D, x


@program("trefethen", lambda rng, n: (n, 0.004, 12), 16, 32)
def kdv_step(N, dt, nsteps):
    x = (2 * np.pi / N) * np.arange(-N / 2, N / 2)
    A = 3.0
    u = 3 * A**2 / np.cosh(0.5 * (A * (x + 2.0))) ** 2
    v = fft(u)
    k = np.zeros(N)
    k[0 : N // 2] = np.arange(0, N / 2)
    k[N // 2 + 1 :] = np.arange(-N / 2 + 1, 0, 1)
    ik3 = 1j * k**3
    dt = 0.4 / N**2
    g = -0.5j * dt * k
    E = np.exp(dt * ik3 / 2)
    E2 = E**2
    for n in range(1, nsteps + 1):
        a = g * fft(np.real(ifft(v)) ** 2)
        b = g * fft(np.real(ifft(E * (v + a / 2))) ** 2)
        c = g * fft(np.real(ifft(E * v + b / 2)) ** 2)
        d = g * fft(np.real(ifft(E2 * v + E * c)) ** 2)
        v = E2 * v + (E2 * a + 2 * E * (b + c) + d) / 6
    return np.real(ifft(v))


@program("blog", lambda rng, n: (rng.random((n, n)), 0.05, 4), 6, 9)
def euler_vorticity(w, dt, steps):
    N = w.shape[0]
    k = np.fft.fftfreq(N, 1.0 / N)
    kx, ky = np.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    k2[0, 0] = 1
    w_hat = np.fft.fft2(w)
    dealias = (np.abs(kx) < N / 3) & (np.abs(ky) < N / 3)

    def rhs(w_hat):
        psi_hat = w_hat / k2
        u = np.fft.ifft2(1j * ky * psi_hat).real
        v = np.fft.ifft2(-1j * kx * psi_hat).real
        wx = np.fft.ifft2(1j * kx * w_hat).real
        wy = np.fft.ifft2(1j * ky * w_hat).real
        return -np.fft.fft2(u * wx + v * wy) * dealias - 1e-3 * k2 * w_hat

    for _ in range(steps):
        k1 = rhs(w_hat)
        k2_ = rhs(w_hat + dt * k1)
        w_hat += 0.5 * dt * (k1 + k2_)
    return np.fft.ifft2(w_hat).real


@program("blog", lambda rng, n: (n, 8), 8, 13)
def euler_fluxes_hllish(N, Nt):
    """The Rusanov scheme for Sod's shock tube."""
    gamma = 1.4
    dx = 1.0 / N
    x = np.linspace(0.5 * dx, 1 - 0.5 * dx, N)
    rho = np.where(x < 0.5, 1.0, 0.125)
    p = np.where(x < 0.5, 1.0, 0.1)
    vx = np.zeros_like(x)
    U = np.vstack((rho, rho * vx, p / (gamma - 1) + 0.5 * rho * vx**2))
    t = 0
    for it in range(Nt):
        rho = U[0]
        vx = U[1] / rho
        p = (gamma - 1) * (U[2] - 0.5 * rho * vx**2)
        c = np.sqrt(gamma * p / rho)
        dt = 0.4 * dx / np.max(np.abs(vx) + c)
        F = np.array([rho * vx, rho * vx**2 + p, (U[2] + p) * vx])
        s = np.maximum(np.abs(vx[:-1]) + c[:-1], np.abs(vx[1:]) + c[1:])
        flux = 0.5 * (F[:, 1:] + F[:, :-1]) - 0.5 * s * (U[:, 1:] - U[:, :-1])
        U[:, 1:-1] -= dt / dx * (flux[:, 1:] - flux[:, :-1])
        t += dt
    return U, t


@program("textbook", lambda rng, n: (rng.random((n, n)), 1e-3), 8, 12)
def cahn_hilliard(c, dt):
    def laplacian(a):
        return np.roll(a, 1, 0) + np.roll(a, -1, 0) + np.roll(a, 1, 1) + np.roll(a, -1, 1) - 4 * a

    c = 2 * c - 1
    gamma = 0.5
    energy = []
    for step in range(5):
        mu = c**3 - c - gamma * laplacian(c)
        c = c + dt * laplacian(mu)
        if step % 2 == 0:
            energy.append(np.sum((c**2 - 1) ** 2 / 4))
    return c, np.array(energy)


@program("textbook", lambda rng, n: (np.linspace(0, 1, n), 0.1), 12, 17)
def weno_like_reconstruction(u, eps):
    um2, um1, u0, up1, up2 = (np.roll(u, s) for s in (2, 1, 0, -1, -2))
    b0 = 13 / 12 * (um2 - 2 * um1 + u0) ** 2 + 1 / 4 * (um2 - 4 * um1 + 3 * u0) ** 2
    b1 = 13 / 12 * (um1 - 2 * u0 + up1) ** 2 + 1 / 4 * (um1 - up1) ** 2
    b2 = 13 / 12 * (u0 - 2 * up1 + up2) ** 2 + 1 / 4 * (3 * u0 - 4 * up1 + up2) ** 2
    alphas = [g / (eps + b) ** 2 for g, b in zip([0.1, 0.6, 0.3], [b0, b1, b2])]
    total = sum(alphas)
    w0, w1, w2 = [a / total for a in alphas]
    q0 = (2 * um2 - 7 * um1 + 11 * u0) / 6
    q1 = (-um1 + 5 * u0 + 2 * up1) / 6
    q2 = (2 * u0 + 5 * up1 - up2) / 6
    return w0 * q0 + w1 * q1 + w2 * q2


def restrict(r):
    return 0.25 * r[:-2:2] + 0.5 * r[1:-1:2] + 0.25 * r[2::2]


def prolong(e):
    fine = np.zeros(2 * len(e) + 1)
    fine[1::2] = e
    fine[0] = e[0] / 2
    fine[-1] = e[-1] / 2
    fine[2:-1:2] = (e[:-1] + e[1:]) / 2
    return fine


def smooth(u, f, h, sweeps):
    for _ in range(sweeps):
        padded = np.concatenate(([0], u, [0]))
        u = u + 2 / 3 * (0.5 * (padded[:-2] + padded[2:] + h * h * f) - u)
    return u


@program("textbook", lambda rng, n: (np.zeros(n), rng.random(n), 1.0 / (n + 1)), 7, 15)
def v_cycle(u, f, h):
    if len(u) == 1:
        return np.array([h * h * f[0] / 2])
    u = smooth(u, f, h, 3)
    padded = np.pad(u, 1)
    r = f - (2 * padded[1:-1] - padded[:-2] - padded[2:]) / h**2
    e = v_cycle(np.zeros((len(u) - 1) // 2), restrict(r), 2 * h)
    u = u + prolong(e)
    return smooth(u, f, h, 3)


@program("burkardt", lambda rng, n: (n, 40), 6, 9)
def heated_plate(N, max_iter):
    w = np.zeros((N, N))
    w[1:-1, 0] = 100.0
    w[1:-1, -1] = 100.0
    w[-1, :] = 100.0
    mean = (w[1:-1, 0].sum() + w[1:-1, -1].sum() + w[-1].sum() + w[0].sum()) / (4 * N - 4)
    w[1:-1, 1:-1] = mean
    diff, iterations = 1e10, 0
    while diff > 1e-2 and iterations < max_iter:
        u = w.copy()
        w[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4.0
        diff = np.max(np.abs(u - w))
        iterations += 1
    return w, iterations, diff


@program("textbook", lambda rng, n: (n, 3), 8, 12)
def lid_driven_streamfunction(n, steps):
    psi, omega = np.zeros((n, n)), np.zeros((n, n))
    h, dt, nu = 1.0 / (n - 1), 0.001, 0.1
    for step in range(steps):
        for _ in range(5):
            psi[1:-1, 1:-1] = 0.25 * (
                psi[2:, 1:-1]
                + psi[:-2, 1:-1]
                + psi[1:-1, 2:]
                + psi[1:-1, :-2]
                + h**2 * omega[1:-1, 1:-1]
            )
        omega[0, :] = -2 * psi[1, :] / h**2
        omega[-1, :] = -2 * psi[-2, :] / h**2 - 2 / h
        omega[:, 0] = -2 * psi[:, 1] / h**2
        omega[:, -1] = -2 * psi[:, -2] / h**2
        dpsidy = (psi[2:, 1:-1] - psi[:-2, 1:-1]) / (2 * h)
        dpsidx = (psi[1:-1, 2:] - psi[1:-1, :-2]) / (2 * h)
        dody, dodx = np.gradient(omega, h)
        lap = (
            omega[2:, 1:-1]
            + omega[:-2, 1:-1]
            + omega[1:-1, 2:]
            + omega[1:-1, :-2]
            - 4 * omega[1:-1, 1:-1]
        ) / h**2
        omega[1:-1, 1:-1] += dt * (
            -dpsidy * dodx[1:-1, 1:-1] + dpsidx * dody[1:-1, 1:-1] + nu * lap
        )
    return psi, omega
