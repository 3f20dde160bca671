"""The kernels of `docs/coverage.md`, read by our front end and by DaCe's parser, side by side.

``python benchmarks/parsers.py [kernel ...] [--ranks 1 2] [--keep FILE]`` builds each kernel twice,
at sizes of its own, and starts its ranks, of one thread each. Both programs are lowered under the
same schedule and compiled with the same compiler and flags; arrays come from rank 0, and calls of
the two alternate. It prints the best time of the processor for a call of each, how many times as
fast ours is, and whether the two agree; then how long both take to read 100 statements. The file
that is kept gets a line of JSON for each row.

``--table benchmarks/parsers.json [FILE ...]`` measures nothing: it takes rows of files into the
first one, and prints the table of ``benchmarks/README.md``.
"""

import argparse
import ast
import copy
import importlib.util
import json
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import distspmd
from distspmd.codegen.build import build_program
from distspmd.frontend import numpy_program
from distspmd.lowering import ATTRIBUTE
from distspmd.runtime.allocation import launched_ranks
from distspmd.runtime.launch.mpiexec import launch

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
sys.path.insert(0, str(TESTS))

from kernels.kernel import Kernel  # noqa: E402

FRONTENDS = ("numpy", "dace")
LEAST_SECONDS = 0.5
"""Calls of a kernel are repeated until they have taken so long together."""

SIZES: dict[str, dict[str, dict[str, int]]] = {
    "products": {
        "gemm": {"NI": 500, "NJ": 520, "NK": 480},
        "k2mm": {"NI": 400, "NJ": 420, "NK": 380, "NL": 410},
        "k3mm": {"NI": 400, "NJ": 420, "NK": 380, "NL": 410},
        "atax": {"NI": 2000, "NJ": 2100},
        "bicg": {"NI": 2000, "NJ": 2100},
        "mvt": {"NI": 2000},
        "gesummv": {"NI": 1500},
        "gemver": {"NI": 1500},
        "symm": {"NI": 40, "NJ": 50},
        "syrk": {"NI": 100, "NK": 80},
        "syr2k": {"NI": 100, "NK": 80},
        "trmm": {"NI": 60, "NJ": 70},
        "doitgen": {"NK": 50, "NI": 100, "NJ": 120},
    },
    "solvers": {
        "cholesky": {"N": 80},
        "lu": {"N": 80},
        "lu_by_columns": {"N": 300},
        "ludcmp": {"N": 80},
        "trisolv": {"N": 1500},
        "durbin": {"N": 1000},
        "gramschmidt": {"N": 150, "M": 100},
    },
    "stencils": {
        "jacobi_1d": {"N": 200000, "T": 40},
        "jacobi_2d": {"N": 800, "T": 30},
        "heat_3d": {"NI": 80, "NJ": 90, "NK": 70, "T": 16},
        "seidel_2d": {"N": 100, "T": 4},
        "fdtd_2d": {"NX": 700, "NY": 720, "T": 20},
        "adi": {"N": 200, "T": 6},
        "deriche": {"NX": 500, "NY": 520},
        "hdiff": {"NI": 120, "NJ": 130, "NK": 50},
        "vadv": {"NI": 100, "NJ": 110, "NK": 30},
        "cavity_flow": {"NX": 120, "NY": 110},
    },
    "statistics": {
        "correlation": {"M": 150, "N": 200},
        "covariance": {"M": 150, "N": 200},
        "floyd_warshall": {"N": 250},
        "nussinov": {"BASES": 50},
        "azimint_naive": {"SAMPLES": 200000, "BINS": 20},
        "azimint_hist": {"SAMPLES": 400000, "BINS": 100},
    },
    "networks": {
        "conv2d_bias": {"B": 4, "H": 40, "W": 36, "CI": 6, "CO": 12, "F": 5},
        "mlp": {"ROWS": 512, "C0": 400, "C1": 500, "C2": 450, "C3": 100},
        "softmax": {"B": 8, "H": 128, "W": 256},
        "lenet": {"B": 200},
        "resnet": {"B": 200},
    },
    "sciences": {
        "arc_distance": {"N": 300000},
        "compute": {"M": 900, "N": 1000},
        "contour_integral": {"NR": 40, "NM": 30, "SLABS": 3, "POINTS": 24},
        "crc16": {"M": 20000},
        "go_fast": {"N": 2000},
        "mandelbrot1": {"XN": 300, "YN": 280, "MAXITER": 30},
        "mandelbrot2": {"XN": 300, "YN": 280, "MAXITER": 60},
        "nbody": {"N": 300},
        "scattering_self_energies": {"NA": 8, "NKZ": 4, "NE": 8, "NQZ": 3, "NORB": 4},
        "spmv": {"ROWS": 20000, "COLUMNS": 20000, "STORED": 400000},
        "stockham_fft": {"STAGES": 12},
    },
}
"""The numbers that stand at the head of a module of `tests/kernels`, by kernel."""


# -- kernels at other sizes -----------------------------------------------------------------------


