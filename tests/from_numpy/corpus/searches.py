"""Searches whose best is None at first, dictionaries of lists, heaps, `else` of loops."""

import heapq
import itertools
import math
import warnings
from collections import Counter, defaultdict, deque

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("searches and tables")


@program("stackoverflow", lambda rng, n: (rng.random((n, 2)),), 5, 9)
def farthest_pair(points):
    best = None
    best_pair = None
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            d = np.linalg.norm(points[i] - points[j])
            if best is None or d > best:
                best = d
                best_pair = (i, j)
    return best, best_pair


@program("textbook", lambda rng, n: (rng.random(n), rng.random()), 6, 10)
def first_above(x, threshold):
    index = None
    for i, v in enumerate(x):
        if v > threshold:
            index = i
            break
    if index is None:
        return -1
    return index


@program("textbook", lambda rng, n: (rng.integers(2, 60, n),), 5, 9)
def primes_with_else(numbers):
    result = []
    for n in numbers:
        for d in range(2, int(math.sqrt(n)) + 1):
            if n % d == 0:
                break
        else:
            result.append(n)
    return np.array(result)


@program("rosetta", lambda rng, n: (rng.integers(1, 12, 4), n), 11, 17)
def min_coins_inf(coins, amount):
    dp = [0] + [float("inf")] * amount
    for a in range(1, amount + 1):
        for c in coins:
            if c <= a:
                dp[a] = min(dp[a], dp[a - c] + 1)
    return dp[amount] if dp[amount] != float("inf") else -1


def _random_graph(rng, n):
    w = rng.integers(1, 9, (n, n)) * (rng.random((n, n)) < 0.5)
    np.fill_diagonal(w, 0)
    return w


@program("rosetta", lambda rng, n: (_random_graph(rng, n), 0), 5, 7)
def dijkstra_with_dictionaries(w, source):
    n = w.shape[0]
    graph = {u: [(v, w[u, v]) for v in range(n)] for u in range(n)}
    dist = {u: math.inf for u in graph}
    prev = {u: None for u in graph}
    dist[source] = 0
    queue = [(0, source)]
    while queue:
        d, u = heapq.heappop(queue)
        if d > dist[u]:
            continue
        for v, cost in graph[u]:
            if cost == 0:
                continue
            alt = dist[u] + cost
            if alt < dist[v]:
                dist[v] = alt
                prev[v] = u
                heapq.heappush(queue, (alt, v))
    return np.array([dist[u] for u in range(n)])


@program("rosetta", lambda rng, n: ((rng.random((n, n)) < 0.4).astype(int),), 5, 8)
def bfs_with_parents(adj):
    n = len(adj)
    neighbours = defaultdict(list)
    for i in range(n):
        for j in range(n):
            if adj[i, j]:
                neighbours[i].append(j)
    parent = {0: None}
    queue = deque([0])
    order = []
    while queue:
        u = queue.popleft()
        order.append(u)
        for v in neighbours[u]:
            if v not in parent:
                parent[v] = u
                queue.append(v)
    return order


def _maze(rng, n):
    walls = rng.random((n, n)) < 0.25
    walls[0, 0] = walls[-1, -1] = False
    return walls.astype(int)


@program("redblob", lambda rng, n: (_maze(rng, n),), 4, 6)
def a_star(grid):
    rows, cols = grid.shape
    start, goal = (0, 0), (rows - 1, cols - 1)

    def h(p):
        return abs(p[0] - goal[0]) + abs(p[1] - goal[1])

    open_set = [(h(start), 0, start)]
    g = {start: 0}
    closed = set()
    while open_set:
        _, cost, cur = heapq.heappop(open_set)
        if cur == goal:
            return cost
        if cur in closed:
            continue
        closed.add(cur)
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            nx, ny = cur[0] + dx, cur[1] + dy
            if not (0 <= nx < rows and 0 <= ny < cols) or grid[nx, ny]:
                continue
            new = cost + 1
            if new < g.get((nx, ny), math.inf):
                g[(nx, ny)] = new
                heapq.heappush(open_set, (new + h((nx, ny)), new, (nx, ny)))
    return -1


@program("stackoverflow", lambda rng, n: (rng.integers(0, 4, n), rng.random(n)), 8, 12)
def groups_by_label(labels, values):
    groups = {}
    for label, value in zip(labels, values):
        groups.setdefault(int(label), []).append(value)
    means = {k: sum(v) / len(v) for k, v in sorted(groups.items())}
    return list(means.keys()), list(means.values())


@program("textbook", lambda rng, n: (rng.integers(0, 6, n),), 8, 13)
def most_common_and_rest(x):
    counts = Counter(x.tolist())
    (value, count), *rest = counts.most_common()
    return value, count, len(rest)


ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "identity": lambda z: z,
}


