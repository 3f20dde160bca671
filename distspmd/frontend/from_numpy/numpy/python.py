"""Python's own functions on values of a program."""

from __future__ import annotations

import ast
import builtins
import collections
import itertools
import math
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import apply_ufunc, combine, converted
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays
from distspmd.frontend.from_numpy.arrays.failures import checked_result, checked_whole, one_number
from distspmd.frontend.from_numpy.arrays.run_types import is_of_types, without_mixture
from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader import texts
from distspmd.frontend.from_numpy.reader.frames import Closure
from distspmd.frontend.from_numpy.reader.generators import Generator
from distspmd.frontend.from_numpy.reader.objects import class_of, is_own, required, special
from distspmd.frontend.from_numpy.reader.operators import tested
from distspmd.frontend.from_numpy.reader.ranges import Places, SymbolicRange, Zipped, static_values
from distspmd.frontend.from_numpy.reader.texts import Text
from distspmd.frontend.tensor_ir.whole_numbers import add, subtract


@function(builtins.range)
def _range(run: Context, *ends: object) -> Any:
    tracer = run.tracer
    values = [tracer.as_whole(e, "an end of a range") for e in ends]
    first, end, step = 0, values[0], 1
    if len(values) > 1:
        first, end = values[:2]
    if len(values) > 2:
        step = values[2]
    if all(isinstance(v, int) for v in (first, end, step)):
        return range(first, end, step)
    return SymbolicRange(first, end, step)


@function(builtins.len)
def _len(run: Context, value: Any) -> Any:
    if isinstance(value, Tensor):
        if value.mask is not None:
            return run.call(int, [run.call(np.sum, [value.mask], {})], {})
        if value.ndim == 0:
            run.tracer.fail(TypeError("len() of unsized object"))
        return value.shape[0]
    if isinstance(value, SymbolicRange):
        return value.length
    if is_own(value) and not isinstance(value, tuple | list | dict):
        return _length_of_object(run, value)
    if isinstance(value, RunList):
        return lists.length_of(run, value)
    if isinstance(value, Text):
        return texts.of_each(value, len)
    try:
        return len(value)
    except TypeError as problem:
        run.tracer.fail(problem)


def _length_of_object(run: Context, value: object) -> Any:
    found = required(run, "len", len, value)
    if isinstance(found, int) and found < 0:
        run.tracer.fail(ValueError("__len__() should return >= 0"))
    return found


@function(itertools.product)
def _product(run: Context, *values: object, repeat: int = 1) -> Any:
    return Places(values * repeat)


@function(np.ndindex)
def _ndindex(run: Context, *shape: object) -> Any:
    extents = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    return Places(tuple(_range(run, n) for n in extents))


@function(np.ndenumerate)
def _ndenumerate(run: Context, arr: object) -> Any:
    if isinstance(arr, Tensor):
        arr = run.tracer.stored(arr)
    elif not isinstance(arr, np.ndarray):
        arr = np.asarray(arr)
    return Places(_ndindex(run, *arr.shape).axes, arr)


@function(np.nditer)
def _nditer(run: Context, op: object, flags: Any = (), op_flags: object = (), **named: Any) -> Any:
    if named or not {*flags} <= {"multi_index", "c_index", "zerosize_ok", "refs_ok"}:
        told_flags = [*flags, *named]
        run.tracer.refuse(f"np.nditer with {told_flags}; write loops over np.ndindex(a.shape)")
    if isinstance(op, tuple | list):
        every = run.call(np.broadcast_arrays, list(op), {})
        return Zipped(tuple(run.call(np.ravel, [each], {}) for each in every))
    whole = run.tracer.stored(run.tracer.tensor(as_arrays(run.tracer, op)))
    return run.call(iteration.ElementsInTurn, [whole], {})


@function(builtins.reversed)
def _reversed(run: Context, values: object) -> Any:
    if isinstance(values, SymbolicRange):
        last = add(values.first, (values.length - 1) * values.step)
        return SymbolicRange(last, subtract(values.first, values.step), -values.step)
    if isinstance(values, range):
        return values[::-1]
    if isinstance(values, RunList):
        return lists.read(run, values, slice(None, None, -1))
    if isinstance(values, Text):
        texts.not_known()
    if isinstance(values, Tensor):
        return indexing.read(run.tracer, values, slice(None, None, -1))
    return list(static_values(run, values))[::-1]


def as_list(run: Context, values: object) -> Any:
    """A list of as many values as the run decides; None for others."""
    if isinstance(values, RunList):
        return lists.copied(run, values)
    if isinstance(values, Text):
        texts.not_known()
    values = as_arrays(run.tracer, values)
    if (
        isinstance(values, Tensor)
        and values.ndim
        and run.tracer.is_decided_by_data(values.shape[0])
    ):
        return lists.of_array(run, list, values)
    return None


