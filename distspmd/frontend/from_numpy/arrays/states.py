"""States of a reading: what is written down so far, assumed, around, and known of lists.

Each is one idea. A trial that fails puts back what it has changed of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import sympy

from distspmd.frontend.from_numpy.arrays.values import Tensor
from distspmd.frontend.tensor_ir.statements import Block, Container, Length, Statement
from distspmd.frontend.tensor_ir.whole_numbers import Whole

UNROLLED = 512
"""Iterations of a loop that is unrolled, at most."""


Content = dict[Any, Any] | list[Any] | set[Any]


def refill(value: Content, contents: Any) -> None:
    """Give a list, dictionary or set other contents."""
    value.clear()
    if isinstance(value, dict | set):
        value.update(contents)
    else:
        value.extend(contents)


@dataclass
class Program:
    """What is written down.

    Attributes:
        block: where statements are added.
        outermost: the block that has all the others.
        names: of containers and symbols that are taken.
        counts: numbers behind names that are taken at least, by what stands before them.
        last: the line of the last statement, of which results are that no line stores.
        blank: arrays that begin with any elements, by the blocks that make them.
        made: objects of the user's classes that the program has made, by their dictionaries.
    """

    block: Block = field(default_factory=Block)
    names: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    last: tuple[str, int] | None = None
    blank: dict[Container, Block] = field(default_factory=dict)
    made: dict[int, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.outermost = self.block

    def changed_by_trials(self) -> Sequence[Content]:
        """The statements of the block, and the names."""
        return self.block.statements, self.names, self.counts


@dataclass
class Assumptions:
    """What is known of numbers.

    Attributes:
        bounds: of the symbols of loops and scopes, and of values that were read.
        facts: numbers that are not negative, in the branches that are read.
        capacities: the most that lengths can be which data decide.
        most: the most that numbers in containers can be which count elements.
        tables: numbers of containers that are known, and that nothing has changed.
        formulas: whole numbers of which each follows from its place, by containers that nothing has
            changed: symbols for the place, and what the number is.
        relied_on: those of which numbers were taken as known.
        changing: numbers, in order of making, of tables that are not taken as known.
        counted: all tables, in that order.
        rows: variables of loops, and the symbols and containers of numbers that come from elements
            which these choose: ``first[i]``.
    """

    bounds: dict[str, tuple[Whole | None, Whole | None]] = field(default_factory=dict)
    facts: list[sympy.Expr] = field(default_factory=list)
    capacities: dict[Any, Length] = field(default_factory=dict)
    most: dict[Container, Length] = field(default_factory=dict)
    tables: dict[Container, Any] = field(default_factory=dict)
    formulas: dict[Container, tuple[tuple[sympy.Symbol, ...], Whole]] = field(default_factory=dict)
    relied_on: set[Container] = field(default_factory=set)
    changing: frozenset[int] = frozenset()
    counted: list[Container] = field(default_factory=list)
    rows: set[Any] = field(default_factory=set)

    def changed_by_trials(self) -> Sequence[Content]:
        """The bounds."""
        return (self.bounds,)


class MapOfIndices(Protocol):
    """What looks at the indices in the body of a parallel map, with so many blocks around it."""

    depth: int

    def note(self, tracer: Any, value: sympy.Expr, length: Length) -> bool:
        """Look at an index of a dimension of some length; whether it does."""


@dataclass
class MapContext:
    """The parallel maps around, the innermost one last.

    Attributes:
        own: names of the containers of each.
        parallel: parameters of each with the number of maps outside of it.
        maps: what looks at the indices of each.
        in_range: whether indices in inner blocks are in range, of those read so far.
        straight: the body of a map that is read as one kernel, if one is.
        accumulated: numbers that the iterations add to, with their types.
        of_maps: why variables have no value that a map has set.
    """

    own: list[set[str]] = field(default_factory=list)
    parallel: list[tuple[int, list[str]]] = field(default_factory=list)
    maps: list[MapOfIndices] = field(default_factory=list)
    in_range: list[sympy.Basic] = field(default_factory=list)
    straight: Any = None
    accumulated: dict[Container, Any] = field(default_factory=dict)
    of_maps: dict[str, str] = field(default_factory=dict)

    def changed_by_trials(self) -> Sequence[Content]:
        """The names of each."""
        return self.own, *self.own


@dataclass
class ListFacts:
    """Lists whose content the run decides.

    Attributes:
        known_lists: what is known, by the places that make them.
        noted: what this reading has found of them.
        written_out: iterations of a loop, at most, that is written out for the sake of lists.
        keeps_loop: whether a loop that might be written out stayed one, with lists of the run.
        born: lists of Python that expressions have made, with the places, by identity.
        given: those that are elements of a list whose content the run decides.
        handles: all lists whose content the run decides.
        needs: by their numbers, how many elements they may get; None where that has no bound.
        has_left_out: whether statements were left out that read lists without elements so far.
        room: elements of lists whose growth has no bound.
        puts: statements that put elements into lists, or move them.
    """

    known_lists: Mapping[Any, Any] = field(default_factory=dict)
    noted: dict[Any, Any] = field(default_factory=dict)
    written_out: int = UNROLLED
    keeps_loop: bool = False
    born: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    given: dict[int, Any] = field(default_factory=dict)
    handles: list[Any] = field(default_factory=list)
    needs: dict[int, Length | None] = field(default_factory=dict)
    has_left_out: bool = False
    room: Length = 0
    puts: set[Statement] = field(default_factory=set)

    def changed_by_trials(self) -> Sequence[Content]:
        """What this reading has found."""
        return self.needs, self.noted


@dataclass
class Links:
    """Who sees the same elements, as the run decides.

    Attributes:
        aliases: containers that may have the elements of an array.
        elements: containers of all elements of a list of which the run decides the one, with pairs
            of each part and the element; None where these have no place.
        joined: containers of two ways of a branch, with those of the ways.
        ambiguous: lists, dictionaries and objects of which the run decides who sees them.
        followed: statements of which the writes to such containers have reached the others.
        copies: containers of masks that were kept, each with the mask, and with the block and the
            number of its statements when it was.
    """

    aliases: list[Any] = field(default_factory=list)
    elements: dict[Container, Any] = field(default_factory=dict)
    joined: dict[Container, list[Container]] = field(default_factory=dict)
    ambiguous: dict[int, tuple[Any, str]] = field(default_factory=dict)
    followed: set[Statement] = field(default_factory=set)
    copies: dict[Container, tuple[Any, Block, int]] = field(default_factory=dict)

    def changed_by_trials(self) -> Sequence[Content]:
        """The aliases."""
        return (self.aliases,)


@dataclass
class Hooks:
    """What a reading asks of rooms above, which enter it.

    Attributes:
        ends_if: ends the program with an error where a condition of symbols holds.
        chooses: the elements that the mask of a tensor chooses, as an array.
        form_of: the form in which a value is returned, and the tensors in it.
    """

    ends_if: Callable[..., None] | None = None
    chooses: Callable[[Any, Tensor], Tensor] | None = None
    form_of: Callable[[Any, Any], Any] | None = None
