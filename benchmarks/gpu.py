"""Programs on devices, beside PyTorch (eager and compiled) and JAX where these are installed.

``python benchmarks/gpu.py [program ...] [--device cuda|emulated] [--ranks 1 2] [--small]
[--json FILE]`` starts its own ranks. Arguments lie in the memory of the device; a time is the best
of a call that is waited for, of the slowest rank. Each program is compared with NumPy at small
sizes before it is timed. Rates are of the bytes that any way to compute it moves, or of its
operations; they stand beside the rate of a copy on the device. What is not here, is said, and is no
error: on a machine without a GPU ``--device emulated --small`` runs all of it, the others on the
host, and its times say nothing.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from gpu_peers import Peers, best
from gpu_programs import PROGRAMS, STEPS_CHECKED, TRAINING, Program, drawn, row_of, work_of

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
            self.say(name, arithmetic, seconds, **work_of(name, small))

    def say(self, name: str, how: str, seconds: float, **work: int) -> None:
        """Print a row of the results, on rank 0."""
        if self.comm.rank == 0:
            by = f"distspmd, {self.comm.size} rank(s)"
            print(LINE + json.dumps({**row_of(name, by, how, seconds), **work}), flush=True)

    def train(self, small: bool) -> None:
        """Check a training step of a GPT, and print a row for it."""
        import gpu_training

        far = gpu_training.difference(self.comm, self.device)
        assert far < 1e-4, f"losses are {far} from those of PyTorch"
        size = gpu_training.SMALL if small else gpu_training.Size()
        program, batch = gpu_training.compiled(self.comm, self.device, size)
        with program:
            seconds = best(lambda: program(*batch), self.repeat, self.slowest)
        self.say(TRAINING, "vector", seconds)

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
            self.say(name, "", best(call, self.repeat, self.slowest), bytes=moved)
        for address in (here, there):
            device.free(address)
        self._tiles(64 if small else 8192)
        for run in (4, 16, 64, 256, 4096):
            self._runs(run, nbytes)

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

        self._move("tiles, rows to columns", (source, rows), (target, columns))

    def _runs(self, run: int, nbytes: int) -> None:
        """Every other run of so many bytes, out of a tile with gaps into one without."""
        count, mine = self.comm.size, max(1, nbytes // run)
        layout = Layout.parse(f"[{mine}{{p}}{mine * count}, {run // 4}]", Mesh(p=count))
        whole = DeviceArray((mine, run // 2), np.float32, self.device)
        target = DeviceArray((mine, run // 4), np.float32, self.device)
        whole.write(np.ones(whole.shape, np.float32))
        self._move(f"runs of {run} bytes", (whole[:, : run // 4], layout), (target, layout))

    def _move(
        self, name: str, source: tuple[DeviceArray, Layout], target: tuple[DeviceArray, Layout]
    ) -> None:
        """Bring tiles of ones to others, and see that they are there."""
        (tile, layout), (out, wanted) = source, target

        def call() -> None:
            distspmd.redistribute(self.comm, tile, layout, wanted, out=out)

        seconds = best(call, self.repeat, self.slowest)
        assert np.all(out.numpy() == 1), name
        self.say(name, "", seconds, bytes=2 * out.nbytes)


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
    of_peers, without = Peers(options.device, options.small, options.repeat).rows(names)
    rows += of_peers
    missing += without
    print(table(rows))
    for line in missing:
        print(f"not here: {line}")
    driver = str(find_driver())
    result = {"device": options.device, "driver": driver, "rows": rows, "missing": missing}
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
