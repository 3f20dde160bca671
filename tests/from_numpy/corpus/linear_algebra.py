"""Linear algebra: factorisations, solvers and products, written out or with numpy.linalg."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("linear algebra")


def matrix(rng, n, m=None):
    return rng.random((n, m or n)) - 0.5


def dominant(rng, n):
    return matrix(rng, n) + n * np.eye(n)


def positive(rng, n):
    a = matrix(rng, n)
    return a @ a.T + n * np.eye(n)


@program("wikipedia", lambda rng, n: (positive(rng, n), 20), 5, 8)
def power_iteration(A, num_iterations: int):
    b_k = np.ones(A.shape[1])
    for _ in range(num_iterations):
        b_k1 = np.dot(A, b_k)
        b_k1_norm = np.linalg.norm(b_k1)
        b_k = b_k1 / b_k1_norm
    return b_k, b_k @ A @ b_k


@program("textbook", lambda rng, n, m: (matrix(rng, n, m),), (7, 4), (9, 5))
def gram_schmidt(A):
    m, n = A.shape
    Q = np.zeros((m, n))
    R = np.zeros((n, n))
    for j in range(n):
        v = A[:, j]
        for i in range(j):
            R[i, j] = Q[:, i] @ A[:, j]
            v = v - R[i, j] * Q[:, i]
        R[j, j] = np.linalg.norm(v)
        Q[:, j] = v / R[j, j]
    return Q, R


@program("textbook", lambda rng, n: (dominant(rng, n),), 5, 7)
def lu_doolittle(A):
    n = len(A)
    L = np.eye(n)
    U = A.astype(float).copy()
    for k in range(n - 1):
        for i in range(k + 1, n):
            L[i, k] = U[i, k] / U[k, k]
            U[i, k:] -= L[i, k] * U[k, k:]
    return L, U


@program("npbench", lambda rng, n: (positive(rng, n),), 6, 9)
def cholesky(A):
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])


@program("wikipedia", lambda rng, n: (positive(rng, n), rng.random(n), np.zeros(n)), 7, 13)
def conjugate_gradient(A, b, x, tol=1e-10):
    r = b - A @ x
    p = r.copy()
    rsold = r @ r
    for i in range(len(b)):
        Ap = A @ p
        alpha = rsold / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        rsnew = r @ r
        if np.sqrt(rsnew) < tol:
            break
        p = r + (rsnew / rsold) * p
        rsold = rsnew
    return x, i


@program("blog", lambda rng, n: (dominant(rng, n), rng.random(n)), 6, 11)
def jacobi_method(A, b, N=25, x=None):
    """Jacobi's iteration for Ax=b."""
    if x is None:
        x = np.zeros(len(A[0]))
    D = np.diag(A)
    R = A - np.diagflat(D)
    for _ in range(N):
        x = (b - R @ x) / D
    return x


@program("wikipedia", lambda rng, n: (dominant(rng, n), rng.random(n)), 5, 9)
def gauss_seidel(A, b, max_sweeps=100):
    x = np.zeros_like(b)
    for sweep in range(1, max_sweeps):
        new = np.zeros_like(x)
        for i in range(len(A)):
            new[i] = (b[i] - np.dot(A[i, :i], new[:i]) - np.dot(A[i, i + 1 :], x[i + 1 :])) / A[
                i, i
            ]
        if np.allclose(x, new, rtol=1e-8):
            break
        x = new
    error = np.dot(A, x) - b
    print(f"error {np.abs(error).max():.1e} after {sweep} sweeps")
    return x, sweep


