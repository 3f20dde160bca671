"""Functions that call themselves, as deep as the run decides, become loops with stacks.

A function is cut where it calls itself. A call keeps the variables that are read behind it, and the
number of the piece behind it, in lists; the end of a call takes them back. So the function is a
loop in which each iteration is a piece::

    def f(n):                        calls = []; kept = []; piece = 0
        if n < 2: return n           while True:
        return n * f(n - 1)              if piece == 0:
                                             if n < 2: given = n; (go back)
                                             else: kept.append((n,)); calls.append(1); n = n - 1
                                         else: given = n * given; (go back)

To go back is to return what is given where ``calls`` is empty, and else to take ``piece`` from it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from distspmd.frontend.from_numpy.kinds.last_values import names_read
from distspmd.frontend.from_numpy.reader.bindings import bound_names

_GIVEN, _CALLS, _PIECE = "given__", "calls__", "piece__"


_OTHER_VARIABLES = ast.Nonlocal | ast.Global | ast.FunctionDef | ast.ClassDef
"""What has variables that are no call's own, or sees those of a call later."""


class _Unsupported(Exception):
    """A function calls itself in a form that is not cut."""


@dataclass(eq=False)
class _Piece:
    """Statements without a jump, and what comes behind them."""

    body: list[ast.stmt] = field(default_factory=list)
    test: ast.expr | None = None
    next: list[_Piece] = field(default_factory=list)
    call: list[ast.expr] | None = None
    is_end: bool = False
    number: int = -1
    target: str = ""


def as_loop(node: ast.FunctionDef) -> ast.FunctionDef | None:
    """A function without calls of itself; None where their form is not covered."""
    own = node.args
    parts = [part for part in ast.walk(node) if part is not node]
    if own.vararg or own.kwarg or own.kwonlyargs or node.decorator_list:
        return None
    if any(isinstance(part, _OTHER_VARIABLES) for part in parts):
        return None
    try:
        return _Cutter(copy.deepcopy(node)).function()
    except _Unsupported:
        return None


def calls_itself(node: ast.FunctionDef) -> bool:
    """Whether a function calls itself by its name, or as a method of its first argument."""
    return any(_is_call_of(part, node) for part in ast.walk(node))


def _is_call_of(part: ast.AST, node: ast.FunctionDef) -> bool:
    if not isinstance(part, ast.Call):
        return False
    if isinstance(part.func, ast.Name):
        return part.func.id == node.name
    first = node.args.args[0].arg if node.args.args else ""
    match part.func:
        case ast.Attribute(ast.Name(name), attribute):
            return attribute == node.name and name == first
    return False


