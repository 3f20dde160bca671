"""The library node that brings rows which data choose to the ranks that need them."""

from __future__ import annotations

from typing import Any

import dace.library
from dace import SDFG, SDFGState, dtypes
from dace.codegen.common import sym2cpp
from dace.libraries.comm.nodes.node import CommNode
from dace.properties import Property
from dace.sdfg import nodes
from dace.transformation.transformation import ExpandTransformation

from distspmd.nodes.distributed_memlet import Runtime


@dace.library.expansion
class ExpandToExchange(ExpandTransformation):
    """A call of the runtime, with the arrays that say which rows ranks have and need."""

    environments = [Runtime]  # noqa: RUF012 (the form that DaCe asks for)

    @staticmethod
    def expansion(  # type: ignore[override]  # DaCe passes the node that this expands
        node: ExchangedRows, state: SDFGState, sdfg: SDFG
    ) -> nodes.Tasklet:
        """Replace the node by a host tasklet."""
        entering = {e.dst_conn: e.data for e in state.in_edges(node) if e.dst_conn}
        (leaving,) = state.out_edges(node)
        inputs = {
            name: dtypes.pointer(sdfg.arrays[memlet.data].dtype)
            for name, memlet in entering.items()
            if name != "_context"
        }
        lines: list[str] = []
        ends: dict[str, tuple[str, str]] = {}
        for name in ("has_member", "has_index", "needs_member", "needs_index"):
            connector = getattr(node, name)
            if not connector:
                ends[name] = ("nullptr", "0")
                continue
            count = str(sym2cpp(entering[connector].subset.num_elements()))
            if f"__{connector}" not in "".join(lines):
                lines.append(
                    f"const std::vector<std::int64_t> __{connector}"
                    f"({connector}, {connector} + {count});"
                )
            ends[name] = (f"__{connector}.data()", count)
        sides = [
            f"{{{ends[f'{side}_member'][0]}, {ends[f'{side}_index'][0]}, "
            f"std::max<std::int64_t>({ends[f'{side}_member'][1]}, {ends[f'{side}_index'][1]})}}"
            for side in ("has", "needs")
        ]
        lines.append(
            "distspmd::exchange_rows(_context, "
            f"{node.index}, {{reinterpret_cast<const char *>(_in), "
            f"reinterpret_cast<char *>(_out), {', '.join(sides)}}});"
        )
        return nodes.Tasklet(
            node.name,
            {**inputs, "_context": dtypes.int64},
            {"_out": dtypes.pointer(sdfg.arrays[leaving.data.data].dtype)},
            "{\n" + "\n".join(lines) + "\n}",
            language=dtypes.Language.CPP,
            side_effects=True,
        )


@dace.library.node
class ExchangedRows(CommNode):
    """``_out = _in``: each rank has some rows of ``_in``, and gets those of ``_out`` that it needs.

    Connectors: ``_context``, ``_in`` (a tile or an operand), ``_out`` (all rows, of which those
    that are not needed become zero), and whole arrays of numbers, which the properties name.
    """

    implementations = {"MPI": ExpandToExchange}  # noqa: RUF012
    default_implementation = "MPI"
    side_effects = True

    index = Property(dtype=int, default=0, desc="Number of the exchange in the lowered program")
    array = Property(dtype=str, default="", desc="Container of the program whose rows move")
    has_member = Property(dtype=str, default="", desc="Connector: whose each number is, there")
    has_index = Property(dtype=str, default="", desc="Connector: the row of each number, there")
    needs_member = Property(dtype=str, default="", desc="Connector: the same, where rows go")
    needs_index = Property(dtype=str, default="", desc="Connector: the same, where rows go")

    def __init__(self, name: str = "exchanged_rows", **keywords: Any) -> None:
        super().__init__(
            name, inputs={"_in": None, "_context": None}, outputs={"_out": None}, **keywords
        )

    def __str__(self) -> str:
        return f"{self.array}: rows that data choose"
