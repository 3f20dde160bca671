"""Generators: a loop over one is its body, with the body of the loop where it yields.

before -> after:  ``def g(): for i in range(n): yield x[i]``,  ``for v in g(): s += v``  ->
``for i in range(n): v = x[i]; s += v``, with names of the generator's own.
So each of its steps is between those of the loop, as in Python. What takes all values at once, as
``list`` does, reads it to its end there.
"""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.library import iteration
from distspmd.frontend.from_numpy.reader.bindings import bound_names, changed_in_place, written_into
from distspmd.frontend.from_numpy.reader.frames import Frame, Origin, Yielded
from distspmd.frontend.from_numpy.reader.jumps import Given, StoppedFor, without_jumps
from distspmd.frontend.from_numpy.reader.mutation import Around, watched

MOST = 10_240
"""Values of an iterator that is read to its end, at most."""

AT_ONCE: frozenset[Any] = frozenset([list, tuple, set, frozenset, sorted, sum, min, max, dict])
"""Functions that read a generator to its end before they do anything else."""

FIRST = "__first"
"""What the first ``for`` of an expression runs over, which is read where that is made."""

OF_LOOP = "__of_loop"
"""Before the names of the flags that end the loop, in the body of the generator."""


@dataclass(eq=False)
class Generator:
    """A generator, or an iterator over what is known.

    Attributes:
        node: its function, with one ``pass`` for an iterator.
        frame: of the function, with its arguments.
        around: the frame whose variables it shares; None for that of a module.
        inner: how many blocks were around the place where it was made.
        has_begun: whether something has read it.
        rest: what it gives that ``next`` has not taken; None of a generator before the first.
    """

    node: ast.FunctionDef
    frame: Frame
    around: Frame | None = None
    inner: int = 0
    has_begun: bool = False
    rest: Iterator[Any] | None = None

    @property
    def is_function(self) -> bool:
        """Whether it is what a function that yields has given, and not an expression or a list."""
        return self.rest is None and self.node.name != "genexpr"

    @property
    def own(self) -> dict[str, Any]:
        """Variables that it does not share with the function around."""
        if self.around is None:
            return {**vars(builtins), **self.frame.variables}
        arguments = {each.arg for each in ast.walk(self.node.args) if isinstance(each, ast.arg)}
        known = self.frame.variables
        return {name: value for name, value in known.items() if name in arguments | {FIRST}}

    @property
    def known(self) -> dict[str, Any]:
        """All variables that it sees."""
        return {**(self.around.variables if self.around else {}), **self.own}

    def begin(self, run: Context) -> None:
        """Note that it is read.

        Raises:
            CannotRoll: it was made outside of a loop or branch that reads it.
            Refusal: something has read it already.
        """
        if run.tracer.inner != self.inner:
            raise CannotRoll("a generator that was made outside of it is read in it")
        if self.has_begun:
            run.tracer.refuse(
                "a generator that was read before is not covered: make another one, or a list"
            )
        self.has_begun = True


@dataclass(frozen=True)
class _Inlined:
    """The body of a generator in that of a function with a loop over it."""

    generator: ast.FunctionDef
    file: str
    prefix: str
    body: list[ast.stmt] = field(default_factory=list)


def _stand_at_one_place(inlined: _Inlined, generator: Generator) -> bool:
    """Whether what was inlined is the same syntax as that of a generator."""
    one, other = inlined.generator, generator.node
    places = [(node.lineno, node.col_offset, node.name) for node in (one, other)]
    return places[0] == places[1] and inlined.file == generator.frame.file


_NONE = ast.arguments([], [], None, [], [], None, [])


def of_values(run: Context, values: Iterator[Any]) -> Generator:
    """An iterator over values that are known."""
    node = ast.FunctionDef("iterator", _NONE, [ast.Pass()], [], lineno=0)
    return Generator(node, Frame(), None, run.tracer.inner, rest=values)


def _taken(run: Context, values: Iterator[Any]) -> list[Any]:
    """All values of an iterator of Python.

    Raises:
        Refusal: it does not end soon.
    """
    found = list(itertools.islice(values, MOST + 1))
    if len(found) > MOST:
        run.tracer.refuse(f"an iterator with more than {MOST} values, or without an end")
    return found


