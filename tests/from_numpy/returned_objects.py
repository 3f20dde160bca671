"""Programs that return objects of Python, by themselves and beside arrays."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np

X = np.random.default_rng(2).random((6, 5)) + 1.0
CODES = np.random.default_rng(3).integers(0, 9, 30)


def counted(x, codes):
    seen = {}
    for c in codes:
        seen[int(c)] = seen.get(int(c), 0) + 1
    return seen


def beside_arrays(x, codes):
    """Objects beside arrays, that array work is before and after."""
    y = np.sqrt(x)
    seen = set()
    for c in codes:
        seen.add(int(c))
    y = y * len(seen) + 1.0
    names = [f"number {c}" for c in sorted(seen)]
    return y, seen, {"names": names, "sum": y.sum()}


def as_one_region(x, codes):
    """A region returns arrays, numbers and objects."""
    seen = collections.defaultdict(list)
    for place, c in enumerate(codes):
        seen[int(c)].append(place)
    first = np.array([float(places[0]) for places in seen.values()])
    return first, len(seen), dict(seen)


@dataclasses.dataclass
class Summary:
    """What a user has found."""

    counts: dict[int, int]
    total: float
    me: object = None


def of_the_user(x, codes):
    y = x * 2.0
    total = float(y.sum())
    found = Summary(dict(collections.Counter(codes.tolist())), total)
    found.me = found
    return y, found


def alike(x, codes):
    """One object in two places."""
    shared = [int(c) for c in codes if c > 3]
    shared.pop(0)
    both = {"one": shared, "other": shared}
    return x + 1.0, both, shared


def rows(x, codes):
    """Objects have arrays of the program, whose memory is used anew."""
    y = x + 1.0
    kept = {}
    kept[int(codes[0])] = y[2]
    kept["all"] = y
    y = np.sqrt(x * x + 3.0)
    z = y * 2.0
    return z, kept


def on_one_way(x, codes):
    """An early return of an object in a region."""
    seen = {}
    for c in codes:
        if int(c) in seen:
            return {"again": int(c)}
        seen[int(c)] = True
    return {"none": len(seen)}


def grown_in_a_loop(x, codes):
    """An object that a loop of array work changes."""
    history = collections.deque(maxlen=3)
    for k in range(5):
        x = x * 1.5
        history.append(f"{k}: {float(x[0, 0]):.3f}")
    return x, history


def of_a_function(x, codes):
    y, seen = helped(x, codes)
    return y * 2.0, seen


def helped(x, codes):
    seen = {}
    for c in codes:
        seen[str(c)] = int(c)
    return x / len(seen), seen


def text(x, codes):
    return ", ".join(str(c) for c in sorted(set(codes.tolist())))


EVERY = (
    *(counted, beside_arrays, as_one_region, rows, on_one_way, grown_in_a_loop, of_a_function),
    text,
)


def without_a_copy(x, codes):
    """A generator, which cannot be copied."""
    seen = {}
    for c in codes:
        seen[int(c)] = 1
    later = (2 * k for k in seen)
    return x * 2.0, later
