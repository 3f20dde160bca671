"""Library nodes as others write them: each with an implementation that counts on its containers.

``plus`` adds 1, and its C++ adds a little more, so that it can be told from its pure expansion;
``shares`` divides each row by its sum, has no pure expansion, and divides by zero on no rows.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

import dace
import numpy as np
from dace import SDFG, Memlet, dtypes, library
from dace.sdfg import nodes
from dace.symbolic import symstr
from dace.transformation.transformation import ExpandTransformation

import distspmd

N, M = 7, 5
MORE = 2.0**-20
"""What the C++ of ``plus`` adds beside 1."""


def _extents(node: nodes.LibraryNode, state: Any, sdfg: SDFG) -> list[str]:
    (edge,) = state.in_edges(node)
    return [symstr(extent, cpp_mode=True) for extent in sdfg.arrays[edge.data.data].shape]


def _cpp(code: str) -> nodes.Tasklet:
    return nodes.Tasklet("call", {"_x"}, {"_y"}, code, language=dtypes.Language.CPP)


@library.expansion
class PlusPure(ExpandTransformation):
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: SDFG) -> SDFG:
        (edge,) = state.in_edges(node)
        inside = SDFG("pure")
        for name in ("_x", "_y"):
            inside.add_array(name, edge.data.subset.size(), dace.float64)
        extents = {f"i{d}": f"0:{size}" for d, size in enumerate(edge.data.subset.size())}
        index = ", ".join(extents)
        read, written = {"a": Memlet(f"_x[{index}]")}, {"b": Memlet(f"_y[{index}]")}
        state = inside.add_state()
        state.add_mapped_tasklet("plus", extents, read, "b = a + 1", written, external_edges=True)
        return inside


@library.expansion
class PlusCpp(ExpandTransformation):
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: SDFG) -> nodes.Tasklet:
        count = " * ".join(f"({extent})" for extent in _extents(node, state, sdfg))
        return _cpp(f"for (long k = 0; k < {count}; ++k) _y[k] = _x[k] + 1 + {MORE};")


@library.node
class Plus(nodes.LibraryNode):
    implementations: ClassVar[dict[str, Any]] = {"pure": PlusPure, "cpp": PlusCpp}
    default_implementation = None

    def __init__(self, name: str = "plus", **given: Any) -> None:
        super().__init__(name, inputs={"_x"}, outputs={"_y"}, **given)


@library.expansion
class SharesCpp(ExpandTransformation):
    environments: ClassVar[list[Any]] = []

    @staticmethod
    def expansion(node: Any, state: Any, sdfg: SDFG) -> nodes.Tasklet:
        rows, columns = _extents(node, state, sdfg)
        return _cpp(
            f"long n = {rows}, m = {columns}; long whole = n * m / n;"  # ends where n is 0
            "for (long i = 0; i < n; ++i) { double sum = 0;"
            "for (long j = 0; j < m; ++j) sum += _x[i * whole + j];"
            "for (long j = 0; j < m; ++j) _y[i * whole + j] = _x[i * whole + j] / sum; }"
        )


@library.node
class Shares(nodes.LibraryNode):
    implementations: ClassVar[dict[str, Any]] = {"cpp": SharesCpp}
    default_implementation = "cpp"

    def __init__(self, name: str = "shares", **given: Any) -> None:
        super().__init__(name, inputs={"_x"}, outputs={"_y"}, **given)


def program(node: nodes.LibraryNode, window: str = f"0:{N}, 0:{M}") -> SDFG:
    """``t = node(x); y = 2 * t``, in a window of all arrays."""
    sdfg = SDFG("of_others")
    for name in ("x", "y", "t"):
        sdfg.add_array(name, [N, M], dace.float64, transient=name == "t")
    state, t = sdfg.add_state(), None
    state.add_node(node)
    state.add_edge(state.add_read("x"), None, node, "_x", Memlet(f"x[{window}]"))
    t = state.add_access("t")
    state.add_edge(node, "_y", t, None, Memlet(f"t[{window}]"))
    ranges = dict(zip("ij", window.split(", "), strict=True))
    read, written = {"a": Memlet("t[i, j]")}, {"b": Memlet("y[i, j]")}
    y = state.add_write("y")
    state.add_mapped_tasklet(
        *("twice", ranges, read, "b = 2 * a", written),
        external_edges=True,
        input_nodes={"t": t},
        output_nodes={"y": y},
    )
    return sdfg


def chosen(implementation: str | None) -> Plus:
    node = Plus()
    node.implementation = implementation
    return node


def rows_apart(node: Shares, shapes: Any) -> Any:
    rows, columns = shapes["_x"]
    whole = f"i, 0:{columns}"
    return distspmd.analysis.NodeAccesses({"i": rows}, {"_x": whole}, {"_y": whole})


def main() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    x = np.random.default_rng(0).random((N, M))
    plus, more = 2 * (x + 1), 2 * (x + 1 + MORE)
    shares = 2 * x / x.sum(axis=1, keepdims=True)

    def check(node: Any, schedule: Any, wanted: Any, window: str = f"0:{N}, 0:{M}") -> None:
        lowering = None
        if comm.rank == 0:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                lowering = distspmd.lower(program(node, window), schedule)
        y = np.zeros((N, M))
        with distspmd.compile(lowering, comm) as compiled:
            compiled(**({"x": x, "y": y} if comm.rank == 0 else {}))
        if comm.rank == 0:
            own = np.zeros((N, M))
            part = tuple(slice(*map(int, each.split(":"))) for each in window.split(", "))
            own[part] = wanted[part]
            np.testing.assert_allclose(y, own, rtol=1e-14, atol=0)

    for parts in ((3, 1), (2, 2), (4, 1)):
        check(chosen("cpp"), {"y": parts}, more)
    check(chosen("cpp"), {"y": (2, 2)}, more, "1:6, 2:4")
    check(chosen(None), {"y": (2, 2)}, plus)
    check(Shares(), {"y": (3, 1)}, shares)  # whole
    distspmd.analysis.node_accesses(Shares)(rows_apart)
    check(Shares(), {"t": (4,)}, shares)
    print("as chosen")


if __name__ == "__main__":
    main()
