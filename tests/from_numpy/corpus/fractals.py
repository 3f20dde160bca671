"""Fractals and iterated maps."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("fractals")


@program(
    "matplotlib gallery",
    lambda rng, n, m: (-2.25, 0.75, -1.25, 1.25, n, m, 7),
    (13, 9),
    (7, 16),
    warns=True,
)
def mandelbrot_set(xmin, xmax, ymin, ymax, xn, yn, maxiter, horizon=2.0):
    X = np.linspace(xmin, xmax, xn).astype(np.float32)
    Y = np.linspace(ymin, ymax, yn).astype(np.float32)
    C = X + Y[:, None] * 1j
    N = np.zeros_like(C, dtype=int)
    Z = np.zeros_like(C)
    for n in range(maxiter):
        I = abs(Z) < horizon
        N[I] = n
        Z[I] = Z[I] ** 2 + C[I]
    N[N == maxiter - 1] = 0
    return Z, N


@program("npbench", lambda rng, n: (-1.75, 0.25, -1.0, 1.0, n, n, 10), 11, 8)
def mandelbrot_shrinking(xmin, xmax, ymin, ymax, xn, yn, itermax, horizon=2.0):
    Xi, Yi = np.mgrid[0:xn, 0:yn]
    X = np.linspace(xmin, xmax, xn, dtype=np.float64)[Xi]
    Y = np.linspace(ymin, ymax, yn, dtype=np.float64)[Yi]
    C = X + Y * 1j
    N_ = np.zeros(C.shape, dtype=np.int64)
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


@program("SciPy lecture notes", lambda rng, n: (50, n), 9, 14, warns=True)
def compute_mandelbrot(some_threshold, grid_density, N_max=15):
    x, y = np.meshgrid(np.linspace(-2, 1, grid_density), np.linspace(-1.5, 1.5, grid_density))
    c = x + 1j * y
    z = c
    for j in range(N_max):
        z = np.where(np.abs(z) > some_threshold, some_threshold + 1, z**2 + c)
    return abs(z) < some_threshold


def mandel(x, y, max_iters):
    """
    Given the real and imaginary parts of a complex number,
    determine if it is a candidate for membership in the Mandelbrot
    set given a fixed number of iterations.
    """
    i = 0
    c = complex(x, y)
    z = 0.0j
    for i in range(max_iters):
        z = z * z + c
        if (z.real * z.real + z.imag * z.imag) >= 4:
            return i
    return 255


@program(
    "numba",
    lambda rng, n, m: (-2.0, 1.0, -1.0, 1.0, np.zeros((n, m), dtype=np.uint8), 15),
    (7, 13),
    (12, 9),
)
def create_fractal(min_x, max_x, min_y, max_y, image, iters):
    height = image.shape[0]
    width = image.shape[1]
    pixel_size_x = (max_x - min_x) / width
    pixel_size_y = (max_y - min_y) / height
    for x in range(width):
        real = min_x + x * pixel_size_x
        for y in range(height):
            imag = min_y + y * pixel_size_y
            color = mandel(real, imag, iters)
            image[y, x] = color
    return image


@program("blog", lambda rng, n: (n, -0.4 + 0.6j), 9, 13)
def julia_set(size, c, max_iter=20):
    y, x = np.ogrid[1.5 : -1.5 : size * 1j, -1.5 : 1.5 : size * 1j]
    z = x + 1j * y
    image = np.zeros(z.shape, dtype=int)
    mask = np.ones(z.shape, dtype=bool)
    for i in range(max_iter):
        z[mask] = z[mask] ** 2 + c
        escaped = np.abs(z) > 2
        image[mask & escaped] = i
        mask &= ~escaped
    return image


@program("blog", lambda rng, n: (n,), 8, 11)
def newton_fractal(n, iterations=12):
    roots = np.exp(2j * np.pi * np.arange(3) / 3)
    x = np.linspace(-1.9, 2, n)
    z = x[None, :] + 1j * (x[:, None] + 0.01)
    for _ in range(iterations):
        z = z - (z**3 - 1) / (3 * z**2)
    return np.argmin(np.abs(z[..., None] - roots), axis=-1)


@program("rosetta code", lambda rng, n: (n, 15), 10, 13)
def burning_ship(n, max_iterations):
    cx, cy = np.meshgrid(np.linspace(-2.2, 1.2, n), np.linspace(-2, 0.8, n))
    zx = np.zeros_like(cx)
    zy = np.zeros_like(cy)
    counts = np.full((n, n), max_iterations)
    for k in range(max_iterations):
        active = zx * zx + zy * zy <= 4.0
        counts[~active & (counts == max_iterations)] = k
        zx_new = zx**2 - zy**2 + cx
        zy = np.where(active, np.abs(2 * zx * zy) + cy, zy)
        zx = np.where(active, zx_new, zx)
    return counts


@program("SciPy lecture notes", lambda rng, n: (np.linspace(2.5, 4.0, n),), 13, 20)
def bifurcation_diagram(r, iterations=15, last=7):
    x = 1e-5 * np.ones(len(r))
    lyapunov = np.zeros(len(r))
    points = []
    for i in range(iterations):
        x = r * x * (1 - x)
        lyapunov += np.log(abs(r - 2 * r * x))
        if i >= (iterations - last):
            points.append(x)
    return np.array(points), lyapunov / iterations


@program("rosetta code", lambda rng, n: (n,), 8, 16)
def sierpinski(n):
    i = np.arange(n)
    return ((i[:, np.newaxis] & i) == 0).astype(np.uint8) * 255


@program("blog", lambda rng, n: (rng.random(n),), 50, 33)
def barnsley_fern(draws):
    x, y = 0.0, 0.0
    xs = np.zeros(len(draws))
    ys = np.zeros(len(draws))
    for n, r in enumerate(draws):
        if r < 0.01:
            x, y = 0.0, 0.16 * y
        elif r < 0.86:
            x, y = 0.85 * x + 0.04 * y, -0.04 * x + 0.85 * y + 1.6
        elif r < 0.93:
            x, y = 0.2 * x - 0.26 * y, 0.23 * x + 0.22 * y + 1.6
        else:
            x, y = -0.15 * x + 0.28 * y, 0.26 * x + 0.24 * y + 0.44
        xs[n] = x
        ys[n] = y
    return xs, ys


@program("matplotlib gallery", lambda rng, n: (n,), 2, 3)
def koch_snowflake(order, scale=10):
    angles = np.array([0, 120, 240]) + 90
    z = scale / np.sqrt(3) * np.exp(np.deg2rad(angles) * 1j)
    for _ in range(order):
        ZR = 0.5 - 0.5j * np.sqrt(3) / 3
        p1 = z
        p2 = np.roll(z, shift=-1)
        dp = p2 - p1
        new_points = np.empty(len(p1) * 4, dtype=np.complex128)
        new_points[::4] = p1
        new_points[1::4] = p1 + dp / 3
        new_points[2::4] = p1 + dp * ZR
        new_points[3::4] = p1 + dp / 3 * 2
        z = new_points
    return z.real, z.imag


@program("numba", lambda rng, n: (rng.random(n), 1.4, 0.3), 6, 11)
def henon_map(x, a, b, n_iter=6):
    y = np.zeros_like(x)
    inside = np.ones(x.shape, bool)
    for _ in range(n_iter):
        x[inside], y[inside] = (1 - a * x**2 + y)[inside], (b * x)[inside]
        inside &= np.abs(x) < 10
        if not inside.any():
            return x, y, inside
    return x, y, inside
