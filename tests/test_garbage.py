"""Whatever a public function is given: it does its work, or raises an error of ours, at once."""

from __future__ import annotations

import contextlib
import copy
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distspmd
from distspmd.cli import options
from distspmd.errors import DistSPMDError
from distspmd.layouts import Layout, Mesh, Partial, Split, notations, reductions
from distspmd.layouts.layout import MOST_ELEMENTS
from distspmd.plans import Machine, Redistribution

MESH = Mesh(x=2, y=3)
LAYOUT = Layout.parse("[3{x}6, 2{y}6]", MESH)
PIECES = (
    *"[]{}(),;:/~+-= \n\0xyz6320",
    *("boxes", "-1", "1e9", "9" * 30, "9" * 5000, "\u00b2", "\u0663", "12", "[0]", "[[1], [0]]"),
    *("partial(sum)", "partial(", "lambda a, b: a + b", "lambda", "S(0)", "R", "P(max)"),
)
TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), st.text(max_size=20))
NUMBERS = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**40, 2**62, 2**63, 10**20, -(2**63), True, np.int64(3), np.uint8(2)]),
    st.sampled_from([0.5, 3.0, float("nan"), float("inf"), 1j, np.float32(2), np.array(3)]),
)
ANYTHING = st.recursive(
    st.one_of(
        *(st.none(), st.binary(max_size=4), TEXTS, NUMBERS),
        st.sampled_from([object(), int, MESH, LAYOUT, Split(6), Partial("sum"), len, b"", {1: 2}]),
        st.sampled_from([np.arange(4), np.array(["a"]), Mesh, Layout, Machine(), Ellipsis, {3}]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(TEXTS, st.integers(0, 3)), inner, max_size=3),
    ),
    max_leaves=5,
)
LAYOUTS = st.one_of(st.just(LAYOUT), ANYTHING)
MESHES = st.one_of(st.just(MESH), ANYTHING)


def tried(function: Any, *arguments: Any, **named: Any) -> Any:
    """What a call gives, if it gives something; other errors than ours fail the test."""
    with contextlib.suppress(DistSPMDError):
        return function(*arguments, **named)


def used(layout: Any) -> None:
    """What comes out of garbage can be used like any other layout."""
    if isinstance(layout, Layout) and layout.ranks < 100:
        assert hash(layout) == hash(layout)
        str(layout)
        tried(lambda: layout.bounds)
        tried(lambda: [layout.shape(rank) for rank in range(layout.ranks)])


@given(TEXTS, MESHES)
def test_texts_of_layouts(text: str, mesh: Any) -> None:
    used(tried(Layout.parse, text, mesh))
    used(tried(Layout.parse, f"[{text}]", MESH))
    used(tried(Layout.parse, f"[3{{x}}6, 6] + partial({text})", MESH))
    used(tried(Layout.parse, f"boxes[6, 6]{{{text}}}", MESH))
    tried(Mesh.parse, text)
    tried(reductions.find_reduction, text)
    tried(reductions.find_reduction, f"lambda a, b: {text}")


@given(ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_parts_of_layouts(a: Any, b: Any, c: Any, d: Any) -> None:
    used(tried(Layout.parse, a, b))
    tried(Mesh.parse, a)
    tried(Mesh.of, a)
    tried(lambda: Mesh(x=a, y=b))
    tried(Split, a, b, c, d)
    tried(Partial, a, b)
    tried(lambda: Machine(a, b, c))
    tried(reductions.find_reduction, a)
    tried(reductions.define, a, b, c)
    tried(Layout.root, a)
    used(tried(Layout, a, b, c, d))
    used(tried(Layout, MESH, (6, 6), splits=a))
    used(tried(Layout, MESH, (6, 6), explicit=a))
    used(tried(Layout, MESH, (6, 6), explicit=(a, b, c, d, a, b)))
    used(tried(Layout, MESH, a, splits=(Split(6), Split(6)), partial=b))
    used(tried(Layout.of_boxes, a, b, c, d))
    used(tried(Layout.of_boxes, MESH, (6, 6), [a, b, c, d, a, b]))
    used(tried(Layout.on_ranks, a, b, c))
    used(tried(Layout.on_ranks, LAYOUT, a, MESH))


@given(ANYTHING, ANYTHING, MESHES)
def test_notations_of_others(a: Any, extents: Any, mesh: Any) -> None:
    for read in (notations.from_mesh_axes, notations.from_spec, notations.from_placements):
        used(tried(read, a, extents, mesh))
        used(tried(read, a, (6, 6), MESH))
        used(tried(read, [a, a], (6, 6), MESH))
    for write in (notations.mesh_axes, notations.spec, notations.placements):
        tried(write, a)


@given(LAYOUTS, LAYOUTS, ANYTHING, ANYTHING, ANYTHING, ANYTHING)
def test_plans(
    source: Any, target: Any, dtype: Any, solver: Any, memory: Any, machine: Any
) -> None:
    tried(distspmd.plan, source, target, dtype, solver, memory, machine)
    tried(distspmd.plan, LAYOUT, LAYOUT, solver=solver, machine=Machine())
    tried(distspmd.plan, LAYOUT, LAYOUT, max_memory=memory, machine=Machine())
    tried(distspmd.plan, LAYOUT, LAYOUT, machine=machine)
    tried(Redistribution, source, target, dtype)
    tried(distspmd.verify, source)
    tried(distspmd.plans.simulate, source, target)


@dace.program
def small(x: dace.float64[6, 4], y: dace.float64[6, 4]):
    y[:] = x + 1


SMALL = small.to_sdfg()
SCHEDULES = st.dictionaries(
    st.one_of(st.just("y"), ANYTHING.filter(lambda a: isinstance(a, str | int | None))),
    st.one_of(
        st.lists(NUMBERS, min_size=1, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["__i0", "__i1", "i"]), NUMBERS),
        ANYTHING,
    ),
    max_size=2,
)


