"""How each kind of expression is read."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays import indexing
from distspmd.frontend.from_numpy.arrays.arithmetic import choose, combine
from distspmd.frontend.from_numpy.arrays.elements import truth_of
from distspmd.frontend.from_numpy.arrays.images import Image
from distspmd.frontend.from_numpy.arrays.kinds import has_data, joined_type
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex, joined
from distspmd.frontend.from_numpy.arrays.run_types import choose_type
from distspmd.frontend.from_numpy.arrays.subscripts import has_ellipsis
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.kinds import known_functions, known_values
from distspmd.frontend.from_numpy.kinds.absence import (
    bound,
    compared_with_none,
    end_if_none,
    end_unbound,
    fail_unbound,
    knowing,
    known_value,
    may_be_none,
    present,
    put,
    refuse_choice,
)
from distspmd.frontend.from_numpy.kinds.carried_places import is_carried
from distspmd.frontend.from_numpy.kinds.variables import OfPython, OneOf, Undecided
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.known_keys import known_key
from distspmd.frontend.from_numpy.lists.run_lists import RunList, UnknownElement
from distspmd.frontend.from_numpy.reader import (
    generators,
    objects,
    operators,
    sharing,
    texts,
)
from distspmd.frontend.from_numpy.reader.branches import branch
from distspmd.frontend.from_numpy.reader.calls import name_of
from distspmd.frontend.from_numpy.reader.conditions import goes_on, relation
from distspmd.frontend.from_numpy.reader.frames import Closure
from distspmd.frontend.from_numpy.reader.operators import compared
from distspmd.frontend.from_numpy.reader.origins import is_own_class
from distspmd.frontend.from_numpy.reader.parts import look_into_lists
from distspmd.frontend.from_numpy.reader.registry import expression
from distspmd.frontend.tensor_ir.whole_numbers import multiply, same


def _calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _inside_handler(problem: TypeError) -> bool:
    """Whether an error comes from a call that does not fit a function of ours."""
    trace = problem.__traceback__
    depth = 0
    while trace is not None:
        depth += 1
        trace = trace.tb_next
    return depth <= 3


@expression(ast.Constant)
def _constant(run: Context, node: ast.Constant) -> Any:
    return node.value


@expression(ast.Name)
def _name(run: Context, node: ast.Name) -> Any:
    for known in (run.variables, vars(builtins)):
        if node.id in known:
            found = known_value(run, bound(run, node.id, known[node.id]))
            if isinstance(found, Undecided) and not may_be_none(found):
                refuse_choice(run, found)
            return run.outside(node.id, found)
    if run.tracer.lists.has_left_out:  # its assignment may be what was left out
        raise UnknownElement
    end_unbound(run, node.id)
    if node.id in run.tracer.map.of_maps:
        run.tracer.refuse(run.tracer.map.of_maps[node.id])
    return fail_unbound(run, node.id)


@expression(ast.BinOp)
def _binary_node(run: Context, node: ast.BinOp) -> Any:
    left = run.present(node.left)
    if _calls(node.right) and isinstance(left, Tensor) and not isinstance(left, View):
        left = run.tracer.settled(left) if run.tracer.map.straight is None else left
    right = run.present(node.right)
    end_if_none(run, (left, right), "an operation")
    return run.binary(node.op, left, right)


@expression(ast.UnaryOp)
def _unary(run: Context, node: ast.UnaryOp) -> Any:
    value = run.value(node.operand) if isinstance(node.op, ast.Not) else run.present(node.operand)
    if objects.is_own(value) and not isinstance(node.op, ast.Not):
        return objects.unary(run, value, node.op)
    if isinstance(node.op, ast.Not):
        value = operators.tested(run, value)
        known = run.truth(value)
        if known is not None:
            return not known
        if isinstance(value, sympy.Basic):
            return sympy.Not(relation(value))
        return Tensor(
            (),
            np.dtype(bool),
            lambda _: apply("logical_not", truth_of(value.element((0,) * value.ndim))),
            bool,
        )
    if isinstance(value, sympy.Basic):
        if isinstance(node.op, ast.USub):
            return multiply(-1, value)
        if isinstance(node.op, ast.UAdd):
            return value
        value = run.tracer.whole(value)
    if isinstance(value, Tensor):
        kind = {ast.USub: np.negative, ast.UAdd: np.positive, ast.Invert: np.invert}
        return combine(run.tracer, kind[type(node.op)], [value])
    python: dict[type, Callable[[Any], Any]] = {
        ast.USub: operator.neg,
        ast.UAdd: operator.pos,
        ast.Invert: operator.invert,
    }
    try:
        return python[type(node.op)](value)
    except TypeError as problem:
        run.tracer.refuse(str(problem))


@expression(ast.BoolOp)
def _boolean(run: Context, node: ast.BoolOp) -> Any:
    first_wins = isinstance(node.op, ast.Or)
    found: Any = None
    for place, part in enumerate(node.values):
        with goes_on(run.tracer, node.op, found):
            value = operators.tested(run, run.value(part))
            known = run.truth(value)
        last = place == len(node.values) - 1
        if known is not None:
            if known == first_wins or last:
                return value if found is None else _joined(run, node.op, found, value)
            continue
        found = value if found is None else _joined(run, node.op, found, value)
    return found if found is not None else value


def _joined(run: Context, op: ast.boolop, left: object, right: object) -> Any:
    if isinstance(left, sympy.Basic) and isinstance(right, sympy.Basic | bool):
        kind = sympy.Or if isinstance(op, ast.Or) else sympy.And
        return kind(relation(left), relation(sympy.sympify(right)))
    name = "logical_or" if isinstance(op, ast.Or) else "logical_and"
    one, other = run.tracer.tensor(left), run.tracer.tensor(right)
    if not one.ndim and not other.ndim and {one.dtype.kind, other.dtype.kind} != {"b"}:
        return _first_that_decides(op, one, other)
    return Tensor(
        (),
        np.dtype(bool),
        lambda _: apply(name, *(truth_of(t.element((0,) * t.ndim)) for t in (one, other))),
        None if one.weak is other.weak is None and not one.ndim and not other.ndim else bool,
    )


def _first_that_decides(op: ast.boolop, one: Tensor, other: Tensor) -> Tensor:
    """``a and b`` is ``a`` unless that is true, and ``a or b`` is ``a`` if it is."""
    dtype = joined_type(one, other)
    holds = Tensor((), np.dtype(bool), lambda _: truth_of(one.element(())))
    yes, no = (other, one) if isinstance(op, ast.And) else (one, other)

    def element(index: Any) -> Expression:
        return apply(
            "where", holds.element(index), *(cast(t.element(()), dtype) for t in (yes, no))
        )

    found = Tensor((), dtype, element, one.weak if one.weak is other.weak else None)
    return choose_type(holds, yes, no, found)


@expression(ast.Compare)
def _compare(run: Context, node: ast.Compare) -> Any:
    left, found = known_value(run, run.whatever(node.left)), None
    for op, part in zip(node.ops, node.comparators, strict=True):
        right = known_value(run, run.whatever(part))
        one = _compared(run, op, left, right)
        if found is None:
            found = one
        else:
            known = run.truth(found)
            if known is False:
                return False
            found = one if known else _joined(run, ast.And(), found, one)
        left = right
    return found


def _compared(run: Context, op: ast.cmpop, left: object, right: object) -> Any:
    found = compared_with_none(run, op, left, right)
    if found is not NotImplemented:
        return found
    sides = [left, right]
    if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        sides = [present(run, side) for side in sides]
        end_if_none(run, sides, "an order")
    for side in sides:
        if isinstance(side, OneOf):
            refuse_choice(run, side)
    return compared(run, op, *sides)


@expression(ast.IfExp)
def _chosen(run: Context, node: ast.IfExp) -> Any:
    test = operators.tested(run, run.value(node.test))
    known = run.truth(test)
    if known is not None:
        return run.value(node.body if known else node.orelse)
    asked = test
    if isinstance(test, sympy.Basic):
        test = run.tracer.truth(relation(test))
    if any(_changes_list(way) or _calls_itself(run, way) for way in (node.body, node.orelse)):
        return _by_branches(run, node, asked)
    holds = truth_of(test.element((0,) * test.ndim))
    with run.tracer.guarded_by(holds), knowing(run.tracer, asked, holds=True):
        one = known_value(run, run.whatever(node.body))
    no = apply("logical_not", holds)
    with run.tracer.guarded_by(no), knowing(run.tracer, asked, holds=False):
        other = known_value(run, run.whatever(node.orelse))
    if not _have_one_form(run, one, other) or _may_be_written(run, one, other):
        return _by_branches(run, node, asked)
    first, second = (run.tracer.tensor(v) for v in (one, other))
    scalar = Tensor((), test.dtype, lambda _: test.element((0,) * test.ndim))
    return choose_type(scalar, first, second, choose(run.tracer, scalar, first, second))


def _changes_list(node: ast.expr) -> bool:
    """Whether an expression takes something from a list, or adds to one."""
    names = {"pop", "popleft", "append", "insert", "remove", "add", "extend"}
    return any(
        isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in names
        for n in ast.walk(node)
    )


def _calls_itself(run: Context, node: ast.expr) -> bool:
    """Whether an expression calls a function that is being read, whose arguments are stored then.

    As parts of one expression they would grow with each call.
    """
    names = {f.name for f in run.tracer.frames if f.name}
    calls = (n.func for n in ast.walk(node) if isinstance(n, ast.Call))
    return any(isinstance(f, ast.Name) and f.id in names for f in calls)


def _have_one_form(run: Context, one: object, other: object) -> bool:
    """Whether two values are numbers, or arrays of one shape."""
    if not all(isinstance(v, Tensor | RunList) or is_carried(v) for v in (one, other)):
        return False
    tensors = [run.tracer.tensor(v) for v in (one, other)]
    if any(t.mask is not None for t in tensors):
        return False
    a, b = (t.shape for t in tensors)
    return len(a) == len(b) and all(same(m, n) for m, n in zip(a, b, strict=True))


def _may_be_written(run: Context, *values: object) -> bool:
    """Whether one of two arrays is a stored one, which the choice then is on one way."""
    is_in_map = run.tracer.map.straight is not None or run.tracer.map.parallel
    return not is_in_map and any(isinstance(v, View | Image) and v.ndim for v in values)


def _by_branches(run: Context, node: ast.IfExp, test: Any) -> Any:
    """A choice as the statement ``if``, which says what becomes of things of two forms.

    Args:
        run: the reading.
        node: the choice.
        test: the value of its condition, which is read once.
    """
    if run.tracer.map.straight is not None:
        run.tracer.map.straight.leave()
    name = "__chosen"
    ways: list[list[ast.stmt]] = [
        [ast.Assign([ast.Name(name, ast.Store())], value)] for value in (node.body, node.orelse)
    ]
    made = ast.If(ast.Constant(test), *ways)
    ast.fix_missing_locations(ast.copy_location(made, node))
    branch(run, made)
    return run.variables.pop(name)


@expression(ast.Call)
def _call(run: Context, node: ast.Call) -> Any:
    try:
        function = run.value(node.func)
    except known_functions.ReadsEntry as entry:
        return known_functions.called(run, node, entry, lambda f, part: _given(run, f, part))
    arguments: list[Any] = []
    for place, part in enumerate(node.args):
        if isinstance(part, ast.Starred):
            arguments += run.unpacked(run.value(part.value), part)
            continue
        if isinstance(part, ast.GeneratorExp) and generators.takes_generators(function):
            arguments.append(generators.of_expression(run, part))
            continue
        arguments.append(_argument(run, function, part, node.args[place + 1 :]))
    keywords: dict[str, Any] = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            keywords.update(run.value(keyword.value))
        else:
            keywords[keyword.arg] = _given(run, function, keyword.value)
    run.tracer.node = node
    try:
        return run.call(function, arguments, keywords)
    except TypeError as problem:
        if _inside_handler(problem):
            run.tracer.refuse(f"{name_of(function)}: {problem}")
        raise


def _argument(run: Context, function: object, part: ast.expr, later: list[ast.expr]) -> Any:
    """An argument of a call, which later ones do not change."""
    found = _given(run, function, part)
    if (
        isinstance(found, Tensor)
        and not isinstance(found, View)
        and any(map(_calls, later))
        and run.tracer.map.straight is None
        and found.mask is None
    ):
        found = run.tracer.settled(found)
    return found


def _given(run: Context, function: object, part: ast.expr) -> Any:
    """What a function is given, which may be None where the function asks for that itself."""
    known = run.variables.get(part.id) if isinstance(part, ast.Name) else None
    is_said = any(function is each for each in texts.SAYING)
    if isinstance(part, ast.ListComp) and str(getattr(function, "__module__", "")) == "numpy":
        run.computed_with = part
    found = known if is_said and texts.can_be_said(known) else run.whatever(part)
    if is_said and texts.can_be_said(found):
        return found
    if isinstance(found, OfPython) and not _is_users(run, function):
        refuse_choice(run, found)
    if isinstance(found, OneOf) and not _is_users(run, function):
        if may_be_none(found) and list_changes.adds_elements(run, function):
            return put(run, found)
        if not isinstance(function, np.ufunc) and getattr(function, "__module__", "") != "math":
            refuse_choice(run, found)
        found = present(run, found)
    return found


def _is_users(run: Context, function: object) -> bool:
    """Whether a function is the program's own, which may ask whether an argument is None."""
    if isinstance(function, MethodType):
        return _is_users(run, function.__func__)
    if isinstance(function, FunctionType):
        return function not in run.functions and not function.__module__.startswith("numpy")
    return isinstance(function, Closure) or is_own_class(function)


