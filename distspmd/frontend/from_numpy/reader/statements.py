"""How each kind of statement is read."""

from __future__ import annotations

import ast
import importlib
import operator
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.arrays import array_protocol, checks, indexing
from distspmd.frontend.from_numpy.arrays.arrays_from_outside import check_changeable
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex
from distspmd.frontend.from_numpy.arrays.subscripts import has_ellipsis, is_basic
from distspmd.frontend.from_numpy.arrays.transcript import KnownError, told
from distspmd.frontend.from_numpy.arrays.values import Tensor, View
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.host.preferred import for_python
from distspmd.frontend.from_numpy.kinds.absence import may_be_unbound
from distspmd.frontend.from_numpy.kinds.variables import OfPython, OneOf
from distspmd.frontend.from_numpy.lists import list_changes
from distspmd.frontend.from_numpy.lists.known_keys import known_key
from distspmd.frontend.from_numpy.lists.run_lists import RunList, decided_by_run
from distspmd.frontend.from_numpy.reader import (
    generators,
    objects,
    operators,
    python_errors,
)
from distspmd.frontend.from_numpy.reader.accumulators import accumulate
from distspmd.frontend.from_numpy.reader.bindings import name_in_source
from distspmd.frontend.from_numpy.reader.branches import branch
from distspmd.frontend.from_numpy.reader.decorators import decorated
from distspmd.frontend.from_numpy.reader.frames import Closure, Handlers
from distspmd.frontend.from_numpy.reader.jumps import (
    RESULT,
    TRIED,
    Attempt,
    Given,
    StoppedFor,
    StoppedWhile,
    assigned_unless,
    error_of,
    is_error,
)
from distspmd.frontend.from_numpy.reader.loops import for_loop
from distspmd.frontend.from_numpy.reader.map_indices import where_in_range
from distspmd.frontend.from_numpy.reader.mutation import before_change, before_missing
from distspmd.frontend.from_numpy.reader.operators import UFUNCS
from distspmd.frontend.from_numpy.reader.registry import statement
from distspmd.frontend.from_numpy.reader.sharing import combined_with, conflict_of
from distspmd.frontend.from_numpy.reader.while_loops import while_loop


@statement(ast.Assign)
def _assign(run: Context, node: ast.Assign) -> None:
    (first, *_) = node.targets
    name = name_in_source(node.value)
    if isinstance(first, ast.Name) and not first.id.startswith(TRIED):
        name = first.id
    if name == RESULT and _has_choice(run, node.value):
        run.variables[RESULT] = _returned(run, node.value)
        return
    if isinstance(node.value, ast.Name) and isinstance(first, ast.Name) and is_error(node.value.id):
        run.variables[first.id] = run.variables.get(node.value.id)  # which may never be read
        return
    before = _caught(run)
    with run.tracer.named(run.tracer.frames[-1].target if name == RESULT else name):
        if isinstance(node.value, ast.GeneratorExp):
            value: Any = generators.of_expression(run, node.value)
        elif _is_pairwise(node):
            value = tuple(map(run.whatever, node.value.elts))  # type: ignore[attr-defined]
        else:
            value = run.assigned(node.value)
    if _may_have_failed(run, node, value, before):
        return
    for target in node.targets:
        run.tracer.node = node
        run.bind(target, value)


def _is_pairwise(node: ast.Assign) -> bool:
    """Whether values are assigned one by one, ``a, b = c, d``, any of which may be None."""
    both = isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
    return both and not any(isinstance(part, ast.Starred) for part in ast.walk(node))


def _caught(run: Context) -> dict[str, Any]:
    """The flags of the handlers around."""
    flags = [flag for each in run.tracer.frames[-1].attempts for flag in each.flags]
    return {flag: run.variables.get(flag) for flag in flags}


def _may_have_failed(
    run: Context, node: ast.Assign | ast.AnnAssign, value: object, before: Mapping[str, Any]
) -> bool:
    """Bind a value unless an error was caught while it was computed; False where none may be."""
    flags = [flag for flag, was in before.items() if run.variables[flag] is not was]
    if flags:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        run.variables[TRIED] = value
        run.statement(assigned_unless(flags, targets, TRIED, node))
        run.variables.pop(TRIED, None)
    return bool(flags)


