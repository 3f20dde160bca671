"""What each pass does: the program and the decisions before and after it, as text."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

import dace
import dace.autodiff  # registers requires_grad_, backward and grad
import numpy as np
import pytest
from dace.libraries.standard.nodes import Reduce
from dace.sdfg.state import LoopRegion
from parsed_by_dace import numpy_program

from distspmd import frontend, pipeline
from distspmd.errors import ScheduleError
from distspmd.layouts import Mesh, cyclic
from distspmd.nodes.contraction import add_contraction
from distspmd.nodes.contraction_operands import Pick
from distspmd.passes.compilation import Compilation
from distspmd.plans.machine import Machine
from distspmd.schedule import OnMesh

Golden = Callable[[str, str], None]


@dace.program
def scaled_product(a: dace.float64[12, 6], b: dace.float64[6, 8]):
    shifted = a * 2 + 1
    return np.exp(shifted @ b)


@dace.program
def in_columns(x: dace.float64[3, 8], out: dace.float64[3, 4]):
    y = 2 * x
    out[:] = y[:, :4] + y[:, 4:]


@dace.program
def optional(x: dace.float64[8]):
    return np.where(x > 0, x, 0.0)


@dace.program
def accumulated(x: dace.float64[8, 4]):
    total = np.zeros((8,), np.float64)
    for i, j in dace.map[0:8, 0:4]:
        total[i] += x[i, j]
    return total * 2


@dace.program
def accumulated_anywhere(x: dace.float64[8, 4]):
    total = np.empty((8,), np.float64)
    for i, j in dace.map[0:8, 0:4]:
        total[i] += x[i, j]
    return total * 2


@dace.program
def reshaped(x: dace.float64[4, 6]):
    return np.reshape(x, (8, 3)) + 1


@dace.program
def turned(x: dace.float64[4, 5, 3]):
    return np.transpose(x, (2, 0, 1))


@dace.program
def sums_of_runs(begin: dace.int64[6], x: dace.float64[20], y: dace.float64[5]):
    for i in range(5):
        run = x[begin[i] : begin[i + 1]] * 2
        y[i] = np.sum(run)


@dace.program
def growing(x: dace.float64[8, 8]):
    for i in range(1, 8):
        row = x[i, :i] * 2
        x[i, :i] = row + 1


@dace.program
def until_small(x: dace.float64[8]):
    while x[0] > 1:
        x[:] = x / 2


@dace.program
def shifted_copy(x: dace.float64[9]):
    y = np.zeros((9,), np.float64)
    y[1:] = x[:-1]
    return y


@dace.program
def one_number(x: dace.float64[8], a: dace.float64):
    b = a * 2
    return x * b


@dace.program
def eliminated(a: dace.float64[6, 6]):
    for k in range(5):
        for i in dace.map[0 : 5 - k]:
            a[i + k + 1, k] = a[i + k + 1, k] / a[k, k]


@dace.program
def gradient(w: dace.float64[6]):
    w.requires_grad_()
    loss = np.sum(w * w)
    loss.backward()
    return w.grad


@dace.program
def summed_parts(a: dace.float64[8, 6], b: dace.float64[6, 8], c: dace.float64[8, 8]):
    return (a @ b) + (c @ c)


@dace.program
def swept(u: dace.float64[8, 8]):
    for k in range(1, 8):
        u[:, k] = u[:, k] + u[:, k - 1]
    for k in range(1, 8):
        u[k, :] = u[k, :] + u[k - 1, :]


@dace.program
def are_all(x: dace.bool[8, 4]):
    return np.all(x, axis=1)


@dace.program
def sorted_pairs(x: dace.float64[8]):
    for i in dace.map[0:4]:
        lo = min(x[2 * i], x[2 * i + 1])
        hi = max(x[2 * i], x[2 * i + 1])
        x[2 * i] = lo
        x[2 * i + 1] = hi


class Zeroed:
    """A program whose temporary is marked as zeroed when it is allocated."""

    @staticmethod
    def to_sdfg() -> dace.SDFG:
        sdfg = accumulated_anywhere.to_sdfg()
        for state in sdfg.states():
            for node in state.data_nodes():
                node.setzero = node.data == "total" and state.in_degree(node) > 0
        return sdfg


class ByExperts:
    """Rows by the matrices that ``m`` picks for them, a function of each, and the same again."""

    @staticmethod
    def to_sdfg() -> dace.SDFG:
        sdfg = dace.SDFG("by_experts")
        shapes = {"x": [6, 2], "up": [3, 2, 4], "h": [6, 4], "a": [6, 4], "down": [3, 4, 2]}
        for name, shape in {**shapes, "y": [6, 2]}.items():
            sdfg.add_array(name, shape, dace.float64, transient=name in "ha")
        sdfg.add_array("m", [6], dace.int64)
        state = sdfg.add_state()
        member, h, a = state.add_read("m"), state.add_access("h"), state.add_access("a")
        term = "pick(_v0@int64, [e]@int64, multiply(_v1@float64, _v2@float64), 0.0@float64)"
        for x, w, y in ((state.add_read("x"), "up", h), (a, "down", state.add_write("y"))):
            operands = [member, x, state.add_read(w)]
            subscripts, pick = "r,ri,eio->ro", Pick("e", 0)
            add_contraction(state, y.data, subscripts, operands, y, expression=term, pick=pick)
        state.add_mapped_tasklet(
            "activate",
            {"r": "0:6", "o": "0:4"},
            {"value": dace.Memlet("h[r, o]")},
            "out = math.tanh(value)",
            {"out": dace.Memlet("a[r, o]")},
            external_edges=True,
            input_nodes={"h": h},
            output_nodes={"a": a},
        )
        return sdfg


class Gathered:
    """Rows of what a map makes, at indices: both sides are split."""

    @staticmethod
    def to_sdfg() -> dace.SDFG:
        sdfg = dace.SDFG("gathered")
        for name, shape in {"x": [6, 8], "t": [6, 8], "z": [9, 8]}.items():
            sdfg.add_array(name, shape, dace.float64, transient=name == "t")
        sdfg.add_array("i", [9], dace.int64)
        state = sdfg.add_state()
        t = state.add_access("t")
        state.add_mapped_tasklet(
            "doubled",
            {"r": "0:6", "o": "0:8"},
            {"value": dace.Memlet("x[r, o]")},
            "out = 2 * value",
            {"out": dace.Memlet("t[r, o]")},
            external_edges=True,
            output_nodes={"t": t},
        )
        operands = [state.add_read("i"), t]
        term = "pick(_v0@int64, [r]@int64, _v1@float64, 0.0@float64)"
        z = state.add_write("z")
        add_contraction(state, "z", "s,ro->so", operands, z, expression=term, pick=Pick("r", 0))
        return sdfg


def in_a_circle(x: dace.float64[12]):
    return np.roll(x, 1) + np.roll(x, -1)


class ReadTwice:
    """A map in a loop over ``k`` that reads ``x[i, j]`` and ``x[k, j]`` through one edge."""

    @staticmethod
    def to_sdfg() -> dace.SDFG:
        sdfg = dace.SDFG("read_twice")
        for name in "xy":
            sdfg.add_array(name, [6, 6], dace.float64)
        loop = LoopRegion("rows", "k < 6", "k", "k = 0", "k = k + 1")
        sdfg.add_node(loop, is_start_block=True)
        loop.add_state("body", is_start_block=True).add_mapped_tasklet(
            "products",
            {"i": "0:6", "j": "0:6"},
            {"own": dace.Memlet("x[i, j]"), "row": dace.Memlet("x[k, j]")},
            "out = own * row",
            {"out": dace.Memlet("y[i, j]")},
            external_edges=True,
        )
        return sdfg


class SummedBothWays:
    """Sums over both dimensions, as our front end reads them."""

    @staticmethod
    def to_sdfg() -> Any:
        def summed(x: Any, y: Any) -> None:
            for i in range(1, 9):
                for j in range(1, 8):
                    y[i, j] = x[i, j] + y[i - 1, j] + y[i, j - 1]

        return frontend.numpy_program(summed, np.ones((9, 8)), np.ones((9, 8)))


PRODUCT = (scaled_product, {"__return": (2, 1)})


class AroundACircle:
    """What our own reader makes of a program, whose maps carry expressions."""

    @staticmethod
    def to_sdfg() -> dace.SDFG:
        return frontend.numpy_program(in_a_circle, np.zeros(12))


EXAMPLES: dict[str, tuple[Any, Any]] = {
    "plain-parameters": (gradient, {}),
    "fix-dace": (are_all, {}),
    "read-first": (sorted_pairs, {}),
    "initialise-accumulations": (Zeroed, {}),
    "expand-library-nodes": (turned, {}),
    "inline-nested": (reshaped, {}),
    "loops-to-maps": (sums_of_runs, {}),
    "widen-temporaries": (growing, {}),
    "read-control-values": (until_small, {}),
    "copies-to-maps": (shifted_copy, {}),
    "operations-to-maps": (one_number, {}),
    "compose-maps": (AroundACircle, {}),
    "unwrap-indices": (in_a_circle, {}),
    "split-reads": (ReadTwice, {}),
    "expand-backward": (gradient, {}),
    "find-spaces": PRODUCT,
    "fuse-maps": PRODUCT,
    "align-maps": (eliminated, {}),
    "deal-blocks": (in_columns, {"y": OnMesh(Mesh(x=2), {"__i1": ("x", cyclic(2))})}),
    "tile-named-spaces": PRODUCT,
    "propagate-tilings": PRODUCT,
    "keep-apart": (ByExperts, {"h": {"e": 3}, "y": {"e": 3}}),
    "exchange-rows": (Gathered, {"t": {"r": 3}, "z": {"s": 3}}),
    "sum-operands": (summed_parts, {"a_matmul_b": (1, 1, 2), "c_matmul_c": (1, 1, 2)}),
    "split-phases": (swept, {"u": (2,), "u.2": (2,)}),
    "choose-homes": PRODUCT,
    "plan-moves": PRODUCT,
    "insert-memlets": PRODUCT,
    "form-pipelines": (SummedBothWays, {"y": (2,)}),
    "record": PRODUCT,
}
"""A program that each pass changes, or decides something of."""
REFUSING = {"tell-misunderstood", "refuse-callbacks", "check-nodes", "check-sizes"}
"""Passes that change nothing: tests/passes/normalize has what they refuse."""


def described(compilation: Compilation) -> list[str]:
    """The program and all decisions so far, in lines."""
    program: str = compilation.sdfg.as_schedule_tree().as_string()
    lines = [line.rstrip() for line in program.splitlines()]
    lines += [
        f"something runs after {edge.src}"
        for state in compilation.sdfg.states()
        for edge in state.edges()
        if edge.data.is_empty() and state.entry_node(edge.src) is not None
    ]
    lines += [
        f"{type(container).__name__} {name}: {container.dtype}{list(container.shape)}"
        for name, container in compilation.sdfg.arrays.items()
    ]
    lines += [
        f"{node}: identity {node.identity}"
        for node, _ in compilation.sdfg.all_nodes_recursive()
        if isinstance(node, Reduce)
    ]
    lines += sorted(  # the parser lists them by hashes
        f"read of {edge.data} by {edge.dst.label}"
        for state in compilation.sdfg.states()
        for edge in state.edges()
        if isinstance(edge.dst, dace.nodes.MapEntry)
    )
    lines += [f"space {space.name}: {space.iterates}" for space in compilation.spaces]
    lines += [f"grid of {name}: {parts}" for name, parts in compilation.grids.items()]
    lines += [f"{space.name} is fused into {space.into}" for space in compilation.fused]
    lines += [f"tiling of {n}: {t.parts} on {t.mesh}" for n, t in compilation.tilings.items()]
    lines += [f"{n} runs {t.tiling.parts}: {t.chosen_by}" for n, t in compilation.tiled.items()]
    lines += [f"home of {name}: {home.layout}" for name, home in compilation.homes.items()]
    lines += [f"{m}: {s.plan.solver}" for m, s in compilation.solutions.items()]
    lines += [f"movement of {m.data}: {m.redistribution}" for m in compilation.movements]
    lines += [f"{p.title}: {p.layouts}, {p.steps}" for p, _ in compilation.pipelines]
    if compilation.lowering:
        lines += [f"recorded: {memlet.layouts}" for memlet in compilation.lowering.memlets]
    return lines


def before_and_after(name: str) -> list[str]:
    program, schedule = EXAMPLES[name]
    states: dict[str, list[str]] = {}
    sdfg = program.to_sdfg() if isinstance(program, type) else numpy_program(program)
    compilation = pipeline.begin_compilation(sdfg, schedule, machine=Machine())
    states[""] = described(compilation)
    names = [each.name for each in pipeline.PIPELINE]
    place = names.index(name)
    for number, each in enumerate(pipeline.PIPELINE[: place + 1]):
        if number == place:
            states["before"] = described(compilation)
        each.apply(compilation)
    return list(difflib.unified_diff(states["before"], described(compilation), lineterm="", n=1))[
        2:
    ]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pass_does_what_its_golden_text_shows(name: str, golden: Golden) -> None:
    changes = before_and_after(name)
    assert changes, f"{name} changes nothing of its example"
    golden(f"passes/{name}", "\n".join(line for line in changes if not line.startswith("@@")))


def test_every_pass_has_a_name_of_its_own_and_an_example() -> None:
    names = [each.name for each in pipeline.PIPELINE]
    assert len(names) == len(set(names))
    assert set(names) == EXAMPLES.keys() | REFUSING | {"sequential-reductions"}


def test_sequential_reductions_are_made_where_bits_shall_be_the_same() -> None:
    schedules = []
    for deterministic in (False, True):
        sdfg = accumulated.to_sdfg()
        sdfg = pipeline.lower_numbers(sdfg, {}, machine=Machine(), deterministic=deterministic).sdfg
        entries = [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, dace.nodes.MapEntry)]
        schedules.append(
            {entry.map.schedule for entry in entries if entry.map.label.startswith("accumulated")}
            or {entry.map.schedule for entry in entries}
        )
    sequential = dace.ScheduleType.Sequential
    assert sequential in schedules[1]
    assert sequential not in schedules[0]


def test_a_compilation_stops_after_the_pass_that_is_named() -> None:
    compilation = pipeline.begin_compilation(scaled_product.to_sdfg(), {}, machine=Machine())
    pipeline.run_passes(compilation, stop_after="choose-homes")
    assert compilation.homes
    assert not compilation.solutions
    with pytest.raises(ScheduleError, match="no pass 'homes'; the passes are, in order: tell-"):
        pipeline.run_passes(compilation, stop_after="homes")
