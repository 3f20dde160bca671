"""Variables that inner functions bind, ``nonlocal n``: attributes of an object that all see.

before -> after:  ``n = 0`` ``def f(): nonlocal n; n += 1``  ->
``shared = Cells(); shared.n = 0`` ``def f(): shared.n += 1``.
So loops carry them, and branches join them, wherever the functions are called, also where such a
function calls itself as often as the run decides.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any, TypeVar

from distspmd.frontend.from_numpy.library.shared import Cells
from distspmd.frontend.from_numpy.reader.bindings import once_per_node, own_variables

_INNER = ast.FunctionDef | ast.Lambda


_Function = TypeVar("_Function", bound=ast.FunctionDef | ast.Lambda)


def with_cells(function: _Function) -> _Function:
    """A function whose variables that inner functions bind are attributes; it, if it has none."""
    made: _Function | None = _with_cells(function)
    return function if made is None else made


@once_per_node
def _with_cells(function: Any) -> Any:
    """The same; None instead of the function itself, which would keep it for ever."""
    parts = list(ast.walk(function))
    has_others = any(isinstance(part, ast.ClassDef | ast.AsyncFunctionDef) for part in parts)
    if has_others or not any(isinstance(part, ast.Nonlocal) for part in parts):
        return None
    made = copy.deepcopy(function)
    for number, each in enumerate([p for p in ast.walk(made) if isinstance(p, ast.FunctionDef)]):
        _share(each, f"__shared{number}")
    return made


def _share(function: ast.FunctionDef, holder: str) -> None:
    """Make the variables of one function that inner ones bind attributes of an object."""
    parameters = _parameters(function)
    own = own_variables(function.body) | parameters
    inner = [p for s in function.body for p in ast.walk(s) if isinstance(p, ast.Nonlocal)]
    names = {name for part in inner for name in part.names} & own
    names -= {n for part in _nonlocal_here(function) for n in part.names}
    names -= {name for statement in function.body for name in _named_by_text(statement)}
    if not names:
        return
    sharer = _Sharer(holder, frozenset(names))
    body = [part for s in function.body if (part := sharer.visit(s)) is not None]
    first: list[ast.stmt] = [
        ast.Assign([ast.Name(holder, ast.Store())], ast.Call(ast.Constant(Cells), [], []))  # type: ignore[arg-type]
    ]
    for name in sorted(names & parameters):
        target = ast.Attribute(ast.Name(holder, ast.Load()), name, ast.Store())
        first.append(ast.Assign([target], ast.Name(name, ast.Load())))
    like = function.body[0]
    function.body = [
        *(ast.fix_missing_locations(ast.copy_location(each, like)) for each in first),
        *body,
    ]


def _named_by_text(statement: ast.stmt) -> Iterator[str]:
    """Names that a definition, an import or a handler binds, which are no attributes."""
    for part in ast.walk(statement):
        if isinstance(part, ast.FunctionDef):
            yield part.name
        elif isinstance(part, ast.Import | ast.ImportFrom):
            yield from ((each.asname or each.name).split(".")[0] for each in part.names)
        elif isinstance(part, ast.ExceptHandler) and part.name:
            yield part.name


def _parameters(function: ast.FunctionDef | ast.Lambda) -> set[str]:
    return {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}


def _nonlocal_here(function: ast.FunctionDef) -> Iterator[ast.Nonlocal]:
    """What a function itself says of variables of those around it."""
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Nonlocal):
            yield part
        elif not isinstance(part, _INNER):
            waiting += ast.iter_child_nodes(part)


class _Sharer(ast.NodeTransformer):
    """Puts attributes in the place of variables, in a function and those in it that see them."""

    def __init__(self, holder: str, names: frozenset[str]) -> None:
        self.holder, self.names = holder, names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.names:
            return node
        made = ast.Attribute(ast.Name(self.holder, ast.Load()), node.id, node.ctx)
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        bound = own_variables(node.body) | _parameters(node)
        bound -= {n for part in _nonlocal_here(node) for n in part.names}
        node.args = self.visit(node.args)
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        inside = _Sharer(self.holder, self.names - bound)
        node.body = [inside.visit(statement) for statement in node.body]
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        node.names = [name for name in node.names if name not in self.names]
        return node if node.names else ast.copy_location(ast.Pass(), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self.visit(node.args)
        node.body = _Sharer(self.holder, self.names - _parameters(node)).visit(node.body)
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = [part for each in node.generators for part in ast.walk(each.target)]
            own = {part.id for part in targets if isinstance(part, ast.Name)}
            if own & self.names:
                inside = _Sharer(self.holder, self.names - own)
                return ast.NodeTransformer.generic_visit(inside, node)
        return super().generic_visit(node)
