"""PyTorch (eager and compiled) and JAX beside the programs of `gpu.py`, in one process.

Each is compared with NumPy at small sizes before it is timed. On the emulated device, which they do
not have, they compute on the host: so what calls them has run before somebody needs it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gpu_programs import PROGRAMS, STEPS_CHECKED, TRAINING, drawn, in_jax, in_torch, row_of, work_of

PEERS = ("torch eager", "torch.compile", "JAX")


@dataclass(frozen=True)
class Peers:
    """Where peers compute, at which sizes, and how often.

    Attributes:
        device: the kind of device of the programs beside them.
        small: whether sizes are those that take no time.
        repeat: calls that are timed.
    """

    device: str
    small: bool
    repeat: int

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    @property
    def place(self) -> str:
        """PyTorch's name of where tensors lie."""
        return "cuda" if self.on_gpu else "cpu"

    def named(self, peer: str) -> str:
        return peer if self.on_gpu else f"{peer}, host"

    @cached_property
    def absent(self) -> dict[str, str]:
        """Why peers are not measured, of those that are not."""
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        return {peer: why for peer in PEERS if (why := self._why_not(peer))}

    def _why_not(self, peer: str) -> str:
        if peer.startswith("torch"):
            try:
                import torch
            except ImportError:
                return "PyTorch is not installed"
            return "" if torch.cuda.is_available() or not self.on_gpu else "it has no GPU"
        try:
            import jax
        except ImportError:
            return "JAX is not installed"
        return "" if jax.default_backend() == "gpu" or not self.on_gpu else "it has no GPU"

    def rows(self, name: str) -> tuple[list[dict[str, Any]], list[str], list[str]]:
        """Rows of a program, which peers do not work here, and which compute something else."""
        rows, missing, failed = [], [], []
        for peer in PEERS:
            if peer in self.absent:
                continue
            try:
                timed = self._timed(peer, name)
            except Exception as problem:  # of a peer that does not work here
                first = str(problem).strip().partition("\n")[0]
                wrong = isinstance(problem, AssertionError)
                kept = failed if wrong else missing
                kept.append(f"{peer}, {name}: {type(problem).__name__}: {first}")
                continue
            for arithmetic, seconds in timed:
                row = row_of(name, self.named(peer), arithmetic, seconds)
                work = {} if name == TRAINING else work_of(name, self.small)
                rows.append({**row, **work})
        return rows, missing, failed

    def _timed(self, peer: str, name: str) -> list[tuple[str, float]]:
        """Seconds of a program in each kind of arithmetic."""
        if name == TRAINING:
            if peer == "JAX":
                return []
            return [("vector", self._trained(peer == "torch.compile"))]
        program = PROGRAMS[name]
        prepare = self._of_jax if peer == "JAX" else self._of_torch
        self._check(name, prepare(name, peer == "torch.compile", "vector", True)[0])
        found = []
        for arithmetic in program.arithmetic:
            _, call = prepare(name, peer == "torch.compile", arithmetic, self.small)
            found.append((arithmetic, best(call, self.repeat)))
        return found

    def _check(self, name: str, call: Callable[[], Any]) -> None:
        """Compare what a peer computes with NumPy."""
        program = PROGRAMS[name]
        given, numbers = drawn(name, program.small), dict.fromkeys(program.numbers, STEPS_CHECKED)
        wanted = program.function(**given, **numbers)
        np.testing.assert_allclose(call(), wanted, rtol=2e-4, atol=2e-5, err_msg=name)

    def _arguments(self, name: str, small: bool) -> tuple[dict[str, np.ndarray], list[int]]:
        program = PROGRAMS[name]
        numbers = [STEPS_CHECKED if small else number for number in program.numbers.values()]
        return drawn(name, program.small if small else program.shapes), numbers

    def _of_torch(self, name: str, compiles: bool, arithmetic: str, small: bool) -> Any:
        """A call whose result lies on the host, and one that is only waited for."""
        import torch

        torch.backends.cuda.matmul.allow_tf32 = arithmetic == "tf32"
        drawn_here, numbers = self._arguments(name, small)
        given = [torch.from_numpy(array).to(self.place) for array in drawn_here.values()]
        if arithmetic == "bfloat16":
            given = [tensor.bfloat16() for tensor in given]
        function = in_torch(name)
        function = torch.compile(function) if compiles else function

        def call() -> Any:
            with torch.no_grad():
                found = function(*given, *numbers)
            self._wait()
            return found

        return lambda: call().cpu().numpy(), call

    def _of_jax(self, name: str, _compiles: bool, arithmetic: str, small: bool) -> Any:
        import jax

        precision = {"vector": "highest", "tf32": "tensorfloat32", "bfloat16": "bfloat16"}
        drawn_here, numbers = self._arguments(name, small)
        given = [jax.device_put(array) for array in drawn_here.values()]
        function = jax.jit(in_jax(name))

        def call() -> Any:
            with jax.default_matmul_precision(precision[arithmetic]):
                return jax.block_until_ready(function(*given, *numbers))

        return lambda: np.asarray(call()), call

    def _trained(self, compiles: bool) -> float:
        """Seconds of a training step of PyTorch in full float32."""
        import gpu_training
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        size = gpu_training.SMALL if self.small else gpu_training.Size()
        step, batch = gpu_training.made(size, self.place)
        step = torch.compile(step) if compiles else step

        def call() -> None:
            step(*batch)
            self._wait()

        return best(call, self.repeat)

    def _wait(self) -> None:
        if self.on_gpu:
            import torch

            torch.cuda.synchronize()


def best(call: Callable[[], Any], repeat: int, slowest: Callable[[float], float] = float) -> float:
    """Seconds of the fastest call, of the slowest rank where there are several."""
    call()
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        found.append(slowest(time.perf_counter() - start))
    return min(found)
