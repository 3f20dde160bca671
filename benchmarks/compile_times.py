"""What lowering costs: seconds of the processor and memory, by ranks and by the program's length.

    python benchmarks/compile_times.py [CASE ...] [--profile]

Each case runs in a process of its own, so that none finds what another one kept, and prints the
seconds of the processor (other work on the machine hardly changes these) and the most memory.
Cases: ``stencils-P`` is a chain of ten stencils on P ranks, ``jacobi-P`` a stencil in a time loop,
explained as well, ``maps-N`` a program of N maps that cannot be fused on 8 ranks, ``gpt-L-P`` a
training step of a GPT of L layers, split by its batch and its heads over P ranks, ``search-L-P``
and ``search-untied-L-P`` a search for a schedule of it, part by part, ``kernels-P`` searches for
those of all kernels of `docs/coverage.md`, ``product-P`` one product in blocks, ``gather-P`` the
all-gather of P tiles, its plan and the proof of it, and ``start-P`` the start of P ranks that run a
small program that is compiled already (seconds of all ranks, and wall time). ``gpt2-L-P`` is what
rank 0 does ahead of the first step of a GPT-2 of `transformers` (768 wide, L layers, AdamW, data
parallel on P ranks, which are not started) in a cache that has the runtime and no program, line by
line, and ``gpt2-again-L-P`` what it does in a second process, which finds the program.
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import os
import pstats
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

CASES = (
    *(f"stencils-{ranks}" for ranks in (8, 64, 512, 4096)),
    *(f"jacobi-{ranks}" for ranks in (64, 4096)),
    "maps-30",
    "maps-100",
    *(f"gpt-12-{ranks}" for ranks in (64, 512, 4096)),
    "search-12-64",
    "search-untied-12-64",
    "search-12-4096",
    "kernels-4",
    "product-256",
    "gather-512",
    "gather-4096",
    "start-64",
    "gpt2-12-8",
    "gpt2-again-12-8",
)

PARTS: dict[str, float] = {}
"""Seconds of the processor of the parts of a search."""

STARTED = """
import distspmd
from mpi4py import MPI
import numpy as np

@distspmd.program(schedule={"y": (MPI.COMM_WORLD.size,)})
def scaled(x):
    y = 2 * x
    return y

found = scaled(np.ones(4096))
if MPI.COMM_WORLD.rank == 0:
    assert (found == 2).all()
