"""What of a function is array work, as far as its text and what is known of variables tell."""

from __future__ import annotations

import ast
import math
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.host import names
from distspmd.frontend.from_numpy.reader.sources import globals_of, read_source
from distspmd.plans.machine import Machine

_OBJECTS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.SetComp, ast.DictComp)
_MAKERS = {
    *("dict", "set", "list", "open", "deque", "defaultdict", "Counter", "OrderedDict", "iter"),
    *("bytearray", "StringIO", "str", "format", "reversed", "zip", "enumerate", "sorted"),
}
_OF_SIZES = {"shape", "ndim", "size", "dtype", "nbytes", "itemsize"}
_OF_NUMBERS = {
    *("len", "int", "float", "bool", "complex", "range", "isinstance", "print", "str", "abs"),
    *("enumerate", "zip", "min", "max"),
}
_CREATES = {
    *("arange", "empty", "eye", "full", "fromfunction", "identity", "linspace", "meshgrid", "ones"),
    *("zeros", "indices", "tri", "logspace", "geomspace"),
}
_REDUCES = {
    *("sum", "min", "max", "mean", "any", "all", "argmax", "argmin", "dot", "norm", "item", "prod"),
    *("len", "int", "float", "bool", "vdot", "std", "var", "median", "ptp", "count_nonzero"),
}
_OF_NUMPY = ("numpy", "math", "cmath", "scipy")
MESSAGES = 100
"""So many messages may take the time of the array work of a region, at most."""


@dataclass
class Kinds:
    """What is known of the variables of a function.

    Attributes:
        shapes: of those that are arrays.
        objects: names of those that are objects of Python.
        others: names of those that are numbers, functions and the like.
    """

    shapes: dict[str, tuple[object, ...]] = field(default_factory=dict)
    objects: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)

    def shape(self, name: str) -> tuple[object, ...]:
        """Extents of an array; of everything else none."""
        return self.shapes.get(name, ())

    @property
    def ndims(self) -> dict[str, int]:
        """Dimensions of those that are arrays; 0 where that is not known."""
        return {n: 0 if shape == ("",) else len(shape) for n, shape in self.shapes.items()}

    def infer(self, statements: Sequence[ast.AST], outside: Outside) -> None:
        """Find variables that statements bind to what is computed of whole arrays."""
        assigned = [p for p in names.within(statements) if isinstance(p, ast.Assign)]
        for part in names.within(statements):
            if isinstance(part, ast.For) and isinstance(part.target, ast.Name):
                rows = self.shapes.get(getattr(part.iter, "id", ""), ())[1:]
                self.shapes |= {part.target.id: rows} if rows else {}
        before = -1
        while before != (before := len(self.shapes)):
            for each in assigned:
                (target, *_) = each.targets
                if not isinstance(target, ast.Name) or _reduces(each.value):
                    continue
                is_known = target.id in self.shapes or target.id in self.objects
                if not is_known and array_work(each.value, self, outside):
                    self.shapes[target.id] = ("",)

    def is_object(self, name: str, statements: Sequence[ast.AST]) -> bool:
        """Whether a variable is an object of Python, as it is known, or as statements bind it."""
        if name in self.objects:
            return True
        if name in self.shapes or name in self.others:
            return False
        bound = [
            part.value
            for part in names.within(statements)
            if isinstance(part, ast.Assign | ast.AnnAssign)
            and part.value is not None
            and name in names.bound_in(part.targets if isinstance(part, ast.Assign) else [part])
            and not isinstance(part.value, ast.Tuple)
        ]
        opened = [
            item
            for part in names.within(statements)
            if isinstance(part, ast.With)
            for item in part.items
            if item.optional_vars is not None and name in names.bound_in([item.optional_vars])
        ]
        return bool(opened) or any(map(_makes_object, bound))


