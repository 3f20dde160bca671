"""Functions of Python that are applied to each element, or to each line, of arrays.

The function is read once. Of elements it becomes one kernel, if it computes with numbers alone;
otherwise each iteration of a map runs its statements.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import cast
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import converted
from distspmd.frontend.from_numpy.arrays.lengths import kept_in
from distspmd.frontend.from_numpy.arrays.lines import put_back, with_last
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, axis, make_view, view_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.registry import function
from distspmd.frontend.from_numpy.reader.places import Places
from distspmd.frontend.from_numpy.reader.scopes import NotStraight, Straight
from distspmd.frontend.tensor_ir.statements import Block, Length, Parameter, Scope, Store
from distspmd.frontend.tensor_ir.whole_numbers import subtract, symbol

Call = Callable[[tuple[sympy.Symbol, ...]], Any]


def apply_to_each(run: Context, label: str, shape: Sequence[Length], call: Call) -> Any:
    """What a call gives at each index of a shape, in arrays; a tuple where it gives tuples.

    Args:
        run: the interpreter.
        label: of the map.
        shape: its extents.
        call: reads the function at an index; its result is an array of the last dimensions.
    """
    tracer = run.tracer
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    if tracer.is_decided_by_data(*shape):
        return _apply_to_room(run, label, shape, call)
    names = [tracer.unique("each") for _ in shape]
    parameters = [Parameter(name, 0, n) for name, n in zip(names, shape, strict=True)]
    index = tuple(symbol(name) for name in names)
    trial, node = Saved(run), tracer.node
    for p in parameters:
        tracer.known.bounds[p.name] = (0, subtract(p.end, 1))
    tracer.map.parallel.append((len(tracer.map.own), names))
    try:
        try:
            found = _as_elements(run, label, parameters, index, call)
        except NotStraight:
            tracer.map.straight = None
            trial.restore(run)
            tracer.program.names |= set(names)
            for p in parameters:
                tracer.known.bounds[p.name] = (0, subtract(p.end, 1))
            tracer.node = node
            found = _as_statements(run, label, parameters, index, call)
    finally:
        tracer.map.parallel.pop()
        for name in names:
            del tracer.known.bounds[name]
    return found


def _apply_to_room(run: Context, label: str, shape: Sequence[Length], call: Call) -> Any:
    """What a call gives at each index of a shape that data decide; beyond it, at the last one."""
    tracer = run.tracer
    room = [tracer.capacity(n) for n in shape]

    def call_inside(index: tuple[sympy.Symbol, ...]) -> Any:
        return call(
            tuple(kept_in(i, n, tracer.known.bounds) for i, n in zip(index, shape, strict=True))
        )

    def cut(whole: View) -> View:
        lengths = (*shape, *whole.shape[len(shape) :])
        return make_view(whole.container, lengths, whole.place)

    found = apply_to_each(run, label, room, call_inside)
    return tuple(map(cut, found)) if isinstance(found, tuple) else cut(found)


def _as_elements(
    run: Context, label: str, parameters: Sequence[Parameter], index: Any, call: Call
) -> Any:
    """One kernel."""
    tracer = run.tracer
    straight = Straight(run, parameters, Places(tracer, parameters))
    tracer.map.straight = straight
    try:
        value = call(index)
        many = value if isinstance(value, tuple) else (value,)
        tensors = [tracer.tensor(v) for v in many]
        if straight.written or any(t.ndim for t in tensors):
            straight.leave()
    finally:
        tracer.map.straight = None
    straight.places.add_statements()
    shape = [p.end for p in parameters]
    results = [tracer.container(tracer.target or label, shape, t.dtype) for t in tensors]
    stores = [
        Store(c, index, cast(t.element(()), c.dtype)) for c, t in zip(results, tensors, strict=True)
    ]
    tracer.kernel(stores, parameters, label)
    found = tuple(view_of(c) for c in results)
    return found if isinstance(value, tuple) else found[0]


def _as_statements(
    run: Context, label: str, parameters: Sequence[Parameter], index: Any, call: Call
) -> Any:
    """A map whose iterations run statements."""
    tracer = run.tracer
    body = Block()
    found: list[View] = []
    tracer.map.own.append(set())
    target, tracer.target = tracer.target, None
    try:
        with tracer.within(body):
            value = call(index)
            many = value if isinstance(value, tuple) else (value,)
            for tensor in [tracer.tensor(v) for v in many]:
                own = tracer.map.own.pop()
                shape = (*(p.end for p in parameters), *tensor.shape)
                result = tracer.container(target or label, shape, tensor.dtype)
                tracer.map.own.append(own)
                inner = tuple(axis(d) for d in range(tensor.ndim))
                tracer.assign(make_view(result, tensor.shape, (*index, *inner)), tensor)
                found.append(view_of(result))
    finally:
        tracer.target = target
        own = tracer.map.own.pop()
    tracer.add(Scope(label, tuple(parameters), body, frozenset(own)))
    return tuple(found) if isinstance(value, tuple) else found[0]


# -- elements -------------------------------------------------------------------------------------


@function(np.vectorize)
def _vectorize(
    run: Context,
    pyfunc: object,
    otypes: object = None,
    doc: object = None,
    excluded: object = None,
    cache: bool = False,
    signature: object = None,
) -> Any:
    return functools.partial(_call_vectorized, pyfunc, otypes, excluded, signature)


@function(np.frompyfunc)
def _frompyfunc(
    run: Context, func: object, /, nin: int, nout: int, *, identity: object = None
) -> Any:
    """The same, whose arrays have numbers, where NumPy's have objects."""
    return functools.partial(_call_vectorized, func, None, None, None)


