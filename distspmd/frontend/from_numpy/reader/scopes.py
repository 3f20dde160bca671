"""Maps: ``for i, j in dace.map[0:n, 0:m]``, whose iterations have no order.

A body of elements alone is read as one kernel: its variables are expressions, what it writes is
known to what it reads after, and branches become choices. Any other body is a block of statements
that each iteration runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, Load, apply, cast
from distspmd.frontend.from_numpy.arrays.elements import does_not_fit, truth_of
from distspmd.frontend.from_numpy.arrays.failures import note_index
from distspmd.frontend.from_numpy.arrays.kinds import joined_type
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import (
    ABSENT,
    Saved,
    Undecided,
    alike,
    changed,
    one_of,
)
from distspmd.frontend.from_numpy.reader.accumulators import (
    Accumulated,
    OfAnotherType,
    accumulated_names,
    accumulating,
    summed_up,
    without_last,
    without_sums,
)
from distspmd.frontend.from_numpy.reader.bindings import is_read_unbound
from distspmd.frontend.from_numpy.reader.conditions import relation
from distspmd.frontend.from_numpy.reader.map_indices import add_checks, noted
from distspmd.frontend.from_numpy.reader.mutation import MUTABLE, Around, watched
from distspmd.frontend.from_numpy.reader.places import Places
from distspmd.frontend.from_numpy.reader.sharing import collide, inverse_of, without_order
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Index,
    Length,
    Parameter,
    Scope,
    Store,
)
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    is_at_least,
    same,
    subtract,
    symbol,
)
from distspmd.runtime.calls.form import rebuilt

_NEUTRAL = {"add": 0, "multiply": 1, "bitwise_or": 0, "bitwise_xor": 0}


class NotStraight(Exception):
    """A body that is more than elements."""


def map_loop(
    interpreter: Context, node: ast.For, ranges: Sequence[tuple[Whole, Whole, Whole]]
) -> None:
    """Read a loop over a map."""
    tracer = interpreter.tracer
    if tracer.map.straight is not None:
        tracer.map.straight.leave()
    targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
    if len(targets) != len(ranges) or not all(isinstance(t, ast.Name) for t in targets):
        tracer.refuse(f"a map of {len(ranges)} ranges needs as many variables")
    names = [tracer.unique_index(t.id) for t in targets]  # type: ignore[attr-defined]
    parameters = []
    for name, (first, end, step) in zip(names, ranges, strict=True):
        tracer.known.bounds[name] = (first, subtract(end, 1))
        parameters.append(Parameter(name, first, end, step))
    added_to = accumulated_names(interpreter, node)
    saved, known = Saved(interpreter), dict[str, Accumulated]()
    own = [t.id for t in targets]  # type: ignore[attr-defined]
    while True:
        try:
            with accumulating(interpreter, added_to, known) as sums:
                outside = dict(interpreter.variables)
                for target, name in zip(own, names, strict=True):
                    interpreter.variables[target] = symbol(name)
                _read(interpreter, node, names, parameters)
            break
        except OfAnotherType as problem:
            if problem.wanted.name not in added_to:
                raise
            known[problem.wanted.name] = problem.wanted
            saved.restore(interpreter)
    interpreter.variables.clear()
    interpreter.variables.update(outside)
    without_last(interpreter, node, own)
    interpreter.variables.update(sums)
    for name in names:
        del tracer.known.bounds[name]


def _read(
    interpreter: Context, node: ast.For, names: list[str], parameters: Sequence[Parameter]
) -> None:
    """Read the body of a map, as one kernel where it is that."""
    tracer = interpreter.tracer
    inside = dict(interpreter.variables)
    trial = Saved(interpreter)
    node_before = tracer.node
    with watched(tracer, Around.MAP), _parallel(tracer, names):
        try:
            straight = Straight(interpreter, parameters, Places(tracer, parameters))
            tracer.map.straight = straight
            try:
                with noted(tracer) as indices:
                    interpreter.block(node.body)
            finally:
                tracer.map.straight = None
            stores = straight.all_stores()
            tracer.node = node
            add_checks(tracer, indices, parameters)
            straight.places.add_statements()
            stores = without_sums(interpreter, stores, parameters)
            with summed_up(tracer, stores, parameters) as stores:
                if stores:
                    tracer.kernel(stores, parameters, f"map_{node.lineno}")
        except NotStraight:
            tracer.node = node_before
            trial.restore(interpreter)
            interpreter.variables.clear()
            interpreter.variables.update(inside)
            body = Block()
            tracer.map.own.append(set())
            try:
                with tracer.within(body), noted(tracer) as indices:
                    interpreter.block(node.body)
            finally:
                own = tracer.map.own.pop()
            tracer.node = node
            add_checks(tracer, indices, parameters)
            tracer.add(Scope(f"map_{node.lineno}", tuple(parameters), body, frozenset(own)))


@contextmanager
def _parallel(tracer: Tracer, names: list[str]) -> Iterator[None]:
    """Read what iterations run that have no order."""
    tracer.map.parallel.append((len(tracer.map.own), names))
    try:
        yield
    finally:
        tracer.map.parallel.pop()


@dataclass
class _Written:
    """An element that the body has written: what is there now, or what is combined with it."""

    view: View
    index: tuple[Index, ...]
    value: Expression
    conflict: str | None = None


@dataclass
class Straight:
    """The body of a map that is read as one kernel.

    Attributes:
        parameters: of the map.
        written: what the body has written so far.
        places: the indices of its elements.
        unproved: indices of the element that is looked at, with lengths that they may not be below.
    """

    interpreter: Context
    parameters: Sequence[Parameter]
    places: Places
    written: list[_Written] = field(default_factory=list)
    unproved: list[tuple[sympy.Expr, Length]] = field(default_factory=list)

    def leave(self) -> NoReturn:
        """Say that the body is more than elements.

        Raises:
            NotStraight: always.
        """
        raise NotStraight

    @property
    def _tracer(self) -> Tracer:
        return self.interpreter.tracer

    # -- elements -------------------------------------------------------------------------------

    def _place(self, base: View, items: object) -> tuple[Index, ...]:
        """The place of one element."""
        every = items if isinstance(items, tuple) else (items,)
        if len(every) != base.ndim or any(
            i is None or i is Ellipsis or isinstance(i, slice | list | np.ndarray | bool)
            for i in every
        ):
            self.leave()
        found: list[Index] = []
        self.unproved = []
        for item, length in zip(every, base.shape, strict=True):
            if isinstance(item, Tensor):
                if item.ndim or item.dtype.kind not in "iu":
                    self.leave()
                written = {w.view.container for w in self.written}
                place = self.places.of_data(item.element(()), length, written)
                if place is None:
                    self.leave()
                found.append(place)
            else:
                found.append(self.places.of_symbols(self._tracer.as_whole(item), length))
        return base.at(found)

    def read(self, base: Tensor, items: object) -> Tensor | None:
        """An element as it is now."""
        if not isinstance(base, View):
            self.leave()
        place = self._place(base, items)
        expression = self._now(base, place)
        for value, length in self.unproved:
            expression = note_index(self._tracer, expression, value, length)
        return Tensor((), base.dtype, lambda _: expression)

    def _now(self, base: View, place: tuple[Index, ...]) -> Expression:
        original = Load(base.container, place, base.dtype)
        for written in reversed(self.written):
            if written.view.container is not base.container:
                continue
            if self._equal(written.index, place):
                if written.conflict:
                    self.leave()
                return written.value
            if not self._apart(written.index, place):
                self.leave()
        return original

    def _equal(self, a: Sequence[Index], b: Sequence[Index]) -> bool:
        return all(
            same(x, y)
            if isinstance(x, int | sympy.Basic) and isinstance(y, int | sympy.Basic)
            else x == y
            for x, y in zip(a, b, strict=True)
        )

    def _apart(self, a: Sequence[Index], b: Sequence[Index]) -> bool:
        """Whether two elements of one iteration are never the same."""
        for x, y in zip(a, b, strict=True):
            if isinstance(x, int | sympy.Basic) and isinstance(y, int | sympy.Basic):
                difference = subtract(x, y)
                if is_at_least(difference, 1, self._tracer.known.bounds) or is_at_least(
                    subtract(0, difference), 1, self._tracer.known.bounds
                ):
                    return True
        return False

    def write(self, base: object, items: object, value: object) -> bool:
        """Write an element."""
        if not isinstance(base, View):
            self.leave()
        tensor = self._tracer.tensor(value)
        if tensor.ndim:
            self.leave()
        place = self._place(base, items)
        self._now(base, place)  # what was written there before has to be known
        element = tensor.element(())
        if problem := does_not_fit(tensor, element, base.dtype):
            self._tracer.refuse(problem)
        self._set(base, place, cast(element, base.dtype))
        return True

    def _set(self, base: View, place: tuple[Index, ...], value: Expression) -> None:
        for written in self.written:
            if written.view.container is base.container and self._equal(written.index, place):
                written.value = value
                return
        self.written.append(_Written(base, place, value))

    def update(self, base: object, items: object, op: ast.operator, value: object) -> bool:
        """``base[items] op= value``."""
        if not isinstance(base, View):
            self.leave()
        tensor = self._tracer.tensor(value)
        if tensor.ndim:
            self.leave()
        place = self._place(base, items)
        names = self._tracer.parallel_above(base.container)
        if not collide(place, names):
            old = Tensor((), base.dtype, lambda _: old_value)
            old_value = self._now(base, place)
            new = self.interpreter.binary(op, old, tensor)
            self._set(base, place, cast(new.element(()), base.dtype))
            return True
        conflict = without_order(self._tracer, op)
        combined = inverse_of(self._tracer, op, tensor)
        self._combine(base, place, cast(combined.element(()), base.dtype), conflict)
        return True

    def _combine(
        self, base: View, place: tuple[Index, ...], added: Expression, conflict: str
    ) -> None:
        """Combine a value with an element that other iterations may change too."""
        for written in self.written:
            if written.view.container is not base.container:
                continue
            if written.conflict == conflict and self._equal(written.index, place):
                written.value = apply(conflict, written.value, added)
                return
            if written.conflict != conflict:
                self.leave()
        self.written.append(_Written(base, place, added, conflict))

    # -- branches -------------------------------------------------------------------------------

    def branch(self, test: Any, node: ast.If) -> None:
        """``if``: both branches, and a choice."""
        tracer, interpreter = self._tracer, self.interpreter
        if isinstance(test, sympy.Basic):
            condition = tracer.truth(relation(test)).element(())
        else:
            condition = truth_of(test.element((0,) * test.ndim))
        variables = dict(interpreter.variables)
        before = self.written
        self.written = [_copied(w) for w in before]
        with tracer.guarded_by(condition):
            interpreter.block(node.body)
        first, one = dict(interpreter.variables), self.written
        interpreter.variables.clear()
        interpreter.variables.update(variables)
        self.written = [_copied(w) for w in before]
        with tracer.guarded_by(apply("logical_not", condition)):
            interpreter.block(node.orelse)
        second, other = dict(interpreter.variables), self.written
        for name in changed(first, second):
            a, b = first.get(name, ABSENT), second.get(name, ABSENT)
            if a is ABSENT or b is ABSENT:
                found = b if a is ABSENT else a
                if is_read_unbound(tracer.frames[-1].body, name):
                    found = Undecided(f"{name!r} has a value in some iterations of the map only")
                interpreter.variables[name] = found
                continue
            interpreter.variables[name] = self._choice(condition, a, b)
        self.written = self._merged(condition, one, other)

    def _choice(self, condition: Expression, a: object, b: object) -> Any:
        if alike(a, b):
            return a
        if isinstance(a, tuple) and type(a) is type(b) and len(a) == len(b):
            pairs = zip(a, b, strict=True)
            return rebuilt(a, [self._choice(condition, x, y) for x, y in pairs])
        allowed = bool | int | float | complex | np.generic | sympy.Basic | Tensor
        if not isinstance(a, allowed) or not isinstance(b, allowed):
            if isinstance(a, (*MUTABLE, tuple)) or isinstance(b, (*MUTABLE, tuple)):
                self.leave()
            return one_of("a variable", a, b, "by a condition that differs by iteration")
        one, other = self._tracer.tensor(a), self._tracer.tensor(b)
        if one.ndim or other.ndim:
            self.leave()
        dtype = joined_type(one, other)
        found = apply(
            "where", condition, cast(one.element(()), dtype), cast(other.element(()), dtype)
        )
        weak = one.weak if one.weak is other.weak else None
        return Tensor((), dtype, lambda _: found, weak)

    def _merged(
        self,
        condition: Expression,
        one: Sequence[_Written],
        other: Sequence[_Written],
    ) -> list[_Written]:
        found: list[_Written] = []
        places: list[tuple[View, tuple[Index, ...], str | None]] = []
        for written in (*one, *other):
            if not any(
                v.container is written.view.container
                and c == written.conflict
                and self._equal(i, written.index)
                for v, i, c in places
            ):
                places.append((written.view, written.index, written.conflict))
        for view, index, conflict in places:
            values = []
            for side in (one, other):
                match = next(
                    (
                        w
                        for w in side
                        if w.view.container is view.container
                        and w.conflict == conflict
                        and self._equal(w.index, index)
                    ),
                    None,
                )
                if match is not None:
                    values.append(match.value)
                elif conflict is not None:
                    if conflict not in _NEUTRAL:
                        self.leave()
                    values.append(number(_NEUTRAL[conflict], view.dtype))
                else:
                    values.append(Load(view.container, index, view.dtype))
            if values[0] is values[1]:
                found.append(_Written(view, index, values[0], conflict))
                continue
            found.append(_Written(view, index, apply("where", condition, *values), conflict))
        if any(w.conflict is None for w in found):
            self._check_guarded(found)
        return found

    def _check_guarded(self, found: Sequence[_Written]) -> None:
        """An element that may lie outside is written in a branch alone."""
        bounds = self._tracer.known.bounds
        for written in found:
            pairs = zip(written.index, written.view.container.shape, strict=True)
            for index, length in pairs:
                if not isinstance(index, int | sympy.Basic):
                    continue
                if isinstance(index, sympy.Max | sympy.Min):
                    self.leave()
                inside = is_at_least(index, 0, bounds) and is_at_least(
                    subtract(subtract(length, 1), index), 0, bounds
                )
                if not inside:
                    self.leave()

    # -- the end --------------------------------------------------------------------------------

    def all_stores(self) -> list[Store]:
        """The stores of the kernel."""
        stores = [Store(w.view.container, w.index, w.value, w.conflict) for w in self.written]
        self.places.put_in(stores)
        return stores


def _copied(written: _Written) -> _Written:
    return _Written(written.view, written.index, written.value, written.conflict)
