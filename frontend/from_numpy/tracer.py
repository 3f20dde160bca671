"""Where a program is written down while it is read: containers, statements, and what is known.

The functions of NumPy and the statements of Python are all made of what is here: storing a tensor,
assigning to a view, reducing, contracting, and numbers that the program reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import ascii_letters
from typing import Any, NoReturn

import numpy as np
import sympy

from distspmd.errors import UnsupportedProgram
from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    Load,
    Operation,
    apply,
    cast,
    count_additions,
    parts,
    replace_leaves,
)
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.values import (
    INT64,
    Tensor,
    View,
    axis,
    make_view,
    number,
    view_of,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Container,
    Contract,
    Index,
    Kernel,
    Length,
    Loop,
    Parameter,
    Scope,
    SetSymbol,
    Statement,
    Store,
    Table,
    Window,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import (
    Whole,
    bound,
    is_at_least,
    same,
    subtract,
    symbol,
)

PYTHON_TYPES: dict[type, DType] = {
    bool: np.dtype(bool),
    int: INT64,
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}
"""Types in which numbers of Python are kept."""


class Refusal(UnsupportedProgram):
    """What the front end does not take; the message has the line."""


class CannotRoll(Exception):
    """A loop cannot stay one: something of it differs from iteration to iteration."""


@dataclass
class Frame:
    """The variables of a function that is being read."""

    variables: dict[str, Any] = field(default_factory=dict)
    file: str = ""
    first_line: int = 0
    source: Sequence[str] = ()


@dataclass
class Tracer:
    """A program as far as it is read.

    Attributes:
        block: where statements are added.
        bounds: of the symbols of loops and scopes, and of values that were read.
        names: of containers and symbols that are taken.
        frames: of the functions that are being read, the innermost one last.
        node: the syntax that is being read.
        guarded: whether what is read may not happen, so that indices have to stay inside.
        rolled: identities of lists that a loop may not change, which has to stay one.
        target: the variable that is assigned to, whose name a container takes.
        own: names of the containers of the maps around, the innermost one last.
        parallel: parameters of the maps around, each with the number of maps outside of it.
        straight: the body of a map that is read as one kernel, if one is.
    """

    block: Block = field(default_factory=Block)
    bounds: dict[str, tuple[Whole | None, Whole | None]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    frames: list[Frame] = field(default_factory=list)
    node: Any = None
    guarded: int = 0
    rolled: list[set[int]] = field(default_factory=list)
    target: str | None = None
    own: list[set[str]] = field(default_factory=list)
    parallel: list[tuple[int, list[str]]] = field(default_factory=list)
    straight: Any = None

    # -- messages -------------------------------------------------------------------------------

    @property
    def line(self) -> tuple[str, int] | None:
        """The line that is being read."""
        if not self.frames or self.node is None:
            return None
        return self.frames[-1].file, self.node.lineno

    def refuse(self, what: str) -> NoReturn:
        """Refuse what is being read.

        Raises:
            Refusal: always; the message has the line, with a caret.
        """
        raise Refusal(self.message(what))

    def message(self, what: str) -> str:
        """A message with the line that is being read."""
        line = self.line
        if line is None:
            return what
        file, number_ = line
        frame, place = self.frames[-1], number_ - self.frames[-1].first_line
        text = frame.source[place].rstrip() if 0 <= place < len(frame.source) else ""
        caret = " " * self.node.col_offset + "^"
        return f"{Path(file).name}:{number_}: {what}\n    {text}\n    {caret}"

    # -- names and containers -------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """A name that nothing has."""
        base = re.sub(r"\W", "_", name) or "t"
        if base[0].isdigit():
            base = f"_{base}"
        found, count = base, 0
        while found in self.names:
            count += 1
            found = f"{base}_{count}"
        self.names.add(found)
        return found

    def container(self, name: str, shape: Sequence[Length], dtype: DType) -> Container:
        """A new container."""
        found = Container(self.unique(name), tuple(shape), np.dtype(dtype))
        if self.own:
            self.own[-1].add(found.name)
        return found

    def add(self, statement: Statement) -> None:
        """Add a statement."""
        if self.straight is not None:
            self.straight.leave()
        statement.line = self.line
        self.block.statements.append(statement)

    def parallel_above(self, container: Container) -> list[str]:
        """Parameters of the maps that are inside of the place where a container was made."""
        depth = next(
            (n + 1 for n, own in reversed(list(enumerate(self.own))) if container.name in own), 0
        )
        return [name for level, names in self.parallel if level >= depth for name in names]

    def ordered_kernel(
        self, stores: list[Store], parameters: Sequence[Parameter], label: str
    ) -> None:
        """Add a kernel whose iterations may write one element, of which the last one wins."""
        if self.straight is not None:
            self.straight.leave()
        decided = set()
        for store in stores:
            for index in store.index:
                if not isinstance(index, int | sympy.Basic):
                    for load in loads_of(index):
                        for part in load.index:
                            decided |= {s.name for s in sympy.sympify(part).free_symbols}
        ordered = [p for p in parameters if p.name in decided]
        free = [p for p in parameters if p.name not in decided]
        body = Block()
        inner = body
        for p in ordered:
            block = Block()
            inner.statements.append(
                Loop(p.name, p.first, p.end, p.step, None, block, line=self.line)
            )
            inner = block
        inner.statements.append(Kernel(label, (), stores, line=self.line))
        self.add(Scope(label, tuple(free) or (Parameter("__once", 0, 1),), body))

    @contextmanager
    def within(self, block: Block) -> Iterator[Block]:
        """Add statements to another block."""
        before, self.block = self.block, block
        try:
            yield block
        finally:
            self.block = before

    @contextmanager
    def named(self, target: str | None) -> Iterator[None]:
        """What is stored next goes to a variable."""
        before, self.target = self.target, target
        try:
            yield
        finally:
            self.target = before

    # -- tensors --------------------------------------------------------------------------------

    def tensor(self, value: Any) -> Tensor:
        """What a value is as a tensor.

        Raises:
            Refusal: it is none.
        """
        if isinstance(value, Tensor):
            return value
        if isinstance(value, bool | int | float | complex) and not isinstance(value, np.generic):
            kind = type(value)
            dtype = PYTHON_TYPES[kind]
            if kind is int and not -(2**63) <= value < 2**63:
                self.refuse(f"the number {value} has more than 64 bits")
            constant = number(value, dtype)
            return Tensor((), dtype, lambda _: constant, weak=kind)
        if isinstance(value, sympy.Basic):
            return self.whole(value)
        if isinstance(value, np.generic):
            typed = number(value, value.dtype) if value.dtype.kind in "biufc" else None
            if typed is None:
                self.refuse(f"a number of the type {value.dtype}")
            return Tensor((), value.dtype, lambda _: typed)
        if isinstance(value, np.ndarray):
            return self.table(value)
        if isinstance(value, list | tuple | range):
            return self.stack(list(value))
        self.refuse(f"{_told(value)} is no array")

    def whole(self, value: Whole) -> Tensor:
        """A whole number of Python."""
        if isinstance(value, sympy.Basic) and (value.is_Boolean or value.is_Relational):
            return self.truth(value)
        return Tensor((), INT64, lambda _: whole_expression(value), weak=int)

    def truth(self, value: sympy.Basic) -> Tensor:
        """A truth value of symbols."""
        return Tensor((), np.dtype(bool), lambda _: _truth(value), weak=bool)

    def table(self, values: np.ndarray[Any, Any]) -> Tensor:
        """An array of numbers that are known."""
        if values.dtype.kind not in "biufc" or values.dtype.itemsize > 16:
            self.refuse(f"an array of the type {values.dtype}")
        if values.ndim == 0:
            return self.tensor(values[()])
        container = self.container(self.target or "table", values.shape, values.dtype)
        self.add(Table(container, values.copy()))
        return view_of(container)

    def stack(self, values: Sequence[Any]) -> Tensor:
        """A list as an array, as ``np.array`` makes it."""
        if not any(_has_data(v) for v in values):
            try:
                found = np.array(values)
            except (ValueError, TypeError) as problem:
                self.refuse(str(problem))
            if found.dtype == object:
                self.refuse(f"a list of {_told(values[0])} is no array")
            return self.table(found)
        rows = [self.tensor(v) for v in values]
        kind = np.result_type(*(r.weak(0) if r.weak else r.dtype for r in rows))
        shape = rows[0].shape
        if any(len(r.shape) != len(shape) for r in rows):
            self.refuse("a list of arrays of different shapes is no array")
        container = self.container(self.target or "stacked", (len(rows), *shape), kind)
        for place, row in enumerate(rows):
            whole = view_of(container)
            part = make_view(container, shape, (place, *(axis(d) for d in range(len(shape)))))
            del whole
            self.assign(part, row)
        return view_of(container)

    def stored_anew(self, tensor: Tensor, name: str | None = None) -> View:
        """A tensor in a container of its own."""
        if tensor.mask is not None:
            self.refuse(
                "elements that a boolean mask chooses are no array of a known shape; use "
                "np.where(mask, ..., ...) on the whole, or a sum, mean, max or min of them"
            )
        container = self.container(name or self.target or "t", tensor.shape, tensor.dtype)
        view = view_of(container)
        self.write(view, tensor)
        view.weak = tensor.weak
        return view

    def stored(self, tensor: Tensor, name: str | None = None) -> View:
        """A tensor whose elements lie in a container: itself, or after they are stored."""
        if isinstance(tensor, View):
            return tensor
        return self.stored_anew(tensor, name)

    def settled(self, tensor: Tensor) -> Tensor:
        """A tensor of which elements may be computed more than once: stored if that is work."""
        if isinstance(tensor, View):
            return self.unmerged(tensor)
        index = tuple(symbol(f"__probe{d}") for d in range(tensor.ndim))
        if count_additions(tensor.element(index)) > 2:
            return self.stored_anew(tensor)
        return tensor

    def unmerged(self, tensor: Tensor) -> Tensor:
        """A tensor whose places take no division; else it is copied."""
        if isinstance(tensor, View) and tensor.is_merged:
            from distspmd.frontend.from_numpy.shapes import copy_merged

            return copy_merged(self, tensor)
        return tensor

    # -- writing --------------------------------------------------------------------------------

    def assign(self, target: View, value: Tensor) -> None:
        """Write a value, broadcast, to a view; what it reads is as it was before."""
        value = self.broadcast(value, target.shape)
        parameters, index = self._parameters(target.shape)
        place = target.at(index)
        expression = value.element(index)
        if any(
            load.array is target.container and self._meets(load.index, place, parameters)
            for load in loads_of(expression)
        ):
            value = self.stored_anew(
                Tensor(value.shape, value.dtype, value.element, value.weak), "before"
            )
        self.write(target, value)

    def write(self, target: View, value: Tensor, conflict: str | None = None) -> None:
        """Write a value of a view's shape to it."""
        parameters, index = self._parameters(target.shape)
        stored = cast(value.element(index), target.dtype)
        store = Store(target.container, target.at(index), stored, conflict)
        self.kernel([store], parameters, target.container.name)

    def kernel(self, stores: list[Store], parameters: Sequence[Parameter], label: str) -> None:
        """Add a kernel."""
        self.add(Kernel(label, tuple(parameters), stores))

    def _parameters(self, shape: Sequence[Length]) -> tuple[list[Parameter], tuple[Index, ...]]:
        parameters = [Parameter(f"__i{d}", 0, n) for d, n in enumerate(shape)]
        return parameters, tuple(symbol(p.name) for p in parameters)

    def _meets(
        self, read: Sequence[Index], written: Sequence[Index], parameters: Sequence[Parameter]
    ) -> bool:
        """Whether an iteration may read what another one writes."""
        if all(_equal(a, b) for a, b in zip(read, written, strict=True)):
            return False
        own = {p.name for p in parameters}
        bounds = dict(self.bounds)
        others = {symbol(p.name): symbol(f"{p.name}__other") for p in parameters}
        for p in parameters:
            last = subtract(p.end, 1)
            bounds[p.name] = bounds[f"{p.name}__other"] = (p.first, last)
        for a, b in zip(read, written, strict=True):
            if not all(isinstance(x, int | sympy.Basic) for x in (a, b)):
                continue
            other = sympy.sympify(b).xreplace(others)
            difference = subtract(a, other)  # type: ignore[arg-type]
            if is_at_least(difference, 1, bounds) or is_at_least(
                subtract(0, difference), 1, bounds
            ):
                return False
            if _never_zero(difference, own | {str(s) for s in others.values()}):
                return False
        return True

    # -- broadcasting ---------------------------------------------------------------------------

    def broadcast_shape(self, shapes: Sequence[Sequence[Length]]) -> tuple[Length, ...]:
        """The shape to which shapes are broadcast.

        Raises:
            Refusal: they are not.
        """
        rank = max(map(len, shapes), default=0)
        result: list[Length] = [1] * rank
        for shape in shapes:
            for d, n in enumerate(shape, start=rank - len(shape)):
                old = result[d]
                if _is_one(old):
                    result[d] = n
                elif not _is_one(n) and not same(old, n):
                    if isinstance(old, int) and isinstance(n, int):
                        texts = " ".join(_shape_text(s) for s in shapes)
                        self.refuse(f"operands could not be broadcast together: shapes {texts}")
                    result[d] = old if isinstance(old, int) else n if isinstance(n, int) else old
        return tuple(result)

    def broadcast(self, value: Tensor, shape: Sequence[Length]) -> Tensor:
        """A tensor in a larger shape."""
        if value.mask is not None:
            self.refuse("elements that a mask chooses are assigned to another choice of elements")
        extra = value.ndim - len(shape)
        if extra > 0 and all(_is_one(n) for n in value.shape[:extra]):
            lead = extra
        elif extra > 0:
            self.refuse(
                f"could not broadcast the shape {_shape_text(value.shape)} into "
                f"{_shape_text(shape)}"
            )
        else:
            lead = 0
        own = value.shape[lead:]
        for n, wanted in zip(reversed(own), reversed(shape), strict=False):
            if not _is_one(n) and isinstance(n, int) and isinstance(wanted, int) and n != wanted:
                self.refuse(
                    f"could not broadcast the shape {_shape_text(value.shape)} into "
                    f"{_shape_text(shape)}"
                )
        if (
            not lead
            and len(own) == len(shape)
            and all(same(a, b) for a, b in zip(own, shape, strict=True))
        ):
            return value
        offset = len(shape) - len(own)
        ones = [_is_one(n) for n in own]

        def element(index: tuple[Index, ...]) -> Expression:
            inner = tuple(0 if one else index[offset + d] for d, one in enumerate(ones))
            return value.element((0,) * lead + inner)

        return Tensor(tuple(shape), value.dtype, element, value.weak)

    # -- whole numbers --------------------------------------------------------------------------

    def as_whole(self, value: Any, what: str = "an index") -> Whole:
        """A whole number that indices and lengths can be made of.

        Raises:
            Refusal: it is none.
        """
        if isinstance(value, bool | np.bool_):
            return int(value)
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, sympy.Basic):
            return value
        if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu":
            return int(value)
        if (
            isinstance(value, Tensor)
            and value.dtype.kind in "iub"
            and all(_is_one(n) for n in value.shape)
        ):
            expression = value.element((0,) * value.ndim)
            found = known_whole(expression)
            return self.read_whole(value) if found is None else found
        if isinstance(value, Tensor) and value.shape == ():
            self.refuse(f"{what} has to be a whole number, but has the type {value.dtype}")
        self.refuse(f"{what} has to be a whole number, but {_told(value)} is given")

    def read_whole(self, value: Tensor) -> Whole:
        """A symbol for a number that the program computes."""
        expression = value.element((0,) * value.ndim)
        if not isinstance(expression, Load) or any(
            not isinstance(i, int | sympy.Basic) for i in expression.index
        ):
            stored = self.stored_anew(
                Tensor((), INT64, lambda _: cast(expression, INT64)), "number"
            )
            expression = stored.element(())
        assert isinstance(expression, Load)
        name = self.unique(f"{expression.array.name}_value")
        self.bounds[name] = (None, None)
        self.add(SetSymbol(name, expression, INT64))
        return symbol(name)

    def condition(self, value: Tensor) -> str:
        """The text of a condition, over symbols."""
        stored = self.stored_anew(
            Tensor((), np.dtype(bool), lambda _: truth_of(value.element((0,) * value.ndim))),
            "condition",
        )
        name = self.unique("condition_value")
        self.add(SetSymbol(name, stored.element(()), np.dtype(bool)))
        return name

    # -- contractions ---------------------------------------------------------------------------

    def contract(
        self,
        kept: Sequence[tuple[sympy.Symbol, Length]],
        gone: Sequence[tuple[sympy.Symbol, Length]],
        expression: Expression,
        operation: str,
        name: str | None = None,
    ) -> View:
        """Reduce an expression over indices.

        Args:
            kept: indices of the result, with their lengths.
            gone: those that are reduced.
            expression: what is reduced; its loads are made windows, or are stored first.
            operation: "sum", "max" or "min".
            name: of the container.
        """
        lengths = {s.name: n for s, n in (*kept, *gone)}
        letters = _letters(list(lengths))
        found: dict[Any, tuple[str, str, Window]] = {}

        def windows(leaf: Expression) -> Expression:
            if isinstance(leaf, IndexValue):
                if all(v in letters for v, _ in leaf.terms):
                    return IndexValue(
                        tuple((letters[v], f) for v, f in leaf.terms), leaf.constant, leaf.dtype
                    )
                raise _NoWindow
            if not isinstance(leaf, Load):
                return leaf
            key = leaf.array.name, tuple(map(str, leaf.index))
            if key not in found:
                term, window = _window(leaf, lengths, letters)
                found[key] = f"_v{len(found)}", term, window
            return Argument(found[key][0], leaf.dtype)

        result = self.container(
            name or self.target or "reduced", [n for _, n in kept], expression.dtype
        )
        try:
            closed = replace_leaves(expression, windows)
            used = "".join(term for _, term, _ in found.values())
            if any(letters[s.name] not in used for s, _ in gone) or not found:
                raise _NoWindow
            if any(
                letters[s.name] not in used for s, _ in kept
            ):  # an index that nothing is loaded by
                raise _NoWindow
        except _NoWindow:
            every = (*kept, *gone)
            by = [s for s, _ in every]
            whole = Tensor(
                tuple(n for _, n in every),
                expression.dtype,
                lambda index: substitute(expression, dict(zip(by, index, strict=True))),
            )
            stored = self.stored_anew(whole, f"{result.name}_operand")
            self.names.discard(result.name)
            return self.contract(kept, gone, stored.element(tuple(by)), operation, result.name)
        out = "".join(letters[s.name] for s, _ in kept)
        subscripts = f"{','.join(term for _, term, _ in found.values())}->{out}"
        operands = tuple(window for *_, window in found.values())
        whole_result = Window(result, (0,) * len(kept), result.shape)
        text = "" if operation == "sum" and _is_product(closed, len(found)) else str(closed)
        if operation == "sum" and len(found) == 1 and isinstance(closed, Argument):
            text = ""
        self.add(Contract(subscripts, operands, whole_result, operation, text))
        return view_of(result)


