"""Knowledge flows one way: who may import whom, who may import DaCe, and nobody imports MPI."""

from __future__ import annotations

import ast
import fnmatch
import functools
import subprocess
import sys
from pathlib import Path

from sympy.utilities.iterables import strongly_connected_components

# Everything that is kept at the top of the repository. A new file there needs a reason and a word.
TOP = """
    .ci .gitignore .pre-commit-config.yaml AUTHORS CHANGELOG.md CITATION.cff CONTRIBUTING.md LICENSE
    README.md benchmarks distspmd docs examples frontend pyproject.toml scripts solvers
    tests
"""

# A module imports only modules of its own row and of the rows above it. A package stands for all
# modules below it. `distspmd/__init__.py` knows all.
ORDER = """
    errors lazy
    cache tables charts expressions wcsp
    layouts
    plans
    solvers
    planning
    runtime
    schedule
    lowering
    dace_compat
    nodes
    analysis
    placement
    explanation
    passes
    pipeline
    scheduling
    symbolic_lowering
    codegen
    execution
    saved
    driver
    frontend
    api
    checking
    doctor
    cli
    __main__
"""
ROOMS_OF_RUNTIME = """
    allocation guard tracebacks
    notices
    compilers calls host
    shared_memory
    watch
    launch
    engine
    devices
    redistribution
    measure
"""
"""The same inside ``distspmd/runtime/``."""
ROOMS_OF_FROM_NUMPY = """
    parallel_map
    library
    reader.origins reader.patterns reader.jumps reader.bindings reader.frames reader.cells
    kinds.nests
    arrays context kinds.variables
    reader.registry reader.conditions reader.sources numpy.registry host.preferred
    lists.list_forms lists.run_lists reader.texts
    reader.sharing reader.mutation arrays.checks
    arrays.failures kinds.absence
    lists
    reader.objects reader.python_errors
    arrays.array_protocol arrays.arrays_from_outside
    kinds
    numpy.lapack_calls
    host.names host.work host.regions host.places host.otherwise host.probes host.blocks host.clocks
    reader kinds.turns kinds.known_functions
    host.asked host.scipy_signatures
    numpy
    host
    api program dace_parser
"""
"""The same inside ``distspmd/frontend/from_numpy/``; modules that stand elsewhere than their room
are named by themselves."""
FIRST_WITH_DACE = "dace_compat"
WITHOUT_DACE = "explanation doctor __main__"
"""Rooms above the first with DaCe that do without it."""
MOST_LINES, MOST_FILES = 1000, 12
LINES_OF_FROM_NUMPY = 41951
"""It does not grow: what it does not read is a host function. Who deletes lines lowers this."""

LARGEST_CIRCLE = 4
"""Modules of the front end for NumPy that import each other, also for types and lazily, at most."""

MOST_OF_ANY = 0.15
"""Share of the parameters in the front end for NumPy that are annotated with Any; it only falls."""

ROWS = {name: row for row, line in enumerate(ORDER.split("\n")) for name in line.split()}
ROOT = Path(__file__).resolve().parent.parent


@functools.cache
def modules() -> dict[str, Path]:
    """Files of the package by name, without `distspmd.`."""
    home = ROOT / "distspmd"
    found = {}
    for file in home.rglob("*.py"):
        parts = file.relative_to(home).with_suffix("").parts
        if name := ".".join(part for part in parts if part != "__init__"):
            found[name] = file
    return found


def place(name: str) -> str:
    """The room of ORDER that a module is in."""
    room = name.partition(".")[0]
    assert room in ROWS, f"{name} is in no row of ORDER"
    return room