@program(
    "repository",
    lambda rng, n: (rng.random(n - 1), rng.random(n) + 3, rng.random(n - 1), rng.random(n)),
    7,
    12,
)
def TDMAsolver(a, b, c, d):
    """a: below the diagonal, b: the diagonal, c: above it, d: right-hand side"""
    n = len(d)
    lower, diag, upper, rhs = map(np.array, (a, b, c, d))  # copies
    for k in range(1, n):
        m = lower[k - 1] / diag[k - 1]
        diag[k] -= m * upper[k - 1]
        rhs[k] -= m * rhs[k - 1]
    x = diag
    x[-1] = rhs[-1] / diag[-1]
    for k in range(n - 2, -1, -1):
        x[k] = (rhs[k] - upper[k] * x[k + 1]) / diag[k]
    return x


@program("textbook", lambda rng, n, m: (matrix(rng, n, m),), (7, 4), (6, 6))
def householder_qr(A):
    m, n = A.shape
    R = A.copy()
    Q = np.eye(m)
    for k in range(min(m - 1, n)):
        x = R[k:, k]
        e = np.zeros_like(x)
        e[0] = np.copysign(np.linalg.norm(x), -A[k, k])
        u = x + np.sign(x[0]) * np.linalg.norm(x) * (e != 0)
        v = u / np.linalg.norm(u)
        R[k:, k:] -= 2.0 * np.outer(v, v @ R[k:, k:])
        Q[:, k:] -= 2.0 * np.outer(Q[:, k:] @ v, v)
    return Q, np.triu(R)


