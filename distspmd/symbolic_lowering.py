"""Programs with symbolic sizes: they are lowered for the sizes of a call, once these are known.

Plans and tiles consist of numbers. Only the names and parts of the schedule are checked before;
:meth:`SymbolicLowering.at` decides the rest, on a copy of the program with the numbers of a call.
"""

from __future__ import annotations

import copy
import html
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import sympy
from dace import SDFG, dtypes

import distspmd
from distspmd import pipeline
from distspmd.analysis.infer_sizes import Shape
from distspmd.errors import ArgumentError
from distspmd.lowering import Lowering
from distspmd.pipeline import list_spaces
from distspmd.placement.argument_layouts import check_arguments, is_tile
from distspmd.placement.schedule import resolve
from distspmd.runtime.calls.form import call_form_of
from distspmd.schedule import Entries, Grid
from distspmd.scheduling.search import Options, lower_open, lower_searched
from distspmd.tables import Table, as_html, as_text

__all__ = ["SymbolicLowering"]


@dataclass(frozen=True)
class SymbolicLowering:
    """What is known of a lowering before the sizes are; prints as a table, also in Jupyter.

    Attributes:
        sdfg: the program, with symbols.
        schedule: grids of the spaces that were named.
        options: of lower.
        symbols: names of all that need a number.
        search: for what the schedule leaves open, once the sizes are known.
        is_followed: whether that follows its neighbours, whatever a search would find.
    """

    sdfg: SDFG = field(repr=False)
    schedule: dict[str, Grid]
    options: dict[str, Any]
    symbols: tuple[str, ...]
    search: Options | None = None
    is_followed: bool = True
    is_lowering: ClassVar = True

    @property
    def ranks(self) -> int:
        """Ranks that the program needs at least; for a search, those that it may take."""
        if self.search is not None:
            return self.search.ranks
        return max((grid.mesh.size for grid in self.schedule.values()), default=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all that calls need to be lowered; :func:`distspmd.load` reads it.

        Raises:
            SavedError: the file cannot be written, or the program has code of somebody else in it.
        """
        distspmd.saved.save(self, path)

    @property
    def shapes(self) -> dict[str, Shape]:
        """Shapes, with symbols, of the arguments that rank 0 has whole."""
        held = self.options.get("arguments") or {}
        return {
            name: tuple(map(sympy.sympify, container.shape))
            for name, container in self.sdfg.arrays.items()
            if not container.transient
            and not name.startswith("__return")
            and not is_tile(held.get(name, "root"))
        }

    def at(self, **sizes: int) -> Lowering:
        """All decisions for numbers: ``lowering.at(N=100)``.

        Raises:
            ArgumentError: a symbol without a number, or a number without a symbol.
            ScheduleError, UnsupportedProgram, NoSolver: as of lower.
        """
        sdfg = with_sizes(self.sdfg, sizes)
        if self.search is not None:
            return lower_searched(sdfg, self.schedule, self.search, **self.options)
        lower = pipeline.lower_numbers if self.is_followed else lower_open
        return lower(sdfg, self.schedule, **self.options)

    @property
    def _table(self) -> Table:
        rows = tuple(
            (
                space.name,
                ", ".join(f"{name}={extent}" for name, extent in space.iterates),
                str(self.schedule.get(space.name, "decided with the sizes")),
                str(space.source or ""),
            )
            for space in list_spaces(self.sdfg)
        )
        return Table("Iteration spaces and their grids", ("name", "runs", "grid", "source"), rows)

    @property
    def _note(self) -> str:
        sizes = ", ".join(f"{name}=..." for name in self.symbols)
        return (
            f"The sizes {', '.join(self.symbols)} are symbolic: homes and communication are "
            f"decided in each call for its sizes, and before by lowering.at({sizes})."
        )

    def __str__(self) -> str:
        return as_text([self._table]) + "\n" + self._note

    def _repr_html_(self) -> str:
        return as_html([self._table]) + f"<p>{html.escape(self._note)}</p>"


def lower_symbols(
    sdfg: SDFG,
    schedule: Entries,
    options: Mapping[str, Any],
    search: Options | None = None,
    is_followed: bool = True,
) -> SymbolicLowering:
    """Check what can be checked before the sizes are known; the SDFG stays as it is.

    Args:
        sdfg: with symbols.
        schedule, options: of :func:`distspmd.lower`.
        search: for what the schedule leaves open.
        is_followed: whether that follows its neighbours, whatever a search would find.

    Raises:
        ScheduleError: the schedule or the arguments do not fit, or the SDFG is lowered already.
    """
    pipeline.check_not_lowered(sdfg)
    grids = resolve(schedule, list_spaces(sdfg))
    visible = [name for name, container in sdfg.arrays.items() if not container.transient]
    arguments = options["arguments"]
    if isinstance(arguments, Mapping):
        arguments = call_form_of(sdfg).as_inside(arguments)
    check_arguments(sdfg.name, visible, {} if arguments is None else arguments)
    pipeline.check_options(options["solvers"], options["machine"])
    twin, symbols = copy.deepcopy(sdfg), symbols_of(sdfg)
    return SymbolicLowering(twin, grids, dict(options), symbols, search, is_followed)


def with_sizes(sdfg: SDFG, sizes: Mapping[str, int]) -> SDFG:
    """A copy of a program with numbers for all its symbols.

    Raises:
        ArgumentError: a symbol without a number, or a number without a symbol.
    """
    symbols = symbols_of(sdfg)
    missing = [name for name in symbols if name not in sizes]
    unknown = [name for name in sizes if name not in symbols]
    if missing or unknown:
        wrong = f"{missing[0]} is missing" if missing else f"there is no {unknown[0]}"
        raise ArgumentError(
            f"{sdfg.name!r} has the sizes {', '.join(symbols) or 'of its arguments only'}: {wrong}."
        )
    for name, size in sizes.items():
        if isinstance(size, bool) or int(size) != size or size < 0:
            raise ArgumentError(f"{sdfg.name!r}: the size {name} is {size!r}; write an integer.")
    found = copy.deepcopy(sdfg)
    numbers: dict[str, Any] = {name: int(size) for name, size in sizes.items()}
    found.replace_dict(numbers)
    return found


def symbols_of(sdfg: SDFG) -> tuple[str, ...]:
    """Symbols that a caller gives numbers, by their shapes or by name."""
    numbers = {name for name, kind in sdfg.symbols.items() if kind in dtypes.INTEGER_TYPES}
    free = sdfg.free_symbols if numbers else ()
    return tuple(sorted(name for name in map(str, free) if name in numbers))
