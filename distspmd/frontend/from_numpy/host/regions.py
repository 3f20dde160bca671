"""Which statements of a function Python runs: those that are not array work, with their neighbours.

before -> after, of statements that are marked, and of what else reads their objects::

    seen = {}                       n = <region>(codes)
    for c in codes:
        seen[c] = seen.get(c, 0)
    n = len(seen)
    y = x * n                       y = x * n

A loop or branch whose body has no array work is taken as a whole. Neighbours are merged. A region
that may return, break or continue tells how it ended, and statements behind it do so.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from distspmd.frontend.from_numpy.host import names
from distspmd.frontend.from_numpy.host.work import Kinds, Outside, array_work, is_parallel

Position = tuple[int, int]
WHOLE = 2
"""The mark of a statement that Python runs as a whole."""
ENDED, RETURNED, TESTED = "__ended", "__returned", "__value"
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return, ast.Expr)
_AT_TIMES = (
    *(ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp),
    ast.GeneratorExp,
)
_SEE_VARIABLES = {"eval": 1, "exec": 1, "locals": 0, "vars": 0, "dir": 0}
"""Functions of Python that see the variables of their caller if they get so many arguments."""
_JUMPS = (ast.Return, ast.Break, ast.Continue)
BY_ITSELF, BY_RETURN, BY_BREAK, BY_CONTINUE = range(4)
"""How a region ends."""
FOUND_IN = "__distspmd_found_in"
"""The function that a region calls for its variables where it jumps."""
MISSING = "__distspmd_missing"
"""What a variable is that has no value."""


class CannotHost(Exception):
    """Python cannot run statements by themselves; who calls the function can have it run all."""


@dataclass(eq=False)
class Region:
    """Statements that Python runs.

    Attributes:
        statements: as the function has them.
        inputs: variables that they read.
        outputs: variables that they bind, and that are read elsewhere.
        arrays: of the inputs, those that they change in place if these are arrays.
        objects: of the inputs, those that they may change if these are no arrays.
        elsewhere: variables whose arrays other statements of the function may change in place.
        returns: whether they always return.
        jumps: whether they may jump, past what follows.
        annotations: of the variables, and of what the function returns (:data:`RETURNED`).
        name: of the function.
        file: of the function.
        function: it, or the one that it is defined in.
    """

    statements: list[ast.stmt]
    inputs: list[str]
    outputs: list[str]
    arrays: set[str]
    objects: set[str]
    elsewhere: set[str]
    returns: bool
    jumps: bool
    annotations: dict[str, ast.expr]
    name: str
    file: str = ""
    function: Any = None

    @property
    def lines(self) -> tuple[int, int]:
        """The first line and the last one."""
        ends = [s.end_lineno or s.lineno for s in self.statements]
        return min(s.lineno for s in self.statements), max(ends)

    @property
    def key(self) -> tuple[int, ...]:
        """Where it is."""
        first, last = self.statements[0], self.statements[-1]
        return (first.lineno, first.col_offset, last.end_lineno or 0, last.end_col_offset or 0)

    @property
    def parts(self) -> dict[str, str]:
        """Parts of statements that Python computes, by the names that they have got."""
        return {
            part.targets[0].id: ast.unparse(part.value)
            for part in self.statements
            if isinstance(part, ast.Assign)
            and isinstance(part.targets[0], ast.Name)
            and part.targets[0].id.startswith(TESTED)
        }

    @property
    def results(self) -> list[str]:
        """What it gives: how it ended and what it returns, where it may, and the variables."""
        if self.returns:
            return [RETURNED]
        has_value = self.jumps and _returns(self.statements)
        return [*([ENDED] * self.jumps), *([RETURNED] * has_value), *self.outputs]

    def __deepcopy__(self, memo: object) -> Region:
        return self


class RegionCall(ast.expr):
    """What the statements of a region give."""

    _fields = ("inputs",)

    def __init__(self, region: Region) -> None:
        super().__init__()
        self.region = region
        self.inputs: list[ast.expr] = [ast.Name(name, ast.Load()) for name in region.inputs]

    def __deepcopy__(self, memo: Any) -> RegionCall:
        made = RegionCall(self.region)
        made.inputs = copy.deepcopy(self.inputs, memo)
        return ast.copy_location(made, self)


@dataclass
class Hosted:
    """What of a file Python runs, as far as it is known.

    Attributes:
        marks: positions of what it has to run: 1 where a part of the statement may do, else 2.
        kinds: of variables, by the line of the function and their names.
        opaque: variables that are objects of Python, by the line of the function and their names.
        passed: those that the function only returns, by the line of the function and their names.
        shown: types of results that a run has shown, by the region and the variable.
    """

    marks: dict[Position, int] = field(default_factory=dict)
    kinds: dict[int, Kinds] = field(default_factory=dict)
    opaque: set[tuple[int, str]] = field(default_factory=set)
    passed: set[tuple[int, str]] = field(default_factory=set)
    shown: dict[tuple[tuple[int, ...], str], Any] = field(default_factory=dict)


def with_regions(node: ast.FunctionDef, hosted: Hosted, outside: Outside) -> ast.FunctionDef:
    """A function with what Python runs of it as regions.

    Args:
        node: the function.
        hosted: what Python runs.
        outside: what the function sees.

    Raises:
        CannotHost: Python cannot run what it has to run, without the rest.
    """
    last = node.end_lineno or node.lineno
    has_objects = any(node.lineno <= line <= last for line, _ in hosted.opaque)
    if _is_generator(node) or not (has_objects or _marked(node, hosted.marks)):
        return node
    return _Function(node, hosted, outside, set()).rewritten()


def _marked(node: ast.FunctionDef, marks: Mapping[Position, int]) -> dict[int, int]:
    """The innermost statements that are at marks, by identity."""
    found: dict[int, int] = {}
    inner = [part for part in ast.walk(node) if isinstance(part, ast.stmt) and part is not node]
    for mark, level in marks.items():
        around = [
            part
            for part in inner
            if (part.lineno, part.col_offset) <= mark
            and mark < (part.end_lineno or 0, part.end_col_offset or 0)
        ]
        if around:  # ast.walk goes from the outside to the inside
            found[id(around[-1])] = max(level, found.get(id(around[-1]), 0))
    return found


@dataclass(eq=False)
class _Taken(ast.stmt):
    """Statements that become a region."""

    parts: list[ast.stmt]

    def __post_init__(self) -> None:
        super().__init__()


class _Function:
    """The regions of one function."""

    def __init__(
        self, node: ast.FunctionDef, hosted: Hosted, outside: Outside, around: Collection[str]
    ) -> None:
        self.node, self.hosted, self.outside = node, hosted, outside
        self.marked = _marked(node, hosted.marks)
        self.own, self.shared = names.locals_of(node), names.shared_with_outer(node)
        self.locals = self.own | set(around)
        self.kinds = hosted.kinds.setdefault(node.lineno, Kinds())
        self.kinds.infer(node.body, outside)
        self.regions: list[Region] = []
        self.tests = 0

    def rewritten(self) -> ast.FunctionDef:
        """The function with regions; what they make known of objects may be known afterwards."""
        while True:
            self.regions, self.tests = [], 0
            body = self._block(self.node.body, is_body=True)
            found = copy.copy(self.node)
            found.body = self._emitted(body, is_loop=False)
            more = {(self.node.lineno, n) for r in self.regions for n in self._objects(r)}
            if more <= self.hosted.opaque:
                return found
            self.hosted.opaque |= more

    def _objects(self, region: Region) -> set[str]:
        """Variables that a region binds or changes, and that no array code reads."""
        bound = {n for n in region.outputs if self.kinds.is_object(n, region.statements)}
        shown = {n for n in region.outputs if self._is_shown_object(region, n)}
        changed = {n for n in region.objects if self.kinds.is_object(n, self.node.body)}
        return (bound | shown | changed) & self.own

    def _is_shown_object(self, region: Region, name: str) -> bool:
        found = self.hosted.shown.get((region.key, name))
        return found is not None and found.is_object

    # -- what is taken --------------------------------------------------------------------------

    def touches(self, node: ast.AST) -> bool:
        """Whether Python has to run something of a part of the function."""
        passed = returned_names(node)
        for part in ast.walk(node):
            if id(part) in self.marked:
                return True
            if id(part) in passed:
                continue
            if isinstance(part, ast.Name) and (self.node.lineno, part.id) in self.hosted.opaque:
                return True
        return False

    def _works(self, *nodes: ast.AST) -> bool:
        return any(array_work(node, self.kinds, self.outside) for node in nodes)

    def _block(self, statements: Sequence[ast.stmt], *, is_body: bool = False) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in statements:
            found += self._statement(each) if self.touches(each) else [each]
        return self._merged(found, is_body)

    def _statement(self, node: ast.stmt) -> list[ast.stmt]:
        if isinstance(node, ast.FunctionDef) and not self._is_passed(node):
            if _is_generator(node):
                return [node]
            around = self.locals
            return [_Function(node, self.hosted, self.outside, around).rewritten()]
        if not self._works(node):
            return [_Taken([node])]
        if isinstance(node, _SIMPLE) and self.marked.get(id(node), 0) < WHOLE:
            return self._with_parts(node)
        if not isinstance(node, ast.If | ast.For | ast.While | ast.Try | ast.With):
            return [_Taken([node])]
        if isinstance(node, ast.If | ast.While):
            return self._with_test(node)
        return self._with_blocks(node)

    def _with_blocks(self, node: ast.For | ast.Try | ast.With) -> list[ast.stmt]:
        """A statement with blocks, in which Python may have to run something."""
        head = [node.iter] if isinstance(node, ast.For) else getattr(node, "items", [])
        if any(map(self.touches, head)) or id(node) in self.marked:
            return [_Taken([node])]
        made = copy.copy(node)
        for part in ("body", "orelse", "finalbody"):
            if getattr(node, part, None):
                setattr(made, part, self._block(getattr(node, part)))
        if isinstance(node, ast.Try) and isinstance(made, ast.Try):
            made.handlers = [copy.copy(handler) for handler in node.handlers]
            for handler in made.handlers:
                handler.body = self._block(handler.body)
        return [made]

    def _is_passed(self, node: ast.FunctionDef) -> bool:
        """Whether regions call a function of the program, so that they have it themselves."""
        return (self.node.lineno, node.name) in self.hosted.opaque

    def _with_parts(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement with array work that reads objects: Python gives what it has of these."""
        value = getattr(node, "value", None)
        targets = [part for part in ast.iter_child_nodes(node) if part is not value]
        if value is None or any(map(self.touches, targets)):
            return [_Taken([node])]
        made = copy.copy(node)
        made.value = copy.deepcopy(value)  # type: ignore[attr-defined]
        parts = _Parts(self, returned_names(made))
        made.value = parts.visit(made.value)  # type: ignore[attr-defined]
        if self.touches(made) or not parts.before or parts.reads:
            return [_Taken([node])]
        passed = returned_names(made)
        own = {p.id for p in ast.walk(made) if isinstance(p, ast.Name) and id(p) in passed}
        for each in parts.before:
            (target,) = each.targets
            if isinstance(target, ast.Name) and target.id in own:
                self.hosted.passed.add((self.node.lineno, target.id))
        return [_Taken([*parts.before]), made]

    def named(self, value: ast.expr) -> ast.Assign:
        """A statement that gives a value a name of its own."""
        self.tests += 1
        name = f"{TESTED}{self.tests}"
        self.own.add(name)
        self.locals.add(name)
        found: ast.Assign = _at(ast.Assign([ast.Name(name, ast.Store())], value), value)
        return found

    def is_for_python(self, node: ast.AST) -> bool:
        """Whether a part of a statement reads objects, and has no array work."""
        return self.touches(node) and not self._works(node)

    def _with_test(self, node: ast.If | ast.While) -> list[ast.stmt]:
        """A branch or loop with array work, whose condition Python may have to decide."""
        made = copy.copy(node)
        made.body, made.orelse = self._block(node.body), self._block(node.orelse)
        is_marked = id(node) in self.marked
        if not self.touches(node.test) and not is_marked:
            return [made]
        if isinstance(node, ast.While) and node.orelse:
            return [_Taken([node])]
        test = _at(ast.Call(ast.Name("bool", ast.Load()), [node.test], []), node.test)
        tells = self.named(test)
        value = ast.Name(f"{TESTED}{self.tests}", ast.Load())
        if isinstance(node, ast.If):
            made.test = ast.copy_location(value, node.test)
            return [_Taken([tells]), made]
        ends = _at(ast.If(ast.UnaryOp(ast.Not(), value), [ast.Break()], []), node.test)
        made.test = ast.copy_location(ast.Constant(True), node.test)
        made.body = self._merged([_Taken([tells]), ends, *made.body], is_body=False)
        return [made]

    def _merged(self, statements: list[ast.stmt], is_body: bool) -> list[ast.stmt]:
        """Neighbours are one region, with what is no array work between them."""
        found: list[ast.stmt] = []
        for each in statements:
            if isinstance(each, _Taken):
                gap: list[ast.stmt] = []
                while found and not isinstance(found[-1], _Taken) and self._is_bridge(found[-1]):
                    gap.insert(0, found.pop())
                if found and isinstance(found[-1], _Taken):
                    found[-1].parts += [*gap, *each.parts]
                    continue
                found += gap
            found.append(each)
        for place, each in enumerate(found):
            rest = found[place + 1 :]
            if isinstance(each, _Taken) and _jumps(each.parts) and rest:
                plain = [p for r in rest for p in (r.parts if isinstance(r, _Taken) else [r])]
                is_small = not self._works(*plain) and not any(map(_is_made, plain))
                if is_body and _returns(each.parts) and is_small:
                    each.parts += plain
                    del found[place + 1 :]
                    break
        return found

    def _is_bridge(self, node: ast.stmt) -> bool:
        is_plain = not isinstance(
            node, ast.FunctionDef | ast.Import | ast.ImportFrom | ast.Nonlocal
        )
        return is_plain and not _is_made(node) and not self._works(node)

    # -- regions --------------------------------------------------------------------------------

    def _emitted(self, statements: Sequence[ast.stmt], *, is_loop: bool) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for each in statements:
            if isinstance(each, _Taken):
                found += self._region(each.parts, is_loop)
                continue
            inside = is_loop or isinstance(each, ast.For | ast.While)
            for part in ("body", "orelse", "finalbody"):
                if not isinstance(each, names.SCOPES) and _has_taken(each):
                    inner = getattr(each, part, [])
                    setattr(each, part, self._emitted(inner, is_loop=inside))
            for handler in getattr(each, "handlers", []):
                handler.body = self._emitted(handler.body, is_loop=inside)
            found.append(each)
        return found

    def _region(self, parts: list[ast.stmt], is_loop: bool) -> list[ast.stmt]:
        region = self._of(parts, is_loop)
        self.regions.append(region)
        call = _at(RegionCall(region), parts[0])
        if region.returns:
            return [_at(ast.Return(call), parts[0])]
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in region.results]
        if not targets:
            return [_at(ast.Expr(call), parts[0])]
        made: list[ast.stmt] = [_at(ast.Assign([ast.Tuple(targets, ast.Store())], call), parts[0])]
        ended = [type(part) for part in _jumps(parts)]
        for kind, way, jump in (
            (ast.Return, BY_RETURN, ast.Return(ast.Name(RETURNED, ast.Load()))),
            (ast.Break, BY_BREAK, ast.Break()),
            (ast.Continue, BY_CONTINUE, ast.Continue()),
        ):
            if kind in ended:
                if kind is ast.Return and RETURNED not in region.results:
                    jump = ast.Return(None)
                test = ast.Compare(ast.Name(ENDED, ast.Load()), [ast.Eq()], [ast.Constant(way)])
                made.append(_at(ast.If(test, [jump], []), parts[0]))
        return made

    def _of(self, parts: list[ast.stmt], is_loop: bool) -> Region:
        """The region of statements."""
        if any(isinstance(p, ast.Nonlocal) for p in _inside(parts)):
            raise CannotHost("it says of variables that they are those of the function around")
        if any(map(is_parallel, _inside(parts))):
            raise CannotHost("it has a parallel map")
        if found := next(filter(None, map(_sees_variables, _inside(parts))), ""):
            raise CannotHost(
                f"{found}() sees variables that its text may name: write the expression itself, or "
                "give it the variables, eval(text, {'a': a})"
            )
        own = parts
        parts = self._with_functions(parts)
        done: set[str] = set()
        inputs = names.exposed(parts, done) & self.locals
        bound = names.bound_in(parts) & (self.own | self.shared)
        others = self._read_outside(own)  # functions that are taken along stand before others
        others |= self.shared
        outputs = {
            n for n in bound if n in others or n.startswith(TESTED) or (is_loop and n in inputs)
        }
        inputs |= (outputs - done) & self._bound_outside(own)
        arrays, objects = names.changed_in(parts, self.outside, self.kinds.ndims)
        kept = {n for n in outputs if self._is_kept(n, parts)}
        jumps = _jumps(parts)
        returns = bool(parts) and _always_returns(parts[-1])
        return Region(
            parts,
            sorted(inputs),
            sorted(outputs - kept),
            arrays & inputs,
            objects & inputs,
            self._changed_outside(parts),
            returns,
            bool(jumps) and not returns,
            self._annotations(),
            self.node.name,
        )

    def _is_kept(self, name: str, parts: Sequence[ast.stmt]) -> bool:
        """Whether an array is only changed in place, ``x += y``, and not bound anew."""
        if not self.kinds.shape(name):
            return False
        anew = [
            part
            for each in names.within(parts)
            for part in ast.iter_child_nodes(each)
            if isinstance(part, ast.Name)
            and part.id == name
            and not isinstance(part.ctx, ast.Load)
            and not isinstance(each, ast.AugAssign)
        ]
        return not anew

    def _with_functions(self, parts: list[ast.stmt]) -> list[ast.stmt]:
        """Statements with the functions of the program that they call, which become their own.

        Raises:
            CannotHost: one of these is defined more than once.
        """
        known: dict[str, list[ast.stmt]] = {}
        for part in names.within(self.node.body):
            if isinstance(part, ast.FunctionDef | ast.ClassDef):
                known.setdefault(part.name, []).append(part)
        while True:
            here = {p.name for p in parts if isinstance(p, ast.FunctionDef | ast.ClassDef)}
            needed = names.exposed(parts, set()) & known.keys() - here
            if not needed:
                return parts
            for name in sorted(needed):
                if len(known[name]) > 1:
                    raise CannotHost(f"{name!r} is defined more than once")
                parts = [*known[name], *parts]

    def _read_outside(self, parts: Sequence[ast.stmt]) -> set[str]:
        """Variables that the rest of the function reads as they are after statements."""
        taken = {id(p) for p in parts}
        found = _read_after(self.node.body, taken)
        return _outside(self.node.body, taken, names.loads) if found is None else found

    def _bound_outside(self, parts: Sequence[ast.stmt]) -> set[str]:
        bound = _outside(self.node.body, {id(p) for p in parts}, lambda s: names.bound_in([s]))
        return bound | names.parameters_of(self.node) | (self.locals - self.own)

    def _changed_outside(self, parts: Sequence[ast.stmt]) -> set[str]:
        """Variables whose arrays the rest of the function may change in place."""

        def changed(node: ast.AST) -> set[str]:
            return names.changed_in([node], self.outside, self.kinds.ndims)[0]

        return _outside(self.node.body, {id(p) for p in parts}, changed)

    def _annotations(self) -> dict[str, ast.expr]:
        found = {
            part.target.id: part.annotation
            for part in names.within(self.node.body)
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
        }
        if self.node.returns is not None:
            found[RETURNED] = self.node.returns
        return found


