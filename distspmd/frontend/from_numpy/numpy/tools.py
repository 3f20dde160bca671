"""Functions of ``functools``, ``operator``, ``copy`` and others on values of a program."""

from __future__ import annotations

import ast
import builtins
import collections
import copy
import functools
import math
import operator
from collections import deque
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import apply, cast
from distspmd.frontend.from_numpy.arrays.failures import one_number
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.expressions import part_of
from distspmd.frontend.from_numpy.reader.objects import get_parts, is_own, kept, of_named_tuple
from distspmd.runtime.calls.form import rebuilt

_NONE = object()
_KNOWN = (bool, int, float, complex, np.generic, str, type(None))
"""What has the same value whenever a program that is being read gets it."""


@function(of_named_tuple)
def _of_named_tuple(run: Context, owner: Any, method: str, named: Any) -> Any:
    return of_named_tuple(owner, method, {k: run.settled_parts(v) for k, v in named.items()})


@function(get_parts)
def _get_parts(run: Context, getter: object, value: object) -> Any:
    names = getter.__reduce__()[1]
    if isinstance(getter, operator.itemgetter):
        found = [part_of(run, value, name) for name in names]
    else:
        found = [functools.reduce(run.attribute, name.split("."), value) for name in names]
    return found[0] if len(found) == 1 else tuple(found)


@function(kept)
def _kept(run: Context, called: Any, arguments: Any, keywords: Any) -> Any:
    key = (called, *arguments, *sorted(keywords.items()))
    if not all(isinstance(v, _KNOWN) for v in (*arguments, *keywords.values())):
        return run.call(called, arguments, keywords)
    key = (*key, *map(type, (*arguments, *keywords.values())))
    if key not in run.known_calls:
        written = len(run.tracer.program.block.statements)
        found = run.call(called, arguments, keywords)
        if not isinstance(found, _KNOWN) or len(run.tracer.program.block.statements) > written:
            return found
        run.known_calls[key] = found
    return run.known_calls[key]


@function(collections.namedtuple)
def _namedtuple(run: Context, name: str, fields: Any, **options: Any) -> Any:
    return collections.namedtuple(name, fields, **{"module": "__program__", **options})


@function(builtins.super)
def _super(run: Context, *given: object) -> Any:
    frame = run.tracer.frames[-1]
    if not given and "__class__" not in frame.variables:
        run.tracer.refuse("super() outside of a method")
    kind, receiver = given or (frame.variables["__class__"], frame.receiver)
    return super(kind, receiver)


def _binary(op: ast.operator) -> Any:
    return lambda run, one, other: run.binary(op, one, other)


for _function, _op in {
    operator.add: ast.Add(),
    operator.sub: ast.Sub(),
    operator.mul: ast.Mult(),
    operator.truediv: ast.Div(),
    operator.floordiv: ast.FloorDiv(),
    operator.mod: ast.Mod(),
    operator.pow: ast.Pow(),
    operator.matmul: ast.MatMult(),
    operator.and_: ast.BitAnd(),
    operator.or_: ast.BitOr(),
    operator.xor: ast.BitXor(),
}.items():
    function(_function)(_binary(_op))


@function(copy.copy)
def _copy(run: Context, value: object) -> Any:
    if isinstance(value, RunList):
        return lists.copied(run, value)
    if isinstance(value, Tensor | np.ndarray):
        return run.call(np.copy, [value], {}) if value.ndim else value
    if is_own(value):
        run.tracer.refuse(f"copy.copy of an object of {type(value).__name__}; make a new one")
    return copy.copy(value)


@function(copy.deepcopy)
def _deepcopy(run: Context, value: object) -> Any:
    """A copy, with one copy of each array and list that lists, tuples and dictionaries hold."""
    return _copied(run, value, {})


def _copied(run: Context, value: object, made: dict[int, Any]) -> Any:
    found: Any
    if id(value) in made:
        return made[id(value)]
    if isinstance(value, dict):
        found = made[id(value)] = copy.copy(value)
        found.update({key: _copied(run, each, made) for key, each in value.items()})
    elif isinstance(value, list | deque):
        found = made[id(value)] = copy.copy(value)
        found.clear()
        found.extend(_copied(run, each, made) for each in value)
    elif isinstance(value, tuple):
        found = rebuilt(value, [_copied(run, each, made) for each in value])
    else:
        found = _copy(run, value)
    made[id(value)] = found
    return found


def _of_number(name: str) -> Any:
    def call(run: Context, x: object) -> Any:
        if isinstance(x, sympy.Basic):
            x = run.tracer.tensor(x)
        if not isinstance(x, Tensor):
            return getattr(math, name)(x)
        own, given = np.dtype(np.float64), one_number(run.tracer, x)
        return Tensor((), own, lambda _: apply(name, cast(given.element(()), own)), float)

    return call


for _name in ("erf", "erfc", "gamma", "lgamma"):
    function(getattr(math, _name))(_of_number(_name))
