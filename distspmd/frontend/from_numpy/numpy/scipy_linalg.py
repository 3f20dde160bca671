"""Functions of ``scipy.linalg``, by their names: SciPy is needed by the program alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy import linalg
from distspmd.frontend.from_numpy.numpy.lapack_calls import SINGULAR, call, inexact, matrices
from distspmd.frontend.from_numpy.numpy.registry import named

_SCIPY = "scipy.linalg"


def _one(run: Context, value: object, name: str, *, square: bool = True) -> Tensor:
    found = matrices(run, value, name, square=square)
    if found.ndim != 2:
        run.tracer.refuse(f"{name} of a stack of matrices; call it for each of them")
    return found


def _plain(run: Context, name: str, options: dict[str, Any], known: tuple[str, ...]) -> None:
    """Options that change no values may be given; others may not."""
    for key in ("overwrite_a", "overwrite_b", "check_finite", "overwrite_ab", "lapack_driver"):
        options.pop(key, None)
    for key, value in options.items():
        if key not in known and value not in (None, False):
            run.tracer.refuse(f"{name} with {key}={value!r}")


def _sided(
    run: Context, function: str, operands: list[Tensor], b: object, options: str, error: str
) -> Any:
    """A function with one or several right-hand sides."""
    tracer = run.tracer
    given = tracer.tensor(b)
    kind = inexact(run, operands[0], given)
    terms = ["nn", *["n"] * (len(operands) - 1)]
    typed = [(operands[0], kind), *((o, o.dtype) for o in operands[1:])]
    if given.ndim not in (1, 2):
        tracer.refuse("right-hand sides of more than two dimensions")
    letters = "n" if given.ndim == 1 else "nm"
    return call(
        run,
        function,
        f"{','.join([*terms, letters])}->{letters}",
        [*typed, (given, kind)],
        [(given.shape, kind)],
        options=options,
        error=error,
    )[0]


@named(_SCIPY, "solve_triangular")
def _solve_triangular(
    run: Context,
    a: object,
    b: object,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    **options: object,
) -> Any:
    _plain(run, "solve_triangular", options, ())
    matrix = _one(run, a, "scipy.linalg.solve_triangular")
    turned = {0: "N", 1: "T", 2: "C"}.get(trans, trans)
    part, diagonal = "L" if lower else "U", "U" if unit_diagonal else "N"
    template = f"'{part}', '{turned}', '{diagonal}'"
    return _sided(run, "solve_triangle", [matrix], b, template, "singular matrix")


@named(_SCIPY, "solve")
def _solve(run: Context, a: object, b: object, **options: object) -> Any:
    options.pop("assume_a", None)
    _plain(run, "scipy.linalg.solve", options, ())
    matrix = _one(run, a, "scipy.linalg.solve")
    return _sided(run, "solve", [matrix], b, "", SINGULAR)


@named(_SCIPY, "cholesky")
def _cholesky(run: Context, a: object, lower: bool = False, **options: object) -> Any:
    _plain(run, "scipy.linalg.cholesky", options, ())
    return linalg.cholesky(run, _one(run, a, "scipy.linalg.cholesky"), upper=not lower)


@named(_SCIPY, "cho_factor")
def _cho_factor(run: Context, a: object, lower: bool = False, **options: object) -> Any:
    """The other triangle is zero here; SciPy leaves in it what was there."""
    return _cholesky(run, a, lower, **options), lower


@named(_SCIPY, "cho_solve")
def _cho_solve(run: Context, c_and_lower: Any, b: Any, **options: object) -> Any:
    _plain(run, "cho_solve", options, ())
    factor, lower = c_and_lower
    part = "'L'" if lower else "'U'"
    return _sided(run, "solve_definite", [run.tracer.tensor(factor)], b, part, "")


@named(_SCIPY, "lu_factor")
def _lu_factor(run: Context, a: object, **options: object) -> Any:
    _plain(run, "lu_factor", options, ())
    matrix = _one(run, a, "scipy.linalg.lu_factor", square=False)
    kind, (m, n) = inexact(run, matrix), matrix.shape
    k = linalg.least_of(run, m, n)
    results = [((m, n), kind), ((k,), np.dtype(np.int32))]
    return tuple(call(run, "factors", "mn->mn,k", [(matrix, kind)], results))


@named(_SCIPY, "lu_solve")
def _lu_solve(run: Context, lu_and_piv: Any, b: object, trans: Any = 0, **options: object) -> Any:
    _plain(run, "lu_solve", options, ())
    factors = [run.tracer.tensor(v) for v in lu_and_piv]
    turned = {0: "'N'", 1: "'T'", 2: "'C'"}[trans]
    return _sided(run, "solve_factored", factors, b, turned, "")


@named(_SCIPY, "inv")
def _inv(run: Context, a: object, **options: object) -> Any:
    _plain(run, "scipy.linalg.inv", options, ())
    return linalg.inverse(run, a)
