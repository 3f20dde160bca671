"""C++ loops over the letters of a contraction, which the compiler vectorises and threads share.

Threads share letters of the result, so no two threads write one element, and sums do not depend on
the number of threads. Vector lanes share the reduction, unless it is ``in_order``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import sympy
from dace import dtypes

from distspmd.expressions.cpp import CppPrinter
from distspmd.expressions.ir import Expression, IndexValue, parts
from distspmd.nodes.contraction_gemm import LANES, cpp_text
from distspmd.nodes.contraction_operands import Einsum, Operand, Pick
from distspmd.plans.heuristics import HEURISTICS

_FLOATS = ("float", "double")
_LIMITS = "std::numeric_limits<{0}>"
LEAST = f"({_LIMITS}::has_infinity ? -{_LIMITS}::infinity() : {_LIMITS}::lowest())"
MOST = f"({_LIMITS}::has_infinity ? {_LIMITS}::infinity() : {_LIMITS}::max())"
"""The least and the greatest value of a type."""
REDUCTIONS = {
    "sum": ("{0} += {1};", "{0}(0)", "+"),
    "max": ("{0} = {1} > {0} || {1} != {1} ? {1} : {0};", LEAST, "max"),
    "min": ("{0} = {1} < {0} || {1} != {1} ? {1} : {0};", MOST, "min"),
}
"""Of each reduction: how C++ does it, what it starts from, and its name in OpenMP."""


class LoopReduction(Protocol):
    """What is reduced, and how: see :class:`distspmd.nodes.contraction.Contraction`."""

    operation: str
    pick: Pick | None
    in_order: bool

    @property
    def reduced(self) -> Expression | None:
        """What is reduced; None for the product of the operands."""


def parameter(letter: str) -> str:
    """Name of the parameter of a letter; DaCe's symbols do not all take single capitals."""
    return letter if letter.islower() else f"{letter.lower()}_"


def loop_variables(einsum: Einsum) -> dict[str, str]:
    """The loop's variable of each letter."""
    return {x: f"__{parameter(x)}" for x in einsum.letters}


def nest(einsum: Einsum, letters: Iterable[str], body: str, pick: Pick | None = None) -> str:
    """Loops over letters, outermost first, around a body.

    A picked letter has no loop: it is what its operand holds, behind the loops that this needs.
    """
    index = loop_variables(einsum)
    if not pick or pick.letter not in list(letters):
        return _loops([(index[x], einsum.extents[x]) for x in letters], body)
    letter, operand = pick.letter, einsum.operands[pick.operand]
    others = [x for x in letters if x != letter]
    place = max((n for n, x in enumerate(others, start=1) if x in operand.letters), default=0)
    body = nest(einsum, others[place:], body)
    value = f"int64_t({element(operand)}) - ({cpp_text(einsum.begins[letter])})"
    end = cpp_text(einsum.extents[letter])
    body = f"if ({index[letter]} >= 0 && {index[letter]} < {end}) {{\n{body}\n}}"
    return nest(einsum, others[:place], f"const int64_t {index[letter]} = {value};\n{body}")


def emit_clear(einsum: Einsum, value: str) -> str:
    """Set the window of the result to a value."""
    result = einsum.result
    ranges = [(f"__d{d}", extent) for d, extent in enumerate(result.extents)]
    terms = (f"__d{d} * ({cpp_text(stride)})" for d, stride in enumerate(result.strides))
    return _loops(ranges, f"_out[{' + '.join(terms)}] = {value};") + "\n"


def emit_reduction(einsum: Einsum, how: LoopReduction) -> str:
    """Reduce an expression of the operands over the letters that the result has not."""
    value = how.reduced
    whole = not how.pick and not counts_letters(value)
    loops = _Loops(einsum.coalesced() if whole else einsum, how, value)
    if not einsum.writes_once or (how.pick and how.pick.letter in loops.kept):
        return loops.in_memory()
    if loops.has_few_terms:
        return loops.in_lanes()
    return loops.in_blocks() if loops.innermost_kept else loops.in_registers()


def counts_letters(value: Expression | None) -> bool:
    """Whether a letter counts by itself in what is reduced."""
    return value is not None and any(isinstance(part, IndexValue) for part in parts(value))


