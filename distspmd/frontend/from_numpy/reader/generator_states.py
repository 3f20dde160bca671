"""A generator as a function that takes one step: up to the next ``yield``, where it returns.

before -> after:  ``while True: yield a; a, b = b, a + b``  ->
``if at == 0: at = 1; return a`` ``else: a, b = b, a + b; at = 1; return a``.
Variables that live from one step to the next are attributes of an object, as ``at`` is. Loops with
a ``yield`` are ``while`` loops over iterators; a step goes through what is left of the iteration,
and then through the loop anew. A step with nothing to do up to a ``yield`` of its own loop has no
loop any more.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from distspmd.frontend.from_numpy.reader.bindings import bound_names, is_read_unbound, own_variables

STEPS, STRICT, DEFAULT = "__steps", "__strict", "__default"
"""Parameters of the function: the object, whether the end is an error, and else what it gives."""
ITERATOR = "__iterator_of"
"""The function that makes the iterator of a loop."""
FIRST = "__first"
"""What the first ``for`` of an expression runs over, which is read where that is made."""
AT, DONE, SENT = "_at", "_done", "_sent"
"""Attributes of the object: where a step begins, whether there is none, what the program sent."""


_Node = TypeVar("_Node", bound=ast.AST)


class NoStates(Exception):
    """A generator that has no such function."""


@dataclass(frozen=True, eq=False)
class Stepped:
    """A generator as a function.

    Attributes:
        first: what is done where the generator is made, one statement at a time.
        step: the function.
        kept: variables that are attributes.
    """

    first: tuple[ast.FunctionDef, ...]
    step: ast.FunctionDef
    kept: frozenset[str]


def stepped(node: ast.FunctionDef, first: int) -> Stepped:
    """A generator as a function that takes one step.

    Args:
        node: the generator.
        first: how many of its first statements are done where it is made.

    Raises:
        NoStates: it yields in a ``try``, in a ``with``, or within an expression.
    """
    return _States(node, first).made()


def simple_statements(node: ast.FunctionDef) -> list[ast.Assign]:
    """The first statements that assign what needs no call, and that nothing sees but themselves."""
    found: list[ast.Assign] = []
    for statement in node.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        names = isinstance(statement, ast.Assign) and all(
            isinstance(part, ast.Name | ast.Tuple | ast.expr_context)
            for target in statement.targets
            for part in ast.walk(target)
        )
        if not names or not all(isinstance(p, _SIMPLE) for p in ast.walk(statement.value)):  # type: ignore[attr-defined]
            break
        found.append(statement)  # type: ignore[arg-type]
    return found


_SIMPLE = (
    *(ast.Constant, ast.Name, ast.Tuple, ast.List, ast.BinOp, ast.UnaryOp),
    *(ast.operator, ast.unaryop, ast.expr_context),
)


class _States:
    """The states of a generator; each is the code from one ``yield`` to the next."""

    def __init__(self, node: ast.FunctionDef, first: int) -> None:
        self.node = node
        done = simple_statements(node)[:first]
        self.first = [copy.deepcopy(statement) for statement in done]
        rest = [copy.deepcopy(s) for s in node.body if not any(s is each for each in done)]
        self.yields: list[ast.Expr] = []
        self.loops = 0
        self.ends = False
        self.body = list(self.plain(rest))
        if any(isinstance(part, ast.Global) for part in ast.walk(node)):
            raise NoStates("a generator that changes variables of its module")

    # -- loops and yields as statements -----------------------------------------------------------

    def plain(self, statements: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """Statements in which each ``yield`` is one, and each loop with one a ``while``."""
        for statement in statements:
            yield from self._plain(statement)

    def _plain(self, node: ast.stmt) -> Iterator[ast.stmt]:
        if not _has_yield(node):
            yield node
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            yield self._given(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.YieldFrom):
            each = ast.Name("__each", ast.Store())
            given = ast.Expr(ast.Yield(ast.Name("__each", ast.Load())))
            loop = ast.For(each, node.value.value, [given], [])
            yield from self._plain(_at(loop, node))
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Yield):
            yield self._given(_at(ast.Expr(node.value), node))
            yield _at(ast.Assign(node.targets, _own(SENT)), node)
            yield _at(ast.Assign([_own(SENT, store=True)], ast.Constant(None)), node)
        elif isinstance(node, ast.If):
            node.body, node.orelse = [*self.plain(node.body)], [*self.plain(node.orelse)]
            self._check(node.test)
            yield node
        elif isinstance(node, ast.While) and not node.orelse:
            node.body = [*self.plain(node.body)]
            self._check(node.test)
            yield node
        elif isinstance(node, ast.For) and not node.orelse:
            yield from self._as_while(node)
        else:
            raise NoStates("a generator that yields in the middle of a statement")

    def _given(self, node: ast.Expr) -> ast.Expr:
        value = node.value.value  # type: ignore[attr-defined]
        if value is not None:
            self._check(value)
        self.yields.append(node)
        return node

    def _check(self, node: ast.expr) -> None:
        if _has_yield(node):
            raise NoStates("a generator that yields in the middle of an expression")

    def _as_while(self, node: ast.For) -> Iterator[ast.stmt]:
        self._check(node.iter)
        name, self.loops = f"__over{self.loops}", self.loops + 1
        made = ast.Call(ast.Name(ITERATOR, ast.Load()), [node.iter], [])
        yield _at(ast.Assign([ast.Name(name, ast.Store())], made), node)
        taken = ast.Assign([node.target], _called(name, "take"))
        body = [_at(taken, node), *self.plain(node.body)]
        yield _at(ast.While(_called(name, "more"), body, []), node)

    # -- the code of states -----------------------------------------------------------------------

    def made(self) -> Stepped:
        """The function of all states."""
        codes = [self.closed(*self.until(self.body))]
        codes += [self.closed(*self.after(self.body, each)) for each in self.yields]
        numbers: list[int] = []
        texts: list[str] = []
        for code in codes:
            text = "\n".join(map(ast.unparse, code))
            if text not in texts:
                texts.append(text)
            numbers.append(texts.index(text))
        kept = self._kept(codes)
        states = [codes[numbers.index(n)] for n in range(len(texts))]
        body = self._chain(states)
        for part in (q for statement in body for q in ast.walk(statement)):
            state: Any = part.value if isinstance(part, ast.Constant) else None
            if isinstance(part, ast.Constant) and isinstance(state, _State):
                part.value = numbers[state.number]
        keeper = _Keeper(kept)
        step = self._function([keeper.visit(statement) for statement in body])
        first = [self._function([keeper.visit(statement)]) for statement in self.first]
        return Stepped(tuple(first), step, kept)

    def _chain(self, states: Sequence[list[ast.stmt]]) -> list[ast.stmt]:
        """The code of the state in which the object is."""
        chain = copy.deepcopy(states[-1])
        for number, code in reversed(list(enumerate(states[:-1]))):
            test = ast.Compare(_own(AT), [ast.Eq()], [ast.Constant(number)])
            chain = [_at(ast.If(test, copy.deepcopy(code), chain), self.node)]
        if self.ends:
            chain = [_at(ast.If(_own(DONE), self.end(), chain), self.node)]
        return chain

    def _kept(self, codes: Sequence[list[ast.stmt]]) -> frozenset[str]:
        arguments = {each.arg for each in ast.walk(self.node.args) if isinstance(each, ast.arg)}
        shared = {n for p in ast.walk(self.node) if isinstance(p, ast.Nonlocal) for n in p.names}
        bound = own_variables([*self.first, *self.body]) - shared
        live = {n for n in bound if any(is_read_unbound(code, n) for code in codes)}
        return frozenset(arguments | live | own_variables(self.first) | {FIRST})

    def _function(self, body: list[ast.stmt]) -> ast.FunctionDef:
        shared = [part for part in self.node.body if isinstance(part, ast.Nonlocal)]
        names = [ast.arg(name) for name in (STEPS, STRICT, DEFAULT)]
        arguments = ast.arguments([], names, None, [], [], None, [])
        made = ast.FunctionDef(self.node.name, arguments, [*shared, *body], [])
        return _at(made, self.node)

    def end(self) -> list[ast.stmt]:
        """What the end of the generator does."""
        self.ends = True
        error = ast.Raise(ast.Name("StopIteration", ast.Load()))
        made = [
            ast.Assign([_own(DONE, store=True)], ast.Constant(True)),
            ast.If(ast.Name(STRICT, ast.Load()), [error], []),
            ast.Return(ast.Name(DEFAULT, ast.Load())),
        ]
        return [_at(each, self.node) for each in made]

    def closed(self, code: list[ast.stmt], always: bool) -> list[ast.stmt]:
        """The code of a state, which ends with the generator where it yields no more."""
        code = code if always else [*code, *self.end()]
        numbers = {
            n for statement in code for part in ast.walk(statement) if (n := _state_of(part))
        }
        if len(numbers) != 1:
            return code
        (number,) = numbers  # known from the beginning on, also where the run decides when
        rest = [_WithoutState().visit(statement) for statement in code]
        return [_at(_state(number), self.node), *(part for part in rest if part is not None)]

    def until(self, statements: Sequence[ast.stmt]) -> tuple[list[ast.stmt], bool]:
        """Statements up to each first ``yield``, and whether they always reach one or the end."""
        found: list[ast.stmt] = []
        for node in statements:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
                return [*found, *self._yielded(node)], True
            if isinstance(node, ast.Return):
                return [*found, *self.end()], True
            if isinstance(node, ast.If):
                ways = [self.until(way) for way in (node.body, node.orelse)]
                body, orelse = (way[0] for way in ways)
                made = ast.If(copy.deepcopy(node.test), body or [ast.Pass()], orelse)
                found.append(_at(made, node))
                if all(always for _, always in ways):
                    return found, True
            elif isinstance(node, ast.While) and _has_yield(node):
                code, always = self._loop(node)
                found += code
                if always:
                    return found, True
            elif isinstance(node, ast.Break | ast.Continue):
                return [*found, copy.deepcopy(node)], False
            else:
                found.append(_Returns(self).visit(copy.deepcopy(node)))
        return found, False

    def _yielded(self, node: ast.Expr) -> list[ast.stmt]:
        number = next(n for n, each in enumerate(self.yields, 1) if each is node)
        value = copy.deepcopy(node.value.value) or ast.Constant(None)  # type: ignore[attr-defined]
        given = ast.Assign([ast.Name("__given", ast.Store())], value)
        returned = ast.Return(ast.Name("__given", ast.Load()))
        return [_at(each, node) for each in (given, _state(number), returned)]

    def _loop(self, node: ast.While) -> tuple[list[ast.stmt], bool]:
        """A loop up to a ``yield``; without a loop, if its first iteration always reaches one."""
        body, always = self.until(node.body)
        test = copy.deepcopy(node.test)
        is_endless = isinstance(test, ast.Constant) and bool(test.value)
        if not always or _jumps(body):
            ends = not is_endless or any(isinstance(part, ast.Break) for part in ast.walk(node))
            return [_at(ast.While(test, body, []), node)], not ends
        if is_endless:
            return body, True
        return [_at(ast.If(test, body, []), node)], False

    def after(
        self, statements: Sequence[ast.stmt], wanted: ast.Expr
    ) -> tuple[list[ast.stmt], bool]:
        """What follows a ``yield``, up to the next one."""
        place, node = next((n, s) for n, s in enumerate(statements) if _holds(s, wanted))
        rest = statements[place + 1 :]
        if node is wanted:
            return self.until(rest)
        if isinstance(node, ast.If):
            way = node.body if any(_holds(s, wanted) for s in node.body) else node.orelse
            return self._followed(*self.after(way, wanted), rest)
        assert isinstance(node, ast.While)
        inside, always = self.after(node.body, wanted)
        if not _jumps(inside):
            return self._followed(inside, always, [node, *rest])
        left = "__left"
        once = ast.Tuple([ast.Constant(0)], ast.Load())
        inside = _with_flags(inside, left)
        loop = ast.For(ast.Name("__once", ast.Store()), once, inside, [])
        again, _ = self.until([node])
        unless = ast.If(ast.UnaryOp(ast.Not(), ast.Name(left, ast.Load())), again, [])
        unset = ast.Assign([ast.Name(left, ast.Store())], ast.Constant(False))
        return self._followed([_at(each, node) for each in (unset, loop, unless)], False, rest)

    def _followed(
        self, code: list[ast.stmt], always: bool, rest: Sequence[ast.stmt]
    ) -> tuple[list[ast.stmt], bool]:
        if always:
            return code, True
        more, always = self.until(rest)
        return [*code, *more], always


@dataclass(frozen=True)
class _State:
    """Stands for the number of a state, until these are known."""

    number: int


def _state(number: int) -> ast.Assign:
    """A statement that says where the next step begins."""
    value = ast.Constant(_State(number))  # type: ignore[arg-type]
    return ast.Assign([_own(AT, store=True)], value)


def _state_of(node: ast.AST) -> int | None:
    """The number of the state that a statement sets; None of others."""
    is_state = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
    value = node.value.value if is_state else None  # type: ignore[attr-defined]
    return value.number if isinstance(value, _State) else None


class _WithoutState(ast.NodeTransformer):
    """Leaves out statements that say where the next step begins."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return node if _state_of(node) is None else None