class _Parts(ast.NodeTransformer):
    """Gives parts of an expression that Python computes names, in their order."""

    def __init__(self, function: _Function, passed: Collection[int]) -> None:
        self.function, self.passed = function, passed
        self.before: list[ast.Assign] = []
        self.reads = False
        """Whether an object is called, or read at an index, with what is array work."""

    def visit(self, node: ast.AST) -> Any:
        """An expression with names; what Python may compute only at times stays."""
        if isinstance(node, _AT_TIMES) or id(node) in self.passed:
            return node
        if not isinstance(node, ast.expr):
            return self.generic_visit(node)
        if not self.function.is_for_python(node):
            of = {ast.Call: "func", ast.Subscript: "value"}.get(type(node), "")
            self.reads |= bool(of) and self.function.touches(getattr(node, of))
            return self.generic_visit(node)
        self.before.append(self.function.named(node))
        name = f"{TESTED}{self.function.tests}"
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def returned_names(node: ast.AST) -> set[int]:
    """Variables that a statement returns as they are, by themselves or as parts, by identity.

    They may be objects of Python, which the program passes on to the caller.
    """
    found: set[int] = set()
    parts = [node.value] if isinstance(node, ast.Return) else []
    while parts:
        part = parts.pop()
        if isinstance(part, ast.Name):
            found.add(id(part))
        elif isinstance(part, ast.Tuple | ast.List):
            parts += part.elts
        elif isinstance(part, ast.Dict) and None not in part.keys:
            parts += part.values
    return found


