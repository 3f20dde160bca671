"""Programs as solutions of programming tasks have them: lists, stacks, queues and dictionaries."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("programming tasks")


def numbers(rng, n, low=0, high=20):
    return rng.integers(low, high, n)


@program("rosetta", lambda rng, n: (n,), 30, 50)
def sieve_of_eratosthenes(limit):
    is_prime = [True] * (limit + 1)
    is_prime[0] = is_prime[1] = False
    for i in range(2, int(limit**0.5) + 1):
        if is_prime[i]:
            for j in range(i * i, limit + 1, i):
                is_prime[j] = False
    return [i for i, p in enumerate(is_prime) if p]


@program("rosetta", lambda rng, n: (np.array([6, 11, 27]),), 3)
def hailstone_lengths(starts):
    def hailstone(n):
        seq = [n]
        while n > 1:
            n = 3 * n + 1 if n & 1 else n // 2
            seq.append(n)
        return seq

    lengths = np.zeros(len(starts), dtype=int)
    for i, s in enumerate(starts):
        lengths[i] = len(hailstone(s))
    return lengths


@program("rosetta", lambda rng, n: (numbers(rng, n, 2, 200),), 6, 9)
def prime_factors_of_each(values):
    counts = np.zeros(len(values), dtype=int)
    largest = np.zeros(len(values), dtype=int)
    for k in range(len(values)):
        n = values[k]
        factors = []
        d = 2
        while d * d <= n:
            while n % d == 0:
                factors.append(d)
                n //= d
            d += 1
        if n > 1:
            factors.append(n)
        counts[k] = len(factors)
        largest[k] = factors[-1]
    return counts, largest


@program("rosetta", lambda rng, n: (numbers(rng, n),), 9, 14)
def longest_increasing_by_piles(d):
    tails = []
    for x in d:
        lo, hi = 0, len(tails)
        while lo < hi:
            mid = (lo + hi) // 2
            if tails[mid] < x:
                lo = mid + 1
            else:
                hi = mid
        if lo == len(tails):
            tails.append(x)
        else:
            tails[lo] = x
    return len(tails)


@program("rosetta", lambda rng, n: (numbers(rng, n),), 8, 12)
def water_between_towers(towers):
    n = len(towers)
    highest_left = [0] * n
    highest_right = [0] * n
    for i in range(1, n):
        highest_left[i] = max(highest_left[i - 1], towers[i - 1])
    for i in range(n - 2, -1, -1):
        highest_right[i] = max(highest_right[i + 1], towers[i + 1])
    return sum(max(min(highest_left[i], highest_right[i]) - towers[i], 0) for i in range(n))


@program("rosetta", lambda rng, n: (numbers(rng, n, 0, 6),), 12, 20)
def run_lengths(values):
    runs = []
    count = 1
    for i in range(1, len(values)):
        if values[i] == values[i - 1]:
            count += 1
        else:
            runs.append((values[i - 1], count))
            count = 1
    runs.append((values[-1], count))
    return np.array(runs)


@program("rosetta", lambda rng, n: (numbers(rng, n),), 8, 12)
def gnome_sort(values):
    a = list(values)
    i, j = 1, 2
    while i < len(a):
        if a[i - 1] <= a[i]:
            i, j = j, j + 1
        else:
            a[i - 1], a[i] = a[i], a[i - 1]
            i -= 1
            if i == 0:
                i, j = j, j + 1
    return np.array(a)


@program("rosetta", lambda rng, n: (numbers(rng, n),), 8, 12)
def merge_sorted_halves(values):
    middle = len(values) // 2
    left, right = np.sort(values[:middle]), np.sort(values[middle:])
    result = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            result.append(left[i])
            i += 1
        else:
            result.append(right[j])
            j += 1
    while i < len(left):
        result.append(left[i])
        i += 1
    while j < len(right):
        result.append(right[j])
        j += 1
    return np.array(result)


@program("rosetta", lambda rng, n: (rng.integers(0, 2, (n, n)),), 5, 7)
def count_islands_of_ones(grid):
    rows, cols = grid.shape
    seen = np.zeros(grid.shape, dtype=bool)
    islands = 0
    for r in range(rows):
        for c in range(cols):
            if grid[r, c] == 1 and not seen[r, c]:
                islands += 1
                stack = [(r, c)]
                seen[r, c] = True
                while stack:
                    i, j = stack.pop()
                    for di, dj in [(-1, 0), (1, 0), (0, -1), (0, 1)]:
                        a, b = i + di, j + dj
                        if 0 <= a < rows and 0 <= b < cols:
                            if grid[a, b] == 1 and not seen[a, b]:
                                seen[a, b] = True
                                stack.append((a, b))
    return islands


@program("rosetta", lambda rng, n: ((rng.random((n, n)) < 0.7).astype(int),), 6, 8)
def shortest_path_in_grid(grid):
    n, m = grid.shape
    dist = -np.ones((n, m), dtype=int)
    dist[0, 0] = 0
    queue = deque([(0, 0)])
    while queue:
        r, c = queue.popleft()
        for dr, dc in ((0, 1), (1, 0), (0, -1), (-1, 0)):
            nr, nc = r + dr, c + dc
            if nr < 0 or nc < 0 or nr >= n or nc >= m:
                continue
            if grid[nr, nc] == 0 or dist[nr, nc] != -1:
                continue
            dist[nr, nc] = dist[r, c] + 1
            queue.append((nr, nc))
    return dist


@program("rosetta", lambda rng, n: (np.round(rng.random((n, 2)) * 10),), 8, 12)
def monotone_chain(points):
    order = np.lexsort((points[:, 1], points[:, 0]))
    pts = points[order]

    def cross(o, a, b):
        return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])

    lower = []
    for p in pts:
        while len(lower) >= 2 and cross(lower[-2], lower[-1], p) <= 0:
            lower.pop()
        lower.append(p)
    upper = []
    for p in pts[::-1]:
        while len(upper) >= 2 and cross(upper[-2], upper[-1], p) <= 0:
            upper.pop()
        upper.append(p)
    return np.array(lower[:-1] + upper[:-1])


@program("rosetta", lambda rng, n: (numbers(rng, n, 1, 9),), 8, 12)
def stock_spans(prices):
    n = len(prices)
    span = np.ones(n, dtype=int)
    stack = []
    for i in range(n):
        while stack and prices[stack[-1]] <= prices[i]:
            stack.pop()
        span[i] = i + 1 if not stack else i - stack[-1]
        stack.append(i)
    return span


@program("rosetta", lambda rng, n: (numbers(rng, n, 1, 9), 3), 9, 13)
def sliding_window_maximum(nums, k):
    window = deque()
    result = []
    for i, x in enumerate(nums):
        while window and nums[window[-1]] < x:
            window.pop()
        window.append(i)
        if window[0] <= i - k:
            window.popleft()
        if i >= k - 1:
            result.append(nums[window[0]])
    return result


@program("rosetta", lambda rng, n: (rng.integers(0, 8, n),), 9, 13)
def remove_duplicates_in_order(values):
    seen = set()
    unique = []
    for v in values:
        if v not in seen:
            seen.add(v)
            unique.append(v)
    return unique


@program("rosetta", lambda rng, n: (numbers(rng, n, 1, 30), 30), 9, 13)
def two_sum_pairs(a, target):
    pairs = []
    for i in range(len(a)):
        for j in range(i + 1, len(a)):
            if a[i] + a[j] == target:
                pairs.append((i, j))
    return len(pairs), pairs


@program("rosetta", lambda rng, n: (n,), 6, 9)
def josephus(n, k=3):
    people = list(range(n))
    order = []
    pos = 0
    while people:
        pos = (pos + k - 1) % len(people)
        order.append(people.pop(pos))
    return order


@program("rosetta", lambda rng, n: (rng.integers(0, 50, n),), 7, 9)
def to_binary_digits(values):
    out = []
    for v in values:
        bits = []
        while v > 0:
            bits.append(v % 2)
            v //= 2
        out.append(sum(bits))
    return np.array(out)


@program("rosetta", lambda rng, n: (numbers(rng, n),), 9, 12)
def quickselect_median(values):
    a = np.array(values)
    k = len(a) // 2
    while len(a) > 1:
        pivot = a[len(a) // 2]
        low = a[a < pivot]
        equal = a[a == pivot]
        if k < len(low):
            a = low
        elif k < len(low) + len(equal):
            return pivot
        else:
            k -= len(low) + len(equal)
            a = a[a > pivot]
    return a[0]


@program("rosetta", lambda rng, n: (rng.random(n),), 12, 20)
def local_maxima(y):
    peaks = []
    for i in range(1, len(y) - 1):
        if y[i - 1] < y[i] > y[i + 1]:
            peaks.append(i)
    if not peaks:
        return np.array([]), 0.0
    return np.array(peaks), max(y[p] for p in peaks)


@program("rosetta", lambda rng, n: (rng.random(n) * 10, 4.0), 8, 12)
def greedy_bins(weights, capacity):
    bins = []
    for w in weights:
        placed = False
        for b in range(len(bins)):
            if bins[b] + w <= capacity * 3:
                bins[b] += w
                placed = True
                break
        if not placed:
            bins.append(w)
    return len(bins), np.array(bins)


@program("rosetta", lambda rng, n: (rng.integers(0, 10, n), rng.integers(1, 6, n)), 7, 10)
def activity_selection(start, length):
    finish = start + length
    order = np.argsort(finish, kind="stable")
    chosen = [order[0]]
    for i in order[1:]:
        if start[i] >= finish[chosen[-1]]:
            chosen.append(i)
    return np.array(chosen)


@program("rosetta", lambda rng, n: (rng.integers(0, 5, n),), 12, 17)
def count_with_dictionary(values):
    counts = {}
    for v in values:
        counts[int(v)] = counts.get(int(v), 0) + 1
    return sorted(counts.items())


@program("rosetta", lambda rng, n: (0.0, 1.0, n), 10)
def euler_until(t0, y0, n):
    times, values = [t0], [y0]
    h = 0.1
    while values[-1] > 0.2 and len(times) < 100:
        values.append(values[-1] + h * (-2 * values[-1]))
        times.append(times[-1] + h)
    return np.array(times), np.array(values)


@program("rosetta", lambda rng, n: (2.0,), 1)
def newton_history(x0, tol=1e-10, maxiter=50):
    f = lambda x: x**2 - 2
    df = lambda x: 2 * x
    history = [x0]
    x = x0
    for _ in range(maxiter):
        x_new = x - f(x) / df(x)
        history.append(x_new)
        if abs(x_new - x) < tol:
            break
        x = x_new
    return np.array(history)


@program("rosetta", lambda rng, n: (rng.random((n, n)) + n * np.eye(n), rng.random(n)), 5, 8)
def jacobi_with_history(A, b):
    x = np.zeros_like(b)
    D = np.diag(A)
    R = A - np.diagflat(D)
    errors = []
    while True:
        x_new = (b - R @ x) / D
        errors.append(np.linalg.norm(x_new - x))
        x = x_new
        if errors[-1] < 1e-8 or len(errors) >= 200:
            break
    return x, len(errors), errors[-1] < 1e-8


@program("rosetta", lambda rng, n: (rng.integers(0, 2, n),), 12, 20)
def rpn_of_bits(bits):
    stack = []
    for b in bits:
        if b == 1 or len(stack) < 2:
            stack.append(len(stack) + 1)
        else:
            y = stack.pop()
            x = stack.pop()
            stack.append(x + y)
    return stack[-1], len(stack)


@program("rosetta", lambda rng, n: (rng.integers(1, 20, n), 30), 6, 8)
def knapsack_items(weights, capacity):
    n = len(weights)
    best = np.zeros((n + 1, capacity + 1), dtype=int)
    for i in range(1, n + 1):
        for w in range(capacity + 1):
            best[i, w] = best[i - 1, w]
            if weights[i - 1] <= w:
                best[i, w] = max(best[i, w], best[i - 1, w - weights[i - 1]] + weights[i - 1])
    items = []
    w = capacity
    for i in range(n, 0, -1):
        if best[i, w] != best[i - 1, w]:
            items.append(i - 1)
            w -= weights[i - 1]
    return best[n, capacity], items[::-1]


@program("rosetta", lambda rng, n: (np.triu(rng.integers(1, 9, (n, n)), 1),), 6, 8)
def dijkstra_with_path(W):
    W = W + W.T
    n = len(W)
    dist = [math.inf] * n
    prev = [-1] * n
    done = [False] * n
    dist[0] = 0.0
    for _ in range(n):
        u = -1
        for v in range(n):
            if not done[v] and (u == -1 or dist[v] < dist[u]):
                u = v
        done[u] = True
        for v in range(n):
            if W[u, v] > 0 and dist[u] + W[u, v] < dist[v]:
                dist[v] = dist[u] + W[u, v]
                prev[v] = u
    path = []
    node = n - 1
    while node != -1:
        path.append(node)
        node = prev[node]
    return np.array(dist), path[::-1]


@program("rosetta", lambda rng, n: (np.triu((rng.random((n, n)) < 0.4).astype(int), 1),), 7, 9)
def components_with_union_find(adjacency):
    n = len(adjacency)
    parent = np.arange(n)

    def find(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    for i in range(n):
        for j in range(i + 1, n):
            if adjacency[i, j]:
                a, b = find(i), find(j)
                if a != b:
                    parent[b] = a
    roots = [find(i) for i in range(n)]
    return len(np.unique(roots))


@program("rosetta", lambda rng, n: (np.triu((rng.random((n, n)) < 0.5).astype(int), 1),), 6, 8)
def adjacency_lists(A):
    n = len(A)
    neighbours = [[] for _ in range(n)]
    for i in range(n):
        for j in range(n):
            if A[i, j]:
                neighbours[i].append(j)
                neighbours[j].append(i)
    level = [-1] * n
    level[0] = 0
    frontier = [0]
    while frontier:
        following = []
        for u in frontier:
            for v in neighbours[u]:
                if level[v] == -1:
                    level[v] = level[u] + 1
                    following.append(v)
        frontier = following
    return np.array(level)