def _makes_object(value: ast.expr) -> bool:
    called = value.func if isinstance(value, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    is_text = isinstance(value, ast.JoinedStr) or (
        isinstance(value, ast.Constant) and isinstance(value.value, str | bytes)
    )
    return isinstance(value, _OBJECTS) or is_text or name in _MAKERS


class Outside(frozenset[str]):
    """What a function sees from outside: names whose functions change no argument, NumPy's for one.

    Attributes:
        functions: the user's functions.
    """

    functions: Mapping[str, Any] = {}

    @classmethod
    def of(cls, known: Mapping[str, Any]) -> Outside:
        """What is known by names."""
        pure = {n for n, v in known.items() if isinstance(v, np.ufunc) or _is_of_numpy(v)}
        found = cls(pure)
        found.functions = {n: v for n, v in known.items() if isinstance(v, types.FunctionType)}
        return found


def _is_of_numpy(value: object) -> bool:
    name = getattr(value, "__name__", "").split(".")[0]
    return isinstance(value, types.ModuleType) and name in _OF_NUMPY


def array_work(node: ast.AST, kinds: Kinds, outside: Outside) -> bool:
    """Whether a part of a function computes with whole arrays, or calls what may."""
    if isinstance(node, names.SCOPES):
        return False
    if isinstance(node, ast.Subscript):
        return _is_whole_part(node, kinds, outside)
    if isinstance(node, ast.Attribute) and node.attr in _OF_SIZES:
        return False
    if isinstance(node, ast.Call):
        return _calls_work(node, kinds, outside)
    children = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.For) and isinstance(node.iter, ast.Name):
        children.remove(node.iter)
    is_read = _is_array(node, kinds) and isinstance(getattr(node, "ctx", None), ast.Load)
    return is_read or any(array_work(part, kinds, outside) for part in children)


def is_parallel(node: ast.AST) -> bool:
    """Whether a loop is a parallel map: ``for i in distspmd.map[0:n]``."""
    over = node.iter if isinstance(node, ast.For) else None
    if isinstance(over, ast.BinOp):
        over = over.left  # with a schedule of DaCe behind it
    base = over.value if isinstance(over, ast.Subscript) else None
    return "map" in (getattr(base, "attr", ""), getattr(base, "id", ""))


def _is_whole_part(node: ast.Subscript, kinds: Kinds, outside: Outside) -> bool:
    """Whether a part of an array is one with elements of its own."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if any(array_work(part, kinds, outside) for part in parts):
        return True
    if not isinstance(node.value, ast.Name):
        return array_work(node.value, kinds, outside)
    shape = kinds.shape(node.value.id)
    is_whole = any(isinstance(p, ast.Slice) for p in parts)
    return bool(shape) and (is_whole or len(parts) < len(shape))


def _calls_work(node: ast.Call, kinds: Kinds, outside: Outside) -> bool:
    """Whether a call takes or makes arrays, and of the user's functions works with them."""
    called = node.func
    given = [*node.args, *(k.value for k in node.keywords)]
    arrays = [part for part in given if _is_array(part, kinds)]
    if any(array_work(part, kinds, outside) for part in given if part not in arrays):
        return True
    if isinstance(called, ast.Attribute):
        makes = called.attr in _CREATES and names.root(called) in outside
        return bool(arrays) or makes or array_work(called.value, kinds, outside)
    name = getattr(called, "id", "")
    if name in _OF_NUMBERS or not arrays:
        return not isinstance(called, ast.Name) and array_work(called, kinds, outside)
    return name not in outside.functions or _function_works(node, kinds, outside)


_asked: list[Any] = []
"""Functions that are being looked at."""


def _function_works(node: ast.Call, kinds: Kinds, outside: Outside) -> bool:
    assert isinstance(node.func, ast.Name)
    function = outside.functions[node.func.id]
    try:
        body, _, _ = read_source(function)
    except (OSError, TypeError):
        return True
    if function in _asked or not isinstance(body, ast.FunctionDef) or node.keywords:
        return function not in _asked
    parameters = [a.arg for a in (*body.args.posonlyargs, *body.args.args)]
    own = Kinds(
        {
            name: kinds.shape(part.id)
            for name, part in zip(parameters, node.args, strict=False)
            if isinstance(part, ast.Name) and kinds.shape(part.id)
        }
    )
    seen = Outside.of(globals_of(function))
    own.infer(body.body, seen)
    _asked.append(function)
    try:
        return any(array_work(each, own, seen) for each in body.body)
    finally:
        _asked.pop()


