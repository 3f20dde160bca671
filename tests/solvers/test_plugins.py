"""Solvers of other distributions are asked beside ours; one that cannot be used is named."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Launch

import distspmd
from distspmd import doctor
from distspmd.errors import PluginError
from distspmd.pipeline import begin_compilation
from distspmd.solvers import SOLVERS, plugins

PAGE = Path(__file__).resolve().parents[2] / "docs/plugins.md"
MESH = distspmd.layouts.Mesh(x=4)
ROWS = distspmd.layouts.Layout.parse("[3{x}12]", MESH)
WHOLE = distspmd.layouts.Layout.parse("[12]", MESH)
COPIES = """
from distspmd.plans import Message, Plan, Refusal, Step, StepKind

class Copies:
    name = "copies"

    def plan(self, redistribution):
        {body}

copies = Copies()
"""
PROGRAM = """
import dace

@dace.program
def product(A: dace.float64[64, 64], x: dace.float64[64]):
    x[:] = A @ x
"""

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes a distribution with one module and the solvers that it registers."""
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins.installed.cache_clear()
    modules = []

    def make(source: str, distribution: str = "fake-copies", entry: str = "copies") -> Path:
        module = distribution.replace("-", "_")
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[distspmd.solvers]\n{entry} = {module}:{entry}\n")
        return tmp_path

    yield make
    plugins.installed.cache_clear()
    for module in modules:
        sys.modules.pop(module, None)


def on_page(number: int = 0) -> str:
    """The solver, the operator or the library node of the page."""
    found: str = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)[number]
    return found


