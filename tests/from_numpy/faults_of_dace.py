"""Programs that DaCe's parser takes for something else than NumPy, and what becomes of them.

Each is run by NumPy, by DaCe, and by distspmd from the SDFG that DaCe made.
"""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dace import SDFG

import distspmd
from distspmd.errors import DistSPMDError, ProgramWarning

RIGHT, WRONG, REFUSED, FOREIGN = "right", "wrong", "refused", "foreign"
"""What becomes of a program; a refusal of DaCe is any error."""


@dataclass(frozen=True)
class Fault:
    """A program as text, and what is known to become of it.

    Attributes:
        name: of it.
        arguments: with their types.
        lines: of the program.
        dace: what DaCe does.
        ours: what distspmd does of its SDFG.
        told: whether a warning says that the SDFG may mean something else.
    """

    name: str
    arguments: str
    lines: tuple[str, ...]
    dace: str = RIGHT
    ours: str = RIGHT
    told: bool = False

    def program(self, folder: Path) -> Any:
        """The program, from a file of its own."""
        name = f"fault_{abs(hash(self)) % 10**8}"
        file = folder / f"{name}.py"
        body = "".join(f"    {line}\n" for line in self.lines)
        head = "import dace\nimport numpy as np\n\n\n@dace.program\n"
        file.write_text(f"{head}def f({self.arguments}):\n{body}")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.f


def _einsum(text: str, *shapes: Sequence[int], dace: str = RIGHT, ours: str = RIGHT) -> Fault:
    names = "pqr"[: len(shapes)]
    arguments = ", ".join(
        f"{name}: dace.float64[{', '.join(map(str, shape))}]"
        for name, shape in zip(names, shapes, strict=True)
    )
    line = f"return np.einsum({text!r}, {', '.join(names)})"
    return Fault(f"{text} {shapes}", arguments, (line,), dace, ours)


EINSUMS = [
    _einsum("ik,kj->ij", (3, 4), (4, 5)),
    _einsum("ik,kj->ij", (1, 4), (4, 5)),
    _einsum("ik,kj->ij", (3, 1), (1, 5)),
    _einsum("ik,kj->ji", (3, 4), (4, 5)),
    _einsum("ki,jk->ij", (4, 3), (5, 4)),
    _einsum("bik,bkj->bij", (2, 3, 4), (2, 4, 5)),
    _einsum("bik,bkj->bij", (1, 3, 4), (1, 4, 5)),
    _einsum("bik,bkj->bij", (2, 3, 1), (2, 1, 5)),
    _einsum("bik,bjk->bji", (2, 3, 4), (2, 5, 4)),
    _einsum("bik,khj->bhij", (2, 3, 4), (4, 2, 3)),
    _einsum("bik,kj->bij", (2, 3, 4), (4, 5)),
    _einsum("bhik,bhjk->bhij", (2, 3, 4, 5), (2, 3, 6, 5)),
    _einsum("bhik,bhkj->bhij", (1, 1, 4, 5), (1, 1, 5, 6)),
    _einsum("bhik,bhjk->bhij", (1, 3, 4, 5), (1, 3, 6, 5), dace=WRONG, ours=REFUSED),
    _einsum("bhik,bhjk->bhij", (2, 1, 4, 5), (2, 1, 6, 5), dace=WRONG, ours=REFUSED),
    _einsum("bhse->bshe", (2, 3, 4, 5)),
    _einsum("ij->i", (3, 4)),
    _einsum("ii->i", (4, 4)),
    _einsum("ik,k->i", (3, 4), (4,)),
    _einsum("k,kj->j", (1,), (1, 5), dace=REFUSED),
    _einsum("ij,ij->ij", (3, 4), (3, 4), dace=REFUSED),
    _einsum("iab,abj->ij", (3, 2, 4), (2, 4, 5)),
    _einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
]
_MATRIX, _SQUARE = "a: dace.float64[4, 5]", "a: dace.float64[5, 5]"
_VECTOR = "a: dace.float64[12], b: dace.float64[6]"
FAULTS = [
    *EINSUMS,
    Fault("step and number", _VECTOR, ("a[::2] += 1",), told=True),
    Fault("step and array", _VECTOR, ("a[::2] *= b",), WRONG, WRONG, told=True),
    Fault("step of one", _VECTOR, ("a[::1] += 1",)),
    Fault("step that is assigned", _VECTOR, ("a[::2] = b",)),
    Fault("column and square", _SQUARE, ("return a[:, 0:1] + a",), WRONG, WRONG, told=True),
    Fault("row and matrix", _MATRIX, ("return a[0:1, :] + a",), told=True),
    Fault("one element", "a: dace.float64[4]", ("return a[3:4] + 1",)),
    Fault("sum of a column", _MATRIX, ("return np.sum(a[:, 0:1], axis=1)",), told=True),
    Fault(
        "outer product",
        f"{_SQUARE}, y: dace.float64[5, 5]",
        ("for k in range(5):", "    y += a[:, k:k+1] * a[k:k+1, :]"),
        *(WRONG, REFUSED, True),
    ),
    Fault(
        "row to all rows",
        "a: dace.float64[4, 4], b: dace.float64[4]",
        ("a += b",),
        *(REFUSED, REFUSED),
    ),
    Fault("narrow sum", "a: dace.int8[300]", ("return np.sum(a)",), WRONG, WRONG, told=True),
    Fault(
        "narrow product",
        "a: dace.int32[8, 4]",
        ("return np.multiply.reduce(a, axis=0)",),
        *(WRONG, WRONG, True),
    ),
    Fault(
        "mean of integers",
        "a: dace.int64[30, 4]",
        ("return np.mean(a, axis=0)",),
        *(WRONG, WRONG, True),
    ),
    Fault("mean", _MATRIX, ("return np.mean(a, axis=0)",)),
    Fault("sum of bools", _MATRIX, ("return np.sum(a > 0.5, axis=0)",), WRONG, REFUSED),
    Fault("all", _MATRIX, ("return np.all(a > -1.0, axis=0)",), WRONG),
    Fault("any", _MATRIX, ("return np.any(a > 0.9, axis=0)",)),
    Fault("maximum of -inf", _MATRIX, ("return np.max(a - np.inf, axis=1)",), WRONG),
    Fault("complex and a number", "a: dace.complex128[4]", ("return a / 6",)),
    Fault("difference of itself", _MATRIX, ("return a - a",)),
    Fault("swapped", _VECTOR, ("t = a[0:6] + 0", "a[0:6] = b", "b[:] = t")),
    Fault("onto itself", _VECTOR, ("a[1:] += a[:-1]",)),
]