def _call_vectorized(pyfunc: object, otypes: object, excluded: object, signature: object) -> None:
    """What calls of vectorized functions are called by: a name in the table of functions."""


@function(_call_vectorized)
def vectorized(
    run: Context,
    pyfunc: Any,
    otypes: Any,
    excluded: Any,
    signature: Any,
    *arguments: Any,
    **named: Any,
) -> Any:
    """Call a function at each element of arrays; of branches of different types the common one."""
    tracer = run.tracer
    names = [*range(len(arguments)), *named]
    whole = dict(zip(names, [*arguments, *named.values()], strict=True))
    taken = [name for name in names if name not in (excluded or ())]
    cores = _extents_of_core(run, signature, taken)
    tensors = {name: tracer.tensor(whole[name]) for name in taken}
    outer = [t.shape[: t.ndim - cores[name]] for name, t in tensors.items()]
    shape = tracer.broadcast_shape(outer)
    if not shape:
        return run.call(pyfunc, list(arguments), named)
    for name, tensor in tensors.items():
        stored = tracer.stored(tensor) if tensor.ndim else tensor
        core = tensor.shape[tensor.ndim - cores[name] :]
        whole[name] = tracer.broadcast(stored, (*shape, *core))

    def call(index: tuple[sympy.Symbol, ...]) -> Any:
        elements = dict(whole)
        for name in taken:
            elements[name] = indexing.read(tracer, whole[name], index)
            elements[name].weak = None
        places = [elements[name] for name in range(len(arguments))]
        return run.call(pyfunc, places, {name: elements[name] for name in named})

    found = apply_to_each(run, getattr(pyfunc, "__name__", "vectorized").strip("<>"), shape, call)
    if not otypes:
        return found
    kinds = [dtype_of(run, t) for t in otypes]
    if isinstance(found, tuple):
        return tuple(converted(tracer, t, kind) for t, kind in zip(found, kinds, strict=True))
    return converted(tracer, found, kinds[0])


def _extents_of_core(run: Context, signature: Any, names: Sequence[Any]) -> dict[Any, int]:
    """How many dimensions of each argument a call takes, by the signature of ``np.vectorize``.

    Raises:
        Refusal: it has not one part for each argument.
    """
    if signature is None:
        return dict.fromkeys(names, 0)
    parts = re.findall(r"\(([^)]*)\)", signature.replace(" ", "").split("->")[0])
    if len(parts) != len(names):
        run.tracer.refuse(f"np.vectorize: the signature {signature!r} has not {len(names)} inputs")
    counts = [len([n for n in part.split(",") if n]) for part in parts]
    return dict(zip(names, counts, strict=True))


# -- lines ----------------------------------------------------------------------------------------


@function(np.apply_along_axis)
def _apply_along_axis(
    run: Context, func1d: object, axis: object, arr: object, *arguments: object, **named: object
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(arr)
    d = normal_axis(tracer, axis, tensor.ndim)
    if tensor.ndim == 1:
        return run.call(func1d, [tensor, *arguments], named)
    lines: Tensor = with_last(tracer, tracer.stored(tensor), d)
    batch = lines.shape[:-1]

    def call(index: tuple[sympy.Symbol, ...]) -> Any:
        line = indexing.read(tracer, lines, index)
        return run.call(func1d, [line, *arguments], named)

    found = apply_to_each(run, getattr(func1d, "__name__", "line").strip("<>"), batch, call)
    if isinstance(found, tuple):
        tracer.refuse("np.apply_along_axis of a function that returns more than one array")
    extra = found.ndim - len(batch)
    if extra == 1:
        return put_back(tracer, found, d)
    if extra > 1:
        order = [*range(d), *range(len(batch), found.ndim), *range(d, len(batch))]
        return run.call(np.transpose, [found, order], {})
    return found
