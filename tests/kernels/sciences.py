"""Physics, geometry, signals, and what else there is."""

import itertools

import dace
import numpy as np

from kernels.kernel import kernel

M, N = 11, 13


@dace.program
def arc_distance(
    theta_1: dace.float64[N],
    phi_1: dace.float64[N],
    theta_2: dace.float64[N],
    phi_2: dace.float64[N],
):
    temp = (
        np.sin((theta_2 - theta_1) / 2) ** 2
        + np.cos(theta_1) * np.cos(theta_2) * np.sin((phi_2 - phi_1) / 2) ** 2
    )
    return 2 * (np.arctan2(np.sqrt(temp), np.sqrt(1 - temp)))


@dace.program
def compute(x: dace.int64[M, N], y: dace.int64[M, N], a: dace.int64, b: dace.int64, c: dace.int64):
    return np.minimum(np.maximum(x, 2), 10) * a + y * b + c


NR, NM, SLABS, POINTS = 6, 5, 3, 7


def well_posed(rng):
    """Slabs of which the middle one outweighs the others, so that each sum can be inverted."""
    ham = rng.random((SLABS, NR, NR)) + 1j * rng.random((SLABS, NR, NR)) - (0.5 + 0.5j)
    ham[SLABS // 2] += 4 * NR * np.eye(NR)
    return ham


@dace.program
def contour_integral(
    ham: dace.complex128[SLABS, NR, NR],
    points: dace.complex128[POINTS],
    y: dace.complex128[NR, NM],
):
    p0 = np.zeros((NR, NM), np.complex128)
    p1 = np.zeros((NR, NM), np.complex128)
    for n in range(POINTS):
        z = points[n]
        tz = np.zeros((NR, NR), np.complex128)
        for s in range(SLABS):
            tz += z ** (SLABS / 2 - s) * ham[s]
        x = np.linalg.solve(tz, y)
        p0 += x
        p1 += z * x
    return p0, p1


@dace.program
def crc16(data: dace.uint8[M]):
    crc = np.ndarray((1,), np.uint16)
    crc[0] = 0xFFFF
    for i in range(M):
        b = data[i]
        cur = 0xFF & b
        for _j in range(8):
            if (crc[0] & 0x0001) ^ (cur & 0x0001):
                crc[0] = (crc[0] >> 1) ^ 0x8408
            else:
                crc[0] = crc[0] >> 1
            cur = cur >> 1
    crc[0] = ~crc[0] & 0xFFFF
    return crc


@dace.program
def go_fast(a: dace.float64[N, N]):
    trace = 0.0
    for i in range(N):
        trace += np.tanh(a[i, i])
    return a + trace


XN, YN, MAXITER = 12, 10, 9


@dace.program
def mandelbrot1():
    x = np.zeros((XN,), np.float64)
    y = np.zeros((YN,), np.float64)
    for i in dace.map[0:XN]:
        x[i] = -2.0 + i * 2.5 / (XN - 1)
    for j in dace.map[0:YN]:
        y[j] = -1.25 + j * 2.5 / (YN - 1)
    c = np.zeros((YN, XN), np.complex128)
    for j, i in dace.map[0:YN, 0:XN]:
        c[j, i] = x[i] + y[j] * 1j
    counts = np.zeros((YN, XN), np.int64)
    z = np.zeros((YN, XN), np.complex128)
    for n in range(MAXITER):
        inside = np.less(np.abs(z), 2.0)
        counts[inside] = n
        z[:] = np.where(inside, z * z + c, z)
    return z, counts


@dace.program
def mandelbrot2(re: dace.float64[XN], im: dace.float64[YN]):
    counts = np.zeros((YN, XN), np.int64)
    for j, i in dace.map[0:YN, 0:XN]:
        x = re[i] * 0.0
        y = im[j] * 0.0
        for n in range(MAXITER):
            if x * x + y * y < 4.0:
                t = x * x - y * y + re[i]
                y = 2.0 * x * y + im[j]
                x = t
                counts[j, i] = n
    return counts


@dace.program
def nbody(mass: dace.float64[N, 1], pos: dace.float64[N, 3], vel: dace.float64[N, 3]):
    ke = np.ndarray((4,), np.float64)
    pe = np.ndarray((4,), np.float64)
    acc = np.zeros((N, 3), np.float64)
    for t in range(4):
        dx = np.add.outer(-pos[:, 0], pos[:, 0])
        dy = np.add.outer(-pos[:, 1], pos[:, 1])
        dz = np.add.outer(-pos[:, 2], pos[:, 2])
        near = dx**2 + dy**2 + dz**2 + 0.01
        inv = near ** (-1.5)
        acc[:, 0] = (dx * inv) @ mass[:, 0]
        acc[:, 1] = (dy * inv) @ mass[:, 0]
        acc[:, 2] = (dz * inv) @ mass[:, 0]
        ke[t] = 0.5 * np.sum(mass * vel**2)
        pairs = np.zeros((N, N), np.float64)
        for i, j in dace.map[0:N, 0:N]:
            if i < j:
                pairs[i, j] = mass[i, 0] * mass[j, 0] / np.sqrt(near[i, j])
        pe[t] = -np.sum(pairs)
        vel += acc * 0.01
        pos += vel * 0.01
    return ke, pe


NA, NB, NKZ, NE, NQZ, NW, N3D, NORB = 4, 3, 3, 5, 2, 2, 2, 3


@dace.program
def scattering_self_energies(
    neigh_idx: dace.int32[NA, NB],
    dh: dace.complex128[NA, NB, N3D, NORB, NORB],
    g: dace.complex128[NKZ, NE, NA, NORB, NORB],
    d: dace.complex128[NQZ, NW, NA, NB, N3D, N3D],
    sigma: dace.complex128[NKZ, NE, NA, NORB, NORB],
):
    for k, e, a in dace.map[0:NKZ, 0:NE, 0:NA]:
        for q, w, i, j, b in dace.map[0:NQZ, 0:NW, 0:N3D, 0:N3D, 0:NB]:
            if e - w >= 0:
                near = neigh_idx[a, b]
                for m, n, o, p in dace.map[0:NORB, 0:NORB, 0:NORB, 0:NORB]:
                    sigma[k, e, a, m, n] += (
                        g[k, e - w, near, m, o] * dh[a, b, i, o, p] * dh[a, b, j, p, n]
                    ) * d[q, w, a, b, i, j]


def neighbours(rng):
    return rng.integers(0, NA, (NA, NB)).astype(np.int32)


def self_energies(neigh_idx, dh, g, d, sigma):
    for e in range(NE):
        for w in range(min(e + 1, NW)):
            near = g[:, e - w][:, neigh_idx]
            sigma[:, e] += np.einsum(
                "kabmo,abiop,abjpn,qabij->kamn", near, dh, dh, d[:, w], optimize=True
            )


ROWS, COLUMNS, STORED = 12, 10, 40


def rows(rng):
    inner = np.sort(rng.integers(0, STORED, ROWS - 1))
    return np.concatenate([[0], inner, [STORED]]).astype(np.int32)


def columns(rng):
    return rng.integers(0, COLUMNS, STORED).astype(np.int32)


@dace.program
def spmv(
    row: dace.int32[ROWS + 1],
    column: dace.int32[STORED],
    value: dace.float64[STORED],
    x: dace.float64[COLUMNS],
):
    y = np.zeros((ROWS,), np.float64)
    for i in dace.map[0:ROWS]:
        for j in dace.map[row[i] : row[i + 1]]:
            y[i] += value[j] * x[column[j]]
    return y


def in_scipy_words(row, column, value, x):
    products = value * x[column]
    return np.array([products[lo:hi].sum() for lo, hi in itertools.pairwise(row)])


R, STAGES = 2, 4
SIZE = R**STAGES
BEFORE = tuple(R**n for n in range(STAGES))
AFTER = BEFORE[::-1]


@dace.program
def stockham_fft(x: dace.complex128[SIZE], y: dace.complex128[SIZE]):
    dft = np.empty((R, R), np.complex128)
    for i, j in dace.map[0:R, 0:R]:
        dft[i, j] = np.exp(-2.0j * np.pi * i * j / R)
    twiddled = np.empty((R, SIZE // R), np.complex128)
    y[:] = x
    for i in dace.unroll(range(STAGES)):
        for j, k, m in dace.map[0:R, 0 : BEFORE[i], 0 : AFTER[i]]:
            twiddled[j, k * AFTER[i] + m] = y[k * R * AFTER[i] + j * AFTER[i] + m] * np.exp(
                -2.0j * np.pi * j * k / (R * BEFORE[i])
            )
        product = dft @ twiddled
        y[:] = np.reshape(product, (SIZE,))


def crc_of(data):
    crc = 0xFFFF
    for byte in data.tolist():
        for bit in range(8):
            odd = (crc ^ (byte >> bit)) & 1
            crc = (crc >> 1) ^ 0x8408 if odd else crc >> 1
    return np.array([~crc & 0xFFFF], np.uint16)


KERNELS = [
    kernel(arc_distance, {"__return": "__i0"}),
    kernel(compute, {"__return": "__i0 __i1"}),
    kernel(contour_integral, {"x": "__j"}, ham=well_posed),
    kernel(crc16, {}, crc_of),
    kernel(go_fast, {"__return": "__i0 __i1"}),
    kernel(
        mandelbrot1,
        {"__return_0.2": "__i0 __i1", "__return_1.2": "__i0 __i1"},
        by_dace={"z_slice": "__i0 __i1", "__return_1.2": "__i0 __i1"},
    ),
    kernel(mandelbrot2, {"__return.2": "j i"}),
    kernel(
        nbody,
        {
            "expr_matmul_mass_slice": "i k",
            "expr_matmul_mass_slice_1": "i k",
            "expr_matmul_mass_slice_2": "i k",
            "pairs.2": "i j",
        },
        by_dace={
            "acc_slice": "__i0 __i1",
            "acc_slice_0": "__i0 __i1",
            "acc_slice_1": "__i0 __i1",
            "pairs.2": "i j",
        },
    ),
    kernel(scattering_self_energies, {"sigma": "e a"}, self_energies, neigh_idx=neighbours),
    kernel(spmv, {"__return.2": "i"}, in_scipy_words, row=rows, column=columns),
    kernel(
        stockham_fft,
        {"product": "j", "product_1": "j", "product_2": "j", "product_3": "j"},
        by_dace={"product": "__i1", "product.2": "__i1", "product.3": "__i1", "product.4": "__i1"},
    ),
]
