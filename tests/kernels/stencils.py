"""Stencils in space and time."""

import dace
import numpy as np

from kernels.kernel import kernel

N, T = 16, 4
NX, NY = 13, 11
NI, NJ, NK = 11, 10, 7


@dace.program
def jacobi_1d(a: dace.float64[N], b: dace.float64[N]):
    for _t in range(1, T):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])


@dace.program
def jacobi_2d(a: dace.float64[N, N], b: dace.float64[N, N]):
    for _t in range(1, T):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )


@dace.program
def heat_3d(a: dace.float64[NI, NJ, NK], b: dace.float64[NI, NJ, NK]):
    for _t in range(1, T):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, 0:-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, 0:-2])
            + b[1:-1, 1:-1, 1:-1]
        )


@dace.program
def seidel_2d(a: dace.float64[N, N]):
    for _t in range(T - 1):
        for i in range(1, N - 1):
            a[i, 1:-1] += (
                a[i - 1, :-2]
                + a[i - 1, 1:-1]
                + a[i - 1, 2:]
                + a[i, 2:]
                + a[i + 1, :-2]
                + a[i + 1, 1:-1]
                + a[i + 1, 2:]
            )
            for j in range(1, N - 1):
                a[i, j] += a[i, j - 1]
                a[i, j] /= 9.0


@dace.program
def fdtd_2d(
    ex: dace.float64[NX, NY],
    ey: dace.float64[NX, NY],
    hz: dace.float64[NX, NY],
    fict: dace.float64[T],
):
    for t in range(T):
        ey[0, :] = fict[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])


A1, B1, D1, E1 = -3.0, 7.0, -2.5, 6.0


