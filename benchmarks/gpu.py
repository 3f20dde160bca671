"""Programs on devices, beside PyTorch (eager and compiled) and JAX where these have a GPU.

``python benchmarks/gpu.py [program ...] [--device cuda|emulated] [--ranks 1 2] [--small]
[--json FILE]`` starts its own ranks. Arguments lie in the memory of the device; a time is the best
of a call that is waited for, of the slowest rank. Each program is compared with NumPy at small
sizes before it is timed. Rates are of the bytes that any way to compute it moves, or of its
operations; they stand beside the rate of a copy on the device. What is not here, is said, and is no
error: on a machine without a GPU ``--device emulated --small`` runs all of it, and its times say
nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gpu_programs import PROGRAMS, Program, drawn, in_jax, in_torch

import distspmd
from distspmd.errors import DeviceError
from distspmd.frontend import numpy_program
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.cuda_toolkit import find_driver
from distspmd.runtime.device_arrays import DeviceArray
from distspmd.runtime.devices import check_can_run, device_kind, device_of_process
from distspmd.runtime.launch import launch
from distspmd.tables import Table, as_text

Row = dict[str, Any]
LINE = "row: "
PEERS = ("torch eager", "torch.compile", "JAX")
STEPS_CHECKED = 3
TRAINING = "training"
"""The name of a training step of a GPT (`gpu_training.py`), which needs PyTorch."""


def best(call: Callable[[], Any], repeat: int, slowest: Callable[[float], float]) -> float:
    """Seconds of the fastest call, of the slowest rank."""
    call()
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        found.append(slowest(time.perf_counter() - start))
    return min(found)


# -- ours, on ranks -------------------------------------------------------------------------------


class Ranks:
    """The ranks of one launch, their device, and how often calls are repeated."""

    def __init__(self, device: str, repeat: int) -> None:
        from mpi4py import MPI

        self.comm, self.device, self.repeat = MPI.COMM_WORLD, device, repeat
        self._most = MPI.MAX

    def slowest(self, seconds: float) -> float:
        return self.comm.allreduce(seconds, self._most)

    def compiled(self, program: Program, shapes: Any, numbers: Any, arithmetic: str) -> Any:
        """A program for its shapes; each rank has a part of the first dimension of the results."""
        lowered = None
        if self.comm.rank == 0:
            examples = {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
            sdfg = numpy_program(program.function, **examples, **numbers)
            parts = {
                space.name: (self.comm.size, *(1,) * (len(space.parameters) - 1))
                for space in distspmd.iteration_spaces(sdfg)
                if space.parameters
            }
            held = dict.fromkeys((*shapes, "__return"), "distributed")
            lowered = distspmd.lower(sdfg, parts, arguments=held)
        return distspmd.compile(lowered, self.comm, device=self.device, arithmetic=arithmetic)

    def check(self, name: str, program: Program) -> None:
        """Compare a program with NumPy, at small sizes."""
        numbers = dict.fromkeys(program.numbers, STEPS_CHECKED)
        given = drawn(name, program.small)
        with self.compiled(program, program.small, numbers, "vector") as compiled:
            mine = {n: compiled.tile(n, array) for n, array in given.items()}
            found = compiled(**mine, **numbers)
            wanted = np.atleast_1d(program.function(**given, **numbers))
            box = compiled.layout("__return").box(self.comm.rank)
            if box and found is not None:
                wanted = wanted[tuple(slice(*interval) for interval in box)]
        if found is not None:
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5, err_msg=name)

    def run(self, name: str, small: bool) -> None:
        """Check a program, and print a row for each kind of arithmetic."""
        program = PROGRAMS[name]
        self.check(name, program)
        shapes, numbers = (program.small if small else program.shapes), dict(program.numbers)
        if small:
            numbers = dict.fromkeys(numbers, STEPS_CHECKED)
        for arithmetic in program.arithmetic:
            with self.compiled(program, shapes, numbers, arithmetic) as compiled:
                given = drawn(name, shapes)
                mine = {
                    n: DeviceArray.of(compiled.tile(n, array), self.device)
                    for n, array in given.items()
                }
                call = partial(compiled, **mine, **numbers)
                seconds = best(call, self.repeat, self.slowest)
            self.say(name, arithmetic, seconds, program, shapes, numbers)

    def say(
        self, name: str, how: str, seconds: float, program: Program, shapes: Any, numbers: Any
    ) -> None:
        if self.comm.rank == 0:
            row = row_of(name, f"distspmd, {self.comm.size} rank(s)", how, seconds)
            row["bytes"] = program.bytes_moved(shapes, numbers)
            row["operations"] = program.operations(shapes)
            print(LINE + json.dumps(row), flush=True)

    def train(self, small: bool) -> None:
        """Check a training step of a GPT, and print a row for it."""
        import gpu_training

        far = gpu_training.difference(self.comm, self.device)
        assert far < 1e-4, f"losses are {far} from those of PyTorch"
        size = gpu_training.SMALL if small else gpu_training.Size()
        program, batch = gpu_training.compiled(self.comm, self.device, size)
        with program:
            seconds = best(lambda: program(*batch), self.repeat, self.slowest)
        if self.comm.rank == 0:
            row = row_of(TRAINING, f"distspmd, {self.comm.size} rank(s)", "vector", seconds)
            print(LINE + json.dumps(row), flush=True)

    def copies(self, small: bool) -> None:
        """The rates of copies on the device, to and from it, and of tiles between ranks."""
        nbytes = 1 << (12 if small else 30)
        device = device_of_process(device_kind(self.device))
        here, there = (device.allocate(nbytes) for _ in range(2))
        host = np.zeros(nbytes, np.uint8)
        pieces: list[tuple[str, Callable[[], Any], int]] = [
            ("copy on the device", lambda: device.copy(there, here, nbytes), 2 * nbytes),
            ("copy to the device", lambda: device.upload(host, here), nbytes),
            ("copy from the device", lambda: device.download(here, host), nbytes),
        ]
        for name, call, moved in pieces:
            seconds = best(call, self.repeat, self.slowest)
            if self.comm.rank == 0:
                row = row_of(name, f"distspmd, {self.comm.size} rank(s)", "", seconds)
                print(LINE + json.dumps({**row, "bytes": moved}), flush=True)
        for address in (here, there):
            device.free(address)
        self._tiles(64 if small else 8192)

    def _tiles(self, extent: int) -> None:
        """Rows to columns: all ranks exchange what they do not keep."""
        size = self.comm.size
        tile = -(-extent // size)
        rows = Layout.parse(f"[{tile}{{p}}{extent}, {extent}]", Mesh(p=size))
        columns = Layout.parse(f"[{extent}, {tile}{{p}}{extent}]", Mesh(p=size))
        source, target = (
            DeviceArray(layout.shape(self.comm.rank), np.float32, self.device)
            for layout in (rows, columns)
        )
        source.write(np.ones(source.shape, np.float32))

        def call() -> None:
            distspmd.redistribute(self.comm, source, rows, columns, out=target)

        seconds = best(call, self.repeat, self.slowest)
        if self.comm.rank == 0:
            row = row_of("tiles, rows to columns", f"distspmd, {size} rank(s)", "", seconds)
            print(LINE + json.dumps({**row, "bytes": 2 * source.nbytes}), flush=True)


def row_of(program: str, by: str, arithmetic: str, seconds: float) -> Row:
    return {"program": program, "by": by, "arithmetic": arithmetic, "seconds": seconds}


# -- others, in this process ----------------------------------------------------------------------


def why_no_peer(peer: str) -> str:
    """Why a peer is not measured; empty if it is."""
    if peer.startswith("torch"):
        try:
            import torch
        except ImportError:
            return "PyTorch is not installed"
        return "" if torch.cuda.is_available() else "this PyTorch has no GPU"
    try:
        import jax

        return "" if jax.default_backend() == "gpu" else "this JAX has no GPU"
    except ImportError:
        return "JAX is not installed"


def of_torch(name: str, compiles: bool, arithmetic: str, repeat: int) -> float:
    import torch

    program = PROGRAMS[name]
    torch.backends.cuda.matmul.allow_tf32 = arithmetic == "tf32"
    given = {n: torch.from_numpy(a).cuda() for n, a in drawn(name, program.shapes).items()}
    if arithmetic == "bfloat16":
        given = {n: tensor.bfloat16() for n, tensor in given.items()}
    function = in_torch(name if name != "call" else "pointwise")
    function = torch.compile(function) if compiles else function

    def call() -> None:
        function(*given.values(), **program.numbers)
        torch.cuda.synchronize()

    with torch.no_grad():
        return best(call, repeat, float)


def trained(peer: str, repeat: int) -> float:
    """Seconds of a training step of PyTorch, as it is or compiled, in full float32."""
    import torch
    from gpu_training import Size, of_torch

    torch.backends.cuda.matmul.allow_tf32 = False
    return best(of_torch(peer == "torch.compile", Size()), repeat, float)


def of_jax(name: str, arithmetic: str, repeat: int) -> float:
    import jax

    program = PROGRAMS[name]
    precision = {"vector": "highest", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}[arithmetic]
    given = [jax.device_put(array) for array in drawn(name, program.shapes).values()]
    function = jax.jit(in_jax(name if name != "call" else "pointwise"))
    with jax.default_matmul_precision(precision):
        numbers = program.numbers.values()
        return best(lambda: jax.block_until_ready(function(*given, *numbers)), repeat, float)


def peers(names: list[str], repeat: int) -> tuple[list[Row], list[str]]:
    """Rows of those that have a GPU, and why the others have none."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    rows, missing = [], []
    for peer in PEERS:
        why = why_no_peer(peer)
        if why:
            missing.append(f"{peer}: {why}")
            continue
        for name in names:
            if name == TRAINING:
                if peer != "JAX":
                    rows.append(row_of(name, peer, "vector", trained(peer, repeat)))
                continue
            for arithmetic in PROGRAMS[name].arithmetic:
                if peer == "JAX":
                    seconds = of_jax(name, arithmetic, repeat)
                else:
                    seconds = of_torch(name, peer == "torch.compile", arithmetic, repeat)
                rows.append(row_of(name, peer, arithmetic, seconds))
    return rows, missing