LETTER = "__letter_"
"""How symbols begin whose last character is the letter that they are to have."""


def _letters(names: Sequence[str]) -> dict[str, str]:
    """Letters of symbols: those that they ask for, or free ones."""
    found = {n: n[-1] for n in names if n.startswith(LETTER)}
    free = iter(x for x in ascii_letters if x not in found.values())
    return {n: found.get(n) or next(free) for n in names}


class _NoWindow(Exception):
    """A load is no window of a container: it is stored first."""


def _window(
    load: Load, lengths: Mapping[str, Length], letters: Mapping[str, str]
) -> tuple[str, Window]:
    """The letters of a load, and the window that they run over."""
    term, first, extents = "", [], []
    for index in load.index:
        if not isinstance(index, int | sympy.Basic):
            raise _NoWindow
        own = [s for s in sympy.sympify(index).free_symbols if s.name in lengths]
        if not own:
            term += "()"
            first.append(index)
            extents.append(1)
            continue
        if len(own) > 1:
            raise _NoWindow
        (variable,) = own
        rest = subtract(index, variable)
        if isinstance(rest, sympy.Basic) and variable in rest.free_symbols:
            raise _NoWindow
        if letters[variable.name] in term:
            raise _NoWindow
        term += letters[variable.name]
        first.append(rest)
        extents.append(lengths[variable.name])
    return term, Window(load.array, tuple(first), tuple(extents))