@dace.program
def adi(u: dace.float64[N, N]):
    v = np.empty_like(u)
    p = np.empty_like(u)
    q = np.empty_like(u)
    for _t in range(1, T):
        v[0, 1 : N - 1] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = v[0, 1 : N - 1]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -A1 / (A1 * p[1 : N - 1, j - 1] + B1)
            q[1 : N - 1, j] = (
                -D1 * u[j, 0 : N - 2]
                + (1.0 + 2.0 * D1) * u[j, 1 : N - 1]
                - E1 * u[j, 2:N]
                - A1 * q[1 : N - 1, j - 1]
            ) / (A1 * p[1 : N - 1, j - 1] + B1)
        v[N - 1, 1 : N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            v[j, 1 : N - 1] = p[1 : N - 1, j] * v[j + 1, 1 : N - 1] + q[1 : N - 1, j]
        u[1 : N - 1, 0] = 1.0
        p[1 : N - 1, 0] = 0.0
        q[1 : N - 1, 0] = u[1 : N - 1, 0]
        for j in range(1, N - 1):
            p[1 : N - 1, j] = -D1 / (D1 * p[1 : N - 1, j - 1] + E1)
            q[1 : N - 1, j] = (
                -A1 * v[0 : N - 2, j]
                + (1.0 + 2.0 * A1) * v[1 : N - 1, j]
                - B1 * v[2:N, j]
                - D1 * q[1 : N - 1, j - 1]
            ) / (D1 * p[1 : N - 1, j - 1] + E1)
        u[1 : N - 1, N - 1] = 1.0
        for j in range(N - 2, 0, -1):
            u[1 : N - 1, j] = p[1 : N - 1, j] * u[1 : N - 1, j + 1] + q[1 : N - 1, j]


K1 = 0.25
A2, A3, A4 = -0.3, 0.2, -0.1
A6, A7, A8 = 0.22, -0.12, 0.15
DB1, DB2 = 1.3, -0.4


@dace.program
def deriche(image: dace.float64[NX, NY]):
    y1 = np.empty_like(image)
    y1[:, 0] = K1 * image[:, 0]
    y1[:, 1] = K1 * image[:, 1] + A2 * image[:, 0] + DB1 * y1[:, 0]
    for j in range(2, NY):
        y1[:, j] = K1 * image[:, j] + A2 * image[:, j - 1] + DB1 * y1[:, j - 1] + DB2 * y1[:, j - 2]
    y2 = np.empty_like(image)
    y2[:, NY - 1] = 0.0
    y2[:, NY - 2] = A3 * image[:, NY - 1]
    for j in range(NY - 3, -1, -1):
        y2[:, j] = (
            A3 * image[:, j + 1] + A4 * image[:, j + 2] + DB1 * y2[:, j + 1] + DB2 * y2[:, j + 2]
        )
    out = y1 + y2
    y1[0, :] = K1 * out[0, :]
    y1[1, :] = K1 * out[1, :] + A6 * out[0, :] + DB1 * y1[0, :]
    for i in range(2, NX):
        y1[i, :] = K1 * out[i, :] + A6 * out[i - 1, :] + DB1 * y1[i - 1, :] + DB2 * y1[i - 2, :]
    y2[NX - 1, :] = 0.0
    y2[NX - 2, :] = A7 * out[NX - 1, :]
    for i in range(NX - 3, -1, -1):
        y2[i, :] = A7 * out[i + 1, :] + A8 * out[i + 2, :] + DB1 * y2[i + 1, :] + DB2 * y2[i + 2, :]
    return y1 + y2


@dace.program
def hdiff(
    field: dace.float64[NI + 4, NJ + 4, NK],
    out: dace.float64[NI, NJ, NK],
    coeff: dace.float64[NI, NJ, NK],
):
    lap = 4.0 * field[1 : NI + 3, 1 : NJ + 3, :] - (
        field[2 : NI + 4, 1 : NJ + 3, :]
        + field[0 : NI + 2, 1 : NJ + 3, :]
        + field[1 : NI + 3, 2 : NJ + 4, :]
        + field[1 : NI + 3, 0 : NJ + 2, :]
    )
    along_i = lap[1:, 1 : NJ + 1, :] - lap[:-1, 1 : NJ + 1, :]
    flx = np.where(
        (along_i * (field[2 : NI + 3, 2 : NJ + 2, :] - field[1 : NI + 2, 2 : NJ + 2, :])) > 0,
        0,
        along_i,
    )
    along_j = lap[1 : NI + 1, 1:, :] - lap[1 : NI + 1, :-1, :]
    fly = np.where(
        (along_j * (field[2 : NI + 2, 2 : NJ + 3, :] - field[2 : NI + 2, 1 : NJ + 2, :])) > 0,
        0,
        along_j,
    )
    out[:] = field[2 : NI + 2, 2 : NJ + 2, :] - coeff * (
        flx[1:, :, :] - flx[:-1, :, :] + fly[:, 1:, :] - fly[:, :-1, :]
    )


BET_M, BET_P, DTR = 0.35, 0.65, 3.0 / 20.0


@dace.program
def vadv(
    utens_stage: dace.float64[NI, NJ, NK],
    u_stage: dace.float64[NI, NJ, NK],
    wcon: dace.float64[NI + 1, NJ, NK],
    u_pos: dace.float64[NI, NJ, NK],
    utens: dace.float64[NI, NJ, NK],
):
    ccol = np.ndarray((NI, NJ, NK), np.float64)
    dcol = np.ndarray((NI, NJ, NK), np.float64)
    data_col = np.ndarray((NI, NJ), np.float64)
    for k in range(1):
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        cs = gcv * BET_M
        ccol[:, :, k] = gcv * BET_P
        bcol = DTR - ccol[:, :, k]
        correction = -cs * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        dcol[:, :, k] = DTR * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction
        divided = 1.0 / bcol
        ccol[:, :, k] = ccol[:, :, k] * divided
        dcol[:, :, k] = dcol[:, :, k] * divided
    for k in range(1, NK - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv2 = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        as_ = gav * BET_M
        cs2 = gcv2 * BET_M
        acol = gav * BET_P
        ccol[:, :, k] = gcv2 * BET_P
        bcol2 = DTR - acol - ccol[:, :, k]
        correction2 = -as_ * (u_stage[:, :, k - 1] - u_stage[:, :, k]) - cs2 * (
            u_stage[:, :, k + 1] - u_stage[:, :, k]
        )
        dcol[:, :, k] = DTR * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction2
        divided2 = 1.0 / (bcol2 - ccol[:, :, k - 1] * acol)
        ccol[:, :, k] = ccol[:, :, k] * divided2
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol) * divided2
    for k in range(NK - 1, NK):
        gav3 = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        as3 = gav3 * BET_M
        acol3 = gav3 * BET_P
        bcol3 = DTR - acol3
        correction3 = -as3 * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        dcol[:, :, k] = DTR * u_pos[:, :, k] + utens[:, :, k] + utens_stage[:, :, k] + correction3
        divided3 = 1.0 / (bcol3 - ccol[:, :, k - 1] * acol3)
        dcol[:, :, k] = (dcol[:, :, k] - dcol[:, :, k - 1] * acol3) * divided3
    for k in range(NK - 1, NK - 2, -1):
        data_col[:] = dcol[:, :, k]
        utens_stage[:, :, k] = DTR * (data_col - u_pos[:, :, k])
    for k in range(NK - 2, -1, -1):
        datacol = dcol[:, :, k] - ccol[:, :, k] * data_col[:, :]
        data_col[:] = datacol
        utens_stage[:, :, k] = DTR * (datacol - u_pos[:, :, k])


NT, NIT = 3, 4
DT, RHO, NU = 0.001, 1.0, 0.1
DX, DY = 2.0 / (NX - 1), 2.0 / (NY - 1)


@dace.program
def cavity_flow(u: dace.float64[NY, NX], v: dace.float64[NY, NX], p: dace.float64[NY, NX]):
    b = np.zeros((NY, NX), np.float64)
    un = np.empty_like(u)
    vn = np.empty_like(v)
    pn = np.empty_like(p)
    for _n in range(NT):
        un[:] = u
        vn[:] = v
        b[1:-1, 1:-1] = RHO * (
            1
            / DT
            * ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * DX) + (v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * DY))
            - ((u[1:-1, 2:] - u[1:-1, 0:-2]) / (2 * DX)) ** 2
            - 2
            * ((u[2:, 1:-1] - u[0:-2, 1:-1]) / (2 * DY) * (v[1:-1, 2:] - v[1:-1, 0:-2]) / (2 * DX))
            - ((v[2:, 1:-1] - v[0:-2, 1:-1]) / (2 * DY)) ** 2
        )
        for _q in range(NIT):
            pn[:] = p
            p[1:-1, 1:-1] = (
                (pn[1:-1, 2:] + pn[1:-1, 0:-2]) * DY**2 + (pn[2:, 1:-1] + pn[0:-2, 1:-1]) * DX**2
            ) / (2 * (DX**2 + DY**2)) - DX**2 * DY**2 / (2 * (DX**2 + DY**2)) * b[1:-1, 1:-1]
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * DT / DX * (un[1:-1, 1:-1] - un[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * DT / DY * (un[1:-1, 1:-1] - un[0:-2, 1:-1])
            - DT / (2 * RHO * DX) * (p[1:-1, 2:] - p[1:-1, 0:-2])
            + NU
            * (
                DT / DX**2 * (un[1:-1, 2:] - 2 * un[1:-1, 1:-1] + un[1:-1, 0:-2])
                + DT / DY**2 * (un[2:, 1:-1] - 2 * un[1:-1, 1:-1] + un[0:-2, 1:-1])
            )
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * DT / DX * (vn[1:-1, 1:-1] - vn[1:-1, 0:-2])
            - vn[1:-1, 1:-1] * DT / DY * (vn[1:-1, 1:-1] - vn[0:-2, 1:-1])
            - DT / (2 * RHO * DY) * (p[2:, 1:-1] - p[0:-2, 1:-1])
            + NU
            * (
                DT / DX**2 * (vn[1:-1, 2:] - 2 * vn[1:-1, 1:-1] + vn[1:-1, 0:-2])
                + DT / DY**2 * (vn[2:, 1:-1] - 2 * vn[1:-1, 1:-1] + vn[0:-2, 1:-1])
            )
        )
        u[0, :] = 0
        u[:, 0] = 0
        u[:, -1] = 0
        u[-1, :] = 1
        v[0, :] = 0
        v[-1, :] = 0
        v[:, 0] = 0
        v[:, -1] = 0


KERNELS = [
    kernel(jacobi_1d, {"a": "__i0", "b": "__i0"}),
    kernel(jacobi_2d, {"a": "__i0 __i1", "b": "__i0 __i1"}),
    kernel(heat_3d, {"a": "__i0 __i1", "b": "__i0 __i1"}),
    kernel(seidel_2d, {"a": "__i0"}),
    kernel(fdtd_2d, {"ey.2": "__i0 __i1", "ex": "__i0 __i1", "hz": "__i0 __i1"}),
    kernel(
        adi,
        {"v.3": "__i0", "u.3": "__i0", "p.2": "__i0", "q.2": "__i0", "p.4": "__i0", "q.4": "__i0"},
    ),
    kernel(
        deriche,
        {
            "y1.3": "__i0",
            "y2.3": "__i0",
            "out": "__i0 __i1",
            "y1.6": "__i0",
            "y2.6": "__i0",
            "__return": "__i0 __i1",
        },
    ),
    kernel(hdiff, {"lap": "__i0 __i1", "out": "__i0 __i1"}),
    kernel(
        vadv,
        {
            "utens_stage": "__i0 __i1",
            "utens_stage.2": "__i0 __i1",
            "dcol.4": "__i0 __i1",
            "ccol.4": "__i0 __i1",
        },
        by_dace={
            "utens_stage": "__i0 __i1",
            "utens_stage.2": "__i0 __i1",
            "dcol.4": "__i0 __i1",
            "ccol.4": "__i0 __i1",
        },
    ),
    kernel(cavity_flow, {"b.2": "__i0 __i1", "p": "__i0 __i1", "u": "__i0 __i1", "v": "__i0 __i1"}),
]
