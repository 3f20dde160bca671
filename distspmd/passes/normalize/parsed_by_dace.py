"""Programs that plain DaCe parsed: what it takes for something else than NumPy does is refused.

What was computed wrongly cannot be seen in an SDFG any more; but an SDFG of DaCe's parser says from
which lines of which file it is. ``numpy_program`` does these things right.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import sympy
from dace import SDFG, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce

from distspmd.analysis.iteration_spaces import Source, source
from distspmd.errors import UnsupportedProgram

_NARROW = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.uint8, dtypes.uint16, dtypes.uint32)
_INSTEAD = {
    "einsum": "np.einsum is wrong at DaCe where an extent is 1, and hides dimensions that could be "
    "split",
    "backward": "DaCe's search for the gradients that are asked for leaves some of them out",
}
"""Functions, and what is said of them."""


def mark_numpy(sdfg: SDFG) -> None:
    """Note that a program means what NumPy means: it is no longer one that plain DaCe parsed."""
    sdfg.debuginfo = None


def refuse_misunderstood(sdfg: SDFG) -> None:
    """Refuse what plain DaCe does not parse as NumPy runs it.

    Raises:
        UnsupportedProgram: naming the line, what DaCe made of it, and what to write instead.
    """
    functions = list(_functions(sdfg))
    for file, function in functions:
        for line, what in _misunderstood(sdfg, function):
            _refuse(str(Source(file, line)), what, functions[0][1].name)
        if {"sum", "mean"} & {call.attr for call in _methods(function)}:
            _check_sums(sdfg, functions[0][1].name)


def _refuse(where: str, what: str, name: str) -> None:
    raise UnsupportedProgram(
        f"{where}: {what}. Pass the program itself instead of its SDFG, "
        f"distspmd.lower({name}, ...), or parse it by distspmd.frontend.numpy_program({name})."
    )


def _functions(sdfg: SDFG) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The function that DaCe parsed, with its file, and those that it calls; as far as found."""
    info = sdfg.debuginfo
    if info is None or not info.filename or not info.start_line:
        return
    file, first, last = str(info.filename), int(info.start_line), int(info.end_line)
    text = getattr(sdfg, "sourcecode", {}).get("code") or _lines_of(file, first, last)
    main = _parsed(text, first)
    if main is None:
        return
    yield file, main
    inside = {(file, line) for line in range(first, last + 1)}
    found: set[tuple[str, int]] = set()
    for other, line in sorted(_places(sdfg) - inside):
        for function in _in_file(other):
            if function.lineno <= line <= (function.end_lineno or 0):
                if (other, function.lineno) not in found:
                    yield other, function
                found.add((other, function.lineno))


def _parsed(text: str, first: int) -> ast.FunctionDef | None:
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return None
    ast.increment_lineno(tree, first - 1)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return found[0] if found else None


def _lines_of(file: str, first: int, last: int) -> str:
    try:
        return "".join(Path(file).read_text().splitlines(keepends=True)[first - 1 : last])
    except (OSError, UnicodeDecodeError):
        return ""


@cache
def _in_file(file: str) -> tuple[ast.FunctionDef, ...]:
    try:
        tree = ast.parse(Path(file).read_text())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _places(sdfg: SDFG) -> set[tuple[str, int]]:
    infos = (getattr(node, "debuginfo", None) for node, _ in sdfg.all_nodes_recursive())
    return {(str(i.filename), int(i.start_line)) for i in infos if i and i.filename}


# --- what DaCe misunderstands ---


def _misunderstood(sdfg: SDFG, function: ast.FunctionDef) -> Iterator[tuple[int, str]]:
    """Lines of a function, and what DaCe does there."""
    for call in _methods(function):
        if call.attr in _INSTEAD:
            yield call.lineno, _INSTEAD[call.attr]
    for node in ast.walk(function):
        if isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Load) and _keeps_one(sdfg, node):
                yield (
                    node.lineno,
                    f"of {ast.unparse(node)}, one element wide, DaCe removes the dimension, which "
                    "NumPy keeps, so that it is broadcast in another way",
                )
        elif isinstance(node, ast.AugAssign) and any(_steps(node.target)):
            yield (
                node.lineno,
                f"DaCe leaves out the step of {ast.unparse(node.target)} where it is changed in "
                "place",
            )


def _methods(function: ast.FunctionDef) -> Iterator[ast.Attribute]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func


def _indices(node: ast.AST) -> list[ast.expr]:
    if not isinstance(node, ast.Subscript):
        return []
    return list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]


def _steps(node: ast.AST) -> Iterator[bool]:
    for index in _indices(node):
        step = index.step if isinstance(index, ast.Slice) else None
        yield step is not None and ast.unparse(step) not in ("1", "None")


def _keeps_one(sdfg: SDFG, node: ast.Subscript) -> bool:
    """Whether a subscript slices one element."""
    indices = _indices(node)
    container = sdfg.arrays.get(node.value.id) if isinstance(node.value, ast.Name) else None
    shape = tuple(container.shape) if container is not None else ()
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


def _check_sums(sdfg: SDFG, name: str) -> None:
    """NumPy adds narrow integers up as 64-bit ones; DaCe lets them wrap."""
    for node, state in sdfg.all_nodes_recursive():
        if not isinstance(node, Reduce) or not isinstance(state, SDFGState) or node.wcr is None:
            continue
        (edge,) = state.in_edges(node)
        narrow = state.sdfg.arrays[edge.data.data].dtype in _NARROW
        if narrow and detect_reduction_type(node.wcr) == dtypes.ReductionType.Sum:
            kind = state.sdfg.arrays[edge.data.data].dtype.to_string()
            where = str(source(state, node) or node)
            _refuse(where, f"DaCe adds {kind} up in that type, where NumPy takes 64 bits", name)