def _resized(source: str, sizes: Mapping[str, int]) -> str:
    """A module's source with other numbers at its head.

    Raises:
        KeyError: a name is not among them.
    """
    tree, left = ast.parse(source), dict(sizes)
    for statement in tree.body:
        if not isinstance(statement, ast.Assign):
            continue
        (target,) = statement.targets
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = statement.value.elts if isinstance(target, ast.Tuple) else [statement.value]
        for name, value in zip(names, values, strict=True):
            if isinstance(name, ast.Name) and name.id in left:
                value.value = left.pop(name.id)
    if left:
        raise KeyError(f"the module has no {', '.join(left)}")
    return ast.unparse(tree)


def _loaded(module: str, sizes: Mapping[str, int], folder: str) -> ModuleType:
    """A module of kernels at other sizes, from a file, which parsers read."""
    text = _resized((TESTS / "kernels" / f"{module}.py").read_text(), sizes)
    name = "_".join([module, *(f"{k}{v}" for k, v in sizes.items())])
    file = Path(folder) / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def kernel_of(name: str, folder: str) -> Kernel:
    """A kernel at the size at which it is measured."""
    module = next(m for m, kernels in SIZES.items() if name in kernels)
    every = _loaded(module, SIZES[module][name], folder).KERNELS
    return next(kernel for kernel in every if kernel.name == name)


def lowered(kernel: Kernel, frontend: str, ranks: int) -> Any:
    """The SDFG that a front end makes of a kernel, lowered; what is wrong with it as text."""
    try:
        sdfg = numpy_program(kernel.program, frontend=frontend)
        sdfg.name = f"{sdfg.name}_{frontend}"
        sdfg = distspmd.lower(sdfg, kernel.schedule(ranks, frontend) if ranks > 1 else {}).sdfg
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return sdfg


def build(name: str, frontend: str, ranks: int) -> str:
    """Compile a kernel into the cache; what is wrong."""
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        sdfg = lowered(kernel_of(name, folder), frontend, ranks)
    if isinstance(sdfg, str):
        return sdfg
    try:
        build_program(sdfg, getattr(sdfg, ATTRIBUTE), ranks)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return ""


# -- on ranks -------------------------------------------------------------------------------------


def _call(program: Any, given: Mapping[str, Any] | None, comm: Any) -> tuple[float, Any]:
    """Seconds of the processor for a call with copies of arguments, of all ranks together.

    Those that a clock on the wall shows are of what else the machine does, too. With them comes
    what the call gives.
    """
    from mpi4py import MPI

    own = copy.deepcopy(dict(given)) if given else {}
    comm.Barrier()
    start = time.process_time()
    result = program(**own)
    seconds = comm.allreduce(time.process_time() - start, MPI.SUM)
    return seconds, (result, own)


