"""Expressions of elements: indices put in, truth values, and what is known without the run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import (
    Constant,
    Expression,
    IndexValue,
    Load,
    Operation,
    apply,
    cast,
    count_additions,
    parts,
    replace_leaves,
)
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.transcript import Transcript
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, number, whole_expression
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Container,
    Index,
    Kernel,
    Length,
    Parameter,
    SetSymbol,
    Statement,
    Store,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import (
    Bounds,
    Whole,
    add,
    floor_divide,
    is_at_least,
    multiply,
    remainder,
    same,
    subtract,
    symbol,
)


def substitute(expression: Expression, by: Mapping[sympy.Symbol, Index]) -> Expression:
    """Put indices in for symbols of an expression."""
    texts = {s.name: i for s, i in by.items()}

    def moved(index: Index) -> Index:
        if isinstance(index, int):
            return index
        if isinstance(index, sympy.Basic):
            direct = {s: i for s, i in by.items() if s in index.free_symbols}
            if all(isinstance(i, int | sympy.Basic) for i in direct.values()):
                found = index.xreplace({s: sympy.sympify(i) for s, i in direct.items()})
                return int(found) if found.is_Integer else found
            return whole_expression(index, dict(direct))
        return substitute(index, by)

    def replace(leaf: Expression) -> Expression:
        if isinstance(leaf, Load):
            return Load(leaf.array, tuple(map(moved, leaf.index)), leaf.dtype)
        if isinstance(leaf, IndexValue) and any(v in texts for v, _ in leaf.terms):
            total = sympy.Integer(leaf.constant) + sum(symbol(v) * f for v, f in leaf.terms)
            return cast(whole_expression(total, dict(by)), leaf.dtype)
        return leaf

    return replace_leaves(expression, replace)


def known_whole(expression: Expression) -> Whole | None:
    """The whole number that an expression without loads is; None for others."""
    if any(isinstance(part, Load) for part in parts(expression)):
        return None
    if isinstance(expression, IndexValue):
        total = sympy.Integer(expression.constant) + sum(symbol(v) * f for v, f in expression.terms)
        return int(total) if total.is_Integer else total
    constant = getattr(expression, "value", None)
    return int(constant) if isinstance(constant, int) else None


_FEW = 64
"""Elements of an array, at most, that are known when the program is read."""


def known_elements(tracer: Transcript, tensor: Tensor) -> np.ndarray[Any, Any] | None:
    """The whole numbers of a small array that no run decides; None of others.

    So they may be lengths and ends of slices where a loop over them is written out.
    """
    shape = tensor.shape
    if not shape or tensor.dtype.kind not in "iu" or tensor.mask is not None or tensor.run_type:
        return None
    if not all(isinstance(n, int) for n in shape) or not 0 < math.prod(shape) <= _FEW:
        return None
    found = np.empty(shape, tensor.dtype)
    for place in np.ndindex(*shape):
        expression = replace_leaves(tensor.element(place), lambda leaf: _of_table(tracer, leaf))
        try:
            found[place] = evaluate(expression, {})
        except (KeyError, TypeError):  # of arrays, of symbols, or of what only the run knows
            return None
    return found


def known_formula(
    tracer: Transcript, tensor: Tensor
) -> tuple[tuple[sympy.Symbol, ...], Whole] | None:
    """What whole numbers are that follow from their places, with symbols for these; else None."""
    if not tensor.ndim or tensor.dtype != INT64 or tracer.map.own or tensor.run_type is not None:
        return None
    places = tuple(symbol(f"__place{d}") for d in range(tensor.ndim))
    expression = tensor.element(places)
    if count_additions(expression) > _MOST_ADDITIONS:
        return None
    value = whole_operations(replace_leaves(expression, lambda e: by_formula(tracer, e) or e))
    names = () if value is None else {s.name for s in sympy.sympify(value).free_symbols}
    return None if value is None or {*names} & {*tracer.known.bounds} else (places, value)


def by_formula(tracer: Transcript, leaf: Expression) -> Expression | None:
    """What an element is that follows from its place, of which no statement changes that."""
    if not isinstance(leaf, Load) or leaf.array not in tracer.known.formulas:
        return None
    if not all(isinstance(i, int | sympy.Basic) for i in leaf.index):
        return None
    tracer.known.relied_on.add(leaf.array)
    places, value = tracer.known.formulas[leaf.array]
    by = dict(zip(places, leaf.index, strict=True))
    return whole_expression(sympy.sympify(value).xreplace(by))


def whole_operations(expression: Expression) -> Whole | None:
    """The whole number of symbols that operations on some make; None where they read arrays."""
    if isinstance(expression, IndexValue | Constant):
        return known_whole(expression)
    if not isinstance(expression, Operation) or expression.dtype != INT64:
        return None
    parts = [whole_operations(part) for part in expression.arguments]
    if any(part is None for part in parts):
        return None
    if expression.name == "cast":
        return parts[0] if expression.arguments[0].dtype.kind in "iu" else None
    if expression.name in _DIVISIONS and not (isinstance(parts[1], int) and parts[1] > 0):
        return None
    combine = _TOGETHER.get(expression.name)
    return combine(*parts) if combine else None


_DIVISIONS = {"remainder": remainder, "floor_divide": floor_divide}
_TOGETHER = {"add": add, "subtract": subtract, "multiply": multiply, **_DIVISIONS}
_MOST_ADDITIONS = 64
"""Operations of a formula, at most."""


def _of_table(tracer: Transcript, leaf: Expression) -> Expression:
    """The entry of a table in the place of its element; in a loop it has to stay as it is."""
    find = in_table if tracer.inner else _entry
    known = find(tracer, leaf) if leaf.dtype.kind in "iu" else None
    return leaf if known is None else number(int(known), leaf.dtype)


def in_table(tracer: Transcript, expression: Expression) -> Whole | None:
    """The whole number of a table that an expression is; None for others."""
    found = _entry(tracer, expression)
    if found is not None:
        tracer.known.relied_on.add(expression.array)  # type: ignore[union-attr]
    return found


def _entry(tracer: Transcript, expression: Expression) -> Whole | None:
    if not isinstance(expression, Load) or expression.array not in tracer.known.tables:
        return None
    if not all(isinstance(i, int) for i in expression.index):
        return None
    return int(tracer.known.tables[expression.array][tuple(expression.index)])


def known_number(value: Tensor) -> Whole | None:
    """The whole number of symbols that a number of NumPy is; None of others."""
    if value.ndim or value.weak is not None or value.dtype != INT64 or value.run_type is not None:
        return None
    return known_whole(value.element(()))


def does_not_fit(value: Tensor, expression: Expression, dtype: DType) -> str | None:
    """Why a number of Python is not assigned to elements of a type; None if it is.

    NumPy refuses whole numbers that integers of a type cannot be, in place of wrapping them.
    """
    if value.weak is int and isinstance(expression, Constant) and dtype.kind in "iu":
        try:
            np.array(expression.value, dtype=dtype)
        except OverflowError as problem:
            return str(problem)
    return None


def truth_of(expression: Expression) -> Expression:
    """Whether a number is not zero."""
    if expression.dtype.kind == "b":
        return expression
    return apply("not_equal", expression, number(0, expression.dtype))


_RELATIONS: dict[Any, str] = {
    sympy.StrictLessThan: "less",
    sympy.LessThan: "less_equal",
    sympy.StrictGreaterThan: "greater",
    sympy.GreaterThan: "greater_equal",
    sympy.Equality: "equal",
    sympy.Unequality: "not_equal",
}


def truth_expression(value: sympy.Basic) -> Expression:
    """A truth value of symbols as an expression of elements."""
    if value in (sympy.true, sympy.false):
        return number(bool(value), np.dtype(bool))
    if type(value) in _RELATIONS:
        return apply(_RELATIONS[type(value)], *(whole_expression(a) for a in value.args))
    name = {sympy.And: "logical_and", sympy.Or: "logical_or"}.get(type(value))
    arguments = [truth_expression(a) for a in value.args]
    if name is None:
        return apply("logical_not", *arguments)
    found = arguments[0]
    for other in arguments[1:]:
        found = apply(name, found, other)
    return found


def never_zero(difference: Whole, varying: set[str]) -> bool:
    """Whether no values of symbols make a difference zero: all factors share a divisor."""
    if isinstance(difference, int):
        return difference != 0
    divisor, constant = 0, 0
    for term in sympy.Add.make_args(sympy.expand(difference)):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Integer:
            return False
        if rest == 1:
            constant = int(factor)
        else:
            divisor = int(np.gcd(divisor, int(factor)))
    return divisor > 1 and constant % divisor != 0


def equal_indices(a: Index, b: Index) -> bool:
    """Whether two indices are the same for all values of their symbols."""
    if isinstance(a, int | sympy.Basic) and isinstance(b, int | sympy.Basic):
        return same(a, b)
    return a is b or a == b


def is_one(n: Length) -> bool:
    """Whether an extent is 1."""
    return n == 1


def may_meet(
    read: Sequence[Index],
    written: Sequence[Index],
    parameters: Sequence[Parameter],
    bounds: Bounds,
) -> bool:
    """Whether an iteration of a map may read what another one writes.

    Args:
        read: the indices of an element that an iteration reads.
        written: those of the element that it writes.
        parameters: of the map.
        bounds: of other symbols.
    """
    if all(equal_indices(a, b) for a, b in zip(read, written, strict=True)):
        return False
    own = {p.name for p in parameters}
    known = dict(bounds)
    others = {symbol(p.name): symbol(f"{p.name}__other") for p in parameters}
    for p in parameters:
        last = subtract(p.end, 1)
        known[p.name] = known[f"{p.name}__other"] = (p.first, last)
    for a, b in zip(read, written, strict=True):
        if not all(isinstance(x, int | sympy.Basic) for x in (a, b)):
            continue
        other = sympy.sympify(b).xreplace(others)
        difference = subtract(a, other)
        if is_at_least(difference, 1, known) or is_at_least(subtract(0, difference), 1, known):
            return False
        if never_zero(difference, own | {str(s) for s in others.values()}):
            return False
    return True


def copied_from(load: Load, block: Block) -> Load:
    """The element of which a number is a copy that a block has made; else the number itself."""
    written: set[Container] = set()
    for statement in reversed(block.statements):
        own = set(statement.writes())
        if load.array in own:
            value = _only_value(statement)
            if not isinstance(value, Load) or load.index or value.array in written:
                return load
            return value if all(map(is_known, value.index)) else load
        written |= own | {c for inner in statement.blocks() for c in inner.containers()}
    return load


def read_before(load: Load, statements: Sequence[Statement]) -> str | None:
    """The symbol that statements have set to an element, which none of them has changed since."""
    for statement in _not_changed(load, statements):
        if isinstance(statement, SetSymbol) and isinstance(statement.value, Load):
            value = statement.value
            if (value.array, value.index) == (load.array, load.index):
                return statement.name
    return None


def stored_before(value: Expression, statements: Sequence[Statement]) -> Load | None:
    """The number in which statements have stored a value, where neither has changed since."""
    written: set[Container] = set()
    for statement in _not_changed(value, statements):
        if _only_value(statement) == value:
            (store,) = statement.stores  # type: ignore[attr-defined]
            if not store.index and store.container not in written:
                return Load(store.container, (), store.container.dtype)
        written |= {*statement.writes(), *_inside(statement)}
    return None


def _not_changed(value: Expression, statements: Sequence[Statement]) -> Iterator[Statement]:
    """The last statements, in reverse, which change nothing that an expression reads."""
    loads = [*loads_of(value)]
    indices = [i for load in loads for i in load.index if isinstance(i, sympy.Basic)]
    symbols = {s.name for i in indices for s in i.free_symbols}
    terms = {v for p in parts(value) if isinstance(p, IndexValue) for v, _ in p.terms}
    for statement in reversed(statements):
        changed = {*statement.writes(), *_inside(statement)}
        if any(load.array in changed for load in loads):
            return
        yield statement
        if isinstance(statement, SetSymbol) and statement.name in symbols | terms:
            return


def _inside(statement: Statement) -> Iterator[Container]:
    """Containers that the blocks of a statement touch."""
    return (c for block in statement.blocks() for c in block.containers())


def _only_value(statement: Statement) -> Expression | None:
    """What a statement writes to one number; None where it does something else."""
    if not isinstance(statement, Kernel) or statement.parameters or len(statement.stores) != 1:
        return None
    return None if statement.stores[0].conflict else statement.stores[0].value


def is_known(index: Index) -> bool:
    """Whether no data decide an index."""
    return isinstance(index, int | sympy.Basic)


def is_empty(parameters: Sequence[Parameter]) -> bool:
    """Whether a map is known to have no iterations."""
    return any(
        isinstance(p.first, int) and isinstance(p.end, int) and p.first >= p.end for p in parameters
    )


def without_reads(stores: Sequence[Store]) -> list[Store]:
    """Stores to the same places of what nothing is read for; none of those that data place."""
    return [
        Store(s.container, s.index, number(0, s.value.dtype), s.conflict)
        for s in stores
        if all(isinstance(i, int | sympy.Basic) for i in s.index)
    ]
