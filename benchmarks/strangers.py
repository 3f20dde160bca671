"""Programs of many fields as their authors write them: what is split, what moves, and how fast.

    python benchmarks/strangers.py [programs] [--ranks 1 2 4]

None of them has an annotation or a schedule: each is lowered for a number of ranks, and runs on
ranks of one thread. A line has the share of the work that is split, the bytes that all ranks
receive in loops beside the fewest that any plans need, the predicted time, the time that was
measured, and that of NumPy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI
from on_ranks import measure_on_ranks

import distspmd
from distspmd.frontend import numpy_program

STEPS = 10

# -- physics on grids -----------------------------------------------------------------------------


def gray_scott(u: Any, v: Any) -> None:
    """Two chemicals that diffuse and react on a periodic grid."""
    for _ in range(STEPS):
        lu = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1) - 4 * u
        lv = np.roll(v, 1, 0) + np.roll(v, -1, 0) + np.roll(v, 1, 1) + np.roll(v, -1, 1) - 4 * v
        reaction = u * v * v
        u += 0.16 * lu - reaction + 0.035 * (1 - u)
        v += 0.08 * lv + reaction - 0.095 * v


def life(cells: Any) -> None:
    """Conway's game on a torus."""
    for _ in range(STEPS):
        near = sum(
            np.roll(np.roll(cells, i, 0), j, 1)
            for i in (-1, 0, 1)
            for j in (-1, 0, 1)
            if (i, j) != (0, 0)
        )
        cells[:] = (near == 3) | ((cells == 1) & (near == 2))


def lattice_boltzmann(f: Any, solid: Any) -> None:
    """Flow past an obstacle on a lattice of nine velocities."""
    cxs = np.array([0, 0, 1, 1, 1, 0, -1, -1, -1])
    cys = np.array([0, 1, 1, 0, -1, -1, -1, 0, 1])
    weights = np.array([4 / 9, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36, 1 / 9, 1 / 36])
    for _ in range(STEPS):
        for i, cx, cy in zip(range(9), cxs, cys, strict=True):
            f[:, :, i] = np.roll(f[:, :, i], cx, axis=1)
            f[:, :, i] = np.roll(f[:, :, i], cy, axis=0)
        bounced = f[solid, :]
        bounced = bounced[:, [0, 5, 6, 7, 8, 1, 2, 3, 4]]
        rho = np.sum(f, 2)
        ux = np.sum(f * cxs, 2) / rho
        uy = np.sum(f * cys, 2) / rho
        equilibrium = np.zeros(f.shape)
        for i, cx, cy, w in zip(range(9), cxs, cys, weights, strict=True):
            along = cx * ux + cy * uy
            speed = 3 * (ux**2 + uy**2) / 2
            equilibrium[:, :, i] = rho * w * (1 + 3 * along + 9 * along**2 / 2 - speed)
        f += -(1.0 / 0.6) * (f - equilibrium)
        f[solid, :] = bounced


def wave(u: Any, before: Any, where: Any) -> None:
    """The wave equation with a source at a place that data choose."""
    i, j = int(where[0]), int(where[1])
    for t in range(STEPS):
        lap = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        after = np.zeros_like(u)
        after[1:-1, 1:-1] = 2 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + 0.1 * lap
        after[i, j] += np.sin(0.3 * t)
        before[:] = u
        u[:] = after


def smoke(density: Any, u: Any, v: Any) -> None:
    """Advection that looks back along the flow: what it reads, data decide."""
    n, m = density.shape
    rows, columns = np.arange(n)[:, None], np.arange(m)[None, :]
    for _ in range(STEPS):
        x = np.clip(rows - u, 0, n - 1.001)
        y = np.clip(columns - v, 0, m - 1.001)
        i, j = x.astype(int), y.astype(int)
        a, b = x - i, y - j
        density[:] = (1 - a) * ((1 - b) * density[i, j] + b * density[i, j + 1]) + a * (
            (1 - b) * density[i + 1, j] + b * density[i + 1, j + 1]
        )


def spectral(w: Any, kx: Any, ky: Any) -> None:
    """Decaying vorticity by Fourier transforms."""
    k2 = kx**2 + ky**2
    k2[0, 0] = 1.0
    for _ in range(STEPS):
        wh = np.fft.fft2(w)
        psi = wh / k2
        u = np.real(np.fft.ifft2(1j * ky * psi))
        v = np.real(np.fft.ifft2(-1j * kx * psi))
        wx, wy = np.real(np.fft.ifft2(1j * kx * wh)), np.real(np.fft.ifft2(1j * ky * wh))
        w -= 1e-3 * (u * wx + v * wy)


