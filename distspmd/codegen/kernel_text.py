"""What the texts of kernels of our own have in common: parameters, indices, elements.

The text is CUDA that includes nothing of DaCe. It names only what the host passes: addresses of
windows, and numbers that the run knows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import sympy
from dace import Memlet, SDFGState, dtypes
from dace.sdfg import nodes

from distspmd.codegen.device_stages import Access, Value, merged
from distspmd.nodes.contraction_gemm import cpp_text
from distspmd.nodes.device_calls import DeviceCall
from distspmd.nodes.device_kernels import Numbers

INT = "std::int64_t"


@dataclass(frozen=True)
class _Pointer:
    """The address of a window that a kernel reads or writes."""

    name: str
    access: Access
    writes: bool

    @property
    def ctype(self) -> str:
        return f"{'' if self.writes else 'const '}{self.access.dtype.ctype} *"


@dataclass
class Parameters:
    """What the host passes to a kernel, in the order in which the text asks for it."""

    numbers: Numbers = field(default_factory=Numbers)
    pointers: dict[tuple[nodes.AccessNode, str, bool], _Pointer] = field(default_factory=dict)

    def number(self, value: sympy.Expr) -> str:
        """A number, or the parameter that has its value."""
        value = sympy.sympify(value)
        found = self.numbers.of(sympy.expand(value))
        return f"{INT}({found})" if found.is_Integer else str(found)

    def pointer(self, access: Access, writes: bool) -> str:
        """The parameter that is the address of the window of an access."""
        key = (access.node, str(access.window), writes)
        if key not in self.pointers:
            name = f"__{'out' if writes else 'in'}{len(self.pointers)}"
            self.pointers[key] = _Pointer(name, access, writes)
        return self.pointers[key].name

    def place(self, access: Access, variables: Indices) -> str:
        """Where an element is behind the address of its window."""
        terms = []
        for group, name in zip(variables.groups, variables.names, strict=True):
            step = sympy.expand(access.steps[group[-1]])
            if step == 1:
                terms.append(name)
            elif step != 0:
                terms.append(f"{name} * {self.number(step)}")
        behind = access.behind
        if behind != 0 or not terms:
            terms.append(self.number(behind))
        return " + ".join(terms)

    def element(self, access: Access, writes: bool, variables: Indices) -> str:
        """An element in memory."""
        return f"{self.pointer(access, writes)}[{self.place(access, variables)}]"

    def values(self, values: Iterable[Value], variables: Indices) -> list[str]:
        """Declarations of the integers that a text names."""
        lines = []
        for value in values:
            text = self.number(value.begin)
            if value.variable is not None:
                text += f" + {variables.of(value.variable)} * {self.number(value.step)}"
            lines.append(f"const {INT} {value.name} = {text};")
        return lines

    @property
    def declared(self) -> list[tuple[str, str]]:
        """Types and names of all parameters."""
        pointers = [(one.ctype, one.name) for one in self.pointers.values()]
        return [*pointers, *((f"{INT} ", str(name)) for name in self.numbers.values.values())]

    def replace(self, state: SDFGState, label: str, remark: str, text: str) -> DeviceCall:
        """A call in a state of the function that a text defines, whose name there is NAME.

        Equal texts are one function.
        """
        name = f"distspmd_own_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        own = ", ".join(kind for kind, _ in self.declared)
        given = [one.name for one in self.pointers.values()]
        given += [f"{INT}({cpp_text(number)})" for number in self.numbers.values]
        call = DeviceCall(
            label,
            remark,
            text.replace("NAME", name),
            inputs={
                one.name: dtypes.pointer(one.access.dtype)
                for one in self.pointers.values()
                if not one.writes
            },
            outputs={
                one.name: dtypes.pointer(one.access.dtype)
                for one in self.pointers.values()
                if one.writes
            },
            code=f"{name}({', '.join(['__dace_current_stream', *given])});",
            code_global=f'#include <cstdint>\nextern "C" void {name}(void *, {own});\n',
        )
        state.add_node(call)
        for one in self.pointers.values():
            memlet = Memlet(data=one.access.node.data, subset=one.access.window)
            if one.writes:
                state.add_edge(call, one.name, one.access.node, None, memlet)
            else:
                state.add_edge(one.access.node, None, call, one.name, memlet)
        return call


@dataclass(frozen=True)
class Indices:
    """Variables of a kernel, of which neighbours that move as one are one.

    Attributes:
        extents: of the variables before that.
        groups: the variables that are one; the last of each says how far it moves.
    """

    extents: tuple[sympy.Expr, ...]
    groups: tuple[tuple[int, ...], ...]

    @staticmethod
    def of_accesses(
        extents: tuple[sympy.Expr, ...],
        accesses: Iterable[Access],
        fixed: Iterable[int],
        border: int = 0,
    ) -> Indices:
        """The fewest variables; see :func:`distspmd.codegen.device_stages.merged`."""
        return Indices(extents, tuple(map(tuple, merged(extents, accesses, fixed, border))))

    @property
    def names(self) -> list[str]:
        """What they are called."""
        return [f"__x{group[-1]}" for group in self.groups]

    def of(self, variable: int) -> str:
        """The name of one that is in no group with others."""
        assert (variable,) in self.groups, "variables whose values count stay alone"
        return f"__x{variable}"

    def count(self, groups: Sequence[tuple[int, ...]] | None = None) -> sympy.Expr:
        """How many indices there are, of some groups or of all."""
        own = self.groups if groups is None else groups
        return sympy.Mul(*(positive(self.extents[n]) for group in own for n in group))

    def decoded(self, number: str, groups: Sequence[tuple[int, ...]], to: Parameters) -> list[str]:
        """Declarations of variables, from the number of an index among all of some groups."""
        if not groups:
            return []
        lines = [f"{INT} __rest = {number};"]
        for group in reversed(groups[1:]):
            extent = to.number(self.count([group]))
            lines.append(f"const {INT} __x{group[-1]} = distspmd::take_index(__rest, {extent});")
        lines.append(f"const {INT} __x{groups[0][-1]} = __rest;")
        return lines


def positive(extent: sympy.Expr) -> sympy.Expr:
    """An extent, or 0 for one that is less."""
    extent = sympy.sympify(extent)
    return extent if extent.is_Integer and extent >= 0 else sympy.Max(0, extent)