def element_loops(einsum: Einsum, how: LoopReduction) -> tuple[str, str] | None:
    """Letters of the result, and loops that reduce its element at an index of them, in order.

    None where data or several indices choose the element. The loops' variables of the letters are
    those of :func:`loop_variables`.
    """
    loops = _Loops(einsum, how, how.reduced)
    if not einsum.writes_once or (how.pick and how.pick.letter in loops.kept):
        return None
    body = nest(einsum, einsum.reduced, loops.combined("__part"), how.pick)
    begin = f"{loops.ctype} __part = {loops.neutral};\n"
    return loops.kept, f"{begin}{body}\n{element(einsum.result)} = __part;"


@dataclass(frozen=True)
class ThreadedLoops:
    """A reduction that threads share, each with some terms of an element.

    Attributes:
        kept: letters of the result.
        terms: letters over which its elements are reduced.
        ctype: type of the elements.
        neutral: what a part of them starts from.
        combine: combines ``{1}`` into ``{0}``.
        body: combines a term into ``__part``.
        target: the element of the result.
        neighbours_differ: whether neighbours in memory belong to different elements.
        start: what is combined into each element besides; empty for nothing.
    """

    kept: str
    terms: str
    ctype: str
    neutral: str
    combine: str
    body: str
    target: str
    neighbours_differ: bool
    start: str = ""


def threaded_loops(
    einsum: Einsum, how: LoopReduction, printer: type[CppPrinter]
) -> ThreadedLoops | None:
    """What threads that share a reduction do; None where data or several indices pick elements."""
    loops = _Loops(einsum, how, how.reduced, printer)
    if not einsum.writes_once or how.pick or not einsum.reduced:
        return None
    return ThreadedLoops(
        loops.kept,
        einsum.reduced,
        loops.ctype,
        loops.neutral,
        REDUCTIONS[how.operation][0],
        loops.combined("__part"),
        element(einsum.result),
        loops.innermost_kept,
    )