def ising(spins: Any, chance: Any) -> None:
    """Metropolis steps on the black and the white cells of a torus."""
    n, m = spins.shape
    black = (np.arange(n)[:, None] + np.arange(m)[None, :]) % 2 == 0
    for t in range(STEPS):
        for colour in (black, ~black):
            near = (
                np.roll(spins, 1, 0)
                + np.roll(spins, -1, 0)
                + np.roll(spins, 1, 1)
                + np.roll(spins, -1, 1)
            )
            energy = 2 * spins * near
            flips = colour & (chance[t] < np.exp(-0.44 * energy))
            spins[flips] *= -1


# -- particles ------------------------------------------------------------------------------------


def nbody(pos: Any, vel: Any, mass: Any) -> Any:
    """Gravity of each body on each other one."""
    for _ in range(STEPS):
        d = pos[None, :, :] - pos[:, None, :]
        r3 = ((d**2).sum(-1) + 0.01) ** -1.5
        acc = (d * (r3 * mass[None, :])[:, :, None]).sum(1)
        vel += 0.01 * acc
        pos += 0.01 * vel
    return 0.5 * np.sum(mass * (vel**2).sum(-1))


def particles_in_cells(x: Any, v: Any, field: Any) -> None:
    """Charges that are put on a grid, and pushed by its field."""
    n = field.shape[0]
    for _ in range(STEPS):
        cell = x.astype(int)
        w = x - cell
        rho = np.zeros(n)
        np.add.at(rho, cell, 1 - w)
        np.add.at(rho, (cell + 1) % n, w)
        field[:] = np.cumsum(rho - rho.mean()) / n
        v += 0.1 * ((1 - w) * field[cell] + w * field[(cell + 1) % n])
        x[:] = (x + v) % n


# -- data -----------------------------------------------------------------------------------------


def kmeans(x: Any, centres: Any) -> Any:
    """Lloyd's algorithm."""
    k = centres.shape[0]
    for _ in range(STEPS):
        distances = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(-1)
        labels = np.argmin(distances, axis=1)
        for j in range(k):
            members = labels == j
            if members.any():
                centres[j] = x[members].mean(axis=0)
    return labels


def mixture(x: Any, mean: Any, var: Any, weight: Any) -> Any:
    """Expectation and maximisation of Gaussians of one variable each."""
    for _ in range(STEPS):
        density = np.exp(-0.5 * (x[:, None] - mean) ** 2 / var) / np.sqrt(2 * np.pi * var)
        share = weight * density
        share /= share.sum(axis=1, keepdims=True)
        total = share.sum(axis=0)
        mean[:] = (share * x[:, None]).sum(axis=0) / total
        var[:] = (share * (x[:, None] - mean) ** 2).sum(axis=0) / total
        weight[:] = total / x.shape[0]
    return np.log(share.max(axis=1)).sum()


def pca(x: Any) -> Any:
    """Projection on the directions of the largest variance."""
    centred = x - x.mean(axis=0)
    cov = centred.T @ centred / (x.shape[0] - 1)
    values, vectors = np.linalg.eigh(cov)
    order = np.argsort(values)[::-1][:4]
    return centred @ vectors[:, order]


def logistic(x: Any, y: Any, w: Any) -> Any:
    """Gradient descent."""
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-(x @ w)))
        w -= 0.1 * (x.T @ (p - y)) / x.shape[0]
    return -np.mean(y * np.log(p) + (1 - y) * np.log(1 - p))


def perceptron(x: Any, y: Any, w1: Any, w2: Any) -> Any:
    """Two layers, trained by hand."""
    for _ in range(STEPS):
        h = np.maximum(x @ w1, 0)
        out = h @ w2
        out -= out.max(axis=1, keepdims=True)
        p = np.exp(out) / np.exp(out).sum(axis=1, keepdims=True)
        grad = (p - y) / x.shape[0]
        dh = (grad @ w2.T) * (h > 0)
        w2 -= 0.1 * (h.T @ grad)
        w1 -= 0.1 * (x.T @ dh)
    return (p.argmax(axis=1) == y.argmax(axis=1)).mean()


