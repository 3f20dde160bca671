"""Algorithms of textbooks and of Rosetta code, over arrays, lists, tables and queues."""

import heapq
from collections import Counter, defaultdict, deque
from math import atan2, cos, gcd, hypot, inf, pi, sin, sqrt

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("algorithms of textbooks")


@program("wikipedia", lambda rng, n: (rng.integers(0, 4, n), rng.integers(0, 4, n + 1)), 5, 8)
def needleman_wunsch(seq1, seq2, match=1, mismatch=-1, gap=-2):
    n, m = len(seq1), len(seq2)
    score = np.zeros((n + 1, m + 1))
    score[:, 0] = np.linspace(0, n * gap, n + 1)
    score[0, :] = np.linspace(0, m * gap, m + 1)
    pointer = np.zeros((n + 1, m + 1), dtype=int)
    pointer[:, 0] = 3
    pointer[0, :] = 4
    t = np.zeros(3)
    for i in range(n):
        for j in range(m):
            if seq1[i] == seq2[j]:
                t[0] = score[i, j] + match
            else:
                t[0] = score[i, j] + mismatch
            t[1] = score[i, j + 1] + gap
            t[2] = score[i + 1, j] + gap
            tmax = np.max(t)
            score[i + 1, j + 1] = tmax
            if t[0] == tmax:
                pointer[i + 1, j + 1] += 2
            if t[1] == tmax:
                pointer[i + 1, j + 1] += 3
            if t[2] == tmax:
                pointer[i + 1, j + 1] += 4
    i, j = n, m
    aligned = []
    while i > 0 or j > 0:
        if pointer[i, j] in [2, 5, 6, 9]:
            aligned.append((i - 1, j - 1))
            i -= 1
            j -= 1
        elif pointer[i, j] in [3, 5, 7, 9]:
            aligned.append((i - 1, -1))
            i -= 1
        elif pointer[i, j] in [4, 6, 7, 9]:
            aligned.append((-1, j - 1))
            j -= 1
    return score, len(aligned)


def sparse_weights(rng, n):
    w = rng.integers(1, 9, (n, n)) * (rng.random((n, n)) < 0.5)
    return w + np.diag(np.ones(n - 1, dtype=int), 1)


@program("rosetta", lambda rng, n: (sparse_weights(rng, n), 0), 6, 9)
def dijkstra_with_heap(graph, start):
    n = graph.shape[0]
    distances = [float("inf")] * n
    distances[start] = 0
    queue = [(0, start)]
    while queue:
        current, u = heapq.heappop(queue)
        if current > distances[u]:
            continue
        for v in range(n):
            if graph[u, v] > 0:
                candidate = current + graph[u, v]
                if candidate < distances[v]:
                    distances[v] = candidate
                    heapq.heappush(queue, (candidate, v))
    return distances


@program("textbook", lambda rng, n: ((rng.random((n, n)) < 0.35).astype(int), 0), 7, 10)
def breadth_first(adj, start):
    n = len(adj)
    level = [-1] * n
    level[start] = 0
    order = []
    queue = deque([start])
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in np.where(adj[u] == 1)[0]:
            if level[v] == -1:
                level[v] = level[u] + 1
                queue.append(v)
    return np.array(level), order


@program("textbook", lambda rng, n: (rng.random((n, n)) < 0.3,), 6, 9)
def depth_first_components(adj):
    n = adj.shape[0]
    adj = adj | adj.T
    component = np.full(n, -1)
    count = 0
    for s in range(n):
        if component[s] >= 0:
            continue
        stack = [s]
        while stack:
            u = stack.pop()
            if component[u] >= 0:
                continue
            component[u] = count
            for v in range(n):
                if adj[u, v] and component[v] < 0:
                    stack.append(v)
        count += 1
    return component, count