def _is_product(expression: Expression, count: int) -> bool:
    return (
        count == 2
        and isinstance(expression, Operation)
        and expression.name == "multiply"
        and all(
            isinstance(a, Argument) and a.dtype == expression.dtype for a in expression.arguments
        )
        and expression.arguments[0] != expression.arguments[1]
    )


def substitute(expression: Expression, by: Mapping[sympy.Symbol, Index]) -> Expression:
    """Put indices in for symbols of an expression."""
    texts = {s.name: i for s, i in by.items()}

    def moved(index: Index) -> Index:
        if isinstance(index, int):
            return index
        if isinstance(index, sympy.Basic):
            direct = {s: i for s, i in by.items() if s in index.free_symbols}
            if all(isinstance(i, int | sympy.Basic) for i in direct.values()):
                found = index.xreplace({s: sympy.sympify(i) for s, i in direct.items()})
                return int(found) if found.is_Integer else found
            return whole_expression(index, dict(direct))
        return substitute(index, by)

    def replace(leaf: Expression) -> Expression:
        if isinstance(leaf, Load):
            return Load(leaf.array, tuple(map(moved, leaf.index)), leaf.dtype)
        if isinstance(leaf, IndexValue) and any(v in texts for v, _ in leaf.terms):
            total = sympy.Integer(leaf.constant) + sum(symbol(v) * f for v, f in leaf.terms)
            return cast(whole_expression(total, dict(by)), leaf.dtype)
        return leaf

    return replace_leaves(expression, replace)


