"""Lists that are elements of lists whose content the run decides, and their other names.

In Python an element and a variable may be one list. Here elements lie in the containers of the list
that has them: a variable that an element was read into sees its changes, one whose list became an
element does not, and neither one follows elements that move. So a variable that would stand for
something else than in Python is not read any more: the program is refused where it reads it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from distspmd.frontend.from_numpy.arrays.values import View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Undecided
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader.bindings import changes_again
from distspmd.frontend.from_numpy.reader.frames import Frame
from distspmd.frontend.tensor_ir.statements import Container, Statement

P = ParamSpec("P")
R = TypeVar("R")


def give(run: Context, own: RunList, value: Any) -> None:
    """A value becomes an element of a list."""
    tracer = run.tracer
    before_change(run, own, moves=True)
    for part in (value, *value) if type(value) in (tuple, list) else (value,):
        if type(part) is list:
            tracer.lists.given[id(part)] = part
        if isinstance(part, RunList):
            _refuse_change_before(run, part)
            _share(run, own, part)
        if type(part) is list or isinstance(part, RunList):
            own.given.append((part, len(tracer.loops)))
        if isinstance(part, View) and part.ndim:
            _must_not_change(run, part)
            note_shared(run, own, part)


def _refuse_change_before(run: Context, value: RunList) -> None:
    """Refuse a list from before a loop that becomes an element in each iteration."""
    if value.owner is None and value.depth < len(run.tracer.loops) and value.changed > value.depth:
        run.tracer.refuse(
            "a list that was made before a loop, and changes in it, becomes an element of another "
            "list in each iteration: in Python all these elements are one list. Put a copy, "
            "list(...)"
        )


ONE_LIST = (
    "a list that is an element of a list of lists is put into one as well, and such elements "
    "change: in Python both are one list. Put a copy, list(...)"
)


def _share(run: Context, own: RunList, part: RunList) -> None:
    """An element of a list becomes an element once more: from here on neither may change."""
    if part.owner is None or (part.is_copy and _is_permutation(run.tracer.node)):
        return
    for root in (_root(own), _root(part)):
        if root.changed > root.depth:
            run.tracer.refuse(ONE_LIST)
        root.is_shared = True


def _keep_change(run: Context, own: RunList) -> None:
    """Note that a list changes, and of an element that those of the whole list do."""
    own.changed = max(own.changed, len(run.tracer.loops))
    if own.owner is not None:
        root = _root(own)
        root.changed = max(root.changed, own.changed)
        if root.is_shared:
            run.tracer.refuse(ONE_LIST)


def _is_permutation(node: object) -> bool:
    """Whether a statement gives elements the places of one another."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    sides = (node.targets[0], node.value)
    if not all(isinstance(side, ast.Tuple) for side in sides):
        return False
    one, other = (sorted(map(ast.unparse, side.elts)) for side in sides)  # type: ignore[attr-defined]
    return one == other


def _root(own: RunList) -> RunList:
    while own.owner is not None:
        own = own.owner
    return own


def _must_not_change(run: Context, part: View) -> None:
    """Refuse an array that is an element and changes later: it would be the same one in Python."""
    for frame in run.tracer.frames:
        for name, seen in frame.variables.items():
            if not isinstance(seen, View) or seen.container is not part.container:
                continue
            if name in frame.changed_in_place and _changes_again(run, frame, name):
                run.tracer.refuse(
                    f"{name!r} is put into a list, and is changed in place: in Python the element "
                    f"changes with it. Put a copy, {name}.copy()"
                )


def _changes_again(run: Context, frame: Frame, name: str) -> bool:
    """Whether an array that a variable has may be changed in place later in the run."""
    if frame is not run.tracer.frames[-1] or frame.statement is None:
        return True
    return changes_again(frame.body, name, frame.statement.lineno)


# -- arrays that are elements ---------------------------------------------------------------------

_WRITTEN = (
    "an element of a list whose content the run decides is written in place, and is an array that "
    "the program has elsewhere, too: in Python both change. Put a copy, .copy(), into the list"
)


_IS_ELEMENT = (
    "{!r} is an element of a list whose content the run decides, of which one was written in "
    "place: in Python it changes with it. Read it from the list, or put a copy into that"
)


