"""Classes, generators, ``match`` and Python's tools in programs; and what of them is refused."""

from __future__ import annotations

import functools
import itertools
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.corpus.registry import Case
from from_numpy.harness import on_paper
from from_numpy.objects import CASES, Slots, Sum


def test_python_has_its_meaning_in_programs(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.objects", ranks=2)
    assert done.stdout.endswith(f"{len(CASES)} of {len(CASES)} right\n"), done.stdout


def test_generators_do_their_steps_between_those_of_loops(launch: Any) -> None:
    done = launch(Path(__file__).parent / "run_here.py", "from_numpy.generators", ranks=2)
    assert done.stdout.endswith("2 of 2 right\n"), done.stdout


OUTSIDE = Sum(3)


def sets_what_is_no_slot(x):
    one = Slots()
    one.most = x[0]
    return one.n


def changes_what_is_outside(x):
    OUTSIDE.total = x
    return x


def matches_the_rest_of_a_dictionary(x):
    match {"a": 1, "b": 2}:
        case {"a": 1, **rest}:
            return x * len(rest)
    return x


def binds_where_the_run_may_pass_over(x):
    n = 5.0
    if x[0] > 0.5 and (n := x[1]) > 100:
        return x
    return x * n


def asks_a_text_of_the_run(x):
    return x * len(f"{x[0]}")


def looks_into_a_text_of_the_run(x):
    return x if "a" in f"{x[0]}".upper() else -x


def keeps_errors_to_itself(x):
    class Quiet:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return True

    y = x
    with Quiet():
        y = x * 2
    return y, x


def no_operator(x):
    return Sum(3) - x


def shape_of_an_argument(x):
    x.shape = (3, 1)
    return x


def shape_of_two_names(x):
    a = x + 1
    b = a
    a.shape = (3, 1)
    return b


def takes_the_next_in_a_branch(x):
    numbers = iter([1, 2])
    first = 0
    if x[0] > 0.5:
        first = next(numbers)
    return first + next(numbers)


COUNTER = itertools.count()
CALLS = []


class Registry:
    entries: ClassVar[list[Any]] = []

    def add(self, value):
        self.entries.append(value)


def counts_its_calls(x):
    return x + next(COUNTER)


def notes_its_calls(x):
    CALLS.append(1)
    return x * len(CALLS)


def notes_in_a_class(x):
    Registry().add(1)
    return x * len(Registry.entries)


@dataclass
class Point:
    value: Any


def compares_generated(x):
    return Point(x[0]) == Point(x[1])


def looks_for_objects(x):
    return Sum(3) in [Sum(3)], x


class Doubling:
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2)

    def __getattr__(self, name):
        if name == "thrice":
            return self.x * 3
        raise AttributeError(name)


@dataclass(frozen=True)
class Summed:
    x: Any
    total: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "total", np.sum(self.x))


class Named:
    def __init__(self, x, **options):
        self.x = x
        self.__dict__.update(options)
        for name in ("a", "b"):
            setattr(self, name, options.get(name, 1.0))
        for name in ["x", "a"]:
            if self.__getattribute__(name) is not None:
                self.__setattr__(name, np.copy(self.__getattribute__(name)))

    @property
    def squared(self):
        return self.x**2


def attributes_by_name(x):
    made = Named(x, b=x * 2, c=4)
    for _ in range(3):
        setattr(made, "b", getattr(made, "b") + 1)  # noqa: B009, B010
    if x[0] > 0:
        setattr(made, "a", made.a * 5)  # noqa: B010
    del made.c
    doubled = Doubling()
    doubled.x = x
    return (
        *(made.b, made.a, getattr(made, "squared"), getattr(made, "none", 3.0)),  # noqa: B009
        *(hasattr(made, "c"), doubled.x, doubled.thrice, Summed(x).total),
    )


class Scaled:
    """A context in which an array has another scale."""

    def __init__(self, x):
        self.x = x

    def __enter__(self):
        self.x = self.x * 2
        return self

    def __exit__(self, *_):
        self.x = self.x - 1
        return False


class Written:
    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"<{self.x}>"

    def __repr__(self):
        return "Written(%s)" % self.x  # noqa: UP031


class Pair(NamedTuple):
    x: Any
    y: Any = 1.0

    @property
    def total(self):
        return self.x + self.y

    def __add__(self, other):
        return Pair(self.x + other.x, self.y + other.y)


class Above(Named):
    @property
    def squared(self):
        return super().squared + 1


def texts_and_tuples(x):
    known = Written(3)
    print(Written(x[0]), f"{Written(x[1])}", ", ".join(["a", f"{x[0]}"]))
    p = Pair(x[0]) + Pair(x[1], 2.0)
    ordered = OrderedDict(b=x[0], a=2.0)
    ordered.move_to_end("b")

    def counter():
        count = 0

        def following(by=1):
            nonlocal count
            count += by
            return count

        return following

    one, other = counter(), counter()
    one(5)
    texts = f"{known}|{known!r}", "%s" % known, "{}".format(known), str(known)  # noqa: UP031, UP032
    return texts, p.total, p, list(ordered), one(), other(), Above(x).squared


