"""Values that are one of several things which no array holds: alternatives, and flags that tell.

A choice is a tree of two-way choices; its leaves are the alternatives. Of two ways of a branch, and
of the iterations of a loop, alternatives of one form become one, and the flags say which it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.kinds import is_whole
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.carried_records import has_parts, parts_of
from distspmd.frontend.from_numpy.kinds.variables import UNBOUND, OneOf, Undecided, alike
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import same, symbol

MOST = 6
"""Alternatives of one value, at most."""

Path = tuple[tuple[sympy.Basic, int], ...]


@dataclass(frozen=True, eq=False)
class Leaf:
    """An alternative of a value.

    Attributes:
        value: what it is.
        path: flags, and what they are, where the value is this one.
    """

    value: Any
    path: Path = ()

    @property
    def holds(self) -> sympy.Basic:
        """1 where the value is this alternative, and 0 elsewhere."""
        found = sympy.Integer(1)
        for flag, value in self.path:
            found *= flag if value else 1 - flag
        return found


def leaves(value: Any, path: Path = ()) -> Iterator[Leaf]:
    """The alternatives of a value; one, if it is no choice."""
    if not isinstance(value, OneOf):
        yield Leaf(value, path)
        return
    for place, part in enumerate(value.values):
        yield from leaves(part, (*path, (value.which, 1 - place)))


def is_choice(value: Any) -> bool:
    """Whether a value is a choice whose alternatives are all known, bound ones."""
    if not isinstance(value, OneOf):
        return False
    every = [leaf.value for leaf in leaves(value)]
    return not any(each is UNBOUND or isinstance(each, Undecided) for each in every)


def arrays_among(value: Any) -> list[Tensor]:
    """The alternatives of a value that are arrays, and no numbers."""
    found = [leaf.value for leaf in leaves(value)]
    return [each for each in found if isinstance(each, Tensor) and each.ndim]


def have_one_form(one: Any, other: Any) -> bool:
    """Whether two alternatives are values of which one place can hold either."""
    if _is_number(one) or _is_number(other):
        return _is_number(one) and _is_number(other)
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        if one.mask is not None or other.mask is not None:
            return one is other
        return one.ndim == other.ndim and all(map(same, one.shape, other.shape))
    if type(one) is type(other) and isinstance(one, tuple | list):
        return len(one) == len(other)
    if type(one) is type(other) and has_parts(one):
        return list(parts_of(one)) == list(parts_of(other))
    return alike(one, other)


def _is_number(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0 and value.mask is None
    return is_whole(value) or isinstance(value, bool | int | float | complex)


def joined(
    run: Context,
    name: str,
    values: Sequence[Any],
    blocks: Sequence[Block],
    join: Callable[[Any, Any], Any],
    kept: Callable[[Any], Any],
) -> OneOf | None:
    """A value of two ways, of which one at least is a choice; None where they do not fit.

    Args:
        run: the reading.
        name: of the value.
        values: what it is on each way.
        blocks: the ways.
        join: of two alternatives of one form, what is one of them by the way that was taken.
        kept: of an alternative of one way, what it is behind both; its block is being written.
    """
    groups = _grouped([list(leaves(value)) for value in values])
    if groups is None:
        return None
    made = []
    for group in groups:
        one, other = group
        if one is not None and other is not None:
            made.append(join(one.value, other.value))
            continue
        (place,) = (n for n, leaf in enumerate(group) if leaf is not None)
        with run.tracer.within(blocks[place]):
            made.append(kept(group[place].value))  # type: ignore[union-attr]
    if any(isinstance(each, Undecided) for each in made):
        return None
    flags = [run.tracer.unique(f"{name}_which") for _ in groups[1:]]
    for n, flag in enumerate(flags):
        run.tracer.bounds[flag] = (0, 1)
        for way, block in enumerate(blocks):
            leaf = groups[n][way]
            with run.tracer.within(block):
                holds = sympy.Integer(0) if leaf is None else leaf.holds
                run.tracer.add(SetSymbol(flag, holds, INT64))
    found = made[-1]
    for value, flag in reversed(list(zip(made, flags, strict=False))):
        found = OneOf(f"{name!r} is one of several things here", symbol(flag), (value, found))
    return found  # type: ignore[no-any-return]


def _grouped(ways: Sequence[list[Leaf]]) -> list[list[Leaf | None]] | None:
    """Alternatives of two ways by their forms; None where one way has two of one form."""
    groups: list[list[Leaf | None]] = []
    for way, every in enumerate(ways):
        for leaf in every:
            own = (g for g in groups if _fits(g, leaf))
            group = next(own, None)
            if group is None:
                group = [None, None]
                groups.append(group)
            if group[way] is not None:
                return None
            group[way] = leaf
    return groups if 1 < len(groups) <= MOST else None


def _fits(group: list[Leaf | None], leaf: Leaf) -> bool:
    return any(each is not None and have_one_form(each.value, leaf.value) for each in group)


# -- loops ----------------------------------------------------------------------------------------


def is_wider(one: Any, other: Any) -> bool:
    """Whether a choice has more alternatives than another value, and no more than there may be."""
    return len(list(leaves(other))) < len(list(leaves(one))) <= MOST and is_choice(one)


class Wider(Exception):
    """A loop carries a value that has another alternative.

    Attributes:
        value: the alternative.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def moved(place: OneOf, now: Any) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """What a loop moves into the place of a choice.

    Args:
        place: the choice whose flags and alternatives are places.
        now: what the value is at the end of an iteration.

    Returns:
        The flags with what they are next, and the alternatives with theirs.

    Raises:
        Wider: it is something that the place has not.
    """
    places = list(leaves(place))
    pairs: list[tuple[Leaf, Leaf]] = []
    for leaf in leaves(now):
        own = next((p for p in places if have_one_form(p.value, leaf.value)), None)
        if own is None or any(p is own for p, _ in pairs):
            raise Wider(leaf.value)
        pairs.append((own, leaf))
    flags: dict[Any, sympy.Basic] = {s: sympy.Integer(0) for s in place.symbols()}
    for own, leaf in pairs:
        for flag, value in own.path:
            flags[flag] += leaf.holds if value else 0
    return [*flags.items()], [(own.value, leaf.value) for own, leaf in pairs]