def _has_choice(run: Context, node: ast.expr) -> bool:
    """Whether one of two things is returned, or an object of Python, by itself or as a part."""
    if isinstance(node, ast.Tuple | ast.List):
        return any(isinstance(p, ast.IfExp) or _has_choice(run, p) for p in node.elts)
    if isinstance(node, ast.Dict):
        return None not in node.keys and any(_has_choice(run, p) for p in node.values)
    found = _held(run, node)
    is_choice = isinstance(found, OneOf) and not may_be_unbound(found)
    return is_choice or isinstance(found, OfPython)


def _held(run: Context, node: ast.expr) -> Any:
    """What a variable stands for, or an attribute or entry of an object that is one."""
    if isinstance(node, ast.Name):
        return run.variables.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        base = run.variables.get(node.value.id)
        return vars(base).get(node.attr) if objects.is_own(base) else None
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        base, key = run.variables.get(node.value.id), node.slice
        return base.get(key.value) if type(base) is dict and isinstance(key, ast.Constant) else None
    return None


def _returned(run: Context, node: ast.expr) -> Any:
    """What is returned: one of two things may be, and what Python keeps; neither is read here."""
    if isinstance(node, ast.Dict) and _has_choice(run, node):
        keys = [run.value(key) for key in node.keys if key is not None]
        return {k: _returned(run, v) for k, v in zip(keys, node.values, strict=True)}
    if isinstance(node, ast.Tuple | ast.List) and _has_choice(run, node):
        found: list[Any] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                found += map(run.settled_parts, run.unpacked(run.value(part.value), part))
            else:
                found.append(_returned(run, part))
        return tuple(found) if isinstance(node, ast.Tuple) else found
    if _has_choice(run, node):
        return _held(run, node)
    return run.settled_parts(run.whatever(node))


@statement(ast.AnnAssign)
def _annotated(run: Context, node: ast.AnnAssign) -> None:
    if node.value is None:
        return
    name = node.target.id if isinstance(node.target, ast.Name) else None
    before = _caught(run)
    with run.tracer.named(name):
        value = run.assigned(node.value)
    if not _may_have_failed(run, node, value, before):
        run.bind(node.target, value)


@statement(ast.AugAssign)
def _augmented(run: Context, node: ast.AugAssign) -> None:
    target = node.target
    if isinstance(target, ast.Name):
        _augment_name(run, node, target)
        return
    if isinstance(target, ast.Subscript):
        _augment_part(run, node, target)
        return
    base = run.value(target.value)
    part = run.attribute(base, target.attr)
    if objects.is_own(base):
        new = run.present(node.value)
        if not _changed(run, part, node.op, new):
            objects.set_attribute(run, base, target.attr, run.binary(node.op, part, new))
        return
    if not isinstance(part, View):
        run.tracer.refuse(f"an augmented assignment to {ast.unparse(target)}")
    _in_place(run, part, node.op, run.value(node.value))


def _augment_name(run: Context, node: ast.AugAssign, target: ast.Name) -> None:
    tracer = run.tracer
    old = run.present(ast.copy_location(ast.Name(target.id, ast.Load()), target))
    with tracer.named(target.id):
        new = run.present(node.value)
    tracer.node = node
    if isinstance(old, View) and accumulate(run, old, node.op, new):
        return
    array_protocol.check_operand(run, old, new)
    if _changed(run, old, node.op, new):
        return
    if objects.is_own(old):
        found = objects.special(run, old, f"i{objects.NAMES[type(node.op)]}", new)
        if found is not NotImplemented:
            run.bind(target, found)
            return
    tracer.node = node
    with tracer.named(target.id):
        run.bind(target, run.binary(node.op, old, new))


def _changed(run: Context, old: Any, op: ast.operator, new: Any) -> bool:
    """Change an array or a list in place; False for what is bound anew."""
    check_changeable(run, old)
    is_array = isinstance(old, View) and (old.ndim > 0 or old.container.is_point)
    if is_array and old.weak is None:  # numbers are bound anew
        _in_place(run, old, op, new)
        return True
    if isinstance(old, RealOrComplex) and old.ndim:
        indexing.write(run.tracer, old, Ellipsis, run.binary(op, old, new))
        return True
    if isinstance(old, RunList):
        if not isinstance(op, ast.Add):
            run.tracer.refuse("an augmented assignment to a list whose content the run decides")
        list_changes.extend(run, old, new)
        return True
    if isinstance(old, list | deque) and isinstance(op, ast.Add):
        before_change(run, old)
        old.extend(list(new))
        return True
    if isinstance(old, set | dict) and type(op) in _IN_PLACE:
        before_change(run, old)
        _IN_PLACE[type(op)](old, new)
        return True
    return False


