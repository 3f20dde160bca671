"""Reading a program costs as many statements as it has, once functions are written out."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.reader.interpreter import Interpreter
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.outcomes import RIGHT

X, KEYS = np.arange(1, 6.0), np.array([0, 1, 2, 1, 0, 2, 1, 0])


def sums_in_nested_loops(depth: int) -> str:
    """Each loop adds to a number that is an integer at first."""
    lines = ["def f(x, keys):", *(f"    a{n} = 0" for n in range(depth))]
    for n in range(depth):
        inside = "    " * (n + 1)
        lines += [f"{inside}for i{n} in range(5):", f"{inside}    a{n} = a{n} + x[i{n}]"]
    return "\n".join([*lines, "    return " + " + ".join(f"a{n}" for n in range(depth))])


CARRIED = {
    "a sum": ("a@ = 0", "a@ = a@ + x[i@]", "s = s + a@"),
    "a sum of some": (
        "a@ = 0",
        "if x[i@] > 3.0:\n    a@ = a@ + x[i@]\nelse:\n    a@ = a@ + 1",
        "s = s + a@",
    ),
    "the last of some": (
        "b@ = None",
        "if x[i@] > 3.0:\n    b@ = x[i@]",
        "if b@ is not None:\n    s = s + b@",
    ),
    "None at first": ("b@ = None", "b@ = x[i@]", "if b@ is not None:\n    s = s + b@"),
    "an element of a list": ("c@ = [0, 1.0]", "c@[0] = c@[0] + x[i@]", "s = s + c@[0] + c@[1]"),
    "an entry": ("c@ = {'a': 0}", "c@['a'] = c@['a'] + x[i@]", "s = s + c@['a']"),
    "a pair": ("c@ = (0, 1)", "c@ = (c@[1], x[i@])", "s = s + c@[0]"),
    "a part of an array": ("t@ = x", "t@ = t@[t@ > 2.0 + i@]", "s = s + t@.sum()"),
}
"""What each loop of a nest begins with, does before the loop in it, and does behind it."""


def nest(what: str, depth: int) -> str:
    """Loops in loops, each of which carries something whose kind an iteration decides."""
    first, step, last = CARRIED[what]

    def lines(text: str, level: int, inside: int) -> list[str]:
        return ["    " * inside + line for line in text.replace("@", str(level)).split("\n")]

    made = ["def f(x, keys):", "    s = 0.0"]
    for n in range(depth):
        made += lines(first, n, n + 1)
        made += lines(f"for i{n} in range(5):", n, n + 1)
        made += lines(step, n, n + 2)
    made += lines("s = s + x[0]", 0, depth + 1)
    for n in range(depth - 1, -1, -1):
        made += lines(last, n, n + 1)
    return "\n".join([*made, "    return s"])


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
    *(sums_in_nested_loops, sums_in_nested_whiles, calls_of_loops),
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


@pytest.mark.parametrize("what", [what for what in CARRIED if what != "a part of an array"])
def test_nested_loops_are_read_as_often_as_one(
    what: str, read: Callable[[str], tuple[int, Any]]
) -> None:
    counts = [read(nest(what, depth))[0] for depth in (2, 4, 6)]
    assert counts[2] - counts[1] <= counts[1] - counts[0] + 4


@pytest.mark.parametrize("what", CARRIED)
def test_nested_loops_give_what_they_give_in_python(
    what: str, read: Callable[[str], tuple[int, Any]]
) -> None:
    _, program = read(nest(what, 2))
    outcome = on_paper(Case(what, program, "", "", lambda _: [X, KEYS], ()))
    assert outcome.kind == RIGHT, outcome.reason


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
