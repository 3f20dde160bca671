"""The statements and expressions of Python, read with tensors in the place of arrays."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import sympy

from distspmd.errors import DistSPMDError
from distspmd.frontend.from_numpy.arrays import array_protocol, checks, decided_types, indexing
from distspmd.frontend.from_numpy.arrays.choosing import as_arrays, chosen
from distspmd.frontend.from_numpy.arrays.elements import known_number
from distspmd.frontend.from_numpy.arrays.images import is_linked
from distspmd.frontend.from_numpy.arrays.kinds import dace_symbol
from distspmd.frontend.from_numpy.arrays.lengths import unpacked_count
from distspmd.frontend.from_numpy.arrays.real_or_complex import RealOrComplex
from distspmd.frontend.from_numpy.arrays.tracer import Tracer
from distspmd.frontend.from_numpy.arrays.transcript import Fails, PartOfRow, Refusal, told
from distspmd.frontend.from_numpy.arrays.values import Demanded, Tensor, View
from distspmd.frontend.from_numpy.host.places import hosted_source, places_of
from distspmd.frontend.from_numpy.kinds.absence import (
    end_failed,
    known_value,
    may_be_unbound,
    present,
    refuse_choice,
)
from distspmd.frontend.from_numpy.kinds.first_arrays import bind_in_place
from distspmd.frontend.from_numpy.kinds.joined_arrays import follow_writes
from distspmd.frontend.from_numpy.kinds.last_values import names_read
from distspmd.frontend.from_numpy.kinds.variables import (
    OfPython,
    OneOf,
    Undecided,
)
from distspmd.frontend.from_numpy.library import is_of_library
from distspmd.frontend.from_numpy.lists import lists
from distspmd.frontend.from_numpy.lists.lists import look_into
from distspmd.frontend.from_numpy.lists.run_lists import Known, RunList, UnknownElement
from distspmd.frontend.from_numpy.reader import (
    attributes,
    generators,
    kept_iterators,
    objects,
    python_errors,
    row_parts,
)
from distspmd.frontend.from_numpy.reader.bindings import (
    changed_in_place,
    name_in_source,
    without_locals,
    written_into,
    yields,
)
from distspmd.frontend.from_numpy.reader.calls import call
from distspmd.frontend.from_numpy.reader.cells import with_cells
from distspmd.frontend.from_numpy.reader.conditions import decided
from distspmd.frontend.from_numpy.reader.expressions import part_of
from distspmd.frontend.from_numpy.reader.frames import Frame
from distspmd.frontend.from_numpy.reader.jumps import RESULT
from distspmd.frontend.from_numpy.reader.operators import binary, operate
from distspmd.frontend.from_numpy.reader.parts import bind_part, writable, write_part
from distspmd.frontend.from_numpy.reader.passed_arrays import store_shared
from distspmd.frontend.from_numpy.reader.passed_errors import read_body
from distspmd.frontend.from_numpy.reader.ranges import Enumerated, Places, Zipped, static_values
from distspmd.frontend.from_numpy.reader.registry import EXPRESSIONS, STATEMENTS
from distspmd.frontend.from_numpy.reader.results import form_of
from distspmd.frontend.from_numpy.reader.sharing import (
    is_own,
    reads_in_place,
    references,
    stored_image,
)
from distspmd.frontend.from_numpy.reader.sources import count_inner_call, globals_of, source_of
from distspmd.frontend.tensor_ir.whole_numbers import Whole, same, simplified
from distspmd.runtime.calls.form import rebuilt

PLACE = "distspmd_place"
"""Attribute of an exception: a message with the line that was read, and what it lacks."""
HOLE = "\0"
"""What such a message lacks."""


class Interpreter:
    """Reads functions into a tracer.

    Attributes:
        tracer: where the program is written down.
        functions: what functions of NumPy and Python become, by the functions.
        methods: what methods of arrays become, by name.
        fixes_numbers: whether no other reading knows more numbers than this one.
        hosting: what of the program Python runs.
    """

    def __init__(
        self,
        tracer: Tracer,
        functions: Mapping[Any, Callable[..., Any]],
        methods: Mapping[str, Callable[..., Any]],
        fixes_numbers: bool = True,
    ) -> None:
        self.tracer, self.functions, self.methods = tracer, functions, methods
        tracer.hooks.ends_if = functools.partial(checks.end_if, self)
        tracer.hooks.chooses, tracer.hooks.form_of = chosen, form_of
        self.sizes: dict[str, Whole] = {}
        self.sizes_read: set[str] = set()
        self.depth, self.fixes_numbers = 0, fixes_numbers
        self.bodies: dict[tuple[ast.FunctionDef, tuple[str, ...]], list[ast.stmt]] = {}
        self.known_calls: dict[tuple[Any, ...], Any] = {}
        self.sources: dict[Any, tuple[Any, list[str], int, str]] = {}
        self.inlined: dict[ast.For, Any] = {}
        self.inner_calls = 0
        self.computed_with: ast.expr | None = None
        self.streams: dict[str, Any] = {}
        self.hosting: Any = None

    @property
    def variables(self) -> dict[str, Any]:
        """Those of the function that is being read."""
        return self.tracer.frames[-1].variables

    # -- functions ------------------------------------------------------------------------------

    def run_function(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        """What a function of Python returns."""
        code = getattr(function, "__code__", None)
        source = self.sources.get(code) or source_of(self.tracer, function)
        node, lines, first, file = self.sources[code] = source
        known = globals_of(function)
        if is_of_library(function):  # it stands for one of Python's
            frame = Frame({**without_locals(node, known), **arguments}, file, first, lines)
            frame.called_at = self.tracer.node
            return self.run_body(node, frame)
        count_inner_call(self, function, file, first)
        node = with_cells(hosted_source(self, function, node, file))
        frame = Frame({**without_locals(node, known), **arguments}, file, first, lines)
        frame.outside = known
        frame.receiver = next(iter(arguments.values()), None)
        return self.run_body(node, frame)

    def run_body(self, node: ast.FunctionDef | ast.Lambda, frame: Frame) -> Any:
        """What the statements of a function return, with the variables of a frame."""
        if frame.yielded is None and isinstance(node, ast.FunctionDef) and yields(node):
            return generators.Generator(node, frame, frame.around, self.tracer.inner)
        before, outer = self.tracer.node, self.depth
        self.depth += 1
        frame.target = self.tracer.target
        frame.reads = names_read(node)
        frame.body = node.body if isinstance(node, ast.FunctionDef) else ()
        frame.line = node.lineno
        frame.written_into = written_into(node)
        frame.changed_in_place = changed_in_place(node)
        if frame.called_at is None:
            store_shared(self, node, frame)
        caller = self.tracer.frames[-1] if self.tracer.frames else None
        self.tracer.frames.append(frame)
        try:
            if isinstance(node, ast.Lambda):
                return self.assigned(node.body)
            read_body(self, node, caller)
            result = frame.variables.get(RESULT)
            may_leave = isinstance(result, OneOf) and (not outer or not may_be_unbound(result))
            may_leave |= isinstance(result, OfPython)
            if isinstance(result, Undecided) and not may_leave:
                self.tracer.refuse(result.reason)
            return result
        finally:
            self.depth = outer
            self.tracer.frames.pop()
            if not outer and caller is not None:
                caller.take_place_of(frame)
            if before is not None:
                self.tracer.node = before

    def call(self, function: object, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """What a call gives.

        Raises:
            Refusal: a function that is not covered.
        """
        return call(self, function, arguments, keywords)

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
        frame = self.tracer.frames[-1]
        frame.statement, frame.block = node, self.tracer.program.block
        read = STATEMENTS.get(type(node))
        if read is None:
            self.tracer.refuse(f"the statement {type(node).__name__.lower()!r} is not covered")
        block, first = self.tracer.program.block, len(self.tracer.program.block.statements)
        try:
            row_parts.statement(self, node, read)
            follow_writes(self, node, block, first)
        except UnknownElement:
            self.tracer.lists.has_left_out = True
            look_into(self, node)
        except Fails as failed:
            end_failed(self, failed)
        except Refusal as refusal:
            refusal.places = refusal.places or places_of(self.tracer)
            if ":" not in str(refusal).split(" ")[0]:
                with_line = Refusal(self.tracer.message(str(refusal)))
                with_line.places, with_line.is_of_python = refusal.places, refusal.is_of_python
                raise with_line from refusal
            raise
        except (DistSPMDError, Known, PartOfRow):
            raise
        except Exception as problem:
            if not hasattr(problem, PLACE):
                setattr(problem, PLACE, self.tracer.message(HOLE))
                problem.__dict__["places"] = places_of(self.tracer)
            raise

    def bind(self, target: ast.expr, value: Any) -> None:
        """Assign to a target."""
        tracer, value = self.tracer, known_value(self, value)
        if isinstance(target, ast.Name):
            self.variables[target.id] = self.kept(target.id, value)
        elif isinstance(target, ast.Tuple | ast.List):
            values = self.unpacked(present(self, value), target)
            self._bind_all(target.elts, values)
        elif isinstance(target, ast.Subscript):
            with tracer.frames[-1].binding():
                bind_part(self, target, value)
        elif isinstance(target, ast.Starred):
            self.bind(target.value, list(value))
        elif isinstance(target, ast.Attribute):
            with tracer.frames[-1].binding():
                attributes.assign(self, target, value)
        else:
            tracer.refuse(f"an assignment to {ast.unparse(target)}")

    def write_part(self, base: object, items: object, value: object) -> None:
        """``base[items] = value`` of an array."""
        write_part(self, base, items, value)

    def writable(self, node: ast.expr) -> Any:
        """What is assigned into; what was known, or chosen by a mask, becomes an array."""
        return writable(self, node)

    def settled_parts(self, values: object) -> Any:
        """A list, tuple or dictionary whose tensors are stored, in place where that is possible."""
        if isinstance(values, tuple):
            if not any(isinstance(v, Tensor | list | dict | tuple) for v in values):
                return values
            return rebuilt(values, [self.settled_parts(v) for v in values])
        if isinstance(values, list):
            values[:] = [self.settled_parts(v) for v in values]
            return values
        if isinstance(values, dict):
            for key, value in values.items():
                values[key] = self.settled_parts(value)
            return values
        return self._settled(values)

    def _settled(self, value: object) -> Any:
        """One of several values as it is before any of them is assigned."""
        tracer = self.tracer
        if (
            not isinstance(value, Tensor)
            or isinstance(value, View)
            or tracer.map.straight is not None
        ):
            return value
        if isinstance(value, RealOrComplex):
            return decided_types.stored(self, value)
        if value.is_on_demand:
            return value
        if value.mask is None:
            return stored_image(tracer, value)
        whole = tracer.stored_anew(Tensor(value.shape, value.dtype, value.element))
        return Tensor(whole.shape, whole.dtype, whole.element, None, value.mask)

    def _bind_all(self, targets: Sequence[ast.expr], values: Sequence[Any]) -> None:
        starred = [n for n, t in enumerate(targets) if isinstance(t, ast.Starred)]
        python_errors.check_count(self, values, targets, len(targets) - len(starred))
        if starred:
            (place,) = starred
            after = len(targets) - place - 1
            values = [
                *values[:place],
                list(values[place : len(values) - after]),
                *values[len(values) - after :],
            ]
            targets = [t.value if isinstance(t, ast.Starred) else t for t in targets]
        pairs = zip(targets, map(self.settled_parts, values), strict=True)
        settled = [v if isinstance(t, ast.Name) else lists.settled(self, v) for t, v in pairs]
        for target, value in zip(targets, settled, strict=True):
            self.bind(target, value)

    def unpacked(self, value: Any, like: ast.expr | None) -> Sequence[Any]:
        """The values that are assigned to several targets."""
        if isinstance(value, generators.Generator):
            return generators.collect(self, value, at_once=True)
        if isinstance(value, Zipped | Enumerated | Places):
            return list(static_values(self, value))
        if isinstance(value, RunList) and isinstance(value.count, int):
            return [lists.read(self, value, n) for n in range(value.count)]
        if isinstance(value, Tensor):
            value = as_arrays(self.tracer, value)
            count = unpacked_count(self.tracer, value, like)
            if count is None:
                self.tracer.refuse(f"{told(value)} is not unpacked: its length is not known")
            return [indexing.part_at(self.tracer, value, n) for n in range(count)]
        if objects.is_own(value) and not isinstance(value, tuple | list | dict):
            return list(static_values(self, value))
        try:
            return list(value)
        except TypeError:
            python_errors.fail(self, python_errors.unpack, value)

    def kept(self, name: str, value: object) -> Any:
        """What a variable stands for: tensors are stored, for later writes not to reach them."""
        tracer = self.tracer
        if isinstance(value, list | dict | tuple):
            return self.settled_parts(value)
        if isinstance(value, kept_iterators.KEPT):
            return kept_iterators.kept(self, name, value)
        if not isinstance(value, Tensor) or isinstance(value, View):
            return value
        if isinstance(value, RealOrComplex):
            return decided_types.stored(self, value, _readable(name))
        if isinstance(value, Demanded):
            return value
        if value.ndim == 0 and (tracer.map.straight is not None or known_number(value) is not None):
            return value
        if value.mask is not None:
            if name in tracer.frames[-1].written_into:
                return tracer.stored(as_arrays(tracer, value), _readable(name))
            return self._kept_choice(name, value, value.mask)
        old = self.variables.get(name)
        if (
            isinstance(old, View)
            and old.is_whole
            and not old.container.is_argument
            and (old.dtype, old.run_type) == (value.dtype, value.run_type)
            and len(old.shape) == len(value.shape)
            and all(same(a, b) for a, b in zip(old.shape, value.shape, strict=True))
            and references(tracer, old.container) == 1
            and is_own(tracer, old.container)
            and not is_linked(tracer, old.container)
            and reads_in_place(tracer, old, value)
        ):
            bind_in_place(tracer, old, value)
            return old if old.weak is value.weak else replace(old, weak=value.weak)
        return stored_image(tracer, value, _readable(name))

    def _kept_choice(self, name: str, value: Tensor, mask: Tensor) -> Tensor:
        """The elements that a mask chooses now, whatever is written later."""
        tracer = self.tracer
        whole = Tensor(value.shape, value.dtype, value.element)
        stored = tracer.stored_anew(whole, _readable(name))
        chosen = tracer.stored_anew(Tensor(mask.shape, mask.dtype, mask.element), "mask")
        block = tracer.program.block
        tracer.links.copies[chosen.container] = mask, block, len(block.statements)
        return Tensor(stored.shape, stored.dtype, stored.element, None, chosen)

    # -- truth ----------------------------------------------------------------------------------

    def truth(self, value: object) -> bool | None:
        """Whether a value is true; None where that is known at run time only."""
        if isinstance(value, RunList):
            return value.count > 0 if isinstance(value.count, int) else None
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
        if value.is_Symbol or not isinstance(value, sympy.logic.boolalg.Boolean):
            if simplified(value) == 0:
                return False
            return decided(self.tracer, sympy.Ne(value, 0))
        return decided(self.tracer, value)

    # -- expressions ----------------------------------------------------------------------------

    def value(self, node: ast.expr) -> Any:
        """The value of an expression.

        Raises:
            Refusal: one that is not covered.
        """
        found = known_value(self, self.whatever(node))
        if isinstance(found, OneOf | OfPython):
            refuse_choice(self, found)
        return found

    def present(self, node: ast.expr) -> Any:
        """The value of an expression that is computed with: the program ends if it is None."""
        found = present(self, self.whatever(node))
        if isinstance(found, OneOf | OfPython):
            refuse_choice(self, found)
        return found

    def whatever(self, node: ast.expr) -> Any:
        """The value of an expression, which may be None."""
        with self.tracer.named(name_in_source(node)):
            return self.assigned(node)

    def assigned(self, node: ast.expr) -> Any:
        """The value of an expression that is assigned to what the tracer names."""
        before, self.tracer.node = self.tracer.node, node
        read = EXPRESSIONS.get(type(node))
        if read is None:
            self.tracer.refuse(f"{ast.unparse(node)} is not covered")
        found = read(self, node)
        if type(found) in lists.KINDS:
            found = lists.born(self, node, found)
        self.tracer.node = before
        return found

    def part_of(self, base: object, items: object) -> Any:
        """``base[items]``."""
        return part_of(self, base, items)

    def outside(self, name: str, value: object) -> Any:
        """A value from outside of the program as one of it."""
        whole = dace_symbol(value)
        if whole is not None:
            self.sizes_read.add(whole.name)
            return self.sizes.get(whole.name, whole)
        return value

    def binary(self, op: ast.operator, left: object, right: object) -> Any:
        """``left op right``."""
        is_text = isinstance(left, str) and isinstance(op, ast.Mod)
        array_protocol.check_operand(self, left, right)
        found = NotImplemented if is_text else operate(self, op, left, right)
        return found if found is not NotImplemented else binary(self, op, left, right)

    def attribute(self, base: object, name: str) -> Any:
        """``base.name``."""
        return attributes.attribute(self, base, name)

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
            return slice(*(None if e is None else self.present(e) for e in ends))
        return lists.as_array(self, self.present(node))

    @contextmanager
    def variables_of(self, known: dict[str, Any]) -> Iterator[None]:
        """Let the innermost function have other variables."""
        frame = self.tracer.frames[-1]
        before, frame.variables = frame.variables, known
        try:
            yield
        finally:
            frame.variables = before


def _readable(name: str) -> str:
    name = re.sub(r"^(__of\d+_)+", "", name)
    return "result" if name == RESULT else name.lstrip("_") if name.startswith("__") else name
