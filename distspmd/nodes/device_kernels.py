"""Reductions as kernels of our own: many threads share the terms of an element.

The text of a kernel is CUDA that includes nothing of DaCe, beside the program's other kernels. Its
order of terms depends on the extents alone (``device/reduce.hpp``), so that results have the same
bits each time; it is another order than that of loops.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from string import ascii_letters

import dace.library
import numpy as np
import sympy
from dace import SDFG, SDFGState, dtypes
from dace.frontend.operations import detect_reduction_type
from dace.libraries.standard import Reduce
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.expressions.cpp import literal
from distspmd.expressions.cuda import CudaPrinter
from distspmd.nodes.contraction import Contraction, windows
from distspmd.nodes.contraction_gemm import cpp_text
from distspmd.nodes.contraction_loops import (
    LEAST,
    MOST,
    ThreadedLoops,
    counts_letters,
    element,
    loop_variables,
    threaded_loops,
)
from distspmd.nodes.contraction_operands import Einsum, Operand
from distspmd.nodes.device_calls import DeviceCall
from distspmd.nodes.reduce_simd import COMBINE, VECTOR, fits

KERNEL = "distspmd-kernel"
"""Name of the expansion to a kernel of our own."""

PREAMBLE = "".join(
    f"#include <distspmd/{header}.hpp>\n"
    for header in (
        "device/reduce",
        "device/rows",
        "kernels/counter_rng",
        "kernels/distributions",
        "kernels/half_precision",
    )
)
"""What the texts of kernels include."""

_INT = "std::int64_t"


@dataclass
class Numbers:
    """Numbers that only the run knows, as parameters of a kernel: their names, and their values."""

    values: dict[sympy.Expr, sympy.Symbol] = field(default_factory=dict)

    def of(self, number: sympy.Expr) -> sympy.Expr:
        """The number itself, or the parameter that has its value."""
        if number.is_Integer:
            return number
        if number not in self.values:
            self.values[number] = sympy.Symbol(f"__n{len(self.values)}", integer=True)
        return self.values[number]

    def einsum(self, found: Einsum) -> Einsum:
        """A contraction of these numbers."""
        changed = [
            replace(
                operand,
                begins=tuple(map(self.of, operand.begins)),
                extents=tuple(map(self.of, operand.extents)),
                strides=tuple(map(self.of, operand.strides)),
            )
            for operand in (*found.operands, found.result)
        ]
        return replace(found, operands=tuple(changed[:-1]), result=changed[-1])


@dataclass(frozen=True)
class _Kernel:
    """A kernel of a reduction."""

    einsum: Einsum
    loops: ThreadedLoops
    numbers: Mapping[sympy.Expr, sympy.Symbol]

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """Types and names of what the host passes."""
        pointers = [(f"const {o.dtype.ctype} *", o.connector) for o in self.einsum.operands]
        pointers.append((f"{self.loops.ctype} *", self.einsum.result.connector))
        return [*pointers, *((f"{_INT} ", str(name)) for name in self.numbers.values())]

    def _decoded(self, letters: str, number: str) -> str:
        """The loops' variables of letters, from the number of an element or a term."""
        names = loop_variables(self.einsum)
        lines = []
        for n, x in reversed(list(enumerate(letters))):
            extent = cpp_text(self.einsum.extents[x])
            value = number if n == 0 else f"{number} % ({extent})"
            lines.append(f"const {_INT} {names[x]} = {value};")
            number = f"{number} / ({extent})"
        return "\n".join(lines)

    def _count(self, letters: Iterable[str]) -> str:
        return " * ".join(
            [f"{_INT}(1)", *(f"({cpp_text(self.einsum.extents[x])})" for x in letters)]
        )

    def body(self) -> str:
        """The text of both kernels and of the function that launches them, whose name is NAME."""
        loops, ctype = self.loops, self.loops.ctype
        own = ", ".join(f"{kind}{name}" for kind, name in self.parameters)
        names = ", ".join(f"(void *)&{name}" for _, name in self.parameters)
        combine = loops.combine.format("__a", "__b")
        start = f"const {ctype} __value = {loops.start};\n" if loops.start else ""
        start += loops.combine.format("__part", "__value") if loops.start else ""
        store = f"{self._decoded(loops.kept, '__element')}\n{start}\n{loops.target} = __part;"
        shape, neutral = "distspmd::ReductionShape __shape", f"{ctype}({loops.neutral})"
        span = f"{_INT} __element, {_INT} __first, {_INT} __end, {_INT} __step, {ctype} &__part"
        combining = f"[]({ctype} &__a, {ctype} __b) {{ {combine} }}"
        part = loops.combine.format("__part", "__value")
        each = f"for ({_INT} __term = __first; __term < __end; __term += __step) {{"
        launching = "dim3 __grid, dim3 __block"
        return f"""namespace {{
__global__ void NAME_terms({own}, {shape}, {ctype} *__parts) {{
const {_INT} __elements = {self._count(loops.kept)}, __terms = {self._count(loops.terms)};
distspmd::reduce_elements(__elements, __terms, __shape, {neutral}, [&]({span}) {{
{self._decoded(loops.kept, "__element")}
{each}
{self._decoded(loops.terms, "__term")}
{loops.body}
}}
}}, {combining}, [&]({_INT} __element, {_INT} __chunk, {ctype} __part) {{
if (__shape.chunks > 1) {{
__parts[__element * __shape.chunks + __chunk] = __part;
return;
}}
{store}
}});
}}
__global__ void NAME_parts({own}, {_INT} __chunks, {shape}, const {ctype} *__parts) {{
const {_INT} __elements = {self._count(loops.kept)};
distspmd::reduce_elements(__elements, __chunks, __shape, {neutral}, [&]({span}) {{
{each}
const {ctype} __value = __parts[__element * __chunks + __term];
{part}
}}
}}, {combining}, [&]({_INT} __element, {_INT}, {ctype} __part) {{
{store}
}});
}}
}}  // namespace
extern "C" void NAME(void *__stream, {own}) {{
{ctype} *__parts = static_cast<{ctype} *>(distspmd::reduction_scratch());
distspmd::launch_reduction(__stream, {self._count(loops.kept)}, {self._count(loops.terms)}, \
{str(loops.neighbours_differ).lower()},
[&]({launching}, {shape}, cudaStream_t __on) {{
void *__arguments[] = {{{names}, (void *)&__shape, (void *)&__parts}};
cudaLaunchKernel((void *)NAME_terms, __grid, __block, __arguments, 0, __on);
}},
[&]({launching}, {_INT} __chunks, {shape}, cudaStream_t __on) {{
void *__arguments[] = {{{names}, (void *)&__chunks, (void *)&__shape, (void *)&__parts}};
cudaLaunchKernel((void *)NAME_parts, __grid, __block, __arguments, 0, __on);
}});
}}
"""

    def call(self, label: str, connectors: tuple[Sequence[str], Sequence[str]]) -> DeviceCall:
        """The tasklet that launches it; texts that are alike are one function."""
        text = self.body()
        name = f"distspmd_reduce_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        pointers = [name for kind, name in self.parameters if kind.endswith("*")]
        values = [f"{_INT}({cpp_text(number)})" for number in self.numbers]
        own = ", ".join(kind for kind, _ in self.parameters)
        types = {o.connector: o.dtype for o in (*self.einsum.operands, self.einsum.result)}
        inputs, outputs = (
            {connector: dtypes.pointer(types[connector]) for connector in group}
            for group in connectors
        )
        return DeviceCall(
            label,
            "many threads share each element of the result, in an order that extents decide",
            text.replace("NAME", name),
            inputs=inputs,
            outputs=outputs,
            code=f"{name}({', '.join(['__dace_current_stream', *pointers, *values])});",
            code_global=f'#include <cstdint>\nextern "C" void {name}(void *, {own});\n',
        )