class _Returns(ast.NodeTransformer):
    """Lets statements without ``yield`` end the generator where they return."""

    def __init__(self, states: _States) -> None:
        self.states = states

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> list[ast.stmt]:
        return self.states.end()


class _Keeper(ast.NodeTransformer):
    """Makes variables attributes of the object."""

    def __init__(self, kept: frozenset[str]) -> None:
        self.kept = kept

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self.kept:
            return node
        made = ast.Attribute(ast.Name(STEPS, ast.Load()), node.id, node.ctx)
        return _at(made, node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if self.kept & {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}:
            raise NoStates("a function in a generator that has a variable of the same name")
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
        if self.kept & (own | bound_names(node) | {node.name}):
            raise NoStates("a function in a generator that has a variable of the same name")
        return self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            return self._comprehension(node)
        return super().generic_visit(node)

    def _comprehension(self, node: ast.AST) -> ast.AST:
        targets = [each.target for each in node.generators]  # type: ignore[attr-defined]
        own = {p.id for t in targets for p in ast.walk(t) if isinstance(p, ast.Name)}
        if not self.kept & own:
            return super().generic_visit(node)
        if any(p.id in own for p in _outer(node) if isinstance(p, ast.Name)):
            raise NoStates("a comprehension in a generator with a variable of the same name")
        return ast.NodeTransformer.generic_visit(_Keeper(self.kept - own), node)


def _outer(node: ast.AST) -> Iterator[ast.AST]:
    """What of a comprehension is read outside of it."""
    yield from ast.walk(node.generators[0].iter)  # type: ignore[attr-defined]


def _holds(node: ast.stmt, wanted: ast.stmt) -> bool:
    return any(part is wanted for part in ast.walk(node))


def _has_yield(node: ast.AST) -> bool:
    """Whether a part of a generator yields."""
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    return any(map(_has_yield, ast.iter_child_nodes(node)))


def _jumps(statements: Sequence[ast.stmt]) -> bool:
    """Whether statements leave the iteration of the loop around them."""
    for node in statements:
        if isinstance(node, ast.Break | ast.Continue):
            return True
        if isinstance(node, ast.For | ast.While | ast.FunctionDef):
            continue
        parts = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        if any(_jumps(part) for part in parts):
            return True
    return False


def _with_flags(statements: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """Statements that set a flag where they leave the loop around them."""
    found: list[ast.stmt] = []
    for node in statements:
        if isinstance(node, ast.Break):
            found.append(_at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(True)), node))
        if isinstance(node, ast.If):
            node.body, node.orelse = (_with_flags(way, flag) for way in (node.body, node.orelse))
        found.append(node)
    return found


def _own(name: str, *, store: bool = False) -> ast.Attribute:
    context = ast.Store() if store else ast.Load()
    return ast.Attribute(ast.Name(STEPS, ast.Load()), name, context)


def _called(name: str, method: str) -> ast.Call:
    return ast.Call(ast.Attribute(ast.Name(name, ast.Load()), method, ast.Load()), [], [])


def _at(made: _Node, like: ast.AST) -> _Node:
    return ast.fix_missing_locations(ast.copy_location(made, like))
