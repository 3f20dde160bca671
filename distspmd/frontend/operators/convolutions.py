"""Convolutions and maximum pooling of any dimensions: contractions of windows of a padded array."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import fx

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import Expression, apply
from distspmd.frontend.operators.aten_registry import (
    INT64,
    element_within,
    number,
    operator,
    shape_of,
)
from distspmd.frontend.operators.views import reverse_dimensions, strided_part
from distspmd.frontend.tensor_ir import indices as v
from distspmd.frontend.tensor_ir.indices import Index, Value, Variable, at
from distspmd.frontend.tensor_ir.kernels import Builder, operator_of
from distspmd.plans.heuristics import HEURISTICS

Numbers = Sequence[int]
"""One for each dimension along which windows move."""
_PLACES, _KERNEL, _REMAINDERS = "hwz", "klm", "abd"
"""Names of these dimensions, outside of windows and inside, and of what strides leave."""


def _each(value: Any, count: int) -> tuple[int, ...]:
    """A number for each dimension, where one may stand for all."""
    values = [value] if isinstance(value, int) else list(value)
    return tuple(values * count if len(values) == 1 else values)


def _inside(place: Index, length: int, apart: int) -> Expression:
    """Whether an index hits one of ``length`` elements, which are apart."""
    value, first = at(place), number(0, INT64)
    if apart == 1:
        return apply("between", value, first, number(length, INT64))
    end, step = number((length - 1) * apart + 1, INT64), number(apart, INT64)
    return apply("stepped", value, first, end, step)


def _and(tests: Sequence[Expression]) -> Expression:
    found = tests[0]
    for test in tests[1:]:
        found = apply("logical_and", found, test)
    return found


def _spaced(
    builder: Builder,
    node: fx.Node,
    x: Value,
    lengths: Numbers,
    before: Numbers,
    apart: Numbers | None = None,
    fill: float = 0.0,
) -> Value:
    """Images of other heights and widths, their elements apart and behind a border."""
    x = builder.whole(x, node).renamed()
    rank, count = len(x.shape), len(lengths)
    apart = apart or (1,) * count
    if x.shape[-count:] == tuple(lengths) and not any(before) and set(apart) == {1}:
        return x
    shape = (*x.shape[:-count], *lengths)
    sizes = v.new_variables(lengths)
    dims = (*v.new_variables(x.shape[:-count]), *sizes)
    moved, tests = {}, []
    for k, d in enumerate(range(rank - count, rank)):
        place = Index(tuple((u, 1) for u in sizes[k]), -before[k])
        moved[d] = replace(place, divisor=apart[k])
        tests.append(_inside(place, x.shape[d], apart[k]))
    element = element_within(x, dims, moved)
    chosen = apply("where", _and(tests), element, number(fill, x.dtype))
    return builder.stored_anew(Value(dims, chosen, shape), node, "padded")


def _windows(
    x: Value, places: Numbers, kernel: Numbers, stride: Numbers, dilation: Numbers
) -> Value:
    """``[.., *places, *kernel]``: all windows of stored images."""
    x = x.renamed()
    out, inner = v.new_variables(places), v.new_variables(kernel)
    by, count = {}, len(kernel)
    for k in range(count):
        terms = [*((u, stride[k]) for u in out[k]), *((u, dilation[k]) for u in inner[k])]
        for variable in x.dim(len(x.shape) - count + k):
            variable.extent.find().solid = True
            by[variable] = Index(tuple(terms))
    shape = (*x.shape[:-count], *places, *kernel)
    return Value((*x.dims[:-count], *out, *inner), v.substitute_indices(x.expression, by), shape)


def _check(transposed: bool, rank: int) -> None:
    if transposed or rank not in (4, 5):
        raise UnsupportedProgram(
            "of convolutions those of sequences ([batch, channels, length]), images ([batch, "
            "channels, height, width]) and volumes are covered."
        )


def _grouped(x: Value, dim: int, groups: int) -> Value:
    shape = (*x.shape[:dim], groups, x.shape[dim] // groups, *x.shape[dim + 1 :])
    return v.regroup(x, shape)


def _contract(
    builder: Builder, node: fx.Node, terms: Sequence[tuple[str, Value]], out: str
) -> Value:
    """An einsum of two values, whose dimensions have names of one letter."""
    dims: dict[str, tuple[Variable, ...]] = {}
    lengths: dict[str, int] = {}
    factors: list[Expression] = []
    for names, value in terms:
        by: dict[Variable, Index] = {}
        for d, (name, n) in enumerate(zip(names, value.shape, strict=True)):
            own = value.dim(d)
            lengths[name] = max(n, lengths.get(name, 1))
            if dims.get(name) and own:
                by |= v.align_groups(dims[name], own)
            elif own or name not in dims:
                dims[name] = own
        factors.append(v.substitute_indices(value.expression, by))
    order = out + "".join(n for n in dims if n not in out)
    product = apply("multiply", *factors)
    whole = Value(tuple(dims[n] for n in order), product, tuple(lengths[n] for n in order))
    return builder.reduced(whole, range(len(out), len(order)), "sum", node)


def _reach(places: Numbers, kernel: Numbers, stride: Numbers, dilation: Numbers) -> list[int]:
    """Heights and widths that all windows together cover."""
    return [
        (places[k] - 1) * stride[k] + (kernel[k] - 1) * dilation[k] + 1 for k in range(len(places))
    ]


def _convolve(
    builder: Builder,
    node: fx.Node,
    x: Value,
    w: Value,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
    places: Numbers,
) -> Value:
    """A convolution without a bias; weights are ``[groups, out, in, *kernel]``."""
    groups, outputs, _, *kernel = w.shape
    at_places, inside = _PLACES[: len(kernel)], _KERNEL[: len(kernel)]
    padded = _spaced(builder, node, x, _reach(places, kernel, stride, dilation), padding)
    windows = _grouped(_windows(padded, places, kernel, stride, dilation), 1, groups)
    terms = [(f"ngc{at_places}{inside}", windows), (f"goc{inside}", w)]
    result = _contract(builder, node, terms, f"ngo{at_places}")
    return v.regroup(result, (x.shape[0], groups * outputs, *places))


@operator("convolution")
def _convolution(
    builder: Builder, node: fx.Node, x: Value, w: Value, bias: Value | None, *settings: Any
) -> Value:
    stride, padding, dilation, transposed, _, groups = settings
    _check(transposed, len(x.shape))
    shape = shape_of(node)
    weights = _grouped(builder.stored(w, node).renamed(), 0, groups)
    count = len(shape) - 2
    stride, padding, dilation = (_each(n, count) for n in (stride, padding, dilation))
    result = _convolve(builder, node, x, weights, stride, padding, dilation, shape[2:])
    if bias is None:
        return result
    others = ((),) * count, (1,) * count
    along = Value(((), *bias.dims, *others[0]), bias.expression, (1, *bias.shape, *others[1]))
    return v.pointwise(lambda *e: apply("add", *e), [result, along], shape)


@operator("convolution_backward")
def _convolution_backward(
    builder: Builder, node: fx.Node, g: Value, x: Value, w: Value, _: Any, *settings: Any
) -> list[Value | None]:
    strides, paddings, dilations, transposed, _output_padding, groups, mask = settings
    _check(transposed, len(x.shape))
    kernel, places, count = w.shape[2:], g.shape[2:], len(w.shape) - 2
    stride, padding, dilation = (_each(n, count) for n in (strides, paddings, dilations))
    g = builder.stored(g, node)
    results: list[Value | None] = [None, None, None]
    if mask[0]:
        results[0] = _to_input(builder, node, g, x.shape, w, (stride, padding, dilation), groups)
    if mask[1]:
        padded = _spaced(builder, node, x, _reach(places, kernel, stride, dilation), padding)
        windows = _grouped(_windows(padded, places, kernel, stride, dilation), 1, groups)
        at_places, inside = _PLACES[:count], _KERNEL[:count]
        own = _grouped(g.renamed(), 1, groups)
        terms = [(f"ngo{at_places}", own), (f"ngc{at_places}{inside}", windows)]
        results[1] = v.regroup(_contract(builder, node, terms, f"goc{inside}"), w.shape)
    if mask[2]:
        results[2] = builder.reduced(g.renamed(), [0, *range(2, 2 + count)], "sum", node)
    return results


def _to_input(
    builder: Builder,
    node: fx.Node,
    g: Value,
    shape: Sequence[int],
    w: Value,
    windows: tuple[Numbers, Numbers, Numbers],
    groups: int,
) -> Value:
    """The gradient of the input, of a shape: no product is with zeros between strides.

    Args:
        windows: stride, padding and dilation.
    """
    stride, padding, dilation = windows
    kernel, count = w.shape[2:], len(w.shape) - 2
    lengths, one, none = list(shape[2:]), (1,) * count, (0,) * count
    if set(kernel) == {1}:  # each element has one window, or none
        back = _convolve(
            builder, node, g, _turned(builder, node, w, groups), one, none, one, g.shape[2:]
        )
        return _spaced(builder, node, back, lengths, [-n for n in padding], stride)
    if set(stride) != {1} and all(1 in pair for pair in zip(stride, dilation, strict=True)):
        return _by_remainders(builder, node, g, shape, w, windows, groups)
    border = [dilation[k] * (kernel[k] - 1) - padding[k] for k in range(count)]
    reach = [lengths[k] + dilation[k] * (kernel[k] - 1) for k in range(count)]
    spread = _spaced(builder, node, g, reach, border, stride)
    reverse = _turned(builder, node, w, groups)
    return _convolve(builder, node, spread, reverse, one, none, dilation, lengths)


def _by_remainders(
    builder: Builder,
    node: fx.Node,
    g: Value,
    shape: Sequence[int],
    w: Value,
    windows: tuple[Numbers, Numbers, Numbers],
    groups: int,
) -> Value:
    """The gradient of the input, whose places are ``stride * quotient + remainder - padding``.

    The places of one remainder are reached by every ``stride``-th element of the kernel, so that
    they are a convolution of the gradient without strides. All remainders are one product.
    """
    stride, padding, dilation = windows
    kernel, count = w.shape[2:], len(w.shape) - 2
    steps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    first = [p // s for p, s in zip(padding, stride, strict=True)]
    quotients = [(shape[2 + k] - 1 + padding[k]) // stride[k] - first[k] + 1 for k in range(count)]
    border = [dilation[k] * (steps[k] - 1) - first[k] for k in range(count)]
    reach = [quotients[k] + dilation[k] * (steps[k] - 1) for k in range(count)]
    padded = _spaced(builder, node, g, reach, border)
    moved = _windows(padded, quotients, steps, (1,) * count, dilation)
    terms = [
        (f"ngo{_PLACES[:count]}{_KERNEL[:count]}", _grouped(moved, 1, groups)),
        (f"gc{_REMAINDERS[:count]}o{_KERNEL[:count]}", _dealt(builder, node, w, stride, groups)),
    ]
    places = "".join(y + r for y, r in zip(_PLACES[:count], _REMAINDERS, strict=False))
    result = _contract(builder, node, terms, f"ngc{places}")
    lengths = [quotients[k] * stride[k] for k in range(count)]
    result = builder.unsplit(v.regroup(result, (*shape[:2], *lengths)), node)
    for k in range(count):
        begin = padding[k] - stride[k] * first[k]
        result = strided_part(result, 2 + k, begin, shape[2 + k], grouped=False)
    return result


def _dealt(builder: Builder, node: fx.Node, w: Value, stride: Numbers, groups: int) -> Value:
    """Weights ``[groups, in, *remainders, out, *quotients]``, the quotients turned round."""
    w = builder.whole(w, node).renamed()
    kernel, count = w.shape[2:], len(w.shape) - 2
    steps = [-(-k // s) for k, s in zip(kernel, stride, strict=True)]
    inner = [*v.new_variables(stride), *v.new_variables(steps)]
    moved, tests = {}, []
    for k in range(count):
        terms = [*((u, 1) for u in inner[k]), *((u, -stride[k]) for u in inner[count + k])]
        place = Index(tuple(terms), stride[k] * (steps[k] - 1))
        moved[2 + k] = place
        tests.append(_inside(place, kernel[k], 1))
    dims = (*w.dims[:2], *inner)
    element = element_within(w, dims, moved)
    chosen = apply("where", _and(tests), element, number(0, w.dtype))
    back = _grouped(Value(dims, chosen, (*w.shape[:2], *stride, *steps)), 0, groups)
    order = (0, 2, *range(3, 3 + count), 1, *range(3 + count, 3 + 2 * count))
    dims, shape = tuple(back.dims[d] for d in order), tuple(back.shape[d] for d in order)
    return builder.stored_anew(Value(dims, back.expression, shape), node, "turned").renamed()


def _turned(builder: Builder, node: fx.Node, w: Value, groups: int) -> Value:
    """Weights turned round, ``[groups, in, out, *kernel]``."""
    w = builder.stored(w, node).renamed()
    by = reverse_dimensions(w, tuple(range(2, len(w.shape))))
    back = _grouped(Value(w.dims, v.substitute_indices(w.expression, by), w.shape), 0, groups)
    order = (0, 2, 1, *range(3, len(back.shape)))
    dims, shape = tuple(back.dims[d] for d in order), tuple(back.shape[d] for d in order)
    return builder.stored_anew(Value(dims, back.expression, shape), node, "turned").renamed()


def _scaled(variables: Sequence[Variable], factor: int) -> tuple[tuple[Variable, int], ...]:
    """The terms of the index that variables make together, times a number."""
    return tuple((variable, factor * by_one) for variable, by_one in Index.of(variables).terms)


_OF_TWO = {"sum": "add", "max": "maximum", "min": "minimum"}


def _over_windows(
    builder: Builder, node: fx.Node, windows: Value, count: int, operation: str
) -> Value:
    """A reduction over the last dimensions: of windows of few elements one expression."""
    inner = [windows.dim(d - count) for d in range(count)]
    if math.prod(windows.shape[-count:]) > HEURISTICS.unrolled_window:
        return builder.reduced(windows, range(-count, 0), operation, node)
    found: Expression | None = None
    for place in itertools.product(*map(range, windows.shape[-count:])):
        by = {u: Index((), n) for own, n in zip(inner, place, strict=True) for u in own}
        element = v.substitute_indices(windows.expression, by)
        found = element if found is None else apply(_OF_TWO[operation], found, element)
    assert found is not None
    kept = Value(windows.dims[:-count], found, windows.shape[:-count])
    return builder.stored_anew(kept, node).renamed()


@operator("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    builder: Builder,
    node: fx.Node,
    x: Value,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> list[Value]:
    """The maxima, and for each the number of its place in the image.

    That is the first of equal ones, but the last NaN, as in torch.
    """
    count = 3 if "3d" in operator_of(node) else 2
    sizes, steps, dilations, before = (
        _each(n, count) for n in (kernel, stride or kernel, dilation, padding)
    )
    places = tuple(node.meta["val"][0].shape[-count:])
    reach = _reach(places, sizes, steps, dilations)
    lowest = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = _spaced(builder, node, x, reach, before, fill=lowest)
    windows = _windows(padded, places, sizes, steps, dilations)
    if math.prod(sizes) > HEURISTICS.unrolled_window:
        windows = builder.stored_anew(windows, node, "windows")
    highest = _over_windows(builder, node, windows.renamed(), count, "max")
    windows = windows.renamed()
    by: dict[Variable, Index] = {}
    for d in range(len(x.shape)):
        if highest.dims[d]:
            by |= v.align_groups(windows.dims[d], highest.dims[d])
    best = v.substitute_indices(highest.expression, by)
    terms: list[tuple[Variable, int]] = []
    constant, tests = 0, []
    for k in range(count):
        factor = math.prod(x.shape[len(x.shape) - count + k + 1 :])
        step = _scaled(windows.dim(k - 2 * count), steps[k])
        step += _scaled(windows.dim(k - count), dilations[k])
        terms += [(variable, factor * by_one) for variable, by_one in step]
        constant -= factor * before[k]
        tests.append(_inside(Index(step, -before[k]), x.shape[k - count], 1))
    place = at(Index(tuple(terms), constant))
    most = number(math.prod(x.shape[-count:]), INT64)
    found = apply("pick", windows.expression, best, place, most)
    if padded.shape != x.shape:
        found = apply("where", _and(tests), found, most)
    if x.dtype.kind == "f":  # places of NaN count downwards from -1, so that the least is the last
        back = apply("subtract", number(-1, INT64), place)
        found = apply("where", apply("isnan", windows.expression), back, found)
    numbers = Value(windows.dims, found, windows.shape)
    number_of = _over_windows(builder, node, numbers, count, "min")
    if x.dtype.kind != "f":
        return [highest, number_of]

    def forwards(e: Expression) -> Expression:
        return apply("maximum", e, apply("subtract", number(-1, INT64), e))

    return [highest, v.pointwise(forwards, [number_of], number_of.shape)]


@operator("max_pool2d_with_indices_backward", "max_pool3d_with_indices_backward")
def _max_pool_backward(
    builder: Builder,
    node: fx.Node,
    g: Value,
    x: Value,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """Each element gets the gradients of those windows of which it is the maximum."""
    count = 3 if "3d" in operator_of(node) else 2
    sizes, steps, paddings, dilations = (
        _each(n, count) for n in (kernel, stride or kernel, padding, dilation)
    )
    g, indices = builder.whole(g, node).renamed(), builder.whole(indices, node).renamed()
    near = set(dilations) == {1}  # then the windows of an element follow each other
    every = [-(-size // step) if near else size for size, step in zip(sizes, steps, strict=True)]
    shape: tuple[int, ...] = (*x.shape, *every)
    rank = len(x.shape)
    images = [Variable(v.Extent(n)) for n in shape[rank - count :]]
    dims = (*v.new_variables(shape[: rank - count]), *((variable,) for variable in images))
    moved, tests = {}, []
    for k in range(count):
        terms = ((images[k], 1), (images[count + k], -(steps[k] if near else dilations[k])))
        moved[rank - count + k] = Index(terms, paddings[k], steps[k])
        here, ends = Index(terms, paddings[k]), g.shape[k - count]
        tests.append(_inside(here, ends * steps[k], 1) if near else _inside(here, ends, steps[k]))
    place = at(Index.of(images[:count]))
    is_it = apply("equal", element_within(indices, dims, moved), place)
    chosen = _and([*tests, is_it])
    value = apply("where", chosen, element_within(g, dims, moved), number(0, g.dtype))
    whole = Value(dims, value, shape)
    if math.prod(every) > HEURISTICS.unrolled_window:
        whole = builder.stored_anew(whole, node, "windows").renamed()
    return _over_windows(builder, node, whole, count, "sum")