def takes_generators(function: object) -> bool:
    """Whether a function may read a generator later, and not when it is called."""
    if isinstance(function, types.FunctionType | types.MethodType):
        return not str(function.__module__).startswith(("numpy", "scipy"))
    return any(function is each for each in (enumerate, zip, map, filter, iter, next)) or not (
        isinstance(function, types.BuiltinFunctionType | np.ufunc | type)
    )


def of_expression(run: Context, node: ast.GeneratorExp) -> Generator:
    """The generator ``(element for target in values if condition)``."""
    body: list[ast.stmt] = [ast.Expr(ast.Yield(node.elt))]
    for each in reversed(node.generators):
        for test in reversed(each.ifs):
            body = [ast.If(test, body, [])]
        body = [ast.For(each.target, each.iter, body, [])]
    first = node.generators[0].iter
    body[0].iter = ast.copy_location(ast.Name(FIRST, ast.Load()), first)  # type: ignore[attr-defined]
    made = ast.FunctionDef("genexpr", _NONE, body, [], lineno=node.lineno, col_offset=0)
    ast.fix_missing_locations(ast.copy_location(made, node))
    around = run.tracer.frames[-1]
    frame = Frame({FIRST: run.value(first)}, around.file, around.first_line, around.source)
    return Generator(made, frame, around, run.tracer.inner)


# -- all values at once ---------------------------------------------------------------------------


def collect(
    run: Context, generator: Generator | Iterator[Any], *, at_once: bool = False
) -> list[Any]:
    """All values of a generator, or of an iterator of Python.

    Args:
        run: what reads the program.
        generator: to be read to its end.
        at_once: whether the program does so too; else its values must be known, and plain.
    """
    if not isinstance(generator, Generator):
        return _taken(run, generator)
    generator.begin(run)
    if generator.rest is not None:
        return _taken(run, generator.rest)
    own = generator.frame
    frame = Frame(generator.known, own.file, own.first_line, own.source)
    frame.receiver, frame.outside = own.receiver, own.outside
    block = run.tracer.program.block
    frame.yielded = Yielded(at_once, run.tracer.inner, block, len(block.statements))
    run.run_body(generator.node, frame)
    return frame.yielded.values


def listed(run: Context, function: object, arguments: Sequence[Any]) -> Sequence[Any]:
    """Arguments with lists in the place of generators, for a function that reads them at once."""
    if not any(isinstance(value, Generator) for value in arguments) or function not in AT_ONCE:
        return arguments
    return [_listed(run, each) if isinstance(each, Generator) else each for each in arguments]


def _listed(run: Context, generator: Generator) -> Any:
    """All values of a generator, as many as the run decides."""
    saved = Saved(run)
    try:
        with watched(run.tracer, Around.BRANCH):
            return collect(run, generator, at_once=True)
    except CannotRoll:
        if run.tracer.inner != generator.inner or generator.rest is not None:
            raise
        saved.restore(run)
        generator.has_begun = False
    return run.run_function(iteration.listed, {"values": generator})


def give(run: Context, value: object) -> None:
    """Note a value that a generator gives which is read to its end.

    Raises:
        CannotRoll: in a loop or a branch.
        Refusal: something may come between its steps that they see, or that sees them.
    """
    tracer, yielded = run.tracer, run.tracer.frames[-1].yielded
    assert yielded is not None
    if tracer.inner != yielded.inner:
        raise CannotRoll("a generator yields in it")
    value = run.settled_parts(value) if yielded.at_once else value
    if not yielded.at_once and not (
        _is_plain(value) and yielded.has_only_given(tracer.program.block)
    ):
        tracer.refuse(
            "a generator that computes with arrays, or gives others than known numbers and texts, "
            "in something else than 'for', 'enumerate', 'list', 'sum' and their like is not "
            "covered: its steps would not be between those of the program. Make a list of it before"
        )
    yielded.values.append(value)


def _is_plain(value: object) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | complex | str | slice)


