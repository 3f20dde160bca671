"""Lists whose content the run decides: containers with room for a number of elements, and a count.

A list of Python stays one while a program is read, as long as its content is known. One that a
loop of unknown length changes, that grows by a condition of the run, or that is written at an index
of the run, is told by the place in the source that makes it. The program is then read again, and
what is made there has its elements in containers, one for each number of an element, and its length
in another. Changes of it are statements of the program, so that two names of one list see one
another's changes, in loops and branches as elsewhere.

What a reading finds of such a list, its type of elements and the room that it needs, the next one
begins with; it is settled when nothing new is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from distspmd.expressions.ir import apply, cast
from distspmd.frontend.from_numpy.arrays.run_types import number_of_type, typed
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    MIXED,
    OfRun,
    Tensor,
    View,
    axis,
    index_expression,
    make_view,
    number,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import check_kind
from distspmd.frontend.from_numpy.lists.list_forms import (
    UNKNOWN,
    Form,
    Leaf,
    Row,
    RowOfRun,
    Rows,
    columns_as,
    joined_form,
    leaves,
    of_parts,
)
from distspmd.frontend.tensor_ir.statements import Length

Site = tuple[Any, ...]


@dataclass(frozen=True)
class Facts:
    """What is known of the lists that are made at a place of the source.

    Attributes:
        form: of their elements; None where none was seen.
        grows: whether their length changes.
        room: the most elements that they have; None where the program does not say.
        taken: the most elements that they take over from lists that a loop binds to their names.
        raises: how often readings have raised the room by these.
    """

    form: Form | None = None
    grows: bool = False
    room: Length | None = 0
    taken: Length | None = 0
    raises: int = 0


class DecidedByRun(Exception):
    """What lists hold that are made at a place is decided by the run: the program is read again."""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.site = site


def decided_by_run(run: Context, value: object) -> None:
    """Let what a program does with a list be read with one whose content the run decides.

    Args:
        run: the reading.
        value: the list; nothing happens where no expression is known that makes it.

    Raises:
        DecidedByRun: the program is read again.
    """
    if isinstance(value, dict) and has_names(value):
        return
    known = run.tracer.lists.born.get(id(value))
    if known is not None and known[0] is value and known[1] not in run.tracer.lists.known_lists:
        check_kind(run, type(value))
        raise DecidedByRun(known[1])


def has_names(keys: Iterable[Any]) -> bool:
    """Whether some keys are texts, as those of a structure are; or None."""
    return any(key is None or isinstance(key, str) for key in keys)


class UnknownElement(Exception):
    """An element is read of a list that got none so far: this reading leaves the statement out."""


class Known(Exception):
    """More is known of lists than this reading began with, and it cannot go on without that."""


def must_be_known(tracer: Tracer, own: RunList) -> None:
    """Let a reading end, or leave out a statement, that needs the form of elements.

    Raises:
        Known: the next reading has it.
        UnknownElement: no element was seen yet.
    """
    if own.form is not UNKNOWN:
        return
    if tracer.lists.noted.get(own.site, Facts()).form is not None:
        raise Known
    raise UnknownElement


@dataclass(eq=False)
class RunList(OfRun):
    """A list whose content the run decides.

    Attributes:
        kind: the type of Python that it is.
        form: of its elements.
        columns: the numbers of all elements, one view for each leaf; room comes first in shapes.
        count: how many elements there are; a number where that never changes.
        room: how many there can be.
        is_bounded: whether the program cannot add more than there is room for.
        number: of this list among all.
        depth: how many loops are around the place where it is made.
        first_count: how many elements it is made with, at most.
        iterated: how many loops are being read that iterate over it.
        is_copy: whether changes of it would be lost: it is a copy of what Python would change.
        also: a variable that stands for it, too, if the run takes one way of a branch.
        owner: the list of which it is an element: its columns lie in those of the other.
        given: the lists that have become its elements, each with the number of loops around.
        changed: the most loops that were around a change.
        is_shared: whether an element of it is an element once more, in it or in another list.
        shares: whether an element is an array that the program has elsewhere, too.
        arrays: that have become elements of it.
        is_written: whether an element has been written in place.
    """

    kind: type
    form: Form
    columns: list[View]
    count: View | int
    room: Length
    is_bounded: bool
    site: Site
    number: int
    depth: int
    first_count: Length = 0
    iterated: int = 0
    is_copy: bool = False
    also: str = ""
    owner: RunList | None = None
    given: list[tuple[Any, int]] = field(default_factory=list)
    changed: int = 0
    is_shared: bool = False
    shares: bool = False
    arrays: set[Any] = field(default_factory=set)
    is_written: bool = False

    def as_tensor(self, tracer: Tracer) -> Tensor:
        """It as an array, as ``np.array`` makes it."""
        return as_tensor(tracer, self)


# -- forms ----------------------------------------------------------------------------------------


def form_of(tracer: Tracer, value: Any) -> Form:
    """What an element of a list is made of."""
    if type(value) is tuple:
        return Row(tuple, tuple(form_of(tracer, part) for part in value))
    if type(value) in (list, RowOfRun):
        return of_parts(tracer, [form_of(tracer, part) for part in value])
    if isinstance(value, RunList) and value.kind is list and isinstance(value.count, int):
        return Rows(value.count, value.form)
    if isinstance(value, RunList):
        tracer.refuse(
            "a list of lists whose lengths the run decides; use an array with as many columns as "
            "a list can have, and an array of lengths"
        )
    if isinstance(value, str):
        return Leaf(INT64, int, texts=_all_of(tracer, value))
    if value is None or isinstance(value, dict | set):
        tracer.refuse(
            f"{value!r} in a list or dictionary whose content the run decides; use numbers, "
            "-1 or np.nan say, for what there is not"
        )
    tensor = tracer.tensor(typed(value))
    if tensor.mask is not None or tracer.is_decided_by_data(*tensor.shape):
        tracer.refuse(
            "arrays of lengths that the run decides in a list whose content the run decides; use "
            "arrays of one length"
        )
    weak = tensor.weak if not tensor.ndim else None
    is_mixed = isinstance(value, Tensor) and value.is_mixed
    is_typed = tensor.run_type is not None
    return Leaf(tensor.dtype, weak, tuple(tensor.shape), is_mixed, is_typed=is_typed)


def _all_of(tracer: Tracer, text: str) -> tuple[str, ...]:
    """All that a text may be which is an element of a list."""
    from distspmd.frontend.from_numpy.reader.texts import texts_of

    found = texts_of(text)
    if found is None:
        tracer.refuse(
            f"{text!r} in a list or dictionary whose content the run decides: such a text has to "
            "be one of several that are known; keep the numbers that it is made of"
        )
    return found


def parts_of(form: Form, value: Any) -> list[Any]:
    """The values of an element, in the order of the leaves."""
    if isinstance(form, Leaf) and isinstance(value, str):
        from distspmd.frontend.from_numpy.reader.texts import number_in

        if not form.texts:
            raise Known
        is_known = type(value) is str and value in form.texts
        return [form.texts.index(value) if is_known else number_in(value, form.texts)]
    if isinstance(form, Leaf):
        return [typed(value), number_of_type(value)] if form.is_typed else [value]
    if isinstance(value, RunList):
        assert isinstance(form, Rows)
        columns = [view_of_column(column, form.length) for column in value.columns]
        return columns_in(form.element, value.form, columns)
    if isinstance(form, Rows):
        every = [parts_of(form.element, part) for part in value]
        return [list(column) for column in zip(*every, strict=True)]
    pairs = zip(form.parts, value, strict=True)
    return [found for part, own in pairs for found in parts_of(part, own)]


def columns_in(form: Form, own: Form, columns: Sequence[Tensor]) -> list[Tensor]:
    """Columns of elements of one form as those of a form that holds them.

    Args:
        form: the wanted one.
        own: the form of the columns.
        columns: one for each leaf.
    """
    rest = list(columns)
    found = columns_as(form, own, rest)
    if rest or len(found) != len(leaves(form)):
        raise Known
    return found


# -- what is known of lists -----------------------------------------------------------------------


def site_of(tracer: Tracer, node: object) -> Site:
    """The place in the source of an expression; in our functions also that of their call."""
    names = ("lineno", "col_offset", "end_lineno", "end_col_offset")
    found: Site = ()
    for frame in reversed(tracer.frames):
        found += (frame.file, type(node).__name__, *(getattr(node, name, 0) for name in names))
        node = frame.called_at
        if node is None:
            break
    return found


def note(tracer: Tracer, own: RunList, value: Any) -> None:
    """Keep of what form an element is that a list gets."""
    note_form(tracer, own, form_of(tracer, value))


def note_form(tracer: Tracer, own: RunList, form: Form) -> None:
    """Keep of what form elements are that a list gets, or one that it is an element of."""
    while own.owner is not None:
        assert isinstance(own.count, int)
        form, own = Rows(own.count, form), own.owner
    known = tracer.lists.noted.get(own.site, Facts())
    tracer.lists.noted[own.site] = replace(known, form=joined_form(tracer, known.form, form))


# -- arrays ---------------------------------------------------------------------------------------


def count_of(tracer: Tracer, own: RunList) -> Any:
    """How many elements a list has now: a number, or a symbol."""
    if isinstance(own.count, int):
        return own.count
    found = tracer.read_whole(own.count)
    tracer.known.capacities[found] = own.room
    return found


def view_of_column(column: View, count: Length) -> View:
    """The first elements of a column."""
    shape = (count, *column.shape[1:])
    places = column.at([axis(d) for d in range(column.ndim)])
    return make_view(column.container, shape, places)


def numbers_of(run: Context, own: RunList, what: str) -> View:
    """The numbers that a list has, all of one type; ``what`` is told of others."""
    tracer: Tracer = run.tracer
    if not isinstance(own.form, Leaf) or own.form.shape or own.form.texts:
        tracer.refuse(what)
    if own.form.is_mixed:
        tracer.refuse(MIXED)
    return view_of_column(own.columns[0], count_of(tracer, own))


def as_tensor(tracer: Tracer, own: RunList) -> Tensor:
    """A list as an array, as ``np.array`` makes it."""
    count = count_of(tracer, own)
    views = [view_of_column(column, count) for column in own.columns]
    form = own.form
    while isinstance(form, Rows):
        form = form.element
    if any(leaf.texts for leaf in leaves(form)):
        tracer.refuse("a list of texts is no array of numbers")
    if isinstance(form, Leaf):
        return Tensor(views[0].shape, views[0].dtype, views[0].element)
    alike = all(isinstance(p, Leaf) and p.shape == views[0].shape[1:] for p in form.parts)
    if form is not own.form or not alike:
        tracer.refuse("a list of tuples that are no rows of an array; use a list for each part")
    return _side_by_side(tracer, views)


def _side_by_side(tracer: Tracer, views: Sequence[View]) -> Tensor:
    dtype = np.result_type(*(v.dtype for v in views))
    first = views[0]

    def element(index: tuple[Any, ...]) -> Any:
        place, which, rest = index[0], index[1], index[2:]
        fixed = which if isinstance(which, int) else None
        if fixed is not None:
            return cast(views[fixed].element((place, *rest)), dtype)
        found = cast(views[-1].element((place, *rest)), dtype)
        for n in range(len(views) - 2, -1, -1):
            there = apply("equal", index_expression(which), number(n, np.dtype(np.int64)))
            found = apply("where", there, cast(views[n].element((place, *rest)), dtype), found)
        return found

    made = Tensor((first.shape[0], len(views), *first.shape[1:]), dtype, element)
    return tracer.stored_anew(made, "rows")
