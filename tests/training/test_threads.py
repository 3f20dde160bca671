"""Products and reductions on several threads of one rank are those of torch."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.execution.program import compile_and_load
from distspmd.runtime.launch.mpiexec import launch

Results = tuple[Tensor, ...]
NAMES = ["amax", "amin", "sum_0", "sum_1", "sum", "any", "xy", "yx", "pq", "rs", "rr"]


class Everything(nn.Module):
    """Splits by rows and by columns, batches of more and of fewer products than threads."""

    def forward(self, x: Tensor, y: Tensor, p: Tensor, q: Tensor, r: Tensor, s: Tensor) -> Results:
        reduced = x.amax(1), x.amin(0), x.sum(0), x.sum(1), (x * x).sum(), (x > 2.5).any(0)
        return *reduced, x @ y, y.t() @ x.t(), p @ q, r @ s, r.transpose(1, 2) @ r


def compare(comm: object) -> None:
    torch.manual_seed(0)
    shapes = (111, 300), (300, 130), (5, 60, 70), (5, 70, 33), (2, 120, 90), (2, 90, 131)
    inputs = [torch.randn(shape) for shape in shapes]
    module = Everything()
    for arithmetic in ("vector", "strict"):
        sdfg = frontend.torch_module(module, *inputs, name=f"everything_{arithmetic}")
        sdfg = distspmd.lower(sdfg, {}).sdfg
        with compile_and_load(sdfg, comm, arithmetic=arithmetic) as program:
            for x in (inputs[0], torch.where(torch.rand(shapes[0]) < 1e-4, torch.nan, inputs[0])):
                found, wanted = program(x, *inputs[1:]), module(x, *inputs[1:])
                for name, a, b in zip(NAMES, found, wanted, strict=True):
                    torch.testing.assert_close(a, b, equal_nan=True, rtol=1e-4, atol=1e-4, msg=name)
        print(arithmetic, "is right")


@pytest.mark.slow
def test_threads_share_products_and_reductions(tmp_path: Path) -> None:
    done = launch([__file__], ranks=1, threads=3, timeout=600, capture=True, cwd=tmp_path).check()
    assert done.stdout.split("\n")[:2] == ["vector is right", "strict is right"], done.stdout


if __name__ == "__main__":
    from mpi4py import MPI

    compare(MPI.COMM_WORLD)
