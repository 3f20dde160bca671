"""Values that are one of two, by the way of a branch that was taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays import run_types
from distspmd.frontend.from_numpy.arrays.choosing import chosen
from distspmd.frontend.from_numpy.arrays.kinds import is_whole, joined_type, joined_weak
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, joined
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    View,
    axis,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds import absence
from distspmd.frontend.from_numpy.kinds.carried_lists import are_run_lists
from distspmd.frontend.from_numpy.kinds.carried_places import is_carried
from distspmd.frontend.from_numpy.kinds.joined_arrays import link
from distspmd.frontend.from_numpy.kinds.joined_lists import join_lists
from distspmd.frontend.from_numpy.kinds.text_choices import join_texts
from distspmd.frontend.from_numpy.kinds.variables import (
    UNBOUND,
    OneOf,
    Undecided,
    alike,
    one_of,
    see_the_same,
)
from distspmd.frontend.from_numpy.reader.mutation import is_reached
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, symbol
from distspmd.runtime.calls.form import rebuilt

_BY_CONDITION = "by a condition that is known at run time only"


@dataclass(frozen=True)
class Ways:
    """The two ways of a branch.

    Attributes:
        blocks: their statements.
        variables: at their ends.
        joined: what is one of two so far, with the two, so that names of one thing stay so.
    """

    blocks: tuple[Block, Block]
    variables: tuple[Mapping[str, Any], Mapping[str, Any]]
    joined: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def known(self, one: object, other: object) -> Any:
        """What two values have become under another name; None where they have none."""
        for first, second, made in self.joined:
            if _is_same_thing(first, one) and _is_same_thing(second, other):
                return made
        return None

    def without(self, name: str, one: object, other: object) -> list[Mapping[str, Any]]:
        """The variables but for one, and for others that are the same two things."""
        first, second = self.variables
        own = {
            each
            for each in first.keys() & second.keys()
            if _is_same_thing(first[each], one) and _is_same_thing(second[each], other)
        }
        return [{k: v for k, v in way.items() if k not in own} for way in self.variables]

    def note_ambiguous(
        self, tracer: Tracer, name: str, one: object, other: object, made: object
    ) -> None:
        """Let nobody change a list, dictionary or object that others see on one way alone."""
        every = zip(self.without(name, one, other), (one, other), strict=True)
        outer = [frame.variables for frame in tracer.frames[:-1]]
        if any(is_reached(tracer, [*outer, way], value) for way, value in every):
            for each in (one, other, made):
                content = each if isinstance(each, list | dict) else vars(each)
                tracer.links.ambiguous[id(content)] = (content, name)


def _is_same_thing(one: object, other: object) -> bool:
    if isinstance(one, View) and isinstance(other, View):
        return one.ndim > 0 and one.weak is other.weak and see_the_same(one, other)
    return one is other and (isinstance(one, list | dict) or hasattr(one, "__dict__"))


def join(interpreter: Context, name: str, one: object, other: object, ways: Ways) -> Any:
    """A value that is one of two, by the way that was taken."""
    if alike(one, other) or absence.alike_choices(one, other, alike):
        return one
    if isinstance(one, View) and isinstance(other, View) and see_the_same(one, other):
        return replace(one, weak=joined_weak(one, other))
    if isinstance(one, str) and isinstance(other, str):
        return join_texts(interpreter, name, (one, other), ways.blocks)
    if any(value is UNBOUND or absence.may_be_unbound(value) for value in (one, other)):
        return _join_bindings(interpreter, name, (one, other), ways)
    if any(map(absence.may_be_none, (one, other))):
        return _join_choices(interpreter, name, (one, other), ways)
    made = ways.known(one, other)
    if made is None and are_run_lists(interpreter, one, other):
        made = join_lists(
            interpreter, name, (one, other), ways.blocks, ways.without(name, one, other)
        )
        ways.joined.append((one, other, made))
    if made is None:
        made = _join_records(interpreter, name, one, other, ways)
    return _join_numbers(interpreter, name, one, other, ways) if made is None else made


def _join_numbers(interpreter: Context, name: str, one: object, other: object, ways: Ways) -> Any:
    """A number or an array that is one of two; or one of two things that have no common form."""
    tracer, blocks = interpreter.tracer, ways.blocks
    if is_whole(one) and is_whole(other):
        return _join_wholes(tracer, name, (one, other), blocks)
    found = [_as_tensor(tracer, v, b) for v, b in zip((one, other), blocks, strict=True)]
    tensors = [t for t in found if t is not None]
    if len(tensors) < 2:
        return _one_of(tracer, name, (one, other), blocks)
    shapes = [t.shape for t in tensors]
    if _is_longer_by_data(tracer, tensors):
        return _join_lengths(tracer, name, tensors, blocks)
    if len(shapes[0]) != len(shapes[1]) or not all(
        same(a, b) for a, b in zip(*shapes, strict=True)
    ):
        return _one_of(tracer, name, (one, other), blocks)
    place = _join_tensors(tracer, name, tensors, blocks)
    link(tracer, name, place, tensors, blocks, ways.without(name, one, other))
    ways.joined.append((one, other, place))
    return place


def _join_records(interpreter: Context, name: str, one: Any, other: Any, ways: Ways) -> Any:
    """A tuple, list, dictionary or object of two ways that has the same parts on both."""
    if type(one) is not type(other):
        return None
    if isinstance(one, tuple | list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        parts = [join(interpreter, f"{name}_{n}", *pair, ways) for n, pair in pairs]
        made: Any = rebuilt(one, parts)
    elif type(one) is dict and one.keys() == other.keys():
        made = {k: join(interpreter, f"{name}_{k}", v, other[k], ways) for k, v in one.items()}
    elif _are_own(interpreter.tracer, one, other) and vars(one).keys() == vars(other).keys():
        made = object.__new__(type(one))
        interpreter.tracer.program.made[id(vars(made))] = made
        for key, value in vars(one).items():
            vars(made)[key] = join(interpreter, f"{name}_{key}", value, vars(other)[key], ways)
    else:
        return None
    if not isinstance(one, tuple):
        ways.joined.append((one, other, made))
        ways.note_ambiguous(interpreter.tracer, name, one, other, made)
    return made


def _are_own(tracer: Tracer, *values: object) -> bool:
    """Whether values are objects that the program has made."""
    return all(hasattr(v, "__dict__") and id(vars(v)) in tracer.program.made for v in values)


def _join_tensors(
    tracer: Tracer, name: str, tensors: Sequence[Tensor], blocks: Sequence[Block]
) -> View:
    """An array, or a number, of two ways, which has one shape on both."""
    place = tracer.fresh(name, tensors[0].shape, joined_type(*tensors))
    place.weak = joined_weak(*tensors)
    types = None
    if run_types.differ(*tensors):
        place.run_type = types = view_of(tracer.container(f"{name}_type", (), INT64))
    for block, tensor in zip(blocks, tensors, strict=True):
        with tracer.within(block), tracer.binding():
            if types is not None:
                tracer.write(types, run_types.type_of(tensor))
            tracer.write(place, tensor, is_new=True)
    return place


def _join_wholes(
    tracer: Tracer, name: str, values: tuple[Any, Any], blocks: tuple[Block, Block]
) -> sympy.Symbol:
    """A whole number of two ways: a symbol that each sets."""
    joined = tracer.unique(name)
    tracer.known.bounds[joined] = (None, None)
    for block, value in zip(blocks, values, strict=True):
        with tracer.within(block):
            tracer.add(SetSymbol(joined, sympy.sympify(value), INT64))
    return symbol(joined)


def _join_choices(interpreter: Context, name: str, values: tuple[Any, Any], ways: Ways) -> Any:
    """A value of two ways, which may be None on one of them."""

    def joined(one: object, other: object) -> Any:
        return join(interpreter, name, one, other, ways)

    choice = absence.joined_choice(interpreter, name, values, ways.blocks, joined)
    if choice is None:
        return _one_of(interpreter.tracer, name, values, ways.blocks)
    _set_missing_lengths(interpreter.tracer, values, ways.blocks)
    return choice


def _join_bindings(interpreter: Context, name: str, values: tuple[Any, Any], ways: Ways) -> OneOf:
    """A variable of two ways, which one of them may leave unbound."""

    def joined(one: object, other: object) -> Any:
        return join(interpreter, name, one, other, ways)

    found = absence.joined_bindings(interpreter, name, values, ways.blocks, joined)
    _set_missing_lengths(interpreter.tracer, values, ways.blocks)
    return found


def _is_longer_by_data(tracer: Tracer, tensors: Sequence[Tensor]) -> bool:
    """Whether two arrays have other lengths, of which data decide one, or which are numbers.

    None is 1, of which NumPy broadcasts: what has a length that the run decides is not broadcast.
    Only of an array that is empty on the other way it is: such a one gets rows, and no partner.
    """
    one, other = tensors
    if one.dtype != other.dtype:
        return False
    if one.mask is not None or other.mask is not None:
        return (
            one.mask is not other.mask
            and one.ndim == other.ndim
            and all(map(_are_rows, tensors))
            and all(map(same, one.shape[1:], other.shape[1:]))
        )
    if one.ndim != other.ndim or not one.ndim:
        return False
    differ = [
        n for a, b in zip(one.shape, other.shape, strict=True) if not same(a, b) for n in (a, b)
    ]
    are_numbers = all(isinstance(n, int) for n in differ) and (1 not in differ or 0 in differ)
    return bool(differ) and (are_numbers or tracer.is_decided_by_data(*differ))


def _are_rows(tensor: Tensor) -> bool:
    """Whether a tensor is an array, or chosen from the rows of one."""
    return tensor.ndim > 0 and (tensor.mask is None or tensor.mask.ndim == 1)


def _join_lengths(
    tracer: Tracer, name: str, tensors: Sequence[Tensor], blocks: Sequence[Block]
) -> View:
    """An array of one of two lengths, by the way that was taken."""
    found = []
    for tensor, block in zip(tensors, blocks, strict=True):
        with tracer.within(block):
            array = chosen(tracer, tensor) if tensor.mask is not None else tensor
            found.append(tracer.stored_anew(array, name))
    one, other = found
    room, shape = [], []
    for d, (a, b) in enumerate(zip(one.shape, other.shape, strict=True)):
        ends = (one.container.shape[d], other.container.shape[d])
        room.append(ends[0] if same(*ends) else sympy.Max(*map(sympy.sympify, ends)))
        if same(a, b):
            shape.append(a)
            continue
        length = tracer.unique(f"{name}_length")
        tracer.known.bounds[length] = (None, None)
        tracer.known.capacities[symbol(length)] = room[d]
        for block, value in zip(blocks, (a, b), strict=True):
            with tracer.within(block):
                tracer.add(SetSymbol(length, sympy.sympify(value), INT64))
        shape.append(symbol(length))
    room = [int(n) if isinstance(n, sympy.Integer) else n for n in room]
    container = tracer.container(name, room, np.result_type(one.dtype, other.dtype))
    places = [axis(d) for d in range(one.ndim)]
    zero = number(0, container.dtype)
    zeros = Tensor(tuple(room), container.dtype, lambda _: zero)
    for array, block in zip(found, blocks, strict=True):
        with tracer.within(block), tracer.binding():
            tracer.write(view_of(container), zeros)
            tracer.assign(make_view(container, array.shape, places), array)
    return make_view(container, shape, places)


def _one_of(
    tracer: Tracer, name: str, values: tuple[Any, Any], blocks: tuple[Block, Block]
) -> Undecided:
    """Two values that no array can hold, and a number that says which it is."""
    plain = one_of(name, *values, _BY_CONDITION)
    if any(type(value) is Undecided for value in values):
        return plain
    which = tracer.unique(f"{name}_which")
    tracer.known.bounds[which] = (0, 1)
    kept = []
    inner = [s.name for value in values if isinstance(value, OneOf) for s in value.symbols()]
    for place, (value, block) in enumerate(zip(values, blocks, strict=True)):
        own = {s.name for s in value.symbols()} if isinstance(value, OneOf) else set()
        with tracer.within(block):
            tracer.add(SetSymbol(which, sympy.Integer(1 - place), INT64))
            for other in inner:
                if other not in own:
                    tracer.add(SetSymbol(other, sympy.Integer(0), INT64))
            kept.append(_kept(tracer, name, value))
    _set_missing_lengths(tracer, kept, blocks)
    return OneOf(plain.reason, symbol(which), (kept[0], kept[1]))


def _set_missing_lengths(tracer: Tracer, values: Sequence[Any], blocks: Sequence[Block]) -> None:
    """Let each way set the lengths of what another way alone makes."""
    for value, block, other_block in zip(values, blocks, reversed(blocks), strict=True):
        own_lengths = {
            n for n in _lengths_of(value) if _sets(block, n) and not _sets(other_block, n)
        }
        with tracer.within(other_block):
            for length in sorted(own_lengths):
                tracer.add(SetSymbol(length, sympy.Integer(0), INT64))


def _lengths_of(value: object) -> set[str]:
    """Names of the symbols in the shapes of what a value holds."""
    if isinstance(value, tuple | list):
        return {name for part in value for name in _lengths_of(part)}
    if isinstance(value, OneOf):
        return _lengths_of(value.values)
    shape = value.shape if isinstance(value, Tensor) else ()
    return {s.name for n in shape for s in getattr(n, "free_symbols", ())}


def _sets(block: Block, name: str) -> bool:
    return any(isinstance(s, SetSymbol) and s.name == name for s in block.statements)


def _kept(tracer: Tracer, name: str, value: object) -> Any:
    """A value whose tensors are stored."""
    if isinstance(value, tuple | list):
        parts = [_kept(tracer, name, part) for part in value]
        return parts if isinstance(value, list) else rebuilt(value, parts)
    if isinstance(value, RealOrComplex):
        return joined([value], _kept(tracer, name, value.in_complex))
    if isinstance(value, Tensor) and not isinstance(value, View) and value.mask is None:
        return tracer.stored_anew(value, name)
    return value


def _as_tensor(tracer: Tracer, value: object, block: Block) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if is_carried(value):
        with tracer.within(block):
            return tracer.tensor(value)
    return None
