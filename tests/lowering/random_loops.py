"""Random nests of loops over elements, on ranks, beside plain Python.

A seed makes a file of several nests: affine subscripts in steps and from both sides, triangles,
numbers that iterations have for themselves, sums, conditions, values that are left behind,
counters, searches for the greatest and the least, and indices that data choose.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import distspmd
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.passes.normalize import loop_dimensions, loop_distribution, loop_scans
from lowering.loop_programs import split_everything

EXTENT, CENTRE = 64, 24


def subscript(rng: random.Random, names: list[str]) -> str:
    """An index within the arrays, of variables that go from 0 to 5."""
    name = rng.choice(names)
    factor = rng.choice([1, 1, 1, 2, -1, 3])
    other = rng.choice(["", "", "", *(f" + {n}" for n in names if n != name)])
    return f"{CENTRE} + {factor}*{name}{other} + {rng.randint(-2, 2)}"


def value(rng: random.Random, names: list[str], numbers: list[str]) -> str:
    """An expression of elements and numbers."""
    parts = [f"{rng.choice('abc')}[{subscript(rng, names)}]" for _ in range(rng.randint(1, 2))]
    parts += [f"a[p[{subscript(rng, names)}]]"] if rng.random() < 0.15 else []
    parts += [rng.choice(numbers)] if numbers and rng.random() < 0.6 else []
    parts += [names[0]] if rng.random() < 0.2 else []
    return " + ".join(f"{rng.choice(['0.5', '0.25'])}*{part}" for part in parts)


def statements(rng: random.Random, names: list[str], numbers: list[str]) -> Iterator[str]:
    """Some statements of a body."""
    own = list(numbers)
    for _ in range(rng.randint(1, 3)):
        kind = rng.random()
        target = f"{rng.choice('abcd')}[{subscript(rng, names)}]"
        if kind < 0.25:
            own.append(rng.choice("tu"))
            yield f"{own[-1]} = {value(rng, names, own[:-1])}"
        elif kind < 0.4:
            yield f"s += {value(rng, names, own)}"
        elif kind < 0.55:
            test = rng.choice([f"a[{subscript(rng, names)}] > 0.5", f"{names[0]} > 2"])
            yield f"if {test}:"
            yield f"    {target} = {value(rng, names, own)}"
        elif kind < 0.65:
            yield f"{target} += {value(rng, names, own)}"
        elif kind < 0.9:
            yield from handed_on(rng, names, own)
        else:
            yield f"{target} = {value(rng, names, own)}"


def handed_on(rng: random.Random, names: list[str], own: list[str]) -> Iterator[str]:
    """Statements that change what iterations hand on: counters, extremes, places of data."""
    some, test = f"{rng.choice('abc')}[{subscript(rng, names)}]", rng.choice("<>")
    kind = rng.randrange(7)
    if kind == 0:
        yield f"if {some} {test} 0.5:"
        yield f"    n += {rng.choice(['1', '2', names[0]])}"
        if rng.random() < 0.5:
            yield "else:"
            yield f"    s -= {value(rng, names, own)}"
    elif kind in (1, 2):
        best, compared = rng.choice([("top", ">"), ("low", "<"), ("top", ">="), ("low", "<=")])
        guard = rng.choice(["", "", f"b[{subscript(rng, names)}] > 0.3 and "])
        yield f"if {guard}{some} {compared} {best}:"
        yield f"    {best} = {some}"
        if rng.random() < 0.7:
            yield f"    at_{best} = {' + 7*'.join(names)}"
    elif kind == 3:
        yield rng.choice([f"m = max(m, {some})", f"m = min(m, {some})"])
    elif kind == 4:
        yield f"d[p[{subscript(rng, names)}]] += {some}"
    elif kind == 5:
        yield "k += 1"
        yield f"c[k] = {some}"
    else:
        yield f"if {some} {test} 0.5:"
        yield f"    s += {some}"
        yield f"elif {names[0]} > 1:"
        yield "    n += 1"


def nest(rng: random.Random, number: int) -> str:
    """A function with a nest of loops."""
    over = rng.choice(["range(6)", "range(1, 6)", "range(0, 6, 2)", "range(5, -1, -1)"])
    lines = [f"def nest{number}(a, b, c, d, p):", "    s = 0.0", "    t = a[1]", "    u = b[2]"]
    lines += [
        "    n = k = 0",
        "    m = b[3]",
        "    top = -1.0",
        "    low = 9.0",
        "    at_top = at_low = -1",
    ]
    lines.append(f"    for i in {over}:")
    lines += [f"        {line}" for line in statements(rng, ["i"], [])]
    if rng.random() < 0.6:
        inner = rng.choice(["range(4)", "range(i)", "range(i, 6)"])
        lines.append(f"        for j in {inner}:")
        lines += [f"            {line}" for line in statements(rng, ["i", "j"], [])]
    if rng.random() < 0.4:
        lines += [f"        {line}" for line in statements(rng, ["i"], [])]
    own = "s, t, n, k, m" if rng.random() < 0.5 else "s, n, k, m"
    lines.append(f"    return {own}, top, low, at_top, at_low")
    return "\n".join(lines)


def programs(seed: int, count: int, folder: Path) -> list[Any]:
    """Functions from a file that is written anew."""
    rng = random.Random(seed)
    file = folder / f"nests{seed}.py"
    file.write_text("\n\n\n".join(nest(rng, n) for n in range(count)) + "\n")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return [getattr(module, f"nest{n}") for n in range(count)]


def arguments() -> list[Any]:
    """What each is called with."""
    rng = np.random.default_rng(3)
    return [*(rng.random(EXTENT) for _ in range(4)), rng.integers(-EXTENT, EXTENT, EXTENT)]


def check(comm: Any, seeds: list[int], count: int, folder: str) -> None:
    """Compare nests with Python on the ranks that run this; short loops are separated, too."""
    loop_distribution.LONG, loop_scans._BLOCKS, loop_dimensions.MANY = 2, 4, 2
    for seed in seeds:
        made = programs(seed, count, Path(folder)) if comm.rank == 0 else [None] * count
        for program in made:
            given, lowering = arguments(), None
            if program is not None:
                try:
                    parsed = numpy_program(program, *given, host="refuse")
                    lowering = distspmd.lower(parsed, split_everything(parsed, comm.size, 0))
                except UnsupportedProgram as refusal:
                    print(f"seed {seed}: {program.__name__} is refused: {refusal}", flush=True)
            if not comm.bcast(lowering is not None):
                continue
            with distspmd.compile(lowering, comm) as compiled:
                found = compiled(*given)
            if program is not None:
                wanted = arguments()
                expected = program(*wanted)
                what = f"seed {seed}: {program.__name__}"
                np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=what)
                for one, other in zip(given, wanted, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=what)
