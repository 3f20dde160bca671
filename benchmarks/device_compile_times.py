"""What compiling for a device costs: seconds of the processor for each text of a program.

    python benchmarks/device_compile_times.py [PROGRAM ...] [--device cuda] [--arch sm_90] [--small]

Programs are the twelve that `gpu.py` checks, split over two ranks; one is a training step. No
device is needed: kernels are compiled for the architecture that is named, by the compiler of CUDA
or, for the emulated device, by that of the host. Each text is compiled alone, and what the machine
has compiled before is not used. A text is the program's frame, kernels of our own, or DaCe's
kernels; ``nothing`` includes what the texts of our own kernels include, and has no kernel.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_programs import CHECKED, EVERY, TRAINING

RANKS = 2
NOTHING = "nothing"
HEADS = ("program", "text", "kernels", "bytes", "seconds")


def lowered(name: str, small: bool) -> Any:
    """A program, lowered for two ranks."""
    import distspmd
    from distspmd.frontend import data_parallel, numpy_program, training_step

    if name == TRAINING:
        from gpu_training import SMALL, made

        step, batch = made(SMALL, "cpu")
        sdfg = training_step(step, *batch)
        return distspmd.lower(sdfg, data_parallel(RANKS)).sdfg
    program = EVERY[name]
    shapes = program.small if small else program.shapes
    empty = {argument: _unread(shape) for argument, shape in shapes.items()}
    sdfg = numpy_program(program.function, *empty.values(), *program.numbers.values())
    return distspmd.lower(sdfg, ranks=RANKS).sdfg


def _unread(shape: Sequence[int]) -> Any:
    """An array of which nobody reads the elements, in the memory of one."""
    import numpy as np

    return np.broadcast_to(np.float32(0), shape)


class Timed:
    """Compilers are run one after another, and each text that they read is a row."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int, float]] = []
        self.of_program = False
        """Whether only texts of a program are, and not the runtime, which is made beside it."""
        self.command: Sequence[str] = ()
        """That compiled kernels of our own last."""

    def run_all(
        self, commands: Sequence[Sequence[str]], env: Any = None
    ) -> subprocess.CompletedProcess[str]:
        """In the place of :func:`distspmd.runtime.compilers.processes.run_all`."""
        done = [self._run(command, env) for command in commands]
        return next((each for each in done if each.returncode != 0), done[-1])

    def _run(self, command: Sequence[str], env: Any) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryFile("w+") as said:
            process = subprocess.Popen(command, env=env, stdout=said, stderr=said)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            done = subprocess.CompletedProcess(command, process.returncode, "", said.read())
        file = Path(command[command.index("-c") + 1]) if "-c" in command else None
        if file is not None and (not self.of_program or file.parent.name == "device"):
            text, seconds = file.read_text(), usage.ru_utime + usage.ru_stime
            self.rows.append((_kind(file, text), text.count("__global__"), len(text), seconds))
            if "_own." in file.name:
                self.command = command
        return done

    def nothing(self) -> float:
        """Seconds of a text like our own, without kernels."""
        from distspmd.nodes.device_kernels import PREAMBLE

        self.of_program = False
        own = self.command[self.command.index("-c") + 1]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"nothing_own{Path(own).suffix}"
            file.write_text(PREAMBLE)
            command = [str(file) if part == own else part for part in self.command]
            command[command.index("-o") + 1] = f"{folder}/nothing.o"
            self._run(command, None)
        return self.rows.pop()[-1]


def _kind(file: Path, text: str) -> str:
    if "_own." in file.name:
        return "our kernels"
    return "DaCe's kernels" if "__global__" in text else "frame"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(CHECKED))
    parser.add_argument("--device", default="cuda", choices=["cuda", "emulated"])
    parser.add_argument("--arch", default="sm_90", help="as DISTSPMD_CUDA_ARCH has it")
    parser.add_argument("--small", action="store_true", help="arrays of a few elements")
    options = parser.parse_args()
    unknown = set(options.programs) - set(CHECKED)
    if unknown:
        parser.error(f"there is no program {min(unknown)!r}; there are {', '.join(CHECKED)}")
    with tempfile.TemporaryDirectory() as cache:
        os.environ["DISTSPMD_CACHE"] = cache  # nothing has been compiled
        measure(options.programs or CHECKED, options.device, options.arch, options.small)


def measure(names: Sequence[str], device: str, arch: str, small: bool) -> None:
    """Print the rows of programs."""
    from distspmd.execution.builds import build_for
    from distspmd.runtime.compilers import cuda_toolkit
    from distspmd.runtime.compilers import processes as compiler_processes
    from distspmd.runtime.devices import products as device_products
    from distspmd.runtime.devices.kinds import build_device_library, device_kind

    os.environ[cuda_toolkit.ARCHITECTURES] = arch
    if device == "cuda":  # cuBLAS is loaded by programs that run
        os.environ[device_products.VARIABLE] = os.path.abspath(__file__)
    timed = Timed()
    compiler_processes.run_all = timed.run_all
    print(f"{HEADS[0]:<12}{HEADS[1]:<16}{HEADS[2]:>8}{HEADS[3]:>8}{HEADS[4]:>9}")
    build_device_library(device_kind(device))
    library = sum(seconds for *_, seconds in timed.rows)
    print(f"{'(library)':<12}{'of the device':<16}{'':>8}{'':>8}{library:9.2f}", flush=True)
    for name in names:
        timed.rows, timed.of_program = [], True
        build_for(lowered(name, small), RANKS, device=device)
        for text, kernels, size, seconds in timed.rows:
            print(f"{name:<12}{text:<16}{kernels:8}{size:8}{seconds:9.2f}", flush=True)
    if timed.command:
        print(f"{NOTHING:<12}{'':<16}{0:8}{'':>8}{timed.nothing():9.2f}")


if __name__ == "__main__":
    main()