_IN_PLACE: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.BitOr: operator.ior,
    ast.BitAnd: operator.iand,
    ast.BitXor: operator.ixor,
    ast.Sub: operator.isub,
}
"""What changes a set or a dictionary that is known."""


def _augment_part(run: Context, node: ast.AugAssign, target: ast.Subscript) -> None:
    tracer = run.tracer
    base = run.writable(target.value)
    items = run.subscript(target.slice)
    new = run.present(node.value)
    if _augment_part_of_object(run, base, items, node.op, new):
        return
    tracer.node = node
    if isinstance(base, RunList):
        list_changes.augment(run, base, items, node.op, new)
        return
    if isinstance(base, list) and has_data(items):
        decided_by_run(run, base)
    if isinstance(base, list | dict):
        if isinstance(base, dict):
            before_missing(run, base, known_key(run, base, items))
        old = base[items]
        if not _changed(run, old, node.op, new):
            before_change(run, base, items)
            base[items] = run.settled_parts(run.binary(node.op, old, new))
        return
    if tracer.map.straight is not None and tracer.map.straight.update(base, items, node.op, new):
        return
    python_errors.check_item_of(run, base, items, new)
    if not isinstance(base, View | RealOrComplex):
        tracer.refuse(f"{told(base)} cannot be assigned to")
    if is_basic(items) and isinstance(base, View):
        with where_in_range(tracer):
            part = indexing.read(tracer, base, items)
            assert isinstance(part, View)
            is_view = part.ndim > 0 or has_ellipsis(items)
            _in_place(run, part, node.op, new, is_element=not is_view)
        return
    old = indexing.read(tracer, base, items)
    found = run.binary(node.op, old, new)
    _check_cast(run, node.op, found, old)
    indexing.write(tracer, base, items, found)


def _augment_part_of_object(
    run: Context, base: object, items: object, op: ast.operator, new: object
) -> bool:
    if not objects.is_own(base) or isinstance(base, list | dict):
        return False
    old = objects.part(run, base, items)
    found = old if _changed(run, old, op, new) else run.binary(op, old, new)
    if objects.special(run, base, "setitem", items, found) is NotImplemented:
        python_errors.fail(run, operator.setitem, base, items, found)
    return True


def _in_place(
    run: Context, old: View, op: ast.operator, value: object, *, is_element: bool = False
) -> None:
    """``old op= value``, in the type of the old one.

    An element, ``a[i] op= value``, is a number that is bound anew: the result is assigned to the
    place, in whatever type it has.
    """
    tracer = run.tracer
    if isinstance(op, ast.MatMult):
        tracer.assign(old, run.binary(op, old, value))
        return
    found = run.binary(op, old, value)
    conflict = conflict_of(tracer, old, op)
    if not is_element or conflict is not None or found.dtype.kind == "c":
        _check_cast(run, op, found, old)
    if conflict is not None:
        tracer.write(old, combined_with(tracer, old, op, value), conflict)
        return
    tracer.assign(old, found)


def _check_cast(run: Context, op: ast.operator, found: object, old: object) -> None:
    """Refuse to change an array in place by numbers that its type does not hold, as NumPy does."""
    if not isinstance(found, Tensor) or not isinstance(old, Tensor):
        return
    if not np.can_cast(found.dtype, old.dtype, "same_kind"):
        run.tracer.refuse(
            f"Cannot cast ufunc {UFUNCS[type(op)].__name__!r} output from {found.dtype} to "
            f"{old.dtype} with casting rule 'same_kind'"
        )


@statement(ast.Expr)
def _expression(run: Context, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant):
        return
    run.value(node.value)


@statement(ast.If)
def _if(run: Context, node: ast.If) -> None:
    branch(run, node)


@statement(StoppedFor)
def _for(run: Context, node: StoppedFor) -> None:
    for_loop(run, node)


@statement(Given)
def _given(run: Context, node: Given) -> None:
    generators.give_to_loop(run, node)


@statement(StoppedWhile)
def _while(run: Context, node: StoppedWhile) -> None:
    while_loop(run, node)


@statement(ast.FunctionDef)
def _define(run: Context, node: ast.FunctionDef) -> None:
    own = node.args
    names = [a.arg for a in (*own.posonlyargs, *own.args)]
    values = [run.value(d) for d in own.defaults]
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
    for argument, default in zip(own.kwonlyargs, own.kw_defaults, strict=True):
        if default is not None:
            defaults[argument.arg] = run.value(default)
    frame = run.tracer.frames[-1]
    made = Closure(node, frame, defaults, tuple(frame.comprehensions))
    run.variables[node.name] = decorated(run, node.decorator_list, made)