def in_parts(run: Context) -> NoReturn:
    """Leave a generator to Python of which the program reads a part at a time.

    Raises:
        Refusal: that is not compiled.
    """
    run.tracer.refuse(
        "a generator that is read in parts is not covered: write a loop over it, or make a list "
        "of it before"
    )


def take_next(run: Context, generator: Generator, *default: object) -> Any:
    """``next(generator)``, of values that are known and plain.

    Raises:
        CannotRoll: the generator was made outside of what reads it.
        Refusal: its values are no such ones.
    """
    if run.tracer.inner != generator.inner:
        raise CannotRoll("a generator that was made outside of it is read in it")
    if generator.rest is None:
        try:
            values = collect(run, generator)
        except (CannotRoll, Refusal):
            in_parts(run)
        generator.rest, generator.has_begun = iter(values), False
    try:
        return next(generator.rest, *default)
    except StopIteration as problem:
        run.tracer.fail(problem, "next(...) of a generator that has no other value: ")


# -- loops ----------------------------------------------------------------------------------------


def loop(run: Context, node: StoppedFor, generator: Generator, start: object = None) -> None:
    """``for`` over a generator, or with ``start`` over ``enumerate(generator, start)``."""
    tracer = run.tracer
    frame, number = tracer.frames[-1], run.depth
    if frame.attempts:
        tracer.refuse("a loop over a generator in the body of a try; make a list of it before")
    if number > 60:
        tracer.refuse("generators that call each other more than 60 times deep")
    generator.begin(run)
    inlined = run.inlined.get(node)
    if inlined is None or not _stand_at_one_place(inlined, generator):
        prefix = inlined.prefix if inlined else f"__of{len(run.inlined)}_"
        run.inlined[node] = inlined = _Inlined(generator.node, generator.frame.file, prefix)
        inlined.body.extend(_body(run, node, generator, prefix, is_counted=start is not None))
    prefix = inlined.prefix
    frame.written_into |= {f"{prefix}{name}" for name in written_into(generator.node)}
    frame.changed_in_place |= {f"{prefix}{name}" for name in changed_in_place(generator.node)}
    known = {**_known(run, generator), "__count": start}
    frame.variables.update({f"{prefix}{name}": value for name, value in known.items()})
    run.depth += 1
    try:
        run.block(inlined.body)
    finally:
        run.depth = number
        for name in [n for n in frame.variables if n.startswith(prefix)]:
            del frame.variables[name]


def give_to_loop(run: Context, node: Given) -> None:
    """What a loop over a generator does with a value."""
    run.bind(node.target, run.assigned(node.value))
    run.block(node.body)


def _known(run: Context, generator: Generator) -> dict[str, Any]:
    """Variables of a generator before it begins, which are not those of the loop."""
    is_shared = generator.around is run.tracer.frames[-1]
    known = generator.own if is_shared else generator.known
    used = {part.id for part in ast.walk(generator.node) if isinstance(part, ast.Name)}
    return {name: value for name, value in known.items() if name in used}


def _body(
    run: Context, node: StoppedFor, generator: Generator, prefix: str, *, is_counted: bool
) -> list[ast.stmt]:
    """The statements of a generator with those of a loop where it yields."""
    function = copy.deepcopy(generator.node)
    inliner = _Inliner(run, node, is_counted=is_counted)
    function.body = list(inliner.inlined(function.body))
    flags = [f"{OF_LOOP}{flag}" for flag in node.stops]
    body = without_jumps(function, flags)
    flags_of_own = {n for n in bound_names(ast.Module(body, [])) if n.startswith("__")}
    own = {*_known(run, generator), *generator.own, *bound_names(generator.node), *flags_of_own}
    names = {name: f"{prefix}{name}" for name in (*own, "__count")}
    names |= dict(zip(flags, node.stops, strict=True))
    frame = generator.frame
    renamer = _Renamer(names, Origin(frame.file, frame.first_line, frame.source))
    return [renamer.visit(statement) for statement in body]


