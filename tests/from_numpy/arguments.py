"""Programs whose arguments are arrays of no dimensions, or have names that C++ has for itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from from_numpy.corpus.registry import Case


def added_to(x: Any) -> Any:
    x += 1
    return x * 2


def with_two_names(x: Any, y: Any) -> Any:
    same, copied = x, y[()]
    x += 1
    y -= 1
    return same + 0, copied


def in_a_loop(x: Any, n: int) -> Any:
    for i in range(n):
        x += i
    while x > 2:
        x /= 2


def assigned(x: Any, y: Any, a: Any) -> Any:
    x[...] = a.sum()
    y[()] = a[0]
    np.add(y, 1, out=y)


def in_a_branch(x: Any, a: Any) -> Any:
    if x > -1:
        x -= 10
    a *= x


def bound_anew(x: Any) -> Any:
    x = x + 1
    x += 5
    return x, x.copy()


def points(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, v: Any) -> Any:
    """Each array of no dimensions is changed as NumPy changes it, or not at all."""
    first = added_to(a), with_two_names(b, c), in_a_loop(d, 3), assigned(e, f, v)
    in_a_branch(g, v)
    return first, bound_anew(h), h


def indexed(k: Any, v: Any) -> Any:
    v[k] = 7
    k *= 2
    return v[k]


def union(template: Any, new: Any, this: Any, int: Any, double: float = 2.0) -> Any:
    template += new * double
    new[0] = 5
    this += int
    return template.sum() + int


def names_of_headers(errno: Any, linux: Any, stdin: Any, M_PI: Any, EOF: Any, sin: Any) -> Any:  # noqa: N803
    sin += np.sin(errno) * linux[0]
    NULL = np.exp(stdin) + M_PI  # noqa: N806
    INT_MAX = NULL * EOF  # noqa: N806
    return INT_MAX - np.abs(np.minimum(sin, stdin))


def _points(rng: Any, count: int) -> tuple[Any, ...]:
    return tuple(np.array(number) for number in rng.random(count))


def by_default(x: Any, f: Any = lambda x: np.sin(np.pi * x)) -> Any:
    return f(x), {"f": f(x[0])}


def begun_in_a_branch(x: Any) -> Any:
    """``i`` is set on one way only, in each of the iterations that a list writes out."""
    found = []
    for k in range(3):
        if x[k] > 0.5:
            i = 0
            while x[i] < 0.9:
                i += 1
            x[k] = i
        found.append(x.sum())
    return np.array(found)


def relaxed(u: Any, f: Any) -> None:
    """Borders are split along other dimensions than what is inside."""
    for _t in range(5):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = f[1:-1, 1:-1] + 0.2 * around
        u[0, 1:-1] = u[1, 1:-1]
        u[-1, 1:-1] = u[-2, 1:-1]
        u[1:-1, 0] = u[1:-1, 1]
        u[1:-1, -1] = u[1:-1, -2]
        u[0, 0] = 0.5 * (u[1, 0] + u[0, 1])


CASES = [
    Case("relaxed", relaxed, "", "", lambda rng: tuple(rng.random((2, 10, 10))), ()),
    Case("by_default", by_default, "", "", lambda rng: (rng.random(5),), ()),
    Case(
        "begun_in_a_branch",
        begun_in_a_branch,
        "",
        "",
        lambda rng: (np.array([0.2, 0.7, 0.6, 0.1, 0.95]),),
        (),
    ),
    Case("points", points, "", "", lambda rng: (*_points(rng, 8), rng.random(3)), ()),
    Case("indexed", indexed, "", "", lambda rng: (np.array(1), rng.random(5)), ()),
    Case("union", union, "", "", lambda rng: (*rng.random((2, 3)), *_points(rng, 1), 3), ()),
    Case("names_of_headers", names_of_headers, "", "", lambda rng: tuple(rng.random((6, 3))), ()),
]
