"""Programs with statements that are no array work, which Python runs as regions."""

from __future__ import annotations

import collections
import json
from typing import Any

import numpy as np

RNG = np.random.default_rng(3)
CODES = RNG.integers(0, 9, 60)
X = RNG.random((6, 5)) + 1.0
INDPTR = np.arange(0, 161, 4)
INDICES = np.random.default_rng(1).integers(0, 40, 160)


def words(codes):
    seen = {}
    for c in codes:
        c = int(c)
        seen[c] = seen.get(c, 0) + 1
    return len(seen)


def bfs(indptr, indices, source: int = 0):
    level = np.full(len(indptr) - 1, -1)
    level[source] = 0
    queue = [source]
    while queue:
        u = queue.pop(0)
        for k in range(indptr[u], indptr[u + 1]):
            v = indices[k]
            if level[v] < 0:
                level[v] = level[u] + 1
                queue.append(v)
    return level


def carried(x, codes):
    """An object of Python that a loop of array work carries."""
    seen: dict[int, int] = {}
    for c in codes:
        seen[int(c)] = seen.get(int(c), 0) + 1
    y = np.sqrt(x)
    for k in range(4):
        y = y * 1.5 + 0.25
        seen[k] = seen.get(k, 0) + int(y[0, 0])
    best = max(seen, key=lambda k: (seen[k], k))
    return y, best, [seen[k] for k in range(4)]


def by_objects(x, codes):
    """Conditions that are objects of Python, of a loop and branches with array work."""
    left = collections.deque(int(c) for c in codes[:7])
    done = set()
    while left:
        x = x * 1.25
        code = left.popleft()
        if code in done:
            x = x + 1.0
        done.add(code)
    if not left:
        x = x - 2.0
    return x


def ended(x, codes) -> float:
    """A return and a break out of regions, with array work around them."""
    seen = set()
    total = 0.0
    for k in range(5):
        total = total + float((x * k).sum())
        if int(codes[k]) in seen:
            return total * 2.0
        seen.add(int(codes[k]))
        if len(seen) > 30:
            break
    return total


def of_texts(x, text: str = '{"a": 2, "b": [1, 4]}'):
    known = json.loads(text)
    names = sorted(known)
    scale = float(known["a"])
    offsets = np.array(known["b"], dtype=float)
    label = ",".join(names).upper()
    return x[:, :2] * scale + offsets, len(label)


def in_place(x, codes):
    """Arrays that regions change: a whole one, and a part of an argument."""
    y = np.zeros(9)
    row = x[1]
    names = {0: "zero"}
    for k, c in enumerate(codes[:5]):
        names[int(c)] = f"number {c}"
        y[int(c)] += len(names)
        row[k] = len(names[int(c)])
    x += 1.0
    return y * 2.0, x.sum()


def with_functions(x, codes):
    """Functions of the program and of Python that a region calls."""

    def key(code):
        return f"k{int(code) % factor}"

    factor = 3
    groups = collections.defaultdict(list)
    for place, code in enumerate(codes):
        groups[key(code)].append(place)
    sizes = np.array([len(groups[k]) for k in sorted(groups)])
    return x[0, :3] * sizes


def doubled(codes):
    for code in codes:
        if code % 2:
            yield int(code) * 2


def of_generators(x, codes):
    largest = {}
    for value in doubled(codes):
        largest[value % 5] = max(value, largest.get(value % 5, 0))
    weights = np.array(sorted(largest.values()), dtype=float)
    return x.sum() * weights


class Tree:
    """Objects of the user's, linked as the run decides."""

    def __init__(self, value):
        self.value, self.left, self.right = value, None, None

    def insert(self, value):
        side = "left" if value < self.value else "right"
        below = getattr(self, side)
        if below is None:
            setattr(self, side, Tree(value))
        else:
            below.insert(value)

    def depth(self):
        return 1 + max(0 if t is None else t.depth() for t in (self.left, self.right))


def of_trees(x, codes):
    tree = Tree(int(codes[0]))
    for c in codes[1:12]:
        tree.insert(int(c))
    return x / tree.depth()


def in_a_function(x, codes):
    """A function that is called twice, and that has a region."""
    return spread(x, codes) + spread(x * 2.0, codes[::-1])


def spread(x, codes):
    first = {}
    for place, c in enumerate(codes):
        first.setdefault(int(c), place)
    last = max(first.values())
    return x * last


def printed(x, codes):
    seen = set()
    for c in codes[:20]:
        if int(c) not in seen:
            seen.add(int(c))
            print("new:", int(c))
    return x * len(seen)


def drawn(x, codes):
    seen = {}
    for c in codes:
        seen[int(c)] = RANDOM.random()
    total = sum(seen.values())
    return x * total


def recursive(x, codes):
    return x * steps(int(codes[0]) + 5)


def steps(n):
    return 1 if n < 2 else steps(n - 1) + steps(n - 2)


RANDOM = np.random.default_rng(11)


def of_a_file(x):
    """Parts of an object are read where a file, which cannot be copied, is seen too."""
    with open(__file__) as file:
        read = {"first": file.readline(), "rest": len(file.read())}
    y = x * len(read["first"])
    return y + read["rest"]


ARGUMENTS: dict[Any, tuple[Any, ...]] = {
    words: (CODES,),
    bfs: (INDPTR, INDICES),
    of_texts: (X,),
    of_a_file: (X,),
    **dict.fromkeys(
        (
            *(carried, by_objects, ended, in_place, with_functions, of_generators, of_trees),
            *(in_a_function, printed, recursive),
        ),
        (X, CODES),
    ),
}


class Unknown(Exception):
    """An error of the user's."""


def raising(x, codes):
    y = np.sqrt(x)
    names = {int(c): f"number {c}" for c in codes}
    if len(names) < 12:
        raise Unknown(f"{len(names)} names")
    return y * len(names)


def writing(x, codes, path: str = "none"):
    with open(path, "a") as file:
        total = file.write(f"{len(codes)}\n")
    return x * total


def writing_as_told(x, codes, path: str = "none"):
    with open(path, "a") as file:
        total: int = file.write(f"{len(codes)}\n")
    return x * total


def of_other_types(x, codes):
    found = {}
    for c in codes:
        found[int(c)] = c
    largest = np.array(sorted(found))
    return x[0, 0] * largest


def with_array_work(x, codes):
    seen = {}
    for k in range(len(x)):
        x[k] = x[k] * 2.0
        seen[int(codes[k % 5])] = k
    return x * len(seen)


def of_the_caller(x, table):
    for v in x[0]:
        table[str(v > 1.5)] = open
    return x * 2.0


def split(x, codes):
    y = np.sqrt(x) + 1.0
    seen = {}
    for row in y:
        for v in row:
            seen[round(float(v), 2)] = seen.get(round(float(v), 2), 0) + 1
    return y * len(seen)