@function(builtins.list)
def _list(run: Context, values: object = ()) -> Any:
    made = as_list(run, values)
    if made is not None:
        return made
    return list(static_values(run, values))


@function(builtins.tuple)
def _tuple(run: Context, values: object = ()) -> Any:
    return tuple(static_values(run, values))


@function(builtins.set)
def _set(run: Context, values: object = ()) -> Any:
    if as_list(run, values) is not None:
        for_python(run, "set")
    found = list(static_values(run, values))
    if any(isinstance(v, Tensor | sympy.Basic) for v in found):
        for_python(run, "set")
    return set(found)


@function(collections.deque)
def _deque(run: Context, values: object = (), maxlen: Any = None) -> Any:
    if as_list(run, values) is not None:
        for_python(run, "deque")
    return collections.deque(static_values(run, values), maxlen)


@function(builtins.abs)
def _abs(run: Context, value: Any) -> Any:
    if is_own(value):
        return required(run, "abs", abs, value)
    if isinstance(value, Tensor | np.ndarray):
        return combine(run.tracer, np.absolute, [value])
    return sympy.Max(value, -value) if isinstance(value, sympy.Basic) else abs(value)


@function(builtins.divmod)
def _divmod(run: Context, a: object, b: object) -> Any:
    import ast

    return run.binary(ast.FloorDiv(), a, b), run.binary(ast.Mod(), a, b)


@function(builtins.sum)
def _sum(run: Context, values: object, start: object = 0) -> Any:
    import ast

    if isinstance(values, RunList):
        found = lists.total(run, values)
        return run.binary(ast.Add(), found, start) if start != 0 else found
    if isinstance(values, Tensor) and values.ndim == 1:
        return (
            run.binary(ast.Add(), run.call(np.sum, [values], {}), start)
            if start != 0
            else (run.call(np.sum, [values], {}))
        )
    found = start
    for value in static_values(run, values):
        found = run.binary(ast.Add(), found, value)
    return found


@function(builtins.any)
def _any(run: Context, values: object) -> Any:
    if isinstance(values, Generator) and values.is_function:
        return run.run_function(iteration.any_of, {"values": values})
    if isinstance(values, RunList):
        values = lists.as_array(run, values)
    if isinstance(values, Tensor):
        return _bool(run, run.call(np.any, [values], {}))
    found: Any = False
    for value in static_values(run, values):
        known = run.truth(value)
        if known:
            return True
        if known is None:
            found = value if found is False else combine(run.tracer, np.logical_or, [found, value])
    return _bool(run, found)


@function(builtins.all)
def _all(run: Context, values: object) -> Any:
    if isinstance(values, Generator) and values.is_function:
        return run.run_function(iteration.all_of, {"values": values})
    if isinstance(values, RunList):
        values = lists.as_array(run, values)
    if isinstance(values, Tensor):
        return _bool(run, run.call(np.all, [values], {}))
    found: Any = True
    for value in static_values(run, values):
        known = run.truth(value)
        if known is False:
            return False
        if known is None:
            found = value if found is True else combine(run.tracer, np.logical_and, [found, value])
    return _bool(run, found)


@function(builtins.isinstance)
def _isinstance(run: Context, value: Any, kinds: Any) -> Any:
    if isinstance(value, Tensor) and value.run_type is not None:
        return is_of_types(value, kinds)
    if isinstance(value, Tensor):
        return issubclass(value.python_class, kinds)
    if isinstance(value, RunList):
        return isinstance(value.kind(), kinds)
    if isinstance(value, sympy.Basic):
        return isinstance(0, kinds)
    return isinstance(value, kinds)


@function(builtins.int)
def _int(run: Context, value: Any = 0, *rest: Any) -> Any:
    if is_own(value):
        value = special(run, value, "int")
    if isinstance(value, sympy.Basic):
        return value
    if isinstance(value, Tensor):
        one = one_number(run.tracer, value)
        found = converted(run.tracer, checked_whole(run, one), np.int64)
        return Tensor((), found.dtype, lambda _: found.element(()), int)
    if isinstance(value, Text):
        texts.not_known()
    return int(value, *rest)


@function(builtins.float)
def _float(run: Context, value: Any = 0.0) -> Any:
    if is_own(value):
        value = special(run, value, "float")
    if isinstance(value, Tensor | sympy.Basic):
        given = one_number(run.tracer, run.tracer.tensor(without_mixture(value)))
        found = converted(run.tracer, given, np.float64)
        return Tensor((), found.dtype, lambda _: found.element(()), float)
    return float(value)


