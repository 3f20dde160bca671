"""``break``, ``continue`` and early ``return`` become flags, and blocks that run unless one is set.

before -> after:  ``if c: return a``; rest  ->  ``if c: result = a`` ``else:`` rest.
In loops:  ``if c: break``; rest  ->  ``if c: stop = True`` ``else:`` rest, and the loop goes on
until ``stop``.
``try: a; b`` ``except E: h``  ->  a, which may set ``caught``; ``if not caught: b``;
``if caught: h``.
"""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from distspmd.frontend.from_numpy.reader.patterns import bound_in_test, matches

RESULT = "__result"
TRIED = "__tried"
DONE = "__done"


class StoppedFor(ast.For):
    """A loop with the names of the flags that end it, which has no ``else``."""

    def __init__(
        self, target: ast.expr, over: ast.expr, body: list[ast.stmt], *, stops: Sequence[str]
    ) -> None:
        super().__init__(target, over, body, [])
        self.stops = tuple(stops)


class StoppedWhile(ast.While):
    """A loop with the names of the flags that end it, which has no ``else``.

    Attributes:
        stops: the flags.
        why_rest: the first iteration was read by itself before, in words; empty where it was not.
    """

    def __init__(
        self, test: ast.expr, body: list[ast.stmt], *, stops: Sequence[str], why_rest: str = ""
    ) -> None:
        super().__init__(test, body, [])
        self.stops = tuple(stops)
        self.why_rest = why_rest


class Given(ast.stmt):
    """Where a generator gives a value to the loop over it, with the flags that end that loop."""

    _fields = ("value", "target", "body")

    def __init__(
        self, value: ast.expr, target: ast.expr, body: list[ast.stmt], *, stops: Sequence[str]
    ) -> None:
        super().__init__()
        self.value, self.target, self.body = value, target, body
        self.stops = tuple(stops)


class Attempt(ast.Try):
    """The body of a ``try`` with the names of the flags, one a handler, that its errors set."""

    def __init__(
        self, body: list[ast.stmt], handlers: list[ast.ExceptHandler], *, flags: Sequence[str]
    ) -> None:
        super().__init__(body, handlers, [], [])
        self.flags = tuple(flags)


_ERROR = "_error"


def error_of(flag: str) -> str:
    """The variable that has the message of the error which set a flag."""
    return f"{flag}{_ERROR}"


def is_error(name: str) -> bool:
    """Whether a variable has the message of an error that a handler takes."""
    return name.startswith("__caught") and name.endswith(_ERROR)


def assigned_unless(
    flags: Sequence[str], targets: Sequence[ast.expr], name: str, like: ast.stmt
) -> ast.If:
    """A statement that assigns a variable, unless a flag is set."""
    assign = ast.copy_location(ast.Assign(list(targets), ast.Name(name, ast.Load())), like)
    return _if(like, _none(set(flags)), [assign], [])


@dataclass
class _Jumps:
    """Flags that a block may set, and whether it always sets one."""

    flags: set[str] = field(default_factory=set)
    always: bool = False


def without_jumps(
    function: ast.FunctionDef, given: Sequence[str] = (), caught: Sequence[str] = ()
) -> list[ast.stmt]:
    """The body of a function, which assigns what it returns to :data:`RESULT`.

    Args:
        function: with jumps.
        given: flags that the loop over a generator may set, which end the generator.
        caught: flags of handlers around the call, which end the function.
    """
    body = copy.deepcopy(function.body) if caught else function.body
    if _returns_value(function.body):  # and None at its end, if that is reached
        body = [*body, ast.copy_location(ast.Return(None), body[-1])]
    return _Rewriter(given, caught).block(body, [])[0]


def _returns_value(part: ast.AST | Sequence[ast.AST]) -> bool:
    """Whether statements return something, those of functions inside of them left out."""
    if isinstance(part, ast.Return):
        return part.value is not None
    if isinstance(part, ast.FunctionDef | ast.ClassDef | ast.expr):
        return False
    inside = ast.iter_child_nodes(part) if isinstance(part, ast.AST) else part
    return any(map(_returns_value, inside))


