"""Lists, dictionaries and sets, and variables that are no arrays, in loops, branches and maps."""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from typing import Any

import numpy as np
import pytest
from dace.sdfg.state import LoopRegion
from mpi4py import MPI

import distspmd
from distspmd.codegen.build import load_unlowered
from distspmd.errors import UnsupportedProgram
from distspmd.frontend import numpy_program
from distspmd.runtime.calls.form import OneOf, call_form_of


def best(x):
    found = None
    for i in range(len(x)):
        if found is None or x[i] > found:
            found = x[i]
    return found


def mode_changes(x):
    mode, total = "first", 0.0
    for i in range(4):
        if mode == "first":
            total += x[i]
            mode = "second"
        else:
            total -= 2 * x[i]
    return total


def function_changes(x):
    g = np.sin
    for _ in range(3):
        x = g(x)
        g = np.cos
    return x


def dictionary_grows(x):
    seen = {}
    total = 0.0
    for i in range(4):
        seen.update({i: 1})
        total = total + x[i] * len(seen)
    return total


def list_shrinks(x):
    left = [1, 2, 3, 4]
    total = 0.0
    for i in range(4):
        total = total + x[i] * len(left)
        left.remove(i + 1)
    return total


def set_grows(x):
    seen, total = set(), 0.0
    for i in range(5):
        if i % 2 not in seen:
            total += x[i]
        seen.add(i % 2)
    return total


def nested_list_grows(x):
    state = {"history": [1.0]}
    total = 0.0
    for i in range(3):
        state["history"].append(2.0)
        total += x[i] * len(state["history"])
    return total


def window_moves(x):
    window = deque([0.0, 0.0], maxlen=2)
    total = 0.0
    for i in range(5):
        window.append(x[i])
        total += window[0] * (i + 1)
    return total


def branch_replaces(x):
    values = [1.0, 2.0]
    table = {"a": x, "b": x * 2}
    if x[0] > 0.5:
        values[0] = 5.0
        table["a"] = x + 1
    else:
        table["b"] = x - 1
    return values[0] * values[1] * table["a"] + table["b"]


def branch_in_a_loop(x):
    table = {"low": 0.0, "high": 0.0}
    for i in range(600):
        if x[i % 8] > 0.5:
            table["high"] += x[i % 8]
        else:
            table["low"] = table["low"] + 1
    return table["low"], table["high"]


def trained(x):
    weights = {"w": np.zeros(8), "b": 0.0, "name": "linear", "steps": 0}
    layers = [{"scale": 1.0}, {"scale": 2.0}]
    for _ in range(600):
        error = weights["w"] * x + weights["b"] - 1
        weights["w"] -= 0.1 * error * x
        weights["b"] = weights["b"] - 0.1 * np.mean(error)
        weights["steps"] += 1
        for layer in layers:
            layer["scale"] = layer["scale"] * 0.99 + weights["b"] * 0.01
    return weights["w"], weights["b"], weights["steps"], layers[1]["scale"]


def stepped(x):
    y = [1.0, x[0]]
    t = 0.0
    while t < 7:
        k = [y[1], -y[0]]
        y = [a + 0.01 * b for a, b in zip(y, k, strict=True)]
        y[0] *= 0.999
        t += 0.01
    return y[0], y[1]


def in_place_by_two_names(x):
    table = {"a": x * 2}
    other = table["a"]
    table["a"] += 1
    return other


def lists_in_loops(x):
    pair = [0.0, 1.0]
    for i in range(600):
        pair = [pair[1], pair[0] + x[i % 8] * 0.001]
    return pair[0], pair[1]


def returned_or_not(x):
    if x[0] < 0.3:
        print("too small")
        return None
    if x[0] < 0.5:
        return "half"
    if x[0] < 0.7:
        return x[1:], 3
    return x * 2


def bound_or_not(x):
    found = None
    if x[0] > 0.5:
        found = x[::2]
    return found


def chosen_in_an_expression(x):
    kind = "low" if x[0] < 0.5 else "high"
    part = x[:3] if x[1] > x[0] else x[:5]
    return x if x[0] < 0.5 else 0.0, (kind, x[0] if x[0] < 0.9 else None), part


def root_or_not(x):
    low, high = x[0] - 1, x[1]
    if (low - 0.1) * (high - 0.1) >= 0:
        return None, 0
    count = 0
    while high - low > 1e-6:
        middle = (low + high) / 2
        count += 1
        if (middle - 0.1) * (low - 0.1) > 0:
            low = middle
        else:
            high = middle
    return low, count


def named_as_in_cpp(x):
    new = x * 2
    delete = new + 1
    for this in range(3):
        delete = delete + this
    default, auto = {"int": delete}, 3.0
    while auto > 1:
        auto = auto - 1 - x[0] * 0
    max = x.max()
    return default["int"], auto, new[int(auto)] + max


