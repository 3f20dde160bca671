"""The kernels of DaCe's npbench and polybench tests, written anew as NumPy programs.

`lowering.mechanisms` says which of them are compiled in the default tier.
``scripts/coverage`` runs all of them on 1 to 6 ranks and writes `docs/coverage.md`.
"""

from kernels import networks, products, sciences, solvers, statistics, stencils
from kernels.kernel import Kernel

KERNELS: list[Kernel] = [
    kernel
    for module in (products, solvers, stencils, statistics, networks, sciences)
    for kernel in module.KERNELS
]

_COUNTS = (4, 3)


def ranks_of(kernel: Kernel) -> int:
    """The number of ranks that tests run a kernel on: 3, or 4, whose grids have two dimensions."""
    return _COUNTS[KERNELS.index(kernel) % len(_COUNTS)]