@expression(ast.Attribute)
def _attribute_node(run: Context, node: ast.Attribute) -> Any:
    try:
        base = run.present(node.value)
    except known_functions.ReadsEntry as entry:
        return known_functions.attribute(run, node, entry)
    return run.attribute(base, node.attr)


@expression(ast.Subscript)
def _subscript_node(run: Context, node: ast.Subscript) -> Any:
    base, items = run.present(node.value), run.subscript(node.slice)
    known_functions.look_for_entry(run, node, base, items)
    return part_of(run, base, items)


def part_of(run: Context, base: Any, items: Any) -> Any:
    """``base[items]``."""
    tracer = run.tracer
    if isinstance(base, RunList):
        return lists.read(run, base, items)
    if isinstance(base, Tensor):
        return _of_tensor(tracer, base, items)
    if has_data(items) and isinstance(base, list) and any(_is_list(v) for v in base):
        look_into_lists(run, base)
    if objects.is_own(base) and not isinstance(base, tuple | list | dict):
        return objects.part(run, base, items)
    is_known = isinstance(base, str | np.ndarray | list | tuple | range)
    if isinstance(base, texts.Text) or (is_known and has_data(items)):
        return known_values.at_index(run, base, items)
    if isinstance(base, dict):
        return known_values.entry_of(run, base, items)
    handler = run.functions.get(("subscript", type(base)))
    try:
        return base[items] if handler is None else handler(run, base, items)
    except (TypeError, KeyError, IndexError) as problem:
        tracer.fail(problem)


