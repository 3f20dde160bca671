"""Arrays of classes that the user has written: which results are of the class, with what."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import ArgumentError, UnsupportedProgram
from distspmd.execution.call_keys import kind_of
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import call_form_of
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


class Measured(np.ndarray):
    """An array that knows where it comes from."""

    def __new__(cls, values, source=None):
        made = np.asarray(values).view(cls)
        made.source = source
        return made

    def __array_finalize__(self, parent):
        if parent is None:
            return
        self.source = getattr(parent, "source", None)

    @property
    def energy(self):
        return float(np.sum(self**2))

    def scaled(self, by):
        return self * by


class Quaternion(np.ndarray):
    """With operators of its own, and its elements by another name."""

    def __new__(cls, values=None, versor=True):
        if values is None:
            values = np.array([1.0, 0.0, 0.0, 0.0])
        values = np.array(values, dtype=float)
        if versor:
            values /= np.linalg.norm(values)
        made = super().__new__(cls, values.shape, float, values)
        made.parts = values
        return made

    @property
    def w(self):
        return self.parts[0]

    @property
    def conj(self):
        return np.array([self.parts[0], *-self.parts[1:]])

    def __mul__(self, other):
        a, b = self.parts, np.asarray(other)
        vector = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
        return Quaternion(np.array([a[0] * b[0] - a[1:] @ b[1:], *vector]), versor=False)

    def __pow__(self, times):
        return self if times == 1 else self * self ** (times - 1)


class Vector(np.ndarray):
    """With parts that it reads and writes itself."""

    def __new__(cls, x, y):
        made = np.zeros(2).view(cls)
        made[0], made[1] = x, y
        return made

    def __add__(self, other):
        return Vector(self[0] + other[0] + 1, self[1] + other[1])

    def __getitem__(self, items):
        return super().__getitem__(items)

    def __iadd__(self, other):
        self[0] = self[0] + 10
        return self

    @property
    def x(self):
        return self[0]

    @x.setter
    def x(self, value):
        self[0] = value


def of_which_class(x, m):
    a = Measured(x, source="sensor")
    values = (
        *(a[1:], a + x, x * a, np.sin(a), np.asarray(a), a.copy(), np.array(a), a.reshape(2, 2).T),
        *(a.sum(), a[0], np.dot(a, x), a.mean(), np.concatenate([a, x]), np.where(a > 0, a, x)),
        *(np.linalg.norm(a), -a, abs(a), a > 0, a.astype(int), np.cumsum(a), np.stack([a, a])),
        *(m @ a, np.zeros_like(a), a.view(np.ndarray), a.view(), np.asanyarray(a)),
    )
    return " ".join(type(value).__name__ for value in values)


def attributes_go_on(x, m):
    a = Measured(x, source=3)
    parts = (a[1:], a + x, x * a, np.sin(a), a.copy(), a.reshape(2, 2).T, a.scaled(2.0))
    return [part.source for part in parts], a.energy, isinstance(a[1:], Measured)


def operators_of_the_class(x, m):
    p = Quaternion(x)
    r, w = p * m[0], p + 1
    rotated = p * np.array([0.0, *m[1, :3]]) * Quaternion(p.conj, versor=False)
    return r, rotated[1:], p**3, w, 2 * p, x * p, np.float64(2) * p, p.w, type(w).__name__


def one_memory(x, m):
    q = Quaternion(x)
    q /= 2
    q.parts[1] = 7
    q[2] = 3
    rest = q[1:]
    rest[2] = 9
    view = x.view(Measured)
    view[0] = 5
    return q.parts, q, x


def parts_of_its_own(x, m):
    a, b = Vector(x[0], x[1]), Vector(1.0, 2.0)
    c = a + b
    a += b
    a.x = a.x * 2
    return a, c, b - c, a.x, (a * b).x


def in_a_loop(x, m):
    q, out = Quaternion(x), np.zeros((5, 4))
    for i in range(5):
        q = Quaternion(q * m[i])
        out[i] = q
    return out, q.w


def in_a_long_loop(x, m):
    q = Quaternion(x)
    for i in range(700):
        q = Quaternion(q * m[i % 5])
    return q.parts


def in_a_branch(x, m):
    q = Quaternion(x)
    if x[0] > 0:  # noqa: SIM108
        q = Quaternion(m[0])
    else:
        q = q * q
    return q.w, q * q


def of_a_class_by_the_run(x, m):
    def turned(v):
        q = Quaternion(v)
        if np.linalg.norm(v) < 1:
            return q.parts
        return q + 1

    out = np.zeros((5, 4))
    for i in range(5):
        out[i] = turned(m[i])
    return out


def one_by_one(x, m):
    q = Quaternion(x)
    a, b, c, d = q / np.linalg.norm(q)
    total = 0.0
    for v in q:
        total += v
    truth = bool((q == q).all())
    steps = 0
    while q[0] < 0.9 and steps < 3 and (q < 5).any():
        steps += 1
    return a, b, c, d, total, [v * 2 for v in q], len(q), q.shape, max(q), sum(q), truth, steps


X = np.array([0.35, 0.82, 0.33, -1.3])
M = np.random.default_rng(3).standard_normal((5, 4))
RIGHT = [
    *(of_which_class, attributes_go_on, operators_of_the_class, one_memory, parts_of_its_own),
    *(in_a_loop, in_a_long_loop, in_a_branch, of_a_class_by_the_run, one_by_one),
]


@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_arrays_of_classes_are_what_numpy_makes_of_them(function: Any) -> None:
    outcome = on_paper(
        Case(function.__name__, function, "", "", lambda _: [X.copy(), M.copy()], ())
    )
    assert outcome.kind == "right", outcome.reason


def returned(x):
    return Measured(x, source="sensor")[1:] * 2


def test_a_result_is_of_its_class_with_its_attributes() -> None:
    form = call_form_of(numpy_program(returned, X)).returned
    found = form.fill(lambda _: X[1:] * 2)
    assert type(found) is Measured
    assert found.source == "sensor"
    np.testing.assert_array_equal(found, returned(X))


class Unit(np.ndarray):
    """A class of which NumPy asks what its functions mean."""

    def __array_ufunc__(self, *_: Any, **__: Any) -> Any:
        return NotImplemented


def asks_the_class(x):
    return x.view(Unit) + 1


class Summing(np.ndarray):
    """A class with a method that functions of NumPy call."""

    def sum(self, axis=None, dtype=None, out=None):
        return 3


def calls_a_method(x):
    return np.sum(x.view(Summing))


def undecided(x):
    q = Measured(x) if x[0] > 0 else x
    return q + 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (asks_the_class, "a method __array_ufunc__ of its own"),
        (calls_a_method, "sum of arrays of a user's class, of which it calls a method"),
        (undecided, "is of the class Measured or of the class np.ndarray here"),
    ],
)
def test_what_cannot_be_kept_is_refused(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message):
        numpy_program(function, X)


def squared(q):
    return q * q


@pytest.mark.parametrize("argument", [M.view(np.recarray), X.view(Measured), np.ma.array(X)])
def test_arguments_of_other_classes_are_refused(argument: Any) -> None:
    with pytest.raises(ArgumentError, match="may mean something else than those of arrays"):
        numpy_program(squared, argument)
    assert kind_of(argument) != kind_of(np.asarray(argument))
