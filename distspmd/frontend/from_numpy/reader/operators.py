"""Python's operators on numbers, whole numbers of symbols, and tensors."""

from __future__ import annotations

import ast
import operator
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy
from sympy.logic.boolalg import Boolean

from distspmd.frontend.from_numpy.arrays.arithmetic import combine
from distspmd.frontend.from_numpy.arrays.elements import known_elements
from distspmd.frontend.from_numpy.arrays.failures import checked_operands, checked_power
from distspmd.frontend.from_numpy.arrays.kinds import has_data, is_array, is_foreign, is_whole
from distspmd.frontend.from_numpy.arrays.run_types import is_truth, with_whole, without_mixture
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Refusal
from distspmd.frontend.from_numpy.arrays.values import Tensor, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.lists import list_changes, lists
from distspmd.frontend.from_numpy.lists.known_keys import known_key
from distspmd.frontend.from_numpy.lists.list_forms import Leaf
from distspmd.frontend.from_numpy.lists.run_lists import RunList
from distspmd.frontend.from_numpy.reader import objects, texts
from distspmd.frontend.from_numpy.reader.conditions import decided
from distspmd.frontend.from_numpy.reader.python_errors import fail
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    floor_divide,
    multiply,
    remainder,
    same,
    subtract,
)

UFUNCS: dict[type[ast.AST], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.remainder,
    ast.Pow: np.power,
    ast.BitAnd: np.bitwise_and,
    ast.BitOr: np.bitwise_or,
    ast.BitXor: np.bitwise_xor,
    ast.LShift: np.left_shift,
    ast.RShift: np.right_shift,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
PYTHON: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.MatMult: operator.matmul,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_WHOLE: dict[type[ast.AST], Callable[[Whole, Whole], Whole]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.FloorDiv: floor_divide,
    ast.Mod: remainder,
}
RELATIONS: dict[type[ast.AST], Any] = {
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}


def _of_text(run: Context, op: ast.operator, left: str, right: object) -> Any:
    if isinstance(op, ast.Mod):
        return texts.kept_now(run, texts.by_percent(left, right))
    if isinstance(op, ast.Add) and isinstance(right, str):
        return texts.Text.of([left, right])
    if isinstance(op, ast.Mult) and not isinstance(right, str):
        return texts.kept_now(run, texts.repeated(left, right))
    raise Refusal(run.tracer.message("an operation on a text with values known at run time only"))


def binary(run: Context, op: ast.operator, left: Any, right: Any) -> Any:
    """``left op right``."""
    tracer = run.tracer
    found = _of_lists_or_elements(run, op, left, right)
    if found is not None:
        return found
    left, right = _of_one_type(op, left, right), _of_one_type(op, right, left)
    if isinstance(left, str) and isinstance(op, ast.Mod):
        is_tuple = type(right) is tuple
        right = tuple(objects.as_text(run, v) for v in (right if is_tuple else (right,)))
    if isinstance(right, str) and isinstance(op, ast.Mult):
        left, right = right, left
    if isinstance(left, str) and texts.has_data((left, right)):
        return _of_text(run, op, left, right)
    if isinstance(op, ast.MatMult):
        return run.call(np.matmul, [left, right], {})
    left, right = _beside_foreign(tracer, left, right)
    if (is_array(left) or is_array(right)) and not is_foreign([left, right], {}):
        left, right = checked_operands(run, op, left, right)
        found = combine(tracer, UFUNCS[type(op)], [left, right])
        return checked_power(run, left, right, found) if isinstance(op, ast.Pow) else found
    if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
        return _of_symbols(run, op, left, right)
    try:
        return PYTHON[type(op)](left, right)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
        tracer.fail(problem)


def _beside_foreign(tracer: Tracer, left: object, right: object) -> tuple[Any, Any]:
    """Two operands, as NumPy's own arrays where one is of dates, say, and the other is known."""
    if is_foreign([left], {}) and isinstance(right, Tensor):
        found = known_elements(tracer, right)
        return left, right if found is None else found
    if is_foreign([right], {}) and isinstance(left, Tensor):
        return _beside_foreign(tracer, right, left)[::-1]
    return left, right


def _of_symbols(run: Context, op: ast.operator, left: object, right: object) -> Any:
    """An operator of whole numbers of symbols, or of one and something else."""
    if is_whole(left) and is_whole(right):
        if type(op) in _WHOLE:
            if isinstance(op, ast.FloorDiv | ast.Mod):
                _end_at_zero(run, right)
            return _WHOLE[type(op)](left, right)
        if isinstance(op, ast.Pow):
            return sympy.sympify(left) ** sympy.sympify(right)
    elif isinstance(left, list | tuple) or isinstance(right, list | tuple):
        run.tracer.refuse("a list of a length that is not known")
    left, right = checked_operands(run, op, left, right)
    return combine(run.tracer, UFUNCS[type(op)], [left, right])


def _end_at_zero(run: Context, divisor: Whole) -> None:
    """Let the program end where a whole number of symbols is divided by zero."""
    tracer = run.tracer
    if isinstance(divisor, int):
        if divisor == 0:
            tracer.refuse("integer division or modulo by zero")
        return
    is_zero = sympy.Eq(divisor, 0)
    if decided(tracer, is_zero) is False or tracer.guarded or tracer.hooks.ends_if is None:
        return
    if tracer.map.parallel or tracer.map.straight is not None:
        tracer.refuse(f"a division by {divisor}, which may be zero, in a parallel map")
    tracer.hooks.ends_if(is_zero, "ZeroDivisionError", "integer division or modulo by zero")


def _of_lists(run: Context, op: ast.operator, left: object, right: object) -> Any:
    """An operator of a list whose content the run decides, and of something else."""
    both = all(isinstance(v, RunList | list) for v in (left, right))
    if both and isinstance(op, ast.Add):
        return list_changes.joined(run, left, right)
    if isinstance(left, Tensor | np.ndarray) or isinstance(right, Tensor | np.ndarray):
        return combine(run.tracer, UFUNCS[type(op)], [left, right])
    name = type(op).__name__
    raise Refusal(
        run.tracer.message(f"the operator {name} of a list whose content the run decides")
    )


def _of_lists_or_elements(run: Context, op: ast.operator, left: Any, right: Any) -> Any:
    """``left op right`` of a list, or of an element that keeps its type; None of others."""
    if isinstance(left, RunList) or isinstance(right, RunList):
        return _of_lists(run, op, left, right)
    for one, other in ((left, right), (right, left)):
        if _keeps_type(op, one, other):
            found = binary(run, op, without_mixture(left), without_mixture(right))
            return with_whole(one, run.tracer.tensor(found))
    return None


def _keeps_type(op: ast.operator, value: object, other: object) -> bool:
    """Whether an element of a list of whole numbers and others gives a number of its type."""
    is_mixed = isinstance(value, Tensor) and value.is_mixed and value.run_type is not None
    is_whole = isinstance(other, int | sympy.Basic) and not isinstance(other, bool | Boolean)
    return is_mixed and is_whole and isinstance(op, ast.Add | ast.Sub | ast.Mult)


def _of_one_type(op: ast.operator, value: object, other: object) -> Any:
    """An element of a list of whole numbers and others, where both give one type with another."""
    if isinstance(op, ast.Div):
        return without_mixture(value)
    kind = getattr(
        other, "dtype", np.dtype(type(other)) if type(other) in (float, complex) else None
    )
    is_float = kind is not None and kind.kind in "fc" and not getattr(other, "is_mixed", False)
    return without_mixture(value) if is_float else value


def _membership(run: Context, op: ast.cmpop, left: Any, right: Any) -> Any:
    """``left in right`` and ``left not in right``."""
    if isinstance(right, texts.Text):
        if isinstance(left, texts.Text):
            texts.not_known()
        found = texts.of_each(right, lambda text: left in text)
    elif isinstance(left, texts.Text) and not has_data(right):
        choice = texts.known_choice(left)
        if choice is None:
            run.tracer.refuse("'in' of a text with values of the run")
        found = choice.of_each([each in right for each in choice.texts])
    elif isinstance(right, RunList):
        found = lists.contains(run, right, left)
    elif isinstance(right, list | tuple | set | deque) and has_data((left, list(right))):
        found = _is_one_of(run, left, list(right))
    elif isinstance(right, dict):
        return PYTHON[type(op)](known_key(run, right, left, "is asked for"), right)
    elif is_array(right) and not isinstance(left, list | tuple | str | None):
        found = run.call(any, [combine(run.tracer, np.equal, [right, left])], {})
    elif has_data((left, right)):
        run.tracer.refuse("'in' of values that are not known; use np.isin or np.any")
    else:
        return PYTHON[type(op)](left, right)
    return found if isinstance(op, ast.In) else _not(run, found)


def _not(run: Context, value: object) -> Any:
    """The contrary of a truth value."""
    if isinstance(value, bool):
        return not value
    found = combine(run.tracer, np.logical_not, [value])
    return Tensor((), np.dtype(bool), lambda _: found.element((0,) * found.ndim), bool)


def _both(run: Context, one: object, other: object) -> Any:
    """Whether two truth values hold."""
    if isinstance(one, bool) or isinstance(other, bool):
        known, found = (one, other) if isinstance(one, bool) else (other, one)
        return found if known else False
    tensors = [run.tracer.tensor(v) for v in (one, other)]
    found = combine(run.tracer, np.logical_and, tensors)
    return Tensor((), np.dtype(bool), lambda _: found.element((0,) * found.ndim), bool)


def _is_one_of(run: Context, left: object, values: Sequence[Any]) -> Any:
    """``left in values``, where some are not known before the run."""
    if isinstance(left, Tensor) and left.ndim:
        run.tracer.refuse("an array in a list: the truth of an array is ambiguous; use np.any(...)")
    found: Any = False
    for value in values:
        found = _not(run, _both(run, _not(run, found), _not(run, _is_alike(run, left, value))))
        if found is True:
            return True
    return found


def _is_alike(run: Context, left: object, value: object) -> Any:
    """Whether an element of a list is what is looked for."""
    if isinstance(value, Tensor) and value.ndim:
        run.tracer.refuse("'in' of a list of arrays: their truth is ambiguous; use np.any(...)")
    if value is None or isinstance(value, str | dict | set):
        return False
    if isinstance(left, tuple | list) != isinstance(value, tuple | list):
        return False
    return _equal(run, left, value)


def looked_for(run: Context, method: str, values: Sequence[Any], value: object) -> Any:
    """``values.count(value)`` or ``values.index(value)``, where some are known at run time only."""
    if isinstance(value, Tensor) and value.ndim:
        run.tracer.refuse(f"list.{method} of an array: its truth is ambiguous; use np.any(...)")
    alike = [_is_alike(run, value, each) for each in values]
    if all(isinstance(each, bool) for each in alike):
        alike = [bool(each) for each in alike]
        if method == "count":
            return alike.count(True)
        return alike.index(True) if True in alike else run.tracer.refuse("ValueError: not in list")
    there = run.tracer.stored(run.tracer.tensor(run.call(np.array, [alike], {})))
    found = list_changes.number_of if method == "count" else list_changes.first_place
    return found(run, there)


def _equal(run: Context, left: object, right: object) -> Any:
    """``left == right`` as a known truth value, or one of a tensor."""
    return _known_or_tensor(run, compared(run, ast.Eq(), left, right))


def _known_or_tensor(run: Context, found: object) -> Any:
    """A truth value that is known, or one of a tensor."""
    if isinstance(found, Tensor):
        if found.ndim:
            run.tracer.refuse("arrays in a list: their truth is ambiguous; use np.array_equal")
        return found
    known = run.truth(found)
    return run.tracer.tensor(found) if known is None else known


def _listed(held: object) -> list[Any]:
    """What Python's own containers hold."""
    return list(held) if isinstance(held, list | tuple | set | frozenset) else []


def _is_in(run: Context, op: ast.cmpop, left: Any, right: Any) -> Any:
    held = list(right) if isinstance(right, dict) else right
    if objects.is_own(held):
        found = objects.special(run, held, "contains", left)
        if found is not NotImplemented:
            found = run.call(bool, [found], {})
            return found if isinstance(op, ast.In) else _not(run, found)
        if not any(hasattr(type(held), each) for each in ("__iter__", "__getitem__")):
            objects.required(run, "contains", operator.contains, held, left)
    own = [v for v in (left, *_listed(held)) if objects.is_own(v)]
    if own and not objects.is_own(held) and all(map(objects.is_equal_to_itself_alone, own)):
        if objects.is_own(left):  # which is equal to itself alone
            return any(v is left for v in held) == isinstance(op, ast.In)
        held = type(held)(v for v in held if not objects.is_own(v))
    elif own or objects.is_own(held):
        run.tracer.refuse("'in' where objects of the program are compared; write a loop")
    return _membership(run, op, left, held)


def _is_same(run: Context, left: object, right: object, *, negative: bool) -> Any:
    """``left is right``; there is one True and one False, of which a bool of the run is either."""
    for one, other in ((left, right), (right, left)):
        is_of_bools = isinstance(one, Boolean) or (isinstance(one, Tensor) and one.weak is bool)
        if isinstance(other, bool) and isinstance(one, Tensor) and one.run_type is not None:
            found = is_truth(one, other)
            return _not(run, found) if negative else found
        if isinstance(other, bool) and is_of_bools and one is not other:
            if isinstance(one, Boolean):
                return one if other != negative else sympy.Not(one)
            return one if other != negative else _not(run, one)
    return (left is right) != negative


def _are_equal(run: Context, left: Any, right: Any) -> Any:
    """``left == right``, where one of them is a list."""
    one, other = (left, right) if isinstance(left, RunList) else (right, left)
    if (other.kind if isinstance(other, RunList) else type(other)) is not one.kind:
        return False
    if not isinstance(other, RunList) and not other:
        return one.count == 0 if isinstance(one.count, int) else _is_empty(run, one)
    is_of_numbers = all(
        isinstance(v.form, Leaf) and not (v.form.shape or v.form.texts)
        if isinstance(v, RunList)
        else all(not isinstance(e, str | list | tuple | dict | None) for e in v)
        for v in (one, other)
    )
    if one.kind is not list or not is_of_numbers:
        run.tracer.refuse(
            "a list of others than numbers, whose content the run decides, is compared with ==; "
            "use len(...) and np.array_equal"
        )
    return run.call(np.array_equal, [lists.as_array(run, one), lists.as_array(run, other)], {})


def _is_empty(run: Context, own: RunList) -> Any:
    found = combine(run.tracer, np.equal, [own.count, 0])
    return Tensor((), np.dtype(bool), found.element, bool)


def _equal_lists(run: Context, op: ast.cmpop, left: object, right: object) -> Any:
    """``left == right`` and others, of lists whose content the run decides."""
    if not isinstance(op, ast.Eq | ast.NotEq):
        run.tracer.refuse("an order of lists whose content the run decides; compare their elements")
    found = _are_equal(run, left, right)
    return _not(run, found) if isinstance(op, ast.NotEq) else found


def compared(run: Context, op: ast.cmpop, left: Any, right: Any) -> Any:
    """``left op right``."""
    if isinstance(op, ast.Is | ast.IsNot):
        return _is_same(run, left, right, negative=isinstance(op, ast.IsNot))
    left, right = without_mixture(left), without_mixture(right)
    if isinstance(op, ast.In | ast.NotIn):
        return _is_in(run, op, left, right)
    if isinstance(left, RunList) or isinstance(right, RunList):
        return _equal_lists(run, op, left, right)
    found = _of_objects(run, op, left, right)
    if found is not NotImplemented:
        return found
    if (is_array(left) or is_array(right)) and not is_foreign([left, right], {}):
        if any(side is None or type(side) is str for side in (left, right)):
            return _never_equal(run, op, left, right)
        return combine(run.tracer, UFUNCS[type(op)], [left, right])
    if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
        return _compared_symbols(run, op, left, right)
    sequences = isinstance(left, tuple | list) and isinstance(right, tuple | list)
    if sequences and has_data((left, right)):
        return _same_tuples(run, op, left, right)
    try:
        return PYTHON[type(op)](left, right)
    except TypeError as problem:
        run.tracer.fail(problem)


def _never_equal(run: Context, op: ast.cmpop, left: object, right: object) -> Any:
    """An array, or a number of it, compared with None or with a text: no element is equal."""
    if not isinstance(op, ast.Eq | ast.NotEq):
        kind = "NoneType" if left is None or right is None else "str"
        run.tracer.refuse(f"TypeError: numbers and instances of {kind!r} have no order")
    array = run.tracer.tensor(left if is_array(left) else right)
    if not array.ndim:
        return isinstance(op, ast.NotEq)
    found = number(isinstance(op, ast.NotEq), np.dtype(bool))
    return Tensor(array.shape, np.dtype(bool), lambda _: found, mask=array.mask)


def _of_objects(run: Context, op: ast.cmpop, left: object, right: object) -> Any:
    """A comparison of texts of the run, or of objects; NotImplemented of other things."""
    is_of_run = isinstance(left, texts.Text) or isinstance(right, texts.Text)
    if is_of_run and isinstance(left, str) and isinstance(right, str):
        return _compared_texts(run, op, left, right)
    return operate(run, op, left, right)


def _compared_texts(run: Context, op: ast.cmpop, left: str, right: str) -> Any:
    if not isinstance(op, ast.Eq | ast.NotEq):
        run.tracer.refuse("the order of texts that the run decides")
    found = texts.are_equal(left, right)
    return found if isinstance(op, ast.Eq) else _not(run, found)


def _compared_symbols(run: Context, op: ast.cmpop, left: object, right: object) -> Any:
    if is_whole(left) and is_whole(right):
        difference = subtract(left, right)
        if isinstance(difference, int):
            return bool(PYTHON[type(op)](difference, 0))
        return RELATIONS[type(op)](sympy.sympify(left), sympy.sympify(right))
    if any(side is None or isinstance(side, str) for side in (left, right)):
        return isinstance(op, ast.NotEq)
    return combine(run.tracer, UFUNCS[type(op)], [left, right])


def _same_tuples(run: Context, op: ast.cmpop, left: Sequence[Any], right: Sequence[Any]) -> Any:
    if not isinstance(op, ast.Eq | ast.NotEq):
        return _in_order(run, op, left, right)
    found: Any = type(left) is type(right) and len(left) == len(right)
    for one, other in zip(left, right, strict=True) if found else ():
        if isinstance(one, sympy.Basic | int) and isinstance(other, sympy.Basic | int):
            alike: Any = same(one, other)
            if not alike and any(_changes(run, v) for v in (one, other)):
                alike = _equal(run, one, other)
        else:
            alike = _equal(run, one, other)
        found = _both(run, found, alike)
    return found if isinstance(op, ast.Eq) else _not(run, found)


_STRICT: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.LtE: ast.Lt, ast.GtE: ast.Gt}