def known_whole(expression: Expression) -> Whole | None:
    """The whole number that an expression without loads is; None for others."""
    if any(isinstance(part, Load) for part in parts(expression)):
        return None
    if isinstance(expression, IndexValue):
        total = sympy.Integer(expression.constant) + sum(symbol(v) * f for v, f in expression.terms)
        return int(total) if total.is_Integer else total
    constant = getattr(expression, "value", None)
    return int(constant) if isinstance(constant, int) else None


def truth_of(expression: Expression) -> Expression:
    """Whether a number is not zero."""
    if expression.dtype.kind == "b":
        return expression
    return apply("not_equal", expression, number(0, expression.dtype))


_RELATIONS: dict[Any, str] = {
    sympy.StrictLessThan: "less",
    sympy.LessThan: "less_equal",
    sympy.StrictGreaterThan: "greater",
    sympy.GreaterThan: "greater_equal",
    sympy.Equality: "equal",
    sympy.Unequality: "not_equal",
}


def _truth(value: sympy.Basic) -> Expression:
    if value in (sympy.true, sympy.false):
        return number(bool(value), np.dtype(bool))
    if type(value) in _RELATIONS:
        return apply(_RELATIONS[type(value)], *(whole_expression(a) for a in value.args))
    name = {sympy.And: "logical_and", sympy.Or: "logical_or"}.get(type(value))
    arguments = [_truth(a) for a in value.args]
    if name is None:
        return apply("logical_not", *arguments)
    found = arguments[0]
    for other in arguments[1:]:
        found = apply(name, found, other)
    return found


