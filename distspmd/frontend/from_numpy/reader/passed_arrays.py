"""Arguments that are expressions, where a function may change them or give them another name.

An argument is read like a part of the expressions that it stands in, so that it needs no memory.
Where the function assigns parts of it, binds another variable to it, or passes it on to a function
that might, all these names stand for one array, which has to be there.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

import numpy as np

from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import readable
from distspmd.frontend.from_numpy.reader.frames import Frame
from distspmd.frontend.from_numpy.reader.sharing import stored_image


def store_shared(run: Context, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> None:
    """Store the arguments of a function that it may change or give another name."""
    tracer = run.tracer
    if tracer.map.straight is not None or tracer.map.parallel:
        return
    own = node.args
    names = [each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)]
    for several in filter(None, (own.vararg, own.kwarg)):
        frame.variables[several.arg] = run.settled_parts(frame.variables.get(several.arg))
    computed = {
        name: value
        for name in names
        if isinstance(value := frame.variables.get(name), Tensor)
        and not isinstance(value, View)
        and value.ndim
    }
    if not computed:
        return
    shared = frame.changed_in_place | set(_shared(node.body, computed.keys()))
    for name, value in computed.items():
        if name in (shared if value.mask is None else frame.changed_in_place):
            frame.variables[name] = stored_image(tracer, value, readable(name))


_MEASURES = {"shape", "size", "ndim", "dtype", "nbytes", "itemsize"}
_COMPUTING = {
    *("sum", "prod", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all", "copy"),
    *("cumsum", "cumprod", "astype", "round", "clip", "conj", "tolist", "item", "dot", "argsort"),
}
"""Attributes and methods of arrays that give no view of them."""

_Parts = ast.AST | list[ast.stmt]


def _shared(part: _Parts, names: Collection[str], *, is_operand: bool = False) -> Iterator[str]:
    """Names of variables that stand where more may become of them than to be computed with.

    Args:
        part: of a program.
        names: that are looked for, of variables.
        is_operand: whether what the part gives is computed with, or thrown away.
    """
    if isinstance(part, list):
        for each in part:
            yield from _shared(each, names)
        return
    if isinstance(part, ast.Name):
        if part.id in names and not is_operand:
            yield part.id
        return
    for field, value in ast.iter_fields(part):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _shared(each, names, is_operand=_computes(part, field, is_operand))


def _computes(part: ast.AST, field: str, is_operand: bool) -> bool:
    """Whether a part of a program computes with what one of its fields gives."""
    if isinstance(part, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Return | ast.Assert | ast.If):
        return True
    if isinstance(part, ast.While):
        return field == "test"
    if isinstance(part, ast.AugAssign):
        return field == "value"
    if isinstance(part, ast.Subscript):
        return is_operand or field == "slice"
    if isinstance(part, ast.Attribute):
        return is_operand or part.attr in _MEASURES | _COMPUTING
    if isinstance(part, ast.keyword):
        return is_operand and part.arg != "out"
    if isinstance(part, ast.Call):
        return _is_known(part.func) and (is_operand or _is_new(part.func))
    return isinstance(part, ast.BoolOp | ast.IfExp) and is_operand


def _is_known(function: ast.expr) -> bool:
    """Whether a function is one of NumPy or Python, by its name, or a method of something."""
    if isinstance(function, ast.Attribute):
        return hasattr(np, function.attr) or function.attr in _COMPUTING
    return isinstance(function, ast.Name) and hasattr(builtins, function.id)


def _is_new(function: ast.expr) -> bool:
    """Whether what a known function gives is no view of its arguments."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    found = getattr(np, name, None) or getattr(builtins, name, None)
    return isinstance(found, np.ufunc) or name in _COMPUTING | {"len", "abs", "float", "int"}