@program(
    "textbook",
    lambda rng, n: (rng.integers(0, 9, (n, n)) * (rng.random((n, n)) < 0.5), 0, n - 1),
    5,
    7,
)
def edmonds_karp(C, source, sink):
    n = len(C)
    F = np.zeros((n, n), dtype=int)
    flow = 0
    while True:
        parent = -np.ones(n, dtype=int)
        parent[source] = source
        queue = deque([source])
        while queue and parent[sink] == -1:
            u = queue.popleft()
            for v in range(n):
                if C[u, v] - F[u, v] > 0 and parent[v] == -1:
                    parent[v] = u
                    queue.append(v)
        if parent[sink] == -1:
            break
        bottleneck = 10**9
        v = sink
        while v != source:
            u = parent[v]
            bottleneck = min(bottleneck, C[u, v] - F[u, v])
            v = u
        v = sink
        while v != source:
            u = parent[v]
            F[u, v] += bottleneck
            F[v, u] -= bottleneck
            v = u
        flow += bottleneck
    return flow, F


@program("rosetta", lambda rng, n: (n,), 4, 6)
def n_queens_count(n):
    def place(row, cols, diag1, diag2):
        if row == n:
            return 1
        total = 0
        for col in range(n):
            if col in cols or row + col in diag1 or row - col in diag2:
                continue
            total += place(row + 1, cols | {col}, diag1 | {row + col}, diag2 | {row - col})
        return total

    return place(0, frozenset(), frozenset(), frozenset())