def equalised(image: Any) -> Any:
    """An image whose grey values are spread evenly."""
    for _ in range(STEPS):
        counts = np.bincount(image.ravel(), minlength=256)
        cdf = np.cumsum(counts)
        table = ((cdf - cdf.min()) * 255 // (cdf.max() - cdf.min())).astype(np.int64)
        image[:] = table[image]
    return image


def edges(image: Any) -> Any:
    """Sobel's filter, and a threshold that the median decides."""
    gx = image[2:, 2:] + 2 * image[1:-1, 2:] + image[:-2, 2:]
    gx = gx - image[2:, :-2] - 2 * image[1:-1, :-2] - image[:-2, :-2]
    gy = image[2:, 2:] + 2 * image[2:, 1:-1] + image[2:, :-2]
    gy = gy - image[:-2, 2:] - 2 * image[:-2, 1:-1] - image[:-2, :-2]
    size = np.hypot(gx, gy)
    return size > 2 * np.median(size)


# -- finance, algebra, tables ---------------------------------------------------------------------


def asian_option(draws: Any) -> Any:
    """The price of an option on the mean of a path."""
    steps = draws.shape[1]
    dt = 1.0 / steps
    paths = 100.0 * np.exp(np.cumsum((0.03 - 0.02) * dt + 0.2 * np.sqrt(dt) * draws, axis=1))
    payoff = np.maximum(paths.mean(axis=1) - 100.0, 0)
    return np.exp(-0.03) * payoff.mean(), payoff.std() / np.sqrt(draws.shape[0])


def conjugate_gradients(b: Any, x: Any) -> Any:
    """Poisson's equation without a matrix."""

    def apply(p: Any) -> Any:
        q = 4 * p
        q[1:] -= p[:-1]
        q[:-1] -= p[1:]
        q[:, 1:] -= p[:, :-1]
        q[:, :-1] -= p[:, 1:]
        return q

    r = b - apply(x)
    p = r.copy()
    rs = np.sum(r * r)
    for _ in range(STEPS):
        ap = apply(p)
        alpha = rs / np.sum(p * ap)
        x += alpha * p
        r -= alpha * ap
        new = np.sum(r * r)
        p = r + (new / rs) * p
        rs = new
    return np.sqrt(rs)


def least_squares(a: Any, b: Any) -> Any:
    """Ridge regression by the normal equations."""
    gram = a.T @ a + 1e-3 * np.eye(a.shape[1])
    return np.linalg.solve(gram, a.T @ b)


def row_statistics(x: Any, out: Any) -> None:
    """One row after the other, as loops of Python write it."""
    for i in range(x.shape[0]):
        row = x[i]
        out[i, 0] = row.mean()
        out[i, 1] = row.std()
        out[i, 2] = np.max(np.abs(row))


def seen_twice(x: Any) -> Any:
    """What a table has above a threshold, in order."""
    chosen = x[x > 0.5]
    ordered = np.sort(chosen)
    return ordered.sum(), np.cumsum(ordered)[-1], np.unique((chosen * 1000).astype(np.int64)).size


def moving_average(x: Any, y: Any) -> None:
    """An exponential average, one element after the other."""
    y[0] = x[0]
    for i in range(1, x.shape[0]):
        y[i] = 0.9 * y[i - 1] + 0.1 * x[i]


def alignment(a: Any, b: Any, score: Any) -> Any:
    """Smith and Waterman's table of two sequences."""
    for i in range(1, score.shape[0]):
        for j in range(1, score.shape[1]):
            match = score[i - 1, j - 1] + (2 if a[i - 1] == b[j - 1] else -1)
            score[i, j] = max(0, match, score[i - 1, j] - 1, score[i, j - 1] - 1)
    return score.max()


Arguments = tuple[Any, ...]


def programs(rng: Any) -> dict[Callable[..., Any], Callable[[], Arguments]]:
    """Each program with what makes its arguments from random numbers."""

    def grid(n: int = 1024, m: int = 1024) -> Any:
        return rng.random((n, m))

    def wave_numbers(n: int) -> tuple[Any, Any]:
        k = np.fft.fftfreq(n, 1 / n)
        return np.broadcast_to(k[:, None], (n, n)).copy(), np.broadcast_to(k, (n, n)).copy()

    return {
        gray_scott: lambda: (grid(), grid()),
        life: lambda: ((grid() < 0.3).astype(np.int64),),
        lattice_boltzmann: lambda: (1 + 0.1 * rng.random((400, 400, 9)), grid(400, 400) < 0.05),
        wave: lambda: (grid(), grid(), np.array([300, 700])),
        smoke: lambda: (grid(512, 512), grid(512, 512) * 3, grid(512, 512) * 3),
        spectral: lambda: (grid(256, 256), *wave_numbers(256)),
        ising: lambda: (
            np.where(grid(512, 512) < 0.5, -1, 1),
            rng.random((STEPS, 512, 512)),
        ),
        nbody: lambda: (rng.random((1000, 3)), rng.random((1000, 3)), rng.random(1000)),
        particles_in_cells: lambda: (
            rng.random(200_000) * 999,
            rng.random(200_000),
            np.zeros(1000),
        ),
        kmeans: lambda: (grid(100_000, 8), grid(10, 8)),
        mixture: lambda: (rng.random(200_000), rng.random(5), np.ones(5), np.full(5, 0.2)),
        pca: lambda: (grid(20_000, 64),),
        logistic: lambda: (grid(20_000, 100), (rng.random(20_000) < 0.5) * 1.0, rng.random(100)),
        perceptron: lambda: (
            grid(4096, 256),
            np.eye(10)[rng.integers(0, 10, 4096)],
            grid(256, 256) * 0.05,
            grid(256, 10) * 0.05,
        ),
        equalised: lambda: (rng.integers(0, 200, (1024, 1024)),),
        edges: lambda: (grid(),),
        asian_option: lambda: (rng.standard_normal((20_000, 100)),),
        conjugate_gradients: lambda: (grid(), np.zeros((1024, 1024))),
        least_squares: lambda: (grid(20_000, 128), rng.random(20_000)),
        row_statistics: lambda: (grid(20_000, 100), np.zeros((20_000, 3))),
        seen_twice: lambda: (rng.random(1_000_000),),
        moving_average: lambda: (rng.random(1_000_000), np.zeros(1_000_000)),
        alignment: lambda: (
            rng.integers(0, 4, 800),
            rng.integers(0, 4, 800),
            np.zeros((801, 801), np.int64),
        ),
    }


def arguments_of(name: str) -> Arguments:
    """Arguments of a program, the same whoever asks."""
    return {f.__name__: make for f, make in programs(np.random.default_rng(0)).items()}[name]()


def best_of(call: Callable[..., object], name: str, runs: int) -> float:
    """The least of some times of a program, in seconds, each with arguments of its own."""
    seconds = []
    for _ in range(runs):
        given = arguments_of(name)
        MPI.COMM_WORLD.barrier()
        begin = time.perf_counter()
        call(*given)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def bytes_in_loops(lowering: Any) -> tuple[int, int]:
    """Bytes that all ranks receive in what happens more than once, and the fewest possible."""
    moves = [m for m in lowering.memlets if (m.times or 0) > 1]
    received = sum(m.times * m.solution.cost.nbytes for m in moves if m.received is None)
    least = sum(
        m.times * m.solution.plan.redistribution.bound.nbytes for m in moves if m.received is None
    )
    foreseen = sum(m.received or 0 for m in lowering.memlets + lowering.fetches)
    return received + foreseen, least + foreseen


def measure(names: Sequence[str]) -> None:
    """Print a line for each program, on the ranks that run this."""
    comm = MPI.COMM_WORLD
    for function in programs(None):
        name = function.__name__
        if names and name not in names:
            continue
        given = arguments_of(name)
        sdfg = numpy_program(function, *given, host="refuse") if comm.rank == 0 else None
        lowering = distspmd.lower(sdfg, ranks=comm.size) if comm.rank == 0 else None
        with distspmd.compile(lowering, comm) as compiled:
            seconds = best_of(compiled, name, 5)
        if lowering is None:
            continue
        moved, least = bytes_in_loops(lowering)
        predicted = distspmd.predict(lowering).seconds
        numpy = ""
        if comm.size == 1:
            numpy = f", NumPy {best_of(function, name, 2) * 1e3:9.2f} ms"
        print(
            f"{name:20} {comm.size} ranks: {1 - lowering.whole:4.0%} split, "
            f"{moved:>12,} bytes in loops, least {least:>12,}, "
            f"predicted {predicted * 1e3:9.2f} ms, measured {seconds * 1e3:9.2f} ms{numpy}",
            flush=True,
        )


if __name__ == "__main__":
    measure_on_ranks(__file__, __doc__, measure, (1, 2, 4))