def _never_zero(difference: Whole, varying: set[str]) -> bool:
    """Whether no values of symbols make a difference zero: all factors share a divisor."""
    if isinstance(difference, int):
        return difference != 0
    divisor, constant = 0, 0
    for term in sympy.Add.make_args(sympy.expand(difference)):
        factor, rest = term.as_coeff_Mul()
        if not factor.is_Integer:
            return False
        if rest == 1:
            constant = int(factor)
        else:
            divisor = int(np.gcd(divisor, int(factor)))
    return divisor > 1 and constant % divisor != 0


def _equal(a: Index, b: Index) -> bool:
    if isinstance(a, int | sympy.Basic) and isinstance(b, int | sympy.Basic):
        return same(a, b)
    return a is b or a == b


def _is_one(n: Length) -> bool:
    return n == 1


def _shape_text(shape: Sequence[Length]) -> str:
    return "(" + ",".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _has_data(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_has_data, value))
    return isinstance(value, Tensor | sympy.Basic)


def _told(value: Any) -> str:
    """A value in a message."""
    if isinstance(value, Tensor):
        return f"an array of the shape {_shape_text(value.shape)}"
    if callable(value):
        return f"the function {getattr(value, '__name__', value)}"
    text = repr(value)
    return text if len(text) < 60 else f"a {type(value).__name__}"


told = _told
is_one = _is_one
shape_text = _shape_text
bound_of: Callable[..., Any] = bound