"""


def stencils(ranks: int) -> Callable[[], Any]:
    """Ten stencils of three points, each from the result of the last, split over all ranks."""
    import distspmd
    from distspmd.frontend import numpy_program

    n = 64 * 4096
    lines = [f"    x{k + 1} = x{k}[:-2] + 2 * x{k}[1:-1] + x{k}[2:]" for k in range(10)]
    sdfg = numpy_program(_written("stencils", f"x0: f8[{n}]", lines, "x10"))
    names = {"x10": (ranks,)}
    return lambda: distspmd.lower(sdfg, names)


def jacobi(ranks: int) -> Callable[[], Any]:
    """Two arrays in a time loop, in blocks of rows and columns; lowered and explained."""
    import distspmd
    from distspmd.frontend import numpy_program

    n, rows = 8192, 2 ** (ranks.bit_length() // 2)
    around = "[1:-1, :-2] + {0}[1:-1, 2:] + {0}[:-2, 1:-1] + {0}[2:, 1:-1])"
    lines = [
        "    for _ in range(10):",
        *(f"        {b}[1:-1, 1:-1] = 0.25 * ({a}{around.format(a)}" for a, b in ("ab", "ba")),
    ]
    sdfg = numpy_program(_written("jacobi", f"a: f8[{n}, {n}], b: f8[{n}, {n}]", lines, "a"))
    grid = (rows, ranks // rows)
    spaces = distspmd.iteration_spaces(sdfg)
    schedule = {space.name: grid for space in spaces[:2]}
    return lambda: str(distspmd.explain(distspmd.lower(sdfg, schedule)))


def maps(number: int) -> Callable[[], Any]:
    """Maps that alternate between two directions, so that none are fused, over 8 ranks."""
    import distspmd
    from distspmd.frontend import numpy_program

    lines = [f"    x{k + 1} = np.sin(x{k}[::-1, :]) + x{k}.T" for k in range(number)]
    sdfg = numpy_program(_written("maps", "x0: f8[64, 64]", lines, f"x{number}"))
    return lambda: distspmd.lower(sdfg, {f"x{number}": (4, 2)})


def _written(name: str, parameters: str, lines: list[str], result: str) -> Any:
    """A function of these lines; in a file, since front ends read the source."""
    folder = tempfile.mkdtemp()
    file = Path(folder) / f"{name}.py"
    head = f"import numpy as np\nfrom dace import float64 as f8\n\n\ndef {name}({parameters}):\n"
    file.write_text(head + "\n".join([*lines, f"    return {result}", ""]))
    sys.path.insert(0, folder)
    return getattr(__import__(name), name)


def gpt(layers: int, ranks: int) -> Callable[[], Any]:
    """A step of AdamW, batch and heads split by one of the presets."""
    import distspmd
    from distspmd.frontend import data_parallel, megatron

    traced = _step_of_gpt(layers, ranks)
    schedule = data_parallel(ranks // 8) * megatron(8)
    return lambda: distspmd.lower(traced, schedule)


def search(layers: int, ranks: int, tied: bool | None = None) -> Callable[[], Any]:
    """A schedule of the same step is searched for; the seconds of its parts are printed."""
    import distspmd

    traced = _step_of_gpt(layers, ranks)
    _time_parts_of_search()

    def run() -> None:
        found = distspmd.search(traced, ranks, tied=tied, seconds=600)
        for name, spent in PARTS.items():
            print(f"{name:>15}  {spent:8.2f} s CPU")
        gap = f"cost {found.cost:.4e} s, gap {1 - found.bound / found.cost:.2%}"
        print(f"{len(found.spaces):>15}  spaces, {gap}", flush=True)

    return run


def kernels(ranks: int) -> Callable[[], Any]:
    """Schedules of all kernels of `docs/coverage.md`; the five that take longest are printed."""
    from parsers import SIZES, kernel_of

    import distspmd
    from distspmd.frontend import numpy_program

    with tempfile.TemporaryDirectory() as folder:
        names = [name for module in SIZES.values() for name in module]
        sdfgs = {name: numpy_program(kernel_of(name, folder).program) for name in names}
    distspmd.search(sdfgs["gemm"], ranks)  # imports

    def run() -> None:
        spent = {}
        for name, sdfg in sdfgs.items():
            before = sum(os.times()[:4])
            distspmd.search(sdfg, ranks)
            spent[name] = sum(os.times()[:4]) - before
        longest = sorted(spent, key=lambda name: -spent[name])[:5]
        told = ", ".join(f"{name} {spent[name]:.2f}" for name in longest)
        print(f"{len(spent):>15}  kernels, the longest: {told}", flush=True)

    return run


def _time_parts_of_search() -> None:
    """Let the parts of a search add their seconds of the processor, with what they start."""
    from distspmd.scheduling import search
    from distspmd.wcsp import solver, toulbar2

    parts = (
        (search, "run_passes", "fuse, align"),
        (search.Program, "of", "program"),
        (search, "Model", "model"),
        (solver, "reduce", "reduction"),
        (toulbar2.Toulbar2, "solve", "solver"),
        (search, "found_on", "record"),
    )
    for place, name, part in parts:
        setattr(place, name, _timed(getattr(place, name), part))


def _timed(function: Callable[..., Any], part: str) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        before = sum(os.times()[:4])
        try:
            return function(*arguments, **options)
        finally:
            PARTS[part] = PARTS.get(part, 0.0) + sum(os.times()[:4]) - before

    return run


def _step_of_gpt(layers: int, ranks: int) -> Any:
    """A training step, traced."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "training"))
    import torch
    from models import GPT

    from distspmd.frontend import training_step

    torch.manual_seed(0)
    model = GPT(1000, 256, 8, layers, 64)
    optimizer = torch.optim.AdamW(model.parameters(), fused=False, foreach=False)

    def step(words: Any, wanted: Any) -> Any:
        optimizer.zero_grad()
        found = model(words)
        loss = torch.nn.functional.cross_entropy(found.reshape(-1, 1000), wanted.reshape(-1))
        loss.backward()
        optimizer.step()
        return loss

    words = torch.randint(0, 1000, (max(16, ranks // 8), 64))
    return training_step(step, words, words)


def product(ranks: int) -> Callable[[], Any]:
    """One product of matrices, in blocks of rows and columns."""
    import distspmd
    from distspmd.frontend import numpy_program

    rows = 2 ** (ranks.bit_length() // 2)
    head = "a: f8[4096, 4096], b: f8[4096, 4096]"
    sdfg = numpy_program(_written("product", head, ["    c = a @ b"], "c"))
    return lambda: distspmd.lower(sdfg, {"__return": (rows, ranks // rows, 1)})


def gather(ranks: int) -> Callable[[], Any]:
    """Tiles of all ranks on all ranks: the plan, and its proof."""
    import distspmd
    from distspmd.layouts import Layout, Mesh
    from distspmd.plans.verifier import verify

    mesh = Mesh(x=ranks)
    source = Layout.parse(f"[16{{x}}{16 * ranks}, 64]", mesh)
    target = Layout.parse(f"[{16 * ranks}, 64]", mesh)

    def run() -> Any:
        plan = distspmd.plan(source, target)
        verify(plan)
        return plan

    return run


def start(ranks: int) -> Callable[[], Any]:
    """A program that is compiled already, on ranks that start."""
    from distspmd.runtime.launch.mpiexec import launch

    file = Path(tempfile.mkdtemp()) / "started.py"
    file.write_text(STARTED)
    launch([str(file)], ranks=ranks, timeout=300).check()
    return lambda: launch([str(file)], ranks=ranks, timeout=300).check()


def gpt2(layers: int, ranks: int) -> Callable[[], Any]:
    """The program of a step of GPT-2 from nothing: what rank 0 does in ``frontend.partitioned``."""
    find, make = _program_of_gpt2(layers, ranks)
    _warm_up()
    for folder in ("programs", "steps"):
        shutil.rmtree(Path(os.environ["DISTSPMD_CACHE"]) / folder, ignore_errors=True)

    def run() -> None:
        assert find() is None
        make()

    return run


def gpt2_again(layers: int, ranks: int) -> Callable[[], Any]:
    """The same where a process before this one has made it."""
    subprocess.run([sys.executable, __file__, f"gpt2-{layers}-{ranks}", "--here"], check=True)
    find, _ = _program_of_gpt2(layers, ranks)

    def run() -> None:
        assert find() is not None

    return run


def _warm_up() -> None:
    """Let the cache have what all programs share: the runtime, and the headers."""
    import distspmd
    from distspmd.execution.builds import build_for
    from distspmd.runtime.compilers import processes as compiler_processes

    small = distspmd.frontend.numpy_program(_written("small", "x: f8[64]", ["    y = 2 * x"], "y"))
    small = distspmd.lower(small, {}).sdfg
    build_for(small, 1)
    compiler_processes.wait_for_all()


def _program_of_gpt2(layers: int, ranks: int) -> tuple[Callable[[], Any], Callable[[], None]]:
    """What looks for the program of a step, and what makes and keeps it."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
    import torch
    from zoo.registry import tell_torchvision

    tell_torchvision()
    from transformers import GPT2Config, GPT2LMHeadModel

    from distspmd import pipeline
    from distspmd.execution.binding import binding_of
    from distspmd.execution.builds import build_for
    from distspmd.frontend import data_parallel
    from distspmd.frontend.from_torch.kept_programs import KeptProgram
    from distspmd.frontend.from_torch.partitioned import Given

    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=768, n_head=12, use_cache=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def step(words: Any, wanted: Any) -> Any:
        optimizer.zero_grad()
        found = model(words).logits.flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(found, wanted.flatten())
        loss.backward()
        optimizer.step()
        return loss

    words = torch.randint(0, model.config.vocab_size, (2, ranks, 128))
    given, schedule = Given.of(step, tuple(words), {}), data_parallel(ranks)
    of_call = "step", schedule, {}, "vector", ranks, given.key, given.strides
    kept = KeptProgram.of(given.function, given.tensors, set(), *of_call, device=None)

    def make() -> None:
        sdfg = _phase("trace", lambda: given.traced("step", set()))
        lowered = _phase("lower", lambda: pipeline.lower_numbers(sdfg, schedule)).sdfg
        built, lowering = _phase("compile", lambda: build_for(lowered, ranks))
        binding: Any = binding_of(lowered)
        kept.keep(built, lowering, binding)

    return kept.find, make


def _phase(name: str, run: Callable[[], Any]) -> Any:
    """Run a part, and print its seconds."""
    before = os.times()
    result = run()
    spent = [after - begun for after, begun in zip(os.times(), before, strict=True)]
    told = f"{sum(spent[:2]):8.2f} s CPU, compilers {sum(spent[2:4]):.2f} s, {spent[4]:.2f} s"
    print(f"{name:>15}  {told}", flush=True)
    return result


MAKERS = {
    "stencils": stencils,
    "jacobi": jacobi,
    "maps": maps,
    "gpt": gpt,
    "kernels": kernels,
    "search": search,
    "search-untied": functools.partial(search, tied=False),
    "product": product,
    "gather": gather,
    "start": start,
    "gpt2": gpt2,
    "gpt2-again": gpt2_again,
}


def measure(case: str, profile: bool) -> None:
    """Run one case and print a line."""
    kind, *numbers = re.split(r"-(?=\d)", case)
    run = MAKERS[kind](*map(int, numbers))
    profiler = cProfile.Profile()
    children = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    begun, wall = time.process_time(), time.perf_counter()
    if profile:
        profiler.runcall(run)
    else:
        run()
    seconds, waited = time.process_time() - begun, time.perf_counter() - wall
    seconds += sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - children
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{case:>15}  {seconds:8.2f} s CPU  {waited:8.2f} s  {most:7.0f} MB", flush=True)
    if profile:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(70)
        pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def main() -> None:
    """All cases, or those that are asked for, each in its own process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    for case in options.cases:
        if options.here:
            measure(case, options.profile)
        else:
            profiled = ["--profile"] * options.profile
            command = [sys.executable, __file__, case, "--here", *profiled]
            with tempfile.TemporaryDirectory() as cache:
                own = {"DISTSPMD_CACHE": cache} if case.startswith("gpt2") else {}
                subprocess.run(command, check=True, env={**os.environ, **own})


if __name__ == "__main__":
    main()