def kept_where_no_iteration(x, n):
    part = x * 3
    total = 0.0
    for k in range(n):
        part = x[k : k + 2] * 2
        total += part[0]
    return total


EVERY = [
    *(best, mode_changes, function_changes, dictionary_grows, list_shrinks, set_grows),
    *(nested_list_grows, window_moves, branch_replaces, branch_in_a_loop, trained, stepped),
    *(in_place_by_two_names, lists_in_loops, named_as_in_cpp),
]


@pytest.fixture(scope="module")
def compiled() -> dict[str, Any]:
    parsed = {f.__name__: numpy_program(f, np.zeros(8)) for f in EVERY}
    return {name: (load_unlowered(sdfg), call_form_of(sdfg)) for name, sdfg in parsed.items()}


@pytest.mark.parametrize("function", EVERY, ids=lambda f: f.__name__)
def test_results_are_those_of_python(compiled: dict[str, Any], function: Any) -> None:
    for seed in range(3):
        x = np.random.default_rng(seed).random(8)
        wanted = function(copy.deepcopy(x))
        program, form = compiled[function.__name__]
        found = program(x=x.copy())
        if isinstance(form.returned, OneOf):
            found = form.arrange(found)
        if not isinstance(wanted, tuple):
            wanted, found = (wanted,), (found,)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(one).reshape(np.shape(other)), other, rtol=1e-9)


@pytest.mark.parametrize("function", [trained, stepped, branch_in_a_loop, lists_in_loops])
def test_entries_that_are_numbers_and_arrays_stay_in_loops(function: Any) -> None:
    sdfg = numpy_program(function, np.zeros(8))
    assert any(isinstance(r, LoopRegion) for r in sdfg.all_control_flow_regions())


def text_or_array(x):
    found = "none"
    if x[0] > 0.5:
        found = x * 2
    return x + found


def grows_by_a_condition(x):
    seen = {"a": 1.0}
    if x[0] > 0.5:
        seen["b"] = 2.0
    return x * len(seen)


def grows_in_a_map(x):
    found = [1]
    for _ in distspmd.map[0 : len(x)]:
        found.append(2)  # noqa: PERF401
    return x * len(found)


def keys_of_the_run(x):
    return len({int(x[0]): 1.0, int(x[1]): 2.0})


def gets_what_it_is_asked_for(x):
    found = defaultdict(int)
    if x[0] > 0:
        found["a"] += 1
    return len(found)


def shape_by_iteration(x):
    part = x * 3
    for k in range(int(x[0])):
        part = x[:2] * k
    return part + 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (text_or_array, "'found' is an array of the shape"),
        (grows_by_a_condition, "a dict has 2 or 1 entries"),
        (keys_of_the_run, "a dictionary whose keys the run decides is not covered"),
        (gets_what_it_is_asked_for, "a defaultdict has 1 or 0 entries"),
        (grows_in_a_map, "'found' is changed in a map"),
        (shape_by_iteration, "'part' is .* if the loop has no iteration"),
    ],
)
def test_what_depends_on_the_run_is_refused_with_the_line(function: Any, message: str) -> None:
    with pytest.raises(UnsupportedProgram, match=message) as refused:
        numpy_program(function, np.zeros(8), host="refuse")
    assert "test_mutation.py:" in str(refused.value)


def adds_by_place(x):
    found = defaultdict(float)
    for i in range(len(x)):
        found[i % 3] += x[i]
    return found[0], found[1], len(found)


def test_keys_of_a_loop_that_is_written_out_are_known() -> None:
    program = load_unlowered(numpy_program(adds_by_place, np.zeros(8)))
    x = np.arange(8.0)
    assert program(x=x) == adds_by_place(x)


def test_what_is_not_read_after_a_loop_does_not_matter() -> None:
    program = load_unlowered(numpy_program(kept_where_no_iteration, np.zeros(8), np.int64(3)))
    x = np.arange(8.0)
    for n in (0, 3):
        assert program(x=x, n=n) == kept_where_no_iteration(x, n)


def flat(value: Any) -> list[Any]:
    return [part for each in value for part in flat(each)] if isinstance(value, tuple) else [value]


RETURNED = [returned_or_not, bound_or_not, root_or_not, chosen_in_an_expression]


@pytest.mark.parametrize("function", RETURNED)
def test_what_is_returned_may_depend_on_the_run(function: Any) -> None:
    lowering = distspmd.lower(numpy_program(function, np.zeros(8)))
    program = distspmd.compile(lowering, MPI.COMM_SELF)
    for first in (0.0, 0.4, 0.6, 0.9, 1.2):
        x = np.random.default_rng(1).random(8)
        x[0] = first
        wanted, found = function(x.copy()), program(x=x.copy())
        assert type(wanted) is type(found)
        for one, other in zip(flat(found), flat(wanted), strict=True):
            if other is None or isinstance(other, str):
                assert one == other
            else:
                np.testing.assert_allclose(one, other, strict=isinstance(other, np.ndarray))
    program.close()
