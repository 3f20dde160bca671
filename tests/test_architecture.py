"""Knowledge flows one way: who may import whom, who may import DaCe, and nobody imports MPI."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# A module imports only modules of the rows above its own; a package stands for its modules, which
# may import each other. `distspmd/__init__.py` knows all.
ORDER = """
    errors intervals report cache comparison lambdas linearity extensions binding closing
    mesh reductions machine bounds sizes
    splits
    layout
    overlaps messages notations enumeration pictures
    redistribution
    plans
    calls
    cost problems simulator verifier rounds orders codegen.tables collectives
    codegen.fetches
    allreduce
    digits
    tilemaps
    solve
    solvers
    cyclic
    planning
    reshard
    runtime runtime.toolchain runtime.agreement runtime.shared runtime.background
    runtime.library
    runtime.launch runtime.engine
    runtime.tiles
    runtime.measure
    nodes.products
    nodes.solving
    nodes.subscripts
    nodes.operands
    nodes.gemm
    nodes.nests
    nodes.contraction nodes.reductions nodes.vector_reductions
    nodes.einsum
    spaces
    loads
    accesses schedule conflicts
    inspection library_accesses
    evaluation moving
    constraints
    homes propagation arguments
    lowering nodes
    explanation
    passes
    pipeline
    codegen
    residents storages
    program
    symbolic
    symbolic_program
    trials
    checker
    frontend
    doctor
    cli
    __main__
"""
FIRST_WITH_DACE = "nodes.products"
IMPORTING_DACE = (
    "nodes.products nodes.solving nodes.operands nodes.gemm nodes.nests nodes.contraction "
    "nodes.einsum nodes.reductions nodes.vector_reductions nodes spaces loads accesses inspection "
    "library_accesses evaluation moving constraints passes pipeline codegen storages program "
    "symbolic symbolic_program trials checker frontend cli"
)

ROWS = {name: row for row, line in enumerate(ORDER.split("\n")) for name in line.split()}
ROOT = Path(__file__).resolve().parent.parent


def modules() -> dict[str, Path]:
    """Files of the package by name, without `distspmd.`; links are not followed."""
    homes = {"": ROOT / "distspmd", "solvers": ROOT / "solvers", "frontend": ROOT / "frontend"}
    found = {}
    for package, home in homes.items():
        for file in home.rglob("*.py"):
            parts = (package, *file.relative_to(home).with_suffix("").parts)
            name = ".".join(part for part in parts if part not in ("", "__init__"))
            if name:
                found[name] = file
    return found


def place(name: str) -> str | None:
    """The entry of ORDER for a module: its own, or that of a package it is in."""
    while name and name not in ROWS:
        name = name.rpartition(".")[0]
    return name or None


def imported(tree: ast.AST) -> Iterator[str]:
    """Full names of what a tree imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def parsed(name: str) -> ast.Module:
    return ast.parse(modules()[name].read_text())


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(modules()))
def test_a_module_imports_only_what_stands_above_it(name: str) -> None:
    own = place(name)
    assert own is not None, f"{name} is in no row of ORDER"
    for target in imported(parsed(name)):
        if target.startswith("distspmd."):
            other = place(target.removeprefix("distspmd."))
            assert other is not None, f"{name} imports {target}, which is in no row of ORDER"
            allowed = other == own or ROWS[other] < ROWS[own]
            assert allowed, f"{name} imports {target}, which does not stand above it"


@pytest.mark.parametrize("name", sorted(modules()))
def test_only_some_modules_import_dace(name: str) -> None:
    if place(name) not in IMPORTING_DACE.split():
        targets = list(imported(parsed(name)))
        assert not [target for target in targets if target.partition(".")[0] == "dace"]


@pytest.mark.parametrize("name", sorted(modules()))
def test_no_module_has_more_than_500_lines(name: str) -> None:
    assert len(modules()[name].read_text().splitlines()) <= 500


def test_layouts_plans_and_solvers_work_without_dace() -> None:
    names = [n for n in modules() if ROWS[place(n) or "__main__"] < ROWS[FIRST_WITH_DACE]]
    imports = "".join(f"import distspmd.{name}\n" for name in [*names, "doctor", "cli"])
    assert "layout" in names
    assert python(f"{imports}import sys; print('dace' in sys.modules)") == "False\n"


def test_nothing_imports_mpi_when_it_is_imported() -> None:
    imports = "".join(f"import distspmd.{name}\n" for name in modules() if "__main__" not in name)
    assert python(f"{imports}import sys; print('mpi4py.MPI' in sys.modules)") == "False\n"
