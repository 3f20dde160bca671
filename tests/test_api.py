"""The public functions: keywords, what they take, and the decorator on ranks."""

from __future__ import annotations

import ast
import functools
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dace
import numpy as np
import pytest

import distspmd
import distspmd.frontend
from distspmd.errors import UnsupportedProgram

N = dace.symbol("N")


@dace.program
def tripled(x: dace.float64[12]):
    return x * 3


@dace.program
def of_any_size(x: dace.float64[N]):
    return x * 3


@pytest.mark.parametrize("program", [tripled, of_any_size])
def test_a_misspelt_keyword_is_a_type_error_at_once(program: Any) -> None:
    sdfg = program.to_sdfg()
    with pytest.raises(TypeError, match="argumnets"):
        distspmd.lower(sdfg, {}, argumnets={"x": "distributed"})
    with pytest.raises(TypeError, match="arithmetics"):
        distspmd.compile(sdfg, None, arithmetics="strict")
    with pytest.raises(TypeError, match="schedules"):
        distspmd.program(schedules={})


def test_the_public_functions_say_all_their_keywords() -> None:
    for function in (distspmd.lower, distspmd.compile, distspmd.program, distspmd.check):
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize(
    "schedule", [{"nothing": (2,)}, {"__return": (2, 2)}, {"__return": (0,)}, 3, {"__return": 2.5}]
)
def test_a_refused_lower_leaves_the_sdfg_as_it_was(schedule: Any) -> None:
    sdfg = tripled.to_sdfg()
    before, nodes = sdfg.to_json(), [node for node, _ in sdfg.all_nodes_recursive()]
    with pytest.raises((distspmd.DistSPMDError, TypeError)):
        distspmd.lower(sdfg, schedule)
    assert sdfg.to_json() == before
    assert [node for node, _ in sdfg.all_nodes_recursive()] == nodes


def test_a_schedule_may_name_nodes_of_the_sdfg() -> None:
    sdfg = tripled.to_sdfg()
    (space,) = distspmd.iteration_spaces(sdfg)
    with pytest.raises(distspmd.errors.ScheduleError):
        distspmd.lower(sdfg, {space.node: (2, 2)})
    assert distspmd.lower(sdfg, {space.node.map: (4,)}).ranks == 4


@pytest.mark.parametrize("program", [int, max, np.sin, functools.partial(max, 1), re.compile("a")])
def test_what_is_no_function_of_python_is_no_program(program: Any) -> None:
    with pytest.raises(UnsupportedProgram, match=r"no function that is written in|a program is"):
        distspmd.lower(program)


def test_the_table_after_lowering_has_the_names_of_the_table_before() -> None:
    @dace.program
    def chained(x: dace.float64[12]):
        y = x * 2 + 1
        return y - 3

    names = [space.name for space in distspmd.iteration_spaces(chained)]
    lowering = distspmd.lower(chained, {})
    shown = str(lowering).split("Homes")[0]
    rows = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert rows == names
    assert len(names) > len(lowering.spaces)  # for some were fused


def test_the_record_knows_its_sdfg_until_it_travels() -> None:
    import pickle

    sdfg = tripled.to_sdfg()
    lowering = distspmd.lower(sdfg, {})
    assert lowering.original is sdfg
    assert lowering.sdfg is not sdfg
    assert pickle.loads(pickle.dumps(lowering)).sdfg is None


PACKAGES = """
    analysis api driver errors execution frontend layouts lowering plans runtime schedule
    scheduling symbolic_lowering
"""
"""Those with public names of their own."""


def test_the_top_has_few_names_and_all_public_names_are_there() -> None:
    assert len(distspmd.__all__) <= 20
    for package in (distspmd, *(getattr(distspmd, name) for name in PACKAGES.split())):
        assert len({*package.__all__}) == len(package.__all__)
        for name in package.__all__:
            assert not inspect.ismodule(getattr(package, name))
        with pytest.raises(AttributeError, match="has no attribute 'Found'"):
            package.Found  # noqa: B018


def imports(code: str) -> Iterator[str]:
    """Names of distspmd that code imports, and modules that it imports names from."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "distspmd":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_docs_and_examples_import_what_is_exported(root: Path) -> None:
    codes = {file: file.read_text() for file in sorted((root / "examples").glob("*.py"))}
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        codes[page] = "\n".join(block for block in blocks if _parses(block))
    public = {f"distspmd.{name}" for name in (*distspmd.__all__, "frontend", "saved")}
    for name in PACKAGES.split():
        public |= {f"distspmd.{name}.{each}" for each in getattr(distspmd, name).__all__}
    private = {
        file.name: wrong for file, code in codes.items() if (wrong := {*imports(code)} - public)
    }
    assert not private


def _parses(block: str) -> bool:
    try:
        ast.parse(block)
    except SyntaxError:
        return False
    return True


def test_a_decorated_function_runs_on_ranks(launch: Callable[..., Any], root: Path) -> None:
    launch(root / "tests" / "ranks" / "partitioned.py", ranks=3, timeout=300)


def test_the_front_ends_are_there_without_an_import_of_their_own() -> None:
    code = "import distspmd; print(distspmd.frontend.numpy_program.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "numpy_program"


@pytest.mark.parametrize("ranks", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_ranks_that_follow_start_without_dace(
    ranks: int, launch: Callable[..., Any], root: Path
) -> None:
    done = launch(root / "tests" / "ranks" / "starting.py", ranks=ranks)
    found = re.search(r"(\d+) modules, (\d+) on rank 0", done.stdout)
    assert found
    following, first = map(int, found.groups())
    assert following < 500 < 1500 < first  # Python, NumPy and mpi4py have 300
