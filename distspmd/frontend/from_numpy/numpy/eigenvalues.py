"""Eigenvalues of general matrices: those of a real one are real or complex, as the run decides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.complex_parts import apply_imag
from distspmd.frontend.from_numpy.arrays.real_or_complex import real_or_complex
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.lapack_calls import call, inexact, matrices
from distspmd.frontend.from_numpy.numpy.registry import function, named

_CALLED = {
    ("f", True): "eigenvectors_of_real",
    ("f", False): "eigenvalues_of_real",
    ("c", True): "general_eigenvectors",
    ("c", False): "general_eigenvalues",
}


def _found(run: Context, a: Any, name: str, *, vectors: bool) -> list[Tensor]:
    """Eigenvalues as complex numbers, and eigenvectors; of a real matrix as LAPACK pairs them."""
    matrix = matrices(run, a, name, square=True)
    kind, shape = inexact(run, matrix), matrix.shape[-2:]
    if matrix.dtype.kind in "fc" and not run.tracer.parallel:
        is_finite = run.call(np.all, [run.call(np.isfinite, [matrix], {})], {})
        bad = run.call(np.logical_not, [is_finite], {})
        end_if(run, bad, "LinAlgError", "Array must not contain infs or NaNs", can_go_on=True)
    found = np.result_type(kind, np.complex64)
    results = [(shape[:1], found), (shape, found)] if vectors else [(shape[:1], found)]
    return list(
        call(
            run,
            _CALLED[kind.kind, vectors],
            "nn->n,nn" if vectors else "nn->n",
            [(matrix, kind)],
            results,
            matrix.shape[:-2],
            error="Eigenvalues did not converge",
        )
    )


def _opened(run: Context, matrix: Any, values: Tensor, found: Sequence[Tensor]) -> list[Tensor]:
    """Arrays of complex numbers; of a real matrix real ones, unless eigenvalues are complex."""
    tracer = run.tracer
    if tracer.tensor(matrix).dtype.kind == "c":
        return list(found)
    apart = run.call(np.not_equal, [apply_imag(values), 0], {})
    is_complex = tracer.stored_anew(tracer.tensor(run.call(np.any, [apart], {})), "is_complex")
    return [real_or_complex(tracer, each, is_complex) for each in found]


@function(np.linalg.eig)
def _eig(run: Context, a: Any) -> Any:
    found = _found(run, a, "np.linalg.eig", vectors=True)
    result: Any = type(np.linalg.eig(np.eye(1)))
    return result(*_opened(run, a, found[0], found))


@function(np.linalg.eigvals)
def _eigvals(run: Context, a: Any) -> Any:
    found = _found(run, a, "np.linalg.eigvals", vectors=False)
    return _opened(run, a, found[0], found)[0]


@named("scipy.linalg", "eigvals")
def _eigvals_of_scipy(run: Context, a: Any, *, check_finite: bool = True) -> Any:
    """Those of SciPy are complex always."""
    return _found(run, a, "scipy.linalg.eigvals", vectors=False)[0]


@named("scipy.linalg", "eig")
def _eig_of_scipy(run: Context, a: Any, *, check_finite: bool = True) -> Any:
    values, vectors = _found(run, a, "scipy.linalg.eig", vectors=True)
    return values, _opened(run, a, values, [vectors])[0]
