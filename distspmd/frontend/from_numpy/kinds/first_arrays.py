"""Arrays that a loop writes in place while a variable stands for them in some iterations only.

A variable that a loop binds anew has one place for all iterations, with a copy of its array. Where
that array is seen by others, as one of the caller's is, what is written to the copy is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.reader.jumps import RESULT
from distspmd.frontend.from_numpy.reader.sharing import is_own, references
from distspmd.frontend.tensor_ir.statements import Block, Container


class WrittenElsewhere(CannotRoll):
    """Iterations write to different arrays by one name, and others see the first."""


def bind_in_place(tracer: Tracer, place: View, value: Tensor) -> None:
    """Write what a variable is bound to to its own place, which is no change of an array."""
    tracer.assign(place, value)
    tracer.program.block.statements[-1].binds = True


def is_free(tracer: Tracer, view: View) -> bool:
    """Whether nobody but the variable that a loop carries sees the container of a view."""
    return (
        view.is_whole
        and not view.container.is_argument
        and not view.container.is_of_others
        and references(tracer, view.container) == 0
        and is_own(tracer, view.container)
        and not any(alias.touches(view.container) for alias in tracer.links.aliases)
    )


def _is_unseen(tracer: Tracer, view: View) -> bool:
    """Whether what is written to a view is seen by its variable alone, where the program goes on.

    Functions that go on have returned nothing so far.
    """
    own = view.container
    linked = (alias for alias in tracer.links.aliases if alias.touches(own))
    others = (a.source if a.copy.container is own else a.copy for a in linked)
    return (
        view.is_whole
        and is_own(tracer, own)
        and not any(
            each.is_argument or each.is_of_others or references(tracer, each, returned=False)
            for each in (own, *(other.container for other in others))
        )
    )


def is_of_others(tracer: Tracer, value: object) -> bool:
    """Whether others than one variable see a value: the caller, or one of a loop further out."""
    if not isinstance(value, View) or not value.ndim:
        return False
    container = value.container
    is_outer = container.is_argument or container.is_of_others
    return is_outer or references(tracer, container) > 1


def refuse_lost_writes(tracer: Tracer, carried: Iterable[Any]) -> None:
    """See to it that nothing is written in place to a copy of an array that others see.

    Args:
        tracer: reads the body of the loop, to its end.
        carried: what the loop carries, as :mod:`distspmd.frontend.from_numpy.kinds.carried` says.

    Raises:
        WrittenElsewhere: something is.
    """
    arrays = [c for c in carried if isinstance(c.before, View) and isinstance(c.value, View)]
    if tracer.frames[-1].ends_at_return:  # no iteration that writes has given a result before
        arrays = [c for c in arrays if c.name != RESULT]
    seen = [one for one in arrays if one.value.ndim and _is_copy_of_seen(tracer, one, arrays)]
    for one in seen:  # grows: other names stand for its array in a later iteration
        seen += [
            other
            for other in arrays
            if all(other is not known for known in seen)
            and isinstance(other.now, View)
            and other.now.container is one.value.container
        ]
    written = set(changed_in(tracer.program.block)) if seen else set()
    for one in seen:
        if not written.isdisjoint((one.value.container, one.before.container)):
            raise WrittenElsewhere(
                f"{one.name!r} is written in place, and is an array that others see in some "
                f"iterations only; write {seen[0].name} = {seen[0].name}.copy() before the loop, "
                "if the others shall not change"
            )


def _is_copy_of_seen(tracer: Tracer, one: Any, arrays: Iterable[Any]) -> bool:
    """Whether a variable has a copy in the loop, of an array that somebody else sees."""
    container = one.before.container
    return one.value.container is not container and (
        any(other is not one and other.before.container is container for other in arrays)
        or not _is_unseen(tracer, one.before)
    )


def written_in(tracer: Tracer) -> set[Container]:
    """Containers that the block which is read writes in place, and those that follow them."""
    found, before = set(changed_in(tracer.program.block)), -1
    while before < len(found):
        before = len(found)
        for alias in tracer.links.aliases:
            if any(alias.touches(container) for container in found):
                found |= {alias.copy.container, alias.source.container}
    return found


def changed_in(block: Block) -> Iterator[Container]:
    """Containers that statements write but to bind a variable, inside of blocks too."""
    for statement in block.statements:
        if not statement.binds:
            yield from statement.writes()
        for inner in statement.blocks():
            yield from changed_in(inner)