# -- all together ---------------------------------------------------------------------------------


def table(rows: list[Row]) -> str:
    """All rows, with rates beside that of a copy on the device."""
    copies = [row for row in rows if row["program"] == "copy on the device"]
    fastest = max((row["bytes"] / row["seconds"] for row in copies), default=0.0)
    lines = []
    for row in rows:
        rate = row.get("bytes", 0) / row["seconds"]
        speed = row.get("operations", 0) / row["seconds"]
        lines.append(
            (
                *(row["program"], row["by"], row["arithmetic"], f"{row['seconds'] * 1e3:.4g}"),
                f"{rate / 1e9:.4g}" if rate else "",
                f"{rate / fastest:.2f}" if rate and fastest else "",
                f"{speed / 1e12:.4g}" if speed else "",
            )
        )
    head = ("program", "by", "arithmetic", "ms", "GB/s", "of a copy", "TFLOP/s")
    return as_text([Table("", head, tuple(lines))])


def inside(options: argparse.Namespace, names: list[str]) -> None:
    """What each rank does."""
    ranks = Ranks(options.device, options.repeat)
    ranks.copies(options.small)
    for name in names:
        if name == TRAINING:
            ranks.train(options.small)
        else:
            ranks.run(name, options.small)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="program", choices=[*PROGRAMS, TRAINING, []])
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"])
    parser.add_argument("--ranks", type=int, nargs="*", default=[1])
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--json", type=Path, help="a file for the results")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = options.programs or [*PROGRAMS, TRAINING]
    if options.inside:
        inside(options, names)
        return
    rows: list[Row] = []
    missing: list[str] = []
    if TRAINING in names and importlib.util.find_spec("torch") is None:
        names.remove(TRAINING)
        missing.append("a training step of a GPT: PyTorch is not installed")
    try:
        check_can_run(options.device, compiles=True)
    except DeviceError as problem:
        missing.append(f"device {options.device!r}: {problem}")
    else:
        passed = [*names, "--device", options.device, "--repeat", str(options.repeat)]
        passed += ["--small"] * options.small
        for count in options.ranks:
            started = [Path(__file__).resolve(), "--inside", *passed]
            done = launch(started, ranks=count, capture=True).check()
            found = (line for line in done.stdout.splitlines() if line.startswith(LINE))
            rows += [json.loads(line.removeprefix(LINE)) for line in found]
    if options.device == "cuda":
        of_peers, without = peers(names, options.repeat)
        rows += of_peers
        missing += without
    else:
        missing.append("PyTorch and JAX: they have no emulated device")
    print(table(rows))
    for line in missing:
        print(f"not here: {line}")
    driver = str(find_driver())
    result = {"device": options.device, "driver": driver, "rows": rows, "missing": missing}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
