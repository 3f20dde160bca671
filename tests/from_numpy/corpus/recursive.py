"""Programs that call themselves: sorts, transforms, products, trees, backtracking, memo tables."""

from functools import cache, lru_cache

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("recursion")


def _merge(left, right):
    result = np.empty(len(left) + len(right))
    i = j = k = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result[k] = left[i]
            i += 1
        else:
            result[k] = right[j]
            j += 1
        k += 1
    while i < len(left):
        result[k] = left[i]
        i += 1
        k += 1
    while j < len(right):
        result[k] = right[j]
        j += 1
        k += 1
    return result


@program("textbook", lambda rng, n: (rng.random(n),), 7, 12)
def merge_sort_recursive(arr):
    """Sort an array by splitting it in halves."""
    if len(arr) <= 1:
        return arr
    mid = len(arr) // 2
    left = merge_sort_recursive(arr[:mid])
    right = merge_sort_recursive(arr[mid:])
    return _merge(left, right)


@program("wikipedia", lambda rng, n: (rng.random(n) + 1j * rng.random(n),), 8, 16)
def fft_cooley_tukey(x):
    N = x.shape[0]
    if N % 2 > 0:
        return x
    even = fft_cooley_tukey(x[::2])
    odd = fft_cooley_tukey(x[1::2])
    factor = np.exp(-2j * np.pi * np.arange(N) / N)
    return np.concatenate([even + factor[: N // 2] * odd, even + factor[N // 2 :] * odd])


@program("geeksforgeeks", lambda rng, n: (rng.random((n, n)), rng.random((n, n))), 4, 8)
def strassen(A, B):
    n = len(A)
    if n <= 2:
        return A @ B
    mid = n // 2
    A11, A12, A21, A22 = A[:mid, :mid], A[:mid, mid:], A[mid:, :mid], A[mid:, mid:]
    B11, B12, B21, B22 = B[:mid, :mid], B[:mid, mid:], B[mid:, :mid], B[mid:, mid:]
    P1 = strassen(A11, B12 - B22)
    P2 = strassen(A11 + A12, B22)
    P3 = strassen(A21 + A22, B11)
    P4 = strassen(A22, B21 - B11)
    P5 = strassen(A11 + A22, B11 + B22)
    P6 = strassen(A12 - A22, B21 + B22)
    P7 = strassen(A11 - A21, B11 + B12)
    C11 = P5 + P4 - P2 + P6
    C12 = P1 + P2
    C21 = P3 + P4
    C22 = P5 + P1 - P3 - P7
    return np.vstack((np.hstack((C11, C12)), np.hstack((C21, C22))))


def partition(a, lo, hi):
    pivot = a[hi]
    i = lo - 1
    for j in range(lo, hi):
        if a[j] <= pivot:
            i += 1
            a[i], a[j] = a[j], a[i]
    a[i + 1], a[hi] = a[hi], a[i + 1]
    return i + 1


@program("geeksforgeeks", lambda rng, n: (rng.random(n),), 6, 9)
def quicksort_with_stack(a):
    stack = [(0, len(a) - 1)]
    while stack:
        lo, hi = stack.pop()
        if lo < hi:
            p = partition(a, lo, hi)
            stack.append((lo, p - 1))
            stack.append((p + 1, hi))
    return a


@program("textbook", lambda rng, n: (n,), 10, 15)
def fibonacci_memo(n):
    memo = {}

    def fib(k):
        if k in memo:
            return memo[k]
        if k <= 1:
            return k
        memo[k] = fib(k - 1) + fib(k - 2)
        return memo[k]

    return fib(n)


@program("rosetta", lambda rng, n: (rng.random((n, n)),), 3, 4)
def determinant_by_minors(m):
    def minor(a, j):
        return np.delete(np.delete(a, 0, axis=0), j, axis=1)

    def det(a):
        if a.shape[0] == 1:
            return a[0, 0]
        total = 0.0
        for j in range(a.shape[1]):
            total += (-1) ** j * a[0, j] * det(minor(a, j))
        return total

    return det(m)


@program("rosetta", lambda rng, n: (n,), 3, 5)
def hanoi_moves(n):
    moves = []

    def move(k, source, target, spare):
        if k == 0:
            return
        move(k - 1, source, spare, target)
        moves.append((source, target))
        move(k - 1, spare, target, source)

    move(n, 0, 2, 1)
    return len(moves), np.array(moves)


@program("textbook", lambda rng, n: (rng.random(n), 0.1), 4, 9)
def adaptive_simpson(c, tol):
    def f(x):
        s = 0.0
        for k in range(len(c)):
            s = s * x + c[k]
        return s

    def simpson(a, b):
        return (b - a) / 6 * (f(a) + 4 * f((a + b) / 2) + f(b))

    def recurse(a, b, depth):
        m = (a + b) / 2
        if depth == 0:
            return simpson(a, m) + simpson(m, b)
        return recurse(a, m, depth - 1) + recurse(m, b, depth - 1)

    return recurse(0.0, 1.0, 3)


@program("textbook", lambda rng, n: (rng.integers(1, 20, n), rng.random(n) * 10, 15), 4, 6)
def knapsack_memoised(weights, values, capacity):
    @lru_cache(maxsize=None)
    def best(i, room):
        if i == 4:
            return 0.0
        without = best(i + 1, room)
        if weights[i] > room:
            return without
        return max(without, values[i] + best(i + 1, room - weights[i]))

    return best(0, capacity)


@program("rosetta", lambda rng, n: (n, 2), 5, 6)
def binomial_cached(n, k):
    @cache
    def choose(n, k):
        if k == 0 or k == n:
            return 1
        return choose(n - 1, k - 1) + choose(n - 1, k)

    return np.array([choose(n, j) for j in range(k + 1)])


@program("textbook", lambda rng, n: (rng.random(n),), 8, 13)
def pairwise_summation(x):
    n = len(x)
    if n <= 3:
        s = 0.0
        for v in x:
            s += v
        return s
    m = n // 2
    return pairwise_summation(x[:m]) + pairwise_summation(x[m:])


@program("codeforces", lambda rng, n: (rng.random((n, 2)),), 6, 9)
def closest_pair_divide(points):
    pts = points[np.argsort(points[:, 0])]

    def brute(p):
        best = np.inf
        for i in range(len(p)):
            for j in range(i + 1, len(p)):
                d = np.sqrt(((p[i] - p[j]) ** 2).sum())
                if d < best:
                    best = d
        return best

    def solve(p):
        if len(p) <= 3:
            return brute(p)
        mid = len(p) // 2
        d = min(solve(p[:mid]), solve(p[mid:]))
        for i in range(len(p)):
            for j in range(i + 1, len(p)):
                if p[j, 0] - p[i, 0] < d:
                    d = min(d, np.hypot(*(p[i] - p[j])))
        return d

    return solve(pts)


@program("wikipedia", lambda rng, n: (rng.random(n),), 8, 16)
def haar_recursive(signal):
    if len(signal) == 1:
        return signal
    a = (signal[0::2] + signal[1::2]) / np.sqrt(2)
    d = (signal[0::2] - signal[1::2]) / np.sqrt(2)
    return np.append(haar_recursive(a), d)


@program("rosetta", lambda rng, n: (rng.integers(0, 50, n), rng.integers(0, 50, n)), 5, 8)
def gcds_recursive(a, b):
    def gcd(p, q):
        return p if q == 0 else gcd(q, p % q)

    return np.array([gcd(int(x), int(y)) for x, y in zip(a, b)])


def _grow(X, y, depth):
    if depth == 0 or len(y) < 2:
        return {"value": y.mean()}
    feature = depth % X.shape[1]
    order = np.argsort(X[:, feature])
    half = len(y) // 2
    left, right = order[:half], order[half:]
    return {
        "feature": feature,
        "threshold": X[order[half], feature],
        "left": _grow(X[left], y[left], depth - 1),
        "right": _grow(X[right], y[right], depth - 1),
    }


def _predict(node, x):
    if "value" in node:
        return node["value"]
    if x[node["feature"]] < node["threshold"]:
        return _predict(node["left"], x)
    return _predict(node["right"], x)


@program("blog", lambda rng, n: (rng.random((n, 2)), rng.random(n)), 8, 11)
def median_tree(X, y):
    tree = _grow(X, y, 2)
    return np.array([_predict(tree, row) for row in X])


@program("rosetta", lambda rng, n: (n,), 3, 4)
def permutations_by_swapping(n):
    found = []

    def permute(items, k=0):
        if k == len(items):
            found.append(items[:])
            return
        for i in range(k, len(items)):
            items[k], items[i] = items[i], items[k]
            permute(items, k + 1)
            items[k], items[i] = items[i], items[k]

    permute(list(range(n)))
    return np.array(found)


@program("textbook", lambda rng, n: (rng.random(n), rng.random(n)), 5, 9)
def karatsuba_polynomials(p, q):
    def mul(a, b):
        n = len(a)
        if n == 1:
            return a * b
        h = n // 2
        lo = mul(a[:h], b[:h])
        hi = mul(a[h:], b[h:])
        out = np.zeros(2 * n - 1)
        out[: 2 * h - 1] += lo
        out[2 * h :] += hi
        cross = np.convolve(a[:h], b[h:]) + np.convolve(a[h:], b[:h])
        out[h : h + len(cross)] += cross
        return out

    return mul(p, q)