@program("rosetta", lambda rng, n: (n,), 3, 5)
def spiral_matrix(n):
    m = np.zeros((n, n), dtype=int)
    dx, dy = [0, 1, 0, -1], [1, 0, -1, 0]
    x, y, c = 0, -1, 1
    for i in range(n + n - 1):
        for j in range((n + n - i) // 2):
            x += dx[i % 4]
            y += dy[i % 4]
            m[x][y] = c
            c += 1
    return m


@program("rosetta", lambda rng, n: (n,), 3, 5, 7)
def magic_square(n):
    M = np.zeros((n, n), dtype=int)
    i, j = 0, n // 2
    for k in range(1, n * n + 1):
        M[i, j] = k
        ni, nj = (i - 1) % n, (j + 1) % n
        if M[ni, nj]:
            i = (i + 1) % n
        else:
            i, j = ni, nj
    return M, M.sum(axis=0), np.trace(M), np.trace(np.fliplr(M))


@program("rosetta", lambda rng, n: (rng.integers(0, 9, n),), 7, 12)
def counting_words(values):
    counts = Counter(values.tolist())
    groups = defaultdict(list)
    for i, v in enumerate(values):
        groups[int(v)].append(i)
    most = max(counts.values())
    return most, len(groups)


@program("leetcode", lambda rng, n: (rng.integers(1, 9, (n, n + 1)),), 4, 6)
def min_path_sum(grid):
    m, n = grid.shape
    dp = [[0] * n for _ in range(m)]
    for i in range(m):
        for j in range(n):
            if i == 0 and j == 0:
                dp[i][j] = grid[i][j]
            elif i == 0:
                dp[i][j] = dp[i][j - 1] + grid[i][j]
            elif j == 0:
                dp[i][j] = dp[i - 1][j] + grid[i][j]
            else:
                dp[i][j] = min(dp[i - 1][j], dp[i][j - 1]) + grid[i][j]
    return dp[-1][-1]


@program("leetcode", lambda rng, n: (rng.integers(0, 9, (n, n)),), 4, 5)
def set_matrix_zeroes(matrix):
    rows, cols = set(), set()
    for i in range(len(matrix)):
        for j in range(len(matrix[0])):
            if matrix[i][j] == 0:
                rows.add(i)
                cols.add(j)
    for i in rows:
        matrix[i, :] = 0
    for j in cols:
        matrix[:, j] = 0


@program("leetcode", lambda rng, n: (rng.integers(0, 30, n), int(rng.integers(10, 40))), 6, 10)
def two_pointers(nums, target):
    nums = np.sort(nums)
    left, right = 0, len(nums) - 1
    best = (0, 0)
    closest = inf
    while left < right:
        s = nums[left] + nums[right]
        if abs(target - s) < closest:
            closest = abs(target - s)
            best = (nums[left], nums[right])
        if s < target:
            left += 1
        elif s > target:
            right -= 1
        else:
            break
    return best, closest


@program("leetcode", lambda rng, n: (rng.integers(0, 20, n),), 6, 11)
def largest_rectangle(heights):
    stack = []
    best = 0
    for i in range(len(heights) + 1):
        h = heights[i] if i < len(heights) else 0
        while stack and heights[stack[-1]] >= h:
            height = heights[stack.pop()]
            width = i if not stack else i - stack[-1] - 1
            best = max(best, height * width)
        stack.append(i)
    return best


@program("leetcode", lambda rng, n: (np.sort(rng.integers(0, 30, (n, 2)), axis=1),), 5, 9)
def merge_intervals(intervals):
    intervals = intervals[np.argsort(intervals[:, 0], kind="stable")]
    merged = []
    start, end = intervals[0]
    for s, e in intervals[1:]:
        if s <= end:
            end = max(end, e)
        else:
            merged.append((start, end))
            start, end = s, e
    merged.append((start, end))
    return merged


@program("textbook", lambda rng, n: (rng.random((n, 2)) * 10,), 6, 9)
def nearest_neighbour_tour(cities):
    n = len(cities)
    D = np.sqrt(((cities[:, np.newaxis] - cities) ** 2).sum(axis=2))
    tour = [0]
    unvisited = set(range(1, n))
    while unvisited:
        last = tour[-1]
        nxt = min(unvisited, key=lambda j: D[last, j])
        unvisited.remove(nxt)
        tour.append(nxt)
    length = sum(D[tour[i], tour[(i + 1) % n]] for i in range(n))
    return tour, length


@program("textbook", lambda rng, n: (rng.random((n, 2)) * 10,), 6, 8)
def two_opt(points):
    n = len(points)
    tour = list(range(n))

    def dist(a, b):
        return hypot(points[a, 0] - points[b, 0], points[a, 1] - points[b, 1])

    improved = True
    rounds = 0
    while improved and rounds < 10:
        improved = False
        rounds += 1
        for i in range(1, n - 2):
            for j in range(i + 1, n - 1):
                a, b, c, d = tour[i - 1], tour[i], tour[j], tour[j + 1]
                if dist(a, c) + dist(b, d) < dist(a, b) + dist(c, d) - 1e-12:
                    tour[i : j + 1] = reversed(tour[i : j + 1])
                    improved = True
    return np.array(tour), rounds


@program("textbook", lambda rng, n: (rng.random(n) + 0.1j * rng.random(n),), 8, 16)
def fft_recursive(x):
    N = len(x)
    if N <= 1:
        return x
    even = fft_recursive(x[0::2])
    odd = fft_recursive(x[1::2])
    T = [np.exp(-2j * np.pi * k / N) * odd[k] for k in range(N // 2)]
    return np.array(
        [even[k] + T[k] for k in range(N // 2)] + [even[k] - T[k] for k in range(N // 2)]
    )


@program("textbook", lambda rng, n: (rng.random(n) + 1j * rng.random(n),), 8, 16)
def fft_radix2_in_place(a):
    n = len(a)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            a[i], a[j] = a[j], a[i]
    length = 2
    while length <= n:
        ang = -2 * pi / length
        wlen = complex(cos(ang), sin(ang))
        for i in range(0, n, length):
            w = 1 + 0j
            for k in range(length // 2):
                u = a[i + k]
                v = a[i + k + length // 2] * w
                a[i + k] = u + v
                a[i + k + length // 2] = u - v
                w *= wlen
        length <<= 1


@program("textbook", lambda rng, n: (rng.integers(0, 50, n),), 7, 10)
def merge_sort(a):
    def sort(lo, hi):
        if hi - lo < 2:
            return
        mid = (lo + hi) // 2
        sort(lo, mid)
        sort(mid, hi)
        left, right = a[lo:mid].copy(), a[mid:hi].copy()
        i = j = 0
        for k in range(lo, hi):
            if j >= len(right) or (i < len(left) and left[i] <= right[j]):
                a[k] = left[i]
                i += 1
            else:
                a[k] = right[j]
                j += 1

    sort(0, len(a))


@program("textbook", lambda rng, n: (rng.integers(0, 50, n),), 6, 9)
def quicksort(arr):
    if len(arr) <= 1:
        return arr
    pivot = arr[len(arr) // 2]
    left = arr[arr < pivot]
    middle = arr[arr == pivot]
    right = arr[arr > pivot]
    return np.concatenate([np.sort(left), middle, np.sort(right)])


@program("textbook", lambda rng, n: (rng.integers(1, 40, n), rng.integers(1, 40, n)), 6, 9)
def euclid_everywhere(a, b):
    out = np.empty_like(a)
    for i in range(a.size):
        x, y = a[i], b[i]
        while y:
            x, y = y, x % y
        out[i] = x
    return out, np.gcd(a, b), out * np.lcm(a, b) == a * b


@program("textbook", lambda rng: (48, 36, 7, 128))
def numbers_that_are_known(a, b, base, exponent):
    g = gcd(a, b)
    result = 1
    while exponent > 0:
        if exponent % 2 == 1:
            result = (result * base) % 13
        exponent = exponent // 2
        base = (base * base) % 13
    return g, result


@program("wikipedia", lambda rng, n: (rng.random((n, 2)),), 7, 11)
def graham_scan(points):
    start = np.argmin(points[:, 1])
    p0 = points[start].copy()
    angles = np.arctan2(points[:, 1] - p0[1], points[:, 0] - p0[0])
    order = np.argsort(angles)
    hull = []
    for k in order:
        p = points[k]
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0:
                break
            hull.pop()
        hull.append(p)
    return np.array(hull)


@program("wikipedia", lambda rng, n: (rng.random((n, 2)), rng.random((3, 2))), 5)
def bearing_and_tour(points, queries):
    total = 0.0
    for (x0, y0), (x1, y1) in zip(points[:-1], points[1:]):
        total += sqrt((x1 - x0) ** 2 + (y1 - y0) ** 2) * abs(atan2(y1 - y0, x1 - x0))
    inside = []
    for x, y in queries:
        crossings = 0
        for i in range(len(points)):
            xi, yi = points[i]
            xj, yj = points[i - 1]
            if (yi > y) != (yj > y) and x < (xj - xi) * (y - yi) / (yj - yi) + xi:
                crossings += 1
        inside.append(crossings % 2 == 1)
    return total, inside


@program("rosetta", lambda rng, n: (n,), 10, 30)
def pascal_and_bell(n):
    triangle = [[1]]
    for _ in range(n // 3):
        prev = triangle[-1]
        triangle.append([1] + [a + b for a, b in zip(prev, prev[1:])] + [1])
    fib = np.zeros(n, dtype=np.int64)
    fib[1] = 1
    for i in range(2, n):
        fib[i] = fib[i - 1] + fib[i - 2]
    ratios = fib[2:] / fib[1:-1]
    return triangle[-1], fib, ratios


@program("rosetta", lambda rng, n: (rng.integers(0, 2, (n, n)),), 5, 6)
def flood_fill_recursive(grid):
    n, m = grid.shape
    seen = np.zeros_like(grid, dtype=bool)
    sizes = []
    for i in range(n):
        for j in range(m):
            if grid[i, j] == 1 and not seen[i, j]:
                size = 0
                todo = [(i, j)]
                seen[i, j] = True
                while todo:
                    x, y = todo.pop()
                    size += 1
                    for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                        a, b = x + dx, y + dy
                        if 0 <= a < n and 0 <= b < m and grid[a, b] == 1 and not seen[a, b]:
                            seen[a, b] = True
                            todo.append((a, b))
                sizes.append(size)
    return max(sizes), len(sizes)