def _differ(one: Any, other: Any) -> bool:
    """Whether results differ by more than the order of their sums may make them."""
    if isinstance(one, tuple | list):
        return any(_differ(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict):
        return any(_differ(one[name], other[name]) for name in one)
    if one is None or other is None:
        return one is not other
    one, other = np.squeeze(one), np.squeeze(other)
    return not np.allclose(one, other, rtol=1e-3, atol=1e-5, equal_nan=True)


def measure(name: str, comm: Any, repeat: int) -> dict[str, Any] | None:
    """Best milliseconds of both programs of a kernel; on rank 0."""
    given, sdfgs = None, dict.fromkeys(FRONTENDS)
    problems: dict[str, str] = {}
    if comm.rank == 0:
        with tempfile.TemporaryDirectory() as folder:
            kernel = kernel_of(name, folder)
            for frontend in FRONTENDS:
                found = lowered(kernel, frontend, comm.size)
                if isinstance(found, str):
                    problems[frontend] = found
                else:
                    sdfgs[frontend] = found
            parsed = numpy_program(kernel.program)
            given = kernel.case(comm.size).arguments(parsed, 1)
    problems = comm.bcast(problems)
    programs = {f: distspmd.compile(sdfgs[f], comm) for f in FRONTENDS if f not in problems}
    best: dict[str, float] = dict.fromkeys(programs, float("inf"))
    first, spent, turns = {}, 0.0, 0
    while turns < 3 or (spent < LEAST_SECONDS * len(programs) and turns < repeat):
        for frontend, program in programs.items():
            seconds, result = _call(program, given, comm)
            if turns == 0:
                first[frontend] = result
            else:
                best[frontend] = min(best[frontend], seconds)
                spent += seconds
        turns += 1
    for program in programs.values():
        program.close()
    if comm.rank:
        return None
    row: dict[str, Any] = {"kernel": name, "ranks": comm.size, "problems": problems}
    row |= {f"{f}_ms": round(seconds * 1e3, 3) for f, seconds in best.items()}
    if len(first) == 2:
        row["agree"] = not _differ(first["numpy"], first["dace"])
        row["times_as_fast"] = round(best["dace"] / best["numpy"], 3)
    return row


def on_ranks(names: list[str], repeat: int, keep: Path | None) -> None:
    """What each rank does."""
    from mpi4py import MPI

    warnings.simplefilter("ignore")
    comm = MPI.COMM_WORLD
    for name in names:
        row = measure(name, comm, repeat)
        if row is None:
            continue
        print(text_of(row), flush=True)
        if keep:
            with keep.open("a") as out:
                out.write(json.dumps(row) + "\n")


def text_of(row: Mapping[str, Any]) -> str:
    """A row of the table."""
    found = [f"{row[f'{f}_ms']:.2f}" if f"{f}_ms" in row else "-" for f in FRONTENDS]
    faster = f"{row['times_as_fast']:.2f}" if "times_as_fast" in row else "-"
    remarks = [f"{f}: {problem}" for f, problem in row["problems"].items()]
    if row.get("agree") is False:
        remarks.append("they differ")
    told = "; ".join(remarks).split("\n")[0]
    return f"| `{row['kernel']}` | {row['ranks']} | {' | '.join(found)} | {faster} | {told} |"


HEAD = """| kernel | ranks | ours ms | DaCe's parser ms | times as fast | |
|---|---|---|---|---|---|"""


GROUPS = ((0.9, "below 0.9"), (1.1, "0.9 to 1.1"), (3.0, "1.1 to 3"), (float("inf"), "3 and more"))
"""Groups of the table: what is below a number, and how that is called."""


def rows_of(file: Path) -> list[dict[str, Any]]:
    """Rows of a file: one list of them, or a line for each."""
    text = file.read_text()
    found = json.loads(text) if text.startswith("[") else map(json.loads, text.splitlines())
    return list(found)


def collect(into: Path, files: list[Path]) -> None:
    """Put rows of files in the place of the older ones, and print the table of one rank."""
    rows = {(row["kernel"], row["ranks"]): row for file in (into, *files) for row in rows_of(file)}
    into.write_text(json.dumps(list(rows.values()), indent=0) + "\n")
    fast = sorted((row["times_as_fast"], k) for (k, ranks), row in rows.items() if ranks == 1)
    print("| times as fast | kernels |\n|---|---|")
    least = 0.0
    for most, name in GROUPS:
        own = [f"`{kernel}` {times:.2f}" for times, kernel in fast if least <= times < most]
        print(f"| {name} | {', '.join(own)} |")
        least = most


# -- reading --------------------------------------------------------------------------------------

STATEMENTS = 100


def _many(kind: str) -> str:
    """The source of a function of many statements."""
    lines = ["import dace", "import numpy as np", "N = 64", f"def {kind}(x: dace.float64[N, N]):"]
    for n in range(STATEMENTS):
        if kind == "maps":
            lines += [f"    for i{n}, j{n} in dace.map[0:N, 1:N]:"]
            lines += [f"        x[i{n}, j{n}] = x[i{n}, j{n}] * {n}.5 + {n}"]
        elif n % 2:
            lines += [f"    y{n} = np.exp(-y{n - 1}) + x[{n % 7}, :] / {n}.0"]
        else:
            lines += [f"    y{n} = np.sum(x * {n}.5, axis=1)"]
    return "\n".join([*lines, "    return x" if kind == "maps" else f"    return y{n}"])


def reading() -> None:
    """Print how long it takes to read 100 statements: seconds of the processor."""
    print(f"\n| {STATEMENTS} statements | ours s | DaCe's parser s |\n|---|---|---|")
    for kind in ("arrays", "maps"):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{kind}_of_many.py"
            file.write_text(_many(kind))
            spec = importlib.util.spec_from_file_location(file.stem, file)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            row = []
            for frontend in FRONTENDS:
                start = time.process_time()
                numpy_program(getattr(module, kind), frontend=frontend)
                row.append(f"{time.process_time() - start:.2f}")
        print(f"| {kind} | {' | '.join(row)} |", flush=True)


def main() -> None:
    """Build, start ranks, print the table."""
    every = [name for kernels in SIZES.values() for name in kernels]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*", metavar="kernel", choices=[*every, []])
    parser.add_argument("--ranks", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=40, help="calls of each program, at most")
    parser.add_argument("--keep", type=Path, help="a file that gets the rows")
    parser.add_argument("--workers", type=int, default=2, help="processes that compile")
    parser.add_argument("--table", type=Path, nargs="+", metavar="FILE", help="see above")
    options = parser.parse_args()
    if options.table:
        collect(options.table[0], options.table[1:])
        return
    names = options.kernels or every
    if launched_ranks() is not None:
        on_ranks(names, options.repeat, options.keep)
        return
    keep = options.keep.resolve() if options.keep else None
    work = [(n, f, ranks) for n in names for f in FRONTENDS for ranks in options.ranks]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.workers, context) as pool:
        for one, problem in zip(work, pool.map(build, *zip(*work, strict=True)), strict=True):
            if problem:
                print(*one, problem, file=sys.stderr, flush=True)
    print(HEAD)
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    for ranks in options.ranks:
        argv = [Path(__file__).resolve(), *names, f"--repeat={options.repeat}"]
        argv += [f"--keep={keep}"] if keep else []
        done = launch(argv, ranks=ranks, threads=1, env={"PYTHONPATH": path})
        if done.returncode:
            sys.exit(done.returncode)
    reading()


if __name__ == "__main__":
    main()