def _kernel_of(node: nodes.LibraryNode, state: SDFGState) -> _Kernel | None:
    if isinstance(node, Reduce):
        return _of_reduce(node, state)
    if not isinstance(node, Contraction) or node.in_order or node.pick:
        return None
    einsum, value = windows(node, state), node.reduced
    if not all(_has(operand.dtype) for operand in (*einsum.operands, einsum.result)):
        return None
    if value is not None and not CudaPrinter.can_print(value):
        return None
    numbers = Numbers()
    own = numbers.einsum(einsum if counts_letters(value) else einsum.coalesced())
    loops = threaded_loops(own, node, CudaPrinter)
    return None if loops is None else _Kernel(own, loops, numbers.values)


def _has(dtype: dtypes.typeclass) -> bool:
    return np.dtype(dtype.as_numpy_dtype()) in CudaPrinter.types


NEUTRAL = {"+": "{0}(0)", "*": "{0}(1)", "max": LEAST, "min": MOST}
"""What parts of DaCe's reductions start from, by their clauses."""


def _of_reduce(node: Reduce, state: SDFGState) -> _Kernel | None:
    """The kernel of a reduction of DaCe's, where its order is left to us."""
    if node.implementation not in (VECTOR, KERNEL) or not fits(node, state):
        return None
    numbers = Numbers()
    own = numbers.einsum(einsum_of(node, state).coalesced())
    ((operand,), result) = own.operands, own.result
    clause, combine = COMBINE[detect_reduction_type(node.wcr)]
    dtype, ctype = np.dtype(result.dtype.as_numpy_dtype()), str(result.dtype.ctype)
    or_nan = " || {1} != {1}" if clause in ("max", "min") else ""
    combine = combine.format(a="{0}", b="{1}", or_nan=or_nan)
    kept = "".join(x for x in own.letters if x not in own.reduced)
    if not own.reduced:
        return None
    loops = ThreadedLoops(
        kept,
        own.reduced,
        ctype,
        NEUTRAL[clause].format(ctype),
        combine,
        f"const {ctype} __value = {element(operand)};\n{combine.format('__part', '__value')}",
        element(result),
        bool(kept) and operand.steps.get(kept[-1]) == 1,
        literal(node.identity, dtype),
    )
    return _Kernel(own, loops, numbers.values)


