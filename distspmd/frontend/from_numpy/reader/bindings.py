"""Names that statements bind and use."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from distspmd.frontend.from_numpy.reader.jumps import Given


def bound_names(node: ast.AST) -> set[str]:
    """Names that the body of a loop may bind."""
    found: set[str] = set()
    for part in node.body:  # type: ignore[attr-defined]
        found |= _bound_in(part)
    return found


def _bound_in(node: ast.AST) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return {node.name} if isinstance(node, ast.FunctionDef) else set()
    found = set()
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        found.add(node.id)
    for child in ast.iter_child_nodes(node):
        found |= _bound_in(child)
    return found


def own_variables(statements: Sequence[ast.stmt]) -> set[str]:
    """Variables of a function that statements of it bind; not those of comprehensions."""
    own: set[str] = set()
    shared: set[str] = set()
    for statement in statements:
        _note_bindings(statement, own, shared)
    return own - shared


_Found = TypeVar("_Found")


def once_per_node(tell: Callable[[Any], _Found]) -> Callable[[Any], _Found]:
    """A question about the syntax of a function that is answered once, however often it is called.

    The node may not change after it was asked for, nor may anybody change the answer; and an answer
    that holds the node would keep both for ever.
    """
    known: WeakKeyDictionary[ast.AST, _Found] = WeakKeyDictionary()

    @functools.wraps(tell)
    def told(node: ast.AST) -> _Found:
        if node not in known:
            known[node] = tell(node)
        return known[node]

    return told


_SCOPES = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda


def without_locals(node: ast.AST, known: Mapping[str, Any]) -> dict[str, Any]:
    """What a function sees of names around it: not of those that it binds anywhere itself."""
    local = _locals_of(node)
    return {name: value for name, value in known.items() if name not in local}


@once_per_node
def _locals_of(node: ast.AST) -> frozenset[str]:
    own: set[str] = set()
    shared: set[str] = set()
    for part in getattr(node, "body", []) if not isinstance(node, ast.Lambda) else []:
        _note_bindings(part, own, shared)
    return frozenset(own - shared)


def _note_bindings(node: ast.AST, own: set[str], shared: set[str]) -> None:
    """Note the names that are variables of the function in which something stands."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        shared.update(node.names)
    elif isinstance(node, _SCOPES):
        own.update([] if isinstance(node, ast.Lambda) else [node.name])
        return
    elif isinstance(node, ast.Import | ast.ImportFrom):
        own.update((each.asname or each.name).split(".")[0] for each in node.names)
    elif isinstance(node, ast.ExceptHandler) and node.name:
        own.add(node.name)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        own.add(node.id)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension):  # its targets are variables of its own
            for part in (child.iter, *child.ifs):
                _note_bindings(part, own, shared)
        else:
            _note_bindings(child, own, shared)


