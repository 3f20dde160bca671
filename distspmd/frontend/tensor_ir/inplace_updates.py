"""Updates in place: arguments are written when everything else has been computed.

One kernel reads everything that it needs of an element before it writes any, so a parameter and its
optimizer's state are updated together. A value that another kernel would overwrite is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from torch import fx

from distspmd.expressions.ir import Expression, Load
from distspmd.frontend.tensor_ir.fuse import here
from distspmd.frontend.tensor_ir.indices import (
    Array,
    Crossing,
    Index,
    Value,
    Variable,
    align_groups,
    element,
    replace_loads,
    substitute_indices,
)
from distspmd.frontend.tensor_ir.kernels import Builder, Kernel


def updates(builder: Builder, written: Sequence[tuple[Value, Value, fx.Node]]) -> list[Kernel]:
    """A kernel for each argument, from its value, and what is written into it by a node."""
    aligned = []
    for target, value, node in written:
        try:
            expression = _aligned(target, value)
        except Crossing:
            expression = _aligned(target, builder.unsplit(value, node))
        aligned.append((target, expression))
    kernels = []
    for target, expression in aligned:
        assert isinstance(target.expression, Load)
        array = target.expression.array
        is_itself = isinstance(expression, Load) and expression.array is array
        if not (is_itself and here(expression, target.variables)):  # type: ignore[arg-type]
            kernels.append(Kernel(target.variables, [(array, expression)], f"update_{array.name}"))
    return kernels


def _aligned(target: Value, value: Value) -> Expression:
    by: dict[Variable, Index] = {}
    for d in range(len(target.shape)):
        if target.dims[d] and value.dims[d]:
            by.update(align_groups(target.dims[d], value.dims[d]))
    return substitute_indices(value.expression, by)


def copies(builder: Builder, kernels: Sequence[Kernel]) -> list[Kernel]:
    """Copies of arguments that some kernel reads elsewhere than where it writes."""
    writes = {array.name for kernel in kernels for array, _ in kernel.results}
    copied: dict[str, Array] = {}
    made = []
    for kernel in kernels:
        for load in kernel.read:
            name = load.array.name
            if name not in writes or name in copied or here(load, kernel.variables):
                continue
            whole = tuple(Variable(extent) for extent in load.array.extents)
            copied[name] = builder.container(f"{name}_before", whole, load.dtype)
            made.append(Kernel(whole, [(copied[name], load.array.load(whole))], copied[name].name))
    for kernel in kernels:
        kernel.results = [
            (array, replace_loads(expression, _from(copied, kernel)))
            for array, expression in kernel.results
        ]
    return made


def _from(copied: Mapping[str, Array], kernel: Kernel) -> Callable[[Load], Load]:
    def replace(load: Load) -> Load:
        if load.array.name not in copied or here(load, kernel.variables):
            return load
        return element(copied[load.array.name], load.index)

    return replace


def join_updates(kernels: Sequence[Kernel]) -> list[Kernel]:
    """One kernel for those that read what another of them writes."""
    writer = {array.name: kernel for kernel in kernels for array, _ in kernel.results}
    group = {id(kernel): [kernel] for kernel in kernels}
    for kernel in kernels:
        for load in kernel.read:
            other = writer.get(load.array.name)
            if other is not None and group[id(other)] is not group[id(kernel)]:
                merged = group[id(other)] + group[id(kernel)]
                group.update({id(member): merged for member in merged})
    found = []
    for members in {id(g): g for g in group.values()}.values():
        first, *others = sorted(members, key=lambda k: k.results[0][0].name)
        for other in others:
            by = {
                theirs: Index(((ours, 1),))
                for ours, theirs in zip(first.variables, other.variables, strict=True)
            }
            known: dict[int, Expression] = {}
            first.results += [(a, substitute_indices(e, by, known)) for a, e in other.results]
        found.append(first)
    return found
