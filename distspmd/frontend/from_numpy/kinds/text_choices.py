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
from distspmd.frontend.from_numpy.host.preferred import become_object
from distspmd.frontend.from_numpy.kinds.variables import readable
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.reader.texts import (
    Choice,
    Text,
    known_choice,
    number_in,
    renumbered,
    texts_of,
)
from distspmd.frontend.tensor_ir.statements import Block

_OF_RUN = "a text of which the run decides the letters"


@dataclass(frozen=True)
class Texts:
    """The kind of a text that a loop carries: all that it may be."""

    texts: tuple[str, ...]


def join_texts(run: Context, name: str, ways: Sequence[str], blocks: Sequence[Block]) -> Text:
    """A text that is one of two, by the way that was taken."""
    tracer = run.tracer
    if None in map(texts_of, ways):
        become_object(run, name, _OF_RUN)
    place = view_of(tracer.container(f"{name}_which", (), INT64))
    every: list[str] = []
    for text, block in zip(ways, blocks, strict=True):
        with tracer.within(block), tracer.binding():
            known = texts_of(text)
            assert known is not None
            every += [t for t in known if t not in every]
            places, choice = [every.index(t) for t in known], known_choice(text)
            tracer.write(place, renumbered(choice.which, places) if choice else _known(places[0]))
    return Text.of([Choice(place, tuple(every))])


def _known(place: int) -> Tensor:
    found = number(place, INT64)
    return Tensor((), INT64, lambda _: found)


# -- loops ----------------------------------------------------------------------------------------


def read_again_with(run: Context, name: str, before: object, now: object) -> None:
    """Let a loop carry a text, if that is what a variable is.

    Raises:
        ReadLoopAgain: it is, and all that it may be is known.
        NeedsObject: it is, with other letters in each iteration.
    """
    if not isinstance(before, str) or not isinstance(now, str):
        return
    one, other = texts_of(before), texts_of(now)
    if one is not None and other is not None:
        raise ReadLoopAgain(name, Texts(tuple(dict.fromkeys((*one, *other)))))
    _become_object(run, name)


def _become_object(run: Context, name: str) -> None:
    """Let a text be an object of Python, unless the loop is written out."""
    most = run.tracer.loops[-1] if run.tracer.loops else None
    if not isinstance(most, int) or most > run.tracer.lists.written_out:
        become_object(run, name, _OF_RUN)


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
    choice = known_choice(place)
    assert choice is not None
    assert isinstance(choice.which, View)
    found = texts_of(now) if isinstance(now, str) else None
    if found is None:
        if isinstance(now, str):
            _become_object(run, name)
        raise CannotRoll(f"{name!r} is another kind of text in the loop")
    if not {*found} <= {*choice.texts}:
        raise ReadLoopAgain(name, Texts(tuple(dict.fromkeys((*choice.texts, *found)))))
    return [(choice.which, number_in(now, choice.texts))]