@program("blog", lambda rng, n: (rng.random((n, 3)), rng.random((3, 3))), 4, 7)
def activations_by_name(x, w):
    h = x
    for name in ["relu", "tanh", "sigmoid", "identity"]:
        act = ACTIVATIONS[name]
        h = act(h @ w)
    return h


@program("blog", lambda rng, n: (rng.random(n), rng.integers(0, 3, n)), 5, 8)
def operations_by_number(x, codes):
    ops = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: max(a, b)]
    acc = 1.0
    for value, code in zip(x, codes):
        acc = ops[code](acc, value)
    return acc


@program("advent of code", lambda rng, n: (rng.integers(0, 4, (n, 2)),), 6, 9)
def stack_machine(program_):
    registers = {"a": 1, "b": 2}
    pc = 0
    steps = 0
    while True:
        if pc >= len(program_) or steps > 50:
            break
        op, arg = program_[pc]
        if op == 0:
            registers["a"] += arg
        elif op == 1:
            registers["b"] += registers["a"]
        elif op == 2 and registers["a"] % 2 == 0:
            pc += 1
        else:
            registers["a"] = registers["b"] % 7
        pc += 1
        steps += 1
    return registers["a"], registers["b"], steps


@program("advent of code", lambda rng, n: (rng.integers(0, 2, (n, n)),), 5, 7)
def visible_neighbours(seats):
    n, m = seats.shape
    counts = np.zeros_like(seats)
    directions = [d for d in itertools.product((-1, 0, 1), repeat=2) if d != (0, 0)]
    for i in range(n):
        for j in range(m):
            for di, dj in directions:
                r, c = i + di, j + dj
                while 0 <= r < n and 0 <= c < m:
                    if seats[r, c]:
                        counts[i, j] += 1
                        break
                    r += di
                    c += dj
    return counts


@program("docs", lambda rng, n: (rng.random(n) * 10,), 4, 8)
def newton_square_roots(a):
    roots = []
    for v in a:
        x = v
        iterations = 0
        while True:
            new = 0.5 * (x + v / x)
            iterations += 1
            if abs(new - x) < 1e-10:
                break
            if iterations > 100:
                warnings.warn("no convergence")
                break
            x = new
        roots.append(new)
    return np.array(roots)


@program("docs", lambda rng, n: (rng.random(n),), 5, 9)
def walrus_and_stars(x):
    first, *middle, last = x
    head, *_ = sorted(middle)
    total = 0.0
    i = 0
    while (value := x[i]) < 0.8:
        total += value
        i += 1
        if i == len(x):
            break
    return first, last, head, total, (half := len(x) // 2), half + 1


@program("docs", lambda rng, n: (rng.random((n, n)), rng.random(n)), 4, 6)
def with_arguments_in_stars(a, b):
    def norm_of(*vectors, order=2, **options):
        scale = options.get("scale", 1.0)
        return [scale * np.linalg.norm(v, order) for v in vectors]

    def solve(matrix, rhs, /, *, ridge=0.0):
        return np.linalg.solve(matrix.T @ matrix + ridge * np.eye(len(rhs)), matrix.T @ rhs)

    settings = {"ridge": 0.1}
    x = solve(a, b, **settings)
    args = (x, b)
    return norm_of(*args, scale=2.0), norm_of(x, order=1), {**settings, "more": 1}["more"]


@program("docs", lambda rng, n: (rng.random(n),), 5, 9)
def generators_of_pairs(x):
    def pairs(values):
        previous = None
        for v in values:
            if previous is not None:
                yield previous, v
            previous = v

    def squares():
        k = 0
        while True:
            yield k * k
            k += 1

    rises = sum(1 for a, b in pairs(x) if b > a)
    weighted = 0.0
    for s, v in zip(squares(), x):
        weighted += s * v
    gen = squares()
    next(gen)
    second = next(gen)
    return rises, weighted, second, next((v for v in x if v > 2), None) is None


@program("textbook", lambda rng, n: (rng.random(n), 4), 9, 14)
def jagged_rows(x, k):
    rows = [x[: i + 1] for i in range(k)]
    rows.append(x[k:])
    means = np.array([r.mean() for r in rows])
    longest = max(rows, key=len)
    return means, longest, np.concatenate(rows)


@program("stackoverflow", lambda rng, n: (rng.random(n),), 6, 11)
def append_in_a_loop(x):
    kept = np.array([])
    rejected = np.empty(0, dtype=int)
    for i in range(len(x)):
        if x[i] > 0.4:
            kept = np.append(kept, x[i])
        else:
            rejected = np.append(rejected, i)
    return kept, rejected, kept.size


@program("tutorial", lambda rng, n: (rng.random(n),), 4, 7)
def calls_are_counted(x):
    calls = 0

    def f(t):
        nonlocal calls
        calls += 1
        return t**3 - 2

    lo, hi = 0.0, 2.0
    while hi - lo > 1e-4:
        mid = (lo + hi) / 2
        lo, hi = (mid, hi) if f(mid) < 0 else (lo, mid)
    return lo + x.sum(), calls
