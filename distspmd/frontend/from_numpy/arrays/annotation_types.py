"""What annotations say of arguments: types of DaCe and NumPy, and those of jaxtyping, also as text.

``Float64[np.ndarray, "N M"]`` and ``float64[N, M]`` are arrays with sizes by name. As text they
need no import: a name that is not known there is a size. A type such as ``Float``, which stands
for several, and dimensions whose number is open say nothing; an example does.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Sequence
from typing import Any

import dace
import numpy as np
import sympy
from dace import data, dtypes, symbolic


def described(annotation: object) -> data.Data | None:
    """The description of an argument; None where the annotation does not give one."""
    if isinstance(annotation, data.Data):
        return annotation
    if isinstance(annotation, dtypes.typeclass) and annotation.type not in (None,):
        if annotation in (dtypes.pyobject(),):
            return None
        return data.Scalar(annotation)
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return data.Scalar(dtypes.dtype_to_typeclass(annotation))
    dimensions, names = getattr(annotation, "dim_str", None), getattr(annotation, "dtypes", None)
    if isinstance(dimensions, str) and isinstance(names, Sequence) and len(names) == 1:
        return _array(str(names[0]), dimensions.split())  # of jaxtyping
    return None


def described_by_text(text: str) -> data.Data | None:
    """The description of an argument by text, in which names that are not known are sizes.

    Args:
        text: as ``float64[N, M]``, ``dace.float64[N + 1]``, or ``Float64[Array, "N M"]``.
    """
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name | ast.Attribute):
        return None
    kind = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    last = parts[-1] if parts else None
    if isinstance(last, ast.Constant) and isinstance(last.value, str):
        return _array(kind.lower(), last.value.split()) if len(parts) == 2 else None
    return _array(kind, [ast.unparse(part) for part in parts])


def _array(kind: str, dimensions: Sequence[str]) -> data.Data | None:
    """An array of a type and dimensions by name; None where they do not say what it is."""
    if kind not in _TYPES:
        return None
    shape = []
    for text in dimensions:
        extent = None if text[:1] in "#_" else _extent(text.rpartition("=")[2])
        if extent is None:
            return None
        shape.append(extent)
    found = _TYPES[kind]
    return found[tuple(shape)] if shape else data.Scalar(found)


_TYPES: dict[str, Any] = {
    np.dtype(letter).name: dtypes.dtype_to_typeclass(np.dtype(letter).type)
    for letter in "?bhilBHILfdFD"
}


def _extent(text: str) -> Any:
    """A number of elements, of numbers and names of sizes; None for other texts."""
    with contextlib.suppress(Exception):
        names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
        found = eval(text, {}, {name: dace.symbol(name) for name in names})
        if isinstance(found, int | sympy.Expr) and not isinstance(found, bool):
            return symbolic.pystr_to_symbolic(found)
    return None
