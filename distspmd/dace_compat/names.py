"""Names that a program reads and does not define, without a walk over what each state touches.

DaCe (2.0.0b1) adds the symbols of the shapes of all arrays that are used, and to find these takes
most of its time. Where shapes are numbers there are none.
"""

from __future__ import annotations

from dace import SDFG
from dace.sdfg.state import ControlFlowRegion


def free_names(sdfg: SDFG) -> set[str]:
    """What ``SDFG.free_symbols`` is."""
    symbolic = any(container.used_symbols(True) for container in sdfg.arrays.values())
    codes = (*sdfg.init_code.values(), *sdfg.exit_code.values())
    if symbolic or any(code.as_string.strip() for code in codes):
        return set(map(str, sdfg.free_symbols))
    free, defined, _ = ControlFlowRegion._used_symbols_internal(
        sdfg, all_symbols=True, defined_syms={*sdfg.arrays, *sdfg.constants_prop}
    )
    return {str(name) for name in free} - {str(name) for name in defined}