class _Rewriter:
    def __init__(self, given: Sequence[str] = (), caught: Sequence[str] = ()) -> None:
        self.count = 0
        self.caught: list[str] = [*caught]
        self.parts = bool(caught)
        self.given = given

    def block(
        self, statements: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps]:
        found: list[ast.stmt] = []
        for place, statement in enumerate(statements):
            made, jumps = self.statement(statement, statements[place + 1 :], loops)
            found += made
            if jumps is not None:
                return found, jumps
        return found, _Jumps()

    def statement(
        self, statement: ast.stmt, rest: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps | None]:
        """A statement, and the rest of the block with it if it may jump; else no jumps."""
        if self.caught and (values := _values_that_may_raise(statement, self.parts)):
            before = [self.hoisted(holder, name, place) for holder, name, place in values]
            return self.block([*before, statement, *rest], loops)
        if isinstance(statement, ast.Return):
            return self.returned(statement)
        if isinstance(statement, ast.Match):
            return self.block([*self.cases(statement), *rest], loops)
        if isinstance(statement, ast.Break | ast.Continue):
            flag = loops[-1][0 if isinstance(statement, ast.Break) else 1]
            return [_assign(flag, ast.Constant(True), statement)], _Jumps({flag}, True)
        if isinstance(statement, ast.If):
            return self.branch(statement, rest, loops)
        found = self.compound(statement, loops)
        if found is None:
            return [statement], None
        made, jumps = found
        if not jumps.flags:
            return made, None
        after, later = self.block(rest, loops)
        if after and not jumps.always:
            made.append(_if(statement, _none(jumps.flags), after, []))
        return made, _Jumps(jumps.flags | later.flags, jumps.always or later.always)

    def compound(
        self, statement: ast.stmt, loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps] | None:
        """A statement that is not a branch, and what it may jump to; None if it is plain."""
        if isinstance(statement, ast.For | ast.While):
            return self.loop(statement, loops)
        if isinstance(statement, Given):
            return [statement], _Jumps(set(statement.stops))
        if isinstance(statement, ast.With):
            body, jumps = self.block(statement.body, loops)
            return [ast.copy_location(ast.With(statement.items, body), statement)], jumps
        if isinstance(statement, ast.Try):
            return self.attempt(statement, loops)
        if self.caught and may_raise(statement, self.parts):
            return [statement], _Jumps(set(self.caught), isinstance(statement, ast.Raise))
        return None

    def cases(self, match: ast.Match) -> list[ast.stmt]:
        """A ``match`` as an assignment of its subject, and branches."""
        self.count += 1
        name = f"__subject{self.count}"
        chain: list[ast.stmt] = []
        for case in reversed(match.cases):
            test, bound = matches(case.pattern, ast.Name(name, ast.Load()))
            if case.guard is not None:
                test = ast.BoolOp(ast.And(), [test, *map(bound_in_test, bound), case.guard])
                bound = []
            made = ast.If(test, [*bound, *case.body], chain)
            chain = [ast.fix_missing_locations(ast.copy_location(made, match))]
        return [_assign(name, match.subject, match), *chain]

    def returned(self, statement: ast.Return) -> tuple[list[ast.stmt], _Jumps]:
        value = statement.value or ast.Constant(None)
        result = _assign(RESULT, value, statement)
        done: ast.stmt = _assign(DONE, ast.Constant(True), statement)
        if self.caught and may_raise(statement, self.parts):
            done = _if(statement, _none(set(self.caught)), [done], [])
        return [result, done], _Jumps({DONE, *self.caught}, True)

    def hoisted(self, holder: ast.AST, name: str, place: int | None) -> ast.stmt:
        """An assignment of a part of a statement to a variable, which the statement reads then."""
        self.count += 1
        variable = f"{TRIED}{self.count}"
        part = getattr(holder, name)
        value = part if place is None else part[place]
        read = ast.copy_location(ast.Name(variable, ast.Load()), value)
        if place is None:
            setattr(holder, name, read)
        else:
            part[place] = read
        return _assign(variable, value, value)

    def branch(
        self, branch: ast.If, rest: Sequence[ast.stmt], loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps | None]:
        """A branch, with the rest in the one of its blocks that does not always jump."""
        one, first = self.block(branch.body, loops)
        other, second = self.block(branch.orelse, loops)
        flags = first.flags | second.flags
        if not flags:
            return [_if(branch, branch.test, one, other)], None
        before = _unset(flags, branch)
        if first.always and second.always:
            return [*before, _if(branch, branch.test, one, other)], _Jumps(flags, True)
        after, later = self.block(rest, loops)
        every = flags | later.flags
        if first.always and not second.flags:
            return [*before, _if(branch, branch.test, one, other + after)], _Jumps(
                every, later.always
            )
        if second.always and not first.flags:
            return [*before, _if(branch, branch.test, one + after, other)], _Jumps(
                every, later.always
            )
        made = [*before, _if(branch, branch.test, one, other)]
        if after:
            made.append(_if(branch, _none(flags), after, []))
        return made, _Jumps(every, False)

    def attempt(
        self, tried: ast.Try, loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps]:
        """A ``try``: its body, and then what its handlers, ``else`` and ``finally`` do."""
        self.count += 1
        flags = [f"__caught{self.count}_{n}" for n in range(len(tried.handlers))]
        before = self.parts
        self.caught += flags
        self.parts = before or any(map(_takes_parts, tried.handlers))
        body, jumps = self.block(tried.body, loops)
        del self.caught[len(self.caught) - len(flags) :]
        self.parts = before
        outside = jumps.flags - set(flags)
        every, ends = set(outside), []
        kinds = [ast.ExceptHandler(h.type, None, [ast.Pass()]) for h in tried.handlers]
        attempt = ast.copy_location(Attempt(body, kinds, flags=flags), tried)
        made: list[ast.stmt] = [ast.fix_missing_locations(attempt)]
        if tried.orelse and not jumps.always:
            other, more = self.block(tried.orelse, loops)
            made.append(_if(tried, _none({*flags, *outside}), other, []))
            every |= more.flags
            ends.append(more.always)
        else:
            ends.append(jumps.always)
        for handler, flag in zip(tried.handlers, flags, strict=True):
            own, more = self.block(handler.body, loops)
            if handler.name is not None:
                message = ast.Name(error_of(flag), ast.Load())
                own.insert(0, _assign(handler.name, message, tried))
            made.append(_if(tried, ast.Name(flag, ast.Load()), own, []))
            every |= more.flags
            ends.append(more.always)
        last, more = self.block(tried.finalbody, loops)
        every |= more.flags
        unset = _unset({*flags, *every}, tried)
        return [*unset, *made, *last], _Jumps(every, more.always or all(ends))

    def loop(
        self, loop: ast.For | ast.While, loops: list[tuple[str, str]]
    ) -> tuple[list[ast.stmt], _Jumps]:
        self.count += 1
        stop, skip = f"__break{self.count}", f"__continue{self.count}"
        body, jumps = self.block(loop.body, [*loops, (stop, skip)])
        before: list[ast.stmt] = []
        if skip in jumps.flags:
            body = [*_unset({skip}, loop), *body]
        stops = jumps.flags & {stop, DONE, *self.caught, *self.given}
        before = _unset(stops, loop)
        copied: ast.stmt
        if isinstance(loop, ast.For):
            copied = StoppedFor(loop.target, loop.iter, body, stops=sorted(stops))
        else:
            copied = StoppedWhile(loop.test, body, stops=sorted(stops))
        found = [*before, ast.copy_location(copied, loop)]
        if loop.orelse:
            other, more = self.block(loop.orelse, loops)
            found = [*_unset(more.flags - stops, loop), *found]
            found.append(
                _if(loop, _none(stops), other, [])
                if stops
                else ast.copy_location(ast.If(ast.Constant(True), other, []), loop)
            )
            jumps.flags |= more.flags
        is_endless = isinstance(loop, ast.While) and _is_true(loop.test)
        always = is_endless and stop not in jumps.flags
        return found, _Jumps(jumps.flags - {stop, skip}, always)


