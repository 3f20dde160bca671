"""Names of dimensions, from what the kernels of a program do with them.

Dimensions that are split alike are one class of extents, and have one name everywhere:

- ``batch`` and ``sequence`` (or ``height`` and ``width``) come from the arguments of the caller;
- ``heads`` is what a product of two activations has in both, and a parameter too; what is beside
  it in a dimension of that parameter is ``head_dim``, or ``group``, the queries of one key;
- ``experts`` is what a product of an activation with a parameter has in both;
- ``vocabulary`` is what an index picks; ``channels`` is what a convolution has;
- ``features`` is what several matrices make, and several take, as a stream of residuals; ``hidden``
  is made by some matrices for another one; ``inputs`` and ``outputs`` are made, or taken, by none.

Others have no name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from distspmd.expressions.ir import Load
from distspmd.frontend.tensor_ir.indices import Array, Extent, Variable
from distspmd.frontend.tensor_ir.kernels import Kernel, current_indices

Names = dict[str, tuple[str | None, ...]]
_SPACE = {1: ("sequence",), 2: ("height", "width"), 3: ("depth", "height", "width")}
"""Dimensions of an argument behind those that are known, by their number."""


def dimension_names(
    kernels: Sequence[Kernel],
    arrays: Mapping[str, Array],
    parameters: Mapping[str, Sequence[int]],
    inputs: Mapping[str, Sequence[int]],
) -> Names:
    """A name for each dimension of containers; None where there is none.

    Args:
        kernels: of the forward pass, settled.
        arrays: all containers.
        parameters: shapes of those of modules, as torch has them.
        inputs: shapes of the caller's arguments, in their order.
    """
    roles = _Roles(parameters.keys())
    for kernel in kernels:
        roles.see(kernel)
    names = roles.names(
        [list(_groups(arrays[name], shape)) for name, shape in parameters.items() if name in arrays]
    )
    _name_inputs(names, roles, [_groups(arrays[n], shape) for n, shape in inputs.items()])
    return {name: tuple(names.get(_root(e)) for e in a.extents) for name, a in arrays.items()}


def _root(extent: Extent) -> Extent:
    return extent.find()


def _class(variable: Variable) -> Extent:
    return variable.extent.find()


def _groups(array: Array, shape: Sequence[int]) -> Iterator[list[Extent]]:
    """The extents of each dimension of a shape; dimensions of one element have none."""
    waiting = list(array.extents)
    for length in shape:
        taken: list[Extent] = []
        done = 1
        while done < length and waiting:
            taken.append(waiting.pop(0))
            done *= taken[-1].length
        yield [extent.find() for extent in taken]


def _plain(load: Load) -> list[Variable]:
    """The variables that index a dimension by themselves."""
    found = (i for i in current_indices(load) if len(i.terms) == 1 and i.terms[0][1] == 1)
    return [index.terms[0][0] for index in found]


class _Roles:
    """What products do with each class of extents."""

    def __init__(self, parameters: Collection[str]) -> None:
        self.parameters = parameters
        self.made: defaultdict[Extent, set[str]] = defaultdict(set)
        self.taken: defaultdict[Extent, set[str]] = defaultdict(set)
        self.shared: set[Extent] = set()
        self.mixed: set[Extent] = set()
        self.beside: set[Extent] = set()
        self.experts: set[Extent] = set()
        self.picked: set[Extent] = set()
        self.convolved: set[Extent] = set()

    def see(self, kernel: Kernel) -> None:
        """Note what a kernel does."""
        if kernel.operation != "sum" or not kernel.reduced:
            return
        own = [x for x in kernel.read if x.array.name in self.parameters]
        others = [x for x in kernel.read if x.array.name not in self.parameters]
        gone = {v for variable in kernel.reduced for v in variable.leaves()}
        weights = [x for x in own if len(x.array.extents) > 1 and gone & set(_plain(x))]
        if kernel.picked is not None:
            chosen = set(kernel.picked[0].leaves())
            of_matrices = weights and gone - chosen  # a product with one of several matrices
            (self.experts if of_matrices else self.picked).update(map(_class, chosen))
        window = any(len(i.terms) > 1 for x in others for i in current_indices(x))
        for load in weights:
            for v in _plain(load):
                if window:
                    self.convolved.add(_class(v))
                else:
                    (self.taken if v in gone else self.made)[_class(v)].add(load.array.name)
        if weights and others:
            both = set(_plain(weights[0])) & {v for x in others for v in _plain(x)} - gone
            if not window and kernel.picked is None:
                self.experts |= {_class(v) for v in both}
        if not own and kernel.picked is None:
            self._see_product([x for x in others if gone & set(_plain(x))], gone)

    def _see_product(self, loads: Sequence[Load], gone: set[Variable]) -> None:
        """Note what two activations that are multiplied have together, and apart."""
        indices = {x.array.name: set(_plain(x)) for x in loads}
        if len(indices) < 2:
            return
        first, second, *_ = indices.values()
        if not (first - second - gone and second - first - gone):
            return  # no product of matrices
        self.shared |= {_class(v) for v in first & second - gone}
        self.mixed |= {_class(v) for v in first & second & gone}
        self.beside |= {_class(v) for v in (first ^ second) - gone}

    def names(self, parameters: Sequence[Sequence[Sequence[Extent]]]) -> dict[Extent, str]:
        """Names of the classes that parameters have."""
        names: dict[Extent, str] = {}
        groups = [group for groups in parameters for group in groups]
        owned = {extent for group in groups for extent in group}
        for extent in owned:
            made, taken = len(self.made[extent]), len(self.taken[extent])
            if extent in self.picked:
                names[extent] = "vocabulary"
            elif extent in self.experts:
                names[extent] = "experts"
            elif made and taken:
                names[extent] = "features" if made > 1 and taken > 1 else "hidden"
            elif extent in self.convolved:
                names[extent] = "channels"
            elif made or taken:
                names[extent] = "outputs" if made else "inputs"
        return names | self._of_heads(groups)

    def _of_heads(self, groups: Sequence[Sequence[Extent]]) -> dict[Extent, str]:
        """Names of what stands in dimensions of parameters with heads."""
        names: dict[Extent, str] = {}
        heads = {extent for group in groups for extent in group if extent in self.shared}
        for group in groups:
            if not heads & set(group):
                continue
            outermost = next(n for n, extent in enumerate(group) if extent in heads)
            for n, extent in enumerate(group):
                if n == outermost:
                    names[extent] = "heads"
                elif n < outermost:
                    names[extent] = "parts"
                else:
                    is_last = extent is group[-1] or extent in self.mixed
                    names[extent] = "group" if extent in heads or not is_last else "head_dim"
        return names


def _name_inputs(
    names: dict[Extent, str], roles: _Roles, inputs: Sequence[Iterator[list[Extent]]]
) -> None:
    """Name what the caller's arguments have, and parameters have not."""
    for groups in inputs:
        dims = [[e for e in group if names.get(e, "inputs") == "inputs"] for group in groups]
        if not dims or not any(dims):
            continue
        first, *rest = dims
        if rest and _is_sequence(roles, first) and not _is_sequence(roles, rest[0]):
            first, rest = rest[0], [first, *rest[1:]]
        for extent in first:
            names.setdefault(extent, "batch")
        left = [group for group in rest if any(extent not in names for extent in group)]
        for group, name in zip(left, _SPACE.get(len(left), ()), strict=False):
            for extent in group:
                names.setdefault(extent, name)


def _is_sequence(roles: _Roles, group: Collection[Extent]) -> bool:
    """Whether products of activations mix what a dimension has, as attention does."""
    return any(extent in roles.mixed and extent not in roles.shared for extent in group)