@statement(ast.Assert)
def _assert(run: Context, node: ast.Assert) -> None:
    found = operators.tested(run, run.value(node.test))
    known = run.truth(found)
    if known is None:
        checks.add_assertion(run, node, found)
    elif not known:
        message = run.value(node.msg) if node.msg is not None else ast.unparse(node.test)
        if checks.catch(run, AssertionError, message):
            return
        run.tracer.check_uncaught("AssertionError", is_said=True)
        if not run.tracer.inner:
            run.tracer.refuse(f"the assertion is false: {message}")
        checks.end(run, "AssertionError", message)
        run.tracer.ended = True


@statement(ast.Nonlocal)
def _nonlocal(run: Context, node: ast.Nonlocal) -> None:
    run.tracer.refuse(
        f"the variable {node.names[0]!r} of a function around, which is bound in a class, by an "
        "import or outside of the program, is not covered: return it"
    )


@statement(ast.Global)
def _of_others(run: Context, node: ast.Global) -> None:
    run.tracer.refuse(
        f"the program changes {', '.join(node.names)}, which is not its own: the change would be "
        "made once, when the program is read. Pass the value as an argument, and return it"
    )


@statement(ast.Pass)
def _pass(run: Context, node: ast.stmt) -> None:
    pass


@statement(ast.Delete)
def _delete(run: Context, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            run.variables.pop(target.id, None)
            continue
        if isinstance(target, ast.Attribute):
            run.call(delattr, [run.value(target.value), target.attr], {})
            continue
        base: Any = run.value(target.value) if isinstance(target, ast.Subscript) else None
        if isinstance(target, ast.Subscript) and isinstance(base, RunList):
            for_python(run, "pop")
        if not isinstance(target, ast.Subscript):
            run.tracer.refuse(f"del {ast.unparse(target)}")
        items = run.subscript(target.slice)
        if _delete_part_of_object(run, base, items):
            continue
        if isinstance(base, dict):
            known_key(run, base, items, "loses")
        before_change(run, base)
        try:
            del base[items]
        except (TypeError, LookupError) as problem:
            run.tracer.fail(problem)


def _delete_part_of_object(run: Context, base: object, items: object) -> bool:
    """``del base[items]`` of an object; what is no list or dictionary else has no parts to lose."""
    if isinstance(base, list | dict | deque):
        return False
    if objects.is_own(base) and objects.special(run, base, "delitem", items) is not NotImplemented:
        return True
    return python_errors.fail(run, operator.delitem, base, items)


@statement(ast.Import)
def _import(run: Context, node: ast.Import) -> None:
    for alias in node.names:
        module = __import__(alias.name)
        if alias.asname:
            for part in alias.name.split(".")[1:]:
                module = getattr(module, part)
        run.variables[alias.asname or alias.name.split(".")[0]] = module


@statement(ast.ImportFrom)
def _import_from(run: Context, node: ast.ImportFrom) -> None:
    package = run.variables.get("__package__")
    module = importlib.import_module("." * node.level + (node.module or ""), package)
    for alias in node.names:
        if not hasattr(module, alias.name):  # a module of a package
            importlib.import_module(f"{module.__name__}.{alias.name}")
        run.variables[alias.asname or alias.name] = getattr(module, alias.name)


@statement(ast.Raise)
def _raise(run: Context, node: ast.Raise) -> None:
    checks.add_raise(run, node)


@statement(Attempt)
def _attempt(run: Context, node: Attempt) -> None:
    kinds = [_kinds_of(run, handler) for handler in node.handlers]
    frame = run.tracer.frames[-1]
    own = Handlers(kinds, node.flags, run.tracer.program.block)
    frame.attempts.append(own)
    try:
        run.block(node.body)
    except KnownError as known:
        if known.flag not in own.flags:
            raise
        run.variables[known.flag], run.variables[error_of(known.flag)] = True, str(known)
    except ImportError as problem:  # of an import in the body, which is done here
        if not checks.catch(run, type(problem), str(problem)):
            raise
    finally:
        frame.attempts.pop()


def _kinds_of(run: Context, handler: ast.ExceptHandler) -> tuple[type[BaseException], ...]:
    """The errors that a handler names; all where it names none."""
    found = BaseException if handler.type is None else run.value(handler.type)
    every = found if isinstance(found, tuple) else (found,)
    for each in every:
        if not isinstance(each, type) or not issubclass(each, BaseException):
            run.tracer.refuse(f"a handler of {told(each)}, which is no class of errors")
    return every
