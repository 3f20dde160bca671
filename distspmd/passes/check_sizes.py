"""Refuses sizes that are not numbers: plans are made for numbers."""

from __future__ import annotations

from dace import SDFG

from distspmd.errors import UnsupportedProgram

_OF_SCALAR = "__sym_"
"""How DaCe begins the symbols of scalars that bound slices."""


def check_sizes(sdfg: SDFG, *, of_temporaries: bool = True) -> None:
    """Look at the shapes of all containers.

    Args:
        sdfg: the program.
        of_temporaries: whether those that the caller does not see have to have numbers, too; before
            a program is normalised, loops may decide theirs.

    Raises:
        UnsupportedProgram: a size that has no number.
    """
    seen = [each for each in sdfg.arrays.values() if of_temporaries or not each.transient]
    sizes = sorted({str(symbol) for container in seen for symbol in container.free_symbols})
    named = (size.removeprefix(_OF_SCALAR) for size in sizes if size.startswith(_OF_SCALAR))
    taken = [name for name in named if name in sdfg.arglist()]
    if taken:
        raise UnsupportedProgram(
            f"{sdfg.name!r} has slices up to the scalar {taken[0]!r}, and plans are made "
            f"before it is known. Make it a symbol, {taken[0]} = dace.symbol({taken[0]!r}), and "
            "leave the argument out: then there is a plan for each of its values."
        )
    if sizes:
        raise UnsupportedProgram(
            f"{sdfg.name!r} has the symbolic sizes {', '.join(sizes)}, and plans are made for "
            f"numbers. Give them: sizes={{{sizes[0]!r}: 1024}}, or --size {sizes[0]}=1024."
        )