class _Cutter:
    """Cuts a function into pieces, and writes the loop over them."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.node, self.count = node, 0
        self.entry = _Piece()
        self.names = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
        late = self.names[len(self.names) - len(node.args.defaults) :]
        self.defaults = dict(zip(late, node.args.defaults, strict=True))
        calls = [part for part in ast.walk(node) if _is_call_of(part, node)]
        given = [self.given(call) for call in calls]  # type: ignore[arg-type]
        rebound = bound_names(ast.Module(node.body, []))
        self.fixed = {
            name
            for n, name in enumerate(self.names)
            if name not in rebound
            and all(isinstance(g[n], ast.Name) and g[n].id == name for g in given)  # type: ignore[attr-defined]
        }
        self.locals = (bound_names(ast.Module(node.body, [])) | {*self.names}) - self.fixed
        self.gives = any(
            isinstance(part, ast.Return) and part.value is not None for part in _own_parts(node)
        )

    def given(self, call: ast.Call) -> list[ast.expr]:
        """What a call gives to each parameter."""
        first: list[ast.expr] = []
        if isinstance(call.func, ast.Attribute):
            first = [call.func.value]
        every = dict(zip(self.names, [*first, *call.args], strict=False))
        every.update({each.arg or "": each.value for each in call.keywords})
        found = [every.get(name, self.defaults.get(name)) for name in self.names]
        fits = len(first) + len(call.args) <= len(self.names) and every.keys() <= {*self.names}
        if not fits or None in found or any(isinstance(a, ast.Starred) for a in call.args):
            raise _Unsupported
        return found  # type: ignore[return-value]

    # -- pieces ---------------------------------------------------------------------------------

    def new(self, prefix: str) -> str:
        """A name that the function has not."""
        self.count += 1
        name = f"{prefix}{self.count}__"
        self.locals.add(name)
        return name

    def cut(self, statements: Sequence[ast.stmt], at: _Piece, jumps: tuple[_Piece, ...]) -> _Piece:
        """Append statements to a piece; give the one behind them."""
        for statement in statements:
            if at.is_end or at.next:
                break
            at = self.statement(statement, at, jumps)
        return at

    def statement(self, node: ast.stmt, at: _Piece, jumps: tuple[_Piece, ...]) -> _Piece:
        """Append a statement."""
        if isinstance(node, ast.Return):
            return self.returned(node, at, jumps)
        if isinstance(node, ast.Break | ast.Continue) and jumps:
            at.next = [jumps[0 if isinstance(node, ast.Break) else 1]]
            return at
        if not self.is_cut(node):
            at.body.append(node)
            return at
        if isinstance(node, ast.If):
            return self.branch(node, at, jumps)
        if isinstance(node, ast.While) and not node.orelse:
            return self.loop(node.test, node.body, [], at)
        if isinstance(node, ast.For) and not node.orelse:
            return self.counted(node, at)
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Expr):
            return self.plain(node, at)
        raise _Unsupported

    def returned(self, node: ast.Return, at: _Piece, jumps: tuple[_Piece, ...]) -> _Piece:
        """Append what gives the function's result."""
        value = node.value or ast.Constant(None)
        if isinstance(value, ast.IfExp) and self.calls_in(value):
            ways: list[list[ast.stmt]]
            ways = [[ast.copy_location(ast.Return(v), node)] for v in (value.body, value.orelse)]
            made = ast.copy_location(ast.If(value.test, ways[0], ways[1]), node)
            return self.branch(made, at, jumps)
        if self.gives:
            value, at = self.without_calls(value, at)
            at.body.append(_assign(_GIVEN, value, node))
        at.is_end = True
        return at

    def plain(self, node: ast.Assign | ast.AugAssign | ast.Expr, at: _Piece) -> _Piece:
        """Append a statement with calls in its value."""
        if isinstance(node, ast.AugAssign) and not isinstance(node.target, ast.Name):
            raise _Unsupported
        value, at = self.without_calls(node.value, at)
        if not isinstance(node, ast.Expr):
            node.value = value
            at.body.append(node)
        return at

    def is_cut(self, node: ast.stmt) -> bool:
        """Whether a statement has calls of the function in it, or leaves it, or a loop around."""
        parts = list(_own_parts(node))
        return any(_is_call_of(p, self.node) for p in parts) or (
            isinstance(node, ast.If | ast.For | ast.While)
            and any(isinstance(p, ast.Return | ast.Break | ast.Continue) for p in parts)
        )

    def branch(self, node: ast.If, at: _Piece, jumps: tuple[_Piece, ...]) -> _Piece:
        """Append a branch."""
        at.test, at = self.tested(node.test, at)
        one, other, behind = _Piece(), _Piece(), _Piece()
        at.next = [one, other]
        for block, first in ((node.body, one), (node.orelse, other)):
            last = self.cut(block, first, jumps)
            if not last.is_end and not last.next:
                last.next = [behind]
        return behind

    def tested(self, test: ast.expr, at: _Piece) -> tuple[ast.expr, _Piece]:
        """A condition; a call in it comes before it."""
        value, last = self.without_calls(test, at)
        if last is not at:
            raise _Unsupported
        return value, at

    def loop(
        self, test: ast.expr, body: list[ast.stmt], step: list[ast.stmt], at: _Piece
    ) -> _Piece:
        """Append a loop; ``step`` comes at the end of each iteration."""
        head, first, last, behind = _Piece(), _Piece(), _Piece(step), _Piece()
        at.next = [head]
        head.test, head = self.tested(test, head)
        head.next = [first, behind]
        end = self.cut(body, first, (behind, last))
        if not end.is_end and not end.next:
            end.next = [last]
        last.next = [head]
        return behind

    def counted(self, node: ast.For, at: _Piece) -> _Piece:
        """Append a loop over a range, or over what the function does not bind."""
        place, end = self.new("place"), self.new("end")
        over = node.iter
        read = ast.Name(place, ast.Load())
        value: ast.expr
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name):
            if over.func.id != "range" or not 0 < len(over.args) < 3 or over.keywords:
                raise _Unsupported
            first = over.args[0] if len(over.args) == 2 else ast.Constant(0)
            length, value = over.args[-1], read
        else:
            if names_read(over).keys() & bound_names(self.node) or _has_calls(over):
                raise _Unsupported
            first = ast.Constant(0)
            length = ast.Call(ast.Name("len", ast.Load()), [over], [])
            value = ast.Subscript(over, read, ast.Load())
        at.body += [_assign(place, first, node), _assign(end, length, node)]
        test = ast.Compare(read, [ast.Lt()], [ast.Name(end, ast.Load())])
        bind = ast.Assign([node.target], value)
        more = ast.AugAssign(ast.Name(place, ast.Store()), ast.Add(), ast.Constant(1))
        every = [ast.fix_missing_locations(ast.copy_location(s, node)) for s in (bind, more)]
        ast.fix_missing_locations(ast.copy_location(test, node))
        return self.loop(test, [every[0], *node.body], [every[1]], at)

    def without_calls(self, value: ast.expr, at: _Piece) -> tuple[ast.expr, _Piece]:
        """An expression in which variables stand for calls of the function, made before it."""
        if not self.calls_in(value):
            return value, at
        if _is_call_of(value, self.node):
            given = self.given(value)  # type: ignore[arg-type]
            if any(map(self.calls_in, given)):
                given, at = self.all_settled(given, at)
            behind = _Piece(target=self.new("result"))
            at.call, at.next = given, [behind]
            return ast.copy_location(ast.Name(behind.target, ast.Load()), value), behind
        match value:
            case ast.BinOp(left, _, right):
                (value.left, value.right), at = self.all_settled([left, right], at)
            case ast.Tuple(parts) | ast.List(parts):
                value.elts, at = self.all_settled(parts, at)
            case ast.Call(ast.Name() | ast.Attribute(), parts, []):
                value.args, at = self.all_settled(parts, at)
            case ast.UnaryOp(_, operand):
                value.operand, at = self.without_calls(operand, at)
            case _:
                raise _Unsupported
        return value, at

    def calls_in(self, value: ast.expr) -> bool:
        """Whether an expression calls the function."""
        return any(_is_call_of(part, self.node) for part in ast.walk(value))

    def all_settled(self, parts: Sequence[ast.expr], at: _Piece) -> tuple[list[ast.expr], _Piece]:
        """Parts of an expression, which are computed from left to right."""
        found = []
        for part in parts:
            one, at = self.settled(part, at)
            found.append(one)
        return found, at

    def settled(self, part: ast.expr, at: _Piece) -> tuple[ast.expr, _Piece]:
        """A part of an expression that is computed before what is on its right."""
        part, at = self.without_calls(part, at)
        if isinstance(part, ast.Constant | ast.Name):
            return part, at
        name = self.new("part")
        at.body.append(_assign(name, part, part))
        return ast.copy_location(ast.Name(name, ast.Load()), part), at

    # -- the loop -------------------------------------------------------------------------------

    def function(self) -> ast.FunctionDef:
        """The function as a loop over its pieces."""
        last = self.cut(self.node.body, self.entry, ())
        if not last.next:
            if self.gives and not last.is_end:
                last.body.append(_assign(_GIVEN, ast.Constant(None), self.node.body[-1]))
            last.is_end = True
        pieces = _reached(self.entry)
        sources = [p for piece in pieces for p in piece.next]
        behind = [piece.next[0] for piece in pieces if piece.call is not None]
        heads = [p for p in pieces if p is self.entry or p in behind or sources.count(p) > 1]
        for number, piece in enumerate(heads):
            piece.number = number
        live = _live(pieces, self.locals)
        self.kept = {p: sorted(live[p] - {p.target}) for p in behind}
        chain: list[ast.stmt] = []
        for piece in reversed(heads):
            body = self.written(piece)
            if not chain:
                chain = body
                continue
            test = ast.Compare(
                ast.Name(_PIECE, ast.Load()), [ast.Eq()], [ast.Constant(piece.number)]
            )
            chain = [ast.If(test, body, chain)]
        empty = [f"kept{p.number}__" for p in behind if self.kept[p]]
        made: list[ast.stmt] = [
            _assign(name, ast.List([], ast.Load()), self.node) for name in empty
        ]
        made.append(_assign(_CALLS, ast.List([], ast.Load()), self.node))
        made.append(_assign(_PIECE, ast.Constant(0), self.node))
        made.append(ast.While(ast.Constant(True), chain, []))
        for part in (each for statement in chain for each in ast.walk(statement)):
            if getattr(part, "lineno", 1) == 1:  # what is made here
                ast.copy_location(part, self.node.body[0])
        at = self.node.body[0]
        for place, statement in enumerate(made):  # lists are told apart by where they are made
            ast.copy_location(statement, at)
            ast.fix_missing_locations(statement)
            if isinstance(statement, ast.Assign):
                statement.value.end_col_offset = 1000 + place
        self.node.body = made
        return self.node

    def written(self, piece: _Piece) -> list[ast.stmt]:
        """A piece, with those behind it that nothing else comes to."""
        body = [*self.taken(piece), *piece.body]
        if piece.is_end:
            given: ast.expr | None = ast.Name(_GIVEN, ast.Load()) if self.gives else None
            none_left = ast.parse(f"len({_CALLS}) == 0", mode="eval").body
            body.append(ast.If(none_left, [ast.Return(given)], []))
            return [*body, *ast.parse(f"{_PIECE} = {_CALLS}.pop()").body]
        if piece.call is not None:
            return [*body, *self.called(piece)]
        ways = [self.entered(each) for each in piece.next]
        if piece.test is None:
            return [*body, *ways[0]]
        return [*body, ast.copy_location(ast.If(piece.test, ways[0], ways[1]), piece.test)]

    def entered(self, piece: _Piece) -> list[ast.stmt]:
        """What goes on with a piece."""
        if piece.number < 0:
            return self.written(piece) or [ast.Pass()]
        return [_assign(_PIECE, ast.Constant(piece.number), self.node.body[0])]

    def taken(self, piece: _Piece) -> list[ast.stmt]:
        """What takes back the variables of a call, and binds what the inner one has given."""
        if piece not in self.kept:
            return []
        made: list[ast.stmt] = []
        if names := self.kept[piece]:
            made += ast.parse(f"({', '.join(names)},) = kept{piece.number}__.pop()").body
        if piece.target and self.gives:
            made.append(_assign(piece.target, ast.Name(_GIVEN, ast.Load()), self.node.body[0]))
        return made

    def called(self, piece: _Piece) -> list[ast.stmt]:
        """What begins an inner call."""
        (behind,) = piece.next
        made: list[ast.stmt] = []
        if names := self.kept[behind]:
            made += ast.parse(f"kept{behind.number}__.append(({', '.join(names)},))").body
        made += ast.parse(f"{_CALLS}.append({behind.number})\n{_PIECE} = 0").body
        assert piece.call is not None
        pairs = [(n, g) for n, g in zip(self.names, piece.call, strict=True) if n not in self.fixed]
        if pairs:
            targets = ast.Tuple([ast.Name(n, ast.Store()) for n, _ in pairs], ast.Store())
            made.append(ast.Assign([targets], ast.Tuple([g for _, g in pairs], ast.Load())))
        return made