def _is_list(value: object) -> bool:
    return isinstance(value, list | RunList)


def _of_tensor(tracer: Tracer, base: Tensor, items: object) -> Tensor:
    """A part of an array; a number of it is a copy, as in NumPy."""
    if isinstance(base, RealOrComplex):
        return joined([base], _of_tensor(tracer, base.in_complex, items))
    if tracer.map.straight is not None:
        found: Tensor | None = tracer.map.straight.read(base, items)
        if found is not None:
            return found
    part = indexing.read(tracer, base, items)
    if isinstance(part, View) and not part.ndim and not has_ellipsis(items):
        return Tensor((), part.dtype, part.element)
    return part


@expression(ast.Tuple)
def _tuple(run: Context, node: ast.Tuple) -> Any:
    found: list[Any] = []
    for part in node.elts:
        if isinstance(part, ast.Starred):
            found += run.unpacked(run.value(part.value), part)
        else:
            found.append(run.value(part))
    return tuple(found)


@expression(ast.List)
def _list(run: Context, node: ast.List) -> Any:
    return list(_tuple(run, node))  # type: ignore[arg-type]


@expression(ast.Dict)
def _dict(run: Context, node: ast.Dict) -> Any:
    found: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            found.update(run.value(value))
        else:
            found[known_key(run, found, run.value(key))] = run.value(value)
    return found


