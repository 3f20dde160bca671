"""Programs with containers of the run as authors write them: Python runs them, as regions."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

import numpy as np

X = np.array([3, 1, 3, 7, 1, 3, 12])
W = np.linspace(0.5, 2.5, 7)
EDGES = np.array([[0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])


def by_get(x, w):
    total = {}
    for key, weight in zip(x, w, strict=True):
        total[int(key)] = total.get(int(key), 0) + weight
    return total, len(total)


def by_default(x, w):
    sums, counts = defaultdict(float), defaultdict(int)
    for k in range(len(x)):
        sums[int(x[k])] += w[k]
        counts[int(x[k])] += 1
    means = {key: sums[key] / counts[key] for key in sums}
    return means, sums[3], list(counts), sum(counts.values())


def by_counter(x, w):
    counts = Counter(x.tolist())
    entropy = 0.0
    for c in counts.values():
        p = c / len(x)
        entropy -= p * np.log2(p)
    return counts.most_common(2), entropy, counts[99], 99 in counts


def two_sum(x, w):
    seen = {}
    for i, v in enumerate(x):
        if 8 - v in seen:
            return seen[8 - v], i
        seen[v] = i
    return -1, -1


def relabelled(x, w):
    """An array by keys, between array work."""
    y = w * 2.0
    labels = {}
    found = np.zeros(len(x), dtype=int)
    for i in range(len(x)):
        found[i] = labels.setdefault(x[i], len(labels))
    return y + found, max(labels), {int(v): k for k, v in labels.items()}


def taken(x, w):
    left = {int(v): float(k) for k, v in enumerate(x)}
    first = left.pop(int(x[0]))
    del left[int(x[-1])]
    for key in left:
        left[key] *= 2
    return left, first


def by_texts(x, w):
    grades = {"low": 0, "high": 0}
    for v in w * 2.0:
        grades["high" if v > 2.5 else "low"] += 1
    return max(grades, key=grades.get), grades["low"]


def unite(x, w):
    """Sets of values of the run."""
    one, other = set(x.tolist()), set((x // 2).tolist())
    every = one | other
    every |= {50, 51}
    free = 0
    while free in every:
        free += 1
    return one & other, len(every), sorted(one - other), free, {int(v) for v in w}


def stack(x, w):
    rising = []
    popped = 0
    for i in range(len(x)):
        while rising and x[rising[-1]] > x[i]:
            rising.pop()
            popped += 1
        rising.append(i)
    rising.insert(0, -1)
    rising.remove(int(x[1]) - 2)
    del rising[-1]
    return rising, popped


def queue(x, w):
    n = len(EDGES)
    distance = [-1] * n
    distance[0] = 0
    waiting = deque([0])
    while waiting:
        u = waiting.popleft()
        for v in range(n):
            if EDGES[u, v] and distance[v] < 0:
                distance[v] = distance[u] + 1
                waiting.append(v)
    return distance


def tables(x, w):
    """As many lists as are known, and a list that grows while it is iterated over."""
    neighbours = [[] for _ in range(13)]
    for i in range(len(x)):
        neighbours[int(x[i])].append(i)
    order = [int(x[0])]
    for u in order:
        for v in neighbours[u]:
            if v not in order:
                order.append(v)
    return [len(n) for n in neighbours], order


HOSTED = (
    *(by_get, by_default, by_counter, two_sum, relabelled, taken, unite, stack, queue, tables),
)
EVERY = (*HOSTED, by_texts)


def missing(x, w):
    found = {}
    for v in x:
        found[int(v)] = 2 * int(v)
    y = w * 2.0
    return y * found[5]


def grows_meanwhile(x, w):
    found = {int(v): 1 for v in x}
    for key in found:
        found[key + 1] = 2
    return w * len(found)


def large(x, w):
    """Array work in the middle of a loop over keys, which ranks could share."""
    sums = {}
    for v in x:
        w = np.sqrt(w * w + 1.0)
        sums[int(v)] = sums.get(int(v), 0.0) + w.sum()
    return sums
