"""Branches: a variable that they leave different gets one container, into which each way writes.

For a whole number it is one symbol. This is the join of an SSA form over structured control flow.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy import run_types
from distspmd.frontend.from_numpy.choosing import chosen
from distspmd.frontend.from_numpy.kinds import is_whole, joined_type, joined_weak
from distspmd.frontend.from_numpy.real_or_complex import RealOrComplex, joined
from distspmd.frontend.from_numpy.syntax import absence
from distspmd.frontend.from_numpy.syntax.bound_at_times import is_exposed
from distspmd.frontend.from_numpy.syntax.conditions import condition_text, facts_of
from distspmd.frontend.from_numpy.syntax.lists import tested
from distspmd.frontend.from_numpy.syntax.mutation import Around, join_contents, watched
from distspmd.frontend.from_numpy.syntax.sharing import is_own, references
from distspmd.frontend.from_numpy.syntax.variables import (
    ABSENT,
    UNBOUND,
    OneOf,
    Undecided,
    alike,
    changed,
    one_of,
    readable,
    see_the_same,
)
from distspmd.frontend.from_numpy.tracer import Tracer
from distspmd.frontend.from_numpy.transcript import EndsHere
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    axis,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.tensor_ir.statements import Block, Branch, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, symbol
from distspmd.runtime.call_form import rebuilt

if TYPE_CHECKING:
    from distspmd.frontend.from_numpy.interpreter import Interpreter


_BY_CONDITION = "by a condition that is known at run time only"


# -- branches -------------------------------------------------------------------------------------


def branch(interpreter: Interpreter, node: ast.If) -> None:
    """``if``."""
    tracer = interpreter.tracer
    test = tested(interpreter, interpreter.value(node.test))
    known = interpreter.truth(test)
    tracer.node = node
    if known is not None:
        interpreter.block(node.body if known else node.orelse)
        return
    if tracer.straight is not None:
        tracer.straight.branch(test, node)
        return
    condition = condition_text(interpreter, test)
    before = dict(interpreter.variables)
    then, otherwise = Block(), Block()
    ends, variables, contents = [], [], []
    for block, statements in ((then, node.body), (otherwise, node.orelse)):
        interpreter.variables.clear()
        interpreter.variables.update(before)
        facts = facts_of(tracer, test, holds=block is then)
        with (
            watched(tracer, Around.BRANCH) as journal,
            tracer.within(block),
            tracer.where(facts),
            absence.knowing(tracer, test, holds=block is then),
        ):
            _block(interpreter, statements)
        ends.append(_end_of_block(tracer))
        variables.append(dict(interpreter.variables))
        contents.append(journal.take_back())
    tracer.node = node
    tracer.ended = all(ends)
    if ends[0] != ends[1]:  # one of them ends the program: what follows knows the other
        variables = [variables[ends[0]]] * 2
        contents = [contents[ends[0]]] * 2
    first, second = variables
    interpreter.variables.update(first)

    def join(name: str, one: Any, other: Any) -> Any:
        if one is ABSENT or other is ABSENT:
            found = other if one is ABSENT else one
            if not is_exposed(interpreter, node, name, found):
                return found
            one, other = (UNBOUND if value is ABSENT else value for value in (one, other))
        return _join(interpreter, readable(name), one, other, then, otherwise)

    for name in sorted(changed(first, second)):
        one, other = first.get(name, ABSENT), second.get(name, ABSENT)
        kept = _written_in_place(tracer, name, (first, second), (then, otherwise))
        interpreter.variables[name] = join(name, one, other) if kept is None else kept
    join_contents(interpreter, contents[0], contents[1], join)
    tracer.add(Branch(condition, then, otherwise))


def _block(interpreter: Interpreter, statements: Sequence[ast.stmt]) -> None:
    """Read the statements of one way, until it ends the program."""
    try:
        interpreter.block(statements)
    except EndsHere:
        interpreter.tracer.ended = True


def _written_in_place(
    tracer: Tracer, name: str, ways: Sequence[dict[str, Any]], blocks: Sequence[Block]
) -> View | None:
    """A number that one way leaves as it was, where the other way can write its new value there.

    So a number of a loop is copied only where it changes. None where something else sees it.
    """
    values = [way.get(name, ABSENT) for way in ways]
    for old, new, block in zip(values, reversed(values), reversed(blocks), strict=True):
        if not isinstance(old, View) or not isinstance(new, Tensor) or old.ndim or new.ndim:
            continue
        container = old.container
        is_free = old.is_whole and not container.is_argument and is_own(tracer, container)
        if (
            is_free
            and (new.dtype, new.weak) == (old.dtype, old.weak)
            and not run_types.differ(old, new)
            and not references(tracer, container, {**ways[0], name: None})
            and not references(tracer, container, {**ways[1], name: None})
        ):
            with tracer.within(block):
                tracer.assign(old, new)
            return old
    return None


def _end_of_block(tracer: Tracer) -> bool:
    """Whether the block that was read raises in the end."""
    found, tracer.ended = tracer.ended, False
    return found


def _join(
    interpreter: Interpreter, name: str, one: Any, other: Any, then: Block, otherwise: Block
) -> Any:
    """A value that is one of two, by the way that was taken."""
    tracer = interpreter.tracer
    if alike(one, other) or absence.alike_choices(one, other, alike):
        return one
    if isinstance(one, View) and isinstance(other, View) and see_the_same(one, other):
        return replace(one, weak=joined_weak(one, other))
    if any(value is UNBOUND or absence.may_be_unbound(value) for value in (one, other)):
        return _join_bindings(interpreter, name, (one, other), (then, otherwise))
    if any(map(absence.may_be_none, (one, other))):
        return _join_choices(interpreter, name, (one, other), (then, otherwise))
    if isinstance(one, tuple | list) and type(one) is type(other) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        parts = [_join(interpreter, f"{name}_{n}", *pair, then, otherwise) for n, pair in pairs]
        return rebuilt(one, parts)
    if is_whole(one) and is_whole(other):
        return _join_wholes(tracer, name, (one, other), (then, otherwise))
    found = [_as_tensor(tracer, v, block) for v, block in ((one, then), (other, otherwise))]
    tensors = [t for t in found if t is not None]
    if len(tensors) < 2:
        return _one_of(tracer, name, (one, other), (then, otherwise))
    shapes = [t.shape for t in tensors]
    if _is_longer_by_data(tracer, tensors):
        return _join_lengths(tracer, name, tensors, (then, otherwise))
    if len(shapes[0]) != len(shapes[1]) or not all(
        same(a, b) for a, b in zip(*shapes, strict=True)
    ):
        return _one_of(tracer, name, (one, other), (then, otherwise))
    return _join_tensors(tracer, name, tensors, (then, otherwise))


def _join_tensors(
    tracer: Tracer, name: str, tensors: Sequence[Tensor], blocks: Sequence[Block]
) -> View:
    """An array, or a number, of two ways, which has one shape on both."""
    place = view_of(tracer.container(name, tensors[0].shape, joined_type(*tensors)))
    place.weak = joined_weak(*tensors)
    types = None
    if run_types.differ(*tensors):
        place.run_type = types = view_of(tracer.container(f"{name}_type", (), INT64))
    for block, tensor in zip(blocks, tensors, strict=True):
        with tracer.within(block):
            if types is not None:
                tracer.write(types, run_types.type_of(tensor))
            tracer.write(place, tensor)
    return place


def _join_wholes(
    tracer: Tracer, name: str, values: tuple[Any, Any], blocks: tuple[Block, Block]
) -> sympy.Symbol:
    """A whole number of two ways: a symbol that each sets."""
    joined = tracer.unique(name)
    tracer.bounds[joined] = (None, None)
    for block, value in zip(blocks, values, strict=True):
        with tracer.within(block):
            tracer.add(SetSymbol(joined, sympy.sympify(value), INT64))
    return symbol(joined)


def _join_choices(
    interpreter: Interpreter, name: str, values: tuple[Any, Any], blocks: tuple[Block, Block]
) -> Any:
    """A value of two ways, which may be None on one of them."""

    def join(one: Any, other: Any) -> Any:
        return _join(interpreter, name, one, other, *blocks)

    choice = absence.joined_choice(interpreter, name, values, blocks, join)
    if choice is None:
        return _one_of(interpreter.tracer, name, values, blocks)
    _set_missing_lengths(interpreter.tracer, values, blocks)
    return choice


def _join_bindings(
    interpreter: Interpreter, name: str, values: tuple[Any, Any], blocks: tuple[Block, Block]
) -> OneOf:
    """A variable of two ways, which one of them may leave unbound."""

    def join(one: Any, other: Any) -> Any:
        return _join(interpreter, name, one, other, *blocks)

    found = absence.joined_bindings(interpreter, name, values, blocks, join)
    _set_missing_lengths(interpreter.tracer, values, blocks)
    return found


def _is_longer_by_data(tracer: Tracer, tensors: Sequence[Tensor]) -> bool:
    """Whether two arrays have other lengths, and data decide one of them."""
    one, other = tensors
    if one.dtype != other.dtype:
        return False
    if one.mask is not None or other.mask is not None:
        return one.mask is not other.mask and _line_lengths(one) and _line_lengths(other)
    if one.ndim != other.ndim or not one.ndim:
        return False
    differ = [
        n for a, b in zip(one.shape, other.shape, strict=True) if not same(a, b) for n in (a, b)
    ]
    return bool(differ) and tracer.is_decided_by_data(*differ)


def _line_lengths(tensor: Tensor) -> bool:
    """Whether a tensor is a vector, or a choice from one."""
    return tensor.ndim == 1 and (tensor.mask is None or tensor.mask.ndim == 1)


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
        tracer.bounds[length] = (None, None)
        tracer.capacities[symbol(length)] = room[d]
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
        with tracer.within(block):
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
    tracer.bounds[which] = (0, 1)
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


def _lengths_of(value: Any) -> set[str]:
    """Names of the symbols in the shapes of what a value holds."""
    if isinstance(value, tuple | list):
        return {name for part in value for name in _lengths_of(part)}
    if isinstance(value, OneOf):
        return _lengths_of(value.values)
    shape = value.shape if isinstance(value, Tensor) else ()
    return {s.name for n in shape for s in getattr(n, "free_symbols", ())}


def _sets(block: Block, name: str) -> bool:
    return any(isinstance(s, SetSymbol) and s.name == name for s in block.statements)


def _kept(tracer: Tracer, name: str, value: Any) -> Any:
    """A value whose tensors are stored."""
    if isinstance(value, tuple | list):
        parts = [_kept(tracer, name, part) for part in value]
        return parts if isinstance(value, list) else rebuilt(value, parts)
    if isinstance(value, RealOrComplex):
        return joined([value], _kept(tracer, name, value.in_complex))
    if isinstance(value, Tensor) and not isinstance(value, View) and value.mask is None:
        return tracer.stored_anew(value, name)
    return value


def _as_tensor(tracer: Tracer, value: Any, block: Block) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if isinstance(value, bool | int | float | complex | np.generic | sympy.Basic | np.ndarray):
        with tracer.within(block):
            return tracer.tensor(value)
    return None
