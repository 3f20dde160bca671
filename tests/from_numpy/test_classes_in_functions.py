"""Classes that a program defines, and objects that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from from_numpy.endings import INPUTS, different_endings, of_program

X = INPUTS[0]


def hierarchy(x):  # noqa: C901
    class Base(ABC):
        scale = 2.0

        def __init__(self, v):
            self.v = v

        @abstractmethod
        def go(self): ...

        @property
        def doubled(self):
            return self.v * self.scale

        @staticmethod
        def plus(v):
            return v + 1

        @classmethod
        def made(cls, v):
            return cls(v * 3)

        def __add__(self, other):
            return type(self)(self.v + other.v)

        def __len__(self):
            return 3

        def __getitem__(self, i):
            return self.v[i]

        def __call__(self, v):
            return v - 1

    class Derived(Base):
        def __init__(self, v):
            super().__init__(v)
            self.calls = 0

        def go(self):
            self.calls += 1
            return self.v * x

    one = Derived(x) + Derived.made(x)
    one.go()
    called = one.go(), one.doubled, Derived.plus(x), one(x)
    return *called, len(one), one[1], one.calls, isinstance(one, Base)


def records(x):
    @dataclass
    class Record:
        v: np.ndarray
        w: float = 2.0
        seen: list = field(default_factory=list)

        def total(self):
            return self.v.sum() * self.w

    one, other = Record(x), Record(x, w=3.0)
    one.seen.append(1)
    return one.total() + other.total(), len(one.seen), len(other.seen)


@pytest.mark.parametrize("program", [hierarchy, records], ids=lambda each: each.__name__)
def test_classes_in_functions_are_those_of_python(program) -> None:
    assert not different_endings(program, INPUTS)


@dataclass(frozen=True)
class Found:
    t: np.ndarray
    y: np.ndarray
    steps: int = 0
    message: str = "ok"
    best: float | None = None


class WithSlots:
    __slots__ = ("a", "b")

    def __init__(self, a):
        self.a, self.b = a, [a + 1, 2]


def several(x):
    best = None
    if x[1] > 0.5:
        best = x[1]
    return {"found": Found(x, x * 2, 3, best=best)}, [WithSlots(x)]


def test_objects_are_returned() -> None:
    for x in INPUTS:
        (found, (held,)), (wanted, (other,)) = of_program(several, x), several(x)
        one, two = found["found"], wanted["found"]
        assert type(one) is Found
        assert (one.steps, one.message, one.best) == (two.steps, two.message, two.best)
        np.testing.assert_array_equal(one.y, two.y)
        assert type(held) is WithSlots
        np.testing.assert_array_equal(held.b[0], other.b[0])


def test_objects_are_returned_by_what_is_compiled() -> None:
    ready = distspmd.compile(distspmd.lower(numpy_program(several, X), {}), MPI.COMM_WORLD)
    found, (held,) = ready(x=X)
    np.testing.assert_array_equal(found["found"].y, X * 2)
    assert found["found"].best == X[1]
    assert held.b[1] == 2


def test_what_ranks_cannot_make_is_refused_with_its_line() -> None:
    def own_class(x):
        class Own:
            pass

        made = Own()
        made.x = x
        return made

    with pytest.raises(Refusal, match=r"functions.py:\d+: a Own is returned, whose class a func"):
        numpy_program(own_class, X)

    def of_functions(x):
        return Found(x, np.sin)

    with pytest.raises(Refusal, match=r"functions.py:\d+: .* attribute 'y' is a function"):
        numpy_program(of_functions, X)

    def of_one_object_twice(x):
        inner = Found(x, x)
        return Found(inner, [inner])

    def of_itself(x):
        held = [x]
        made = Found(x, held)
        held.append(made)
        return made

    for program in (of_one_object_twice, of_itself):
        with pytest.raises(Refusal, match="holds an object twice, or itself"):
            numpy_program(program, X)


def of_objects(x):
    return Found(x, [Found(x + 1, None, 3), {"held": WithSlots(x * 2)}])


def test_objects_in_objects_are_returned() -> None:
    found = of_program(of_objects, X)
    inner, entry = found.y
    assert (type(found), type(inner), type(entry["held"])) == (Found, Found, WithSlots)
    np.testing.assert_array_equal(inner.t, X + 1)
    np.testing.assert_array_equal(entry["held"].a, X * 2)
    assert (inner.y, inner.steps) == (None, 3)
