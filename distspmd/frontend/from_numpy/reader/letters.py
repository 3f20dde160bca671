"""Texts of which the run decides the letters: cut, joined, compared, and carried by loops.

Such a text is an array of the numbers that its letters have in Unicode, with a length that the run
decides. All letters that there can be are known, so that a letter of it is one of several texts.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy.arrays import checks, indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Tensor,
    axis,
    make_view,
    number,
    view_of,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.kinds.variables import readable
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.list_forms import Leaf
from distspmd.frontend.from_numpy.lists.list_rooms import note_need
from distspmd.frontend.from_numpy.lists.run_lists import (
    RunList,
    must_be_known,
    site_of,
    view_of_column,
)
from distspmd.frontend.from_numpy.reader import ranges, texts
from distspmd.frontend.from_numpy.reader.digits import has_digits, letters_of
from distspmd.frontend.from_numpy.reader.texts import Choice, Letters, Text
from distspmd.frontend.tensor_ir.statements import Block, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    is_at_least,
    multiply,
    same,
    subtract,
    symbol,
)

_FEW = 16
"""Texts of one letter of which the number decides in an expression, at most; more are a table."""


# -- letters --------------------------------------------------------------------------------------


def is_spelled(text: Any) -> bool:
    """Whether a text has no values but letters: what stands in it can be known letter by letter."""
    if not isinstance(text, Text):
        return type(text) is str
    return all(isinstance(p, str | Letters) or _is_known(p) or has_digits(p) for p in text.parts)


def _is_known(part: Any) -> bool:
    return isinstance(part, Choice) and part.is_known


def spelled(run: Context, text: str) -> Letters:
    """The letters of a text.

    Raises:
        Refusal: it has values that are formatted.
    """
    if not is_spelled(text):
        texts.not_known()
    if isinstance(text, Text):
        for_python(run, "letters")
    parts = [_of_part(run, p) for p in (text.parts if isinstance(text, Text) else (text,))]
    found = [part for part in parts if not _is_empty(part)]
    if len(found) < 2:
        return found[0] if found else _of_known(run, "")
    codes = run.call(np.concatenate, [[part.codes for part in found]], {})
    return Letters(codes, _alphabet(letter for part in found for letter in part.alphabet))


def _alphabet(letters: Any) -> tuple[str, ...]:
    return tuple(sorted(set(letters)))


def _is_empty(own: Letters) -> bool:
    return own.codes.shape[0] == 0


def _of_part(run: Context, part: Any) -> Letters:
    if isinstance(part, Letters):
        return part
    if has_digits(part):
        return letters_of(run, part)
    return _of_choice(run, part) if isinstance(part, Choice) else _of_known(run, part)


def _of_known(run: Context, text: str) -> Letters:
    """A text that is known; one of few letters needs no table."""
    numbers = [number(ord(letter), INT64) for letter in text]
    if len(numbers) < 2:
        zero = number(0, INT64)
        element = (lambda _: numbers[0]) if numbers else (lambda _: zero)
        return Letters(Tensor((len(text),), INT64, element), _alphabet(text))
    return Letters(run.tracer.table(np.array([*map(ord, text)])), _alphabet(text))


def _of_choice(run: Context, choice: Choice) -> Letters:
    """One of several texts that are known."""
    tracer = run.tracer
    lengths = [len(text) for text in choice.texts]
    width, alphabet = max(lengths), _alphabet("".join(choice.texts))
    if {*lengths} == {1} and len(lengths) <= _FEW:
        which = choice.of_each([ord(text) for text in choice.texts])
        return Letters(Tensor((1,), INT64, lambda _: which.element(())), alphabet)
    if not width:
        return _of_known(run, "")
    table = tracer.table(np.array([[*map(ord, text.ljust(width))] for text in choice.texts]))
    row = indexing.read(tracer, table, choice.which)
    if {*lengths} == {width}:
        return Letters(row, alphabet)
    length = tracer.read_whole(tracer.tensor(choice.of_each(lengths)))
    tracer.capacities[length] = width
    return Letters(view_of_column(tracer.stored_anew(row, "letters"), length), alphabet)


def text_of(tracer: Tracer, codes: Tensor, alphabet: Sequence[str]) -> Text:
    """The text of some letters, as they are now."""
    return Text.of([Letters(tracer.stored_anew(codes, "letters"), tuple(alphabet))])


def _letter(tracer: Tracer, code: Tensor, alphabet: Sequence[str]) -> Text:
    """A letter as one of several texts."""
    return texts.one_at(alphabet, tracer.stored_anew(_place_in(code, alphabet), "which"))


def _place_in(codes: Tensor, alphabet: Sequence[str]) -> Tensor:
    """The place of each letter in the alphabet."""

    def element(index: Any) -> Any:
        code = codes.element(index)
        found = number(0, INT64)
        for place, letter in enumerate(alphabet[1:], 1):
            there = apply("equal", code, number(ord(letter), INT64))
            found = apply("where", there, number(place, INT64), found)
        return found

    return Tensor(codes.shape, INT64, element)


# -- reading --------------------------------------------------------------------------------------


def length_of(run: Context, text: Text) -> Any:
    """``len(text)``."""
    choice = texts.known_choice(text)
    if choice is not None:
        return choice.of_each([len(each) for each in choice.texts])
    return spelled(run, text).codes.shape[0]


def read(run: Context, text: str, items: Any) -> Any:
    """``text[items]``."""
    known = texts.known_choice(text)
    if not has_data(items) and (type(text) is str or known is not None):
        try:
            return text[items] if known is None else known.of_each([t[items] for t in known.texts])
        except (TypeError, IndexError) as problem:
            run.tracer.fail(problem)
    own = spelled(run, text)
    found = indexing.read(run.tracer, own.codes, items)
    if found.ndim:
        return text_of(run.tracer, found, own.alphabet)
    return _letter(run.tracer, found, own.alphabet)


def by_index(run: Context, text: str) -> tuple[Whole, Any]:
    """How many letters a text has, and the one at an index."""
    own = spelled(run, text)
    codes = run.tracer.stored(own.codes)
    return codes.shape[0], lambda index: _letter(
        run.tracer, indexing.part_at(run.tracer, codes, index), own.alphabet
    )


def listed(run: Context, text: str) -> RunList:
    """``list(text)``."""
    own = spelled(run, text)
    places = _place_in(own.codes, own.alphabet)
    return lists.made_of_columns(run, list, Leaf(INT64, int, texts=own.alphabet), [places])


def are_equal(run: Context, one: str, other: str) -> Any:
    """``one == other``, of which one is a text with values."""
    if texts.texts_of(one) is not None and texts.texts_of(other) is not None:
        return texts.are_equal(one, other)
    tracer = run.tracer
    first, second = (spelled(run, text).codes for text in (one, other))
    lengths = [tracer.tensor(codes.shape[0]) for codes in (first, second)]
    is_as_long = combine(tracer, np.equal, lengths)
    least = first.shape[0]
    if not same(least, second.shape[0]):
        least = sympy.Min(*map(sympy.sympify, (least, second.shape[0])))
    heads = [indexing.read(tracer, codes, slice(0, least)) for codes in (first, second)]
    is_alike = run.call(np.all, [combine(tracer, np.equal, heads)], {})
    found = combine(tracer, np.logical_and, [is_as_long, is_alike])
    return Tensor((), np.dtype(bool), found.element, bool)


def contains(run: Context, text: str, letter: Any) -> Any:
    """``letter in text``, for a letter that is known or one of several."""
    known = texts.texts_of(letter) if isinstance(letter, str) else None
    if known is None or any(len(each) != 1 for each in known):
        run.tracer.refuse("'in' of a text of which the run decides the letters; look for a letter")
    own, sought = spelled(run, text), spelled(run, letter)
    there = run.call(np.any, [combine(run.tracer, np.equal, [own.codes, sought.codes])], {})
    return Tensor((), np.dtype(bool), there.element, bool)


# -- making ---------------------------------------------------------------------------------------


def joined(run: Context, separator: str, values: Any) -> Any:
    """``separator.join(values)``."""
    if isinstance(values, Text) and texts.known_choice(values) is None:
        values = listed(run, values)
    if isinstance(values, RunList):
        return _joined_list(run, separator, values)
    return texts.by_join(separator, [*ranges.static_values(run, values)])


def _joined_list(run: Context, separator: str, own: RunList) -> Text:
    """The texts of a list whose content the run decides, behind each other."""
    tracer = run.tracer
    must_be_known(tracer, own)
    if not isinstance(own.form, Leaf) or not own.form.texts:
        tracer.refuse("TypeError: sequence item: expected str instance")
    (column,) = lists.columns_of(tracer, own)
    every = [text + separator for text in own.form.texts]
    lengths = [len(text) for text in every]
    width = max(1, *lengths)
    table = tracer.table(np.array([[*map(ord, text.ljust(width))] for text in every]))
    if {*lengths} == {1} and not separator:
        codes = run.call(np.take, [indexing.read(tracer, table, (slice(None), 0)), column, 0], {})
    else:
        counts = run.call(np.take, [tracer.table(np.array(lengths)), column, 0], {})
        codes = _behind_each_other(run, table, column, counts, len(separator))
    return text_of(tracer, codes, _alphabet("".join(every)))


def _behind_each_other(
    run: Context, table: Tensor, column: Tensor, counts: Tensor, separator: int
) -> Tensor:
    """The letters of several texts.

    Args:
        run: the reading.
        table: the letters of all that there can be, a row each.
        column: the rows of the texts.
        counts: how many letters each text has, with the separator behind it.
        separator: how many letters that has, which is not behind the last text.
    """
    tracer = run.tracer
    ends = tracer.stored(run.call(np.cumsum, [counts], {}))
    total = tracer.read_whole(run.call(np.sum, [counts], {}))
    tracer.capacities[total] = multiply(tracer.capacity(column.shape[0]), table.shape[1])
    length: Any = sympy.Max(0, subtract(total, separator)) if separator else total
    places = run.call(np.arange, [length], {})
    which = run.call(np.searchsorted, [ends, places], {"side": "right"})
    firsts = combine(tracer, np.subtract, [ends, counts])
    inner = combine(tracer, np.subtract, [places, run.call(np.take, [firsts, which, 0], {})])
    rows = run.call(np.take, [column, which, 0], {})
    return indexing.read(tracer, table, (rows, inner))


def method(run: Context, text: Text, name: str, arguments: Sequence[Any]) -> Any:
    """What a method of a text gives; NotImplemented where it is not one of letters."""
    is_of_letters = is_spelled(text) and texts.known_choice(text) is None
    if not is_of_letters or not all(type(a) is str for a in arguments):
        return NotImplemented
    if name not in ("count", "replace", "upper", "lower"):
        return NotImplemented
    own = spelled(run, text)
    if name in ("upper", "lower") and not arguments:
        return _mapped(run, own, {letter: getattr(letter, name)() for letter in own.alphabet})
    if not arguments or len(arguments[0]) != 1:
        return NotImplemented
    code = ord(arguments[0])
    if name == "count":
        there = combine(run.tracer, np.equal, [own.codes, code])
        return run.call(int, [run.call(np.count_nonzero, [there], {})], {})
    if len(arguments) != 2:
        return NotImplemented
    if not arguments[1]:
        other = run.tracer.stored_anew(combine(run.tracer, np.not_equal, [own.codes, code]))
        kept = run.call(np.compress, [other, own.codes], {})
        return text_of(run.tracer, kept, own.alphabet)
    return _mapped(run, own, {arguments[0]: arguments[1]})


def _mapped(run: Context, own: Letters, by: dict[str, str]) -> Any:
    """A text with other letters in the place of some; NotImplemented where one becomes several."""
    if any(len(letter) != 1 for letter in by.values()):
        return NotImplemented

    def element(index: Any) -> Any:
        code = found = own.codes.element(index)
        for letter, other in by.items():
            there = apply("equal", code, number(ord(letter), INT64))
            found = apply("where", there, number(ord(other), INT64), found)
        return found

    codes = Tensor(own.codes.shape, INT64, element)
    return text_of(run.tracer, codes, _alphabet(by.get(each, each) for each in own.alphabet))


# -- branches -------------------------------------------------------------------------------------


def join(run: Context, name: str, ways: Sequence[str], blocks: Sequence[Block]) -> Text:
    """A text of which each of two ways has other letters."""
    tracer = run.tracer
    found = []
    for text, block in zip(ways, blocks, strict=True):
        with tracer.within(block):
            found.append(spelled(run, text))
    rooms = [sympy.sympify(tracer.capacity(own.codes.shape[0])) for own in found]
    room = sympy.Max(1, *rooms)
    most = int(room) if room.is_Integer else room
    view = view_of(tracer.container(readable(name), (most,), INT64))
    length = tracer.unique(f"{readable(name)}_length")
    tracer.bounds[length] = (None, None)
    tracer.capacities[symbol(length)] = most
    zero = number(0, INT64)
    for own, block in zip(found, blocks, strict=True):
        with tracer.within(block), tracer.binding():
            count = own.codes.shape[0]
            tracer.write(view, Tensor(view.shape, INT64, lambda _: zero))
            if not _is_empty(own):
                tracer.assign(view_of_column(view, count), own.codes)
            tracer.add(SetSymbol(length, sympy.sympify(count), INT64))
    alphabet = _alphabet(letter for own in found for letter in own.alphabet)
    return Text.of([Letters(view_of_column(view, symbol(length)), alphabet)])


# -- loops ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spelled:
    """The kind of a text of which a loop changes the letters.

    Attributes:
        alphabet: all letters that there can be.
    """

    alphabet: tuple[str, ...]


def read_again_spelled(run: Context, name: str, before: str, now: Any) -> None:
    """Let a loop carry the letters of a text, if it stays a loop.

    Raises:
        ReadLoopAgain: it does.
    """
    most = run.tracer.loops[-1] if run.tracer.loops else None
    is_written_out = isinstance(most, int) and most <= run.tracer.written_out
    if not is_written_out and isinstance(now, str) and is_spelled(before) and is_spelled(now):
        raise ReadLoopAgain(name, Spelled(_alphabet(spelled(run, before).alphabet)))


def place_of_letters(
    run: Context, node: ast.For | ast.While, name: str, before: str, kind: Spelled
) -> Text:
    """What stands for a text in all iterations: with room for as many letters as it may get."""
    tracer = run.tracer
    own = spelled(run, before)
    count = own.codes.shape[0]
    with tracer.named(readable(name)):
        site = (*site_of(tracer, node), name, "letters")
        made = lists.empty(run, site, str, count, Leaf(INT64, int))
    (column,) = made.columns
    if not _is_empty(own):
        tracer.assign(lists.part_of(tracer, column, 0, count), own.codes)
    length = tracer.unique(f"{readable(name)}_length")
    tracer.bounds[length] = (None, None)
    tracer.capacities[symbol(length)] = made.room
    tracer.add(SetSymbol(length, sympy.sympify(count), INT64))
    return Text.of([Place(view_of_column(column, symbol(length)), kind.alphabet, made)])


@dataclass(frozen=True, eq=False)
class Place(Letters):
    """The letters of a text in all iterations of a loop.

    Attributes:
        own: the list that has the room for them.
    """

    own: RunList


def is_place(text: Any) -> bool:
    """Whether a text stands for letters in all iterations of a loop."""
    return isinstance(text, Text) and len(text.parts) == 1 and isinstance(text.parts[0], Place)


def moves_of_letters(run: Context, name: str, place: Text, now: Any) -> list[tuple[Any, Any]]:
    """The letters behind an iteration and their number, with where they are written.

    Raises:
        ReadLoopAgain: there are letters that the loop does not know.
        CannotRoll: it is no text, or has values.
    """
    tracer, kept = run.tracer, place.parts[0]
    if not isinstance(now, str) or not is_spelled(now):
        raise CannotRoll(f"{name!r} is another kind of text in the loop")
    found = spelled(run, now)
    alphabet = _alphabet(kept.alphabet + found.alphabet)
    if alphabet != kept.alphabet:
        raise ReadLoopAgain(name, Spelled(alphabet))
    count = found.codes.shape[0]
    _check_room(run, name, kept.own, count)
    moves: list[tuple[Any, Any]] = [(kept.codes.shape[0], count)]
    if not _is_empty(found):
        target = make_view(kept.codes.container, [count], [axis(0)])
        moves.append((target, tracer.stored_anew(found.codes, "next")))
    return moves


def _check_room(run: Context, name: str, own: RunList, count: Whole) -> None:
    """See to it that a text has room for its letters; else the program ends."""
    tracer = run.tracer
    try:
        more = subtract(tracer.capacity(count), own.room)
    except CannotRoll:
        more = None
    if more is not None and is_at_least(subtract(0, more), 0, tracer.bounds):
        return
    note_need(tracer, own, more if more is not None and is_at_least(more, 0, {}) else None)
    what = (
        f"the text {name!r} gets more than the {own.room} letters that it has room for, since the "
        "program does not say how many there are at most"
    )
    checks.end_if(run, sympy.Gt(count, sympy.sympify(own.room)), "RuntimeError", what)
