"""The library node that brings to each rank those elements of an array that data let it touch."""

from __future__ import annotations

from typing import Any

import dace.library
from dace import SDFG, SDFGState, dtypes
from dace.libraries.comm.nodes.node import CommNode
from dace.properties import CodeBlock, CodeProperty, Property
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.distributed_memlet import Runtime


@dace.library.expansion
class ExpandToFetch(ExpandTransformation):
    """Calls of the runtime, between them the code that finds what is touched."""

    environments = [Runtime]  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: FetchedMemlet, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        inputs: dict[str, dtypes.typeclass] = {
            edge.dst_conn: dtypes.pointer(sdfg.arrays[edge.data.data].dtype)
            for edge in state.in_edges(node)
            if edge.dst_conn
        }
        outputs = {
            edge.src_conn: dtypes.pointer(sdfg.arrays[edge.data.data].dtype)
            for edge in state.out_edges(node)
        }
        code = ""
        if node.asks and node.foresees:
            parameters = "const std::int64_t *ends, distspmd::TouchedBoxes &touched"
            code += (
                f"distspmd::foresee(_context, {node.index}, [&]({parameters}) {{\n"
                f"(void)ends;\n{node.inspection.as_string}\n}});\n"
            )
        elif node.asks:
            code += (
                f"{{\ndistspmd::Touched &touched = distspmd::touched(_context, {node.index});\n"
                f"{node.inspection.as_string}\n}}\ndistspmd::ask(_context, {node.index});\n"
            )
        if "_out" in outputs:
            code += f"distspmd::fetch(_context, {node.index}, _in, _out);\n"
        return nodes.Tasklet(
            node.name,
            {**inputs, "_context": dtypes.int64},
            outputs,
            code,
            language=dtypes.Language.CPP,
            side_effects=True,
        )


@dace.library.node
class FetchedMemlet(CommNode):
    """Each rank gets the elements of one array that data let it touch, from the ranks that have it.

    Connectors: ``_context``; where it fetches, ``_in`` (the tile of the home) and ``_out`` (a tile
    of which only what is touched is filled); where it asks, the arrays that the inspection loads.
    What was asked for once can be fetched by another node of the same index, any number of times.
    """

    implementations = {"MPI": ExpandToFetch}  # noqa: RUF012
    default_implementation = "MPI"
    side_effects = True

    index = Property(dtype=int, default=0, desc="Number of the fetch in the lowered program")
    array = Property(dtype=str, default="", desc="Container of the program that moves")
    source = Property(dtype=str, default="", desc="Layout that the array is in")
    target = Property(dtype=str, default="", desc="Layout of what could be fetched")
    asks = Property(dtype=bool, default=False, desc="Find what is touched, and ask for it")
    foresees = Property(dtype=bool, default=False, desc="Find what all ranks touch, and ask nobody")
    inspection = CodeProperty(
        default=CodeBlock("", dtypes.Language.CPP),
        desc="Code that finds what is touched: if it foresees, by a rank with given ends",
    )

    def __init__(self, name: str = "fetched_memlet", **keywords: Any) -> None:
        super().__init__(name, inputs={"_context": None}, outputs={}, **keywords)

    def __str__(self) -> str:
        what = " and ".join(
            word
            for word, does in (
                ("foresees" if self.foresees else "asks", self.asks),
                ("fetches", self.out_connectors),
            )
            if does
        )
        return f"{self.array}: {self.source} -> {self.target} ({what} at run time)"
