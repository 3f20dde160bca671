"""What variables that a loop binds are after it: what they were before the last iteration ended.

Where a loop ends an iteration, it writes what it carries to its places. A variable that stands for
one of these places, ``old = x`` or ``j = 2 * i``, and is read after the loop keeps what was there.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy

from distspmd.frontend.from_numpy.arrays.choosing import chosen
from distspmd.frontend.from_numpy.arrays.elements import known_number
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    Demanded,
    Tensor,
    View,
    make_view,
    view_of,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import OneOf
from distspmd.frontend.from_numpy.kinds.varying import ReadLoopAgain
from distspmd.frontend.from_numpy.reader.bindings import once_per_node
from distspmd.frontend.from_numpy.reader.texts import Text, kept_text, values_in
from distspmd.frontend.tensor_ir.statements import Container, SetSymbol, loads_of
from distspmd.frontend.tensor_ir.whole_numbers import simplified, symbol
from distspmd.runtime.calls.form import rebuilt


@once_per_node
def names_read(node: ast.AST) -> Counter[str]:
    """How often a part of a program reads each variable."""
    found: Counter[str] = Counter()
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store):
            found[part.id] += 1
        elif isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
            found[part.target.id] += 1
    return found


def has_one_type(run: Context, node: ast.AST, name: str, again: ReadLoopAgain) -> bool:
    """Whether a variable is a number or array of one type behind a loop, run or not, that reads it.

    Such a one is carried, although each iteration binds it before it reads it.

    Args:
        run: the reading.
        node: the loop.
        name: of the variable.
        again: the kind of it, or of a part of it, by which the loop would be read again.
    """
    is_typed = not isinstance(again.kind, tuple) or again.kind[-1]
    reads = run.tracer.frames[-1].reads
    if is_typed or reads is None or not isinstance(node, ast.While):
        return False
    return reads[name] > names_read(node)[name]


def keep_last(
    run: Context,
    node: ast.AST,
    carried: set[tuple[int, Any]],
    moves: Sequence[tuple[Any, Any]],
) -> list[SetSymbol]:
    """Let variables that are read after a loop keep what they stand for before it moves on.

    Args:
        run: the reading, at the end of the body of the loop.
        node: the loop.
        carried: identity of the holder and key of each variable that the loop carries itself.
        moves: places, with what is written to each next.

    Returns:
        Statements that come before the loop.
    """
    keeper = _Keeper(run.tracer, moves)
    inside, frames = names_read(node), run.tracer.frames
    for frame in frames:
        for name, value in list(frame.variables.items()):
            if (id(frame.variables), name) in carried or not keeper.concerns(value):
                continue
            reads = None if name.startswith("__") or frame is not frames[-1] else frame.reads
            if reads is not None and reads[name] <= inside[name]:
                continue
            frame.variables[name] = keeper.kept(value)
    return keeper.before


class _Keeper:
    """What places held, in symbols and containers of their own, for all that stands for them."""

    def __init__(self, tracer: Tracer, moves: Sequence[tuple[Any, Any]]) -> None:
        self.tracer = tracer
        self.containers = {p.container for p, _ in moves if isinstance(p, View)}
        self.symbols = {p for p, _ in moves if isinstance(p, sympy.Symbol)}
        self.before: list[SetSymbol] = []
        self.last: dict[sympy.Symbol, sympy.Symbol] = {}
        self.copies: dict[Container, View] = {}

    def concerns(self, value: object) -> bool:
        """Whether a value is one of the places, or has one in it."""
        if isinstance(value, sympy.Basic):
            return bool(value.free_symbols & self.symbols)
        if isinstance(value, View):
            own = value.container in self.containers
            return own or any(map(self.concerns, (*value.place, *value.shape)))
        if isinstance(value, Demanded):
            return False
        if isinstance(value, Tensor):
            return self.concerns(known_number(value)) or any(map(self._is_read, _parts(value)))
        if isinstance(value, Text):
            return any(map(self.concerns, values_in(value)))
        return any(map(self.concerns, _inside(value)))

    def _is_read(self, tensor: Tensor) -> bool:
        probe = tuple(symbol(f"__probe{d}") for d in range(tensor.ndim))
        loads = list(loads_of(tensor.element(probe)))
        return any(load.array in self.containers for load in loads) or any(
            self.concerns(i) for load in loads for i in load.index
        )

    def kept(self, value: object) -> Any:
        """A value in terms of what the places hold now."""
        if not self.concerns(value):
            return value
        if isinstance(value, sympy.Basic):
            return self._whole(value)
        if isinstance(value, View):
            return self._view(value)
        if isinstance(value, Tensor):
            plain = chosen(self.tracer, value) if value.mask is not None else value
            return self.tracer.stored_anew(plain, "last")
        if isinstance(value, Text):
            return kept_text(value, self.kept)
        if isinstance(value, list):
            value[:] = [self.kept(v) for v in value]
        elif isinstance(value, dict):
            value.update({key: self.kept(v) for key, v in value.items()})
        elif isinstance(value, OneOf):
            one, other = map(self.kept, value.values)
            return OneOf(value.reason, self._whole(value.which), (one, other))
        elif isinstance(value, tuple):
            return rebuilt(value, [self.kept(v) for v in value])
        return value

    def _whole(self, value: object) -> Any:
        if not isinstance(value, sympy.Basic):
            return value
        for each in sorted(value.free_symbols & self.symbols, key=str):
            if each not in self.last:
                name = self.tracer.unique(f"{each.name}_last")
                self.tracer.known.bounds[name] = self.tracer.known.bounds.get(
                    each.name, (None, None)
                )
                if each in self.tracer.known.capacities:
                    self.tracer.known.capacities[symbol(name)] = self.tracer.known.capacities[each]
                self.tracer.add(SetSymbol(name, each, INT64))
                self.before.append(SetSymbol(name, sympy.Integer(0), INT64))
                self.last[each] = symbol(name)
        return simplified(value.xreplace(self.last))

    def _view(self, value: View) -> View:
        container = value.container
        if container in self.containers:
            if container not in self.copies:
                self.copies[container] = self.tracer.stored_anew(view_of(container), "last")
            container = self.copies[container].container
        place, shape = (tuple(map(self._whole, each)) for each in (value.place, value.shape))
        return make_view(container, shape, place, is_merged=value.is_merged, weak=value.weak)


def _parts(value: Tensor) -> Iterator[Tensor]:
    yield value
    if value.mask is not None:
        yield value.mask


def _inside(value: object) -> Sequence[Any]:
    """What a value has in it that may stand for places."""
    if isinstance(value, OneOf):
        return (value.which, *value.values)
    if isinstance(value, Mapping):
        return tuple(value.values()) if len(value) < 1000 and "__builtins__" not in value else ()
    if isinstance(value, tuple | list) and len(value) < 1000:
        return tuple(value)
    return ()