def _is_true(test: ast.expr) -> bool:
    return isinstance(test, ast.Constant) and bool(test.value)


def may_raise(node: ast.AST, parts: bool = True) -> bool:
    """Whether an error that handlers know may come from a part of a program.

    Args:
        node: the part.
        parts: whether a handler takes what an index or a key raises.
    """
    kinds = (ast.Call, ast.Raise, ast.Assert, *([ast.Subscript] if parts else []))
    return any(isinstance(part, kinds) for part in ast.walk(node))


_OF_PARTS = frozenset(["IndexError", "KeyError", "LookupError", "Exception", "BaseException"])


def _takes_parts(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may take what an index or a key raises, by what it says."""
    if handler.type is None:
        return True
    names = [part.id for part in ast.walk(handler.type) if isinstance(part, ast.Name)]
    return not _OF_PARTS.isdisjoint(names)


def _values_that_may_raise(
    statement: ast.stmt, parts: bool
) -> list[tuple[ast.AST, str, int | None]]:
    """Parts of a statement that are computed before it does something, as holder, field, place."""
    if isinstance(statement, ast.AugAssign) and may_raise(statement.value, parts):
        return [(statement, "value", None)]
    if isinstance(statement, ast.If) and may_raise(statement.test, parts):
        return [(statement, "test", None)]
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        own = statement.value
        return [(own, "args", n) for n, each in enumerate(own.args) if may_raise(each, parts)]
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) and statement.value:
        found = list(_calls_of_functions(statement, "value", statement.value))
        return found if not _is_call_of_function(statement.value) else found[:-1]
    return []


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SOMETIMES = (ast.Lambda, ast.IfExp, ast.BoolOp, *_COMPREHENSIONS)
"""Parts of which it is not known whether, or how often, they are computed."""


def _calls_of_functions(
    holder: ast.AST, name: str, part: ast.AST, place: int | None = None
) -> Iterator[tuple[ast.AST, str, int | None]]:
    """Calls of functions that the program may have itself, in their order."""
    if isinstance(part, _SOMETIMES):
        return
    for field_name, value in ast.iter_fields(part):
        for n, each in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(each, ast.AST):
                own = n if isinstance(value, list) else None
                yield from _calls_of_functions(part, field_name, each, own)
    if _is_call_of_function(part):
        yield holder, name, place


def _is_call_of_function(part: ast.AST) -> bool:
    """Whether a part calls a function by a name that Python does not know."""
    if not isinstance(part, ast.Call) or not isinstance(part.func, ast.Name):
        return False
    return not hasattr(builtins, part.func.id)


def _assign(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    target = ast.Name(name, ast.Store())
    return ast.fix_missing_locations(ast.copy_location(ast.Assign([target], value), like))


def _unset(flags: set[str], like: ast.stmt) -> list[ast.stmt]:
    return [_assign(flag, ast.Constant(False), like) for flag in sorted(flags)]


def _none(flags: set[str]) -> ast.expr:
    tests: list[ast.expr] = [
        ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())) for flag in sorted(flags)
    ]
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


def _if(
    like: ast.stmt, test: ast.expr, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]
) -> ast.If:
    made = ast.If(test, list(body) or [ast.Pass()], list(orelse))
    return ast.fix_missing_locations(ast.copy_location(made, like))
