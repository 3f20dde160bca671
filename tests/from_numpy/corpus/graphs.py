"""Algorithms on graphs, with matrices and lists of edges."""

import numpy as np

from from_numpy.corpus.registry import of_field

program = of_field("graph algorithms")


def adjacency(rng, n, p=0.3):
    a = np.triu(rng.random((n, n)) < p, 1)
    return (a | a.T).astype(int)


def lengths(rng, n):
    d = np.where(rng.random((n, n)) < 0.5, rng.integers(1, 20, (n, n)).astype(float), np.inf)
    np.fill_diagonal(d, 0)
    return d


@program("npbench", lambda rng, n: (rng.integers(1, 50, (n, n)),), 7, 11)
def floyd_warshall(path):
    for k in range(path.shape[0]):
        path[:] = np.minimum(path[:], np.add.outer(path[:, k], path[k, :]))


@program("textbook", lambda rng, n: (lengths(rng, n), 0), 6, 9)
def dijkstra(W, source):
    n = len(W)
    dist = np.full(n, np.inf)
    prev = -np.ones(n, dtype=int)
    visited = np.zeros(n, dtype=bool)
    dist[source] = 0
    for _ in range(n):
        u = np.argmin(np.where(visited, np.inf, dist))
        if dist[u] == np.inf:
            break
        visited[u] = True
        for v in range(n):
            if not visited[v] and dist[u] + W[u, v] < dist[v]:
                dist[v] = dist[u] + W[u, v]
                prev[v] = u
    return dist, prev


@program(
    "textbook",
    lambda rng, n, m: (n, rng.integers(0, n, (m, 2)), rng.integers(1, 9, m).astype(float)),
    (6, 13),
    (9, 20),
)
def bellman_ford(n, edges, weights):
    dist = np.full(n, np.inf)
    dist[0] = 0.0
    for _ in range(n - 1):
        changed = False
        for (u, v), w in zip(edges, weights):
            if dist[u] + w < dist[v]:
                dist[v] = dist[u] + w
                changed = True
        if not changed:
            break
    return dist


@program("wikipedia", lambda rng, n: (adjacency(rng, n), 0.85), 7, 12)
def pagerank(links, d=0.85, tol=1e-9):
    n = links.shape[0]
    out = links.sum(axis=1)
    M = np.where(out[:, None] > 0, links / np.maximum(out, 1)[:, None], 1.0 / n).T
    v = np.ones(n) / n
    iterations = 0
    while True:
        v_new = d * M @ v + (1 - d) / n
        iterations += 1
        if np.linalg.norm(v_new - v, 1) < tol or iterations >= 50:
            break
        v = v_new
    return v_new / v_new.sum()


@program("graphblas tutorial", lambda rng, n: (adjacency(rng, n, 0.2).astype(bool), 0), 9, 15)
def bfs_levels(A, source):
    n = A.shape[0]
    level = np.full(n, -1)
    frontier = np.zeros(n, dtype=bool)
    frontier[source] = True
    depth = 0
    while frontier.any():
        level[frontier] = depth
        frontier = A[frontier].any(axis=0) & (level < 0)
        depth += 1
    return level


@program("textbook", lambda rng, n: (adjacency(rng, n, 0.15),), 7, 10)
def transitive_closure(A):
    reach = A.astype(bool) | np.eye(len(A), dtype=bool)
    for k in range(len(A)):
        reach |= np.outer(reach[:, k], reach[k])
    return reach


@program("networkx", lambda rng, n: (adjacency(rng, n),), 8, 13)
def triangles_and_clustering(A):
    A3 = np.linalg.matrix_power(A, 3)
    triangles = np.trace(A3) // 6
    deg = A.sum(axis=0)
    possible = deg * (deg - 1)
    clustering = np.divide(np.diag(A3), possible, out=np.zeros(len(A)), where=possible > 0)
    return triangles, clustering, clustering.mean()


@program(
    "spectral clustering tutorial",
    lambda rng, n: (
        adjacency(rng, n, 0.5) + np.eye(n, k=1, dtype=int) + np.eye(n, k=-1, dtype=int),
    ),
    7,
    10,
)
def spectral_bisection(A):
    A = np.minimum(A, 1)
    D = np.diag(A.sum(axis=1))
    L = D - A
    Dinv = np.diag(1 / np.sqrt(np.diag(D)))
    vals, vecs = np.linalg.eigh(Dinv @ L @ Dinv)
    fiedler = vecs[:, 1]
    return vals, np.abs(fiedler)


@program(
    "scipy", lambda rng, n, m: (n, rng.integers(0, n, m), rng.integers(0, n, m)), (9, 6), (14, 11)
)
def connected_components(n, u, v):
    labels = np.arange(n)
    while True:
        low = np.minimum(labels[u], labels[v])
        before = labels.copy()
        np.minimum.at(labels, u, low)
        np.minimum.at(labels, v, low)
        labels = labels[labels]
        if np.array_equal(before, labels):
            return labels, np.unique(labels).size


@program("geeksforgeeks", lambda rng, n: (rng.integers(1, 30, (n, n)),), 6, 9)
def prim(W):
    W = np.minimum(W, W.T)
    n = len(W)
    in_tree = np.zeros(n, dtype=bool)
    key = np.full(n, np.iinfo(np.int64).max)
    parent = np.full(n, -1)
    key[0] = 0
    total = 0
    for _ in range(n):
        masked = np.where(in_tree, np.iinfo(np.int64).max, key)
        u = int(masked.argmin())
        in_tree[u] = True
        total += key[u]
        better = ~in_tree & (W[u] < key)
        key[better] = W[u, better]
        parent[better] = u
    return total, parent


@program(
    "repository",
    lambda rng, n, m: (n, rng.integers(0, n, (m, 2)), rng.integers(1, 50, m)),
    (6, 12),
    (8, 17),
)
def kruskal(n, edges, weights):
    parent = list(range(n))

    def find(x):
        while parent[x] != x:
            x = parent[x]
        return x

    total = 0
    chosen = np.zeros(len(edges), dtype=bool)
    for e in np.argsort(weights, kind="stable"):
        a, b = find(edges[e, 0]), find(edges[e, 1])
        if a != b:
            parent[a] = b
            chosen[e] = True
            total += weights[e]
    return total, chosen


@program("textbook", lambda rng, n: (adjacency(rng, n, 0.4),), 7, 11)
def greedy_coloring(A):
    n = A.shape[0]
    colors = np.full(n, -1)
    for v in np.argsort(-A.sum(axis=1), kind="stable"):
        used = set(colors[A[v] == 1])
        c = 0
        while c in used:
            c += 1
        colors[v] = c
    return colors, colors.max() + 1


@program("networkx", lambda rng, n: (adjacency(rng, n, 0.4).astype(float),), 6, 9)
def hits(A, iterations=8):
    hubs = np.ones(A.shape[0])
    for _ in range(iterations):
        authorities = A.T @ hubs
        authorities /= np.linalg.norm(authorities)
        hubs = A @ authorities
        hubs /= np.linalg.norm(hubs, ord=2)
    return hubs, authorities


@program("textbook", lambda rng, n: (np.triu(rng.integers(0, 2, (n, n)), 1),), 6, 9)
def topological_order(A):
    indegree = A.sum(axis=0)
    order = []
    ready = [v for v in range(len(A)) if indegree[v] == 0]
    while ready:
        v = ready.pop()
        order.append(v)
        for w in np.nonzero(A[v])[0]:
            indegree[w] -= 1
            if indegree[w] == 0:
                ready.append(int(w))
    return np.array(order)