def within_a_context(x):
    with Scaled(x) as outer, Scaled(x) as inner:
        y = outer.x + inner.x
    for _ in range(3):
        with Scaled(y) as inner:
            y = inner.x * 0.5
            if y[0] > 100:
                return x
    return y, outer.x, inner.x


@dataclass
class Circle:
    radius: float
    at: tuple


def area(shape, x):
    match shape:
        case Circle(radius, at=(0, y)) if y > 5:
            return x * radius + y
        case Circle(radius=r):
            return x * r
        case ("scale", 1 | 2):
            return x + 1
        case ("scale", by):
            return x * by
        case [first, *rest, last]:
            return x * first + last * len(rest)
        case {"kind": "square", "side": side}:
            return x * side
        case int(n) if n > 5:
            return x - n
        case None | "nothing":
            return x * 0
        case _:
            return x


def matched(x):
    shapes = [Circle(2.0, (0, 7)), Circle(x[1], (0, 2)), ("scale", x[0]), [1, 2, 3, x[2]]]
    shapes += [{"kind": "square", "side": x[3]}, 7, 3, None, "nothing", Circle(1.5, (1, 9))]
    found = [area(shape, x) for shape in shapes]
    match x.shape:
        case (4,):
            found.append(x)
    return np.array(found)


NAMES = [attributes_by_name, within_a_context, matched, texts_and_tuples]


@pytest.mark.parametrize("function", NAMES)
def test_attributes_have_names(function: Any) -> None:
    outcome = on_paper(
        Case(function.__name__, function, "", "", lambda _: [np.arange(1.0, 5.0)], ())
    )
    assert outcome.kind == "right", outcome.reason


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (sets_what_is_no_slot, "AttributeError: 'Slots' object has no attribute 'most'"),
        (takes_the_next_in_a_branch, "made outside of it is read in it"),
        (counts_its_calls, "an iterator from outside of the program"),
        (notes_its_calls, "a list, dictionary or set from outside"),
        (notes_in_a_class, "a list, dictionary or set from outside"),
        (compares_generated, "__eq__ of Point, which takes fields of the run"),
        (looks_for_objects, "'in' where objects of the program are compared"),
        (changes_what_is_outside, "changes 'total' of an object that is not its own"),
        (matches_the_rest_of_a_dictionary, "a pattern of match with"),
        (binds_where_the_run_may_pass_over, "'n' is bound in a part of an expression"),
        (asks_a_text_of_the_run, "says is not known before the run"),
        (looks_into_a_text_of_the_run, "says is not known before the run"),
        (keeps_errors_to_itself, "Quiet.__exit__ may keep errors to itself"),
        (shape_of_an_argument, "the shape of an argument; write x = x.reshape"),
        (shape_of_two_names, "the shape of an array that has several names"),
        (no_operator, "TypeError: unsupported operand"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_would_happen_once_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, np.array([0.3, 0.7, 0.2]), host="refuse")


class _Registered(type):
    """A metaclass, as libraries of models have."""


class Distances(metaclass=_Registered):
    @staticmethod
    def squared(a: Any, b: Any) -> Any:
        return (a - b) ** 2

    @staticmethod
    def between(a: Any, b: Any) -> Any:
        return np.sqrt(Distances.squared(a, b))


@functools.lru_cache(maxsize=4)
def _bits(number: int) -> Any:
    found = np.zeros(4)
    for place in range(4):
        if number >> place & 1:
            found[place] = 1
    return found


def test_classes_of_a_metaclass_and_cached_functions_are_read() -> None:
    def distances(x: Any, y: Any) -> Any:
        from .objects import __name__ as name  # noqa: TID252

        total = np.zeros(4)
        for number in (np.argmax(x), np.argmax(y)):
            total += _bits(number)
        return Distances.between(x, y), total * len(name)

    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        return rng.random(7), rng.random(7)

    outcome = on_paper(Case("distances", distances, "own", "", make, ()))
    assert outcome.kind == "right", outcome


class Layer:
    def __init__(self, x: Any) -> None:
        self.__x = x

    def run(self, factor: float) -> Any:
        __scale = factor * 2
        return self.__scaled(__scale) + self.__class__.__name__.count("L")

    def __scaled(self, by: float) -> Any:
        return (lambda: self.__x * by)()


def test_private_names_of_classes_are_those_of_python() -> None:
    def program(x: Any) -> Any:
        return Layer(x).run(3.0), Layer(x)._Layer__scaled(2.0)

    outcome = on_paper(Case("program", program, "own", "", lambda rng: (rng.random(5),), ()))
    assert outcome.kind == "right", outcome