@dataclass(frozen=True)
class Found:
    """What became of a program, and what was said."""

    dace: str
    ours: str
    told: bool
    said: str


def examine(fault: Fault, folder: Path, run_dace: bool = True, comm: Any = None) -> Found:
    """Run a program by NumPy, by DaCe if that is asked for, and from its SDFG on a communicator."""
    program = fault.program(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        sdfg = program.to_sdfg()
        of_dace, said = _outcome(program, copy.deepcopy(sdfg)) if run_dace else (fault.dace, "")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ours, told = _outcome(program, _lowered(sdfg, comm))
    is_told = any(issubclass(each.category, ProgramWarning) for each in caught)
    return Found(of_dace, ours, is_told, f"DaCe: {said}; here: {told}")


def _lowered(sdfg: SDFG, comm: Any) -> Callable[..., Any]:
    def run(**arguments: Any) -> Any:
        with distspmd.compile(distspmd.lower(sdfg, {}), comm) as compiled:
            return compiled(**arguments)

    return run


def _outcome(program: Any, run: Callable[..., Any]) -> tuple[str, str]:
    arguments = _arguments(program)
    wanted_arguments = copy.deepcopy(arguments)
    with np.errstate(all="ignore"):
        wanted = program.f(**wanted_arguments)
    try:
        found = run(**arguments)
    except DistSPMDError as error:
        return REFUSED, str(error)
    except Exception as error:
        is_ours = not isinstance(run, SDFG)
        return (FOREIGN if is_ours else REFUSED), f"{type(error).__name__}: {error}"
    pairs = [(arguments[name], wanted_arguments[name]) for name in arguments]
    pairs += [] if wanted is None else [(found, wanted)]
    return (RIGHT, "") if all(_equal(*pair) for pair in pairs) else (WRONG, "values differ")


def _equal(found: Any, wanted: Any) -> bool:
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape and not found.size == wanted.size == 1:
        return False
    found = found.reshape(wanted.shape)
    return bool(np.allclose(found, wanted, 1e-12, 1e-13, equal_nan=True))


def _arguments(program: Any) -> dict[str, np.ndarray]:
    draws, found = np.random.default_rng(3), {}
    for name, kind in program.f.__annotations__.items():
        dtype, shape = np.dtype(kind.dtype.as_numpy_dtype()), tuple(map(int, kind.shape))
        whole = dtype.kind in "iu"
        values = draws.integers(1, 100, shape) if whole else draws.random(shape)
        found[name] = np.asarray(values).astype(dtype)
    return found
