"""Folds what a schedule deals block-cyclically, so that the part of each rank is a box.

before -> after:  ``map j in 0:3*E: y[j] = x[j]``, of which a rank has blocks in rounds of E  ->
``map r in 0:3, u in 0:E/U, b in 0:U: y[r, u, b] = x[r, u, b]``, of which it has a part of ``u``.
A block consists of whole units of U elements. All that indexes a dimension which is dealt follows;
containers have the same elements in the same memory, so the caller's arrays need no copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from distspmd.analysis.iteration_spaces import IterationSpace
from distspmd.errors import ScheduleError
from distspmd.layouts.dealing import Cyclic
from distspmd.passes.compilation import Compilation
from distspmd.passes.fold_indices import Fold, Folding, Named, grow
from distspmd.passes.fold_program import fold_containers, fold_space
from distspmd.runtime.calls.form import call_form_of, set_call_form
from distspmd.schedule import Grid


@dataclass(frozen=True)
class DealBlocks:
    """Fold what named spaces deal, in place, and all that touches the same dimensions."""

    name: str = "deal-blocks"

    def apply(self, compilation: Compilation) -> None:
        """Give every space that deals blocks a parameter that is cut into parts.

        Raises:
            ScheduleError: rounds that do not divide an extent, or an access across them.
        """
        while seed := _next(compilation):
            _fold(compilation, *seed)


def _next(compilation: Compilation) -> tuple[IterationSpace, str, Cyclic, int] | None:
    """A parameter that is dealt: its space, its name, the blocks, and their parts."""
    for space in compilation.spaces:
        grid = compilation.grids.get(space.name)
        if grid is None:
            continue
        for parameter, cyclic, parts in zip(space.parameters, grid.dealt, grid.parts, strict=False):
            if cyclic is not None:
                return space, parameter, cyclic, parts
    return None


def _fold(
    compilation: Compilation, space: IterationSpace, parameter: str, cyclic: Cyclic, parts: int
) -> None:
    fold = Fold(cyclic.round_of(parts), cyclic.block)
    spaces = list(compilation.spaces)
    what = (
        f"{space.where}: the schedule deals {parameter} of the space {space.name!r} as {cyclic} "
        f"over {parts} parts, in rounds of {fold.round}"
    )
    folding = Folding(compilation.sdfg, spaces, fold, what)
    blocks = _blocks(compilation)
    grow(folding, space, parameter, blocks)
    _check(what, folding.fold, cyclic, parts)
    _carry_out(compilation, folding, what)


def fold_rounds(
    compilation: Compilation,
    space: IterationSpace,
    parameter: str,
    length: int,
    refused: set[Named],
) -> bool:
    """Fold a parameter in rounds of so many elements, with units as large as all indices let them.

    Args:
        refused: what is known not to be possible in such rounds; more is added.

    Returns:
        whether that is possible; if not, nothing was changed.
    """
    what = f"{space.where}: {parameter} of the space {space.name!r} in rounds of {length}"
    for unit in (length, 1):
        spaces = list(compilation.spaces)
        folding = Folding(compilation.sdfg, spaces, Fold(length, unit), what, refused=refused)
        try:
            grow(folding, space, parameter, {})
        except ScheduleError:
            return False
        if folding.fold.units > 1:
            _carry_out(compilation, folding, what)
            return True
    return False


def _carry_out(compilation: Compilation, folding: Folding, what: str) -> None:
    """Fold all that follows, in place."""
    spaces, fold = folding.spaces, folding.fold
    shapes = fold_containers(compilation.sdfg, folding)
    folded = {s.name: fold_space(s, folding) for s in spaces}
    grids = {s.name: _grid(s, folding, compilation.grids.get(s.name), what) for s in spaces}
    compilation.spaces = [folded.get(s.name, s) for s in compilation.spaces]
    compilation.grids |= {name: grid for name, grid in grids.items() if grid is not None}
    for name, parameters in folding.parameters.items():
        known = compilation.folded.setdefault(name, {})
        known |= {parameter: (fold, folding.digits[name, parameter]) for parameter in parameters}
    form = call_form_of(compilation.sdfg)
    set_call_form(compilation.sdfg, replace(form, shapes={**shapes, **form.shapes}))


def _blocks(compilation: Compilation) -> dict[tuple[str, str], int]:
    """Elements in a block of each parameter that is dealt, by space and parameter."""
    return {
        (space.name, parameter): cyclic.block
        for space in compilation.spaces
        if (grid := compilation.grids.get(space.name))
        for parameter, cyclic in zip(space.parameters, grid.dealt, strict=False)
        if cyclic is not None
    }


def _check(what: str, fold: Fold, cyclic: Cyclic, parts: int) -> None:
    """See to it that even parts of a round are the blocks that were asked for."""
    even = -(-fold.units // parts) * fold.unit
    if even != cyclic.block:
        raise ScheduleError(
            f"{what}, which are cut into parts of {even}, for indices keep {fold.unit} elements "
            f"together. Write cyclic({even}, {fold.round})."
        )


def _grid(space: IterationSpace, folding: Folding, grid: Grid | None, what: str) -> Grid | None:
    """The grid of a space with the digits of folded parameters for these."""
    own = folding.parameters.get(space.name, ())
    if grid is None or not own:
        return None
    fold = folding.fold
    splits: list[tuple[str, ...]] = []
    dealt: list[Cyclic | None] = []
    all_dealt: Sequence[Cyclic | None] = grid.dealt or (None,) * len(grid.splits)
    for parameter, axes, cyclic, parts in zip(
        space.parameters, grid.splits, all_dealt, grid.parts, strict=True
    ):
        if parameter not in own:
            splits.append(axes)
            dealt.append(cyclic)
            continue
        if cyclic is not None:
            if cyclic.round_of(parts) != fold.round:
                raise ScheduleError(
                    f"{what}, but {parameter} of the space {space.name!r} in rounds of "
                    f"{cyclic.round_of(parts)}, which touches the same arrays. Write one for both."
                )
            _check(what, fold, cyclic, parts)
        elif parts > 1 and not _is_even(space, parameter, fold, parts):
            block = -(-fold.units // parts) * fold.unit
            raise ScheduleError(
                f"{what}, but splits {parameter} of the space {space.name!r}, which touches the "
                f"same arrays, in even parts. Write cyclic({block}, {fold.round}) beside its axes."
            )
        digits = folding.digits[space.name, parameter]
        splits += [axes if digit == digits[1] else () for digit in digits]
        dealt += [None] * len(digits)
    return replace(grid, splits=tuple(splits), dealt=tuple(dealt), is_of_space=False)


def _is_even(space: IterationSpace, parameter: str, fold: Fold, parts: int) -> bool:
    """Whether even parts of a parameter are those of its one round."""
    extent = space.ranges[space.parameters.index(parameter)]
    size = int(extent.end - extent.begin)
    return size == fold.round and -(-size // parts) == -(-fold.units // parts) * fold.unit


def asked_by(
    space: IterationSpace,
    splits: Sequence[tuple[str, ...]],
    parts: Sequence[int],
    folded: dict[str, tuple[Fold, tuple[str, ...]]],
) -> dict[str, tuple[str | Cyclic, ...]] | None:
    """What a schedule would ask of a space for these splits; None where none can say it.

    Args:
        space: as it is after folding.
        splits: axes of each of its parameters.
        parts: of each of its parameters.
        folded: by the name of each parameter that was folded, how, and its digits.
    """
    own = dict(zip(space.parameters, zip(splits, parts, strict=True), strict=True))
    names = dict(zip(space.parameters, (n for n, _ in space.iterates), strict=True))
    found: dict[str, tuple[str | Cyclic, ...]] = {}
    for name, (fold, digits) in folded.items():
        (_, before), (axes, count), *after = [own.pop(digit) for digit in digits]
        if before > 1 or any(more > 1 for _, more in after):
            return None
        if axes:
            block = -(-fold.units // count) * fold.unit
            is_plain = block * count == fold.round
            found[name] = (*axes, Cyclic(block, None if is_plain else fold.round))
    found |= {names[name]: axes for name, (axes, _) in own.items() if axes}
    return found
