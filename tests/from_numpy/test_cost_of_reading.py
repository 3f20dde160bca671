"""Reading a program costs as many statements as it has, once functions are written out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.interpreter import Interpreter

X, KEYS = np.arange(1, 6.0), np.array([0, 1, 2, 1, 0, 2, 1, 0])


def sums_in_nested_loops(depth: int) -> str:
    """Each loop adds to a number that is an integer at first."""
    lines = ["def f(x, keys):", *(f"    a{n} = 0" for n in range(depth))]
    for n in range(depth):
        inside = "    " * (n + 1)
        lines += [f"{inside}for i{n} in range(5):", f"{inside}    a{n} = a{n} + x[i{n}]"]
    return "\n".join([*lines, "    return " + " + ".join(f"a{n}" for n in range(depth))])


def sums_of_their_own(depth: int) -> str:
    """Each loop begins the sum of the loop in it anew, and adds it to its own."""
    lines = ["def f(x, keys):", "    a0 = 0"]
    for n in range(depth):
        inside = "    " * (n + 1)
        lines += [f"{inside}for i{n} in range(5):", f"{inside}    a{n} = a{n} + x[i{n}]"]
        lines += [f"{inside}    a{n + 1} = 0"]
    lines += ["    " * (n + 1) + f"a{n - 1} = a{n - 1} + a{n}" for n in range(depth - 1, 0, -1)]
    return "\n".join([*lines, "    return a0"])


def sums_in_nested_whiles(depth: int) -> str:
    """The same of loops that end by a condition."""
    lines = ["def f(x, keys):", "    a0 = 0"]
    for n in range(depth):
        inside = "    " * (n + 1)
        lines += [f"{inside}a{n} = 0", f"{inside}while a{n} < x[{n % 5}]:"]
        lines += [f"{inside}    a{n} = a{n} + 0.5 * x[0]"]
    return "\n".join([*lines, "    return a0"])


def calls_of_loops(depth: int) -> str:
    """Each loop is in a function of its own, which the loop around calls."""
    lines = ["def f0(x):", "    return 0"]
    for n in range(1, depth + 1):
        lines += [f"def f{n}(x):", "    a = 0", "    for i in range(5):"]
        lines += [f"        a = a + x[i] + f{n - 1}(x)", "    return a"]
    return "\n".join([*lines, "def f(x, keys):", f"    return f{depth}(x)"])


FUNCTIONS = """
def once(x):
    return x
def twice(x):
    return 2.0 * x
RULES = [once, twice, lambda x: x**2]
"""


def functions_by_keys(depth: int) -> str:
    """A sum of what functions give that keys of the run choose."""
    terms = (f"RULES[keys[{n}]](x)" for n in range(depth))
    return f"{FUNCTIONS}\ndef f(x, keys):\n    return {' + '.join(terms)}"


def functions_of_functions(depth: int) -> str:
    """The same where each is called with what the one before it gives."""
    called = "x"
    for n in range(depth):
        called = f"RULES[keys[{n}]]({called})"
    return f"{FUNCTIONS}\ndef f(x, keys):\n    return {called}"


class Part:
    """One of several objects whose attributes and methods are read."""

    def __init__(self, mass: float) -> None:
        self.mass = mass

    def of(self, x: Any) -> Any:
        """The part of something."""
        return self.mass * x


def attributes_by_keys(depth: int) -> str:
    """A sum of attributes of known objects, and of what their methods give."""
    terms = (f"parts[keys[{n}]].mass + parts[keys[{n}]].of(x)" for n in range(depth))
    made = "    parts = [Part(1.0), Part(2.5), Part(x[0])]"
    head = "from from_numpy.test_cost_of_reading import Part"
    return f"{head}\ndef f(x, keys):\n{made}\n    return {' + '.join(terms)}"


LINEAR = [
    *(sums_in_nested_loops, sums_of_their_own, sums_in_nested_whiles, calls_of_loops),
    *(functions_by_keys, functions_of_functions, attributes_by_keys),
]


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, Any]]:
    """Reads the function ``f`` of a text: how many statements were read, and the function."""
    count = 0
    read_statement = Interpreter.statement

    def counted(self: Interpreter, node: Any) -> None:
        nonlocal count
        count += 1
        read_statement(self, node)

    monkeypatch.setattr(Interpreter, "statement", counted)

    def run(text: str) -> tuple[int, Any]:
        nonlocal count
        count = 0
        file = tmp_path / f"program{len(list(tmp_path.iterdir()))}.py"
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        numpy_program(module.f, X, KEYS)
        return count, module.f

    return run


@pytest.mark.parametrize("text", LINEAR, ids=lambda each: each.__name__)
def test_statements_are_read_as_often_whatever_is_around(
    text: Callable[[int], str], read: Callable[[str], tuple[int, Any]]
) -> None:
    counts = [read(text(depth))[0] for depth in (2, 4, 6)]
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 4


def test_functions_are_read_once_for_each_call(read: Callable[[str], tuple[int, Any]]) -> None:
    def text(depth: int) -> str:
        lines = ["def f0(x):\n    return x + 1.0"]
        lines += [
            f"def f{n}(x):\n    return f{n - 1}(x) + f{n - 1}(x)" for n in range(1, depth + 1)
        ]
        return "\n".join([*lines, f"def f(x, keys):\n    return f{depth}(x)"])

    counts = [read(text(depth))[0] for depth in (2, 6)]
    bodies = [2 ** (depth + 1) for depth in (2, 6)]
    assert counts[1] / bodies[1] <= counts[0] / bodies[0]