@function(builtins.complex)
def _complex(run: Context, real: Any = 0.0, imaginary: Any = 0.0) -> Any:
    if any(isinstance(v, Tensor | sympy.Basic) for v in (real, imaginary)):
        one = combine(run.tracer, np.multiply, [imaginary, 1j])
        both = one_number(run.tracer, combine(run.tracer, np.add, [real, one]))
        found = converted(run.tracer, both, np.complex128)
        return Tensor((), found.dtype, lambda _: found.element(()), complex)
    return complex(real, imaginary)


@function(builtins.bool)
def _bool(run: Context, value: object = False) -> Any:
    value = tested(run, value)
    known = run.truth(value)
    if known is not None:
        return known
    found = converted(run.tracer, run.tracer.tensor(value), bool)
    return Tensor((), found.dtype, lambda _: found.element((0,) * found.ndim), bool)


@function(builtins.round)
def _round(run: Context, value: Any, digits: Any = None) -> Any:
    if isinstance(value, Tensor):
        found = run.call(np.round, [value, digits or 0], {})
        if digits is None:
            return run.call(int, [found], {})
        return Tensor((), found.dtype, found.element, value.weak)
    return value if isinstance(value, sympy.Basic) else round(value, digits)


@function(builtins.type)
def _type(run: Context, value: object) -> Any:
    if isinstance(value, Tensor) and value.run_type is not None:
        run.tracer.refuse("type(...) of a number of which the run decides the type; isinstance")
    if isinstance(value, Tensor):
        return value.python_class
    if isinstance(value, RunList):
        return value.kind
    if is_own(value):
        return class_of(value)
    return int if isinstance(value, sympy.Basic) else type(value)


@function(builtins.hasattr)
def _hasattr(run: Context, value: object, name: str) -> bool:
    if is_own(value) and not hasattr(class_of(value), "__getattr__"):
        return name in vars(value) or hasattr(class_of(value), name)
    if isinstance(value, Tensor):
        return hasattr(value.python_class, name)
    return hasattr(value, name)


@function(builtins.callable)
def _callable(run: Context, value: object) -> bool:
    return isinstance(value, Closure) or callable(value)


FLOAT64 = np.dtype(np.float64)


def _as_ufunc(name: str, ufunc: np.ufunc) -> Any:
    def call(run: Context, *operands: object) -> Any:
        if not any(isinstance(o, Tensor | sympy.Basic) for o in operands):
            try:
                return getattr(math, name)(*operands)
            except (TypeError, ValueError, OverflowError) as problem:
                run.tracer.refuse(f"math.{name}: {type(problem).__name__}: {problem}")
        if name == "log" and len(operands) == 2:
            return run.binary(ast.Div(), *(call(run, o) for o in operands))
        tensors = [one_number(run.tracer, run.tracer.tensor(without_mixture(o))) for o in operands]
        if len(tensors) != ufunc.nin or any(t.dtype.kind == "c" for t in tensors):
            run.tracer.refuse(f"math.{name} takes {ufunc.nin} real numbers")
        found = apply_ufunc(run.tracer, ufunc, [converted(run.tracer, t, float) for t in tensors])
        result = Tensor((), FLOAT64, lambda _: found.element(()), float)
        return checked_result(run, name, tensors, result)

    return call


_MATH: dict[str, np.ufunc] = {
    **{n: getattr(np, n) for n in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "log")},
    **{n: getattr(np, n) for n in ("log2", "log10", "log1p", "expm1", "sqrt", "hypot", "fabs")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "pow": np.power,
    "fmod": np.fmod,
    "radians": np.radians,
    "degrees": np.degrees,
    "copysign": np.copysign,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "exp2": np.exp2,
}
for _name, _ufunc in _MATH.items():
    if hasattr(math, _name):
        function(getattr(math, _name))(_as_ufunc(_name, _ufunc))


def _to_int(ufunc: np.ufunc) -> Any:
    def call(run: Context, value: object) -> Any:
        if isinstance(value, sympy.Basic):
            return value
        if not isinstance(value, Tensor):
            return getattr(math, ufunc.__name__)(value)
        return run.call(int, [combine(run.tracer, ufunc, [value])], {})

    return call


for _ufunc in (np.floor, np.ceil, np.trunc):
    function(getattr(math, _ufunc.__name__))(_to_int(_ufunc))


def _test(ufunc: np.ufunc) -> Any:
    def call(run: Context, value: object) -> Any:
        if not isinstance(value, Tensor | sympy.Basic):
            return getattr(math, ufunc.__name__)(value)
        return combine(run.tracer, ufunc, [value])

    return call


for _ufunc in (np.isnan, np.isinf, np.isfinite):
    function(getattr(math, _ufunc.__name__))(_test(_ufunc))
