"""The kernels of DaCe's npbench and polybench tests, written anew as NumPy programs.

``scripts/coverage`` runs all of them on 1 to 6 ranks and writes `docs/coverage.md`.
"""

from kernels import networks, products, sciences, solvers, statistics, stencils
from kernels.kernel import Kernel

KERNELS: list[Kernel] = [
    kernel
    for module in (products, solvers, stencils, statistics, networks, sciences)
    for kernel in module.KERNELS
]
