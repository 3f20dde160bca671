"""Functions of NumPy that are written out in functions of NumPy: they are read as a program's own.

Messages and spaces name the line of the program that calls one.
"""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import rarer_forms
from distspmd.frontend.from_numpy.library.broadcasting import Broadcast
from distspmd.frontend.from_numpy.numpy.registry import function, named
from distspmd.frontend.from_numpy.reader import objects
from distspmd.frontend.from_numpy.reader.frames import Frame


def written_out(*objects: object, method: str | None = None) -> Callable[[Any], Any]:
    """Let a function of Python say what functions of NumPy, or a method of arrays, compute."""

    def add(python: Callable[..., Any]) -> Callable[..., Any]:
        function(*objects, method=method)(_handler(python, objects))
        return python

    return add


def written_out_in(*modules: str) -> Callable[[Any], Any]:
    """Let a function of Python say what the functions of its name in some packages compute."""

    def add(python: Callable[..., Any]) -> Callable[..., Any]:
        for module in modules:
            named(module, python.__name__.lstrip("_"))(_handler(python, ()))
        return python

    return add


def read_in_place(module: str, *functions: Callable[..., Any]) -> None:
    """Let functions of our library stand for those of their names in a package."""
    for each in functions:
        named(module, each.__name__)(_reader(each))


def _reader(python: Callable[..., Any]) -> Callable[..., Any]:
    return lambda run, *given, **named: run.call(python, list(given), named)


def _handler(python: Callable[..., Any], objects: Sequence[Any]) -> Callable[..., Any]:
    """Reads a function of Python in the place of a call."""
    signature = inspect.signature(python)
    source = inspect.getsource(python)

    def handler(run: Context, *given: object, **named: object) -> Any:
        if objects and not has_data((list(given), named)):
            with np.errstate(all="ignore"):
                return objects[0](*given, **named)
        try:
            bound = signature.bind(*given, **named)
        except TypeError as problem:
            run.tracer.refuse(f"{python.__name__.lstrip('_')}: {problem}")
        bound.apply_defaults()
        caller, place = run.tracer.frames[-1], run.tracer.node
        (node,) = (p for p in ast.parse(source).body if isinstance(p, ast.FunctionDef))
        for part in ast.walk(node):
            if hasattr(part, "lineno"):
                ast.copy_location(part, place)
        known = {**python.__globals__, **bound.arguments}
        return run.run_body(node, Frame(known, caller.file, caller.first_line, caller.source))

    return handler


# -- places ---------------------------------------------------------------------------------------


@written_out(np.unravel_index)
def _unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    extents = (shape,) if np.ndim(shape) == 0 else tuple(shape)
    if order == "F":
        extents = extents[::-1]
    found = []
    rest = indices
    for n in extents[:0:-1]:
        found.append(rest % n)
        rest = rest // n
    found.append(rest)
    return tuple(found) if order == "F" else tuple(found[::-1])


@written_out(np.ravel_multi_index)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    extents = (dims,) if np.ndim(dims) == 0 else tuple(dims)
    modes = (mode,) * len(extents) if isinstance(mode, str) else tuple(mode)
    parts = list(zip(list(multi_index), extents, modes, strict=True))
    if order == "F":
        parts = parts[::-1]
    place = 0
    for index, n, how in parts:
        if how == "wrap":
            index = index % n
        if how == "clip":
            index = np.clip(index, 0, n - 1)
        place = place * n + index
    return place


@written_out(np.diag_indices_from)
def _diag_indices_from(arr: Any) -> Any:
    places = np.arange(arr.shape[0])
    return (places,) * arr.ndim


@written_out(np.tril_indices_from)
def _tril_indices_from(arr: Any, k: int = 0) -> Any:
    return np.tril_indices(arr.shape[0], k, arr.shape[1])


