"""Arrays that are one of two, as the run decides: writes to one are writes to the other.

``y = x if fits else x / n`` has a container of its own, and is the array ``x`` on one way all the
same. So a symbol says of each array that others see whether it is the one. What writes to either in
place is followed by a copy to the other where the symbol is 1.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sympy

from distspmd.frontend.from_numpy.arrays.images import Alias, Image
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, axis, make_view
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.absence import may_be_absent, value_of
from distspmd.frontend.from_numpy.kinds.carried_variables import move_symbols
from distspmd.frontend.from_numpy.kinds.variables import see_the_same
from distspmd.frontend.from_numpy.lists.aliases import check_elements
from distspmd.frontend.from_numpy.reader.conditions import relation_text
from distspmd.frontend.from_numpy.reader.sharing import is_seen, references
from distspmd.frontend.tensor_ir.statements import Block, Branch, Container, SetSymbol, Statement
from distspmd.frontend.tensor_ir.whole_numbers import Whole, symbol

_ONE, _ZERO = sympy.Integer(1), sympy.Integer(0)
_INSTEAD = "write a copy, .copy(), where it gets its name, if the other shall not change"


def link(
    tracer: Tracer,
    name: str,
    place: View,
    values: Sequence[Tensor],
    blocks: Sequence[Block],
    ways: Sequence[Mapping[str, Any]],
) -> None:
    """Say of which arrays a container of two ways may have the elements.

    Args:
        tracer: the reading, behind both ways.
        name: of the variable.
        place: the container.
        values: what lies in it on each way.
        blocks: the ways.
        ways: the variables at their ends.
    """
    if not place.ndim:
        return
    tracer.links.joined[place.container] = [v.container for v in values if isinstance(v, View)]
    found = [
        _sources(tracer, value, {**way, name: None})
        for value, way in zip(values, ways, strict=True)
    ]
    for source in _each_once(source for own in found for source in own):
        which = tracer.unique(f"{name}_is")
        tracer.known.bounds[which] = (0, 1)
        made = Alias(name, place, source, symbol(which))
        for own, block in zip(found, blocks, strict=True):
            why = next((known for each, known in own.items() if see_the_same(each, source)), None)
            if isinstance(why, Alias):
                made.needs.append(why)
            value = why.holds if isinstance(why, Alias) else _ZERO if why is None else _ONE
            with tracer.within(block):
                tracer.add(SetSymbol(which, value, INT64))
            made.sets.append(block.statements[-1])
        tracer.links.aliases.append(made)
    held = {v.container for v in values if isinstance(v, View)} - {place.container}
    images = [a.source for a in tracer.links.aliases if a.follows and a.copy.container in held]
    images += [v.base for v in values if isinstance(v, Image)]
    tracer.links.aliases += [Alias(name, place, source, None) for source in _each_once(images)]


def note_elements(tracer: Tracer, whole: Tensor, values: object) -> None:
    """Say that a container has the elements of a list, one of which is changed where it is.

    Args:
        tracer: the reading.
        whole: the elements, one after the other.
        values: the list.
    """
    if not isinstance(whole, View) or not isinstance(values, list | tuple) or whole.ndim < 2:
        return
    if all(isinstance(each, View) and each.ndim for each in values):
        inner = [axis(d) for d in range(whole.ndim - 1)]
        tracer.links.elements[whole.container] = [
            (make_view(whole.container, each.shape, (place, *inner)), each)
            for place, each in enumerate(values)
        ]
    elif any(isinstance(each, Tensor | np.ndarray) for each in values):
        tracer.links.elements[whole.container] = None


def _sources(tracer: Tracer, value: Tensor, way: Mapping[str, Any]) -> dict[View, Any]:
    """Arrays that others see and that a value stands for, some where an alias holds."""
    if not isinstance(value, View) or value.is_repeated:
        return {}
    container = value.container
    known = [
        a for a in tracer.links.aliases if a.copy.container is container and a.holds is not None
    ]
    seen = is_seen(tracer, container, way) or any(
        a.source.container is container for a in tracer.links.aliases
    )
    found: dict[View, Any] = {a.source: a for a in known} if value.is_whole else {}
    if seen or (known and not value.is_whole):
        found[value] = _ALWAYS
    return found


_ALWAYS = object()


def _each_once(views: Iterable[View]) -> list[View]:
    found: list[View] = []
    for view in views:
        if not any(see_the_same(view, other) for other in found):
            found.append(view)
    return found


# -- what follows a write -------------------------------------------------------------------------


def follow_writes(run: Context, node: ast.stmt, block: Block, first: int) -> None:
    """Copy what the statements of a block have written to arrays that may be the same ones.

    Args:
        run: the reading.
        node: the statement of the program.
        block: that is read.
        first: the place of the first of these statements.
    """
    tracer = run.tracer
    has_statements = hasattr(node, "body")  # of which the writes have been followed
    if not has_statements:
        check_elements(run, block.statements[first:])
    if has_statements or not (tracer.links.aliases or tracer.links.elements):
        tracer.links.followed.update(block.statements[first:])
        return
    written: dict[Container, None] = {}
    for statement in block.statements[first:]:
        for container in _written(statement, tracer.links.followed):
            written[container] = None
    for container in written:
        images = _written_images(tracer, container, written)
        _follow(run, container, {container, *images})


def _written(statement: Statement, followed: set[Statement]) -> Iterator[Container]:
    """Containers that a statement writes in place, and of which no copies have been made so far."""
    if statement in followed:
        return
    followed.add(statement)
    if not statement.binds:
        yield from statement.writes()
    for inner in statement.blocks():
        for each in inner.statements:
            yield from _written(each, followed)


def _written_images(
    tracer: Tracer, container: Container, written: Collection[Container]
) -> list[Container]:
    """Images beside one that a statement has written, which are what it has written to them.

    Raises:
        Refusal: it has written an array and an image of it.
    """
    found = []
    for alias in tracer.links.aliases:
        if alias.follows is None or alias.copy.container not in written:
            continue
        if alias.source.container in written:
            tracer.refuse(
                f"a statement writes an array, and {alias.name!r}, which has its memory; write "
                "them in two statements"
            )
        if alias.copy.container is not container:
            found.append(alias.copy.container)
    return found


def _follow(run: Context, container: Container, seen: set[Container]) -> None:
    tracer = run.tracer
    for whole, pairs in list(tracer.links.elements.items()):
        others = whole not in seen and references(tracer, whole, returned=False)
        if whole is container or others:
            _follow_elements(run, container, whole, pairs, seen)
    for alias in list(tracer.links.aliases):
        if not alias.touches(container):
            continue
        target, value = alias.ends(container)
        if target.container in seen or not is_seen(tracer, target.container, returned=False):
            continue
        knows = alias.holds is not None or (alias.follows and value is not None)
        if not knows or tracer.map.parallel or tracer.map.straight is not None:
            tracer.refuse(f"{alias.why_not}; {_INSTEAD}")
        _mark(alias)
        body = Block()
        with tracer.within(body), tracer.binding():
            tracer.write(target, value)
            _follow(run, target.container, {*seen, target.container})
        if alias.follows:
            tracer.program.block.statements += body.statements
            tracer.links.followed |= {*_inside(body)}
            continue
        made = Branch(relation_text(sympy.Eq(alias.holds, 1)), body, Block())
        tracer.add(made)
        tracer.links.followed |= {made, *_inside(body)}


def _follow_elements(
    run: Context, container: Container, whole: Container, pairs: Any, seen: set[Container]
) -> None:
    """Copy an element of a list between its own place and that of all of them."""
    tracer = run.tracer
    touched = [p for p in pairs or () if whole is container or p[1].container is container]
    if (pairs is None and whole is container) or (touched and tracer.map.parallel):
        tracer.refuse(
            "an element of a list of arrays is written in place, of which the run decides the one; "
            "write an array of them, np.stack, and its rows"
        )
    around = {*seen, whole, *(row.container for _, row in pairs or ())}
    for part, row in touched:
        target, value = (row, part) if whole is container else (part, row)
        if target.container in seen:
            continue
        first = len(tracer.program.block.statements)
        with tracer.binding():
            tracer.write(target, value)
            _follow(run, target.container, around)
        tracer.links.followed.update(tracer.program.block.statements[first:])


def _inside(block: Block) -> Iterator[Statement]:
    for statement in block.statements:
        yield statement
        for inner in statement.blocks():
            yield from _inside(inner)


def _mark(alias: Alias) -> None:
    alias.is_followed = True
    for other in alias.needs:
        if not other.is_followed:
            _mark(other)


# -- what loops carry -----------------------------------------------------------------------------


def _present(value: Any) -> Any:
    """What a value is where it is not None, or not unbound."""
    return value_of(value) if may_be_absent(value) else value


@dataclass(frozen=True)
class _Array:
    """An array that a loop carries, which may be None at times."""

    name: str
    value: Any
    now: Any
    before: Any

    @classmethod
    def of(cls, carried: Any) -> _Array:
        """The array of a variable."""
        return cls(carried.name, *map(_present, (carried.value, carried.now, carried.before)))


@dataclass(frozen=True)
class Outside:
    """An array from before a loop, which the loop does not carry."""

    value: View

    @property
    def name(self) -> str:
        """What its container is called."""
        return self.value.container.name

    @property
    def now(self) -> View:
        """What it is at the end of an iteration."""
        return self.value

    before = now


class CarryLink(Exception):
    """A loop is read again, whose iterations let two of its arrays be one, and write to it."""

    def __init__(self, loop: Any, name: str, other: str | Outside) -> None:
        super().__init__(name, other)
        self.loop, self.pair = loop, (name, other)


def enter_links(tracer: Tracer, loop: object) -> None:
    """Let a symbol say of arrays that a loop carries whether they are one, from its head on."""
    for one, other in _pairs(loop):
        which = tracer.unique(f"{one.name}_is")
        tracer.known.bounds[which] = (0, 1)
        are_one = _see_one(one.before, other.before)
        tracer.add(SetSymbol(which, _ONE if are_one else _ZERO, INT64))
        tracer.links.aliases.append(Alias(one.name, one.value, other.value, symbol(which)))


def _pairs(loop: Any) -> list[tuple[Any, Any]]:
    """The arrays that are one at times."""
    by = {c.name: _Array.of(c) for c in loop.carried if isinstance(_present(c.value), View)}
    every = [
        (by.get(name), by.get(other) if isinstance(other, str) else other)
        for name, other in loop.links
    ]
    return [(one, other) for one, other in every if one is not None and other is not None]


def leave_links(
    tracer: Tracer, loop: Any, written: set[Container]
) -> tuple[list[Alias], list[Statement]]:
    """Let the symbols say whether the arrays are one in the next iteration.

    Args:
        tracer: the reading, at the end of the body.
        loop: with what it carries.
        written: containers that the body writes in place.

    Returns:
        What may be one array behind the loop, and statements that come before it.

    Raises:
        CarryLink: two arrays become one that the body writes in place.
    """
    arrays = [_Array.of(c) for c in loop.carried if isinstance(_present(c.value), View)]
    arrays = [c for c in arrays if c.value.ndim and isinstance(c.now, View)]
    written = _written_later(tracer, arrays, written)
    known = [(one.value, other.value) for one, other in _pairs(loop)]
    later = []
    for one in arrays:
        others: list[Any] = [*arrays, *_outside(tracer, loop, arrays, one)]
        for other in others:
            both: tuple[View, View] = (one.value, other.value)
            is_known = any(_are_same(both, each) or _are_same(both[::-1], each) for each in known)
            if one is other or is_known or _is_one(tracer, one, other) == 0:
                continue
            if one.value.container is other.value.container:
                continue
            if written.isdisjoint(each.container for each in both):
                later.append(Alias(one.name, *both, None))
                continue
            _carry(loop, one, other)
    move_symbols(tracer, [_next_link(tracer, one, other) for one, other in _pairs(loop)])
    firsts = [_first(tracer, loop, one, written) for one in arrays]
    made = [alias for alias in firsts if alias is not None]
    return [*moved_links(arrays, later), *made], [alias.sets[0] for alias in made]


def _written_later(
    tracer: Tracer, arrays: Sequence[Any], written: set[Container]
) -> set[Container]:
    """Containers that iterations write in place, and those whose arrays a later one writes so.

    Args:
        tracer: the reading, at the end of the body.
        arrays: that the loop carries.
        written: by one iteration.
    """
    found, before = set(written), 0
    while before < len(found):
        before = len(found)
        for one in arrays:
            if one.value.container in found:
                found |= _parts_of(tracer, one.now.container)
    return found


def _parts_of(tracer: Tracer, container: Container) -> set[Container]:
    """A container, and those whose elements lie in it as the run decides."""
    parts, waiting = set(), [container]
    while waiting:
        each = waiting.pop()
        parts.add(each)
        waiting += tracer.links.joined.get(each, ())
    return parts


def _first(tracer: Tracer, loop: object, one: Any, written: set[Container]) -> Alias | None:
    """The link of what a variable is behind a loop and before it, where no iteration binds it."""
    before = one.before
    is_linked_to = any(
        each.name == one.name and _see_one(o.value, before) for each, o in _pairs(loop)
    )
    if not isinstance(before, View) or is_linked_to or _see_one(one.value, before):
        return None
    if not is_seen(tracer, before.container):
        return None
    stays = one.value.container in _parts_of(tracer, one.now.container)
    if stays or not written.isdisjoint((before.container, one.value.container)):
        _carry(loop, one, Outside(before))
    which = tracer.unique(f"{one.name}_is")
    tracer.known.bounds[which] = (0, 1)
    first, later = (SetSymbol(which, value, INT64) for value in (_ONE, _ZERO))
    tracer.add(later)
    made = Alias(one.name, one.value, before, symbol(which))
    made.sets += [first, later]
    return made


def _carry(loop: Any, one: Any, other: Any) -> None:
    """Read a loop again with the link of two arrays.

    Raises:
        CannotRoll: it has been read with it already.
        CarryLink: it has not.
    """
    missing = CarryLink(loop, one.name, other if isinstance(other, Outside) else other.name)
    names = [(name, getattr(each, "name", each)) for name, each in loop.links]
    if (one.name, other.name) in names:
        raise CannotRoll(f"{one.name!r} and {other.name!r} are one array in some iterations")
    raise missing


def _are_same(one: tuple[View, View], other: tuple[View, View]) -> bool:
    return all(map(see_the_same, one, other))


def _outside(tracer: Tracer, loop: Any, arrays: Sequence[Any], one: Any) -> list[Outside]:
    """Arrays from before a loop that a variable may be at the end of an iteration.

    The place of another variable is none of them, even if it is what that was before the loop.
    """
    own = one.now.container
    carried = {each.now.container for each in arrays} - {own}
    carried |= {each.value.container for each in arrays}
    found = [
        a.source for a in tracer.links.aliases if a.copy.container is own and a.holds is not None
    ]
    every = [*found, *([one.now] if one.now.container is not one.value.container else [])]
    return [
        Outside(view)
        for view in _each_once(every)
        if view.container not in carried and view.container.name in loop.names_before
    ]


def _next_link(tracer: Tracer, one: Any, other: Any) -> tuple[sympy.Symbol, Whole]:
    """The symbol of two arrays, and its value for the next iteration."""
    alias = next(
        a
        for a in tracer.links.aliases
        if a.copy is one.value and a.source is other.value and a.holds is not None
    )
    stays = all(_see_one(each.now, each.value) for each in (one, other))
    return alias.holds, alias.holds if stays else _is_one(tracer, one, other)


def _is_one(tracer: Tracer, one: Any, other: Any) -> sympy.Basic:
    """Whether two variables stand for one array at the end of an iteration: 0, 1 or a symbol."""
    if _see_one(one.now, other.now):
        return _ONE
    for alias in tracer.links.aliases:
        is_of_one = alias.holds is not None and alias.copy.container is one.now.container
        if is_of_one and _see_one(alias.source, other.now):
            _mark(alias)
            return alias.holds
    return _ZERO


def _see_one(one: object, other: object) -> bool:
    """Whether two values are views of the same elements."""
    return isinstance(one, View) and isinstance(other, View) and see_the_same(one, other)


def moved_links(arrays: Sequence[Any], links: Sequence[Alias]) -> list[Alias]:
    """The links of arrays behind a loop, and those that moves of names make of them.

    Args:
        arrays: that the loop carries, with what they are at the head and at the end of its body.
        links: of arrays that may be one at the end of an iteration.
    """
    found = list(links)
    for link in found:  # which grows
        ends = [
            [a.value for a in arrays if a.now.container is view.container] or [view]
            for view in (link.copy, link.source)
        ]
        for copy, source in itertools.product(*ends):
            if copy.container is not source.container and not any(
                each.touches(copy.container) and each.touches(source.container) for each in found
            ):
                found.append(replace(link, copy=copy, source=source))
    return found
