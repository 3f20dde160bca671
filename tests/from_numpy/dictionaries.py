"""Programs with dictionaries whose keys the run decides, as authors write them."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def histogram(x: Any) -> Any:
    counts = {}
    for v in x:
        key = int(v)
        if key in counts:
            counts[key] += 1
        else:
            counts[key] = 1
    return counts


def by_get(x: Any, w: Any) -> Any:
    total = {}
    for key, weight in zip(x, w, strict=True):
        total[key] = total.get(key, 0) + weight
    return total, len(total)


def by_default(x: Any, w: Any) -> Any:
    sums, counts = defaultdict(float), defaultdict(int)
    for k in range(len(x)):
        sums[x[k]] += w[k]
        counts[x[k]] += 1
    means = {key: sums[key] / counts[key] for key in sums}
    return means, sums[x[0]], list(counts), sum(counts.values())


def by_counter(x: Any) -> Any:
    counts = Counter(x.tolist())
    common = counts.most_common(2)
    entropy = 0.0
    for c in counts.values():
        p = c / len(x)
        entropy -= p * np.log2(p)
    return common, entropy, counts[99], counts[int(x[1])], 99 in counts


def mode(x: Any) -> Any:
    counts = Counter()
    for v in x:
        counts[int(v)] += 1
    return counts.most_common(1)[0][0], sorted(counts)


def collatz(n: Any) -> Any:
    """Lengths of chains, which are kept."""
    cache = {1: 1}
    best, longest = 1, 1
    for start in range(2, n.size):
        length, k = 0, start + 0 * n[0]
        while k not in cache:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            length += 1
        cache[start] = length + cache[k]
        if cache[start] > longest:
            best, longest = start, cache[start]
    return best, longest


def two_sum(x: Any, target: Any) -> Any:
    seen = {}
    for i, v in enumerate(x):
        other = target - v
        if other in seen:
            return seen[other], i
        seen[v] = i
    return -1, -1


def sparse(rows: Any, columns: Any, values: Any) -> Any:
    """A sparse matrix by pairs, and a product with it."""
    entries = {}
    for i, j, v in zip(rows, columns, values, strict=True):
        entries[int(i), int(j)] = entries.get((int(i), int(j)), 0.0) + v
    y = np.zeros(4)
    for (i, j), v in entries.items():
        y[i] += v * (j + 1)
    return y, len(entries)


def lookup(x: Any) -> Any:
    weights = {1: 12.011, 6: 1.008, 8: 15.999}
    total = 0.0
    for z in x:
        total += weights[int(z)] if int(z) in weights else 0.5  # noqa: SIM401
    return total


def relabelled(x: Any) -> Any:
    labels: Any = {}
    found = np.zeros(len(x), dtype=int)
    for i in range(len(x)):
        found[i] = labels.setdefault(x[i], len(labels))
    return found, max(labels), {v: k for k, v in labels.items()}


def taken(x: Any) -> Any:
    left = {int(v): float(k) for k, v in enumerate(x)}
    first = left.pop(int(x[0]))
    del left[int(x[-1])]
    for key in left:
        left[key] *= 2
    return left, first


def vectors(x: Any, points: Any) -> Any:
    """Sums of rows by label."""
    sums = defaultdict(lambda: np.zeros(3))
    for k in range(len(x)):
        sums[x[k]] += points[k]
    return np.array(list(sums.values())), list(sums.keys())


def unite(x: Any, y: Any) -> Any:
    """Sets of values of the run: what they have in common, and how many there are."""
    one, other = set(x.tolist()), set(y.tolist())
    both = one & other
    every = one | other
    every |= {50, 51}
    return sorted(both), len(every), sorted(one - other), sorted(one ^ other), 3 in every


def long_loop(x: Any) -> Any:
    seen = {}
    for i in range(1000):
        seen[i] = x[i % 7]
    return seen[3], seen[999], len(seen)


def known_table(x: Any) -> Any:
    return {0: 1.0, 1: 2.0}.get(int(x[1]), 5.0), {int(v): 1.0 for v in x}, {k: 2 for k in x}  # noqa: C420


def changed(x: Any) -> Any:
    """Keys of the run are taken from dictionaries that are written out, and given to them."""
    known, pairs = {1: 10, 3: 30, 7: 70}, dict([(int(x[0]), 1), (3, 2)])  # noqa: C406
    del known[int(x[0])]
    known.update([(int(x[1]), 7), (int(x[3]) + 1, 8)])
    return known, len(known), pairs, len(pairs), known[1]


_X = np.array([3, 1, 3, 7, 1, 3, 12])


def _case(function: Any, *given: Any) -> Case:
    return Case(function.__name__, function, "", "", lambda rng: tuple(given), ())


_W = np.linspace(0.5, 2.5, 7)
CASES = [
    _case(histogram, _X * 1.5),
    _case(by_get, _X, _W),
    _case(by_default, _X, _W),
    _case(by_counter, _X),
    _case(mode, _X),
    _case(collatz, np.zeros(12, dtype=int)),
    _case(two_sum, _X, 8),
    _case(sparse, np.array([0, 1, 0, 3, 1]), np.array([2, 1, 2, 0, 2]), np.arange(5.0)),
    _case(lookup, np.array([1, 6, 6, 9, 8])),
    _case(relabelled, _X),
    _case(taken, np.array([4, 2, 9, 4, 7, 5])),
    _case(vectors, _X, np.arange(21.0).reshape(7, 3)),
    _case(long_loop, _X),
    _case(known_table, _X),
    _case(changed, _X),
    _case(unite, _X, np.array([7, 8, 3, 3])),
]