def _own_parts(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement, without those of functions that it defines."""
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        yield part
        inside = (ast.FunctionDef, ast.Lambda, ast.ClassDef)
        if part is node or not isinstance(part, inside):
            waiting += ast.iter_child_nodes(part)


def _has_calls(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _assign(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    return ast.fix_missing_locations(ast.copy_location(made, like))


def _reached(entry: _Piece) -> list[_Piece]:
    """All pieces, in the order in which they are come to."""
    found: list[_Piece] = []
    waiting = [entry]
    while waiting:
        piece = waiting.pop()
        if piece not in found:
            found.append(piece)
            waiting += reversed(piece.next)
    return found


def _live(pieces: Sequence[_Piece], variables: set[str]) -> dict[_Piece, set[str]]:
    """The variables that are read at or behind each piece before they are bound."""
    own = {piece: _uses(piece, variables) for piece in pieces}
    found: dict[_Piece, set[str]] = {piece: set() for piece in pieces}
    while True:
        before = {piece: set(names) for piece, names in found.items()}
        for piece in reversed(pieces):
            reads, binds = own[piece]
            later = {name for each in piece.next for name in found[each]}
            if piece.call is not None:
                later -= {piece.next[0].target}
            found[piece] = reads | (later - binds)
        if found == before:
            return found


def _uses(piece: _Piece, variables: set[str]) -> tuple[set[str], set[str]]:
    """What a piece reads before it binds it, and what it binds."""
    reads: set[str] = set()
    binds: set[str] = set()
    for statement in piece.body:
        reads |= (names_read(statement).keys() & variables) - binds
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            binds |= bound_names(ast.Module([statement], []))
    for value in (piece.test, *(piece.call or ())):
        if value is not None:
            reads |= (names_read(value).keys() & variables) - binds
    return reads, binds