def _read_after(statements: Sequence[ast.stmt], taken: set[int]) -> set[str] | None:
    """Variables that are read after statements as they are then; None if these are not there."""
    for place, each in enumerate(statements):
        rest = [s for s in statements[place + 1 :] if id(s) not in taken]
        if id(each) in taken:
            return names.exposed(rest, set())
        if isinstance(each, names.SCOPES):
            continue
        for block in _blocks(each):
            found = _read_after(block, taken)
            if found is None:
                continue
            if isinstance(each, ast.For | ast.While):  # what is before comes after
                found |= names.exposed([each], set())
            if isinstance(each, ast.Try):
                found |= _outside([each], taken, names.loads)
            return found | names.exposed(rest, set())
    return None


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    found = [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
    return found + [handler.body for handler in getattr(node, "handlers", [])]


def _outside(statements: Sequence[Any], taken: set[int], told: Any) -> set[str]:
    """What is told of all simple parts of statements that are not taken."""
    found: set[str] = set()
    for each in statements:
        if id(each) in taken:
            continue
        inner = [part for block in _blocks(each) for part in block]
        if not inner or isinstance(each, names.SCOPES):
            found |= told(each)
            continue
        heads = copy.copy(each)
        for part in ("body", "orelse", "finalbody", "handlers"):
            if hasattr(each, part):
                setattr(heads, part, [])
        found |= told(heads) | _outside(inner, taken, told)
    return found


def _sees_variables(node: ast.AST) -> str:
    """The name of a function of Python that sees the variables of its caller, if one is called."""
    name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    given = _SEE_VARIABLES.get(name)
    is_one = given is not None and isinstance(node, ast.Call) and len(node.args) <= given
    return name if is_one else ""


def _inside(parts: Sequence[ast.AST]) -> list[ast.AST]:
    return list(names.within(parts))


def _jumps(parts: Sequence[ast.stmt], in_loop: bool = False) -> list[ast.stmt]:
    """Jumps that lead out of statements."""
    found: list[ast.stmt] = []
    for each in parts:
        if isinstance(each, ast.Return) or (isinstance(each, _JUMPS) and not in_loop):
            found.append(each)
        if isinstance(each, names.SCOPES):
            continue
        for part in ("body", "orelse", "finalbody"):
            is_loop = isinstance(each, ast.For | ast.While) and part == "body"
            found += _jumps(getattr(each, part, []), in_loop or is_loop)
        for handler in (*getattr(each, "handlers", []), *getattr(each, "cases", [])):
            found += _jumps(handler.body, in_loop)
    return found


def _returns(parts: Sequence[ast.stmt]) -> bool:
    """Whether statements may return something."""
    return any(isinstance(p, ast.Return) and p.value is not None for p in _jumps(parts))


def _always_returns(node: ast.stmt) -> bool:
    if isinstance(node, ast.If):
        return bool(node.orelse) and all(_always_returns(w[-1]) for w in (node.body, node.orelse))
    if isinstance(node, ast.With):
        return _always_returns(node.body[-1])
    return isinstance(node, ast.Return | ast.Raise)


def _is_generator(node: ast.FunctionDef) -> bool:
    """Whether a function is a generator, of which Python runs all or nothing."""
    return any(isinstance(p, ast.Yield | ast.YieldFrom) for p in names.within(node.body))


def _has_taken(node: ast.stmt) -> bool:
    parts = [part for block in _blocks(node) for part in block]
    return any(isinstance(p, _Taken) or _has_taken(p) for p in parts)


def _is_made(node: ast.stmt) -> bool:
    """Whether statements have parts that are regions already, or are of a condition."""
    named = [p.id for p in ast.walk(node) if isinstance(p, ast.Name)]
    return _has_taken(node) or any(name.startswith(TESTED) for name in named)


def _at(node: Any, like: ast.AST) -> Any:
    return ast.fix_missing_locations(ast.copy_location(node, like))


def function_of(region: Region, name: str) -> ast.FunctionDef:
    """A region as a function of its inputs, which returns a tuple of its results.

    An input that it binds may have no value yet.
    """
    body: list[ast.stmt] = []
    for each in sorted({*region.inputs} & names.bound_in(region.statements)):
        is_missing = ast.Compare(_read(each), [ast.Is()], [_read(MISSING)])
        body.append(ast.If(is_missing, [ast.Delete([ast.Name(each, ast.Del())])], []))
    body += _ending(copy.deepcopy(region.statements), region)
    if not region.returns:
        own = [ast.Name(n, ast.Load()) for n in region.outputs]
        first: list[ast.expr] = [ast.Constant(BY_ITSELF)] if region.jumps else []
        if RETURNED in region.results:
            first.append(_call(FOUND_IN, _texts([RETURNED]), ast.Dict([], [])))
            first[-1] = ast.Subscript(first[-1], ast.Constant(0), ast.Load())
        body.append(ast.Return(ast.Tuple([*first, *own], ast.Load())))
        last = copy.copy(region.statements[-1])
        last.lineno = last.end_lineno or last.lineno
        _at(body[-1], last)
    arguments = ast.arguments([], [ast.arg(n) for n in region.inputs], None, [], [], None, [])
    made = ast.FunctionDef(name, arguments, body, [], None, None)
    found: ast.FunctionDef = _at(made, region.statements[0])
    return found


def _read(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _ending(parts: list[ast.stmt], region: Region, in_loop: bool = False) -> list[ast.stmt]:
    """Statements whose jumps return how they ended, what they return, and the variables."""
    found: list[ast.stmt] = []
    for each in parts:
        is_jump = isinstance(each, ast.Return) or (isinstance(each, _JUMPS) and not in_loop)
        if is_jump:
            found.append(_at(ast.Return(_ended(each, region)), each))
            continue
        if not isinstance(each, names.SCOPES):
            for part in ("body", "orelse", "finalbody"):
                inside = in_loop or (isinstance(each, ast.For | ast.While) and part == "body")
                if getattr(each, part, None):
                    setattr(each, part, _ending(getattr(each, part), region, inside))
            for handler in (*getattr(each, "handlers", []), *getattr(each, "cases", [])):
                handler.body = _ending(handler.body, region, in_loop)
        found.append(each)
    return found


def _ended(jump: ast.stmt, region: Region) -> ast.expr:
    value = jump.value if isinstance(jump, ast.Return) else None
    given = value or ast.Constant(None)
    if region.returns:
        return ast.Tuple([given], ast.Load())
    way = {ast.Return: BY_RETURN, ast.Break: BY_BREAK, ast.Continue: BY_CONTINUE}[type(jump)]
    first: list[ast.expr] = [ast.Constant(way)]
    if RETURNED in region.results:
        missing = _call(FOUND_IN, _texts([RETURNED]), ast.Dict([], []))
        is_value = isinstance(jump, ast.Return)
        first.append(given if is_value else ast.Subscript(missing, ast.Constant(0), ast.Load()))
    own = _call(FOUND_IN, _texts(region.outputs), ast.Call(ast.Name("locals", ast.Load()), [], []))
    return ast.Tuple([*first, ast.Starred(own, ast.Load())], ast.Load())


def _call(name: str, *given: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(given), [])


def _texts(values: Sequence[str]) -> ast.Tuple:
    return ast.Tuple([ast.Constant(v) for v in values], ast.Load())
