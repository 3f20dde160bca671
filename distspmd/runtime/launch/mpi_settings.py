"""Settings that the Open MPI of the package index needs before it is initialised."""

from __future__ import annotations

import os
import sys

OF_WHEEL = {
    "OMPI_MCA_osc": "^ucx",  # it has no transport there, and says so for each window
    "OMPI_MCA_btl": "^ofi",  # unused here; its end takes a second
}
_PREFIX = "OPAL_PREFIX"
"""The variable in which this Open MPI tells ranks where it is."""
_OWN = os.path.realpath(sys.prefix)


def set_before_init() -> None:
    """Set them on a rank that a bare ``mpiexec`` has started, unless the user has, or MPI runs."""
    given = os.environ.get(_PREFIX)
    if given and "mpi4py.MPI" not in sys.modules and os.path.realpath(given) == _OWN:
        for name, value in OF_WHEEL.items():
            os.environ.setdefault(name, value)
