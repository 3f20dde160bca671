"""Routines on lines: what takes all elements along a dimension, of each line apart.

Scans, sorts, searches and transforms of a line run on one rank; the lines of an array are split
over the ranks. A line has to be dense, so that a dimension that is not the last is moved first;
but for code that takes lines as they lie, and many at once (:mod:`distspmd.codegen.line_batches`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
from dace import symbolic
from dace.codegen.common import sym2cpp

from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.elements import is_one
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis, reshape, size_of, transpose
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, axis, view_of
from distspmd.frontend.tensor_ir.statements import (
    Index,
    Length,
    Library,
    Parameter,
    Routine,
    Window,
)
from distspmd.frontend.tensor_ir.whole_numbers import simplified, subtract, symbol, text
from distspmd.nodes.line_in_parts import LineInParts

HEADER = "kernels/lines.hpp"
"""What routines include."""
_DECLARED = re.compile(r"\b(?:int64_t|bool|double|auto)\b[\s&*]+([a-z]\w*)\s*[=;,)]")
"""Variables of code in C++."""


_OPEN, _CLOSE = "\x01", "\x02"
"""Around whole numbers of the program in code."""


def _with_own_variables(code: str) -> str:
    """Code whose variables have names that no symbol of the program has."""
    parts = re.split(f"{_OPEN}(.*?){_CLOSE}", code)
    for name in set(_DECLARED.findall(code)):
        parts[::2] = [re.sub(rf"\b{name}\b", f"__own_{name}", part) for part in parts[::2]]
    return "".join(parts)


def cpp(value: Length) -> str:
    """A whole number in C++."""
    if isinstance(value, int):
        return str(value)
    return f"{_OPEN}({sym2cpp(symbolic.pystr_to_symbolic(text(value)))}){_CLOSE}"


def run_on_lines(
    tracer: Tracer,
    label: str,
    batch: Sequence[Length],
    lines: Sequence[Tensor],
    wholes: Sequence[Tensor],
    results: Sequence[tuple[Length | None, DType]],
    code: str,
    header: str = HEADER,
    along: int | None = None,
    **more: Any,
) -> list[View]:
    """Run code of C++ for each line of a batch.

    Args:
        tracer: gets the statement.
        label: names the map.
        batch: extents of the map.
        lines: tensors of the shape of the batch, and a dimension more; ``_line0``, ... in the code.
            An extent of one is broadcast. One without that dimension gives one element.
        wholes: vectors that each iteration sees all of; ``_whole0``, ... in the code.
        results: lengths of the lines that are made, or None for an element; and their types;
            ``_result0``, ... in the code.
        code: reads the pointers and writes the results.
        header: that the code includes.
        along: the dimension of the lines, before and after, of code that takes them as they lie;
            it is the last one of others.
        more: of the routine.

    Returns:
        the results, each of the batch's shape and its own length.
    """
    dense, along = along is None, len(batch) if along is None else along
    names = [f"__l{d}" for d in range(len(batch))]
    room = [tracer.capacity(n) for n in batch]
    parameters = [Parameter(name, 0, n) for name, n in zip(names, room, strict=True)]
    place = tuple(symbol(p.name) for p in parameters)
    inputs = {}
    for n, line in enumerate(lines):
        inputs[f"_line{n}"] = _window(tracer, line, place, along, dense)
    for n, whole in enumerate(wholes):
        inputs[f"_whole{n}"] = _window(tracer, whole, (), 0, True)
    outputs, found = {}, []
    for n, (length, dtype) in enumerate(results):
        own = () if length is None else (length,)
        shape = (*batch[:along], *own, *batch[along:])
        view = tracer.fresh(tracer.target or label, shape, dtype)
        first = (*place[:along], *(0 for _ in own), *place[along:])
        sizes = [1] * len(first)
        if own:
            sizes[along] = view.container.shape[along]
        outputs[f"_result{n}"] = Window(view.container, first, tuple(sizes))
        found.append(view)
    every = tuple(parameters) or (Parameter("__once", 0, 1),)
    code = _with_own_variables(code)
    for name in sorted(set(re.findall(r"\b\w+\b", code))):
        if tracer.is_decided_by_data(symbol(name)):  # code gets lengths as it gets elements
            value = tracer.stored_anew(tracer.whole(symbol(name)), "length")
            inputs[f"_length_{name}"] = Window(value.container, (), ())
            code = re.sub(rf"\b{name}\b", f"(*_length_{name})", code)
    tracer.add(Routine(label, every, inputs, outputs, code, header, **more))
    return found


def _window(
    tracer: Tracer, tensor: Tensor, place: Sequence[sympy.Symbol], along: int, dense: bool
) -> Window:
    """The part of a tensor, at a place of a batch, that is one line along a dimension."""
    view = (
        tracer.unmerged(tensor) if isinstance(tensor, View) else tracer.stored_anew(tensor, "lines")
    )
    assert isinstance(view, View)
    if tracer.is_decided_by_data(*view.shape, *view.place) and not covers(view):
        view = tracer.stored_anew(tensor, "lines")
    if covers(view):
        view = view_of(view.container)
    found = _of_line(view, place, along, dense)
    if found is None:
        stored = view_of(tracer.stored_anew(tensor, "lines").container)
        found = _of_line(stored, place, along, dense)
    assert found is not None, "a line of what is stored anew lies along one dimension"
    return found


def covers(view: View) -> bool:
    """Whether a view has the indices of its container, though it may end before that does."""
    return view.ndim == len(view.container.shape) and all(
        p == axis(d) for d, p in enumerate(view.place)
    )


def _of_line(view: View, place: Sequence[sympy.Symbol], along: int, dense: bool) -> Window | None:
    """The window of a line that lies along one dimension of a container, in its order.

    That is the last one, if it has to be dense.
    """
    if view.container.is_scalar:
        return None
    line = symbol("__along")
    is_element = view.ndim == len(place)
    others = view.shape if is_element else (*view.shape[:along], *view.shape[along + 1 :])
    batch = tuple(0 if is_one(n) else i for i, n in zip(place, others, strict=True))
    index = view.at(batch if is_element else (*batch[:along], line, *batch[along:]))
    if any(not isinstance(i, int | sympy.Basic) for i in index):
        return None
    holders = [] if is_element else [d for d, i in enumerate(index) if _names(i, line)]
    if not holders and (is_element or is_one(view.shape[along])):
        return Window(view.container, _direct(index), (1,) * len(index))
    if len(holders) != 1 or (dense and holders != [len(index) - 1]):
        return None
    (at,) = holders
    first = subtract(index[at], line)
    if _names(first, line):
        return None
    sizes: list[Length] = [1] * len(index)
    sizes[at] = view.shape[along]
    return Window(view.container, _direct((*index[:at], first, *index[at + 1 :])), tuple(sizes))


def _names(index: Index, name: sympy.Symbol) -> bool:
    return name in sympy.sympify(index).free_symbols


def _direct(index: Sequence[Index]) -> tuple[Length, ...]:
    return tuple(i if isinstance(i, int) else simplified(i) for i in index)


LONG = 1 << 13
"""Elements of a line from which on ranks sort it together, close it up, or transform it."""


def is_long(tracer: Tracer, tensor: Tensor) -> bool:
    """Whether a tensor is a line that is long enough that ranks have parts of it."""
    is_alone = tracer.map.parallel or tracer.map.straight is not None or tracer.guarded
    if is_alone or tensor.ndim != 1 or tracer.is_decided_by_data(*tensor.shape):
        return False
    (length,) = tensor.shape
    return not isinstance(length, int) or length >= LONG


def in_parts(
    tracer: Tracer,
    name: str,
    function: str,
    inputs: Mapping[str, Tensor],
    dtype: DType,
    options: Sequence[str] = (),
) -> View:
    """What ranks make together of lines of one length, of which each has a part before and after.

    Args:
        tracer: gets the statement.
        name: of the space.
        function: of :class:`LineInParts`.
        inputs: lines by connector.
        dtype: of the line that is made.
        options: what the function is told, in C++.
    """
    containers = {}
    for connector, tensor in inputs.items():
        line = tracer.stored(tensor)
        if not (line.is_whole and len(line.container.shape) == 1):
            line = tracer.stored_anew(tensor, "line")
        containers[connector], shape = line.container, line.shape
    found = tracer.fresh(tracer.target or name, shape, dtype)
    make = functools.partial(LineInParts, name, function, options)
    tracer.add(Library(make, containers, {"_out": found.container}))
    return found


def with_last(tracer: Tracer, tensor: Tensor, axis: int) -> Tensor:
    """A tensor whose last dimension was another one."""
    if axis == tensor.ndim - 1:
        return tensor
    order = [d for d in range(tensor.ndim) if d != axis] + [axis]
    return transpose(tracer, tensor, order)


def put_back(tracer: Tracer, tensor: Tensor, axis: int) -> Tensor:
    """A tensor whose last dimension is put where another one was."""
    if axis == tensor.ndim - 1:
        return tensor
    order = list(range(tensor.ndim - 1))
    order.insert(axis, tensor.ndim - 1)
    return transpose(tracer, tensor, order)


def flat(tracer: Tracer, tensor: Tensor) -> Tensor:
    """The elements in reading order."""
    return tensor if tensor.ndim == 1 else reshape(tracer, tensor, [size_of(tensor.shape)])


def line_axis(tracer: Tracer, tensor: Tensor, axis: object) -> tuple[Tensor, int]:
    """A tensor and the dimension of its lines; all elements are one line where none is given."""
    if axis is None:
        return flat(tracer, tensor), 0
    return tensor, normal_axis(tracer, axis, tensor.ndim)


def along_axis(
    tracer: Tracer,
    label: str,
    tensor: Tensor,
    axis: int,
    results: Sequence[tuple[Length, DType]],
    code: str,
    wholes: Sequence[Tensor] = (),
    header: str = HEADER,
) -> list[Tensor]:
    """Run code of C++ for each line of a tensor along a dimension; so are results."""
    moved = with_last(tracer, tensor, axis)
    found = run_on_lines(tracer, label, moved.shape[:-1], [moved], wholes, results, code, header)
    return [put_back(tracer, view, axis) for view in found]
