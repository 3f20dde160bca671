"""Loops, branches, jumps, views and maps of NumPy programs: what they become, and their results."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from dace import SDFG
from dace.sdfg.state import ConditionalBlock, LoopRegion

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.frontend import numpy_program


def regions(sdfg: SDFG, kind: type) -> list[Any]:
    return [r for r in sdfg.all_control_flow_regions() if isinstance(r, kind)]


def jumps(x, n):
    found = 0.0
    for i in range(7):
        if i == 2:
            continue
        for j in range(5):
            if x[j] * i > 3:
                found += 100
                break
        else:
            found += 1
            if i == 1:
                break
        found += i
    else:
        found -= 1000
    return found


def first_large(x):
    for i in range(x.shape[0]):
        if x[i] > 0.9:
            return i, x[i]
    return -1, 0.0


def views(x):
    odd, back = x[1::2], x[::-1]
    odd += 10
    back[:2] = 0
    y = x.copy()
    y[:] = 1
    return x[2:] - odd[0], y


def branches(x, flag):
    if x[0] > 0.5:
        y, kind = x * 2, 1
    elif x[1] > 0.5:
        y, kind = x + 1, 2
    else:
        y, kind = x - 1, 3
    total = np.float32(0)
    while total < 3:
        total += x[2] + 1
        kind += 1
    return y, kind, total


def swaps(x):
    a, b = x + 0, x * 2
    for _ in range(3):
        a, b = b, a + b
    return a, b


def sorted_pairs(x):
    for i in distspmd.map[0:4]:
        low, high = min(x[2 * i], x[2 * i + 1]), max(x[2 * i], x[2 * i + 1])
        if high > 0.2:
            x[2 * i] = low
            x[2 * i + 1] = high


def every(x, z, m):
    one = jumps(x, 3)
    at, value = first_large(x)
    rest, ones = views(z)
    y, kind, total = branches(x, True)
    a, b = swaps(x)
    sorted_pairs(m)
    return one, at, value, rest, ones, y, kind, total, a, b


@pytest.fixture(scope="module")
def compiled() -> Any:
    given = np.zeros(8), np.zeros(9), np.zeros(8)
    return load_unlowered(numpy_program(every, *given))


@pytest.mark.parametrize("seed", range(5))
def test_control_flow_computes_what_python_does(compiled: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = {name: rng.random(n) for name, n in (("x", 8), ("z", 9), ("m", 8))}
    wanted_arguments = copy.deepcopy(given)
    wanted = every(**wanted_arguments)
    found = compiled(**given)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one).reshape(np.shape(other)), other)
    for name, array in wanted_arguments.items():
        np.testing.assert_allclose(given[name], array)


def relaxed(x):
    for _ in range(100000):
        x[1:-1] = (x[:-2] + x[2:]) / 2


def shrinking(x):
    while x.shape[0] > 2:
        x = x[1:] + x[:-1]
    return x


def test_a_loop_stays_one_whatever_its_length() -> None:
    assert len(regions(numpy_program(relaxed, np.ones(9)), LoopRegion)) == 1


def test_a_loop_whose_shapes_change_is_unrolled() -> None:
    sdfg = numpy_program(shrinking, np.ones(6))
    assert not regions(sdfg, LoopRegion)
    assert sdfg.arrays["__return"].shape == (2,)


def test_a_branch_that_is_known_is_none() -> None:
    def known(x, flag: bool = True):
        return x + 1 if flag else x[:2]

    assert not regions(numpy_program(known, np.ones(3)), ConditionalBlock)


@pytest.mark.parametrize("ranges", [(slice(0, 3),), (slice(1, 6, 2), slice(4)), (slice(0, 0),)])
def test_a_map_runs_over_its_indices_in_plain_python(ranges: tuple[slice, ...]) -> None:
    own = [range(*r.indices(100)) for r in ranges]
    found = list(distspmd.map[ranges if len(ranges) > 1 else ranges[0]])
    assert found == (list(product(*own)) if len(own) > 1 else list(own[0]))


@pytest.mark.parametrize("wrong", [3, slice(2, None), (slice(0, 2), 1)])
def test_a_map_needs_ends(wrong: Any) -> None:
    with pytest.raises(TypeError, match="ranges with ends"):
        distspmd.map[wrong]


def backwards(x):
    for i in distspmd.map[4:0:-1]:
        x[i] = 1


def without_end(x):
    for i in distspmd.map[1:]:
        x[i] = 1


def undefined(x):
    return x + nothing  # noqa: F821


def divides(x):
    x //= 2.5
    return x.nosuch(3)


def truth(x):
    return 1 if x else 2


def broadcast(x):
    return x + np.ones(5)


REFUSED: list[tuple[Callable[..., Any], str, str]] = [
    (backwards, "write the range upwards", "distspmd.map[4:0:-1]"),
    (without_end, "ranges with ends", "distspmd.map[1:]"),
    (undefined, "'nothing' is not defined", "nothing"),
    (divides, "'nosuch'", "x.nosuch"),
    (truth, "np.any", "x else"),
    (broadcast, "could not be broadcast together", "x + np.ones"),
]


@pytest.mark.parametrize(
    ("function", "words", "at"), REFUSED, ids=[f.__name__ for f, *_ in REFUSED]
)
@pytest.mark.parametrize(
    "parse", [numpy_program, lambda f, x: distspmd.program(f).lower(x)], ids=["parsed", "decorated"]
)
def test_a_refusal_has_the_line_with_a_caret(
    parse: Any, function: Callable[..., Any], words: str, at: str
) -> None:
    with pytest.raises(distspmd.errors.UnsupportedProgram) as refused:
        parse(function, np.ones(4))
    told, line, caret = str(refused.value).split("\n")
    assert words in told
    assert told.startswith("test_control.py:")
    assert at in line
    assert caret.strip() == "^"
