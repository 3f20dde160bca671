"""Dynamic programming."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("dynamic programming")


@program(
    "textbook",
    lambda rng, n, w: (rng.integers(1, 8, n), rng.integers(1, 20, n), w),
    (6, 13),
    (9, 20),
)
def knapsack(weights, values, capacity):
    n = len(weights)
    K = np.zeros((n + 1, capacity + 1), dtype=int)
    for i in range(1, n + 1):
        for w in range(capacity + 1):
            K[i, w] = K[i - 1, w]
            if weights[i - 1] <= w:
                K[i, w] = max(K[i, w], values[i - 1] + K[i - 1, w - weights[i - 1]])
    return K[n, capacity]


@program(
    "stackoverflow",
    lambda rng, n, w: (rng.integers(1, 8, n), rng.integers(1, 20, n), w),
    (7, 13),
    (10, 24),
)
def knapsack_by_rows(weights, values, W):
    best = np.zeros(W + 1, dtype=np.int64)
    for wt, val in zip(weights, values):
        best[wt:] = np.maximum(best[wt:], best[: W + 1 - wt] + val)
    return best


@program(
    "wikipedia", lambda rng, n, m: (rng.integers(0, 4, n), rng.integers(0, 4, m)), (7, 9), (11, 6)
)
def levenshtein(s, t):
    m, n = len(s), len(t)
    d = np.zeros((m + 1, n + 1), dtype=np.int32)
    d[:, 0] = np.arange(m + 1)
    d[0, :] = np.arange(n + 1)
    for j in range(1, n + 1):
        for i in range(1, m + 1):
            cost = 0 if s[i - 1] == t[j - 1] else 1
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + cost)
    return d[m, n], d


@program(
    "textbook", lambda rng, n, m: (rng.integers(0, 3, n), rng.integers(0, 3, m)), (7, 9), (10, 12)
)
def longest_common_subsequence(x, y):
    L = np.zeros((x.size + 1, y.size + 1), int)
    for i, a in enumerate(x):
        for j, b in enumerate(y):
            if a == b:
                L[i + 1, j + 1] = L[i, j] + 1
            else:
                L[i + 1, j + 1] = max(L[i + 1, j], L[i, j + 1])
    result = []
    i, j = x.size, y.size
    while i > 0 and j > 0:
        if L[i, j] == L[i - 1, j]:
            i -= 1
        elif L[i, j] == L[i, j - 1]:
            j -= 1
        else:
            result.append(x[i - 1])
            i, j = i - 1, j - 1
    return L[-1, -1], np.array(result[::-1])


@program("textbook", lambda rng, n: ([1, 4, 5], n), 13, 23)
def coin_change(coins, amount):
    ways = np.zeros(amount + 1, dtype=int)
    fewest = np.full(amount + 1, amount + 1)
    ways[0], fewest[0] = 1, 0
    for coin in coins:
        for a in range(coin, amount + 1):
            ways[a] += ways[a - coin]
            fewest[a] = min(fewest[a], fewest[a - coin] + 1)
    return ways[amount], fewest[amount]


@program("CLRS", lambda rng, n: (rng.integers(5, 40, n + 1),), 5, 8)
def matrix_chain_order(p):
    n = len(p) - 1
    m = np.zeros((n, n), dtype=int)
    s = np.zeros((n, n), dtype=int)
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length - 1
            m[i, j] = np.iinfo(int).max
            for k in range(i, j):
                q = m[i, k] + m[k + 1, j] + p[i] * p[k + 1] * p[j + 1]
                if q < m[i, j]:
                    m[i, j] = q
                    s[i, j] = k
    return m, s


@program(
    "bioinformatics course",
    lambda rng, n, m: (rng.integers(0, 4, n), rng.integers(0, 4, m)),
    (7, 9),
    (11, 8),
)
def smith_waterman(a, b, match=3, mismatch=-3, gap=2):
    H = np.zeros((len(a) + 1, len(b) + 1), dtype=np.int64)
    for i in range(1, H.shape[0]):
        for j in range(1, H.shape[1]):
            diagonal = H[i - 1, j - 1] + (match if a[i - 1] == b[j - 1] else mismatch)
            H[i, j] = max(diagonal, H[i - 1, j] - gap, H[i, j - 1] - gap, 0)
    i_max, j_max = np.unravel_index(H.argmax(), H.shape)
    return H, H.max(), i_max, j_max


@program("npbench", lambda rng, n: (n, rng.integers(0, 4, n)), 7, 11)
def nussinov(N, seq):
    def match(b1, b2):
        if b1 + b2 == 3:
            return 1
        else:
            return 0

    table = np.zeros((N, N), np.int32)
    for i in range(N - 1, -1, -1):
        for j in range(i + 1, N):
            if j - 1 >= 0:
                table[i, j] = np.maximum(table[i, j], table[i, j - 1])
            if i + 1 < N:
                table[i, j] = np.maximum(table[i, j], table[i + 1, j])
            if j - 1 >= 0 and i + 1 < N:
                if i < j - 1:
                    table[i, j] = np.maximum(
                        table[i, j], table[i + 1, j - 1] + match(seq[i], seq[j])
                    )
                else:
                    table[i, j] = np.maximum(table[i, j], table[i + 1, j - 1])
            for k in range(i + 1, j):
                table[i, j] = np.maximum(table[i, j], table[i, k] + table[k + 1, j])
    return table


@program("stackoverflow", lambda rng, n, m: (rng.random(n), rng.random(m)), (7, 9), (12, 5))
def dtw(s, t):
    cost = np.abs(s[:, None] - t[None, :])
    D = np.full((len(s) + 1, len(t) + 1), np.inf)
    D[0, 0] = 0
    for i in range(1, len(s) + 1):
        for j in range(1, len(t) + 1):
            D[i, j] = cost[i - 1, j - 1] + np.min([D[i - 1, j], D[i, j - 1], D[i - 1, j - 1]])
    return D[-1, -1]


@program("leetcode", lambda rng, n: (rng.integers(0, 30, n),), 9, 14)
def longest_increasing_subsequence(a):
    best = np.ones(len(a), dtype=int)
    for i in range(1, len(a)):
        smaller = a[:i] < a[i]
        if smaller.any():
            best[i] = best[:i][smaller].max() + 1
    return best.max()


@program("wikipedia", lambda rng, n: (rng.integers(-9, 10, n),), 9, 17)
def kadane(numbers):
    best_sum = current_sum = numbers[0]
    best_start = best_end = current_start = 0
    for current_end, x in enumerate(numbers[1:], start=1):
        if current_sum <= 0:
            current_start = current_end
            current_sum = x
        else:
            current_sum += x
        if current_sum > best_sum:
            best_sum, best_start, best_end = current_sum, current_start, current_end + 1
    return best_sum, best_start, best_end


@program("project euler", lambda rng, n: (np.tril(rng.integers(1, 99, (n, n))),), 5, 9)
def maximum_path_sum(triangle):
    t = triangle.copy()
    for row in range(len(t) - 2, -1, -1):
        t[row, : row + 1] += np.maximum(t[row + 1, : row + 1], t[row + 1, 1 : row + 2])
    return t[0, 0]


@program("leetcode", lambda rng, n, m: (rng.integers(0, 2, (n, m)),), (6, 8), (9, 5))
def largest_square(grid):
    dp = np.pad(np.zeros_like(grid), ((1, 0), (1, 0)))
    for i in range(grid.shape[0]):
        for j in range(grid.shape[1]):
            if grid[i][j]:
                dp[i + 1][j + 1] = 1 + min(dp[i][j + 1], dp[i + 1][j], dp[i][j])
    return dp.max() ** 2


@program("textbook", lambda rng, n: (n,), 6, 11)
def pascal_and_catalan(n):
    C = np.zeros((2 * n + 1, 2 * n + 1), dtype=np.int64)
    C[:, 0] = 1
    for i in range(1, 2 * n + 1):
        C[i, 1 : i + 1] = C[i - 1, 1 : i + 1] + C[i - 1, :i]
    k = np.arange(n)
    return C[n, : n + 1], C[2 * k, k] // (k + 1)


@program("textbook", lambda rng, n: (rng.integers(1, 9, n), 11), 6, 9)
def subset_sum(items, target):
    possible = np.zeros(target + 1, dtype=bool)
    possible[0] = True
    for item in items:
        shifted = np.zeros_like(possible)
        shifted[item:] = possible[:-item]
        possible |= shifted
    return possible, bool(possible[target])


@program("textbook", lambda rng, n: (rng.random((n, n)), rng.random(n), 0.9), 5, 7)
def value_iteration(P, rewards, gamma, theta=1e-6):
    P = P / P.sum(axis=1, keepdims=True)
    left = np.roll(P, -1, axis=1)
    V = np.zeros(len(rewards))
    while True:
        Q = np.stack([rewards + gamma * P @ V, 0.9 * rewards + gamma * left @ V])
        new_V = Q.max(axis=0)
        delta = np.max(np.abs(new_V - V))
        V = new_V
        if delta < theta:
            break
    return V, Q.argmax(axis=0)
