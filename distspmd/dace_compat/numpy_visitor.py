"""DaCe's walk through a program, corrected where it means something else than NumPy does.

Three places: a slice of one element keeps its dimension; what is assigned is broadcast as by NumPy;
an augmented assignment respects the step of a slice.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dace import Memlet, SDFGState, data, subsets, symbolic
from dace.frontend.python.memlet_parser import MemletExpr
from dace.frontend.python.newast import ProgramVisitor

from distspmd.errors import UnsupportedProgram

LINE = "distspmd_line"
"""Attribute of an exception of DaCe's parser: the file and the line of the user's program."""


class NumpyVisitor(ProgramVisitor):
    """Makes an SDFG of a program."""

    def visit(self, node: ast.AST) -> Any:
        """Visit a node; of what fails the innermost line is kept."""
        try:
            return super().visit(node)
        except Exception as problem:
            if not hasattr(problem, LINE) and hasattr(node, "lineno"):
                setattr(problem, LINE, (self.filename, node.lineno))
            raise

    target: ast.AST | None = None
    """What is assigned to."""

    def _visit_assign(
        self, node: Any, node_target: Any, op: Any, dtype: Any = None, is_return: Any = False
    ) -> Any:
        """Assign, with the dimensions that the target has in NumPy at hand."""
        before, self.target = self.target, node_target
        try:
            return super()._visit_assign(node, node_target, op, dtype, is_return)
        finally:
            self.target = before

    def _add_assignment(
        self,
        node: ast.Assign | ast.AugAssign,
        target: Any,
        operand: Any,
        op: str | None = None,
        boolarr: str | None = None,
        indirect_indices: dict[int, Any] | None = None,
    ) -> None:
        """Write a value into a part of an array, broadcast as by NumPy."""
        broadcast = self._broadcast(node, target, operand)
        if broadcast is None or op or boolarr or indirect_indices or broadcast.is_copy:
            super()._add_assignment(node, target, operand, op, boolarr, indirect_indices)
        else:
            self._add_map(node, broadcast, "__out = __inp")

    def _add_aug_assignment(
        self,
        node: ast.Assign | ast.AugAssign,
        rtarget: Any,
        wtarget: Any,
        operand: Any,
        op: str,
        boolarr: str | None = None,
        indirect_indices: dict[int, Any] | None = None,
    ) -> None:
        """Change a part of an array by a value, broadcast as by NumPy, with the part's step."""
        broadcast = self._broadcast(node, wtarget, operand)
        if (
            broadcast is None
            or boolarr
            or indirect_indices
            or (broadcast.is_copy and not broadcast.has_steps)
            or str(rtarget) != str(wtarget)
        ):
            super()._add_aug_assignment(
                node, rtarget, wtarget, operand, op, boolarr, indirect_indices
            )
        else:
            self._add_map(node, broadcast, f"__out = __old {op} __inp")

    def _broadcast(self, node: ast.AST, target: Any, operand: Any) -> _Broadcast | None:
        """How a value is written to a target; None for one element, and for numbers."""
        if not isinstance(operand, str) or operand not in self.sdfg.arrays:
            return None
        name, subset = target if isinstance(target, tuple) else (target, None)
        container = self.sdfg.arrays[name]
        subset = subset if subset is not None else subsets.Range.from_array(container)
        value = self.sdfg.arrays[operand]
        if subset.num_elements() == 1 or _is_one(value):
            return None
        rank = len(subset)
        index = self.target.slice if isinstance(self.target, ast.Subscript) else ast.Constant(...)
        nested = isinstance(self.target, ast.Subscript) and isinstance(
            self.target.value, ast.Subscript
        )
        kept = [d for d in range(rank) if subset.size()[d] != 1] if nested else _sliced(index, rank)
        return _Broadcast(name, subset, kept, operand, tuple(value.shape))

    def _add_map(self, node: Any, broadcast: _Broadcast, code: str) -> None:
        found = broadcast.memlets()
        if found is None:
            raise UnsupportedProgram(
                f"{Path(self.filename).name}:{node.lineno}: a value of the shape "
                f"{_shape(broadcast.shape)} is assigned to a part of {broadcast.name!r} of the "
                f"shape {_shape(broadcast.sizes)}, to which NumPy does not broadcast it."
            )
        ranges, read, written = found
        label = f"{type(node).__name__.lower()}_{node.lineno}_{node.col_offset}"
        state: SDFGState = self._add_state(label)
        inputs = {"__inp": read}
        if "__old" in code:
            inputs["__old"] = copy.deepcopy(written)
        state.add_mapped_tasklet(
            label,
            ranges,
            inputs,
            code,
            {"__out": written},
            external_edges=True,
            debuginfo=self.current_lineinfo,
        )

    def _add_read_slice(self, array: str, node: ast.Subscript, expr: MemletExpr) -> str:
        """Read a part of an array; its dimensions of one element stay where they are slices."""
        if not expr.arrdims:
            kept = _sliced(node.slice, len(expr.subset))
            expr = copy.copy(expr)
            expr.subset = _Kept.of(expr.subset, kept)
            if kept:  # DaCe asks whether it is one index
                node = ast.copy_location(ast.Subscript(node.value, ast.Slice(), node.ctx), node)
        return str(super()._add_read_slice(array, node, expr))


