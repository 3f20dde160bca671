"""Where elements are: boxes, meshes, layouts and their notations.

May import `distspmd.errors` and `distspmd.tables`; no DaCe, no MPI.
"""

from typing import TYPE_CHECKING

from distspmd.lazy import lazy_names

if TYPE_CHECKING:
    from distspmd.layouts.dealing import Cyclic, cyclic
    from distspmd.layouts.dimension import Partial, Split
    from distspmd.layouts.layout import Layout
    from distspmd.layouts.mesh import Mesh

__all__ = ["Cyclic", "Layout", "Mesh", "Partial", "Split", "cyclic"]

__getattr__ = lazy_names(
    __name__,
    {
        "Cyclic": "distspmd.layouts.dealing",
        "Layout": "distspmd.layouts.layout",
        "Mesh": "distspmd.layouts.mesh",
        "Partial": "distspmd.layouts.dimension",
        "Split": "distspmd.layouts.dimension",
        "cyclic": "distspmd.layouts.dealing",
    },
)