@written_out(np.triu_indices_from)
def _triu_indices_from(arr: Any, k: int = 0) -> Any:
    return np.triu_indices(arr.shape[0], k, arr.shape[1])


# -- parts that are taken out or put in -----------------------------------------------------------


@written_out(np.delete)
def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    if axis is None:
        arr = np.ravel(arr)
        axis = 0
    lines = np.moveaxis(arr, axis, 0)
    n = lines.shape[0]
    if not isinstance(obj, slice) and np.ndim(obj) == 0:
        place = obj % n
        numbers = np.arange(n - 1)
        kept = lines[numbers + (numbers >= place)]
    else:
        stays = np.ones(n, dtype=bool)
        stays[obj] = False
        kept = lines[stays]
    return np.moveaxis(kept, 0, axis)


@written_out(np.resize)
def _resize(a: Any, new_shape: Any) -> Any:
    extents = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    line = np.ravel(a)
    count = 1
    for n in extents:
        count = count * n
    return line[np.arange(count) % line.size].reshape(extents)


@written_out(np.copyto)
def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    given = np.asarray(src).dtype
    if not np.can_cast(given, dst.dtype, casting):
        raise TypeError(
            f"Cannot cast array data from {given} to {dst.dtype} according to the rule {casting!r}"
        )
    if where is True:
        dst[...] = src
    else:
        dst[...] = np.where(where, src, dst)


@written_out(np.putmask)
def _putmask(a: Any, mask: Any, values: Any) -> None:
    if np.ndim(values) == 0 or np.shape(values) == np.shape(a):
        a[...] = np.where(mask, values, a)
    else:
        count = np.size(values)
        numbers = np.arange(a.size).reshape(a.shape) % count
        a[...] = np.where(mask, np.ravel(values)[numbers], a)


@written_out(np.place)
def _place(arr: Any, mask: Any, vals: Any) -> None:
    if np.ndim(vals) == 0:
        arr[...] = np.where(mask, vals, arr)
    else:
        ranks = np.cumsum(np.ravel(mask)).reshape(arr.shape) - 1
        arr[...] = np.where(mask, np.ravel(vals)[np.maximum(ranks, 0) % np.size(vals)], arr)


@written_out(np.array_equiv)
def _array_equiv(a1: Any, a2: Any) -> Any:
    one, other = np.shape(a1)[::-1], np.shape(a2)[::-1]
    for n, m in zip(one, other, strict=False):
        if n not in (m, 1) and m != 1:
            return False
    return bool(np.all(np.equal(a1, a2)))


@written_out(math.isclose)
def _is_close(a: Any, b: Any, *, rel_tol: Any = 1e-09, abs_tol: Any = 0.0) -> Any:
    gap = np.abs(np.subtract(a, b))
    most = np.maximum(rel_tol * np.maximum(np.abs(a), np.abs(b)), abs_tol)
    return bool(np.equal(a, b) | (np.isfinite(gap) & (gap <= most)))


# -- numbers --------------------------------------------------------------------------------------


@written_out(np.sinc)
def _sinc(x: Any) -> Any:
    y = np.pi * np.where(x == 0, 1.0e-20, x)
    return np.sin(y) / y


@written_out(np.iterable)
def _iterable(y: Any) -> Any:
    return np.ndim(y) > 0


@written_out(np.asarray_chkfinite)
def _asarray_chkfinite(a: Any, dtype: Any = None, order: object = None) -> Any:
    found = np.asarray(a, dtype=dtype)
    if found.dtype.kind in "fc" and not np.isfinite(found).all():
        raise ValueError("array must not contain infs or NaNs")
    return found


@written_out(np.fix)
def _fix(x: Any) -> Any:
    return np.trunc(x)


@written_out(np.isreal)
def _isreal(x: Any) -> Any:
    return np.imag(x) == 0 if np.iscomplexobj(x) else np.ones(np.shape(x), dtype=bool)