def _in_order(run: Context, op: ast.cmpop, left: Sequence[Any], right: Sequence[Any]) -> Any:
    """``left < right`` and its like: what differs first decides."""
    if isinstance(left, list) != isinstance(right, list):
        kinds = " and ".join(repr(type(side).__name__) for side in (left, right))
        run.tracer.refuse(f"TypeError: the order of instances of {kinds} is not defined")
    found: Any = PYTHON[type(op)](len(left), len(right))
    strict, is_python = _STRICT.get(type(op), type(op))(), True
    for one, other in reversed(list(zip(left, right, strict=False))):
        is_first = _known_or_tensor(run, compared(run, strict, one, other))
        is_python &= not isinstance(is_first, Tensor) or is_first.weak is not None
        rest = _both(run, _equal(run, one, other), found)
        found = _not(run, _both(run, _not(run, is_first), _not(run, rest)))
    if is_python or not isinstance(found, Tensor):
        return found
    return Tensor((), found.dtype, found.element)  # what decides may be a number of NumPy


def _changes(run: Context, value: object) -> bool:
    """Whether a number is no number of sizes alone: loops, or the run, decide it."""
    symbols = value.free_symbols if isinstance(value, sympy.Basic) else ()
    return any(s.name in run.tracer.known.bounds for s in symbols)


def operate(run: Context, op: ast.AST, left: object, right: object) -> Any:
    """What an operator gives where an operand is an object.

    Raises:
        Refusal: neither class has a method for it.
    """
    if not objects.has_operators(left) and not objects.has_operators(right):
        return NotImplemented
    name = objects.NAMES[type(op)]
    found = (
        objects.special(run, left, name, right) if objects.has_operators(left) else NotImplemented
    )
    if found is NotImplemented and objects.has_operators(right):
        found = objects.special(run, right, objects.TURNED.get(name, f"r{name}"), left)
    if found is NotImplemented and not (objects.is_own(left) or objects.is_own(right)):
        return found
    if found is NotImplemented and name in ("eq", "ne"):
        return (left is right) == (name == "eq")
    if found is NotImplemented:
        fail(run, PYTHON[type(op)], left, right)
    return found


def tested(run: Context, value: object) -> Any:
    """What decides a condition: of a list whether it has elements, of an object what it says."""
    if isinstance(value, RunList):
        return lists.is_not_empty(run, value)
    if not objects.is_own(value) or isinstance(value, tuple | list | dict):
        return value
    for name in ("bool", "len"):
        found = objects.special(run, value, name)
        if found is not NotImplemented:
            return found
    return True
