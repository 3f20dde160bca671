"""All ranks run models that torch exported to ONNX; rank 0 says how far they are from torch."""

from __future__ import annotations

import ctypes
import io
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dace
import onnx
import torch
from mpi4py import MPI
from torch import Tensor, nn
from training.models import Attention, Block, EinsumAttention, LeNet, perceptron

import distspmd
from distspmd import frontend
from distspmd.codegen.build import load_unlowered
from distspmd.execution.binding import binding_of


@dataclass(frozen=True)
class Exported:
    """A module, and the shape of its input."""

    name: str
    module: Callable[[], nn.Module]
    shape: tuple[int, ...]

    def build(self) -> tuple[onnx.ModelProto, nn.Module, Tensor]:
        """The model in ONNX, the module, and an input."""
        torch.manual_seed(3)
        module, x = self.module().eval(), torch.randn(self.shape)
        file = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                module,
                (x,),
                file,
                dynamo=False,
                input_names=["x"],
                dynamic_axes={"x": {0: "batch"}},
                opset_version=17,
            )
        return onnx.load_from_string(file.getvalue()), module, x


MODELS = [
    Exported("perceptron", perceptron, (7, 8)),
    Exported("lenet", LeNet, (7, 1, 12, 12)),
    Exported("attention", lambda: Block(Attention(8, 2, causal=True), 8), (7, 4, 8)),
    Exported("einsums", lambda: Block(EinsumAttention(8, 2), 8), (7, 4, 8)),
]


def plainly(sdfg: Any, x: Tensor) -> Tensor:
    """The program in one process, not lowered."""
    binding, run = binding_of(sdfg), load_unlowered(sdfg)
    assert binding is not None
    with dace.config.set_temporary("compiler", "allow_view_arguments", value=True):
        found = run(**binding.arguments(), x=binding.given("x", x))
    return torch.from_numpy(binding.returned([found]))


def schedule(sdfg: Any, ranks: int) -> dict[str, dict[str, int]]:
    """The first space that has a batch is split along it."""
    space = next(s for s in distspmd.iteration_spaces(sdfg) if "b" in s.parameters)
    return {space.name: {"b": ranks}}


def poison() -> None:
    """From here on fill new memory with bytes: where a program reads it, the numbers are wrong."""
    ctypes.CDLL(None).mallopt(_M_PERTURB, 165)


_M_PERTURB = -6


def check(model: Exported, comm: Any) -> str:
    """What is wrong with a model."""
    sdfg, wanted, distances = None, torch.empty(0), {}
    if comm.rank == 0:
        proto, module, x = model.build()
        sdfg = frontend.onnx_model(proto, sizes={"batch": len(x)}, name=model.name)
        wanted = module(x).detach()
        distances["plain"] = float((plainly(sdfg, x) - wanted).abs().max())
        sdfg = distspmd.lower(sdfg, schedule(sdfg, comm.size)).sdfg
    with distspmd.compile(sdfg, comm) as program:
        poison()
        if comm.rank != 0:
            program()
            return ""
        found = torch.from_numpy(program(x))
        distances[f"{program.lowering.ranks} ranks"] = float((found - wanted).abs().max())
    return "; ".join(f"{where} {value:.1e}" for where, value in distances.items() if value > 1e-5)


def main(*names: str) -> None:
    """Check the named models."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    for name in names:
        model = next(model for model in MODELS if model.name == name)
        problem = check(model, MPI.COMM_WORLD)
        if MPI.COMM_WORLD.rank == 0:
            print(f"{model.name}: {problem or 'right'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