def einsum_of(node: Reduce, state: SDFGState) -> Einsum:
    """The windows of a reduction, with a letter for each dimension of the operand."""
    (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
    sizes = tuple(map(sympy.sympify, entering.data.subset.size()))
    count, given = len(sizes), leaving.data.subset.size()
    axes = set(range(count)) if node.axes is None else {axis % count for axis in node.axes}
    kept = [d for d in range(count) if d not in axes]
    source, target = (state.sdfg.arrays[edge.data.data] for edge in (entering, leaving))
    places = kept if len(given) == count else list(range(len(kept)))
    letters = ascii_letters[:count]
    operands = [
        Operand(
            connector,
            array.dtype,
            tuple(((letters[d], 1),) for d in dimensions),
            tuple(sympy.Integer(0) for _ in dimensions),
            tuple(sizes[d] for d in dimensions),
            tuple(sympy.sympify(array.strides[place]) for place in of),
        )
        for connector, array, dimensions, of in (
            ("_in", source, range(count), range(count)),
            ("_out", target, kept, places),
        )
    ]
    own = "".join(letters[d] for d in kept)
    reduced = "".join(letters[d] for d in sorted(axes))
    return Einsum((operands[0],), operands[1], own + reduced, reduced)


def can_be_kernel(node: nodes.LibraryNode, state: SDFGState) -> bool:
    """Whether :data:`KERNEL` can replace a node."""
    return _kernel_of(node, state) is not None


@dace.library.expansion
class ExpandToKernel(ExpandTransformation):
    """A call of a kernel whose text the node carries."""

    environments: list[type] = []  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(node: nodes.LibraryNode, state: SDFGState, sdfg: SDFG) -> nodes.Tasklet:
        """Replace the node by a tasklet."""
        kernel = _kernel_of(node, state)
        assert kernel is not None, "whoever chooses the expansion asks first"
        if isinstance(node, Reduce):
            (entering,), (leaving,) = state.in_edges(node), state.out_edges(node)
            entering.dst_conn, leaving.src_conn = "_in", "_out"
            node.add_in_connector("_in")
            node.add_out_connector("_out")
        return kernel.call(node.name, (list(node.in_connectors), list(node.out_connectors)))


Contraction.register_implementation(KERNEL, ExpandToKernel)
Reduce.register_implementation(KERNEL, ExpandToKernel)