@once_per_node
def yields(node: ast.AST) -> bool:
    """Whether a function is a generator; those that it defines are others."""
    for part in ast.iter_child_nodes(node):
        if isinstance(part, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(part, ast.FunctionDef | ast.Lambda) and yields(part):
            return True
    return False


@once_per_node
def written_into(node: ast.AST) -> frozenset[str]:
    """Names of variables of which a function assigns parts: ``x[...] = value``."""
    return frozenset(
        part.value.id
        for part in ast.walk(node)
        if isinstance(part, ast.Subscript)
        and isinstance(part.ctx, ast.Store)
        and isinstance(part.value, ast.Name)
    )


_CHANGING = {"sort", "fill", "resize", "put", "partition", "itemset", "setfield", "byteswap"}


@once_per_node
def changed_in_place(node: ast.AST) -> frozenset[str]:
    """Names of variables whose arrays a function changes: parts, ``x += 1``, ``out=x``."""
    found = set(written_into(node))
    for part in ast.walk(node):
        if isinstance(part, ast.AugAssign):
            target = part.target
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value  # type: ignore[assignment]
            found |= {target.id} if isinstance(target, ast.Name) else set()
        elif isinstance(part, ast.Call):
            function = part.func
            if isinstance(function, ast.Attribute) and function.attr in _CHANGING | {"shuffle"}:
                changed = [function.value, *part.args]
            else:
                changed = [k.value for k in part.keywords if k.arg == "out"]
            found |= {c.id for c in changed if isinstance(c, ast.Name)}
    return frozenset(found)


_MAKING = {"copy", "array", "zeros", "ones", "empty", "full", "arange", "linspace"}
_MAKING |= {f"{name}_like" for name in ("zeros", "ones", "empty", "full")}
"""Functions and methods that make an array, whatever they are given."""


def changes_again(body: Sequence[ast.stmt], name: str, line: int) -> bool:
    """Whether the array that a variable has at a line may be changed in place behind it in the run.

    It is not by what stands before the line, unless a loop around both comes back to that with the
    same array: one in which each iteration makes it anew does not.
    """
    parts = [part for statement in body for part in ast.walk(statement)]
    loops = [p for p in parts if isinstance(p, ast.For | ast.While) and _has_line(p, line)]
    for part in parts:
        if not isinstance(part, ast.Subscript | ast.AugAssign | ast.Call):
            continue
        if name not in changed_in_place(part):
            continue
        around = [loop for loop in loops if _has_line(loop, part.lineno)]
        if part.lineno >= line or (around and not _makes_anew(around[-1], name)):
            return True
    return False


def _has_line(node: ast.For | ast.While, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _makes_anew(loop: ast.For | ast.While, name: str) -> bool:
    """Whether each iteration of a loop first makes the array of a variable."""
    parts = list(ast.walk(loop))
    bound = {id(p) for p in parts if _is_bound(p, name)}
    making = {id(p.targets[0]) for p in parts if isinstance(p, ast.Assign) and _makes(p)}
    adding = {id(p.target) for p in parts if isinstance(p, ast.AugAssign)}
    return bound <= making | adding and is_written_first(loop, name)


def _is_bound(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)


def _makes(node: ast.Assign) -> bool:
    """Whether an assignment gives one variable an array that nothing else has."""
    if len(node.targets) != 1:
        return False
    function = node.value.func if isinstance(node.value, ast.Call) else None
    name = getattr(function, "attr", None)
    return name in _MAKING or isinstance(node.value, ast.BinOp | ast.UnaryOp)


def is_written_first(node: ast.For | ast.While, name: str) -> bool:
    """Whether each iteration binds a variable before it reads it."""
    if isinstance(node, ast.While) and _uses(node.test, name):
        return False
    return _first_use(node.body, name) == "write"


def _first_use(statements: Sequence[ast.stmt], name: str) -> str | None:
    for statement in statements:
        found = _use(statement, name)
        if found is not None:
            return found
    return None


def _use(node: ast.stmt, name: str) -> str | None:
    if isinstance(node, Given):
        if _uses(node.value, name):
            return "read"
        return "write" if _binds(node.target, name) else _first_use(node.body, name)
    if isinstance(node, ast.For):
        return _use_in_loop(node, name)
    if isinstance(node, ast.Assign):
        if _uses(node.value, name):
            return "read"
        if any(_binds(t, name) for t in node.targets):
            return "write"
        return "read" if any(_uses(t, name) for t in node.targets) else None
    if isinstance(node, ast.If):
        if _uses(node.test, name):
            return "read"
        one, other = _first_use(node.body, name), _first_use(node.orelse, name)
        if "read" in (one, other):
            return "read"
        return "write" if one == other == "write" else ("maybe" if one or other else None)
    return "read" if _uses(node, name) else None


def _use_in_loop(node: ast.For, name: str) -> str | None:
    if _uses(node.iter, name):
        return "read"
    if _binds(node.target, name) or _first_use(node.body, name) == "write":
        return "write"
    return "read" if any(_uses(statement, name) for statement in node.body) else None


def _binds(target: ast.AST, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_binds(t, name) for t in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def _uses(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(n, ast.Name)
        and n.id == name
        and not (isinstance(n.ctx, ast.Store) and not isinstance(node, ast.AugAssign))
        for n in ast.walk(node)
    )


def count_bindings(node: ast.AST, name: str) -> int:
    """How often syntax binds a name."""
    names = (part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name)
    return sum(isinstance(part.ctx, ast.Store) for part in names)


def is_bound_in(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether a name is bound by statements, and so a variable of their function."""
    return any(count_bindings(statement, name) for statement in statements)


def is_read_unbound(statements: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements may read a variable before they bind it, with conditions of any value."""
    return _exposes(statements, name)[0] or any(_deletes(part, name) for part in statements)


def _deletes(node: ast.AST, name: str) -> bool:
    """Whether a statement takes a variable its value."""
    names = (n for part in ast.walk(node) if isinstance(part, ast.Delete) for n in part.targets)
    return any(isinstance(n, ast.Name) and n.id == name for n in names)


def _exposes(statements: Sequence[ast.stmt], name: str) -> tuple[bool, bool]:
    """Whether they may read a variable first, and whether what follows has it bound by them."""
    for statement in statements:
        reads, binds = _exposes_one(statement, name)
        if reads or binds:
            return reads, binds
    return False, False


def _exposes_one(node: ast.stmt, name: str) -> tuple[bool, bool]:
    if isinstance(node, ast.If):
        ways = [_exposes(way, name) for way in (node.body, node.orelse)]
        return _uses(node.test, name) or any(r for r, _ in ways), all(b for _, b in ways)
    if isinstance(node, ast.For):
        inside = not _binds(node.target, name) and _exposes(node.body, name)[0]
        return _uses(node.iter, name) or inside or _exposes(node.orelse, name)[0], False
    if isinstance(node, ast.While):
        ways = [_exposes(way, name) for way in (node.body, node.orelse)]
        return _uses(node.test, name) or any(r for r, _ in ways), False
    if isinstance(node, ast.Try):
        return _exposes_attempt(node, name)
    if isinstance(node, ast.With):
        reads, binds = _exposes(node.body, name)
        return any(_uses(item, name) for item in node.items) or reads, binds
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return _uses(node.value, name), _binds(node.target, name)
    if isinstance(node, ast.Assign):
        parts = [node.value, *(t for t in node.targets if not _binds(t, name))]
        is_bound = any(_binds(t, name) for t in node.targets)
        return any(_uses(part, name) for part in parts), is_bound
    ends = isinstance(node, ast.Continue | ast.Break | ast.Return | ast.Raise)
    return _uses(node, name), ends


def _exposes_attempt(node: ast.Try, name: str) -> tuple[bool, bool]:
    """The same of a ``try``, whose body may end anywhere."""
    body = _exposes(node.body, name)
    others = [(False, True) if body[1] else _exposes(node.orelse, name)]
    handled = [_exposes(handler.body, name) for handler in node.handlers]
    last = _exposes(node.finalbody, name)
    ways = [body, *others, *handled, last]
    binds = last[1] or ((body[1] or others[0][1]) and all(b for _, b in handled))
    return any(reads for reads, _ in ways), binds


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "plus",
    ast.Sub: "minus",
    ast.Mult: "times",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
}


def name_in_source(node: ast.expr) -> str | None:
    """What the value of an expression is called, by its source: ``a_matmul_b``, ``sum_x``."""
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        return f"{_operand(node.left)}_{_SIGNS[type(node.op)]}_{_operand(node.right)}"
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute) and _root(function) not in _MODULES:
            return f"{function.attr}_{_operand(function.value)}"
        if isinstance(function, ast.Name | ast.Attribute):
            own = function.id if isinstance(function, ast.Name) else function.attr
            return f"{own}_{_operand(node.args[0])}" if node.args else own
    return None


_MODULES = ("np", "numpy", "math", "linalg", "scipy", "sp", "dace", "distspmd")


def _root(node: ast.expr) -> str | None:
    """The name before all dots."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _operand(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_operand(node.value)}_{node.attr}"
    if isinstance(node, ast.Subscript):
        return f"{_operand(node.value)}_slice"
    return "expr"