@program("numerical recipes", lambda rng, n: (matrix(rng, n), rng.random(n)), 5, 8)
def gauss_elimination(a, b):
    a = a.copy()
    b = b.copy()
    n = len(b)
    for i in range(n):
        pivot = np.argmax(np.abs(a[i:, i])) + i
        if pivot != i:
            a[[i, pivot]] = a[[pivot, i]]
            b[[i, pivot]] = b[[pivot, i]]
        for j in range(i + 1, n):
            factor = a[j, i] / a[i, i]
            a[j, i:] -= factor * a[i, i:]
            b[j] -= factor * b[i]
    x = np.zeros(n)
    for i in reversed(range(n)):
        x[i] = (b[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


@program("textbook", lambda rng, n, k: (rng.integers(0, 3, (n, n)), k), (3, 10), (4, 7))
def matrix_power(M, n):
    result = np.identity(M.shape[0], dtype=M.dtype)
    base = M
    while n > 0:
        if n & 1:
            result = result @ base
        base = base @ base
        n >>= 1
    return result


@program("textbook", lambda rng, n: (dominant(rng, n),), 4, 7)
def gauss_jordan_inverse(A):
    n = A.shape[0]
    aug = np.hstack((A, np.eye(n)))
    for i in range(n):
        aug[i] /= aug[i, i]
        for j in range(n):
            if i != j:
                aug[j] -= aug[j, i] * aug[i]
    return aug[:, n:]


@program(
    "polybench",
    lambda rng, n, m, k: (1.5, 1.2, matrix(rng, n, m), matrix(rng, n, k), matrix(rng, k, m)),
    (7, 9, 11),
    (5, 5, 3),
)
def gemm(alpha, beta, C, A, B):
    C[:] = alpha * A @ B + beta * C


@program(
    "npbench", lambda rng, n: (1.5, 1.2, matrix(rng, n), *(rng.random(n) for _ in range(8))), 7, 10
)
def gemver(alpha, beta, A, u1, v1, u2, v2, w, x, y, z):
    A += np.outer(u1, v1) + np.outer(u2, v2)
    x += beta * y @ A + z
    w += alpha * A @ x


@program("npbench", lambda rng, n, m: (1.5, 1.2, matrix(rng, n), matrix(rng, n, m)), (6, 4), (7, 9))
def syrk(alpha, beta, C, A):
    for i in range(A.shape[0]):
        C[i, : i + 1] *= beta
        for k in range(A.shape[1]):
            C[i, : i + 1] += alpha * A[i, k] * A[: i + 1, k]


@program("npbench", lambda rng, n, m: (1.5, matrix(rng, n), matrix(rng, n, m)), (6, 4), (7, 9))
def trmm(alpha, A, B):
    for i in range(B.shape[0]):
        for j in range(B.shape[1]):
            B[i, j] += np.dot(A[i + 1 :, i], B[i + 1 :, j])
    B *= alpha


@program("npbench", lambda rng, n: (matrix(rng, n), rng.random(n), rng.random(n)), 7, 12)
def bicg(A, p, r):
    return r @ A, A @ p


@program(
    "npbench",
    lambda rng, r, q, p: (r, q, p, rng.random((r, q, p)), rng.random((p, p))),
    (5, 4, 7),
    (3, 8, 6),
)
def doitgen(NR, NQ, NP, A, C4):
    A[:] = np.reshape(np.reshape(A, (NR, NQ, 1, NP)) @ C4, (NR, NQ, NP))


def csr(rng, n, m):
    dense = rng.random((n, m)) < 0.3
    counts = dense.sum(axis=1)
    rows = np.concatenate(([0], np.cumsum(counts)))
    cols = np.nonzero(dense)[1]
    return rows.astype(np.int32), cols.astype(np.int32), rng.random(len(cols)), rng.random(m)


@program("npbench", csr, (7, 13), (12, 5))
def spmv(A_row, A_col, A_val, x):
    y = np.empty(A_row.size - 1, A_val.dtype)
    for i in range(A_row.size - 1):
        cols = A_col[A_row[i] : A_row[i + 1]]
        vals = A_val[A_row[i] : A_row[i + 1]]
        y[i] = vals @ x[cols]
    return y


@program("textbook", lambda rng, n: (n,), 5, 8)
def hilbert_condition(n):
    i, j = np.indices((n, n))
    H = 1.0 / (i + j + 1)
    s = np.linalg.svd(H, compute_uv=False)
    return H, s[0] > 1e3, H.trace()


@program("stackoverflow", lambda rng, n: (rng.random(n), rng.random(n)), 5, 7)
def toeplitz(c, r):
    n = len(c)
    vals = np.concatenate((r[:0:-1], c))
    a, b = np.ogrid[0:n, n - 1 : -1 : -1]
    return vals[a + b]


@program("textbook", lambda rng, n, m: (positive(rng, n), rng.random(n), m), (8, 4), (11, 5))
def lanczos(A, v, m):
    n = len(v)
    V = np.zeros((m, n))
    T = np.zeros((m, m))
    V[0, :] = v / np.linalg.norm(v)
    w = A @ V[0]
    alfa = w @ V[0]
    w = w - alfa * V[0]
    T[0, 0] = alfa
    for j in range(1, m):
        beta = np.sqrt(np.dot(w, w))
        V[j] = w / beta
        w = A @ V[j]
        alfa = w @ V[j]
        w = w - alfa * V[j] - beta * V[j - 1]
        T[j, j] = alfa
        T[j - 1, j] = T[j, j - 1] = beta
    return V, T


@program("textbook", lambda rng, n: (dominant(rng, n), rng.random(n), 4), 7, 10)
def gmres(A, b, k):
    n = b.size
    Q = np.empty((n, k + 1))
    h = np.zeros((k + 1, k))
    beta = np.linalg.norm(b)
    Q[:, 0] = b / beta
    for j in range(k):
        q = A.dot(Q[:, j])
        for i in range(j + 1):
            h[i, j] = np.dot(Q[:, i].conj(), q)
            q -= h[i, j] * Q[:, i]
        h[j + 1, j] = np.linalg.norm(q)
        if h[j + 1, j] > 1e-12:
            Q[:, j + 1] = q / h[j + 1, j]
    e1 = np.zeros(k + 1)
    e1[0] = beta
    y, *_ = np.linalg.lstsq(h, e1, rcond=None)
    return Q[:, :k] @ y


@program("blog", lambda rng, n, m: (matrix(rng, n, m), 2), (9, 6), (7, 13))
def low_rank(X, k):
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    Xk = U[:, :k] @ np.diag(s[:k]) @ Vt[:k, :]
    return Xk, np.linalg.norm(X - Xk), np.cumsum(s**2) / np.sum(s**2)


@program("stackoverflow", lambda rng, n: (rng.random(n), rng.random(n) * 2 + 1), 9, 16)
def linear_fit(x, y):
    A = np.vstack([x, np.ones(len(x))]).T
    m, c = np.linalg.lstsq(A, y, rcond=None)[0]
    return m, c


@program("stackoverflow", lambda rng, n, m: (matrix(rng, n, m), rng.random(n)), (9, 4), (13, 3))
def normal_equations(X, y, lam=0.1):
    XtX = X.T @ X
    XtX[np.diag_indices_from(XtX)] += lam
    theta = np.linalg.inv(XtX).dot(X.T).dot(y)
    residual = y - X @ theta
    return theta, (residual**2).sum()


@program("textbook", lambda rng, n: (matrix(rng, n) * 0.3,), 4, 6)
def expm_taylor(A, terms=12):
    result = np.eye(*A.shape)
    term = np.eye(*A.shape)
    for k in range(1, terms + 1):
        term = term.dot(A) / k
        result += term
    return result


@program("textbook", lambda rng, n: (dominant(rng, n), rng.random(n), 1.1), 6, 9)
def sor(A, b, omega, max_iter=10):
    x = np.zeros(b.shape)
    for _ in range(max_iter):
        for i in range(b.size):
            sigma = A[i] @ x - A[i, i] * x[i]
            x[i] = (1 - omega) * x[i] + omega / A[i, i] * (b[i] - sigma)
        if np.max(np.abs(A @ x - b)) < 1e-9:
            return x
    return x


@program(
    "scipy", lambda rng, a, b: (matrix(rng, a), matrix(rng, b), matrix(rng, a, b)), (3, 4), (5, 2)
)
def block_diagonal(A, B, C):
    M = np.block([[A, C], [np.zeros((B.shape[0], A.shape[1])), B]])
    return M, np.kron(A, B), np.trace(M), np.linalg.det(A)


@program("stackoverflow", lambda rng, n: (rng.integers(-3, 4, (n, n)),), 4, 5)
def is_symmetric(a, tol=1e-8):
    sym = (a + a.T) // 2
    return (
        np.allclose(a, a.T, atol=tol),
        np.array_equal(sym, sym.T),
        np.all(np.abs(sym - sym.T) < tol),
    )


@program(
    "einsum guide",
    lambda rng, n, m: (matrix(rng, n, m), matrix(rng, m, n), rng.random((3, n, m))),
    (4, 5),
    (7, 3),
)
def einsum_tour(A, B, batch):
    products = np.einsum("ij,jk->ik", A, B)
    hadamard = np.einsum("ij,ji->ij", A, B)
    diagonal = np.einsum("ii->i", products)
    row_sums = np.einsum("ij->i", A)
    gram = np.einsum("bij,bkj->bik", batch, batch)
    return products, hadamard, diagonal, row_sums, gram, np.einsum("ij,ij", A, B.T)


@program(
    "textbook",
    lambda rng, n: (dominant(rng, n) + 1j * matrix(rng, n), rng.random(n) + 1j * rng.random(n)),
    4,
    7,
)
def bicgstab_complex(A, b):
    x = np.zeros_like(b)
    r = b - A @ x
    rhat = r.copy()
    rho = alpha = omega = 1
    v = p = np.zeros_like(b)
    for i in range(1, 4):
        rho_new = np.vdot(rhat, r)
        beta = (rho_new / rho) * (alpha / omega)
        rho = rho_new
        p = r + beta * (p - omega * v)
        v = A @ p
        alpha = rho / np.vdot(rhat, v)
        s = r - alpha * v
        t = A @ s
        omega = np.vdot(t, s) / np.vdot(t, t)
        x += alpha * p + omega * s
        r = s - omega * t
        if np.linalg.norm(r) < 1e-12:
            break
    return x