@dataclass(frozen=True)
class _Loops:
    """The loops of one reduction."""

    einsum: Einsum
    how: LoopReduction
    value: Expression | None
    printer: type[CppPrinter] = CppPrinter

    @property
    def ctype(self) -> str:
        return str(self.einsum.result.dtype.ctype)

    @property
    def neutral(self) -> str:
        return REDUCTIONS[self.how.operation][1].format(self.ctype)

    @cached_property
    def kept(self) -> str:
        return "".join(x for x in self.einsum.letters if x not in self.einsum.reduced)

    @property
    def innermost_kept(self) -> bool:
        """Whether neighbours in memory belong to different elements, and pick nothing each."""
        last, pick = self.einsum.neighbours, self.how.pick
        return bool(last) and not (pick and last in self.einsum.operands[pick.operand].letters)

    @property
    def has_few_terms(self) -> bool:
        """Whether the terms of an element are few and known, and lanes can share its neighbours."""
        einsum = self.einsum
        if not self.kept or not einsum.reduced or self.how.pick:
            return False
        last, terms = self.kept[-1], sympy.Mul(*(einsum.extents[x] for x in einsum.reduced))
        if not terms.is_Integer or terms > HEURISTICS.unrolled_terms:
            return False
        few = einsum.extents[last].is_Integer and einsum.extents[last] < LANES
        near = (operand.steps.get(last, 0) in range(5) for operand in einsum.operands)
        return not few and einsum.result.steps[last] == 1 and all(near)

    def in_lanes(self) -> str:
        """Element by element, its terms one by one: lanes share neighbours in the result."""
        einsum, index = self.einsum, loop_variables(self.einsum)
        ranges = (range(int(einsum.extents[x])) for x in einsum.reduced)
        terms = []
        for place in itertools.product(*ranges):
            here = (
                f"const int64_t {index[x]} = {n};"
                for x, n in zip(einsum.reduced, place, strict=True)
            )
            terms.append(f"{{\n{' '.join(here)}\n{self.combined('__part')}\n}}")
        body = "\n".join([f"{self.ctype} __part = {self.neutral};", *terms])
        inner = nest(einsum, self.kept[-1:], f"{body}\n{element(einsum.result)} = __part;")
        outer = self.kept[:-1]
        shared = self._shared(len(outer)) if outer else ""
        return shared + nest(einsum, outer, f"#pragma omp simd\n{inner}")

    def combined(self, element: str) -> str:
        """The body: reduce the value at the loops' indices into an element."""
        combine = REDUCTIONS[self.how.operation][0].format(element, "__value")
        return f"{self._value()}{combine}"

    def in_memory(self) -> str:
        """Into the result itself: for elements that several indices or the data choose."""
        einsum = self.einsum
        last = self.kept[-1:] if self.innermost_kept or not einsum.writes_once else ""
        order = self.kept[: len(self.kept) - len(last)] + einsum.reduced + last
        body = self.combined(element(einsum.result))
        return emit_clear(einsum, self.neutral) + nest(einsum, order, body, self.how.pick)

    def in_registers(self) -> str:
        """Element by element: lanes share the operands, threads the elements."""
        einsum, kept, reduced = self.einsum, self.kept, self.einsum.reduced
        if not reduced and kept:
            return self._products()
        lanes = self._lanes() if reduced and not self.how.pick else ""
        if lanes:
            inner = f"{lanes}\n{nest(einsum, reduced[-1:], self._in_lanes())}"
            body = nest(einsum, reduced[:-1], inner)
        else:
            body = nest(einsum, reduced, self.combined("__part"), self.how.pick)
        begin = f"{self.ctype} __part = {self.neutral};\n"
        end = f"\n{element(einsum.result)} = __part;"
        if lanes and self._nan:
            begin += "int __nan = 0;\n"
            limits = _LIMITS.format(self.ctype)
            end = f"\nif (__nan) __part = {limits}::quiet_NaN();{end}"
        code = nest(einsum, kept, begin + body + end)
        return self._shared(len(kept)) + code

    def _products(self) -> str:
        """Nothing is reduced: lanes share the innermost loop, and threads those around it."""
        body = f"{self._value()}{element(self.einsum.result)} = __value;"
        inner = nest(self.einsum, self.kept[-1:], body)
        outer, shared = self.kept[:-1], self._shared(max(1, len(self.kept) - 1))
        if shared and not outer:
            return shared.replace("for collapse(1)", "for simd") + inner
        return shared + nest(self.einsum, outer, f"#pragma omp simd\n{inner}")

    def in_blocks(self) -> str:
        """Blocks of neighbours, each in vectors, which threads share: of a few, in registers."""
        extent = self.einsum.extents[self.kept[-1]]
        most = HEURISTICS.register_neighbours
        if extent.is_Integer:
            return self._in_few_lanes() if LANES <= extent <= most else self._in_cached_blocks()
        few = f"{cpp_text(extent)} >= {LANES} && {cpp_text(extent)} <= {most}"
        return f"if ({few}) {{\n{self._in_few_lanes()}\n}} else {{\n{self._in_cached_blocks()}\n}}"

    def _in_few_lanes(self) -> str:
        """Neighbours that have a register, or two; the last ones begin again within those before.

        So each has all its lanes, and lanes that two have give the same element twice.
        """
        einsum, last = self.einsum, self.kept[-1]
        index, extent = loop_variables(einsum)[last], cpp_text(einsum.extents[last])
        lanes = f"for (int64_t __lane = 0; __lane < {LANES}; ++__lane)"
        here = f"{lanes} {{\nconst int64_t {index} = __first + __lane;\n"
        body = f"#pragma omp simd\n{here}{self.combined('__part[__lane]')}\n}}"
        lines = [
            f"const int64_t __first = std::min<int64_t>(__begin, {extent} - {LANES});",
            f"{self.ctype} __part[{LANES}];",
            f"{lanes} __part[__lane] = {self.neutral};",
            nest(einsum, einsum.reduced, body, self.how.pick),
            f"{here}{element(einsum.result)} = __part[__lane];\n}}",
        ]
        code = f"for (int64_t __begin = 0; __begin < {extent}; __begin += {LANES}) {{\n"
        outer = self.kept[:-1]
        shared = self._shared(len(outer)) if outer else ""
        return shared + nest(einsum, outer, code + "\n".join(lines) + "\n}")

    def _in_cached_blocks(self) -> str:
        """Blocks of neighbours whose partial results stay in the cache."""
        einsum, last = self.einsum, self.kept[-1]
        index, extent = loop_variables(einsum)[last], cpp_text(einsum.extents[last])
        body = self.combined("__part[__lane]")
        lanes = "for (int64_t __lane = 0; __lane < __size; ++__lane)"
        here = f"{lanes} {{\nconst int64_t {index} = __first + __lane;\n"
        body = f"#pragma omp simd\n{here}{body}\n}}"
        body = nest(einsum, einsum.reduced, body, self.how.pick)
        lines = [
            f"const int64_t __size = std::min<int64_t>(__block, {extent} - __first);",
            f"{self.ctype} __part[{HEURISTICS.most_block}];",
            f"{lanes} __part[__lane] = {self.neutral};",
            body,
            f"{here}{element(einsum.result)} = __part[__lane];\n}}",
        ]
        code = f"for (int64_t __first = 0; __first < {extent}; __first += __block) {{\n"
        code = nest(einsum, self.kept[:-1], code + "\n".join(lines) + "\n}")
        least, most = HEURISTICS.least_block, HEURISTICS.most_block
        elements = cpp_text(sympy.Mul(*(einsum.extents[x] for x in self.kept)))
        part = f"({elements}) / {HEURISTICS.blocks}"
        block = f"std::min<int64_t>({most}, std::max<int64_t>({least}, {part}))"
        return f"const int64_t __block = {block};\n" + self._shared(len(self.kept)) + code

    def _shared(self, loops: int) -> str:
        """Threads share so many outer loops, if there is enough to do."""
        work = sympy.Mul(*self.einsum.extents.values())
        worth = HEURISTICS.contraction_iterations
        if not loops or (work.is_Integer and work < worth):
            return ""
        return f"#pragma omp parallel for collapse({loops}) if({cpp_text(work)} >= {worth})\n"

    @property
    def _nan(self) -> bool:
        return self.how.operation != "sum" and self.ctype in _FLOATS

    def _lanes(self) -> str:
        """What lets lanes share the innermost loop; empty where they may not."""
        if self.how.in_order or self.ctype not in (*_FLOATS, "int", "int64_t"):
            return ""
        more = " reduction(|: __nan)" if self._nan else ""
        return f"#pragma omp simd reduction({REDUCTIONS[self.how.operation][2]}: __part){more}"

    def _in_lanes(self) -> str:
        """The body where lanes have a part each; of numbers that are none they keep a mark."""
        if self.how.operation == "sum":
            return self.combined("__part")
        sign = ">" if self.how.operation == "max" else "<"
        lines = f"__part = __value {sign} __part ? __value : __part;\n"
        return self._value() + lines + ("__nan |= __value != __value;" if self._nan else "")

    def _value(self) -> str:
        """The expression at the loops' indices; it may name letters, which count in the whole."""
        einsum, ctype = self.einsum, self.ctype
        values = [element(operand) for operand in einsum.operands]
        if self.value is None:
            value = self._product([f"{ctype}({value})" for value in values])
            return f"const {ctype} __value = {ctype}({value});\n"
        held = map(_as_byte, einsum.operands, values)
        bound = {f"_v{n}": value for n, value in enumerate(held)}
        counted = {v for p in parts(self.value) if isinstance(p, IndexValue) for v, _ in p.terms}
        names = {x: f"_at_{parameter(x)}" for x in einsum.letters if x in counted}
        index = loop_variables(einsum)
        bound |= {name: f"{index[x]} + {cpp_text(einsum.begins[x])}" for x, name in names.items()}
        printer = self.printer(names)
        value = printer.text(self.value)
        lines = [f"const auto {name} = {value};" for name, value in bound.items()]
        return "\n".join([*lines, *printer.lines, f"const {ctype} __value = {ctype}({value});\n"])

    def _product(self, values: Sequence[str]) -> str:
        """The product of numbers of the result's type."""
        if self.einsum.result.dtype not in (dtypes.complex64, dtypes.complex128):
            return " * ".join(values)
        return functools.reduce(lambda a, b: f"distspmd::times({a}, {b})", values)


def _as_byte(operand: Operand, value: str) -> str:
    """What an operand holds; of truth values the byte, of whose loads vectors are made."""
    if str(operand.dtype.ctype) != "bool":
        return value
    return f"reinterpret_cast<const unsigned char &>({value})"


def _loops(ranges: Sequence[tuple[str, sympy.Expr]], body: str) -> str:
    for index, end in reversed(ranges):
        body = f"for (int64_t {index} = 0; {index} < {cpp_text(end)}; ++{index}) {{\n{body}\n}}"
    return body


def element(operand: Operand) -> str:
    """The element of a window at the loops' variables."""
    terms = [
        f"__{parameter(x)} * ({cpp_text(step)})" for x, step in operand.steps.items() if step != 0
    ]
    return f"{operand.connector}[{' + '.join(terms) or '0'}]"
