"""Scans: cumulative sums and products, what universal functions accumulate, and ``reduceat``."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, Load, apply, cast
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import BUILDS, choose, combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.lines import HEADER, along_axis, cpp, line_axis
from distspmd.frontend.from_numpy.arrays.shapes import normal_axis
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    make_view,
    view_of,
    whole_expression,
)
from distspmd.frontend.from_numpy.arrays.values import axis as axis_symbol
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.creation import dtype_of
from distspmd.frontend.from_numpy.numpy.reductions import finished
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS, function, ufunc_method
from distspmd.frontend.tensor_ir.statements import Index, Length, Parameter, Routine, Store, Window
from distspmd.frontend.tensor_ir.whole_numbers import Whole, add, multiply, symbol

_CODE = {
    "add": "a + b",
    "subtract": "a - b",
    "multiply": "a * b",
    "true_divide": "a / b",
    "divide": "a / b",
    "maximum": "a >= b || a != a ? a : b",
    "minimum": "a <= b || a != a ? a : b",
    "fmax": "a >= b || b != b ? a : b",
    "fmin": "a <= b || b != b ? a : b",
    "logical_and": "a && b",
    "logical_or": "a || b",
    "logical_xor": "bool(a) != bool(b)",
    "bitwise_and": "a & b",
    "bitwise_or": "a | b",
    "bitwise_xor": "a ^ b",
}
"""What a scan does with what it has and the next element, in C++."""
_COMBINES = frozenset(BUILDS) & (
    frozenset(_CODE) - {"subtract", "true_divide", "divide", "logical_xor"}
)
"""Those that are associative."""
_LONG, _BLOCKS = 1 << 15, 240
"""Elements of a line from which on it is cut, and into how many blocks: a multiple of most numbers
of ranks."""


def scan(run: Context, name: str, tensor: Tensor, axis: object, dtype: DType) -> Tensor:
    """Combine each element along a dimension with those before it.

    Args:
        run: the interpreter.
        name: of the universal function.
        tensor: its elements.
        axis: the dimension; None takes all elements in reading order.
        dtype: in which it is computed.
    """
    tracer = run.tracer
    if name not in _CODE:
        tracer.refuse(f"np.{name}.accumulate is not covered: write a loop over the dimension")
    if dtype.kind == "c" and name not in ("add", "subtract", "multiply", "divide", "true_divide"):
        tracer.refuse(f"np.{name}.accumulate of complex numbers")
    tensor, d = line_axis(tracer, tensor, axis)
    room = _of_room(tracer, tensor)
    if room is not None and _is_cut(run, name, room):
        whole = tracer.stored(scan(run, name, room, 0, dtype))
        return make_view(whole.container, tensor.shape, [axis_symbol(0)])
    is_narrowed = tensor.dtype.kind == "c" and dtype.kind != "c"
    if not isinstance(tensor, View) or is_narrowed or name.startswith("logical"):
        tensor = converted(tracer, tensor, dtype)
    if _is_cut(run, name, tensor):
        return _scan_in_blocks(tracer, name, tensor, dtype)
    length = tensor.shape[d]
    (found,) = along_axis(tracer, name, tensor, d, [(length, dtype)], _line_code(name, length))
    return found


def _of_room(tracer: Tracer, tensor: Tensor) -> View | None:
    """All of a container, of whose elements a line has as many as data decide; None of others."""
    if not isinstance(tensor, View) or not tracer.is_decided_by_data(*tensor.shape):
        return None
    is_first = tensor.at((axis_symbol(0),)) == (axis_symbol(0),)
    return view_of(tensor.container) if is_first and len(tensor.container.shape) == 1 else None


def _line_code(name: str, length: Length) -> str:
    return (
        f"distspmd::lines::scan(_line0, _result0, {cpp(length)}, "
        f"[](auto a, auto b) {{ return {_CODE[name]}; }});"
    )


def _is_cut(run: Context, name: str, tensor: Tensor) -> bool:
    """Whether a line is long enough to be cut into blocks, and no rank has to have all of it."""
    tracer = run.tracer
    is_alone = tracer.map.parallel or tracer.map.straight is not None or tracer.guarded
    return (
        not is_alone
        and name in _COMBINES
        and tensor.ndim == 1
        and isinstance(tensor.shape[0], int)
        and tensor.shape[0] >= _LONG
    )


def _scan_in_blocks(tracer: Tracer, name: str, tensor: Tensor, dtype: DType) -> Tensor:
    """Scan blocks of a line apart, then their ends, and combine each block with what is before.

    Blocks are the same whatever the ranks, and so are the bits. What moves are the ends of blocks.
    """
    whole = tracer.stored(tensor)
    if not (whole.is_whole and len(whole.container.shape) == 1):
        whole = tracer.stored_anew(tensor, "line")
    found = tracer.fresh(tracer.target or name, tensor.shape, dtype)
    (length,) = tensor.shape
    assert isinstance(length, int)
    size = length // _BLOCKS
    rest = length - size * _BLOCKS
    block, place = symbol("__b"), symbol("__j")

    def part(view: View, first: Whole, count: int) -> Window:
        return Window(view.container, view.at((first,)), (count,))

    def add_scan(parameters: tuple[Parameter, ...], first: Whole, count: int) -> None:
        inputs, outputs = part(whole, first, count), part(found, first, count)
        code = _line_code(name, count)
        given, made = {"_line0": inputs}, {"_result0": outputs}
        tracer.add(Routine(name, parameters, given, made, code, HEADER))

    blocks, places = Parameter("__b", 0, _BLOCKS), Parameter("__j", 0, size)
    add_scan((blocks,), multiply(size, block), size)
    if rest:
        add_scan((Parameter("__once", 0, 1),), size * _BLOCKS, rest)

    def end_of(index: tuple[Index, ...]) -> Expression:
        return found.element((add(multiply(size, index[0]), size - 1),))

    ends = tracer.stored_anew(Tensor((_BLOCKS,), dtype, end_of), "ends")
    (before,) = along_axis(tracer, name, ends, 0, [(_BLOCKS, dtype)], _line_code(name, _BLOCKS))
    index = found.at((add(multiply(size, block), place),))
    own, earlier = Load(found.container, index, dtype), before.element((sympy.Max(0, block - 1),))
    is_first = apply("equal", whole_expression(block), whole_expression(0))
    value = apply("where", is_first, own, cast(BUILDS[name](earlier, own), dtype))
    tracer.kernel([Store(found.container, index, value)], (blocks, places), found.container.name)
    if rest:
        index = found.at((add(size * _BLOCKS, place),))
        last, own = before.element((_BLOCKS - 1,)), Load(found.container, index, dtype)
        store = Store(found.container, index, cast(BUILDS[name](last, own), dtype))
        tracer.kernel([store], [Parameter("__j", 0, rest)], found.container.name)
    return found


def _cumulative(name: str) -> Any:
    called = getattr(np, {"add": "cumsum", "multiply": "cumprod"}[name])

    def call(
        run: Context, value: object, axis: object = None, dtype: object = None, out: object = None
    ) -> Any:
        tensor = run.tracer.tensor(value)
        given = dtype and dtype_of(run, dtype)
        kind = called(np.ones(1, tensor.dtype), dtype=given).dtype
        if tensor.ndim == 0:
            axis = None
        return finished(run, scan(run, name, tensor, axis, kind), out)

    return call


function(np.cumsum, method="cumsum")(_cumulative("add"))
function(np.cumprod, method="cumprod")(_cumulative("multiply"))


def _without_nan(name: str, neutral: int) -> Any:
    plain = _cumulative(name)

    def call(
        run: Context, value: object, axis: object = None, dtype: object = None, out: object = None
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if tensor.dtype.kind in "fc":
            is_nan = combine(tracer, np.isnan, [tensor])
            tensor = choose(tracer, is_nan, tracer.tensor(tensor.dtype.type(neutral)), tensor)
        return plain(run, tensor, axis, dtype, out)

    return call


function(np.nancumsum)(_without_nan("add", 0))
function(np.nancumprod)(_without_nan("multiply", 1))


def _of_the_array_api(name: str, neutral: int) -> Any:
    plain = _cumulative(name)

    def call(
        run: Context,
        value: object,
        /,
        *,
        axis: object = None,
        dtype: object = None,
        out: object = None,
        include_initial: bool = False,
    ) -> Any:
        tracer = run.tracer
        tensor = tracer.tensor(value)
        if axis is None:
            if tensor.ndim != 1:
                tracer.refuse("an array of more than one dimension needs axis=")
            axis = 0
        found = plain(run, tensor, axis, dtype)
        if include_initial:
            _, d = line_axis(tracer, tensor, axis)
            shape = [1 if n == d else extent for n, extent in enumerate(found.shape)]
            first = run.call(np.full, [shape, neutral], {"dtype": found.dtype})
            found = run.call(np.concatenate, [[first, found]], {"axis": d})
        return finished(run, found, out)

    return call


if hasattr(np, "cumulative_sum"):
    function(np.cumulative_sum)(_of_the_array_api("add", 0))
    function(np.cumulative_prod)(_of_the_array_api("multiply", 1))


@ufunc_method("accumulate")
def _accumulate(
    run: Context,
    ufunc: np.ufunc,
    value: Any,
    axis: object = 0,
    dtype: Any = None,
    out: object = None,
) -> Any:
    tensor = run.tracer.tensor(value)
    if tensor.ndim == 0:
        run.tracer.refuse("cannot accumulate on a scalar")
    given = dtype and dtype_of(run, dtype)
    try:
        kind = ufunc.accumulate(np.ones(2, tensor.dtype), dtype=given).dtype
    except (TypeError, ValueError) as problem:
        run.tracer.refuse(str(problem))
    return finished(run, scan(run, ufunc.__name__, tensor, axis, kind), out)


# -- reductions between places --------------------------------------------------------------------


@ufunc_method("reduceat")
def _reduceat(
    run: Context,
    ufunc: np.ufunc,
    value: object,
    indices: Any,
    axis: object = 0,
    dtype: object = None,
    out: object = None,
) -> Any:
    tracer = run.tracer
    tensor = tracer.tensor(value)
    d = normal_axis(tracer, axis, tensor.ndim)
    if isinstance(indices, View) and indices.is_whole:
        indices = tracer.known.tables.get(indices.container, indices)
    if has_data(indices):
        return finished(run, _between_places(run, ufunc, tensor, indices, d, dtype), out)
    places = [int(i) for i in indices]
    parts = []
    for first, after in zip(places, [*places[1:], None], strict=True):
        end = first + 1 if after is not None and after <= first else after
        part = indexing.read(tracer, tensor, (*(slice(None),) * d, slice(first, end)))
        parts.append(FUNCTIONS["ufunc", "reduce"](run, ufunc, part, d, dtype))
    return finished(run, run.call(np.stack, [parts, d], {}), out)


def _between_places(
    run: Context, ufunc: np.ufunc, tensor: Tensor, indices: object, d: int, dtype: Any
) -> Tensor:
    """What ``reduceat`` gives where the places are those of the run; a line is on one rank."""
    tracer, name = run.tracer, ufunc.__name__
    if name not in _CODE or (tensor.dtype.kind == "c" and name not in ("add", "multiply")):
        tracer.refuse(
            f"np.{name}.reduceat of {tensor.dtype} at places that are not known before the run: "
            "write a loop over the places, with a slice in it"
        )
    places = tracer.stored(converted(tracer, tracer.tensor(indices), INT64))
    if places.ndim != 1:
        tracer.refuse("the places of reduceat have to have one dimension")
    length = tensor.shape[d]
    is_low = combine(tracer, np.less, [places, 0])
    is_high = combine(tracer, np.greater_equal, [places, length])
    outside = run.call(np.any, [combine(tracer, np.logical_or, [is_low, is_high])], {})
    message = f"index out-of-bounds in {name}.reduceat [0, {length})"
    end_if(run, outside, "IndexError", message)
    given = dtype and dtype_of(run, dtype)
    kind = ufunc.reduceat(np.ones(1, tensor.dtype), [0], dtype=given).dtype
    code = (
        f"distspmd::lines::reduce_between(_line0, _whole0, _result0, {cpp(places.shape[0])}, "
        f"{cpp(length)}, [](auto a, auto b) {{ return {_CODE[name]}; }});"
    )
    tensor = converted(tracer, tensor, kind)
    (found,) = along_axis(tracer, name, tensor, d, [(places.shape[0], kind)], code, [places])
    return found