@expression(ast.Set)
def _set(run: Context, node: ast.Set) -> Any:
    values = [run.value(e) for e in node.elts]
    if has_data(values):
        for_python(run, "set")
    return set(values)


@expression(ast.Lambda)
def _lambda(run: Context, node: ast.Lambda) -> Any:
    names = [a.arg for a in node.args.args]
    values = [run.value(d) for d in node.args.defaults]
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
    frame = run.tracer.frames[-1]
    return Closure(node, frame, defaults, tuple(frame.comprehensions))


@expression(ast.JoinedStr)
def _text(run: Context, node: ast.JoinedStr) -> Any:
    found: list[Any] = []
    for part in node.values:
        if isinstance(part, ast.Constant):
            found.append(str(part.value))
            continue
        assert isinstance(part, ast.FormattedValue)
        conversion = chr(part.conversion) if part.conversion > 0 else ""
        given = run.whatever(part.value)
        value = objects.as_text(run, given, conversion)
        conversion = conversion if value is given else ""
        spec = run.value(part.format_spec) if part.format_spec else ""
        found += texts.described(value, conversion, spec)
    return texts.kept_now(run, texts.joined(found))


@expression(ast.NamedExpr)
def _named(run: Context, node: ast.NamedExpr) -> Any:
    value = run.value(node.value)
    sharing.before_bound_within(run.tracer, node.target.id)
    run.bind(node.target, value)
    return run.variables[node.target.id]