def counting(run: Context, start: object, step: object) -> Generator:
    """The generator of ``start``, ``start + step`` and so on, without an end."""
    (function,) = ast.parse(_COUNT).body
    assert isinstance(function, ast.FunctionDef)
    frame = Frame({"start": start, "step": step})
    return Generator(function, frame, None, run.tracer.inner)


_COUNT = """
def count(start, step):
    while True:
        yield start
        start += step
"""


class _Inliner(ast.NodeTransformer):
    """Puts the body of a loop where a generator yields."""

    def __init__(self, run: Context, node: StoppedFor, *, is_counted: bool) -> None:
        self.run, self.node, self.is_counted = run, node, is_counted

    def inlined(self, statements: list[ast.stmt]) -> Iterator[ast.stmt]:
        """Statements without ``yield``."""
        for statement in statements:
            made = self.visit(statement)
            yield from made if isinstance(made, list) else [made]

    def given(self, value: ast.expr | None, like: ast.AST) -> list[ast.stmt]:
        """What becomes of a value."""
        value = value or ast.Constant(None)
        more: list[ast.stmt] = []
        if self.is_counted:
            value = ast.Tuple([ast.Name("__count", ast.Load()), value], ast.Load())
            one = ast.Constant(1)
            more = [ast.AugAssign(ast.Name("__count", ast.Store()), ast.Add(), one)]
        flags = [f"{OF_LOOP}{flag}" for flag in self.node.stops]
        made = Given(value, self.node.target, self.node.body, stops=flags)
        return [ast.fix_missing_locations(ast.copy_location(each, like)) for each in (made, *more)]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Yield):
            return self.given(node.value.value, node)
        if isinstance(node.value, ast.YieldFrom):
            each = ast.copy_location(ast.Name("__each", ast.Store()), node)
            read = ast.copy_location(ast.Name("__each", ast.Load()), node)
            body = self.given(read, node)
            return ast.copy_location(ast.For(each, node.value.value, body, []), node)
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if not isinstance(node.value, ast.Yield):
            return self.generic_visit(node)
        none = ast.Assign(node.targets, ast.Constant(None))
        none = ast.fix_missing_locations(ast.copy_location(none, node))
        return [*self.given(node.value.value, node), none]

    def visit_Yield(self, node: ast.Yield | ast.YieldFrom) -> ast.AST:
        self.run.tracer.refuse(
            f"a generator that yields in the middle of an expression, line {node.lineno}; write "
            "the yield as a statement"
        )

    def visit_YieldFrom(self, node: ast.YieldFrom) -> ast.AST:
        return self.visit_Yield(node)

    def visit_Try(self, node: ast.Try) -> ast.AST:
        if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node)):
            self.run.tracer.refuse(
                f"a generator that yields in a try, line {node.lineno}; yield after it"
            )
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.AST:
        self.run.tracer.refuse(
            f"a generator that changes variables of the function around, line {node.lineno}"
        )

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == "super":
            self.run.tracer.refuse(f"super() in a generator, line {node.lineno}; name the class")
        return node


class _Renamer(ast.NodeTransformer):
    """Gives variables other names, except in the bodies of loops over a generator."""

    def __init__(self, names: Mapping[str, str], origin: Origin) -> None:
        self.names, self.origin = names, origin

    def visit(self, node: ast.AST) -> Any:
        if not hasattr(node, "origin"):
            node.origin = self.origin  # type: ignore[attr-defined]
        for flags in ("stops", "flags"):
            if hasattr(node, flags):
                renamed = tuple(self.names.get(name, name) for name in getattr(node, flags))
                setattr(node, flags, renamed)
        return super().visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_Given(self, node: Given) -> ast.AST:
        node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        self._visit_function(node)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        self._visit_function(node)
        return node

    def _visit_function(self, node: ast.FunctionDef | ast.Lambda) -> None:
        own = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        if isinstance(node, ast.FunctionDef):
            own |= bound_names(node)
        others = {name: to for name, to in self.names.items() if name not in own}
        inside = _Renamer(others, self.origin)
        body = node.body if isinstance(node.body, list) else [node.body]
        for part in body:
            inside.visit(part)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)
