"""The statements and expressions of Python, read with tensors in the place of arrays."""

from __future__ import annotations

import ast
import builtins
import inspect
import operator
import textwrap
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from dace.frontend.python.parser import DaceProgram

from distspmd.expressions.ir import apply
from distspmd.frontend.from_numpy import control, indexing
from distspmd.frontend.from_numpy.arithmetic import apply_ufunc, choose, combine, converted
from distspmd.frontend.from_numpy.jumps import DONE, RESULT, without_jumps
from distspmd.frontend.from_numpy.tracer import (
    PYTHON_TYPES,
    CannotRoll,
    Frame,
    Refusal,
    Tracer,
    told,
    truth_of,
)
from distspmd.frontend.from_numpy.values import Tensor, View
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    add,
    floor_divide,
    multiply,
    remainder,
    same,
    simplified,
    subtract,
)

MISSING = object()
"""What an unbound variable has."""

_UFUNCS: dict[type[ast.AST], np.ufunc] = {
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
_PYTHON: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
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
_RELATIONS: dict[type[ast.AST], Any] = {
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
}


@dataclass(frozen=True)
class Method:
    """A method of a tensor, or of a universal function."""

    owner: Any
    name: str


@dataclass(eq=False)
class Closure:
    """A function that the program defines."""

    node: ast.FunctionDef | ast.Lambda
    frame: Frame
    defaults: Mapping[str, Any]

    @property
    def __name__(self) -> str:
        return getattr(self.node, "name", "lambda")


class Interpreter:
    """Reads functions into a tracer.

    Attributes:
        tracer: where the program is written down.
        functions: what functions of NumPy and Python become, by the functions.
        methods: what methods of arrays become, by name.
    """

    def __init__(
        self,
        tracer: Tracer,
        functions: Mapping[Any, Callable[..., Any]],
        methods: Mapping[str, Callable[..., Any]],
    ) -> None:
        self.tracer, self.functions, self.methods = tracer, functions, methods
        self.sizes: dict[str, Whole] = {}
        self.depth = 0

    @property
    def variables(self) -> dict[str, Any]:
        """Those of the function that is being read."""
        return self.tracer.frames[-1].variables

    # -- functions ------------------------------------------------------------------------------

    def run_function(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What a function of Python returns."""
        try:
            lines, first = inspect.getsourcelines(function)
            file = inspect.getsourcefile(function) or ""
        except (OSError, TypeError):
            self.tracer.refuse(
                f"the source of the function {function.__name__!r} is not to be found: write it in "
                "a file"
            )
        text = textwrap.dedent("".join(lines))
        indent = len(lines[0]) - len(lines[0].lstrip())
        node = _function_in(text, function)
        if node is None:
            self.tracer.refuse(f"the source of {function.__name__!r} has no function of that name")
        ast.increment_lineno(node, first - 1)
        for part in ast.walk(node):
            if hasattr(part, "col_offset"):
                part.col_offset += indent  # type: ignore[attr-defined]
        known = _globals_of(function)
        frame = Frame({**known, **arguments}, file, first, lines)
        return self._run(node, frame)

    def _run(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Any:
        if self.depth > 60:
            self.tracer.refuse("functions that call each other more than 60 times deep")
        before, outer = self.tracer.node, self.depth
        self.depth += 1
        self.tracer.frames.append(frame)
        try:
            if isinstance(node, ast.Lambda):
                return self.value(node.body)
            body = _rewritten(node)
            self.block(body)
            return frame.variables.get(RESULT)
        finally:
            self.depth = outer
            self.tracer.frames.pop()
            if before is not None:
                self.tracer.node = before

    def call(self, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What a call gives.

        Raises:
            Refusal: a function that is not covered.
        """
        tracer = self.tracer
        if isinstance(function, Method):
            return self._method(function, arguments, keywords)
        try:
            handler = self.functions.get(function)
        except TypeError:
            handler = None
        if handler is not None:
            return handler(self, *arguments, **keywords)
        if isinstance(function, Closure):
            return self._closure(function, arguments, keywords)
        if isinstance(function, DaceProgram):
            function = function.f
        if isinstance(function, np.ufunc):
            if not _has_arrays((arguments, keywords)):
                return _static(tracer, function, arguments, keywords)
            return apply_ufunc(tracer, function, arguments, **keywords)
        owner = getattr(function, "__self__", None)
        if isinstance(owner, np.ufunc):
            return self._method(Method(owner, function.__name__), arguments, keywords)
        if hasattr(function, "pyfunc") and isinstance(function, np.vectorize):
            tracer.refuse("np.vectorize: write the function over whole arrays, with np.where")
        if isinstance(function, type) and issubclass(function, np.generic):
            if len(arguments) == 1 and not keywords:
                if not _has_arrays(arguments):
                    return function(arguments[0])
                return converted(tracer, arguments[0], function)
        typed = _dace_type(function)
        if typed is not None and len(arguments) == 1:
            return converted(tracer, arguments[0], typed)
        if isinstance(function, types.MethodType):
            return self.call(function.__func__, [function.__self__, *arguments], keywords)
        if isinstance(function, types.FunctionType) and not _is_numpy(function):
            return self._python(function, arguments, keywords)
        import functools

        if isinstance(function, functools.partial):
            return self.call(
                function.func, [*function.args, *arguments], {**function.keywords, **keywords}
            )
        if not _has_data((arguments, keywords)):
            return _static(tracer, function, arguments, keywords)
        name = _name_of(function)
        tracer.refuse(f"the function {name} is not covered")

    def _python(
        self, function: types.FunctionType, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        wrapped = inspect.unwrap(function)
        try:
            bound = inspect.signature(wrapped).bind(*arguments, **keywords)
        except TypeError as problem:
            self.tracer.refuse(f"{function.__name__}: {problem}")
        bound.apply_defaults()
        return self.run_function(wrapped, dict(bound.arguments))

    def _closure(
        self, closure: Closure, arguments: Sequence[Any], keywords: Mapping[str, Any]
    ) -> Any:
        own = closure.node.args
        names = [a.arg for a in (*own.posonlyargs, *own.args)]
        known = dict(closure.defaults)
        if len(arguments) > len(names) and not own.vararg:
            self.tracer.refuse(f"{closure.__name__} takes {len(names)} arguments")
        known.update(zip(names, arguments, strict=False))
        if own.vararg:
            known[own.vararg.arg] = tuple(arguments[len(names) :])
        allowed = {*names, *(a.arg for a in own.kwonlyargs)}
        extra = {k: v for k, v in keywords.items() if k not in allowed}
        if extra and not own.kwarg:
            self.tracer.refuse(f"{closure.__name__} has no argument {next(iter(extra))!r}")
        if own.kwarg:
            known[own.kwarg.arg] = extra
        known.update({k: v for k, v in keywords.items() if k in allowed})
        missing = [n for n in allowed if n not in known]
        if missing:
            self.tracer.refuse(f"{closure.__name__} needs the argument {missing[0]!r}")
        frame = Frame(
            {**closure.frame.variables, **known},
            closure.frame.file,
            closure.frame.first_line,
            closure.frame.source,
        )
        return self._run(closure.node, frame)

    def _method(self, method: Method, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        tracer = self.tracer
        if isinstance(method.owner, np.ufunc):
            handler = self.functions.get(("ufunc", method.name))
            if handler is None:
                tracer.refuse(f"np.{method.owner.__name__}.{method.name} is not covered")
            return handler(self, method.owner, *arguments, **keywords)
        handler = self.methods.get(method.name)
        if handler is None:
            tracer.refuse(f"the method {method.name!r} of an array is not covered")
        return handler(self, method.owner, *arguments, **keywords)

    # -- statements -----------------------------------------------------------------------------

    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Read statements in order."""
        for statement in statements:
            self.statement(statement)

    def statement(self, node: ast.stmt) -> None:
        """Read a statement.

        Raises:
            Refusal: one that is not covered; with its line.
        """
        self.tracer.node = node
        read = _STATEMENTS.get(type(node))
        if read is None:
            self.tracer.refuse(f"the statement {type(node).__name__.lower()!r} is not covered")
        read(self, node)

    def _assign(self, node: ast.Assign) -> None:
        name = node.targets[0].id if isinstance(node.targets[0], ast.Name) else None
        with self.tracer.named(name):
            value = self.value(node.value)
        for target in node.targets:
            self.tracer.node = node
            self.bind(target, value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            return
        name = node.target.id if isinstance(node.target, ast.Name) else None
        with self.tracer.named(name):
            value = self.value(node.value)
        self.bind(node.target, value)

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assign to a target."""
        tracer = self.tracer
        if isinstance(target, ast.Name):
            self.variables[target.id] = self.kept(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = self.unpacked(value, target)
            self._bind_all(target.elts, values)
        elif isinstance(target, ast.Subscript):
            base = self.value(target.value)
            items = self.subscript(target.slice)
            if isinstance(base, list | dict) and not _has_data(items):
                self._may_change(base)
                base[items] = value
                return
            if tracer.straight is not None and tracer.straight.write(base, items, value):
                return
            indexing.write(tracer, base, items, self.plain(value))
        elif isinstance(target, ast.Starred):
            self.bind(target.value, list(value))
        elif isinstance(target, ast.Attribute):
            base = self.value(target.value)
            if isinstance(base, View) and target.attr == "T":
                from distspmd.frontend.from_numpy.shapes import transpose

                tracer.assign(transpose(tracer, base), tracer.tensor(value))  # type: ignore[arg-type]
                return
            tracer.refuse(f"an assignment to the attribute {target.attr!r}")
        else:
            tracer.refuse(f"an assignment to {ast.unparse(target)}")

    def _bind_all(self, targets: Sequence[ast.expr], values: Sequence[Any]) -> None:
        starred = [n for n, t in enumerate(targets) if isinstance(t, ast.Starred)]
        if starred:
            (place,) = starred
            after = len(targets) - place - 1
            values = [
                *values[:place],
                list(values[place : len(values) - after]),
                *values[len(values) - after :],
            ]
            targets = [t.value if isinstance(t, ast.Starred) else t for t in targets]
        if len(values) != len(targets):
            self.tracer.refuse(f"{len(values)} values for {len(targets)} variables")
        settled = [
            self.tracer.stored_anew(v)
            if isinstance(v, Tensor)
            and not isinstance(v, View)
            and v.mask is None
            and self.tracer.straight is None
            else v
            for v in values
        ]
        for target, value in zip(targets, settled, strict=True):
            self.bind(target, value)

    def unpacked(self, value: Any, like: ast.expr) -> Sequence[Any]:
        """The values that are assigned to several targets."""
        if isinstance(value, tuple | list | range | str):
            return list(value)
        if isinstance(value, np.ndarray):
            return list(value)
        if isinstance(value, Tensor):
            if value.ndim == 0 or not isinstance(value.shape[0], int):
                self.tracer.refuse(f"{told(value)} is not unpacked: its length is not known")
            return [indexing.read(self.tracer, value, n) for n in range(value.shape[0])]
        try:
            return list(value)
        except TypeError:
            self.tracer.refuse(f"{told(value)} is not unpacked")

    def kept(self, name: str, value: Any) -> Any:
        """What a variable stands for: tensors are stored, so that later writes do not reach them."""
        tracer = self.tracer
        if not isinstance(value, Tensor) or isinstance(value, View):
            return value
        if tracer.straight is not None and value.ndim == 0:
            return value
        if value.mask is not None:
            return value
        old = self.variables.get(name)
        if (
            isinstance(old, View)
            and old.is_whole
            and not old.container.is_argument
            and old.dtype == value.dtype
            and len(old.shape) == len(value.shape)
            and all(same(a, b) for a, b in zip(old.shape, value.shape, strict=True))
            and control.references(tracer, old.container) == 1
            and control.is_own(tracer, old.container)
            and control.reads_in_place(tracer, old, value)
        ):
            tracer.write(old, value)
            old.weak = value.weak
            return old
        return tracer.stored_anew(value, _readable(name))

    def _augmented(self, node: ast.AugAssign) -> None:
        target = node.target
        tracer = self.tracer
        if isinstance(target, ast.Name):
            old = self._name(ast.copy_location(ast.Name(target.id, ast.Load()), target))
            with tracer.named(target.id):
                new = self.value(node.value)
            if (
                isinstance(old, View)
                and old.weak is None
                and (old.ndim > 0 or old.container.is_argument)
            ):
                self._in_place(old, node.op, new)
                return
            if isinstance(old, list) and isinstance(node.op, ast.Add):
                self._may_change(old)
                old += list(new)
                return
            tracer.node = node
            with tracer.named(target.id):
                self.bind(target, self.binary(node.op, old, new))
            return
        if isinstance(target, ast.Subscript):
            base = self.value(target.value)
            items = self.subscript(target.slice)
            new = self.value(node.value)
            tracer.node = node
            if isinstance(base, list | dict):
                self._may_change(base)
                base[items] = self.binary(node.op, base[items], new)
                return
            if tracer.straight is not None and tracer.straight.update(base, items, node.op, new):
                return
            if not isinstance(base, View):
                tracer.refuse(f"{told(base)} cannot be assigned to")
            if indexing.is_basic(items):
                part = indexing.read(tracer, base, items)
                assert isinstance(part, View)
                self._in_place(part, node.op, new)
                return
            old = indexing.read(tracer, base, items)
            indexing.write(tracer, base, items, self.binary(node.op, old, new))
            return
        if isinstance(target, ast.Attribute):
            base = self.value(target.value)
            part = self.attribute(base, target.attr)
            if isinstance(part, View):
                self._in_place(part, node.op, self.value(node.value))
                return
        tracer.refuse(f"an augmented assignment to {ast.unparse(target)}")

    def _in_place(self, old: View, op: ast.operator, value: Any) -> None:
        """``old op= value``, in the type of the old one."""
        tracer = self.tracer
        if isinstance(op, ast.MatMult):
            tracer.assign(old, self.binary(op, old, value))
            return
        found = self.binary(op, old, value)
        if not np.can_cast(found.dtype, old.dtype, "same_kind"):
            tracer.refuse(
                f"Cannot cast ufunc {_UFUNCS[type(op)].__name__!r} output from {found.dtype} to "
                f"{old.dtype} with casting rule 'same_kind'"
            )
        conflict = control.conflict_of(tracer, old, op)
        if conflict is not None:
            tracer.write(old, control.combined_with(tracer, old, op, value), conflict)
            return
        tracer.assign(old, found)

    def _may_change(self, values: Any) -> None:
        if any(id(values) in known for known in self.tracer.rolled):
            raise CannotRoll("a list is changed in the loop")

    def _expression(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Constant):
            return
        self.value(node.value)

    def _if(self, node: ast.If) -> None:
        control.branch(self, node)

    def _for(self, node: ast.For) -> None:
        control.for_loop(self, node)

    def _while(self, node: ast.While) -> None:
        control.while_loop(self, node)

    def _define(self, node: ast.FunctionDef) -> None:
        own = node.args
        names = [a.arg for a in (*own.posonlyargs, *own.args)]
        values = [self.value(d) for d in own.defaults]
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
        for argument, default in zip(own.kwonlyargs, own.kw_defaults, strict=True):
            if default is not None:
                defaults[argument.arg] = self.value(default)
        self.variables[node.name] = Closure(node, self.tracer.frames[-1], defaults)

    def _assert(self, node: ast.Assert) -> None:
        found = self.value(node.test)
        known = self.truth(found)
        if known is False:
            message = self.value(node.msg) if node.msg is not None else ast.unparse(node.test)
            self.tracer.refuse(f"the assertion is false: {message}")
        if known is None:
            from distspmd.frontend.from_numpy.checks import add_assertion

            add_assertion(self, node, found)

    def _pass(self, node: ast.stmt) -> None:
        pass

    def _delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Name):
                self.tracer.refuse(f"del {ast.unparse(target)}")
            self.variables.pop(target.id, None)

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            module = __import__(alias.name)
            if alias.asname:
                for part in alias.name.split(".")[1:]:
                    module = getattr(module, part)
            self.variables[alias.asname or alias.name.split(".")[0]] = module

    def _import_from(self, node: ast.ImportFrom) -> None:
        import importlib

        module = importlib.import_module(node.module or "")
        for alias in node.names:
            self.variables[alias.asname or alias.name] = getattr(module, alias.name)

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            if ast.unparse(item.context_expr).split("(")[0] not in (
                "np.errstate",
                "numpy.errstate",
            ):
                self.tracer.refuse("a with statement, but for np.errstate, is not covered")
        self.block(node.body)

    def _raise(self, node: ast.Raise) -> None:
        self.tracer.refuse(f"the program raises here: {ast.unparse(node)}")

    # -- truth ----------------------------------------------------------------------------------

    def truth(self, value: Any) -> bool | None:
        """Whether a value is true; None where that is known at run time only."""
        if isinstance(value, Tensor):
            if value.ndim and not all(n == 1 for n in value.shape):
                self.tracer.refuse(
                    "the truth value of an array with more than one element is ambiguous; use "
                    "np.any(...) or np.all(...)"
                )
            return None
        if isinstance(value, sympy.Basic):
            return self._known(value)
        return bool(value)

    def _known(self, value: sympy.Basic) -> bool | None:
        if value in (sympy.true, sympy.false):
            return bool(value)
        if not isinstance(value, sympy.logic.boolalg.Boolean):
            if simplified(value) == 0:
                return False
            return control.decided(self.tracer, sympy.Ne(value, 0))
        return control.decided(self.tracer, value)

    # -- expressions ----------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            Refusal: one that is not covered.
        """
        before, self.tracer.node = self.tracer.node, node
        read = _EXPRESSIONS.get(type(node))
        if read is None:
            self.tracer.refuse(f"{ast.unparse(node)} is not covered")
        found = read(self, node)
        self.tracer.node = before
        return found

    def plain(self, value: Any) -> Any:
        """A value that is assigned: numbers and arrays as they are, lists as arrays."""
        return value

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _name(self, node: ast.Name) -> Any:
        for known in (self.variables, vars(builtins)):
            if node.id in known and known[node.id] is not MISSING:
                found = known[node.id]
                return self.outside(node.id, found)
        self.tracer.refuse(f"the name {node.id!r} is not defined")

    def outside(self, name: str, value: Any) -> Any:
        """A value from outside of the program as one of it."""
        whole = _dace_symbol(value)
        if whole is not None:
            return self.sizes.get(whole.name, whole)
        return value

    def _binary_node(self, node: ast.BinOp) -> Any:
        left = self.value(node.left)
        if _calls(node.right) and isinstance(left, Tensor) and not isinstance(left, View):
            left = self.tracer.settled(left) if self.tracer.straight is None else left
        right = self.value(node.right)
        return self.binary(node.op, left, right)

    def binary(self, op: ast.operator, left: Any, right: Any) -> Any:
        """``left op right``."""
        tracer = self.tracer
        if isinstance(op, ast.MatMult):
            return self.call(np.matmul, [left, right], {})
        if _is_array(left) or _is_array(right):
            return combine(tracer, _UFUNCS[type(op)], [left, right])
        if (
            _is_whole(left)
            and _is_whole(right)
            and (isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic))
        ):
            if type(op) in _WHOLE:
                return _WHOLE[type(op)](left, right)
            if isinstance(op, ast.Pow):
                found = sympy.sympify(left) ** sympy.sympify(right)
                return found
            return combine(tracer, _UFUNCS[type(op)], [left, right])
        if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
            if isinstance(left, list | tuple) or isinstance(right, list | tuple):
                tracer.refuse("a list of a length that is not known")
            return combine(tracer, _UFUNCS[type(op)], [left, right])
        try:
            return _PYTHON[type(op)](left, right)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as problem:
            tracer.refuse(str(problem))

    def _unary(self, node: ast.UnaryOp) -> Any:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            known = self.truth(value)
            if known is not None:
                return not known
            if isinstance(value, sympy.Basic):
                return sympy.Not(_relation(value))
            return Tensor(
                (),
                np.dtype(bool),
                lambda _: apply("logical_not", truth_of(value.element((0,) * value.ndim))),
                bool,
            )
        if isinstance(value, sympy.Basic):
            if isinstance(node.op, ast.USub):
                return multiply(-1, value)
            if isinstance(node.op, ast.UAdd):
                return value
            value = self.tracer.whole(value)
        if isinstance(value, Tensor):
            kind = {ast.USub: np.negative, ast.UAdd: np.positive, ast.Invert: np.invert}
            return combine(self.tracer, kind[type(node.op)], [value])
        python = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
        try:
            return python[type(node.op)](value)
        except TypeError as problem:
            self.tracer.refuse(str(problem))

    def _boolean(self, node: ast.BoolOp) -> Any:
        first_wins = isinstance(node.op, ast.Or)
        found: Any = None
        for place, part in enumerate(node.values):
            guard = place > 0 and found is not None
            self.tracer.guarded += guard
            try:
                value = self.value(part)
                known = self.truth(value)
            finally:
                self.tracer.guarded -= guard
            last = place == len(node.values) - 1
            if known is not None:
                if known == first_wins:
                    if found is None:
                        return value
                    return self._joined(node.op, found, known)
                if last and found is None:
                    return value
                continue
            found = value if found is None else self._joined(node.op, found, value)
        return found if found is not None else value

    def _joined(self, op: ast.boolop, left: Any, right: Any) -> Any:
        if isinstance(left, sympy.Basic) and isinstance(right, sympy.Basic | bool):
            kind = sympy.Or if isinstance(op, ast.Or) else sympy.And
            return kind(_relation(left), _relation(sympy.sympify(right)))
        name = "logical_or" if isinstance(op, ast.Or) else "logical_and"
        one, other = self.tracer.tensor(left), self.tracer.tensor(right)
        return Tensor(
            (),
            np.dtype(bool),
            lambda _: apply(name, *(truth_of(t.element((0,) * t.ndim)) for t in (one, other))),
            bool,
        )

    def _compare(self, node: ast.Compare) -> Any:
        left = self.value(node.left)
        found: Any = None
        for op, part in zip(node.ops, node.comparators, strict=True):
            right = self.value(part)
            one = self.compared(op, left, right)
            if found is None:
                found = one
            else:
                known = self.truth(found)
                if known is False:
                    return False
                found = one if known else self._joined(ast.And(), found, one)
            left = right
        return found

    def compared(self, op: ast.cmpop, left: Any, right: Any) -> Any:
        """``left op right``."""
        if isinstance(op, ast.Is | ast.IsNot):
            return _PYTHON[type(op)](left, right)
        if isinstance(op, ast.In | ast.NotIn):
            if _has_data((left, right)):
                self.tracer.refuse("'in' of values that are not known; use np.isin or np.any")
            return _PYTHON[type(op)](left, right)
        if _is_array(left) or _is_array(right):
            if left is None or right is None:
                return isinstance(op, ast.NotEq)
            return combine(self.tracer, _UFUNCS[type(op)], [left, right])
        if isinstance(left, sympy.Basic) or isinstance(right, sympy.Basic):
            if _is_whole(left) and _is_whole(right):
                difference = subtract(left, right)
                if isinstance(difference, int):
                    return bool(_PYTHON[type(op)](difference, 0))
                return _RELATIONS[type(op)](sympy.sympify(left), sympy.sympify(right))
            if left is None or right is None or isinstance(left, str) or isinstance(right, str):
                return isinstance(op, ast.NotEq)
            return combine(self.tracer, _UFUNCS[type(op)], [left, right])
        try:
            if _has_data((left, right)):
                if isinstance(left, tuple | list) and isinstance(right, tuple | list):
                    return self._same_tuples(op, left, right)
            return _PYTHON[type(op)](left, right)
        except TypeError as problem:
            self.tracer.refuse(str(problem))

    def _same_tuples(self, op: ast.cmpop, left: Sequence[Any], right: Sequence[Any]) -> bool:
        if not isinstance(op, ast.Eq | ast.NotEq):
            self.tracer.refuse("tuples of sizes are compared by their order")
        equal = len(left) == len(right) and all(
            same(a, b) for a, b in zip(left, right, strict=True)
        )
        return equal == isinstance(op, ast.Eq)

    def _chosen(self, node: ast.IfExp) -> Any:
        test = self.value(node.test)
        known = self.truth(test)
        if known is not None:
            return self.value(node.body if known else node.orelse)
        if isinstance(test, sympy.Basic):
            test = self.tracer.truth(_relation(test))
        self.tracer.guarded += 1
        try:
            one, other = self.value(node.body), self.value(node.orelse)
        finally:
            self.tracer.guarded -= 1
        tensors = [self.tracer.tensor(v) for v in (one, other)]
        scalar = Tensor((), test.dtype, lambda _: test.element((0,) * test.ndim))
        return choose(self.tracer, scalar, *tensors)

    def _call(self, node: ast.Call) -> Any:
        function = self.value(node.func)
        arguments: list[Any] = []
        for place, part in enumerate(node.args):
            if isinstance(part, ast.Starred):
                arguments += self.unpacked(self.value(part.value), part)
                continue
            found = self.value(part)
            later = node.args[place + 1 :]
            if (
                isinstance(found, Tensor)
                and not isinstance(found, View)
                and any(map(_calls, later))
                and self.tracer.straight is None
                and found.mask is None
            ):
                found = self.tracer.settled(found)
            arguments.append(found)
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                keywords.update(value)
            else:
                keywords[keyword.arg] = value
        self.tracer.node = node
        try:
            return self.call(function, arguments, keywords)
        except TypeError as problem:
            if _inside_handler(problem):
                self.tracer.refuse(f"{_name_of(function)}: {problem}")
            raise

    def _attribute_node(self, node: ast.Attribute) -> Any:
        return self.attribute(self.value(node.value), node.attr)

    def attribute(self, base: Any, name: str) -> Any:
        """``base.name``."""
        tracer = self.tracer
        if isinstance(base, Tensor):
            handler = self.functions.get(("attribute", name))
            if handler is not None:
                return handler(self, base)
            return Method(base, name)
        if isinstance(base, np.ufunc) and name in ("reduce", "accumulate", "outer", "at"):
            return Method(base, name)
        if isinstance(base, sympy.Basic):
            if name in ("real", "numerator"):
                return base
            return Method(tracer.whole(base), name)
        if isinstance(base, list) and name in ("append", "extend", "insert", "pop", "reverse"):
            self._may_change(base)
        try:
            return self.outside(name, getattr(base, name))
        except AttributeError as problem:
            tracer.refuse(str(problem))

    def _subscript_node(self, node: ast.Subscript) -> Any:
        base = self.value(node.value)
        items = self.subscript(node.slice)
        tracer = self.tracer
        if isinstance(base, Tensor):
            if tracer.straight is not None:
                found = tracer.straight.read(base, items)
                if found is not None:
                    return found
            return indexing.read(tracer, base, items)
        if _has_data(items):
            if isinstance(base, np.ndarray):
                return indexing.read(tracer, tracer.tensor(base), items)
            if isinstance(base, list | tuple) and any(map(_is_array, base)):
                return indexing.read(tracer, tracer.stack(list(base)), items)
            if isinstance(base, list | tuple | range):
                return indexing.read(tracer, tracer.tensor(base), items)
        try:
            return base[items]
        except (TypeError, KeyError, IndexError) as problem:
            tracer.refuse(f"{type(problem).__name__}: {problem}")

    def subscript(self, node: ast.expr) -> Any:
        """What stands in brackets."""
        if isinstance(node, ast.Tuple):
            found: list[Any] = []
            for part in node.elts:
                if isinstance(part, ast.Starred):
                    found += self.unpacked(self.value(part.value), part)
                else:
                    found.append(self.subscript(part))
            return tuple(found)
        if isinstance(node, ast.Slice):
            ends = (node.lower, node.upper, node.step)
            return slice(*(None if e is None else self.value(e) for e in ends))
        return self.value(node)

    def _tuple(self, node: ast.Tuple) -> Any:
        found: list[Any] = []
        for part in node.elts:
            if isinstance(part, ast.Starred):
                found += self.unpacked(self.value(part.value), part)
            else:
                found.append(self.value(part))
        return tuple(found)

    def _list(self, node: ast.List) -> Any:
        return list(self._tuple(node))  # type: ignore[arg-type]

    def _dict(self, node: ast.Dict) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                found.update(self.value(value))
            else:
                found[self.value(key)] = self.value(value)
        return found

    def _set(self, node: ast.Set) -> Any:
        return {self.value(e) for e in node.elts}

    def _lambda(self, node: ast.Lambda) -> Any:
        names = [a.arg for a in node.args.args]
        values = [self.value(d) for d in node.args.defaults]
        defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
        return Closure(node, self.tracer.frames[-1], defaults)

    def _text(self, node: ast.JoinedStr) -> Any:
        found = ""
        for part in node.values:
            if isinstance(part, ast.Constant):
                found += str(part.value)
                continue
            assert isinstance(part, ast.FormattedValue)
            value = self.value(part.value)
            if _has_data(value):
                found += "{" + ast.unparse(part.value) + "}"
                continue
            spec = self.value(part.format_spec) if part.format_spec else ""
            if part.conversion == ord("r"):
                value = repr(value)
            found += format(value, spec)
        return found

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
        found: list[Any] = []
        before = dict(self.variables)
        for _ in self._generated(node.generators):
            value = self.value(node.elt)
            if isinstance(value, Tensor) and not isinstance(value, View):
                value = self.tracer.settled(value) if self.tracer.straight is None else value
            found.append(value)
        for comprehension in node.generators:
            for name in _stored_names(comprehension.target):
                if name in before:
                    self.variables[name] = before[name]
                else:
                    self.variables.pop(name, None)
        return set(found) if isinstance(node, ast.SetComp) else found

    def _dict_comprehension(self, node: ast.DictComp) -> Any:
        return {
            self.value(node.key): self.value(node.value) for _ in self._generated(node.generators)
        }

    def _generated(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        if not generators:
            yield None
            return
        first, *rest = generators
        for value in control.static_values(self, self.value(first.iter)):
            self.bind(first.target, value)
            tests = [self.truth(self.value(test)) for test in first.ifs]
            if any(t is None for t in tests):
                self.tracer.refuse("a comprehension's condition that is known at run time only")
            if all(tests):
                yield from self._generated(rest)

    def _named(self, node: ast.NamedExpr) -> Any:
        value = self.value(node.value)
        self.bind(node.target, value)
        return self.variables[node.target.id]

    @contextmanager
    def variables_of(self, known: dict[str, Any]) -> Iterator[None]:
        """Let the innermost function have other variables."""
        frame = self.tracer.frames[-1]
        before, frame.variables = frame.variables, known
        try:
            yield
        finally:
            frame.variables = before


_STATEMENTS: dict[type[ast.AST], Callable[[Interpreter, Any], None]] = {
    ast.Assign: Interpreter._assign,
    ast.AnnAssign: Interpreter._annotated,
    ast.AugAssign: Interpreter._augmented,
    ast.Expr: Interpreter._expression,
    ast.If: Interpreter._if,
    ast.For: Interpreter._for,
    ast.While: Interpreter._while,
    ast.FunctionDef: Interpreter._define,
    ast.Assert: Interpreter._assert,
    ast.Pass: Interpreter._pass,
    ast.Delete: Interpreter._delete,
    ast.Import: Interpreter._import,
    ast.ImportFrom: Interpreter._import_from,
    ast.With: Interpreter._with,
    ast.Raise: Interpreter._raise,
    ast.Global: Interpreter._pass,
    ast.Nonlocal: Interpreter._pass,
}
_EXPRESSIONS: dict[type[ast.AST], Callable[[Interpreter, Any], Any]] = {
    ast.Constant: Interpreter._constant,
    ast.Name: Interpreter._name,
    ast.BinOp: Interpreter._binary_node,
    ast.UnaryOp: Interpreter._unary,
    ast.BoolOp: Interpreter._boolean,
    ast.Compare: Interpreter._compare,
    ast.IfExp: Interpreter._chosen,
    ast.Call: Interpreter._call,
    ast.Attribute: Interpreter._attribute_node,
    ast.Subscript: Interpreter._subscript_node,
    ast.Tuple: Interpreter._tuple,
    ast.List: Interpreter._list,
    ast.Dict: Interpreter._dict,
    ast.Set: Interpreter._set,
    ast.Lambda: Interpreter._lambda,
    ast.JoinedStr: Interpreter._text,
    ast.ListComp: Interpreter._comprehension,
    ast.GeneratorExp: Interpreter._comprehension,
    ast.SetComp: Interpreter._comprehension,
    ast.DictComp: Interpreter._dict_comprehension,
    ast.NamedExpr: Interpreter._named,
}


# -- what values are ------------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | sympy.Expr) and not isinstance(value, bool)


def _has_arrays(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_arrays, value))
    if isinstance(value, dict):
        return any(map(_has_arrays, value.values()))
    return isinstance(value, Tensor | sympy.Basic | np.ndarray)


def _has_data(value: Any) -> bool:
    if isinstance(value, list | tuple | set):
        return any(map(_has_data, value))
    if isinstance(value, dict):
        return any(map(_has_data, value.values()))
    if isinstance(value, slice):
        return any(map(_has_data, (value.start, value.stop, value.step)))
    return isinstance(value, Tensor | sympy.Basic)


def _static(
    tracer: Tracer, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """What Python computes of values that are known."""
    try:
        with np.errstate(all="ignore"):
            return function(*arguments, **keywords)
    except Refusal:
        raise
    except Exception as problem:
        tracer.refuse(f"{_name_of(function)}: {type(problem).__name__}: {problem}")


def _calls(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Call) for n in ast.walk(node))


def _relation(value: sympy.Basic) -> sympy.Basic:
    return value if isinstance(value, sympy.logic.boolalg.Boolean) else sympy.Ne(value, 0)


def _name_of(function: Any) -> str:
    if isinstance(function, Method):
        return f"the method {function.name!r}"
    module = str(getattr(function, "__module__", "") or "").replace("numpy", "np", 1)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", str(function))
    return f"{module}.{name}" if module and module != "builtins" else str(name)


def _is_numpy(function: Any) -> bool:
    module = str(getattr(function, "__module__", "") or "")
    return module.split(".")[0] in ("numpy", "scipy", "dace", "distspmd", "math", "cmath")


def _dace_type(function: Any) -> Any:
    from dace import dtypes

    return function.type if isinstance(function, dtypes.typeclass) else None


def _dace_symbol(value: Any) -> sympy.Symbol | None:
    if type(value).__module__.startswith("dace") and isinstance(value, sympy.Symbol):
        return sympy.Symbol(value.name, integer=True)
    return None


def _readable(name: str) -> str:
    return "result" if name == RESULT else name.lstrip("_") if name.startswith("__") else name


def _stored_names(target: ast.AST) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _inside_handler(problem: TypeError) -> bool:
    """Whether an error comes from a call that does not fit a function of ours."""
    trace = problem.__traceback__
    depth = 0
    while trace is not None:
        depth += 1
        trace = trace.tb_next
    return depth <= 3


def _function_in(text: str, function: Any) -> ast.FunctionDef | ast.Lambda | None:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        tree = None
    name = function.__name__
    if tree is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        for node in ast.walk(tree):
            if isinstance(node, ast.Lambda) and name == "<lambda>":
                return node
    return None


def _globals_of(function: Any) -> dict[str, Any]:
    """What a function sees from outside."""
    known = dict(function.__globals__)
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            known[name] = cell.cell_contents
        except ValueError:
            continue
    return known


def _rewritten(node: ast.FunctionDef) -> list[ast.stmt]:
    found: list[ast.stmt] | None = getattr(node, "distspmd_body", None)
    if found is None:
        found = without_jumps(node)
        node.distspmd_body = found  # type: ignore[attr-defined]
    return found


__all__ = ["DONE", "MISSING", "PYTHON_TYPES", "Closure", "Interpreter", "Method"]