def note_shared(run: Context, own: RunList, part: View) -> None:
    """Note that an element is an array, or a part of one, that is not the list's alone."""
    own.shares |= not part.is_whole or _is_seen(run, part)
    own.arrays.add(part.container)
    if own.shares and own.is_written:
        run.tracer.refuse(_WRITTEN)


def _is_seen(run: Context, part: View) -> bool:
    """Whether a variable has an array that each iteration of the loop around does not make anew."""
    loops = run.tracer.loop_nodes
    bound = {
        n.id
        for n in (ast.walk(loops[-1]) if loops else ())
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return any(
        isinstance(value, View) and value.container is part.container and name not in bound
        for _, name, value in _variables(run)
    )


def putting(
    change: Callable[Concatenate[Context, P], R],
) -> Callable[Concatenate[Context, P], R]:
    """Let what a change of a list writes be no write to an element in place."""

    @functools.wraps(change)
    def noted(run: Context, *arguments: P.args, **keywords: P.kwargs) -> R:
        statements = run.tracer.program.block.statements
        first = len(statements)
        found = change(run, *arguments, **keywords)
        run.tracer.lists.puts.update(statements[first:])
        return found

    return cast("Callable[Concatenate[Context, P], R]", noted)


def check_elements(run: Context, statements: Sequence[Statement]) -> None:
    """Refuse writes to elements in place that other arrays would have to follow."""
    lists = [own for own in run.tracer.lists.handles if any(c.ndim > 1 for c in own.columns)]
    if not lists:
        return
    written = set(_written(statements, run.tracer.lists.puts))
    for own in lists:
        if any(column.container in written for column in own.columns if column.ndim > 1):
            own.is_written = True
            if own.shares:
                run.tracer.refuse(_WRITTEN)
            for place, name, value in list(_variables(run)):
                if isinstance(value, View) and value.container in own.arrays:
                    _forget(run, place, name, own.depth, _IS_ELEMENT.format(name))


def _written(statements: Sequence[Statement], puts: set[Statement]) -> Iterator[Container]:
    for statement in statements:
        if statement in puts:
            continue
        if not statement.binds:
            yield from statement.writes()
        for block in statement.blocks():
            yield from _written(block.statements, puts)


# -- lists that are elements ----------------------------------------------------------------------


def before_change(run: Context, own: RunList, *, moves: bool) -> None:
    """A list is about to change.

    Args:
        run: the reading.
        own: the list.
        moves: whether elements get another place, or others take their places.
    """
    _keep_change(run, own)
    if any(own is given for other in run.tracer.lists.handles for given, _ in other.given):
        run.tracer.refuse(
            "a list changes that has become an element of another one: in Python the element "
            "changes with it. Put a copy, list(...), or change it by its index"
        )
    if moves:
        for place, name, value in list(_variables(run)):
            if isinstance(value, RunList) and _is_in(value, own):
                _forget(run, place, name, len(run.tracer.loops))
    while own.owner is not None:
        own = own.owner
        for given, depth in own.given:
            for place, name, value in list(_variables(run)):
                if value is given:
                    _forget(run, place, name, depth)


def _is_in(value: RunList, own: RunList) -> bool:
    """Whether a list is an element of another one, or of its elements."""
    while value.owner is not None:
        value = value.owner
        if value is own:
            return True
    return False


def _variables(run: Context) -> Iterator[tuple[dict[str, Any], str, Any]]:
    for frame in run.tracer.frames:
        for name, value in frame.variables.items():
            yield frame.variables, name, value


def _forget(
    run: Context, variables: dict[str, Any], name: str, depth: int, reason: str = ""
) -> None:
    """Let a variable not be read any more.

    Args:
        run: the reading.
        variables: that have it.
        name: of it.
        depth: how many loops are around the place where it got its list.
        reason: says why not; a list is, if it is not given.
    """
    reason = reason or (
        f"{name!r} is a list that is, or was, an element of another list whose content the run "
        f"decides, and that list has changed; read it by its index, or make a copy, list(...)"
    )
    for loop in run.tracer.loop_nodes[depth:]:
        for part in ast.walk(loop):
            if isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Load):
                run.tracer.refuse(reason)
    variables[name] = Undecided(reason)