@settings(max_examples=12)
@given(st.one_of(SCHEDULES, ANYTHING), ANYTHING, ANYTHING, ANYTHING)
@pytest.mark.filterwarnings("ignore")
def test_what_lower_is_asked_for(schedule: Any, arguments: Any, solvers: Any, machine: Any) -> None:
    def lower(**options: Any) -> None:
        if len(str(options)) < 10**4:
            tried(distspmd.lower, copy.deepcopy(SMALL), **options)

    if _few_ranks(schedule):
        lower(schedule=schedule)
    lower(arguments=arguments)
    lower(arguments={"x": arguments})
    lower(solvers=solvers)
    lower(solvers=[solvers])
    lower(machine=machine)
    tried(distspmd.lower, schedule)
    tried(distspmd.iteration_spaces, schedule)
    tried(distspmd.explain, schedule)
    tried(distspmd.compile, schedule, arguments)


def _few_ranks(schedule: Any) -> bool:
    """A grid of a million ranks is legal, and takes its time."""
    parts = schedule.get("y") if isinstance(schedule, dict) else None
    numbers = list(parts.values()) if isinstance(parts, dict) else parts
    if not isinstance(numbers, list | tuple):
        return True
    whole = [int(n) for n in numbers if isinstance(n, int | np.integer)]
    product = int(np.prod([float(abs(n)) for n in whole])) if whole else 0
    return product < 100 or product > 2**21


@given(st.lists(TEXTS, max_size=3), st.binary(max_size=30))
@pytest.mark.filterwarnings("ignore")
def test_options_of_the_command(texts: list[str], content: bytes) -> None:
    tried(options.parse_schedule, texts)
    tried(options.parse_schedule, [f"y={text}" for text in texts])
    tried(options.parse_sizes, texts)
    tried(options.parse_sizes, [f"N={text}" for text in texts])


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00y", b"y: [1, 2", b"- 1\n- 2", b"", b"!!python/object:os.system {}", b"{" * 9999],
)
def test_files_of_schedules(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "schedule.yaml"
    file.write_bytes(content)
    with pytest.raises(DistSPMDError, match="the schedule"):
        options.parse_schedule([str(file)])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: distspmd.lower(SMALL, {"y": (10**9, 1)}), "more than the 1,048,576"),
        (lambda: distspmd.lower(SMALL, {"y": (10**20, 1)}), "more than the 1,048,576"),
        (lambda: distspmd.lower(SMALL, solvers=["exchange"]), "'exchange' .* is no solver"),
        (lambda: distspmd.lower(SMALL, arguments="root"), "is no mapping"),
        (lambda: Mesh(x=10**9), "more than 1,048,576 ranks"),
        (lambda: Layout.root((MOST_ELEMENTS, 2)), "at most 2"),
        (lambda: Layout.parse("[" + "9" * 5000 + "]", MESH), "is not tile"),
        (lambda: Layout.parse("[6]" + " " * 100_000 + "+", MESH), "write"),
        (lambda: distspmd.plan(LAYOUT, LAYOUT, solver=3), "is no solver"),
        (lambda: distspmd.launch("script.py", ranks=2), "a sequence"),
        (lambda: distspmd.launch(["script.py"], ranks="2"), "ranks"),
        (lambda: distspmd.launch([3], ranks=2), "3"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(call: Any, told: str) -> None:
    with pytest.raises(DistSPMDError, match=told):
        call()
