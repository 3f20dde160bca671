"""Arrays, dictionaries and objects that are one of two, as the run decides: who sees changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from from_numpy.collections_of_cases import Case
from from_numpy.harness import on_paper


def argument_on_one_way(x, v):
    y = x
    if v[0] > 0:
        y = x * 2
    y[0] = 100
    return y


def argument_on_each_way(x, v):
    if v[0] < 100:
        y = x
    else:
        y = v
        y[0] = 1
    y += 1
    return y, x


def by_a_conditional_expression(x, v):
    y = x if v[0] < 100 else v
    y[0] = 3
    return x, y


def result_of_a_function(x, v):
    def within(a):
        if np.sum(a) > -1000:
            return a
        return a / np.sum(a)

    y = within(x)
    y[0] = 3
    return x, y


def by_the_first_name(x, v):
    a = x.copy()
    b = np.zeros(7)
    if x[0] < 100:
        b = a
    a[1:3] = 7
    return b


def views_of_one(x, v):
    a = x.copy()
    w = a[0:3]
    if v[0] < 100:
        w = a[3:6]
    w[:] = 0
    a[4] = 2
    return a, w


def one_of_three(x, v):
    y = x
    if v[0] > 0:
        y = x + v
    if v[1] > 0:
        y = v
    y[2] = -5
    v[3] = 6
    return y


def swapped_names(x, v):
    a, b = x.copy(), v.copy()
    first = a
    if x[0] > v[0]:
        a, b = b, a
    a[0] = 10
    b[1] = 11
    return a, b, first


def names_of_one_list(x, v):
    if x.sum() > 0:
        a = [x[0], x[1]]
        b = a
    else:
        a = [x[1], x[0]]
        b = a
    b[0] = 7.0
    return a[0] + a[1]


def attribute(x, v):
    class Particle:
        def __init__(self, position):
            self.position, self.best, self.least = position, position.copy(), 1e9

        def move(self, v):
            self.position += v
            found = np.sum(self.position**2)
            if found < self.least:
                self.least = found
                self.best = self.position

    particle = Particle(x.copy())
    for _ in range(600):
        particle.move(-0.003 * v)
    return particle.best, particle.least


def best_of_many(x, v):
    position, best, least = x.copy(), x.copy(), 1e9
    for _ in range(600):
        position -= 0.004 * v
        found = np.sum((position - 0.2) ** 2)
        if found < least:
            least = found
            best = position
    return best, least


def argument_in_a_loop(x, v):
    best = v
    for t in range(600):
        x[t % 7] += 0.001
        if np.sum(x) > 1.0:
            best = x
    best[0] = 4
    return best


def of_each_iteration(x, v):
    def within(a):
        total = np.sum(a * a)
        if total == 0:
            return a
        return a / total

    for _ in range(600):
        y = within(x)
        y[0] = 1
    return y


def element_by_element(x, v):
    u, following = x.copy(), x.copy()
    for _ in range(600):
        for i in range(1, 6):
            following[i] = 0.5 * (u[i - 1] + u[i + 1])
        u = following
    return u


def parts_of_a_dictionary(x, v):
    if x[0] > 0:
        d = {"a": x, "k": 1.0}
    else:
        d = {"a": v, "k": 2.0}
        v[1] = 1
    d["a"][0] = 5
    return d["a"] * d["k"]


class State:
    """What moves."""

    def __init__(self, x, v, t=0.0):
        self.x, self.v, self.t = x, v, t

    def __add__(self, other):
        return State(self.x + other.x, self.v + other.v, self.t + other.t)

    def scaled(self, by):
        return State(self.x * by, self.v * by, self.t * by)


def object_of_two(x, v):
    state = State(x, v, 1.0) if x[0] > 0 else State(v, x, 2.0)
    return state.scaled(2.0).x * state.t


def objects_bound_anew(x, v):
    state = State(x, v)
    while np.sum(state.x**2) > 0.5:
        state = state + State(state.v, -state.x - state.v, 1.0).scaled(0.02)
    state.t = state.t + 1
    return state.x, state.t


def dictionaries_bound_anew(x, v):
    state, steps = {"x": x, "v": v, "of": {"t": 0.0, "name": "euler"}}, 0
    while np.sum(state["x"] ** 2) > 0.5:
        x, v, t = state["x"], state["v"], state["of"]["t"]
        state = {
            "x": x + 0.02 * v,
            "v": v - 0.02 * (x + v),
            "of": {"t": t + 0.02, "name": "euler"},
        }
        steps += 1
    return state["x"], state["of"]["t"], steps


def two_buffers(x, v):
    buffers = [x.copy(), np.zeros(7)]
    for t in range(600):
        now, following = buffers[t % 2], buffers[(t + 1) % 2]
        following[1:-1] = (now[:-2] + now[2:]) / 2
    return buffers[0], buffers[1]


def two_buffers_by_index(x, v):
    buffers = [x.copy(), np.zeros(7)]
    for t in range(600):
        buffers[(t + 1) % 2][1:-1] = (buffers[t % 2][:-2] + buffers[t % 2][2:]) / 2
    return buffers[0], buffers[1]


def elements_of_a_list(x, v):
    def first(a):
        a[0] = 4

    every = [x, v.copy(), x + v]
    least = 0
    for i in range(3):
        if every[i].sum() < every[least].sum():
            least = i
    found = every[least]
    found[1] = 99
    i = int(x[0] > 0)
    first(every[i])
    every[i][2:4] *= 5
    every[-1 - i].sort()
    every[2][5] = 8
    for k in range(2):
        every[k][6] = k
    return every[0], every[1], every[2], found


X = np.array([0.35, 0.82, 0.33, -1.3, 0.91, 0.45, -0.54])
V = np.array([0.58, 0.36, 0.29, 0.03, 0.55, -0.74, -0.16])
RIGHT = [
    *(argument_on_one_way, argument_on_each_way, by_a_conditional_expression),
    *(result_of_a_function, by_the_first_name, views_of_one, one_of_three, swapped_names),
    *(names_of_one_list, attribute, best_of_many, argument_in_a_loop, of_each_iteration),
    *(element_by_element, parts_of_a_dictionary, object_of_two, objects_bound_anew),
    *(dictionaries_bound_anew, two_buffers, two_buffers_by_index, elements_of_a_list),
]


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("function", RIGHT, ids=lambda f: f.__name__)
def test_writes_reach_what_the_run_decides(function: Any, turned: bool) -> None:
    given = (-X, -V) if turned else (X, V)
    outcome = on_paper(
        Case(function.__name__, function, "", "", lambda _: [a.copy() for a in given], ())
    )
    assert outcome.kind == "right", outcome.reason


def list_of_one_way(x, v):
    a, b = [x[0], x[1]], [x[2], x[3]]
    if x.sum() > 0:
        b = a
    b[0] = 7.0
    return a[0] + b[1]


def behind_a_loop(x, v):
    position, best, least = x.copy(), x.copy(), 1e9
    for _ in range(600):
        position = position - 0.004 * v
        if np.sum(position**2) < least:
            least, best = np.sum(position**2), position
    position[0] = 5
    return best


def least_by_a_key(x, v):
    every = [x.copy(), v.copy()]
    least = min(every, key=lambda a: a.sum())
    least[0] = 50
    return every[0]


def none_at_first(x, v):
    best, least = None, 1e9
    for row in np.outer(x, v):
        if np.sum(row) < least:
            best, least = row, np.sum(row)
    best *= 0
    return best


@pytest.mark.parametrize("function", [list_of_one_way, behind_a_loop, none_at_first])
def test_changes_are_refused_that_no_container_can_follow(function: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"as the run decides; .* copy"):
        numpy_program(function, X, V)


def test_an_element_that_has_no_place_is_not_written() -> None:
    with pytest.raises(UnsupportedProgram, match=r"an element of a list of arrays is written"):
        numpy_program(least_by_a_key, X, V)
