"""Stencils and partial differential equations, stepped in time or relaxed."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("stencils")


@program("npbench", lambda rng, n: (4, rng.random((n, n)), rng.random((n, n))), 7, 13)
def jacobi_2d(TSTEPS, A, B):
    for t in range(1, TSTEPS):
        B[1:-1, 1:-1] = 0.2 * (
            A[1:-1, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] + A[2:, 1:-1] + A[:-2, 1:-1]
        )
        A[1:-1, 1:-1] = 0.2 * (
            B[1:-1, 1:-1] + B[1:-1, :-2] + B[1:-1, 2:] + B[2:, 1:-1] + B[:-2, 1:-1]
        )


@program("npbench", lambda rng, n: (3, rng.random((n, n, n)), np.zeros((n, n, n))), 5, 8)
def heat_3d(TSTEPS, A, B):
    for t in range(1, TSTEPS):
        B[1:-1, 1:-1, 1:-1] = (
            0.125 * (A[2:, 1:-1, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[:-2, 1:-1, 1:-1])
            + 0.125 * (A[1:-1, 2:, 1:-1] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, :-2, 1:-1])
            + 0.125 * (A[1:-1, 1:-1, 2:] - 2.0 * A[1:-1, 1:-1, 1:-1] + A[1:-1, 1:-1, 0:-2])
            + A[1:-1, 1:-1, 1:-1]
        )
        A[:] = B


@program(
    "CFD Python",
    lambda rng, n, m: (np.zeros((n, m)), np.linspace(0, 1, n), 0.2, 0.1, 1e-2),
    (7, 13),
    (11, 9),
)
def laplace2d(p, y, dx, dy, l1norm_target):
    l1norm = 1
    pn = np.empty_like(p)
    while l1norm > l1norm_target:
        pn = p.copy()
        p[1:-1, 1:-1] = (
            dy**2 * (pn[1:-1, 2:] + pn[1:-1, 0:-2]) + dx**2 * (pn[2:, 1:-1] + pn[0:-2, 1:-1])
        ) / (2 * (dx**2 + dy**2))

        p[:, 0] = 0  # p = 0 @ x = 0
        p[:, -1] = y  # p = y @ x = 2
        p[0, :] = p[1, :]  # dp/dy = 0 @ y = 0
        p[-1, :] = p[-2, :]  # dp/dy = 0 @ y = 1
        l1norm = (np.sum(np.abs(p[:]) - np.abs(pn[:]))) / np.sum(np.abs(pn[:]) + 1e-9)

    return p


@program("CFD Python", lambda rng, n: (n, 5), 17, 41)
def linear_convection(nx, nt):
    dx = 2 / (nx - 1)
    dt = 0.025
    c = 1
    u = np.ones(nx)
    u[int(0.5 / dx) : int(1 / dx + 1)] = 2
    un = np.ones(nx)
    for n in range(nt):
        un = u.copy()
        for i in range(1, nx):
            u[i] = un[i] - c * dt / dx * (un[i] - un[i - 1])
    return u


@program("CFD Python", lambda rng, n: (rng.random(n) + 1, 4, 0.07), 13, 21)
def burgers(u, nt, nu):
    nx = len(u)
    dx = 2 * np.pi / (nx - 1)
    dt = dx * nu
    for n in range(nt):
        un = u.copy()
        for i in range(1, nx - 1):
            u[i] = (
                un[i]
                - un[i] * dt / dx * (un[i] - un[i - 1])
                + nu * dt / dx**2 * (un[i + 1] - 2 * un[i] + un[i - 1])
            )
        u[0] = (
            un[0]
            - un[0] * dt / dx * (un[0] - un[-2])
            + nu * dt / dx**2 * (un[1] - 2 * un[0] + un[-2])
        )
        u[-1] = u[0]
    return u


@program("CFD Python", lambda rng, n, m: (np.ones((n, m)), 6), (9, 13), (16, 7))
def diffuse(u, nt, nu=0.05, sigma=0.25):
    ny, nx = u.shape
    dx = 2 / (nx - 1)
    dy = 2 / (ny - 1)
    dt = sigma * dx * dy / nu
    u[int(0.5 / dy) : int(1 / dy + 1), int(0.5 / dx) : int(1 / dx + 1)] = 2
    for n in range(nt + 1):
        un = u.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            + nu * dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
            + nu * dt / dy**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
        )
        u[0, :] = 1
        u[-1, :] = 1
        u[:, 0] = 1
        u[:, -1] = 1
    return u


def build_up_b(b, rho, dt, u, v, dx, dy):
    b[1:-1, 1:-1] = rho * (
        1
        / dt
        * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy))
        - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * dx)) ** 2
        - 2 * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * dy) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * dx))
        - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * dy)) ** 2
    )
    return b


def pressure_poisson(nit, p, dx, dy, b):
    pn = np.empty_like(p)
    pn = p.copy()
    for q in range(nit):
        pn = p.copy()
        p[1:-1, 1:-1] = (
            (pn[1:-1, 2:] + pn[1:-1, 0:-2]) * dy**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * dx**2
        ) / (2 * (dx**2 + dy**2)) - dx**2 * dy**2 / (2 * (dx**2 + dy**2)) * b[1:-1, 1:-1]
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
    return p


@program(
    "CFD Python",
    lambda rng, n: (
        3,
        4,
        np.zeros((n, n)),
        np.zeros((n, n)),
        0.001,
        0.1,
        0.1,
        np.zeros((n, n)),
        1.0,
        0.1,
    ),
    7,
    13,
)
def cavity_flow(nt, nit, u, v, dt, dx, dy, p, rho, nu):
    ny, nx = u.shape
    un = np.empty_like(u)
    vn = np.empty_like(v)
    b = np.zeros((ny, nx))
    for n in range(nt):
        un = u.copy()
        vn = v.copy()
        b = build_up_b(b, rho, dt, u, v, dx, dy)
        p = pressure_poisson(nit, p, dx, dy, b)
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / dx * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * dt / dy * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - dt / (2 * rho * dx) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + nu * (dt / dx**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2]))
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - vn[1:-1, 1:-1] * dt / dy * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - dt / (2 * rho * dy) * (p[2:, 1:-1] - p[0:-2, 1:-1])
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1  # lid
        v[0, :] = v[-1, :] = v[:, 0] = v[:, -1] = 0
    return u, v, p


@program("From Python to NumPy", lambda rng, n: (np.ones((n, n)), np.zeros((n, n)), 5), 12, 17)
def gray_scott(U, V, steps):
    Du, Dv, F, k = 0.16, 0.08, 0.035, 0.065
    n = U.shape[0]
    r = n // 4
    U[n // 2 - r : n // 2 + r, n // 2 - r : n // 2 + r] = 0.50
    V[n // 2 - r : n // 2 + r, n // 2 - r : n // 2 + r] = 0.25
    u, v = U[1:-1, 1:-1], V[1:-1, 1:-1]
    for i in range(steps):
        Lu = U[0:-2, 1:-1] + U[1:-1, 0:-2] - 4 * U[1:-1, 1:-1] + U[1:-1, 2:] + U[2:, 1:-1]
        Lv = V[0:-2, 1:-1] + V[1:-1, 0:-2] - 4 * V[1:-1, 1:-1] + V[1:-1, 2:] + V[2:, 1:-1]
        uvv = u * v * v
        u += Du * Lu - uvv + F * (1 - u)
        v += Dv * Lv + uvv - (F + k) * v
    return V


@program("lecture notes", lambda rng, n, m: (rng.random((n, m)), 5, 0.3), (9, 13), (14, 8))
def wave_2d(u0, steps, C):
    u_prev = u0.copy()
    u = u0.copy()
    C2 = C**2
    for step in range(steps):
        u_next = np.zeros_like(u)
        u_next[1:-1, 1:-1] = (
            2 * u[1:-1, 1:-1]
            - u_prev[1:-1, 1:-1]
            + C2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
        )
        u_prev, u = u, u_next
    return u


@program(
    "npbench",
    lambda rng, i, j, k: (rng.random((i + 4, j + 4, k)), rng.random((i, j, k))),
    (5, 7, 3),
    (8, 6, 4),
)
def hdiff(in_field, coeff):
    I, J, K = coeff.shape
    lap_field = 4.0 * in_field[1 : I + 3, 1 : J + 3, :] - (
        in_field[2 : I + 4, 1 : J + 3, :]
        + in_field[0 : I + 2, 1 : J + 3, :]
        + in_field[1 : I + 3, 2 : J + 4, :]
        + in_field[1 : I + 3, 0 : J + 2, :]
    )
    res = lap_field[1:, 1 : J + 1, :] - lap_field[:-1, 1 : J + 1, :]
    flx_field = np.where(
        (res * (in_field[2 : I + 3, 2 : J + 2, :] - in_field[1 : I + 2, 2 : J + 2, :])) > 0, 0, res
    )
    res = lap_field[1 : I + 1, 1:, :] - lap_field[1 : I + 1, :-1, :]
    fly_field = np.where(
        (res * (in_field[2 : I + 2, 2 : J + 3, :] - in_field[2 : I + 2, 1 : J + 2, :])) > 0, 0, res
    )
    out_field = np.empty((I, J, K))
    out_field[:, :, :] = in_field[2 : I + 2, 2 : J + 2, :] - coeff[:, :, :] * (
        flx_field[1:, :, :] - flx_field[:-1, :, :] + fly_field[:, 1:, :] - fly_field[:, :-1, :]
    )
    return out_field


@program("npbench", lambda rng, n: (2, n, rng.random((n, n))), 6, 9)
def seidel_2d(TSTEPS, N, A):
    for t in range(0, TSTEPS - 1):
        for i in range(1, N - 1):
            A[i, 1:-1] += (
                A[i - 1, :-2]
                + A[i - 1, 1:-1]
                + A[i - 1, 2:]
                + A[i, 2:]
                + A[i + 1, :-2]
                + A[i + 1, 1:-1]
                + A[i + 1, 2:]
            )
            for j in range(1, N - 1):
                A[i, j] += A[i, j - 1]
                A[i, j] /= 9.0


@program(
    "npbench",
    lambda rng, n, m: (
        4,
        rng.random((n, m)),
        rng.random((n, m)),
        rng.random((n, m)),
        np.arange(4.0),
    ),
    (7, 13),
    (10, 6),
)
def fdtd_2d(TMAX, ex, ey, hz, _fict_):
    for t in range(TMAX):
        ey[0, :] = _fict_[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


@program("lecture notes", lambda rng, n: (rng.random((n, n)), rng.random((n, n)), 1.0 / n), 9, 12)
def red_black_gauss_seidel(u, f, h, sweeps=3):
    for _ in range(sweeps):
        # red
        u[1:-1:2, 1:-1:2] = 0.25 * (
            u[0:-2:2, 1:-1:2]
            + u[2::2, 1:-1:2]
            + u[1:-1:2, 0:-2:2]
            + u[1:-1:2, 2::2]
            - h * h * f[1:-1:2, 1:-1:2]
        )
        u[2:-1:2, 2:-1:2] = 0.25 * (
            u[1:-2:2, 2:-1:2]
            + u[3::2, 2:-1:2]
            + u[2:-1:2, 1:-2:2]
            + u[2:-1:2, 3::2]
            - h * h * f[2:-1:2, 2:-1:2]
        )
        # black
        for i in range(1, u.shape[0] - 1):
            start = 1 + (i % 2)
            u[i, start:-1:2] = 0.25 * (
                u[i - 1, start:-1:2]
                + u[i + 1, start:-1:2]
                + u[i, start - 1 : -2 : 2]
                + u[i, start + 1 :: 2]
                - h**2 * f[i, start:-1:2]
            )
    return u


@program("blog", lambda rng, n: (rng.random(n), rng.random(n) - 0.5, 0.1, 0.05, 7), 13, 20)
def upwind_advection(q, vel, dx, dt, n_steps):
    for _ in range(n_steps):
        backward = (q - np.roll(q, 1)) / dx
        forward = (np.roll(q, -1) - q) / dx
        q = q - dt * vel * np.where(vel > 0, backward, forward)
    return q


@program(
    "repository",
    lambda rng, n, m: dict(
        h=1 + 0.1 * rng.random((n, m)), u=np.zeros((n, m)), v=np.zeros((n, m)), dt=0.01
    ),
    (8, 11),
    (13, 7),
)
def shallow_water(h, u, v, dt, dx=1.0, dy=1.0, g=9.81, steps=3):
    def ddx(f):
        return (np.roll(f, -1, axis=1) - np.roll(f, 1, axis=1)) / (2 * dx)

    def ddy(f):
        return (np.roll(f, -1, axis=0) - np.roll(f, 1, axis=0)) / (2 * dy)

    mass0 = h.sum()
    for _ in range(steps):
        dudt = -g * ddx(h) - u * ddx(u) - v * ddy(u)
        dvdt = -g * ddy(h) - u * ddx(v) - v * ddy(v)
        dhdt = -ddx(h * u) - ddy(h * v)
        u = u + dt * dudt
        v = v + dt * dvdt
        h = h + dt * dhdt
    return h, u, v, h.sum() - mass0


@program("devito", lambda rng, n: (n, 6, rng.random((n, n)).astype(np.float32) + 1.5), 13, 16)
def acoustic_propagator(n, nt, vp):
    m = 1.0 / vp**2
    u = np.zeros((3, n, n), dtype=np.float32)
    rec = np.zeros((nt, n), dtype=np.float32)
    dt = np.float32(0.1)
    for t in range(1, nt):
        u0, u1, u2 = u[(t - 1) % 3], u[t % 3], u[(t + 1) % 3]
        lap = -4 * u1[1:-1, 1:-1] + u1[:-2, 1:-1] + u1[2:, 1:-1] + u1[1:-1, :-2] + u1[1:-1, 2:]
        u2[1:-1, 1:-1] = 2 * u1[1:-1, 1:-1] - u0[1:-1, 1:-1] + dt**2 / m[1:-1, 1:-1] * lap
        u2[n // 2, n // 2] += np.exp(-((t - 2.0) ** 2))
        rec[t, :] = u2[1, :]
    return rec


@program(
    "numerical methods course", lambda rng, n: (np.sin(np.linspace(0, np.pi, n)), 4, 0.4), 9, 14
)
def crank_nicolson(u, nt, r):
    N = len(u)
    A = (
        np.diag((1 + r) * np.ones(N - 2))
        + np.diag(-r / 2 * np.ones(N - 3), 1)
        + np.diag(-r / 2 * np.ones(N - 3), k=-1)
    )
    B = (
        np.diag((1 - r) * np.ones(N - 2))
        + np.diag(r / 2 * np.ones(N - 3), 1)
        + np.diag(r / 2 * np.ones(N - 3), k=-1)
    )
    history = [u.copy()]
    for n in range(nt):
        b = B.dot(u[1:-1])
        b[0] += r / 2 * (u[0] + u[0])
        b[-1] += r / 2 * (u[-1] + u[-1])
        u[1:-1] = np.linalg.solve(A, b)
        history.append(u.copy())
    return np.array(history)


@program("textbook", lambda rng, n: (rng.random(n), 0.5), 11, 16)
def lax_wendroff(u, c, steps=4):
    un = np.zeros_like(u)
    for _ in range(steps):
        un[1:-1] = u[1:-1] - c / 2 * (u[2:] - u[:-2]) + c**2 / 2 * (u[2:] - 2 * u[1:-1] + u[:-2])
        un[0], un[-1] = un[-2], un[1]
        u[:] = un[:]


@program("textbook", lambda rng, n: (rng.random(n) * 2,), 12, 19)
def minmod_muscl(u):
    def minmod(a, b):
        return 0.5 * (np.sign(a) + np.sign(b)) * np.minimum(np.abs(a), np.abs(b))

    up = np.pad(u, 2, mode="wrap")
    slope = minmod(up[1:-1] - up[:-2], up[2:] - up[1:-1])
    left = up[1:-1] + 0.5 * slope
    right = up[1:-1] - 0.5 * slope
    flux = 0.5 * (left[:-1] ** 2 / 2 + right[1:] ** 2 / 2) - 0.5 * np.maximum(
        np.abs(left[:-1]), np.abs(right[1:])
    ) * (right[1:] - left[:-1])
    return -(flux[1:] - flux[:-1])


@program("multigrid course", lambda rng, n: (np.zeros(n), rng.random(n), 1 / (n - 1)), 9, 17)
def two_grid_cycle(u, f, h):
    def smooth(u, f, h, nu=2):
        for _ in range(nu):
            u[1:-1] = (u[:-2] + u[2:] + h * h * f[1:-1]) / 2
        return u

    u = smooth(u, f, h)
    res = np.zeros_like(u)
    res[1:-1] = f[1:-1] - (2 * u[1:-1] - u[:-2] - u[2:]) / h**2
    coarse = res[::2].copy()
    coarse[1:-1] = 0.25 * (res[1:-2:2] + 2 * res[2:-1:2] + res[3::2])
    e = smooth(np.zeros_like(coarse), coarse, 2 * h, nu=10)
    fine = np.zeros_like(u)
    fine[::2] = e
    fine[1::2] = 0.5 * (e[:-1] + e[1:])
    u += fine
    return smooth(u, f, h)
