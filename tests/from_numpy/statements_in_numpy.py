"""Programs of statements evaluated by NumPy, without a compiler: what a sweep on paper compares.

Statements have the meaning of what they are emitted as: indices and conditions are evaluated from
the texts that DaCe gets, and letters of contractions count from where the node lets them begin.
Reads and writes outside of a container are errors, and a container begins with a content that no
program computes. Nodes of libraries, random numbers and code of C++ are not evaluated.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from types import CodeType
from typing import Any

import numpy as np
import pytest
import sympy
from dace import SDFG, dtypes

from distspmd.execution.messages import formatted
from distspmd.expressions.evaluation import evaluate
from distspmd.expressions.ir import Argument, Expression, Load, replace_leaves
from distspmd.expressions.text import parse_expression
from distspmd.frontend.from_numpy import api
from distspmd.frontend.tensor_ir.statements import (
    Block,
    Branch,
    Container,
    Contract,
    Kernel,
    Library,
    Loop,
    Parameter,
    Routine,
    Scope,
    SetSymbol,
    Statement,
    Store,
    Table,
    Tell,
    Window,
)
from distspmd.frontend.tensor_ir.variables import find_variables
from distspmd.frontend.tensor_ir.whole_numbers import among, text
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.host_call import HostCall
from distspmd.nodes.line_in_parts import TRANSFORM, LineInParts
from distspmd.nodes.subscripts import Subscripts
from distspmd.runtime.calls.form import CallForm, call_form_of
from distspmd.runtime.host.host_functions import host_call
from distspmd.runtime.host.host_regions import kept_object
from distspmd.runtime.host.library_calls import answer

MOST = 20_000_000
"""Elements that a program computes, at most, where it is evaluated."""
_REDUCTIONS: dict[str, Any] = {"sum": np.add, "max": np.maximum, "min": np.minimum}


class NotOnPaper(Exception):
    """A program has a statement that is not evaluated, or too many iterations."""


class WrongOnPaper(Exception):
    """A program reads or writes what it has not, or ends with an error."""


_PARTS = 3
"""Of each dimension of blocks, as of so many ranks."""


def _blocks(
    terms: Sequence[Sequence[str]], arrays: Sequence[Sequence[Any]]
) -> Iterator[dict[str, slice]]:
    """Parts of the dimensions over which a call is split: uneven ones, and none that are empty."""
    extents: dict[str, int] = {}
    for side, own in zip(terms, arrays, strict=True):
        for term, array in zip(side, own, strict=False):
            extents |= {c: n for c, n in zip(term, array.shape, strict=False) if c.isupper()}
    ends = {c: np.linspace(0, n, _PARTS + 1).round().astype(int) for c, n in extents.items()}
    parts = [
        [(c, slice(a, b)) for a, b in zip(ends[c][:-1], ends[c][1:], strict=True) if a < b]
        for c in extents
    ]
    return map(dict, itertools.product(*parts))


def _window(term: str, block: Mapping[str, slice]) -> tuple[slice, ...]:
    return tuple(block.get(letter, slice(None)) for letter in term)


class Programs:
    """The programs that the front end makes, as long as it is patched.

    Attributes:
        last: statements and arguments of the last one.
        printed: what it prints.
    """

    def __init__(self) -> None:
        self.last: tuple[Block, Sequence[Container]] | None = None
        self.printed: list[str] = []

    @contextmanager
    def kept(self) -> Iterator[Programs]:
        """Keep the statements of the program that is emitted last."""
        made = api.emit_program

        def emit(
            name: str, program: Block, arguments: Sequence[Container], form: CallForm | None = None
        ) -> SDFG:
            self.last = program, arguments
            return made(name, program, arguments, form)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api, "emit_program", emit)
            yield self

    def statements(self) -> Iterator[Statement]:
        """Those of the last program, inside of others too."""
        assert self.last is not None
        left = [self.last[0]]
        while left:
            for statement in left.pop().statements:
                yield statement
                left += statement.blocks()

    def run(self, sdfg: SDFG, given: Mapping[str, Any]) -> Any:
        """What the program returns; it changes arrays that are given in place.

        Args:
            sdfg: of the program that is kept.
            given: arguments by the names of the function's parameters.

        Raises:
            NotOnPaper: it is not evaluated.
            WrongOnPaper: it does what no program may do.
        """
        assert self.last is not None
        program, arguments = self.last
        form = call_form_of(sdfg)
        passed = form.as_inside(given)
        run = _Run({a.name: _as_stored(a, passed[a.name]) for a in arguments}, self.printed)
        for each in arguments:
            run.find_sizes(each)
        with among(find_variables(program)):
            run.block(program)
            for each in program.containers():  # results that nothing was written to
                if each.name.startswith("__return"):
                    run.memory_of(each)
        names = [n for n in sdfg.arrays if n.startswith("__return")]
        names.sort(key=lambda n: (len(n), n))
        results = [run.memory[n][()] for n in names]
        if form.returned is not None:
            return form.arrange(results, objects=kept_object)
        return results[0] if names == ["__return"] else tuple(results) or None


def _as_stored(container: Container, value: Any) -> Any:
    if container.is_scalar or not isinstance(value, np.ndarray):
        return np.array(value, container.dtype)
    return value


class _Run:
    def __init__(self, memory: dict[str, Any], printed: list[str]) -> None:
        self.memory, self.printed = memory, printed
        self.symbols: dict[str, Any] = {}
        self.left = MOST
        self.reason = ""

    # -- whole numbers --------------------------------------------------------------------------

    def find_sizes(self, container: Container) -> None:
        for extent, found in zip(container.shape, self.memory[container.name].shape, strict=True):
            if isinstance(extent, sympy.Symbol):
                self.symbols[extent.name] = found

    def whole(self, value: Any, grid: Mapping[str, Any] | None = None) -> Any:
        """A whole number, as the text that DaCe gets says it."""
        return value if isinstance(value, int) else self.said(text(value), grid)

    def said(self, condition: str, grid: Mapping[str, Any] | None = None) -> Any:
        scalars = {n: v[()] for n, v in self.memory.items() if v.ndim == 0}
        names = {**scalars, **self.symbols, **(grid or {})}
        try:
            return eval(_compiled(condition), _FUNCTIONS, names)
        except NameError as missing:
            raise NotOnPaper(f"{condition}: {missing}") from None

    def memory_of(self, container: Container) -> Any:
        shape = tuple(int(self.whole(n)) for n in container.shape)
        found = self.memory.get(container.name)
        if found is None or found.shape != shape:
            unknown = -77 if container.dtype.kind in "ifc" else 77
            found = np.full(shape, unknown, container.dtype)
            self.memory[container.name] = found
        return found

    # -- statements -----------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for statement in block.statements:
            if type(statement) not in _RUN:
                raise NotOnPaper(type(statement).__name__)
            try:
                _RUN[type(statement)](self, statement)
            except WrongOnPaper as wrong:
                if statement.line and "line " not in str(wrong):
                    raise WrongOnPaper(f"line {statement.line[1]}: {wrong}") from None
                raise

    def loop(self, loop: Loop) -> None:
        if loop.symbol is None:
            while self.said(str(loop.condition)):
                self._take(1)
                self.block(loop.body)
            return
        self.symbols[loop.symbol] = int(self.whole(loop.first))
        while True:
            step, at = int(self.whole(loop.step)), self.symbols[loop.symbol]
            if (at - int(self.whole(loop.end))) * (1 if step > 0 else -1) >= 0:
                return
            self._take(1)
            self.block(loop.body)
            if loop.condition and not self.said(loop.condition):
                return
            self.symbols[loop.symbol] += step

    def branch(self, branch: Branch) -> None:
        self.block(branch.then if self.said(branch.condition) else branch.otherwise)

    def set_symbol(self, statement: SetSymbol) -> None:
        value = statement.value
        if isinstance(value, Load):
            found = self._loaded(value, {})
        else:
            found = self.said(value if isinstance(value, str) else text(value))
        self.symbols[statement.name] = np.asarray(found).astype(statement.dtype).item()

    def scope(self, scope: Scope) -> None:
        for place in reversed(list(self._iterations(scope.parameters))):
            self.symbols |= place
            for name in scope.own:
                self.memory.pop(name, None)
            self.block(scope.body)

    def _iterations(self, parameters: Sequence[Parameter]) -> Iterator[dict[str, int]]:
        if not parameters:
            yield {}
            return
        first, *rest = parameters
        for at in range(*(int(self.whole(v)) for v in (first.first, first.end, first.step))):
            self._take(1)
            self.symbols[first.name] = at
            for inner in self._iterations(rest):
                yield {first.name: at, **inner}

    def table(self, table: Table) -> None:
        self.memory_of(table.container)[...] = np.asarray(table.values, table.container.dtype)

    def tell(self, tell: Tell) -> None:
        message = json.loads(tell.message)
        arrays = [np.ascontiguousarray(self.memory_of(each)) for each in tell.values]
        extents = [n for array in arrays for n in (array.shape or (1,))]
        said = formatted(message["parts"], [a.ctypes.data for a in arrays], extents)
        if message["kind"] != "print":
            raise WrongOnPaper(f"the program ends with {message['type']} {self.reason}".rstrip())
        if message.get("file") != "stderr":
            self.printed.append(said)

    def routine(self, routine: Routine) -> None:
        if not routine.question:
            raise NotOnPaper("Routine")
        question = json.loads(routine.question)
        extents = iter(routine.extents)
        arrays: list[list[Any]] = [[], []]
        for which, windows in enumerate((routine.inputs, routine.outputs)):
            named = [w for n, w in windows.items() if not n.startswith("_length")]
            for window, (_, ndim, *_) in zip(
                named, question[("inputs", "outputs")[which]], strict=True
            ):
                shape = tuple(int(self.whole(next(extents))) for _ in range(ndim))
                first = [int(self.whole(n)) for n in window.first]
                array = self.memory_of(window.container)
                *outer, last = first or [0]
                line = array[(*outer, slice(last, None))] if array.ndim else array.reshape(1)
                arrays[which].append(line[: math.prod(shape)].reshape(shape))
        self.reason = answer(question, *arrays)

    def library(self, library: Library) -> None:
        node = library.make()
        if isinstance(node, LineInParts):
            found = self.memory_of(library.outputs["_out"])
            given = {name: self.memory_of(c) for name, c in library.inputs.items()}
            if node.function == TRANSFORM:
                is_inverse, halves = node.options
                (line,) = given.values()
                transformed = np.fft.ifft if is_inverse == "true" else np.fft.fft
                plain = "forward" if is_inverse == "true" else "backward"
                found[:] = transformed(line, norm=plain) / len(line) ** (int(halves) / 2)
                return
            if node.chooses:
                mask = given["_mask"]
                chosen = given["_in"][mask] if "_in" in given else np.flatnonzero(mask)
                found[:] = 0
                found[: len(chosen)] = chosen
                return
            line = given["_in"]
            found[:] = (np.argsort if node.with_places else np.sort)(line, kind="stable")
            return
        if not isinstance(node, HostCall):
            raise NotOnPaper("Library")
        call = host_call(node.question.encode())
        arrays = [
            [
                np.atleast_1d(self.memory_of(containers[f"{kind}{n}"]))
                for n, _ in enumerate(operands)
            ]
            for kind, containers, operands in (
                ("_in", library.inputs, call.inputs),
                ("_out", library.outputs, call.outputs),
            )
        ]
        terms = [side.split(",") for side in node.terms.split("->")]
        for block in _blocks(terms, arrays):
            given, made = (
                [a[_window(t, block)] for t, a in zip(side, own, strict=False)]
                for side, own in zip(terms, arrays, strict=True)
            )
            call.run([array.copy() for array in given], made)

    def _take(self, elements: int) -> None:
        self.left -= max(elements, 1)
        if self.left < 0:
            raise NotOnPaper(f"more than {MOST} elements")

    # -- kernels --------------------------------------------------------------------------------

    def kernel(self, kernel: Kernel) -> None:
        count, grid = len(kernel.parameters), {}
        shape = []
        for n, p in enumerate(kernel.parameters):
            every = np.arange(*(int(self.whole(v)) for v in (p.first, p.end, p.step)))
            grid[p.name] = every.reshape([-1 if m == n else 1 for m in range(count)])
            shape.append(len(every))
        self._take(math.prod(shape))
        if math.prod(shape) == 0:
            return
        values = [self._value(store.value, grid) for store in kernel.stores]
        places = [
            self._places(s.container, self.memory_of(s.container), s.index, grid)
            for s in kernel.stores
        ]
        for store, place, value in zip(kernel.stores, places, values, strict=True):
            self._store(store, place, value, tuple(shape))

    def _store(self, store: Store, places: Any, value: Any, shape: tuple[int, ...]) -> None:
        *where, value = np.broadcast_arrays(*places, value, np.empty(shape))[:-1]
        target = self.memory_of(store.container)
        with np.errstate(all="ignore"):
            value = value.astype(target.dtype)
            if store.conflict:
                getattr(np, store.conflict).at(target, tuple(where), value)
            else:
                target[tuple(where)] = value if where else value.reshape(())

    def _value(self, expression: Expression, grid: Mapping[str, Any]) -> Any:
        values: dict[str, Any] = {}
        loaded: dict[Any, Argument] = {}

        def named(leaf: Expression) -> Expression:
            if isinstance(leaf, Argument):
                values[leaf.name] = self.said(leaf.name, grid)
                return leaf
            if not isinstance(leaf, Load):
                return leaf
            key = leaf.array.name, tuple(map(str, leaf.index))
            if key not in loaded:
                loaded[key] = Argument(f"__load{len(loaded)}", leaf.dtype)
                values[loaded[key].name] = self._loaded(leaf, grid)
            return loaded[key]

        indices = {**self.symbols, **grid}
        return _evaluated(replace_leaves(expression, named), values, indices)

    def _loaded(self, load: Load, grid: Mapping[str, Any]) -> Any:
        array = self.memory_of(load.array)
        return array[self._places(load.array, array, load.index, grid)]

    def _places(
        self, container: Any, array: Any, index: Sequence[Any], grid: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        found = []
        for at, extent in zip(index, array.shape, strict=True):
            is_whole = isinstance(at, int | sympy.Basic)
            place = np.asarray(self.whole(at, grid) if is_whole else self._value(at, grid))
            if np.any((place < 0) | (place >= extent)):
                raise WrongOnPaper(f"index {at} of {container}, which has {extent} elements")
            found.append(place)
        return tuple(found)

    # -- contractions ---------------------------------------------------------------------------

    def contract(self, statement: Contract) -> None:
        subscripts = Subscripts.parse(statement.subscripts)
        terms = (*subscripts.operands, subscripts.result)
        every = (*statement.operands, statement.result)
        windows = [self._operand(w, t) for w, t in zip(every, terms, strict=True)]
        einsum = Einsum(tuple(windows[:-1]), windows[-1], subscripts.letters, subscripts.reduced)
        letters = [x for x in einsum.letters if x not in einsum.reduced] + list(einsum.reduced)
        extents = {x: int(einsum.extents[x]) for x in letters}
        grid = {
            x: np.arange(extents[x]).reshape([-1 if y == x else 1 for y in letters])
            for x in letters
        }
        self._take(math.prod(extents.values()))
        loads = [
            self.memory_of(window.container)[self._in_window(window, operand, grid)]
            for window, operand in zip(statement.operands, einsum.operands, strict=True)
        ]
        dtype = statement.result.container.dtype
        if statement.expression:
            counted = {x: grid[x] + int(einsum.begins[x]) for x in letters}
            named = {f"_v{n}": value for n, value in enumerate(loads)}
            value = _evaluated(parse_expression(statement.expression), named, counted)
        else:
            value = math.prod((load.astype(dtype) for load in loads), start=dtype.type(1))
        whole = np.broadcast_to(value, tuple(extents.values()))
        gone = tuple(range(len(letters) - len(einsum.reduced), len(letters)))
        with np.errstate(all="ignore"):
            reduce = _REDUCTIONS[statement.operation].reduce
            found = reduce(whole.astype(dtype), axis=gone, dtype=dtype)
        kept = {
            x: grid[x].reshape(grid[x].shape[: gone[0]] if gone else grid[x].shape)
            for x in letters
            if x not in einsum.reduced
        }
        place = self._in_window(statement.result, einsum.result, kept)
        self.memory_of(statement.result.container)[place] = found

    def _operand(self, window: Window, dimensions: Any) -> Operand:
        array = self.memory_of(window.container)
        begins, extents = (
            tuple(sympy.Integer(int(self.whole(n))) for n in ends)
            for ends in (window.first, window.lengths)
        )
        for first, length, extent in zip(begins, extents, array.shape, strict=True):
            if first < 0 or first + length > extent:
                told = f"elements {first} to {first + length} of {window.container}"
                raise WrongOnPaper(f"{told}, which has {extent}")
        dtype = dtypes.dtype_to_typeclass(window.container.dtype.type)
        return Operand(window.container.name, dtype, dimensions, begins, extents, extents)

    def _in_window(self, window: Window, operand: Operand, grid: Mapping[str, Any]) -> Any:
        ends = zip(operand.dimensions, operand.begins, operand.extents, strict=False)
        return tuple(
            int(begin) + sum(grid[x] * factor * int(extent != 1) for x, factor in dimension)
            for dimension, begin, extent in ends
        )


def _evaluated(expression: Expression, values: Any, indices: Any) -> Any:
    try:
        return evaluate(expression, values, indices, {"checked_index": _checked_index})
    except KeyError as missing:
        raise NotOnPaper(f"an operation or a value {missing}") from None
    except ValueError as refused:  # powers of whole numbers with negative exponents
        raise NotOnPaper(str(refused)) from None


def _checked_index(index: Any, count: Any, line: Any) -> Any:
    if np.any((index < -count) | (index >= count)):
        raise WrongOnPaper(f"line {line}: an index {index} of {count} elements")
    return np.where(index < 0, index + count, index)


@cache
def _compiled(condition: str) -> CodeType:
    return compile(condition, "<condition>", "eval")


_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {},
    "int_floor": lambda a, b: a // b,
    "Min": np.minimum,
    "Max": np.maximum,
    "distspmd_checked_index": _checked_index,
    "True": True,
    "False": False,
}
_RUN: dict[type[Statement], Any] = {
    Kernel: _Run.kernel,
    Table: _Run.table,
    Contract: _Run.contract,
    Tell: _Run.tell,
    SetSymbol: _Run.set_symbol,
    Loop: _Run.loop,
    Branch: _Run.branch,
    Scope: _Run.scope,
    Library: _Run.library,
    Routine: _Run.routine,
}
