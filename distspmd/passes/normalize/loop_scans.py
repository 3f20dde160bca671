"""Recurrences of first order as scans: what an iteration hands on is ``a * before + b``.

So are the greatest value so far, and the least, ``m = max(m, b)``, which have no factor.

before -> after:  ``for i: y[i] = a[i] * y[i - 1] + b[i]``  ->  a map that computes all ``a`` and
``b``; blocks of iterations, each from zero on; the value at the end of each block, one block after
the other; and a map that adds to each element what its block began with. Blocks are the same on any
number of ranks, and so are the bits; what moves are the ends of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sympy
from dace import SDFG, Memlet, SDFGState, dtypes
from dace.sdfg import nodes
from dace.sdfg.state import LoopRegion
from dace.subsets import Range

from distspmd.analysis.accesses import Edge
from distspmd.analysis.dependences import LoopRange
from distspmd.analysis.loop_reductions import of_extreme
from distspmd.expressions.ir import (
    Argument,
    Constant,
    Expression,
    Operation,
    apply,
    names,
    substitute,
)
from distspmd.nodes.computation import Computation
from distspmd.nodes.map_scopes import enter_map, leave_map

_BLOCKS = 240
"""Blocks, a multiple of most numbers of ranks."""


@dataclass(frozen=True)
class Recurrence:
    """What an iteration hands on, of what it got.

    Attributes:
        writer: the tasklet that writes it.
        data: the container that holds it.
        index: of what is written, in terms of the loop's variable; nothing for a number.
        factor: of what was handed on; None where that is one.
        rest: what is added to that.
        reads: the edges of other operands, by their names in these.
        dtype: of the elements.
        kind: the operation that combines what was handed on and the rest.
    """

    writer: Computation
    data: str
    index: tuple[sympy.Expr, ...]
    factor: Expression | None
    rest: Expression
    reads: dict[str, Edge]
    dtype: np.dtype[Any]
    kind: str = "add"

    def combined(self, other: str) -> str:
        """What ``value`` and another one are together, in C++."""
        if self.kind == "add":
            return f"value + {other}"
        return f"({other} {'>' if self.kind == 'maximum' else '<'} value ? {other} : value)"

    @property
    def nothing(self) -> str:
        """What a block begins with, in C++."""
        return {"add": "0", "maximum": "-INFINITY", "minimum": "INFINITY"}[self.kind]


def recurrence_of(
    code: Sequence[tuple[SDFGState, Computation]],
    loop: LoopRegion,
    handed: str | None,
    own: Collection[str],
) -> Recurrence | None:
    """The recurrence that tasklets of an iteration are together; None where they are none.

    Args:
        code: tasklets in order, each with its state.
        loop: around them.
        handed: the number that they hand on; None where it is an element of an array.
        own: numbers that they have for themselves.
    """
    known: dict[str, Expression] = {}
    reads: dict[str, Edge] = {}
    old = Argument("handed on", np.dtype(np.float64))
    for state, tasklet in code:
        leaving = state.out_edges(tasklet)
        found = tasklet.assignments()
        if not found or len(found) != 1 or len(leaving) != 1:
            return None
        data = str(leaving[0].data.data)
        last = tasklet is code[-1][1]
        dtype = np.dtype(state.sdfg.arrays[data].dtype.type)
        old = Argument("handed on", dtype)
        by: dict[str, Expression] = {}
        for edge in state.in_edges(tasklet):
            name, source = str(edge.dst_conn), str(edge.data.data)
            if source in known:
                by[name] = known[source]
            elif source == handed or (handed is None and source == data and last):
                if handed is None and not _is_before(edge, leaving[0], loop):
                    return None
                by[name] = Argument("handed on", np.dtype(state.sdfg.arrays[source].dtype.type))
            else:
                new = f"_in{len(reads)}"
                by[name] = Argument(new, np.dtype(state.sdfg.arrays[source].dtype.type))
                reads[new] = edge
        known[data] = substitute(found[0][1], by)
        if not last and data not in own:
            return None
    index = () if handed is not None else tuple(b for b, _, _ in leaving[0].data.subset.ranges)
    last_one = (code[-1][1], data, index)
    return _recurrence(known[data], old, last_one, reads) if known[data].dtype == dtype else None


def _recurrence(
    value: Expression,
    old: Argument,
    written: tuple[Computation, str, tuple[sympy.Expr, ...]],
    reads: dict[str, Edge],
) -> Recurrence | None:
    """The recurrence that a value is of what was handed on, and of other operands."""
    dtype = value.dtype
    if dtype.kind != "f":
        return None
    extreme = of_extreme(value, old.name) if isinstance(value, Operation) else None
    if extreme is not None:
        return Recurrence(*written, None, extreme[1], reads, dtype, extreme[0])
    parted = _linear(value, old)
    if parted is None or parted[0] is None:
        return None
    factor, rest = parted
    is_one = isinstance(factor, Constant) and factor.value == 1
    zero: Expression = Constant(0.0, dtype)
    return Recurrence(*written, None if is_one else factor, rest or zero, reads, dtype)


def _is_before(read: Edge, write: Edge, loop: LoopRegion) -> bool:
    """Whether an edge reads the element of one dimension that the iteration before has written."""
    before, after = read.data.subset, write.data.subset
    if len(after.ranges) != 1 or before.num_elements() != 1 or after.num_elements() != 1:
        return False
    values, place = LoopRange.of(loop), sympy.sympify(after.ranges[0][0])
    symbol = next((s for s in place.free_symbols if s.name == loop.loop_variable), None)
    if values is None or symbol is None or symbol in sympy.expand(place - symbol).free_symbols:
        return False
    return bool(sympy.expand(place - before.ranges[0][0]) == values.step)


_Parts = tuple["Expression | None", "Expression | None"]


def _linear(value: Expression, old: Argument) -> _Parts | None:
    """Factor of a value and what is added, each None for zero; None where it is not linear."""
    if old.name not in names(value):
        return None, value
    if isinstance(value, Argument):
        return Constant(1.0, value.dtype), None
    if not isinstance(value, Operation):
        return None
    parts = [_linear(argument, old) for argument in value.arguments]
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or any(a.dtype != value.dtype for a in value.arguments):
        return None
    return _linear_operation(value, found)


def _linear_operation(value: Operation, found: Sequence[_Parts]) -> _Parts | None:
    """The same of an operation, whose arguments have these."""
    if value.name == "cast":
        return found[0]
    if value.name == "negative":
        return _each(found[0], lambda part: apply("negative", part))
    if value.name not in ("add", "subtract", "multiply", "divide", "true_divide"):
        return None
    (a, b), (c, d) = found
    if value.name in ("add", "subtract"):
        return _combined(value.name, a, c), _combined(value.name, b, d)
    if c is None and d is not None:
        return _each((a, b), lambda part: apply(value.name, part, d))
    if value.name == "multiply" and a is None and b is not None:
        return _each((c, d), lambda part: apply("multiply", b, part))
    return None


def _each(parts: _Parts, made: Callable[[Expression], Expression]) -> _Parts:
    return tuple(part and made(part) for part in parts)  # type: ignore[return-value]


def _combined(name: str, one: Expression | None, other: Expression | None) -> Expression | None:
    if other is None:
        return one
    if one is None:
        return other if name == "add" else apply("negative", other)
    return apply(name, one, other)


@dataclass(frozen=True)
class Scan:
    """A recurrence over all iterations of a loop.

    Attributes:
        recurrence: of an iteration.
        first, step, count: of the loop's variable.
    """

    recurrence: Recurrence
    first: sympy.Expr
    step: int
    count: int

    def states(self, sdfg: SDFG, variable: str, target: str | None) -> list[SDFGState]:
        """What computes all that is handed on.

        Args:
            sdfg: the program.
            variable: of the loop.
            target: of a number, the array that gets it: what is there first, and after each
                iteration.
        """
        of = self.recurrence
        dtype = dtypes.dtype_to_typeclass(of.dtype.type)
        size = -(-self.count // _BLOCKS)
        padded = -(-self.count // size) * size
        made = {}
        for name, extent in {
            "rest": padded,
            "factor": padded,
            "within": padded,
            "product": padded,
            "end": padded // size,
            "end_product": padded // size,
            "begin": padded // size,
        }.items():
            if of.factor is not None or name not in ("factor", "product", "end_product"):
                label = f"{of.data.lstrip('_')}_{name}"
                made[name], _ = sdfg.add_transient(label, [extent], dtype, find_new_name=True)
        place = sympy.expand((sympy.Symbol(variable) - self.first) * self.step)
        index = sympy.sympify(of.index[0]) if of.index else place + 1
        data = target or of.data
        symbol = next((s for s in index.free_symbols if s.name == variable), sympy.Symbol(variable))
        before = sympy.expand(index.subs(symbol, self.first) - (self.step if of.index else 1))
        found = [self._padding(sdfg, made, padded)] if padded > self.count else []
        found.append(self._coefficients(sdfg, variable, place, made))
        found.append(self._within(sdfg, made, size, padded))
        found.append(self._begins(sdfg, made, padded // size, (data, before)))
        found.append(self._all(sdfg, variable, place, made, size, (data, index)))
        return found

    def _range(self) -> Range:
        last = sympy.expand(self.first + (self.count - 1) * self.step)
        return Range([(self.first, last, 1) if self.step > 0 else (last, self.first, 1)])

    def _map(self, state: SDFGState, label: str, parameter: str, values: Range) -> Any:
        entry, leave = state.add_map(label, {parameter: "0:1"})
        entry.map.range = values
        entry.map.debuginfo = self.recurrence.writer.debuginfo
        return entry, leave

    def _coefficients(
        self, sdfg: SDFG, variable: str, place: sympy.Expr, made: dict[str, str]
    ) -> SDFGState:
        of = self.recurrence
        state = SDFGState("coefficients", sdfg)
        outputs = {"_out0": ("rest", of.rest)}
        if of.factor is not None:
            outputs["_out1"] = ("factor", of.factor)
        used = {n for _, value in outputs.values() for n in names(value)}
        reads = {name: edge for name, edge in of.reads.items() if name in used}
        tasklet = Computation(
            "coefficients",
            tuple((connector, value) for connector, (_, value) in outputs.items()),
            dict.fromkeys(reads),
            dict.fromkeys(outputs),
        )
        tasklet.debuginfo = of.writer.debuginfo
        state.add_node(tasklet)
        entry, leave = self._map(state, "coefficients", variable, self._range())
        sources: dict[str, nodes.AccessNode] = {}
        for name, edge in reads.items():
            data = str(edge.data.data)
            if data not in sources:
                sources[data] = state.add_read(data)
            node = sources[data]
            memlet = Memlet(data=data, subset=Range(edge.data.subset.ranges))
            enter_map(state, sdfg, entry, node, tasklet, name, memlet)
        if not reads:
            state.add_nedge(entry, tasklet, Memlet())
        for connector, (kind, _) in outputs.items():
            memlet = Memlet(data=made[kind], subset=Range([(place, place, 1)]))
            leave_map(state, sdfg, leave, tasklet, connector, memlet, state.add_write(made[kind]))
        return state

    def _padding(self, sdfg: SDFG, made: dict[str, str], padded: int) -> SDFGState:
        """What is behind the last iteration changes nothing."""
        state = SDFGState("padding", sdfg)
        for kind, value in (("rest", "0"), ("factor", "1")):
            if kind in made:
                state.add_mapped_tasklet(
                    "padding",
                    {"__i": f"{self.count}:{padded}"},
                    {},
                    f"__out = {value}",
                    {"__out": Memlet(data=made[kind], subset="__i")},
                    external_edges=True,
                )
        return state

    def _within(self, sdfg: SDFG, made: dict[str, str], size: int, padded: int) -> SDFGState:
        """Scan each block from zero on."""
        state = SDFGState("within_blocks", sdfg)
        ctype = dtypes.dtype_to_typeclass(self.recurrence.dtype.type).ctype
        both = "factor" in made
        code = [
            f"{ctype} value = {self.recurrence.nothing};",
            *([f"{ctype} product = 1;"] if both else []),
        ]
        code.append(f"for (int64_t k = 0; k < {size}; ++k) {{")
        combined = self.recurrence.combined("_rest[k]")
        code.append(f"value = {'_factor[k] * ' if both else ''}{combined}; _within[k] = value;")
        code += ["product *= _factor[k]; _product[k] = product;"] if both else []
        code += ["}", "_end[0] = value;", *(["_end_product[0] = product;"] if both else [])]
        block = sympy.Symbol("__b")
        lines = Range([(size * block, size * block + size - 1, 1)])
        ends = Range([(block, block, 1)])
        inputs = {"rest": lines, **({"factor": lines} if both else {})}
        outputs = {"within": lines, "end": ends}
        outputs |= {"product": lines, "end_product": ends} if both else {}
        values = Range([(0, padded // size - 1, 1)])
        self._tasklet(sdfg, state, "\n".join(code), ("__b", values), made, inputs, outputs)
        return state

    def _begins(
        self, sdfg: SDFG, made: dict[str, str], blocks: int, first: tuple[str, sympy.Expr]
    ) -> SDFGState:
        """What each block begins with, one after the other."""
        state = SDFGState("begins_of_blocks", sdfg)
        ctype = dtypes.dtype_to_typeclass(self.recurrence.dtype.type).ctype
        times = "_end_product[k] * " if "end_product" in made else ""
        code = (
            f"{ctype} value = _first[0];\nfor (int64_t k = 0; k < {blocks}; ++k) {{\n"
            f"_begin[k] = value;\nvalue = {times}{self.recurrence.combined('_end[k]')};\n}}"
        )
        whole = Range([(0, blocks - 1, 1)])
        inputs = {"end": whole, **({"end_product": whole} if times else {})}
        inputs["first"] = Range([(first[1], first[1], 1)])
        known = {**made, "first": first[0]}
        values = Range([(0, 0, 1)])
        self._tasklet(sdfg, state, code, ("__once", values), known, inputs, {"begin": whole})
        return state

    def _tasklet(
        self,
        sdfg: SDFG,
        state: SDFGState,
        code: str,
        over: tuple[str, Range],
        made: dict[str, str],
        inputs: dict[str, Range],
        outputs: dict[str, Range],
    ) -> None:
        pointer = dtypes.pointer(dtypes.dtype_to_typeclass(self.recurrence.dtype.type))
        tasklet = state.add_tasklet(
            state.label,
            {f"_{name}": pointer for name in inputs},
            {f"_{name}": pointer for name in outputs},
            code,
            language=dtypes.Language.CPP,
        )
        tasklet.debuginfo = self.recurrence.writer.debuginfo
        entry, leave = self._map(state, state.label, *over)
        for name, window in inputs.items():
            memlet = Memlet(data=made[name], subset=Range(window.ranges))
            source = state.add_read(made[name])
            enter_map(state, sdfg, entry, source, tasklet, f"_{name}", memlet)
        for name, window in outputs.items():
            memlet = Memlet(data=made[name], subset=Range(window.ranges))
            target = state.add_write(made[name])
            leave_map(state, sdfg, leave, tasklet, f"_{name}", memlet, target)

    def _all(
        self,
        sdfg: SDFG,
        variable: str,
        place: sympy.Expr,
        made: dict[str, str],
        size: int,
        target: tuple[str, sympy.Expr],
    ) -> SDFGState:
        """Add to each element what its block began with."""
        dtype = self.recurrence.dtype
        state = SDFGState("all_of_blocks", sdfg)
        kinds = ["within", "begin", *(["product"] if "product" in made else [])]
        arguments = {kind: Argument(f"_{kind}", dtype) for kind in kinds}
        begin: Expression = arguments["begin"]
        if "product" in made:
            begin = apply("multiply", arguments["product"], begin)
        value = apply(self.recurrence.kind, begin, arguments["within"])
        tasklet = Computation(
            target[0], (("_out", value),), {f"_{k}": None for k in kinds}, {"_out": None}
        )
        tasklet.debuginfo = self.recurrence.writer.debuginfo
        state.add_node(tasklet)
        entry, leave = self._map(state, target[0], variable, self._range())
        block = sympy.Function("int_floor")(place, size)
        for kind in kinds:
            at = block if kind == "begin" else place
            memlet = Memlet(data=made[kind], subset=Range([(at, at, 1)]))
            enter_map(state, sdfg, entry, state.add_read(made[kind]), tasklet, f"_{kind}", memlet)
        memlet = Memlet(data=target[0], subset=Range([(target[1], target[1], 1)]))
        leave_map(state, sdfg, leave, tasklet, "_out", memlet, state.add_write(target[0]))
        return state
