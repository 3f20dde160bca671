"""Idioms of NumPy and Python: tutorials, exercises, answers to questions, tasks of Rosetta Code."""

import itertools
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("idioms")


@program("100 NumPy exercises", lambda rng, n: (rng.random((n, 3)), rng.integers(0, 5, n)), 9, 6)
def exercises_five(z, g):
    centred = z - z.mean(axis=1, keepdims=True)
    ordered = z[z[:, 1].argsort()]
    has_zero = (~g.any()) | (g == 0).any()
    nearest = z.flat[np.abs(z - 0.5).argmin()]
    unique, counts = np.unique(g, return_counts=True)
    swapped = z.copy()
    swapped[[0, 1]] = swapped[[1, 0]]
    return centred, ordered, has_zero, nearest, unique, counts, swapped


@program("100 NumPy exercises", lambda rng, n: (rng.integers(0, 10, n), rng.random(n)), 12)
def exercises_six(index, weights):
    f = np.bincount(index, weights=weights, minlength=10)
    z = np.zeros(10)
    np.add.at(z, index, 1)
    z[index] += 100
    most = np.bincount(index).argmax()
    top = weights[np.argpartition(-weights, 3)[:3]]
    return f, z, most, np.sort(top)


@program("100 NumPy exercises", lambda rng, n: (rng.random((n, n)), rng.random(n)), 5, 8)
def exercises_seven(m, v):
    m[np.diag_indices_from(m)] = 0
    upper = m[np.triu_indices_from(m, 1)]
    rank = np.linalg.matrix_rank(m)
    inner, outer = np.einsum("i,i", v, v), np.einsum("i,j->ij", v, v)
    means = v[: len(v) // 2 * 2].reshape(-1, 2).mean(axis=-1)
    cut = np.where(v > 0.5, 0.5, v)
    return upper, rank, inner, outer, means, cut, np.sqrt(((m[:, None] - m) ** 2).sum(-1))


@program("Stack Overflow", lambda rng, n: (rng.integers(0, 4, n), rng.random(n)), 15, 8)
def group_by(keys, values):
    order = np.argsort(keys, kind="stable")
    keys, values = keys[order], values[order]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    sums = np.add.reduceat(values, starts)
    sizes = np.diff(np.r_[starts, len(keys)])
    return keys[starts], sums / sizes, np.maximum.reduceat(values, starts)


@program("Stack Overflow", lambda rng, n: (rng.random(n), rng.random(n) > 0.3), 17, 10)
def fill_gaps(x, valid):
    idx = np.where(valid, np.arange(len(x)), 0)
    np.maximum.accumulate(idx, out=idx)
    forward = x[idx]
    y = x.copy()
    y[~valid] = np.nan
    nans = np.isnan(y)
    y[nans] = np.interp(np.flatnonzero(nans), np.flatnonzero(~nans), y[~nans])
    return forward, y, nans.sum()


@program("Stack Overflow", lambda rng, n: ((rng.random(n) > 0.4).astype(np.int64),), 20, 13)
def longest_run_of_ones(bits):
    padded = np.concatenate(([0], bits, [0]))
    change = np.flatnonzero(np.diff(padded))
    starts, stops = change[::2], change[1::2]
    lengths = stops - starts
    if lengths.size == 0:
        return 0, -1
    best = lengths.argmax()
    return lengths[best], starts[best]


@program("Stack Overflow", lambda rng, n: (rng.random((n, 4)), rng.random((n + 2, 4))), 5)
def cosine_similarity(a, b):
    a_norm = a / np.linalg.norm(a, axis=1)[:, np.newaxis]
    b_norm = b / np.linalg.norm(b, axis=1)[:, np.newaxis]
    sim = a_norm @ b_norm.T
    best = np.argsort(sim, axis=1)[:, ::-1][:, :2]
    return sim, best, np.take_along_axis(sim, best, axis=1)


@program("Stack Overflow", lambda rng, n: (rng.integers(0, 256, n).astype(np.uint8),), 24)
def bits_and_bytes(data):
    bits = np.unpackbits(data.reshape(-1, 1), axis=1)
    parity = bits.sum(axis=1) % 2
    high, low = data >> 4, data & 0x0F
    checksum = 0
    for byte in data:
        checksum = (checksum + int(byte)) & 0xFF
    return bits, parity, high * 16 + low, checksum ^ 0xFF


@program("Rosetta Code", lambda rng, n: (rng.integers(1, 60, n),), 6)
def egyptian_multiplication(numbers):
    def halve(x):
        return x // 2

    def multiply(a, b):
        total = 0
        while a >= 1:
            if a % 2 == 1:
                total += b
            a, b = halve(a), b * 2
        return total

    result = 1
    for x in numbers:
        result = multiply(x, result) % 10007
    return result


@program("Rosetta Code", lambda rng, n: (n,), 12, 30)
def ulam_spiral(n):
    x = y = 0
    dx, dy = 0, -1
    found = []
    for i in range(n):
        found.append((x, y))
        if x == y or (x < 0 and x == -y) or (x > 0 and x == 1 - y):
            dx, dy = -dy, dx
        x, y = x + dx, y + dy
    pts = np.array(found)
    return pts, np.abs(pts).sum(axis=1)


@program("Rosetta Code", lambda rng, n: (rng.integers(0, 9, (n, n)).astype(float),), 4, 3)
def determinant_and_permanent(a):
    n = len(a)
    det = perm = 0.0
    for p in itertools.permutations(range(n)):
        sign = 1
        for i in range(n):
            for j in range(i):
                if p[j] > p[i]:
                    sign = -sign
        prod = 1.0
        for i, j in enumerate(p):
            prod *= a[i, j]
        det += sign * prod
        perm += prod
    return det, perm


@program("Rosetta Code", lambda rng, n: (rng.integers(0, 100, n),), 11)
def comb_sort(data):
    gap, swapped = len(data), True
    while gap > 1 or swapped:
        gap = max(1, int(gap / 1.3))
        swapped = False
        for i in range(len(data) - gap):
            if data[i] > data[i + gap]:
                data[i], data[i + gap] = data[i + gap], data[i]
                swapped = True
    return data


@program("Rosetta Code", lambda rng, n: (rng.integers(0, 2, n),), 9)
def gray_codes(bits):
    n = len(bits)
    value = int("".join("0" for _ in range(0)) or "0")
    for b in bits:
        value = value * 2 + b
    gray = value ^ (value >> 1)
    back, shift = gray, 1
    while shift < n:
        back ^= back >> shift
        shift *= 2
    table = np.arange(16)
    return gray, back, table ^ (table >> 1)


@program("Rosetta Code", lambda rng, n: (rng.random((n, 2)),), 7)
def ray_casting(points):
    square = np.array([[0.2, 0.2], [0.8, 0.3], [0.7, 0.9], [0.1, 0.7]])
    inside = np.zeros(len(points), dtype=bool)
    for k, (px, py) in enumerate(points):
        j = len(square) - 1
        for i in range(len(square)):
            xi, yi = square[i]
            xj, yj = square[j]
            if (yi > py) != (yj > py) and px < (xj - xi) * (py - yi) / (yj - yi) + xi:
                inside[k] = not inside[k]
            j = i
    return inside


@dataclass
class Account:
    balance: float
    rate: float = 0.02
    log: list = field(default_factory=list)

    def deposit(self, amount):
        if amount < 0:
            raise ValueError(f"a deposit of {amount}")
        self.balance += amount
        self.log.append(amount)

    def year(self):
        self.balance *= 1 + self.rate


@program("tutorial of classes", lambda rng, n: (rng.random(n) * 100,), 5)
def savings(deposits):
    account = Account(100.0)
    balances = []
    for amount in deposits:
        account.deposit(amount)
        account.year()
        balances.append(account.balance)
    return np.array(balances), len(account.log), account.balance > 100


def windows(x, size, step=1):
    for start in range(0, len(x) - size + 1, step):
        yield x[start : start + size]


@program("tutorial of generators", lambda rng, n: (rng.random(n),), 13, 8)
def generated_windows(x):
    spread = [np.ptp(w) for w in windows(x, 3)]
    peak = max(w.sum() for w in windows(x, 4, step=2))
    pairs = sum(a * b for a, b in zip(x, x[1:]))
    return np.array(spread), peak, pairs


@program("tutorial of dictionaries", lambda rng, n: (rng.random((n, 3)),), 6)
def named_columns(table):
    columns = dict(zip(("mass", "speed", "height"), table.T))
    columns["energy"] = 0.5 * columns["mass"] * columns["speed"] ** 2
    columns["energy"] += 9.81 * columns["mass"] * columns.pop("height")
    summary = {k: (v.min(), v.max()) for k, v in sorted(columns.items())}
    return summary, list(columns)


@program("tutorial of collections", lambda rng, n: (rng.random(n),), 5)
def counted_letters(x, text="the quick brown fox jumps over the lazy dog"):
    counts = Counter(text.replace(" ", ""))
    by_length = defaultdict(list)
    for word in text.split():
        by_length[len(word)].append(word)
    weights = np.array([counts[c] for c in "aeiou"])
    return weights @ x, {k: len(v) for k, v in by_length.items()}, counts.most_common(1)[0][1]


@program("From Python to NumPy", lambda rng, n: (rng.random((n, 2)) * 2 - 1,), 10)
def escape_counts(points, limit=20):
    c = points[:, 0] + 1j * points[:, 1]
    z = np.zeros_like(c)
    counts = np.zeros(c.shape, dtype=int)
    alive = np.ones(c.shape, dtype=bool)
    while alive.any() and counts.max() < limit:
        z[alive] = z[alive] ** 2 + c[alive]
        alive &= np.abs(z) < 2
        counts[alive] += 1
    return counts


@program("From Python to NumPy", lambda rng, n: (rng.random((n, n)),), 6, 9)
def tiled_views(Z):
    inner = Z[1:-1, 1:-1]
    inner *= 2
    Z[::2, ::2], border = 0, Z[[0, -1]].copy()
    edge = Z[:, -1]
    edge -= edge.mean()
    np.clip(Z, -0.5, 1.5, out=Z)
    Z[Z == Z.max()] = -1
    return border, inner.sum()


@program("scipy lectures", lambda rng, n: (rng.random(n), rng.random(n)), 10, 7)
def fit_line_robustly(x, y, iterations=5):
    A = np.vander(x, 2)
    w = np.ones_like(y)
    for _ in range(iterations):
        coef, *_ = np.linalg.lstsq(A * w[:, None], y * w, rcond=None)
        r = np.abs(y - A @ coef)
        w = 1 / np.sqrt(np.maximum(r, 1e-4))
    slope, intercept = coef
    return slope, intercept, np.median(r)


@program("scipy lectures", lambda rng, n: (rng.random((n, n + 1)),), 8)
def block_mean_of_image(im, sx=2, sy=3):
    h, w = im.shape
    im = im[: h - h % sx, : w - w % sy]
    blocks = im.reshape(h // sx, sx, w // sy, sy).mean(axis=(1, 3))
    X, Y = np.ogrid[: blocks.shape[0], : blocks.shape[1]]
    mask = (X - 1) ** 2 + (Y - 1) ** 2 < 2
    blocks[~mask] = 0
    return blocks


@program("NumPy's user guide", lambda rng, n: (rng.random((n, 3)), rng.random((4, 3))), 5)
def vector_quantization(observations, codes):
    diff = codes - observations[:, np.newaxis]
    dist = np.sqrt(np.sum(diff**2, axis=-1))
    label = np.argmin(dist, axis=-1)
    return label, dist[np.arange(len(label)), label], codes[label]


@program("NumPy's user guide", lambda rng, n: (rng.integers(-4, 5, (n, 3)),), 6)
def printed_report(a, verbose=True):
    if verbose:
        print(f"shape {a.shape}, {a.size} elements of {a.dtype}")
    assert a.ndim == 2, f"{a.ndim} dimensions"
    rows = []
    for i, row in enumerate(a):
        sign = "negative" if row.sum() < 0 else "positive"
        rows.append(row.sum() if sign == "positive" else -row.sum())
    print("total: %d" % sum(rows))
    return np.array(rows), np.array2string if False else a.max()


@program("hackerrank", lambda rng, n: (rng.integers(0, 50, n),), 9)
def minimum_swaps(a):
    order = np.argsort(a, kind="stable")
    visited = np.zeros(len(a), dtype=bool)
    swaps = 0
    for i in range(len(a)):
        j, cycle = i, 0
        while not visited[j]:
            visited[j] = True
            j = order[j]
            cycle += 1
        if cycle > 0:
            swaps += cycle - 1
    return swaps


@program("signal processing blog", lambda rng, n: (rng.random(n),), 32, 20)
def cepstrum(x, order=4):
    spectrum = np.fft.rfft(x * np.hanning(len(x)))
    log_power = np.log(np.abs(spectrum) ** 2 + 1e-12)
    cep = np.fft.irfft(log_power)
    lifter = np.zeros(len(cep))
    lifter[0] = 1
    lifter[1:order] = 2
    envelope = np.exp(np.fft.rfft(cep * lifter).real)
    return cep[:order], envelope


@program("signal processing blog", lambda rng, n: (rng.random(n),), 24)
def autoregression(x, p=3):
    """Levinson and Durbin's recursion."""
    x = x - x.mean()
    r = np.correlate(x, x, mode="full")[len(x) - 1 :][: p + 1]
    a, e = np.array([1.0]), r[0]
    reflections = []
    for k in range(1, p + 1):
        acc = np.dot(a, r[k:0:-1])
        refl = -acc / e
        a = np.append(a, 0.0)
        a = a + refl * a[::-1]
        e *= 1 - refl**2
        reflections.append(refl)
    return a, e, reflections


@program("machine learning blog", lambda rng, n: (rng.random((n, 2)), rng.integers(0, 3, n)), 12)
def naive_bayes(X, y, classes=3):
    priors, means, variances = [], [], []
    for c in range(classes):
        Xc = X[y == c]
        priors.append(len(Xc) / len(X))
        means.append(Xc.mean(axis=0))
        variances.append(Xc.var(axis=0) + 1e-2)
    means, variances = np.array(means), np.array(variances)
    log_like = -0.5 * (
        np.log(2 * np.pi * variances)[None] + (X[:, None, :] - means) ** 2 / variances
    ).sum(-1)
    posterior = log_like + np.log(np.array(priors) + 1e-9)
    return posterior.argmax(1), (posterior.argmax(1) == y).mean()


@program("machine learning blog", lambda rng, n: (rng.random((n, 3)),), 9)
def minibatches(X, batch_size=4, epochs=2, lr=0.1):
    rng = np.random.default_rng(0)
    y = X @ np.array([1.0, -2.0, 0.5])
    w = np.zeros(3)
    losses = []
    for epoch in range(epochs):
        loss = 0.0
        for start in range(0, len(X), batch_size):
            xb, yb = X[start : start + batch_size], y[start : start + batch_size]
            err = xb @ w - yb
            w -= lr * 2 * xb.T @ err / len(xb)
            loss += (err**2).sum()
        losses.append(loss / len(X))
    assert losses[-1] < losses[0], "the loss must fall"
    return w, losses