@functools.cache
def imported(name: str) -> list[str]:
    """Full names of what a module imports, wherever in it."""
    found: list[str] = []
    for node in ast.walk(ast.parse(modules()[name].read_text())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found += (f"{node.module}.{alias.name}" for alias in node.names)
    return found


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_module_imports_only_what_stands_above_it() -> None:
    upward = [
        f"{name} imports {target}"
        for name in modules()
        for target in imported(name)
        if target.startswith("distspmd.")
        and ROWS[place(target.removeprefix("distspmd."))] > ROWS[place(name)]
    ]
    assert not upward


def test_a_room_of_the_runtime_imports_only_what_stands_above_it() -> None:
    rows = {n: row for row, line in enumerate(ROOMS_OF_RUNTIME.split("\n")) for n in line.split()}
    inside = {name: name.split(".")[1] for name in modules() if name.startswith("runtime.")}
    pairs = [
        (name, own, target, target.split(".")[2])
        for name, own in inside.items()
        for target in imported(name)
        if target.startswith("distspmd.runtime.")
    ]
    assert {*inside.values()} == {*rows}
    assert not [
        f"{name} imports {target}"
        for name, own, target, other in pairs
        if rows[other] > rows[own] or (rows[other] == rows[own] and other != own)
    ]


def test_rooms_of_one_row_do_not_import_each_other() -> None:
    sideways = [
        f"{name} imports {target}"
        for name in modules()
        for target in imported(name)
        if target.startswith("distspmd.")
        and ROWS[other := place(target.removeprefix("distspmd."))] == ROWS[place(name)]
        and other != place(name)
    ]
    assert not sideways


def test_the_lower_half_does_not_import_dace() -> None:
    with_dace = [
        name
        for name in modules()
        if ROWS[place(name)] < ROWS[FIRST_WITH_DACE] or place(name) in WITHOUT_DACE.split()
        for target in imported(name)
        if target.partition(".")[0] == "dace"
    ]
    assert not with_dace


def test_the_front_end_for_numpy_does_not_grow() -> None:
    files = (ROOT / "distspmd" / "frontend" / "from_numpy").rglob("*.py")
    assert sum(len(file.read_text().splitlines()) for file in files) <= LINES_OF_FROM_NUMPY


def test_a_room_of_the_front_end_for_numpy_imports_only_what_stands_above_it() -> None:
    every = enumerate(ROOMS_OF_FROM_NUMPY.split("\n"))
    rows = {f"frontend.from_numpy.{n}": row for row, line in every for n in line.split()}

    def row(name: str) -> int:
        return rows[name] if name in rows else row(name.rpartition(".")[0])

    own = [name for name in modules() if name.startswith("frontend.from_numpy.")]
    assert not {*rows} - {*own}
    upward = [
        f"{name} imports {target}"
        for name in own
        for target in imported(name)
        if target.startswith("distspmd.frontend.from_numpy.")
        and row(target.removeprefix("distspmd.")) > row(name)
    ]
    assert not upward


def test_modules_of_the_front_end_for_numpy_import_each_other_in_small_circles() -> None:
    own = [name for name in modules() if name.startswith("frontend.from_numpy.")]
    edges = [
        (name, found)
        for name in own
        for target in imported(name)
        for whole in [target.removeprefix("distspmd.")]
        if (found := whole if whole in own else whole.rpartition(".")[0]) in own and found != name
    ]
    circles = strongly_connected_components((own, edges))
    assert max(map(len, circles)) <= LARGEST_CIRCLE, max(circles, key=len)


def test_few_parameters_of_the_front_end_for_numpy_are_any() -> None:
    found = [
        parameter.annotation
        for name, file in modules().items()
        if name.startswith("frontend.from_numpy.")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef)
        for parameter in ast.walk(node.args)
        if isinstance(parameter, ast.arg) and parameter.arg not in ("self", "cls")
    ]
    vague = [each for each in found if each is None or ast.unparse(each) in ("Any", "Any | None")]
    assert len(vague) <= MOST_OF_ANY * len(found), f"{len(vague)} of {len(found)}"


def test_files_are_short_and_few_lie_at_the_top() -> None:
    lengths = {name: len(file.read_text().splitlines()) for name, file in modules().items()}
    assert not {name: lines for name, lines in lengths.items() if lines > MOST_LINES}
    assert len([*(ROOT / "distspmd").glob("*.py")]) <= MOST_FILES


def test_the_top_holds_what_belongs_there() -> None:
    ignored = [line.rstrip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    found = {
        entry.name
        for entry in ROOT.iterdir()
        if entry.name != ".git" and not any(fnmatch.fnmatch(entry.name, glob) for glob in ignored)
    }
    assert found == set(TOP.split())


def test_layouts_plans_and_solvers_work_without_dace() -> None:
    names = [name for name in modules() if ROWS[place(name)] < ROWS[FIRST_WITH_DACE]]
    imports = "".join(f"import distspmd.{name}\n" for name in [*names, "doctor", "cli"])
    assert "layouts.layout" in names
    assert python(f"{imports}import sys; print('dace' in sys.modules)") == "False\n"


def test_ranks_that_do_not_compile_import_neither_dace_nor_sympy() -> None:
    names = [name for name in modules() if place(name) in ("api", "execution", "explanation")]
    imports = "".join(f"import distspmd.{name}\n" for name in [*names, "checking.trials"])
    assert "execution.program" in names
    assert (
        python(f"{imports}import sys; print({{'dace', 'sympy'}} & {{*sys.modules}})") == "set()\n"
    )


def test_nothing_imports_mpi_when_it_is_imported() -> None:
    imports = "".join(f"import distspmd.{name}\n" for name in modules() if "__main__" not in name)
    assert python(f"{imports}import sys; print('mpi4py.MPI' in sys.modules)") == "False\n"


def test_ranks_that_only_load_a_program_import_no_solver_and_nothing_for_devices() -> None:
    """Each rank imports what it needs to start: a job has many."""
    parts = ("solvers", "explanation", "verifier", "simulator", "planner", "device", "redistribute")
    found = python(
        "import sys, distspmd\ndistspmd.compile\n"
        "own = [name for name in sys.modules if name.startswith('distspmd')]\n"
        f"print([name for name in own if any(part in name for part in {parts})])"
    )
    assert found == "[]\n"
