"""The library node that moves one array from layout to layout: ``x: [10, 8] -> [5{i}10, 8]``."""

from __future__ import annotations

from typing import Any

import dace.library
from dace import SDFG, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.libraries.comm.nodes.node import CommNode
from dace.properties import Property, SymbolicProperty
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.runtime.engine.compile_runtime import INCLUDE


@dace.library.environment
class Runtime:
    """The header through which a program runs its plans; MPI itself is in the runtime's library."""

    cmake_minimum_version = None
    cmake_packages: list[str] = []  # noqa: RUF012 (the form that DaCe asks for)
    cmake_variables: dict[str, str] = {}  # noqa: RUF012
    cmake_includes: list[str] = [str(INCLUDE)]  # noqa: RUF012
    cmake_libraries: list[str] = []  # noqa: RUF012
    cmake_compile_flags: list[str] = []  # noqa: RUF012
    cmake_link_flags: list[str] = []  # noqa: RUF012
    cmake_files: list[str] = []  # noqa: RUF012
    headers = {"frame": ["distspmd/api/execute.hpp"]}  # noqa: RUF012
    state_fields: list[str] = []  # noqa: RUF012
    init_code = ""
    finalize_code = ""
    dependencies: list[type] = []  # noqa: RUF012


@dace.library.expansion
class ExpandToRuntime(ExpandTransformation):
    """A call of the runtime, which has the plan."""

    environments = [Runtime]  # noqa: RUF012

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: DistributedMemlet, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        (entering,) = (e for e in state.in_edges(node) if e.dst_conn == "_in")
        (leaving,) = state.out_edges(node)
        number = sym2cpp(node.index + node.window)
        return nodes.Tasklet(
            node.name,
            {
                "_in": dtypes.pointer(sdfg.arrays[entering.data.data].dtype),
                "_context": dtypes.int64,
            },
            {"_out": dtypes.pointer(sdfg.arrays[leaving.data.data].dtype)},
            f"distspmd::execute(_context, {number}, _in, _out);",
            language=dtypes.Language.CPP,
            side_effects=True,
        )


@dace.library.node
class DistributedMemlet(CommNode):
    """One array moves from layout to layout, by the plan of its index in the lowered program.

    Connectors: ``_in`` (the source tile), ``_out`` (the target tile), ``_context``.
    """

    implementations = {"MPI": ExpandToRuntime}  # noqa: RUF012
    default_implementation = "MPI"
    side_effects = True

    index = Property(dtype=int, default=0, desc="Number of the plan in the lowered program")
    window = SymbolicProperty(default=0, desc="Which of its plans runs, as loops say")
    plans = Property(dtype=int, default=1, desc="How many plans it has, by their numbers")
    array = Property(dtype=str, default="", desc="Container of the program that moves")
    source = Property(dtype=str, default="", desc="Layout that the array is in")
    target = Property(dtype=str, default="", desc="Layout that the array is wanted in")
    solver = Property(dtype=str, default="", desc="Solver whose plan runs")
    steps = Property(dtype=str, default="", desc="Steps of the plan")
    received_bytes = Property(dtype=int, default=0, desc="Bytes that all ranks receive, each time")
    seconds = Property(dtype=float, default=0.0, desc="Predicted time, each time")

    def __init__(self, name: str = "distributed_memlet", **keywords: Any) -> None:
        super().__init__(
            name, inputs={"_in": None, "_context": None}, outputs={"_out": None}, **keywords
        )

    def __str__(self) -> str:
        moves = f"{self.array}: {self.source} -> {self.target}"
        return f"{moves} ({self.steps}, {self.received_bytes:,} bytes)" if self.steps else moves
