"""Programs that plain DaCe parsed: the user is told where it reads something else than NumPy does.

An SDFG is taken for what it says. What DaCe's parser left out does not stand in it: ``a[::2] *= b``
is ``a[:6] *= b``, and ``a[:, 0:1] + b`` is ``a[:, 0] + b``. Where the SDFG still carries the source
that it was parsed from, that tells of such places, and a warning says so. No file is read, and no
program is refused for what it may mean elsewhere. ``lower(function)`` reads the function itself.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import sympy
from dace import SDFG, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce

from distspmd.errors import ProgramWarning
from distspmd.runtime.notices import warn

_NARROW = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16, dtypes.uint32)
_WHOLE = (*_NARROW, dtypes.int64, dtypes.uint64)
_GROWING = (dtypes.ReductionType.Sum, dtypes.ReductionType.Product)
_SOURCE = "sourcecode"
"""An attribute of an SDFG that DaCe's parser made: the text of the function. Files have it not."""


def mark_numpy(sdfg: SDFG) -> None:
    """Note that a program means what NumPy means: it is no longer one that plain DaCe parsed."""
    with suppress(AttributeError):
        delattr(sdfg, _SOURCE)


def tell_misunderstood(sdfg: SDFG) -> None:
    """Warn of what plain DaCe does not parse as NumPy runs it, as far as the SDFG has its source.

    The SDFG stays as it is.
    """
    function = _function(sdfg)
    if function is None:
        return
    info = sdfg.debuginfo
    file = Path(str(info.filename)).name if info is not None and info.filename else sdfg.name
    for line, what in dict.fromkeys(_misunderstood(sdfg, function)):
        warn(
            f"{file}:{line}: {what}. The SDFG is taken as it is; distspmd.lower({function.name}, "
            "...) of the function itself computes what NumPy does.",
            ProgramWarning,
        )


def _function(sdfg: SDFG) -> ast.FunctionDef | None:
    """The function that DaCe parsed, if the SDFG has it, with the numbers of its lines."""
    text = getattr(sdfg, _SOURCE, {}).get("code", "")
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return None
    if sdfg.debuginfo is not None and sdfg.debuginfo.start_line:
        ast.increment_lineno(tree, int(sdfg.debuginfo.start_line) - 1)
    return next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)


def _misunderstood(sdfg: SDFG, function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Lines of a function, and what DaCe does there."""
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Load) and _keeps_one(sdfg, node):
                yield (
                    node.lineno,
                    f"of {ast.unparse(node)}, one element wide, DaCe removes the dimension, which "
                    "NumPy keeps: what it is broadcast with, and the shape of a result, may be "
                    "others",
                )
        elif isinstance(node, ast.AugAssign) and any(_steps(node.target)):
            yield (
                node.lineno,
                f"DaCe leaves out the step of {ast.unparse(node.target)} where it is changed in "
                "place by an array",
            )
    called = {
        node.func.attr: node.lineno
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }
    yield from _narrow_sums(sdfg, called)


def _indices(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _steps(node: ast.AST) -> Iterator[bool]:
    for index in _indices(node):
        step = index.step if isinstance(index, ast.Slice) else None
        yield step is not None and ast.unparse(step) not in ("1", "None")


def _keeps_one(sdfg: SDFG, node: ast.Subscript) -> bool:
    """Whether a subscript slices one element, beside other dimensions."""
    indices = _indices(node)
    container = sdfg.arrays.get(node.value.id) if isinstance(node.value, ast.Name) else None
    shape = tuple(container.shape) if container is not None else ()
    if len(shape) == 1 or (not shape and len(indices) == 1):
        return False
    if len(indices) > 1 and len(shape) == len(indices):
        pairs = zip(indices, shape, strict=True)
        if any(isinstance(index, ast.Slice) and extent == 1 for index, extent in pairs):
            return True
    return any(isinstance(index, ast.Slice) and _is_one(index) for index in indices)


def _is_one(index: ast.Slice) -> bool:
    """Whether a slice has one element: k:k+1, 3:4, :1 or -1:."""
    lower = ast.unparse(index.lower) if index.lower else "0"
    if index.upper is None:
        return lower == "-1"
    if index.step is not None:
        return False
    ends = f"({ast.unparse(index.upper)}) - ({lower})"
    names = {n.id: sympy.Symbol(n.id) for n in ast.walk(ast.parse(ends)) if isinstance(n, ast.Name)}
    try:
        return bool(sympy.sympify(ends, names) == 1)
    except (sympy.SympifyError, TypeError, AttributeError):
        return False


def _narrow_sums(sdfg: SDFG, called: dict[str, int]) -> Iterator[tuple[int, str]]:
    """NumPy adds narrow integers up as 64-bit ones, and its means are no integers."""
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, Reduce) or not isinstance(state, SDFGState) or node.wcr is None:
            continue
        (edge,) = state.in_edges(node)
        dtype = state.sdfg.arrays[edge.data.data].dtype
        if detect_reduction_type(node.wcr) not in _GROWING:
            continue
        if dtype in _WHOLE and "mean" in called:
            yield called["mean"], f"a mean of {dtype.to_string()} is an integer at DaCe"
        elif dtype in _NARROW and (name := next(filter(called.get, _REDUCING), None)):
            yield (
                called[name],
                f"DaCe reduces {dtype.to_string()} in that type, where NumPy takes 64 bits",
            )


_REDUCING = ("sum", "reduce", "prod")
"""Functions and methods that add or multiply."""
