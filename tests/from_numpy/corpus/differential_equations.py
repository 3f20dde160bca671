"""Ordinary differential equations."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("odes")


@program("textbook", lambda rng, n: (1.0, 0.0, 2.0, n), 10, 23)
def euler(y0, t0, t1, n):
    f = lambda t, y: -2 * y + np.sin(t)
    h = (t1 - t0) / n
    t = np.linspace(t0, t1, n + 1)
    y = np.zeros(n + 1)
    y[0] = y0
    for i in range(n):
        y[i + 1] = y[i] + h * f(t[i], y[i])
    return t, y


def rk4_step(f, t, y, h, *args):
    k1 = h * f(t, y, *args)
    k2 = h * f(t + h / 2, y + k1 / 2, *args)
    k3 = h * f(t + h / 2, y + k2 / 2, *args)
    k4 = h * f(t + h, y + k3, *args)
    return y + (k1 + 2 * k2 + 2 * k3 + k4) / 6


def lorenz_rhs(t, state, sigma, rho, beta):
    x, y, z = state
    return np.array([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])


@program("matplotlib gallery", lambda rng, n: (n,), 15, 30)
def lorenz(num_steps, dt=0.01):
    xyzs = np.empty((num_steps + 1, 3))
    xyzs[0] = (0.0, 1.0, 1.05)
    for i in range(num_steps):
        xyzs[i + 1] = rk4_step(lorenz_rhs, i * dt, xyzs[i], dt, 10.0, 28.0, 8 / 3)
    return xyzs


@program("SciPy cookbook", lambda rng, n: (np.array([10.0, 5.0]), np.linspace(0, 3, n)), 16, 31)
def lotka_volterra(X0, t, a=1.0, b=0.1, c=1.5, d=0.75):
    def dX_dt(X):
        """Return the growth rate of fox and rabbit populations."""
        return np.array([a * X[0] - b * X[0] * X[1], -c * X[1] + d * b * X[0] * X[1]])

    X = np.zeros((len(t), len(X0)))
    X[0, :] = X0
    for i, dt in enumerate(np.diff(t)):
        mid = X[i] + 0.5 * dt * dX_dt(X[i])
        X[i + 1] = X[i] + dt * dX_dt(mid)
    rabbits, foxes = X.T
    return rabbits, foxes


@program("physics course", lambda rng, n: (n, 0.05), 20, 41)
def velocity_verlet_pendulum(steps, dt):
    theta, omega = 1.0, 0.0
    trajectory = [(theta, omega)]
    acceleration = -np.sin(theta)
    for _ in range(steps):
        theta += omega * dt + 0.5 * acceleration * dt**2
        new = -np.sin(theta)
        omega += 0.5 * (acceleration + new) * dt
        acceleration = new
        trajectory.append((theta, omega))
    trajectory = np.array(trajectory)
    energy = 0.5 * trajectory[:, 1] ** 2 - np.cos(trajectory[:, 0])
    return trajectory, energy


@program("numerical analysis course", lambda rng, n: (1.0, 0.1, n), 9, 16)
def backward_euler(y0, h, n):
    y = [y0]
    for i in range(n):
        z = y[-1]
        for _ in range(20):
            g = z - y[-1] - h * (-(z**3) + np.cos(i * h))
            dg = 1 + 3 * h * z**2
            step = g / dg
            z = z - step
            if abs(step) < 1e-13:
                break
        y.append(z)
    return np.array(y)


@program("textbook", lambda rng, n: (n, 0.05), 12, 25)
def adams_bashforth(n, h):
    f = lambda y: y * (1 - y)
    y = np.empty(n)
    y[0] = 0.1
    for i in range(2):
        y[i + 1] = y[i] + h * f(y[i] + h / 2 * f(y[i]))
    for i in range(2, n - 1):
        y[i + 1] = y[i] + h / 12 * (23 * f(y[i]) - 16 * f(y[i - 1]) + 5 * f(y[i - 2]))
    return y


@program("SciPy cookbook", lambda rng, n: (1000, 1, 0, 0.4, 0.1, n), 20, 33)
def sir(N, I0, R0, beta, gamma, days):
    S, I, R = (np.zeros(days) for _ in range(3))
    S[0], I[0], R[0] = N - I0 - R0, I0, R0
    for t in range(days - 1):
        infected = beta * S[t] * I[t] / N
        recovered = gamma * I[t]
        S[t + 1] = S[t] - infected
        I[t + 1] = I[t] + infected - recovered
        R[t + 1] = R[t] + recovered
    return S, I, R, I.argmax()


@program("neuroscience course", lambda rng, n: (n, 0.5), 30, 51)
def fitzhugh_nagumo(steps, I_ext, dt=0.1, a=0.7, b=0.8, tau=12.5):
    v, w = np.zeros(steps), np.zeros(steps)
    v[0], w[0] = -1, 1
    for i in range(1, steps):
        dv = v[i - 1] - v[i - 1] ** 3 / 3 - w[i - 1] + I_ext
        dw = (v[i - 1] + a - b * w[i - 1]) / tau
        v[i] = v[i - 1] + dt * dv
        w[i] = w[i - 1] + dt * dw
    spikes = np.sum((v[1:] > 1) & (v[:-1] <= 1))
    return v, w, spikes


@program(
    "neuroscience course", lambda rng, n, t: (rng.normal(1.2, 0.5, (t, n)),), (7, 30), (13, 20)
)
def integrate_and_fire(current, dt=1.0, tau=10.0, v_th=1.0, v_reset=0.0, refractory=3):
    T, N = current.shape
    v = np.zeros(N)
    wait = np.zeros(N, dtype=int)
    spikes = np.zeros((T, N), dtype=bool)
    for t in range(T):
        free = wait == 0
        v[free] += dt / tau * (-v[free] + 5 * current[t, free])
        fired = v >= v_th
        spikes[t] = fired
        v[fired] = v_reset
        wait[fired] = refractory
        wait[~fired & (wait > 0)] -= 1
    return spikes, spikes.sum(axis=0) / (T * dt)


@program("neuroscience course", lambda rng, n: (n,), 20, 35)
def hodgkin_huxley(steps, dt=0.01):
    def alpha_beta(V):
        an = 0.01 * (V + 55) / (1 - np.exp(-(V + 55) / 10))
        bn = 0.125 * np.exp(-(V + 65) / 80)
        am = 0.1 * (V + 40) / (1 - np.exp(-(V + 40) / 10))
        bm = 4 * np.exp(-(V + 65) / 18)
        return (an, bn), (am, bm)

    V = -65.0
    (an, bn), (am, bm) = alpha_beta(V)
    n, m = an / (an + bn), am / (am + bm)
    h = 0.6
    Vs = []
    for i in range(steps):
        (an, bn), (am, bm) = alpha_beta(V)
        n += dt * (an * (1 - n) - bn * n)
        m += dt * (am * (1 - m) - bm * m)
        I_Na = 120 * m**3 * h * (V - 50)
        I_K = 36 * n**4 * (V + 77)
        V += dt * (10 - I_Na - I_K - 0.3 * (V + 54.387))
        Vs.append(V)
    return np.array(Vs)


@program("wikipedia", lambda rng, tol: (0.0, 2.0, 1.0, 10.0**-tol), 4, 6)
def bogacki_shampine(t, t_end, y, tol):
    """Adaptive steps of third order."""

    def f(t, y):
        return -5 * (y - np.cos(t))

    h = 0.1
    accepted = rejected = 0
    while t < t_end:
        h = min(h, t_end - t)
        k1 = f(t, y)
        k2 = f(t + h / 2, y + h / 2 * k1)
        k3 = f(t + 3 * h / 4, y + 3 * h / 4 * k2)
        y_new = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = f(t + h, y_new)
        error = abs(h * (-5 * k1 / 72 + k2 / 12 + k3 / 9 - k4 / 8))
        if error <= tol:
            t, y = t + h, y_new
            accepted += 1
        else:
            rejected += 1
        h *= min(2.0, max(0.3, 0.9 * (tol / (error + 1e-16)) ** (1 / 3)))
    return round(y, 8), accepted, rejected


@program(
    "complex systems course", lambda rng, n: (rng.random(n) * 2 * np.pi, rng.normal(size=n)), 9, 14
)
def kuramoto(theta, omega, K=1.5, dt=0.05, steps=6):
    N = len(theta)
    order = np.zeros(steps)
    for t in range(steps):
        diff = theta[None, :] - theta[:, None]
        theta = theta + dt * (omega + K / N * np.sin(diff).sum(axis=1))
        z = np.exp(1j * theta).mean()
        order[t] = abs(z)
    return theta % (2 * np.pi), order


@program("celestial mechanics course", lambda rng, n: (n, 0.01), 15, 28)
def three_body(steps, dt):
    m = np.array([1.0, 0.5, 0.1])
    r = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    v = np.array([[0.0, -0.3], [0.0, 0.8], [-0.9, 0.0]])

    def acceleration(r):
        a = np.zeros_like(r)
        for i in range(3):
            for j in range(3):
                if i != j:
                    d = r[j] - r[i]
                    a[i] += m[j] * d / np.linalg.norm(d) ** 3
        return a

    path = np.zeros((steps,) + r.shape)
    for n in range(steps):
        v += dt / 2 * acceleration(r)
        r += dt * v
        v += dt / 2 * acceleration(r)
        path[n] = r
    return path


@program("numerical analysis course", lambda rng, n: (n,), 20, 33)
def shooting_method(n):
    def integrate(slope):
        h = 1.0 / n
        y, dy = 0.0, slope
        for _ in range(n):
            y, dy = y + h * dy, dy + h * (-9.0 * y)
        return y

    a, b = -10.0, 10.0
    fa = integrate(a) - 1.0
    for it in range(60):
        mid = 0.5 * (a + b)
        fm = integrate(mid) - 1.0
        if abs(fm) < 1e-9:
            break
        if np.sign(fm) == np.sign(fa):
            a, fa = mid, fm
        else:
            b = mid
    return mid, it