def _reduces(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _REDUCES


def _is_array(node: ast.AST, kinds: Kinds) -> bool:
    return isinstance(node, ast.Name) and bool(kinds.shape(node.id))


def array_operations(statements: Sequence[ast.stmt], kinds: Kinds, outside: Outside) -> float:
    """How many elements statements compute in ways that ranks could share, at least."""
    return sum(_operations(each, kinds, outside) for each in statements)


def _operations(node: ast.AST, kinds: Kinds, outside: Outside) -> float:
    if isinstance(node, ast.For):
        inside = sum(_operations(each, kinds, outside) for each in node.body)
        return _iterations(node, kinds) * max(inside, _is_map(node))
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare) or _is_call_of(node, outside):
        every = [n for n in ast.walk(node) if _is_array(n, kinds) and not _is_element(node, n)]
        sizes = [_size(kinds.shape(n.id)) for n in every if isinstance(n, ast.Name)]
        return max(sizes, default=0.0)
    return sum(_operations(each, kinds, outside) for each in ast.iter_child_nodes(node))


def _is_call_of(node: ast.AST, outside: Outside) -> bool:
    return isinstance(node, ast.Call) and names.root(node.func) in outside


def _is_element(node: ast.AST, name: ast.AST) -> bool:
    """Whether a name is only read by an index, or for its extents."""
    return any(
        (isinstance(p, ast.Subscript) and p.value is name and not isinstance(p.slice, ast.Slice))
        or (isinstance(p, ast.Attribute) and p.value is name and p.attr in _OF_SIZES)
        or (isinstance(p, ast.Call) and name in p.args and getattr(p.func, "id", "") == "len")
        for p in ast.walk(node)
    )


def _size(shape: Sequence[object]) -> float:
    return math.prod(n for n in shape if isinstance(n, int))


def _iterations(node: ast.For, kinds: Kinds) -> float:
    """Of a loop; 1 where that is not known."""
    over = node.iter
    if isinstance(over, ast.Name):
        shape = kinds.shape(over.id)
        return float(shape[0]) if shape and isinstance(shape[0], int) else 1.0
    if isinstance(over, ast.Call) and getattr(over.func, "id", "") == "range" and over.args:
        end = over.args[min(1, len(over.args) - 1)]
        if isinstance(end, ast.Constant) and isinstance(end.value, int):
            return float(end.value)
        arrays = [n for n in ast.walk(end) if _is_array(n, kinds) and isinstance(n, ast.Name)]
        is_extent = any(_is_element(end, n) for n in arrays) and not any(
            isinstance(p, ast.Subscript) and p.value in arrays for p in ast.walk(end)
        )
        if is_extent and isinstance(arrays[0], ast.Name):
            shape = kinds.shape(arrays[0].id)
            return float(shape[0]) if isinstance(shape[0], int) else 1.0
    return 1.0


def _is_map(node: ast.For) -> bool:
    """Whether a statement of a loop computes an element in each iteration, of no other variable."""
    index, bound = names.bound_in([node.target]), names.bound_in(node.body)
    return any(
        isinstance(each, ast.Assign | ast.AugAssign)
        and _is_element_of(each, index)
        and not names.loads(each.value) & (bound - index)
        for each in node.body
    )


def _is_element_of(node: ast.Assign | ast.AugAssign, index: set[str]) -> bool:
    """Whether a statement writes an element at the index of a loop, by operators alone."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    at = names.loads(target.slice) if isinstance(target, ast.Subscript) else set()
    parts = (ast.BinOp, ast.UnaryOp, ast.Name, ast.Constant, ast.Subscript)
    plain = (*parts, ast.operator, ast.unaryop, ast.expr_context)
    is_plain = all(isinstance(part, plain) for part in ast.walk(node.value))
    return bool(at) and at <= index and is_plain


def is_too_much(operations: float) -> bool:
    """Whether array work is more than what a region may have."""
    machine = Machine()
    return operations * machine.operation > MESSAGES * machine.alpha
