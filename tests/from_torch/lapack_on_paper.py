"""What kernels that call LAPACK write, by torch's and NumPy's own functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from distspmd.expressions.ir import Call, Load
from distspmd.frontend.tensor_ir.kernels import Kernel
from distspmd.frontend.tensor_ir.matrices import Routine


def run_lapack(kernel: Kernel, memory: dict[str, Any]) -> None:
    """Write the results of a kernel; what is reported is 0 where none is a NaN."""
    call = kernel.results[0][1]
    assert isinstance(call, Call)
    routine = Routine.of(call)
    options = [option.strip(" '") for option in routine.options.split(",") if option]
    operands = [memory[x.array.name] for x in call.arguments if isinstance(x, Load)]
    found = _FUNCTIONS[routine.function](*operands, *options)
    found = found if isinstance(found, tuple) else (found,)
    *results, told = (memory[array.name] for array, _ in kernel.results)
    for target, value in zip(results, found, strict=True):
        target[...] = np.asarray(value).reshape(target.shape)
    told[...] = int(not all(np.isfinite(np.asarray(value)).all() for value in found))


def _tensors(*arrays: Any) -> list[Any]:
    return [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]


def _cholesky(a: Any, part: str) -> Any:
    (x,) = _tensors(a)
    factor, info = torch.linalg.cholesky_ex(x, upper=part == "U")
    return torch.where(info[..., None, None] == 0, factor, torch.nan)


def _triangle(a: Any, b: Any, part: str, way: str, diagonal: str) -> Any:
    assert way == "N"
    return torch.linalg.solve_triangular(
        *_tensors(a, b), upper=part == "U", unitriangular=diagonal == "U"
    )


def _definite(a: Any, b: Any, part: str) -> Any:
    factor, given = _tensors(a, b)
    return torch.cholesky_solve(given, factor, upper=part == "U")


def _factors(a: Any) -> tuple[Any, Any]:
    factors, rows = torch.linalg.lu_factor(*_tensors(a))
    return factors, rows - 1


def _factored(lu: Any, rows: Any, b: Any, way: str) -> Any:
    factors, pivots, given = _tensors(lu, rows, b)
    if way == "T" and factors.is_complex():
        factors = factors.conj()
        found = torch.linalg.lu_solve(factors, pivots + 1, given.conj(), adjoint=True)
        return found.conj()
    return torch.linalg.lu_solve(factors, pivots + 1, given, adjoint=way != "N")


_FUNCTIONS: dict[str, Any] = {
    "cholesky": _cholesky,
    "solve": lambda a, b: torch.linalg.solve(*_tensors(a, b)),
    "solve_triangle": _triangle,
    "solve_definite": _definite,
    "inverse": lambda a: torch.linalg.inv(*_tensors(a)),
    "logarithm_of_determinant": lambda a: tuple(torch.linalg.slogdet(*_tensors(a))),
    "factors": _factors,
    "solve_factored": _factored,
    "qr": lambda a: tuple(np.linalg.qr(a)),
    "eigenvectors": lambda a, part: tuple(np.linalg.eigh(a, part)),
    "eigenvalues": lambda a, part: np.linalg.eigvalsh(a, part),
    "svd": lambda a: tuple(np.linalg.svd(a, full_matrices=False)),
    "singular_values": lambda a: np.linalg.svd(a, compute_uv=False),
}