@pytest.fixture
def module_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any]:
    """A module of its own with what is on the page."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def imported(number: int) -> Any:
        name = f"of_page_{number}"
        (tmp_path / f"{name}.py").write_text(on_page(number))
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return imported


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-m", "distspmd", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path, "COLUMNS": "300"},
        timeout=120,
    )


RESHARD = ("reshard", "--mesh", "x=4", "[3{x}12]", "[12]")


def test_the_solver_of_the_page_is_asked_beside_ours(install: Install) -> None:
    install(on_page(), "ring-solver", "ring")
    assert len(on_page().splitlines()) <= 25
    found = distspmd.plan(ROWS, WHOLE, solver="ring")
    distspmd.verify(found)
    assert (found.solver, len(found.steps)) == ("ring", 4)
    everything = distspmd.plan(ROWS, WHOLE)
    asked = {everything.solver, *(loser.solver for loser, _ in everything.losers)}
    assert {"ring", "exchange"} <= asked
    refused = distspmd.plan(WHOLE, ROWS)
    assert any(refusal.solver == "ring" for refusal in refused.refusals)


def test_the_operator_of_the_page_is_a_part_of_modules(module_of: Callable[[int], Any]) -> None:
    import torch

    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return module_of_page.swish(x, 2.0)

    module_of_page = module_of(1)
    assert len(on_page(1).splitlines()) <= 20
    sdfg = distspmd.frontend.torch_module(Module(), torch.ones(7, 3))
    lowering = distspmd.lower(sdfg, {"swish": (3, 1)})
    assert {space.parts for space in lowering.spaces} == {(3, 1)}
    distspmd.frontend.register_operator("mylib::swish", module_of_page.swish_in_numpy)


def test_the_library_node_of_the_page_runs_on_parts(module_of: Callable[[int], Any]) -> None:
    from dace import SDFG, Memlet, float64

    node = module_of(2).Shares()
    sdfg = SDFG("shares")
    for name in ("x", "y"):
        sdfg.add_array(name, [7, 5], float64)
    state = sdfg.add_state()
    state.add_edge(state.add_read("x"), None, node, "_x", Memlet("x[0:7, 0:5]"))
    state.add_edge(node, "_y", state.add_write("y"), None, Memlet("y[0:7, 0:5]"))
    lowering = distspmd.lower(sdfg, {"y": (3,)})
    assert [space.parts for space in lowering.spaces] == [(3,)]


def test_programs_ask_plugins_too(install: Install) -> None:
    from dace import SDFG

    install(on_page(), "ring-solver", "ring")
    sdfg = SDFG("empty")
    sdfg.add_state()
    names = [solver.name for solver in begin_compilation(sdfg, {}).solvers]
    assert names == [*(solver.name for solver in SOLVERS), "ring"]


def test_the_command_line_sees_plugins(install: Install) -> None:
    folder = install(on_page(), "ring-solver", "ring")
    done = command(folder, *RESHARD, "--solver", "ring")
    assert done.returncode == 0, done.stderr
    assert "plan: ring" in done.stdout
    assert "ring" in command(folder, *RESHARD).stdout
    program = folder / "program.py"
    program.write_text(PROGRAM)
    explained = command(folder, "explain", f"{program}:product", "-s", "A_matmul_x=4,1")
    assert "over ring: refused, not every rank wants the whole" in explained.stdout, (
        explained.stderr
    )


def test_the_doctor_lists_plugins_and_those_that_cannot_be_used(install: Install) -> None:
    assert doctor.CHECKS["plugins"]().found == "none"
    plugins.installed.cache_clear()
    install(on_page(), "ring-solver", "ring")
    assert doctor.CHECKS["plugins"]().found == "solver ring of ring-solver 1.2"
    plugins.installed.cache_clear()
    install("raise ImportError('no such library')")
    check = doctor._guarded("plugins", doctor.CHECKS["plugins"])
    assert not check.ok
    assert "fake-copies 1.2" in check.found
    assert "no such library" in check.found
    assert "pip uninstall fake-copies" in check.advice


BROKEN = {
    "fails when it is imported": ("1 / 0", "ZeroDivisionError: division by zero"),
    "names what is not there": ("pass", "AttributeError: .* has no attribute 'copies'"),
    "is a class": ("class copies: name = 'copies'; plan = None", "is no solver: .* such as copies"),
    "is a number": ("copies = 3", "is no solver"),
    "has a name of ours": (
        COPIES.format(body="...").replace('"copies"', '"exchange"'),
        "'exchange', which one of distspmd has",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_plugin_that_is_no_solver_is_named_with_its_distribution(
    install: Install, what: str
) -> None:
    source, said = BROKEN[what]
    install(source)
    with pytest.raises(PluginError, match=f"'copies' of fake-copies 1.2.* {said}"):
        distspmd.plan(ROWS, WHOLE)


def test_two_plugins_of_one_name_are_both_named(install: Install) -> None:
    install(COPIES.format(body="..."), "second")
    install(COPIES.format(body="..."), "first")
    with pytest.raises(PluginError, match=r"'copies' of second 1\.2 .* one of first 1\.2 has"):
        distspmd.plan(ROWS, WHOLE)


WRONG = {
    "raises": ("return redistribution.target.rank", "AttributeError: "),
    "answers nothing": ("return None", "answers None"),
    "plans nothing": ("return Plan(redistribution, self.name, ())", r"is wrong: .*rank 0"),
    "plans for others": (
        "return Plan(redistribution, 'exchange', ())",
        "says that 'exchange' made it",
    ),
    "plans another move": (
        "from dataclasses import replace; return "
        "Plan(replace(redistribution, target=redistribution.source), self.name, ())",
        "is for another redistribution",
    ),
    "plans what is no step": ("return Plan(redistribution, self.name, (3,))", "is wrong"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_plugin_that_answers_wrongly_is_named_with_its_distribution(
    install: Install, what: str
) -> None:
    body, said = WRONG[what]
    install(COPIES.format(body=body))
    with pytest.raises(PluginError, match=f"'copies' of fake-copies 1.2.*{said}"):
        distspmd.plan(ROWS, WHOLE)


def test_a_broken_plugin_is_one_line_on_the_command_line(install: Install) -> None:
    done = command(install("1 / 0"), *RESHARD)
    assert done.returncode != 0
    assert "fake-copies 1.2" in done.stderr
    assert "Traceback" not in done.stderr


def test_ours_are_found_by_name_without_a_look_at_plugins(install: Install) -> None:
    install("1 / 0")
    assert distspmd.plan(ROWS, WHOLE, solver="exchange").solver == "exchange"


def test_an_import_looks_for_no_plugins() -> None:
    code = (
        "import sys, distspmd, distspmd.plans, distspmd.runtime.redistribution.redistribute\n"
        "from distspmd.solvers import plugins\n"
        "assert not plugins.installed.cache_info().currsize\n"
        "assert 'distspmd.plans.verifier' not in sys.modules\n"
        "distspmd.plans.Plan\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


ON_RANKS = """
import sys
import numpy as np
from mpi4py.MPI import COMM_WORLD as comm
import distspmd
from distspmd.solvers import plugins

mesh = distspmd.layouts.Mesh(x=4)
rows, whole = (distspmd.layouts.Layout.parse(text, mesh) for text in ("[3{x}11]", "[11]"))
box = slice(3 * comm.rank, min(3 * comm.rank + 3, 11))
for solver in ("ring", None, "ring"):
    found = distspmd.redistribute(comm, np.arange(11.0)[box], rows, whole, solver=solver)
    assert (found == np.arange(11.0)).all()

if comm.rank == 1:
    sys.path.insert(0, "broken")
plugins.installed.cache_clear()
try:
    distspmd.redistribute(comm, np.arange(11, dtype="f4")[box], rows, whole)
except distspmd.DistSPMDError as error:
    assert "broken-solver 1.2" in str(error), error
    assert comm.rank != 1 or isinstance(error, distspmd.errors.PluginError)
else:
    raise AssertionError("no rank heard of it")
if comm.rank == 0:
    print("all heard of it")
"""


def test_ranks_run_plans_of_plugins_and_all_hear_of_one_that_is_broken_on_one(
    install: Install, launch: Launch, tmp_path: Path
) -> None:
    install(on_page(), "ring-solver", "ring")
    broken = tmp_path / "broken"
    broken.mkdir()
    module = install("1 / 0", "broken-solver") / "broken_solver.py"
    for path in (module, tmp_path / "broken_solver-1.2.dist-info"):
        path.rename(broken / path.name)
    assert "all heard of it" in launch(ON_RANKS, ranks=4, timeout=120).stdout
