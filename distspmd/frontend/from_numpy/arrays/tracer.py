"""What programs are made of: tensors that are stored, assignments, contractions, numbers read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import (
    Argument,
    Expression,
    IndexValue,
    Load,
    Operation,
    cast,
    count_additions,
    parts,
    replace_leaves,
)
from distspmd.expressions.operations import DType
from distspmd.frontend.from_numpy.arrays.contractions import (
    NoWindow,
    contract_known,
    counted_in,
    is_product,
    letters_of,
    window_of,
)
from distspmd.frontend.from_numpy.arrays.elements import (
    copied_from,
    does_not_fit,
    in_table,
    is_empty,
    is_one,
    known_elements,
    known_formula,
    known_whole,
    may_meet,
    read_before,
    stored_before,
    substitute,
    truth_expression,
    truth_of,
    without_reads,
)
from distspmd.frontend.from_numpy.arrays.kinds import has_data, not_plain
from distspmd.frontend.from_numpy.arrays.lengths import (
    capacity,
    check_lengths,
    common_length,
    over_container,
    rooms,
    with_capacity,
)
from distspmd.frontend.from_numpy.arrays.transcript import (
    PYTHON_TYPES,
    Refusal,
    Transcript,
    shape_text,
    told,
)
from distspmd.frontend.from_numpy.arrays.values import (
    INT64,
    MIXED,
    OfRun,
    Tensor,
    View,
    axis,
    make_view,
    number,
    view_of,
    whole_expression,
)
from distspmd.frontend.tensor_ir.statements import (
    Container,
    Contract,
    Index,
    Kernel,
    Length,
    Parameter,
    SetSymbol,
    Statement,
    Store,
    Table,
    Window,
    loads_of,
)
from distspmd.frontend.tensor_ir.whole_numbers import Whole, is_decided_by_data, same, symbol
from distspmd.plans.heuristics import HEURISTICS


class Tracer(Transcript):
    """Writes down what the functions of NumPy and the statements of Python are made of."""

    # -- tensors --------------------------------------------------------------------------------

    def tensor(self, value: object) -> Tensor:
        """What a value is as a tensor.

        Raises:
            Refusal: it is none.
        """
        if isinstance(value, Tensor):
            if value.is_mixed:
                self.refuse(MIXED)
            return value
        if isinstance(reason := getattr(value, "reason", None), str):  # the run decides what it is
            self.refuse(reason)
        if isinstance(value, bool | int | float | complex | np.generic):
            return self._constant(value)
        if isinstance(value, sympy.Basic):
            return self.whole(value)
        if isinstance(value, np.ndarray):
            return self.table(value)
        if isinstance(value, list | tuple | range):
            return self.stack(list(value))
        if isinstance(value, OfRun):
            return value.as_tensor(self)
        raise Refusal(self.message(f"{told(value)} is no array"))

    def _constant(self, value: object) -> Tensor:
        """A number that is known, of Python or NumPy."""
        if isinstance(value, np.generic):
            if not_plain(value):
                self.refuse(f"a number of the type {value.dtype}")
            typed = number(value, value.dtype)
            return Tensor((), value.dtype, lambda _: typed)
        kind = type(value)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.refuse(f"the number {value} has more than 64 bits")
        constant = number(value, PYTHON_TYPES[kind])
        return Tensor((), PYTHON_TYPES[kind], lambda _: constant, weak=kind)

    def whole(self, value: Whole) -> Tensor:
        """A whole number of Python."""
        if isinstance(value, sympy.Basic) and (value.is_Boolean or value.is_Relational):
            return self.truth(value)
        return Tensor((), INT64, lambda _: whole_expression(value), weak=int)

    def truth(self, value: sympy.Basic) -> Tensor:
        """A truth value of symbols."""
        return Tensor((), np.dtype(bool), lambda _: truth_expression(value), weak=bool)

    def table(self, values: np.ndarray[Any, Any]) -> Tensor:
        """An array of numbers that are known."""
        if reason := not_plain(values):
            self.refuse(reason)
        if values.ndim == 0:
            return self.tensor(values[()])
        container = self.container(self.target or "table", values.shape, values.dtype)
        self.add(Table(container, values.copy()))
        self._know(container, values)
        return view_of(container)

    def _know(self, container: Container, values: np.ndarray[Any, Any]) -> None:
        """Take numbers that a container gets as known, until something changes it."""
        if len(self.known.counted) not in self.known.changing:
            self.known.tables[container] = values.copy()
        self.known.counted.append(container)

    def _follows(self, container: Container, formula: tuple[tuple[Any, ...], Whole]) -> None:
        """Take numbers that a container gets as what follows from their places; as tables are."""
        if len(self.known.counted) not in self.known.changing:
            self.known.formulas[container] = formula
        self.known.counted.append(container)

    def stack(self, values: Sequence[Any]) -> Tensor:
        """A list as an array, as ``np.array`` makes it."""
        if not any(has_data(v) for v in values):
            try:
                found = np.array(values)
            except (ValueError, TypeError) as problem:
                self.refuse(str(problem))
            if found.dtype == object:
                self.refuse(f"a list of {told(values[0])} is no array")
            return self.table(found)
        rows = [self.tensor(v) for v in values]
        kind = np.result_type(*(r.weak(0) if r.weak else r.dtype for r in rows))
        shape = rows[0].shape
        if any(len(r.shape) != len(shape) for r in rows):
            self.refuse("a list of arrays of different shapes is no array")
        whole = self.empty(self.target or "stacked", (len(rows), *shape), kind)
        for place, row in enumerate(rows):
            inside = (place, *(axis(d) for d in range(len(shape))))
            self.assign(make_view(whole.container, shape, inside), row)
        return whole

    def chosen(self, tensor: Tensor) -> Tensor:
        """A tensor, or the elements that its mask chooses as an array."""
        if tensor.mask is None:
            return tensor
        assert self.hooks.chooses is not None
        return self.hooks.chooses(self, tensor)

    def stored_anew(self, tensor: Tensor, name: str | None = None) -> View:
        """A tensor in a container of its own."""
        if tensor.mask is not None:
            with self.named(name or self.target):
                return self.stored(self.chosen(tensor))
        view = self.fresh(name or self.target or "t", tensor.shape, tensor.dtype)
        most = self._most_of(tensor)
        self.write(view, tensor, is_new=True)
        if (known := known_elements(self, tensor)) is not None:
            self._know(view.container, known)
        elif (formula := known_formula(self, tensor)) is not None:
            self._follows(view.container, formula)
        view.weak, view.is_array, view.is_mixed = tensor.weak, tensor.is_array, tensor.is_mixed
        view.run_type = tensor.run_type and self.stored(tensor.run_type, "type")
        if most is not None:
            self.known.most[view.container] = most
        if not tensor.ndim and self.loops and self._is_of_row(tensor.element(())):
            self.known.rows.add(view.container)
        return view

    def _is_of_row(self, expression: Expression) -> bool:
        """Whether an element of a loop's row, which its variable chooses, is in an expression."""
        rows = self.known.rows
        return any(
            load.array in rows
            or any(
                rows & {s.name for s in i.free_symbols}
                for i in load.index
                if isinstance(i, sympy.Basic)
            )
            for load in loads_of(expression)
        )

    def _most_of(self, tensor: Tensor) -> Length | None:
        """The most that a number can be which is that of a container; None where unknown."""
        if tensor.ndim or tensor.dtype.kind not in "iu" or not self.known.most or self.inner:
            return None
        expression = tensor.element(())
        while isinstance(expression, Operation) and expression.name == "cast":
            (expression,) = expression.arguments
        return self.known.most.get(expression.array) if isinstance(expression, Load) else None

    def add(self, statement: Statement) -> None:
        """Add a statement."""
        super().add(statement)
        for container in statement.writes() if self.known.most else ():
            self.known.most.pop(container, None)

    def fresh(self, name: str, shape: Sequence[Length], dtype: DType) -> View:
        """A view of a shape in a new container, which has room for the most that it can be."""
        self.leave_rows(*shape)
        container = self.container(name, rooms(self, shape), dtype)
        return make_view(container, shape, [axis(d) for d in range(len(shape))])

    def empty(self, name: str, shape: Sequence[Length], dtype: DType) -> View:
        """A new array that gets its parts; where data decide the shape it begins with zeros."""
        if self.is_decided_by_data(*shape):  # the parts do not write all of its room
            return self.stored_anew(Tensor(tuple(shape), dtype, lambda _: number(0, dtype)), name)
        self.program.blank[made := self.container(name, shape, dtype)] = self.program.block
        return view_of(made)

    def capacity(self, length: Length) -> Length:
        """The most that a length can be; inside of maps the length itself."""
        return (
            length if self.map.own else capacity(length, self.known.bounds, self.known.capacities)
        )

    def is_decided_by_data(self, *values: Whole) -> bool:
        """Whether data decide any of some numbers; inside of maps this does not matter."""
        return not self.map.own and any(is_decided_by_data(v, self.known.bounds) for v in values)

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
            from distspmd.frontend.from_numpy.arrays.shapes import copy_merged

            return copy_merged(self, tensor)
        return tensor

    # -- writing --------------------------------------------------------------------------------

    def assign(self, target: View, value: Tensor) -> None:
        """Write a value, broadcast, to a view; what it reads is as it was before."""
        value = self.broadcast(value, target.shape)
        parameters, index = self.parameters(target.shape)
        place = target.at(index)
        expression = value.element(index)
        if expression == Load(target.container, place, target.dtype) and value.mask is None:
            return  # each element is what it is
        if any(
            load.array is target.container
            and may_meet(load.index, place, parameters, self.known.bounds)
            for load in loads_of(expression)
        ):
            value = self.stored_anew(
                Tensor(value.shape, value.dtype, value.element, value.weak), "before"
            )
        self.write(target, value)

    def write(
        self, target: View, value: Tensor, conflict: str | None = None, *, is_new: bool = False
    ) -> None:
        """Write a value of a view's shape to it.

        Args:
            target: what is written.
            value: of its shape.
            conflict: what combines the value with what is there.
            is_new: whether nothing is in the container yet, so that all of it may be written.
        """
        if value.mask is not None:
            self.refuse("elements that a mask chooses have no known shape; use np.where(mask, ...)")
        if target.is_repeated:
            self.refuse("assignment destination is read-only: its elements are repeated")
        if self.is_decided_by_data(*target.shape, *target.place):
            self.leave_rows(*target.shape)
            if is_new:
                room = target.container.shape
                value = with_capacity(value, room, self.known.bounds)
                target = view_of(target.container)
            elif conflict is None:
                target, value = over_container(target, value, self.known.bounds)
        parameters, index = self.parameters(target.shape)
        element = value.element(index)
        if problem := does_not_fit(value, element, target.dtype):
            self.refuse(problem)
        stored = cast(element, target.dtype)
        store = Store(target.container, target.at(index), stored, conflict)
        self.kernel([store], parameters, target.container.name)

    def kernel(self, stores: list[Store], parameters: Sequence[Parameter], label: str) -> None:
        """Add a kernel; one of no iterations computes nothing, so that nothing has to be read."""
        if is_empty(parameters):
            stores = without_reads(stores)
        if stores:
            self.add(Kernel(label, tuple(parameters), stores))

    def parameters(self, shape: Sequence[Length]) -> tuple[list[Parameter], tuple[Index, ...]]:
        """Parameters of a kernel over a shape, and the index that they are."""
        parameters = [Parameter(f"__i{d}", 0, n) for d, n in enumerate(shape)]
        return parameters, tuple(symbol(p.name) for p in parameters)

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
                if is_one(old):
                    result[d] = n
                elif not is_one(n):
                    result[d] = common_length(self, old, n, shapes)
        return tuple(result)

    def broadcast(self, value: Tensor, shape: Sequence[Length]) -> Tensor:
        """A tensor in a larger shape."""
        if value.mask is not None:
            self.refuse("elements that a mask chooses are assigned to another choice of elements")
        extra = value.ndim - len(shape)
        lead = max(extra, 0)
        if not all(is_one(n) for n in value.shape[:lead]):
            self.refuse(
                f"could not broadcast the shape {shape_text(value.shape)} into {shape_text(shape)}"
            )
        own = value.shape[lead:]
        for n, wanted in zip(reversed(own), reversed(shape), strict=False):
            if not is_one(n) and isinstance(n, int) and isinstance(wanted, int) and n != wanted:
                self.refuse(
                    f"could not broadcast the shape {shape_text(value.shape)} into "
                    f"{shape_text(shape)}"
                )
            if not is_one(n):
                check_lengths(self, n, wanted)
        if (
            not lead
            and len(own) == len(shape)
            and all(same(a, b) for a, b in zip(own, shape, strict=True))
        ):
            return value
        small, offset = before_spreading(self, value, shape), len(shape) - len(own)
        at = [None if is_one(n) else offset + d for d, n in enumerate(own)]

        def element(index: tuple[Index, ...]) -> Expression:
            return small.element((0,) * lead + tuple(0 if d is None else index[d] for d in at))

        return Tensor(tuple(shape), value.dtype, element, value.weak)

    # -- whole numbers --------------------------------------------------------------------------

    def as_whole(self, value: object, what: str = "an index") -> Whole:
        """A whole number that indices and lengths can be made of.

        Raises:
            Refusal: it is none.
        """
        if isinstance(value, bool | np.bool_ | int | np.integer):
            return int(value)
        if isinstance(value, sympy.Basic):
            return value
        if isinstance(value, np.ndarray) and value.shape == () and value.dtype.kind in "iu":
            return int(value)
        if (
            isinstance(value, Tensor)
            and value.dtype.kind in "iub"
            and all(is_one(n) for n in value.shape)
        ):
            expression = value.element((0,) * value.ndim)
            found = known_whole(expression)
            if found is None:
                found = in_table(self, expression)
            return self.read_whole(value) if found is None else found
        if isinstance(value, Tensor) and value.shape == ():
            self.refuse(f"{what} has to be a whole number, but has the type {value.dtype}")
        raise Refusal(self.message(f"{what} has to be a whole number, but {told(value)} is given"))

    def read_whole(self, value: Tensor) -> Whole:
        """A symbol for a number that the program computes."""
        expression = value.element((0,) * value.ndim)
        if (
            not isinstance(expression, Load)
            or any(not isinstance(i, int | sympy.Basic) for i in expression.index)
            or hasattr(sympy, expression.array.name)  # which texts of symbols would be taken for
        ):
            own = cast(expression, INT64)
            found = stored_before(own, self._statements_before()) if self.inner else None
            anew = Tensor((), INT64, lambda _: own)
            expression = found or self.stored_anew(anew, "number").element(())
        assert isinstance(expression, Load)
        expression = copied_from(expression, self.program.block) if self.map.own else expression
        if self.inner and (name := read_before(expression, self._statements_before())):
            return symbol(name)
        name = self.unique(f"{expression.array.name}_value")
        self.known.bounds[name] = (None, None)
        if self._is_of_row(expression):
            self.known.rows.add(name)
        if expression.array in self.known.most and not self.inner:
            self.known.capacities[symbol(name)] = self.known.most[expression.array]
        self.add(SetSymbol(name, expression, INT64))
        return symbol(name)

    def _statements_before(self) -> list[Statement]:
        """The statements that have run before what is read, those before a row's scope included."""
        own = self.program.block.statements
        if self.in_row is None or self.inner != self.in_row[1] + 1:
            return own
        return [*self.in_row[0].statements, *own]

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
        extents = [n for _, n in (*kept, *gone)]
        self.leave_rows(*extents)
        if self.is_decided_by_data(*extents) or any(n == 0 for _, n in gone):
            return contract_known(self, kept, gone, expression, operation, name)
        lengths = {s.name: n for s, n in (*kept, *gone)}
        letters, counted = letters_of(list(lengths)), counted_in(expression)
        found: dict[Any, tuple[str, str, Window]] = {}

        def windows(leaf: Expression) -> Expression:
            if isinstance(leaf, IndexValue):
                if all(v in letters for v, _ in leaf.terms):
                    return IndexValue(
                        tuple((letters[v], f) for v, f in leaf.terms), leaf.constant, leaf.dtype
                    )
                raise NoWindow
            if not isinstance(leaf, Load):
                return leaf
            key = leaf.array.name, tuple(map(str, leaf.index))
            if key not in found:
                term, window = window_of(leaf, lengths, letters, counted)
                found[key] = f"_v{len(found)}", term, window
            return Argument(found[key][0], leaf.dtype)

        result = self.container(
            name or self.target or "reduced", [n for _, n in kept], expression.dtype
        )
        try:
            closed = replace_leaves(expression, windows)
            used = "".join(term for _, term, _ in found.values())
            if not found or any(letters[s.name] not in used for s, _ in (*kept, *gone)):
                raise NoWindow  # an index that nothing is loaded by
        except NoWindow:
            by, shape = zip(*kept, *gone, strict=True)
            whole = Tensor(
                shape,
                expression.dtype,
                lambda index: substitute(expression, dict(zip(by, index, strict=True))),
            )
            stored = self.stored_anew(whole, f"{result.name}_operand")
            self.release(result.name)
            return self.contract(kept, gone, stored.element(by), operation, result.name)
        out = "".join(letters[s.name] for s, _ in kept)
        subscripts = f"{','.join(term for _, term, _ in found.values())}->{out}"
        operands = tuple(window for *_, window in found.values())
        whole_result = Window(result, (0,) * len(kept), result.shape)
        is_one = len(found) == 1 and isinstance(closed, Argument)
        is_plain = operation == "sum" and (is_one or is_product(closed, len(found)))
        text = "" if is_plain else str(closed)
        self.add(Contract(subscripts, operands, whole_result, operation, text))
        return view_of(result)


def before_spreading(tracer: Tracer, value: Tensor, shape: Sequence[Length]) -> Tensor:
    """A tensor before it is broadcast to a shape: stored if its elements are work, surely read."""
    if type(value) is not Tensor or value.is_on_demand or tracer.guarded:
        return value
    if sum(not is_one(n) for n in shape) == sum(not is_one(n) for n in value.shape):
        return value
    expression = value.element(tuple(symbol(f"__probe{d}") for d in range(value.ndim)))
    if count_additions(expression) < HEURISTICS.spread_work:
        return value
    if not any(isinstance(part, Load | IndexValue) for part in parts(expression)):
        return value
    return tracer.stored_anew(value, _named(expression))


def _named(expression: Expression) -> str | None:
    """The name of a space of what is computed last."""
    while isinstance(expression, Operation) and expression.name == "cast":
        (expression,) = expression.arguments
    return f"{expression.name}_expr" if isinstance(expression, Operation) else None
