"""Physics."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("physics")


def getAcc(pos, mass, G, softening):
    # positions r = [x,y,z] for all particles
    x = pos[:, 0:1]
    y = pos[:, 1:2]
    z = pos[:, 2:3]

    # matrix that stores all pairwise particle separations: r_j - r_i
    dx = x.T - x
    dy = y.T - y
    dz = z.T - z

    # matrix that stores 1/r^3 for all particle pairwise particle separations
    inv_r3 = dx**2 + dy**2 + dz**2 + softening**2
    inv_r3[inv_r3 > 0] = inv_r3[inv_r3 > 0] ** (-1.5)

    ax = G * (dx * inv_r3) @ mass
    ay = G * (dy * inv_r3) @ mass
    az = G * (dz * inv_r3) @ mass
    return np.hstack((ax, ay, az))


@program(
    "npbench",
    lambda rng, n: (rng.random((n, 1)) + 1, rng.random((n, 3)), rng.random((n, 3))),
    7,
    11,
)
def nbody(mass, pos, vel, Nt=3, dt=0.01, G=1.0, softening=0.1):
    # Convert to Center-of-Mass frame
    vel -= np.mean(mass * vel, axis=0) / np.mean(mass)
    acc = getAcc(pos, mass, G, softening)
    KE = np.ndarray(Nt + 1, dtype=np.float64)
    KE[0] = 0.5 * np.sum(mass * vel**2)
    for i in range(Nt):
        vel += acc * dt / 2.0
        pos += vel * dt
        acc = getAcc(pos, mass, G, softening)
        vel += acc * dt / 2.0
        KE[i + 1] = 0.5 * np.sum(mass * vel**2)
    return KE


@program("repository", lambda rng, n: (rng.random((n, 3)) * 5, 5.0), 7, 12)
def lennard_jones(positions, box, cutoff=2.0):
    n = positions.shape[0]
    forces = np.zeros_like(positions)
    energy = 0.0
    for i in range(n - 1):
        for j in range(i + 1, n):
            rij = positions[i] - positions[j]
            rij -= box * np.round(rij / box)
            r2 = np.dot(rij, rij)
            if r2 > cutoff**2 or r2 < 0.25:
                continue
            inv6 = 1.0 / r2**3
            energy += 4 * inv6 * (inv6 - 1)
            f = 24 * inv6 * (2 * inv6 - 1) / r2 * rij
            forces[i] += f
            forces[j] -= f
    return energy, forces


@program(
    "repository",
    lambda rng, ny, nx: (1 + 0.01 * rng.random((ny, nx, 9)), rng.random((ny, nx)) < 0.1),
    (7, 9),
    (6, 13),
)
def lattice_boltzmann(f, wall, steps=2, tau=0.6):
    velocities = np.array(
        [[0, 0], [0, 1], [1, 1], [1, 0], [1, -1], [0, -1], [-1, -1], [-1, 0], [-1, 1]]
    )
    opposite = [0, 5, 6, 7, 8, 1, 2, 3, 4]
    w = np.where((velocities**2).sum(axis=1) == 2, 1 / 36, 1 / 9)
    w[0] = 4 / 9
    for _ in range(steps):
        # streaming
        for q, (cx, cy) in enumerate(velocities):
            f[..., q] = np.roll(f[..., q], (cy, cx), axis=(0, 1))
        bounced = f[wall][:, opposite]
        # moments and collision
        density = f.sum(axis=-1)
        u = f @ velocities[:, 0] / density
        v = f @ velocities[:, 1] / density
        speed2 = u**2 + v**2
        for q, (cx, cy) in enumerate(velocities):
            cu = cx * u + cy * v
            equilibrium = w[q] * density * (1 + 3 * cu + 4.5 * cu**2 - 1.5 * speed2)
            f[..., q] -= (f[..., q] - equilibrium) / tau
        f[wall] = bounced
    u[wall] = v[wall] = 0
    return np.gradient(v, axis=1) - np.gradient(u, axis=0)


@program("EM course", lambda rng, n: (n, 20), 21, 30)
def fdtd_1d(ke, nsteps):
    ex = np.zeros(ke)
    hy = np.zeros(ke)
    kc = int(ke / 2)
    boundary_low = [0, 0]
    for time_step in range(1, nsteps + 1):
        for k in range(1, ke):
            ex[k] = ex[k] + 0.5 * (hy[k - 1] - hy[k])
        pulse = np.exp(-0.5 * ((8 - time_step) / 3) ** 2)
        ex[kc] = pulse + ex[kc]
        # Absorbing Boundary Conditions
        ex[0] = boundary_low.pop(0)
        boundary_low.append(ex[1])
        for k in range(ke - 1):
            hy[k] = hy[k] + 0.5 * (ex[k] - ex[k + 1])
    return ex, hy


@program("quantum mechanics course", lambda rng, n: (n, 5.0), 13, 20)
def harmonic_oscillator(N, L):
    x = np.linspace(-L, L, N)
    dx = x[1] - x[0]
    T = -0.5 * (np.eye(N, k=-1) - 2 * np.eye(N) + np.eye(N, k=1)) / dx**2
    V = np.diag(0.5 * x**2)
    E, psi = np.linalg.eigh(T + V)
    density = psi[:, :3] ** 2 / dx
    return E[:4], density


@program("quantum mechanics blog", lambda rng, n: (n, 0.05, 4), 16, 21)
def split_step_fourier(N, dt, steps):
    x = np.linspace(-8, 8, N, endpoint=False)
    k = 2 * np.pi * np.fft.fftfreq(N, d=x[1] - x[0])
    psi = np.exp(-((x + 2) ** 2)) * np.exp(1j * 1.5 * x)
    psi /= np.sqrt(np.sum(np.abs(psi) ** 2))
    V = np.where(np.abs(x) < 1, 2.0, 0.0)
    for _ in range(steps):
        psi *= np.exp(-0.5j * V * dt)
        psi = np.fft.ifft(np.exp(-0.5j * k**2 * dt) * np.fft.fft(psi))
        psi *= np.exp(-0.5j * V * dt)
    return psi, np.vdot(psi, psi).real


@program(
    "plasma physics course",
    lambda rng, n: (rng.normal(size=(n, 3)), rng.normal(size=(n, 3))),
    7,
    13,
)
def boris_pusher(x, v, q_m=1.0, dt=0.1, steps=3):
    E = np.array([0.0, 0.1, 0.0])
    B = np.array([0.0, 0.0, 1.0])
    for _ in range(steps):
        v_minus = v + 0.5 * q_m * E * dt
        t = 0.5 * q_m * B * dt
        s = 2 * t / (1 + np.dot(t, t))
        v_prime = v_minus + np.cross(v_minus, t)
        v_plus = v_minus + np.cross(v_prime, s)
        v = v_plus + 0.5 * q_m * E * dt
        x += v * dt
    return x, v, 0.5 * np.sum(v**2, axis=1)


@program(
    "plasma physics course", lambda rng, n, cells: (rng.random(n) * cells, cells), (20, 7), (33, 12)
)
def deposit_charge(xp, Nx):
    j = np.floor(xp).astype(int)
    jp1 = (j + 1) % Nx
    weight_jp1 = xp - j
    weight_j = 1 - weight_jp1
    n = np.bincount(j, weights=weight_j, minlength=Nx)
    n += np.bincount(jp1, weights=weight_jp1, minlength=Nx)
    rho = np.zeros(Nx)
    np.add.at(rho, j, weight_j)
    np.add.at(rho, jp1, weight_jp1)
    field = np.cumsum(rho - rho.mean())
    gather = weight_j * field[j] + weight_jp1 * field[jp1]
    return n, rho, gather


@program("physics course", lambda rng, n: (n,), 4, 6)
def madelung(L):
    total = 0.0
    for i in range(-L, L + 1):
        for j in range(-L, L + 1):
            for k in range(-L, L + 1):
                if i == j == k == 0:
                    continue
                total += (-1) ** (i + j + k) / np.sqrt(i * i + j * j + k * k)
    return total


@program(
    "physics course",
    lambda rng, n, m: (n, m, np.array([[0.3, 0.2], [-0.4, 0.1], [0.05, -0.55]]), [1, -1, 2]),
    (7, 9),
    (12, 5),
)
def electric_field(nx, ny, where, charges):
    x = np.linspace(-1, 1, nx)
    y = np.linspace(-1, 1, ny)
    X, Y = np.meshgrid(x, y)
    Ex, Ey = np.zeros((ny, nx)), np.zeros((ny, nx))
    for (px, py), q in zip(where, charges):
        den = np.hypot(X - px, Y - py) ** 3 + 1e-9
        Ex += q * (X - px) / den
        Ey += q * (Y - py) / den
    return Ex, Ey, 2 * np.log(np.hypot(Ex, Ey))


@program("numerical methods course", lambda rng, n: (rng.random((n, n)),), 8, 9)
def poisson_fft(rho):
    n = rho.shape[0]
    k = np.fft.fftfreq(n) * n
    kx, ky = np.meshgrid(k, k, indexing="ij")
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    phi_hat = np.fft.fft2(rho) / (4 * np.pi**2 * k2)
    phi_hat[0, 0] = 0
    return np.real(np.fft.ifft2(phi_hat))


@program("blog", lambda rng, n, m: (n, m), (9, 7), (6, 13))
def raytrace_sphere(w, h):
    def normalize(v):
        v /= np.linalg.norm(v)
        return v

    eye = np.array([0.0, 0.35, -1.0])
    light = np.array([5.0, 5.0, -10.0])
    centre, radius = np.array([0.0, 0.1, 1.0]), 0.6
    img = np.zeros((h, w, 3))
    for i, x in enumerate(np.linspace(-1, 1, w)):
        for j, y in enumerate(np.linspace(-1, 1, h)):
            ray = normalize(np.array([x, y, 0.0]) - eye)
            to_eye = eye - centre
            half_b = np.dot(ray, to_eye)
            disc = half_b * half_b - np.dot(to_eye, to_eye) + radius**2
            if disc <= 0:
                continue
            t = -half_b - np.sqrt(disc)
            if t < 0.0:
                continue
            hit = eye + t * ray
            shade = max(np.dot(normalize(hit - centre), normalize(light - hit)), 0)
            img[h - j - 1, i, :] = 0.05 + shade * np.array([1.0, 0.5, 0.2])
    return np.clip(img, 0, 1)


@program("physics course", lambda rng, n: (50.0, n), 30, 55)
def projectile_with_drag(speed, angle_deg, dt=0.05, c=0.01, g=9.81):
    vx = speed * np.cos(np.radians(angle_deg))
    vy = speed * np.sin(np.radians(angle_deg))
    x = y = t = 0.0
    ymax = 0.0
    while True:
        v = np.sqrt(vx**2 + vy**2)
        vx -= c * v * vx * dt
        vy -= (g + c * v * vy) * dt
        x, y, t = x + vx * dt, y + vy * dt, t + dt
        ymax = max(ymax, y)
        if y < 0:
            break
    return x, ymax, t


@program("astronomy course", lambda rng, n: (rng.random(n) * 2 * np.pi, rng.random(n) * 0.8), 7, 13)
def kepler_equation(M, e):
    E = M.copy()
    for k in range(50):
        delta = (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
        E -= delta
        if np.all(np.abs(delta) < 1e-12):
            break
    nu = 2 * np.arctan2(np.sqrt(1 + e) * np.sin(E / 2), np.sqrt(1 - e) * np.cos(E / 2))
    return E, nu


@program("optics course", lambda rng, n: (np.linspace(400, 700, n), [1.0, 1.38, 1.52]), 7, 12)
def thin_film(wavelengths, n_layers, thickness=100.0):
    n0, n1, n2 = n_layers
    reflectance = np.zeros_like(wavelengths)
    for i, wl in enumerate(wavelengths):
        delta = 2 * np.pi * n1 * thickness / wl
        M = np.array(
            [[np.cos(delta), 1j * np.sin(delta) / n1], [1j * n1 * np.sin(delta), np.cos(delta)]]
        )
        B, C = M @ np.array([1, n2])
        r = (n0 * B - C) / (n0 * B + C)
        reflectance[i] = np.abs(r) ** 2
    return reflectance


@program("condensed matter course", lambda rng, n: (n, 1.0, 0.2), 6, 9)
def tight_binding_ring(n, t, flux):
    H = np.zeros((n, n), dtype=complex)
    for i in range(n):
        H[i, (i + 1) % n] += -t * np.exp(1j * flux / n)
        H[(i + 1) % n, i] += -t * np.exp(-1j * flux / n)
    assert np.allclose(H, H.conj().T), "not Hermitian"
    energies = np.linalg.eigvalsh(H)
    return energies, energies[energies < 0].sum()


@program("npbench", lambda rng, n: (rng.random(n), rng.random(n), 9.81), 9, 16)
def compute_planck(T, lam, c=3.0):
    x = 1.0 / (lam + 0.1) / (T + 0.5)
    B = 2 * c**2 / (lam + 0.1) ** 5 / np.expm1(np.minimum(x, 50))
    peak = lam[np.argmax(B)]
    return B, peak, np.trapezoid(B, lam)
