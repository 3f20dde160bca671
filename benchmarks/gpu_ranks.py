"""What each rank of `gpu.py` does: programs on devices, compared with NumPy, and timed.

``gpu.py`` starts it, once for each program: an error of a device ends all ranks of its process. A
row of the results is a line that rank 0 prints.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gpu_peers import best
from gpu_programs import (
    COPIES,
    EVERY,
    LINE,
    PROGRAMS,
    STEPS_CHECKED,
    TRAINING,
    Program,
    drawn,
    row_of,
    work_of,
)

import distspmd
from distspmd.frontend import numpy_program
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices.arrays import DeviceArray
from distspmd.runtime.devices.kinds import device_kind, device_of_process


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

    def check(self, name: str) -> dict[str, Any]:
        """Compare a program with NumPy, at small sizes; which kernels and transports it has."""
        if name == TRAINING:
            return self._check_training()
        program = EVERY[name]
        numbers = dict.fromkeys(program.numbers, STEPS_CHECKED)
        given = drawn(name, program.small)
        with self.compiled(program, program.small, numbers, "vector") as compiled:
            mine = {n: compiled.tile(n, array) for n, array in given.items()}
            found = compiled(**mine, **numbers)
            wanted = np.atleast_1d(program.function(**given, **numbers))
            box = compiled.layout("__return").box(self.comm.rank)
            is_here = not isinstance(found, distspmd.runtime.MissingResult)
            if box and is_here:
                wanted = wanted[tuple(slice(*interval) for interval in box)]
            how = _how(compiled)
        if is_here:
            np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5, err_msg=name)
        self.comm.Barrier()  # all are right
        return how

    def _check_training(self) -> dict[str, Any]:
        import gpu_training

        program, batch = gpu_training.compiled(self.comm, self.device, gpu_training.SMALL)
        with program:
            losses = [program(*batch) for _ in range(3)]
            how = _how(program)
        if self.comm.rank == 0:
            step, batch = gpu_training.made(gpu_training.SMALL, "cpu")
            far = max(abs(float(loss) - float(step(*batch))) for loss in losses)
            assert far < 1e-4, f"losses are {far} from those of PyTorch"
        return how

    def run(self, name: str, small: bool) -> None:
        """Check a program, and print a row for each kind of arithmetic."""
        how = self.check(name)
        if name == TRAINING:
            self._train(small, how)
            return
        program = PROGRAMS[name]
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
            self.say(name, arithmetic, seconds, **work_of(name, small), **how)

    def say(self, name: str, arithmetic: str, seconds: float | None, **more: Any) -> None:
        """Print a row of the results, on rank 0."""
        if self.comm.rank == 0:
            by = f"distspmd, {self.comm.size} rank(s)"
            print(LINE + json.dumps({**row_of(name, by, arithmetic, seconds), **more}), flush=True)

    def _train(self, small: bool, how: dict[str, Any]) -> None:
        import gpu_training

        size = gpu_training.SMALL if small else gpu_training.Size()
        program, batch = gpu_training.compiled(self.comm, self.device, size)
        with program:
            seconds = best(lambda: program(*batch), self.repeat, self.slowest)
        self.say(TRAINING, "vector", seconds, **how)

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


def _how(program: Any) -> dict[str, Any]:
    """What `explain` would tell of a program, in short: kernels, and how tiles move."""
    remarks = [remark for _, _, remark in program.device.spaces]
    return {"kernels": remarks, "transports": list(program.transports)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", choices=[COPIES, *EVERY, TRAINING])
    parser.add_argument("--device", required=True)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    ranks = Ranks(options.device, options.repeat)
    if options.check:
        ranks.say(options.program, "vector", None, **ranks.check(options.program))
    elif options.program == COPIES:
        ranks.copies(options.small)
    else:
        ranks.run(options.program, options.small)


if __name__ == "__main__":
    main()
