"""Texts of which the run decides: by the way of a branch, or from iteration to iteration.

Such a text is the number of one of several texts, in a container that each way, or each iteration,
writes. A loop that carries one is read again until no iteration gives a text that it has not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, number, view_of
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import readable
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.reader import letters
from distspmd.frontend.from_numpy.reader.texts import (
    Choice,
    Text,
    kept_text,
    known_choice,
    number_in,
    renumbered,
    texts_of,
)
from distspmd.frontend.tensor_ir.statements import Block


@dataclass(frozen=True)
class Texts:
    """The kind of a text that a loop carries: all that it may be."""

    texts: tuple[str, ...]


def join_texts(run: Context, name: str, ways: Sequence[str], blocks: Sequence[Block]) -> Text:
    """A text that is one of two, by the way that was taken."""
    tracer = run.tracer
    if all(map(letters.is_spelled, ways)) and None in map(texts_of, ways):
        return letters.join(run, name, ways, blocks)
    place = view_of(tracer.container(f"{name}_which", (), INT64))
    every: list[str] = []
    for text, block in zip(ways, blocks, strict=True):
        with tracer.within(block), tracer.binding():
            known = texts_of(text)
            if known is None:
                kept = kept_text(text, lambda value: _kept(tracer, value))
                numbers: Tensor = _known(len(every))
                every.append(kept)
            else:
                every += [t for t in known if not any(_is_same(t, e) for e in every)]
                places = [next(n for n, e in enumerate(every) if _is_same(t, e)) for t in known]
                choice = known_choice(text)
                numbers = renumbered(choice.which, places) if choice else _known(places[0])
            tracer.write(place, numbers)
    return Text.of([Choice(place, tuple(every))])


def _is_same(one: str, other: str) -> bool:
    return not isinstance(other, Text) and one == other


def _known(place: int) -> Tensor:
    found = number(place, INT64)
    return Tensor((), INT64, lambda _: found)


def _kept(tracer: Tracer, value: Any) -> Any:
    """A value as it is now."""
    return tracer.stored_anew(value, "said") if isinstance(value, Tensor) else value


# -- loops ----------------------------------------------------------------------------------------


def read_again_with(run: Context, name: str, before: Any, now: Any) -> None:
    """Let a loop carry a text, if that is what a variable is.

    Raises:
        ReadLoopAgain: it is, and all that it may be is known, or all letters that it may have.
    """
    if not isinstance(before, str) or not isinstance(now, str):
        return
    one, other = texts_of(before), texts_of(now)
    if one is not None and other is not None:
        raise ReadLoopAgain(name, Texts(tuple(dict.fromkeys((*one, *other)))))
    letters.read_again_spelled(run, name, before, now)


def place_of_text(tracer: Tracer, name: str, before: str, kind: Texts) -> Text:
    """What stands for a text in all iterations."""
    place = view_of(tracer.container(f"{readable(name)}_which", (), INT64))
    with tracer.binding():
        tracer.write(place, number_in(before, kind.texts))
    return Text.of([Choice(place, kind.texts)])


def moves_of_text(run: Context, name: str, place: Text, now: Any) -> list[tuple[Any, Any]]:
    """What a loop moves of a text behind an iteration: its number, or its letters.

    Raises:
        ReadLoopAgain: it may be one that the loop does not know.
        CannotRoll: it is no text, or has values.
    """
    if letters.is_place(place):
        return letters.moves_of_letters(run, name, place, now)
    choice = known_choice(place)
    assert choice is not None
    assert isinstance(choice.which, View)
    found = texts_of(now) if isinstance(now, str) else None
    if found is None:
        letters.read_again_spelled(run, name, place, now)
        raise CannotRoll(f"{name!r} is another kind of text in the loop")
    if not {*found} <= {*choice.texts}:
        raise ReadLoopAgain(name, Texts(tuple(dict.fromkeys((*choice.texts, *found)))))
    return [(choice.which, number_in(now, choice.texts))]