@written_out(np.iscomplex)
def _iscomplex(x: Any) -> Any:
    return np.imag(x) != 0 if np.iscomplexobj(x) else np.zeros(np.shape(x), dtype=bool)


@written_out(np.isneginf)
def _isneginf(x: Any, out: Any = None) -> Any:
    return np.logical_and(np.isinf(x), np.signbit(x), out=out)


@written_out(np.isposinf)
def _isposinf(x: Any, out: Any = None) -> Any:
    return np.logical_and(np.isinf(x), ~np.signbit(x), out=out)


@written_out(np.logspace)
def _logspace(
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: object = None,
    axis: Any = 0,
) -> Any:
    if np.ndim(start) == 0 and np.ndim(stop) == 0 and np.ndim(base) == 0:
        found = np.power(base, np.linspace(start, stop, num, endpoint=endpoint))
    else:
        found = rarer_forms.logspaced(start, stop, num, endpoint, base, axis)
    return found if dtype is None else found.astype(dtype)


@written_out(np.geomspace)
def _geomspace(start: Any, stop: Any, num: Any = 50, endpoint: bool = True) -> Any:
    inside = 10.0 ** np.linspace(np.log10(start), np.log10(stop), num, endpoint=endpoint)
    first = np.arange(num) == 0
    last = (np.arange(num) == num - 1) & endpoint & (num > 1)
    return np.where(first, start, np.where(last, stop, inside))


@written_out(np.gcd)
def _gcd(a: Any, b: Any) -> Any:
    kind = np.result_type(a, b)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    one = np.abs(np.broadcast_to(a, shape)).astype(kind)
    two = np.abs(np.broadcast_to(b, shape)).astype(kind)
    while np.any(two != 0):
        rest = np.where(two == 0, 0, one % np.maximum(two, 1))
        one = np.where(two == 0, one, two)
        two = rest
    return one


@written_out(np.lcm)
def _lcm(a: Any, b: Any) -> Any:
    common = np.gcd(a, b)
    return np.abs(a // np.maximum(common, 1) * b)


@written_out(np.unpackbits)
def _unpackbits(a: Any, axis: Any = None, count: Any = None, bitorder: str = "big") -> Any:
    if axis is None:
        a = np.ravel(a)
        axis = 0
    shifts = np.arange(8, dtype=np.uint8)
    if bitorder == "big":
        shifts = shifts[::-1]
    lines = np.moveaxis(a, axis, -1)
    bits = (lines[..., np.newaxis] >> shifts) & np.uint8(1)
    flat = bits.reshape((*lines.shape[:-1], lines.shape[-1] * 8))
    flat = np.moveaxis(flat, -1, axis)
    if count is not None and count < 0:  # so many are left out in the end
        count = flat.shape[axis] + count
    return flat if count is None else np.take(flat, np.arange(count), axis)


@written_out(np.atleast_3d)
def _atleast_3d(arr: object) -> Any:
    tensor = np.asarray(arr)
    if tensor.ndim == 0:
        return tensor.reshape(1, 1, 1)
    if tensor.ndim == 1:
        return tensor[np.newaxis, :, np.newaxis]
    return tensor[:, :, np.newaxis] if tensor.ndim == 2 else tensor


@written_out(np.astype)
def _astype(x: Any, dtype: Any, copy: bool = True, device: object = None) -> Any:
    return x.astype(dtype)


@written_out(np.apply_over_axes)
def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        found = func(a, axis)
        a = found if np.ndim(found) == np.ndim(a) else np.expand_dims(found, axis)
    return a


@function(np.broadcast)
def _broadcast(run: Context, *arrays: Any) -> Any:
    if not has_data(list(arrays)):
        return np.broadcast(*arrays)
    return objects.make(run, Broadcast, list(arrays), {})


@written_out(np.dsplit)
def _dsplit(ary: Any, indices_or_sections: Any) -> Any:
    return np.split(ary, indices_or_sections, 2)