@dataclass(frozen=True)
class _Broadcast:
    """A value that is written to a part of an array.

    Attributes:
        name: of the array.
        subset: of it.
        kept: dimensions of the subset that the target has in NumPy; it is indexed along the others.
        value: name of the array with the value.
        shape: of the value.
    """

    name: str
    subset: subsets.Range
    kept: Sequence[int]
    value: str
    shape: tuple[Any, ...]

    @property
    def sizes(self) -> list[Any]:
        """The shape of the target."""
        return [self.subset.size()[d] for d in self.kept]

    @property
    def is_copy(self) -> bool:
        """Whether both have the same elements, in the same order."""
        ours, theirs = ([n for n in sizes if n != 1] for sizes in (self.sizes, self.shape))
        aligned = [
            n == m or m == 1
            for n, m in zip(reversed(self.sizes), reversed(self.shape), strict=False)
        ]
        return _equal(ours, theirs) and all(aligned)

    @property
    def has_steps(self) -> bool:
        """Whether the target leaves elements out."""
        return any(step != 1 for _, _, step in self.subset.ranges)

    def memlets(self) -> tuple[dict[str, str | subsets.Subset], Memlet, Memlet] | None:
        """Ranges of a map, what it reads and what it writes; None if NumPy does not broadcast."""
        sizes, shape = self.sizes, list(self.shape)
        while len(shape) > len(sizes) and shape[0] == 1:
            shape.pop(0)
        first = len(sizes) - len(shape)
        if first < 0 or any(
            m != 1 and not _equal([n], [m]) for n, m in zip(sizes[first:], shape, strict=True)
        ):
            return None
        parameters = [f"__i{d}" for d in range(len(sizes))]
        ranges: dict[str, str | subsets.Subset] = {
            p: f"0:{symbolic.symstr(n)}" for p, n in zip(parameters, sizes, strict=True)
        }
        read = ["0" if m == 1 else p for p, m in zip(parameters[first:], shape, strict=True)]
        read = ["0"] * (len(self.shape) - len(shape)) + read
        written = [symbolic.symstr(begin) for begin, _, _ in self.subset.ranges]
        for parameter, d in zip(parameters, self.kept, strict=True):
            begin, _, step = self.subset.ranges[d]
            written[d] = f"({symbolic.symstr(begin)}) + ({symbolic.symstr(step)}) * {parameter}"
        return (
            ranges,
            Memlet(data=self.value, subset=", ".join(read)),
            Memlet(data=self.name, subset=", ".join(written)),
        )


def _equal(ours: Sequence[Any], theirs: Sequence[Any]) -> bool:
    """Whether shapes are the same, as far as their symbols tell."""
    return len(ours) == len(theirs) and all(
        not symbolic.inequal_symbols(n, m) for n, m in zip(ours, theirs, strict=True)
    )


def _is_one(container: data.Data) -> bool:
    return isinstance(container, data.Scalar) or all(n == 1 for n in container.shape)


def _shape(sizes: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sizes))}{',' * (len(sizes) == 1)})"


def _sliced(index: ast.AST, rank: int) -> list[int]:
    """Dimensions of an array that a subscript slices; it indexes the others."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    parts = [part for part in parts if not _is_constant(part, None)]
    sliced = [isinstance(part, ast.Slice) or _is_slice(part) for part in parts]
    dots = [d for d, part in enumerate(parts) if _is_constant(part, ...)]
    at = dots[0] if dots else len(parts)
    rest = len(parts) - at - 1 if dots else 0
    before, after = sliced[:at], sliced[len(parts) - rest :]
    every = [*before, *[True] * (rank - len(before) - len(after)), *after]
    return [d for d, is_slice in enumerate(every) if is_slice]


def _is_constant(part: ast.AST, value: Any) -> bool:
    return isinstance(part, ast.Constant) and part.value is value


def _is_slice(part: ast.AST) -> bool:
    named = part.id if isinstance(part, ast.Name) else getattr(part, "value", None)
    return isinstance(named, slice)


class _Kept(subsets.Range):
    """A subset of which some dimensions are not squeezed out when they have one element."""

    kept: tuple[int, ...] = ()

    @classmethod
    def of(cls, subset: subsets.Range, kept: Sequence[int]) -> _Kept:
        """A subset that keeps these dimensions."""
        made = cls(
            [(*extent, size) for extent, size in zip(subset.ranges, subset.tile_sizes, strict=True)]
        )
        made.kept = tuple(kept)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> _Kept:
        return _Kept.of(self, self.kept)

    def unsqueeze(self, axes: Sequence[int]) -> list[int]:
        """Add dimensions of one element."""
        added: list[int] = super().unsqueeze(axes)
        for axis in sorted(added):
            self.kept = tuple(d + (d >= axis) for d in self.kept)
        return added

    def squeeze(
        self, ignore_indices: Sequence[int] | None = None, offset: bool = True
    ) -> list[int]:
        """Remove the dimensions that are indexed."""
        left: list[int] = super().squeeze([*(ignore_indices or ()), *self.kept], offset)
        return left
