"""Which variables statements read, bind and change, as far as their text tells."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator, Mapping, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_PURE = {
    *("abs", "all", "any", "bool", "complex", "dict", "divmod", "enumerate", "float", "frozenset"),
    *("hash", "id", "int", "isinstance", "issubclass", "len", "list", "max", "min", "pow", "print"),
    *("range", "repr", "reversed", "round", "set", "sorted", "str", "sum", "tuple", "type", "zip"),
}
"""Functions that change no argument; neither do those of NumPy and math, but for these:"""
_CHANGING = {"at", "copyto", "put", "fill_diagonal", "put_along_axis", "place", "putmask"}
_IN_PLACE = {"fill", "itemset", "partition", "put", "resize", "setfield", "sort"}
"""Methods that change an array."""


def within(statements: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All parts of statements, those of functions in them left out."""
    for each in statements:
        yield each
        if not isinstance(each, SCOPES):
            yield from within(list(ast.iter_child_nodes(each)))


def bound_in(statements: Sequence[ast.AST]) -> set[str]:
    """Names that statements bind."""
    found: set[str] = set()
    for part in within(statements):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            found.add(part.id)
        elif isinstance(part, ast.FunctionDef | ast.ClassDef):
            found |= {part.name} | _shared_by(part)
        elif isinstance(part, ast.Import | ast.ImportFrom):
            found |= {a.asname or a.name.split(".")[0] for a in part.names}
        elif isinstance(part, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and part.name:
            found.add(part.name)
    return found - _of_comprehensions(statements)


def _shared_by(node: ast.AST) -> set[str]:
    """Names of variables that a function in a program shares with the one around, and may bind."""
    return {n for part in ast.walk(node) if isinstance(part, ast.Nonlocal) for n in part.names}


def _of_comprehensions(statements: Sequence[ast.AST]) -> set[str]:
    """Names that comprehensions alone bind."""
    inside: dict[str, int] = {}
    for part in within(statements):
        if isinstance(part, ast.comprehension):
            for name in ast.walk(part.target):
                if isinstance(name, ast.Name):
                    inside[name.id] = inside.get(name.id, 0) + 1
    stores: dict[str, int] = {}
    for part in within(statements):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            stores[part.id] = stores.get(part.id, 0) + 1
    return {name for name, count in inside.items() if stores.get(name) == count}


def parameters_of(node: ast.FunctionDef | ast.Lambda) -> set[str]:
    """Names of the parameters of a function."""
    own = node.args
    every = [*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg]
    return {each.arg for each in every if each is not None}


def locals_of(node: ast.FunctionDef) -> set[str]:
    """Names of a function's own variables."""
    declared = {
        name
        for part in within(node.body)
        if isinstance(part, ast.Global | ast.Nonlocal)
        for name in part.names
    }
    return parameters_of(node) | (bound_in(node.body) - declared)


def shared_with_outer(node: ast.FunctionDef) -> set[str]:
    """Names of variables of the functions around that a function binds."""
    return {n for p in within(node.body) if isinstance(p, ast.Nonlocal) for n in p.names}


def loads(node: ast.AST, bound: frozenset[str] = frozenset()) -> set[str]:
    """Names of variables that a part of a program reads, of functions in it those from outside."""
    if isinstance(node, ast.Name):
        is_read = isinstance(node.ctx, ast.Load) and node.id not in bound
        return {node.id} if is_read else set()
    if isinstance(node, _COMPREHENSIONS):
        bound |= bound_in([g.target for g in node.generators])
    found: set[str] = set()
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        found |= {node.target.id} - bound
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        body = node.body if isinstance(node, ast.FunctionDef) else [node.body]
        inner = bound | parameters_of(node) | (bound_in(body) - _shared_by(node))
        if isinstance(node, ast.FunctionDef):
            inner |= {node.name}  # it sees itself
            found |= _shared_by(node) - bound
        outside = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
        outside += getattr(node, "decorator_list", [])
        return found.union(
            *(loads(each, bound) for each in outside), *(loads(s, inner) for s in body)
        )
    return found.union(*(loads(each, bound) for each in ast.iter_child_nodes(node)))


def exposed(statements: Sequence[ast.stmt], done: set[str]) -> set[str]:
    """Names that statements may read before they bind them; ``done`` gets those that they bind."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, ast.If):
            found |= loads(each.test) - done
            ways = [set(done), set(done)]
            found |= exposed(each.body, ways[0]) | exposed(each.orelse, ways[1])
            done |= ways[0] & ways[1]
        elif isinstance(each, ast.For | ast.While):
            head = each.iter if isinstance(each, ast.For) else each.test
            found |= loads(head) - done
            inside = set(done)
            if isinstance(each, ast.For):
                inside |= bound_in([each.target])
                found |= loads(each.target) - done
            found |= exposed(each.body, inside) | exposed(each.orelse, set(done))
        elif isinstance(each, ast.With):
            for item in each.items:
                found |= loads(item.context_expr) - done
                done |= bound_in([item.optional_vars] if item.optional_vars else [])
            found |= exposed(each.body, done)
        elif isinstance(each, ast.Try):
            for part in (each.body, *(h.body for h in each.handlers), each.orelse, each.finalbody):
                found |= exposed(part, set(done))
            done |= bound_in(each.finalbody)
        else:
            found |= loads(each) - done
            done |= bound_in([each])
    return found


def root(node: ast.AST) -> str | None:
    """The variable of which something is a part."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def changed_in(
    statements: Sequence[ast.AST], modules: Collection[str], ndims: Mapping[str, int]
) -> tuple[set[str], set[str]]:
    """Names of arrays that statements change in place, and of objects that they may change.

    Args:
        statements: parts of a program.
        modules: names whose functions change no argument, NumPy's for one.
        ndims: dimensions of variables that are arrays.
    """
    arrays: set[str | None] = set()
    objects: set[str | None] = set()
    aliases: list[tuple[str, str | None]] = []
    for part in (p for s in statements for p in ast.walk(s)):
        if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
            arrays.add(root(part))
        elif isinstance(part, ast.AugAssign):
            arrays.add(root(part.target))
        elif isinstance(part, ast.Call):
            changes, may = _changed_by_call(part, modules)
            arrays |= changes
            objects |= may
        elif isinstance(part, ast.Assign) and isinstance(part.value, ast.Subscript | ast.Name):
            if not _is_element(part.value, ndims):
                aliases += [(n, root(part.value)) for n in bound_in(part.targets)]
        elif isinstance(part, ast.For) and ndims.get(root(part.iter) or "") != 1:
            aliases += [(n, root(part.iter)) for n in bound_in([part.target])]
    for _ in aliases:
        arrays |= {owner for name, owner in aliases if name in arrays}
        objects |= {owner for name, owner in aliases if name in objects}
    known = {name for name in arrays if name is not None}
    return known, known | {name for name in objects if name is not None}


def _is_element(node: ast.AST, ndims: Mapping[str, int]) -> bool:
    """Whether something is an element of an array, as far as indices tell."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    is_index = not any(isinstance(p, ast.Slice) for p in parts)
    return is_index and ndims.get(node.value.id) == len(parts)


def _changed_by_call(
    node: ast.Call, modules: Collection[str]
) -> tuple[set[str | None], set[str | None]]:
    """Arrays and objects that a call may change."""
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    arrays = {root(k.value) for k in node.keywords if k.arg == "out"}
    given = {root(a) for a in (*node.args, *(k.value for k in node.keywords))}
    if root(called) in modules:
        return arrays | ({root(node.args[0])} if name in _CHANGING and node.args else set()), set()
    if isinstance(called, ast.Attribute):
        own = {root(called)}
        return arrays | given | (own if name in _IN_PLACE else set()), given | own
    if name in _PURE and hasattr(builtins, name):
        return arrays, set()
    return arrays | given, given
