"""Variables that a parallel map changes: sums over its iterations, and what has no value after it.

A variable that iterations only add to (``total += x[i]``) is one number, in which they meet in any
order. Any other variable that they set has, in Python, the value of the last iteration afterwards;
a map has no last iteration, so it is refused where it is read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, Load, apply
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.elements import substitute
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import (
    Tensor,
    View,
    number,
    view_of,
    whole_expression,
)
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Undecided
from distspmd.frontend.from_numpy.reader.bindings import bound_names, is_written_first
from distspmd.frontend.from_numpy.reader.sharing import combined_with, conflict_of
from distspmd.frontend.tensor_ir.statements import Index, Length, Parameter, Store
from distspmd.frontend.tensor_ir.whole_numbers import add, is_at_least, subtract, symbol


@dataclass(frozen=True)
class Accumulated:
    """The type of a number that the iterations of a map add to, and its type of Python."""

    name: str
    dtype: DType
    weak: type | None


class OfAnotherType(Exception):
    """A number that a map adds to gets another type by that."""

    def __init__(self, wanted: Accumulated) -> None:
        super().__init__(wanted.name)
        self.wanted = wanted


def accumulated_names(run: Context, node: ast.For) -> list[str]:
    """Variables from before a map that its iterations only add to, in whatever operation.

    Raises:
        Refusal: a variable gets from each iteration what the next one reads.
    """
    found = []
    for name in sorted(bound_names(node)):
        value = run.variables.get(name)
        if name.startswith("__") or not _is_number(value) or is_written_first(node, name):
            continue
        if isinstance(value, View) and value.container in run.tracer.map.accumulated:
            continue  # of a map around
        every = list(ast.walk(node))
        updates = [p for p in every if isinstance(p, ast.AugAssign) and _is(p.target, name)]
        uses = [p for p in every if _is(p, name)]
        if len(uses) == len(updates):
            found.append(name)
        elif any(isinstance(p, ast.Name) and isinstance(p.ctx, ast.Load) for p in uses) or updates:
            run.tracer.node = node
            run.tracer.refuse(
                f"{name!r} goes from each iteration of a parallel map to the next, which have no "
                f"order. Write a loop over range(...), or only add to it: {name} += ..."
            )
    return found


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_number(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.ndim == 0
    return isinstance(value, bool | int | float | complex | np.generic | sympy.Basic)


@contextmanager
def accumulating(
    run: Context, names: Sequence[str], known: Mapping[str, Accumulated]
) -> Iterator[dict[str, View]]:
    """Let variables be numbers in containers to which the iterations of a map add.

    Args:
        run: the interpreter.
        names: of the variables.
        known: their types, where they are others than those of the values before.
    """
    tracer, made = run.tracer, {}
    for name in names:
        value = tracer.tensor(run.variables[name])
        own = known.get(name) or Accumulated(name, value.dtype, value.weak)
        view = tracer.stored_anew(converted(tracer, value, own.dtype), name)
        view.weak, view.run_type = own.weak, None
        made[name] = run.variables[name] = view
        tracer.map.accumulated[view.container] = own
    try:
        yield made
    finally:
        for view in made.values():
            del tracer.map.accumulated[view.container]


def accumulate(run: Context, old: View, op: ast.operator, value: object) -> bool:
    """``old op= value`` of a number that a map adds to; False for other variables.

    Raises:
        OfAnotherType: the result has another type.
    """
    tracer = run.tracer
    own = tracer.map.accumulated.get(old.container)
    if own is None:
        return False
    now = Tensor((), own.dtype, old.element, own.weak)
    found = run.binary(op, now, value)
    if found.ndim:
        tracer.refuse(f"{own.name!r} is a number before the map, and becomes an array in it")
    if (found.dtype, found.weak) != (own.dtype, own.weak):
        raise OfAnotherType(Accumulated(own.name, found.dtype, found.weak))
    if tracer.map.straight is not None:
        tracer.map.straight.update(old, (), op, value)
        return True
    conflict = conflict_of(tracer, old, op)
    assert conflict is not None, "the iterations of a map meet in a number from before it"
    tracer.write(old, combined_with(tracer, old, op, value), conflict)
    return True


def without_sums(
    run: Context, stores: Sequence[Store], parameters: Sequence[Parameter]
) -> list[Store]:
    """Write sums over all iterations as such, which lanes share; the stores that are left.

    Each iteration would else add to one element in memory, one after the other.
    """
    tracer, own = run.tracer, {p.name for p in parameters}
    lengths = [subtract(p.end, p.first) for p in parameters]
    depends = any(own & {str(s) for s in sympy.sympify(n).free_symbols} for n in lengths)
    is_box = not depends and all(p.step == 1 for p in parameters)
    if len(tracer.map.parallel) > 1 or not is_box or not _are_positive(tracer, lengths):
        return list(stores)
    sums = [s for s in stores if s.conflict == "add" and s.container in tracer.map.accumulated]
    parallel, tracer.map.parallel = tracer.map.parallel, []
    try:
        for store in sums:
            values = _over(store, parameters, lengths)
            view, name = view_of(store.container), store.container.name
            with tracer.named(f"sum_{name}"):
                found = run.call(np.sum, [values], {"dtype": store.container.dtype})
            tracer.assign(view, combine(tracer, np.add, [view, found]))
    finally:
        tracer.map.parallel = parallel
    return [s for s in stores if s not in sums]


@contextmanager
def summed_up(
    tracer: Tracer, stores: Sequence[Store], parameters: Sequence[Parameter]
) -> Iterator[list[Store]]:
    """Let a map in another one add to numbers of the iteration around it, which are added up after.

    So what all its iterations add to one element stays in a register: ``y[i] += a[i, j] * x[j]``.
    """
    names = {p.name for p in parameters}
    found, sums = [], []
    for store in stores:
        if (
            not tracer.map.own
            or store.container.name in tracer.map.own[-1]
            or not _is_of_all(store, names)
        ):
            found.append(store)
            continue
        kind = store.container.dtype
        own = tracer.container(f"sum_{store.container.name}", (), kind)
        nothing = number(-0.0 if kind.kind == "f" else 0, kind)
        tracer.kernel([Store(own, (), nothing)], (), own.name)
        found.append(Store(own, (), store.value, store.conflict))
        sums.append(Store(store.container, store.index, Load(own, (), kind), store.conflict))
    yield found
    for store in sums:
        tracer.kernel([store], (), store.container.name)


def _is_of_all(store: Store, parameters: Set[str]) -> bool:
    """Whether all iterations add to one element, which symbols choose."""
    return (
        store.conflict == "add"
        and store.container.dtype.kind in "iuf"
        and all(isinstance(i, int | sympy.Basic) for i in store.index)
        and not any(
            parameters & {str(s) for s in sympy.sympify(i).free_symbols} for i in store.index
        )
    )


def _are_positive(tracer: Tracer, lengths: Sequence[Length]) -> bool:
    return all(is_at_least(n, 1, tracer.known.bounds) for n in lengths)


def _over(store: Store, parameters: Sequence[Parameter], lengths: Sequence[Length]) -> Tensor:
    """What the iterations of a map add, as an array of its parameters."""

    def element(index: tuple[Index, ...]) -> Expression:
        moved = zip(parameters, index, strict=True)
        return substitute(store.value, {symbol(p.name): _behind(p.first, i) for p, i in moved})

    return Tensor(tuple(lengths), store.value.dtype, element)


def _behind(first: Length, index: Index) -> Index:
    if isinstance(index, int | sympy.Basic):
        return add(index, first)
    return apply("add", index, whole_expression(first))


def without_last(run: Context, node: ast.For, targets: Iterable[str]) -> None:
    """Let variables that the iterations of a map set have no value after it."""
    for name in bound_names(node) | set(targets):
        reason = (
            f"{name!r} is set by the iterations of a parallel map, of which none is the last one; "
            "write it into an array there, or write a loop over range(...)"
        )
        run.tracer.map.of_maps[name] = reason
        if name in run.variables and not name.startswith("__"):
            run.variables[name] = Undecided(reason)
