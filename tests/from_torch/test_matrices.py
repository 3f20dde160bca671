"""Factorisations of matrices in traced functions, with their gradients, beside torch."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.errors import ProgramError
from from_torch.kernels_in_numpy import Program

BATCH, SIZE, COLUMNS = 3, 4, 2


def definite(x: Tensor) -> Tensor:
    return x @ x.mT + torch.eye(SIZE, dtype=x.dtype)


def eigh(x: Tensor, b: Tensor) -> Tensor:
    values, vectors = torch.linalg.eigh(definite(x))
    return (
        values.log().sum() + (vectors * values.sqrt()[..., None, :] @ vectors.mT @ b).square().sum()
    )


def qr(x: Tensor, b: Tensor) -> Tensor:
    q, r = torch.linalg.qr(x)
    return (q @ (q.mT @ b)).square().sum() + r.abs().sum()


def svd(x: Tensor, b: Tensor) -> Tensor:
    u, s, v = torch.linalg.svd(x, full_matrices=False)
    return s.log().sum() + (u * s.sqrt()[..., None, :] @ v @ b).square().sum()


CASES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "cholesky": lambda x, b: torch.linalg.cholesky(definite(x)).square().mul(0.5).sin().sum(),
    "upper": lambda x, b: (torch.linalg.cholesky(definite(x), upper=True) @ b).square().sum(),
    "cholesky_solve": lambda x, b: torch.cholesky_solve(
        b, torch.linalg.cholesky(definite(x))
    ).sum(),
    "inv": lambda x, b: (torch.linalg.inv(x) @ b).square().sum(),
    "solve": lambda x, b: torch.linalg.solve(x, b).square().sum(),
    "solve of a vector": lambda x, b: torch.linalg.solve(x, b[..., 0]).square().sum(),
    "solve on the right": lambda x, b: torch.linalg.solve(x, b.mT, left=False).square().sum(),
    "solve of transposed": lambda x, b: torch.linalg.solve(x.mT, b).square().sum(),
    "triangle": lambda x, b: (
        torch.linalg.solve_triangular(definite(x).tril(), b, upper=False).square().sum()
    ),
    "triangle on the right": lambda x, b: (
        torch.linalg.solve_triangular(definite(x).triu(), b.mT, upper=True, left=False)
        .square()
        .sum()
    ),
    "slogdet": lambda x, b: torch.linalg.slogdet(x)[1].sum() * b.sum(),
    "det": lambda x, b: (torch.linalg.det(x) * b[..., 0, 0]).sum(),
    "logdet": lambda x, b: torch.logdet(definite(x)).sum() + b.sum(),
    "eigh": eigh,
    "eigvalsh": lambda x, b: torch.linalg.eigvalsh(definite(x)).log().sum() * b.sum(),
    "qr": qr,
    "svd": svd,
    "norm": lambda x, b: torch.linalg.matrix_norm(x, "nuc").sum() + b.sum(),
}


class Trained(nn.Module):
    """A stack of matrices that is trained."""

    def __init__(self, case: str, batch: tuple[int, ...] = (BATCH,)) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.case = case
        self.x = nn.Parameter(torch.randn(*batch, SIZE, SIZE, dtype=torch.float64))

    def forward(self, b: Tensor) -> Tensor:
        return CASES[self.case](self.x, b)


def step_of(module: nn.Module) -> Callable[..., Any]:
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3)

    def step(b: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = module(b)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def sides(batch: tuple[int, ...] = (BATCH,)) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*batch, SIZE, COLUMNS, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("batch", [(BATCH,), ()], ids=["stack", "one"])
@pytest.mark.parametrize("case", CASES)
def test_a_step_means_what_it_does_in_torch(
    case: str, batch: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Trained(case, batch)
    same, given = copy.deepcopy(module), sides(batch)
    results, live = Program(monkeypatch).step(step_of(module), given)
    torch.testing.assert_close(results[0], step_of(same)(given))
    torch.testing.assert_close(live["x"], same.x.detach())


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=pytest.mark.slow) for c in ("cholesky_solve", "svd")] + ["solve"]
)
def test_stacks_are_split_and_equal_torch_on_ranks(case: str) -> None:
    call_on_ranks("from_torch.test_matrices", f"on_ranks(comm, {case!r})", 2)


def on_ranks(comm: Any, case: str) -> None:
    """Each rank factorises its own matrices; one that is singular ends the call on all."""
    module = Trained(case)
    same = copy.deepcopy(module)
    step, reference = step_of(module), step_of(same)
    with distspmd.compile(lambda: lowered(step, comm.size), comm) as program:
        for _ in range(2):
            found = program(*((sides(),) if comm.rank == 0 else ()))
            if comm.rank == 0:
                torch.testing.assert_close(found, reference(sides()))
                torch.testing.assert_close(module.x, same.x)
        module.x.data[BATCH - 1] = 0.0
        if case == "solve":
            with pytest.raises(ProgramError, match="LAPACK reports"):
                program(*((sides(),) if comm.rank == 0 else ()))


def lowered(step: Callable[..., Any], ranks: int) -> Any:
    sdfg = frontend.training_step(step, sides())
    space = next(s for s in distspmd.iteration_spaces(sdfg) if "of" in s.name)
    return distspmd.lower(sdfg, {space.name: {space.parameters[0]: ranks}})
