"""The implementation of each library node: BLAS for what BLAS computes, loops for the rest."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from dace import SDFG, SDFGState
from dace.libraries import standard
from dace.sdfg import nodes

from distspmd.analysis.declared_accesses import has_chosen
from distspmd.cache.entries import ensure_entry
from distspmd.errors import ToolchainError
from distspmd.nodes import (
    blas_products,
    contraction,
    host_call,
    lapack,
    line_in_parts,
    reduce_simd,
    scatter,
    tell,
)
from distspmd.runtime.compilers.toolchain import BLAS
from distspmd.runtime.engine.compile_runtime import INCLUDE

_CALLS = {
    host_call.HostCall: host_call.CALL,
    scatter.Scatter: scatter.LOOP,
    line_in_parts.LineInParts: line_in_parts.CALL,
    tell.Told: tell.CALL,
}
"""Nodes that run in one way."""
_BLAS_HEADER = "distspmd_blas.h"
_OPEN_BLAS = "OpenBLAS"
"""What DaCe calls an implementation that calls the BLAS that is found."""
_SETS_THREADS = "openblas_set_num_threads"
"""A function of a BLAS with threads of its own."""


def choose_implementations(sdfg: SDFG, in_order: bool = False) -> bool:
    """Settle the implementation of all library nodes, in place; whether any needs BLAS.

    Reductions that stand ``in_order`` combine their operands one by one.
    """
    uses_blas = False
    for node, state in _library_nodes(sdfg):
        known = type(node).implementations  # type: ignore[attr-defined]  # of each kind of node
        if isinstance(node, contraction.Contraction):
            node.implementation = contraction.fastest_implementation(node, state)
            node.in_order = in_order
            uses_blas |= node.implementation == blas_products.CALL
        elif lapack.LAPACK in known:
            node.implementation, uses_blas = lapack.LAPACK, True
        elif type(node) in _CALLS:
            node.implementation = _CALLS[type(node)]
        elif blas_products.CALL in known and not _is_chosen(node):
            fits = blas_products.can_call_blas(node, state)
            loops = blas_products.LOOPS if blas_products.LOOPS in known else "pure"
            node.implementation = blas_products.CALL if fits else loops
            uses_blas |= fits
        elif isinstance(node, standard.Reduce) and node.implementation is None:
            vector = not in_order and reduce_simd.fits(node, state)
            node.implementation = reduce_simd.VECTOR if vector else "pure-seq"
        elif node.implementation is None and "pure" in known and not _has_default(node):
            node.implementation = "pure"
        uses_blas |= node.implementation == _OPEN_BLAS
    return uses_blas


def check_lapack(sdfg: SDFG, blas: BLAS) -> None:
    """See to it that a BLAS has what the program needs of LAPACK.

    Raises:
        ToolchainError: it does not.
    """
    needed = [n for n, _ in _library_nodes(sdfg) if n.implementation == lapack.LAPACK]
    names = {getattr(node, "function", "solve"): node for node in needed}
    missing = [f for name in names for f in lapack.FUNCTIONS[name].names() if not blas.has(f)]
    if missing:
        raise ToolchainError(
            f"the program calls np.linalg, but {blas} does not have {missing[0]} of LAPACK. Choose "
            "another with DISTSPMD_BLAS, such as scipy-openblas32."
        )


def _is_chosen(node: nodes.LibraryNode) -> bool:
    """Whether the user chose a library other than the BLAS that is called in any case."""
    return has_chosen(node) and node.implementation != _OPEN_BLAS


def _has_default(node: nodes.LibraryNode) -> bool:
    """Whether the kind of node has one; DaCe would try OpenBLAS, which not all of them know."""
    return getattr(type(node), "default_implementation", None) is not None


def _library_nodes(sdfg: SDFG) -> list[tuple[nodes.LibraryNode, SDFGState]]:
    return [
        (node, state)
        for node, state in sdfg.all_nodes_recursive()
        if isinstance(node, nodes.LibraryNode) and isinstance(state, SDFGState)
    ]


def blas_header(blas: BLAS) -> Path:
    """A file with the header of a BLAS.

    All programs name the same file: DaCe runs CMake anew for each other set of folders.
    """
    text = _header(blas)

    def make(folder: Path) -> list[str]:
        (folder / _BLAS_HEADER).write_text(text)
        return [_BLAS_HEADER]

    return (
        ensure_entry("headers", hashlib.sha256(text.encode()).hexdigest()[:32], make) / _BLAS_HEADER
    )


def _header(blas: BLAS) -> str:
    """A header that declares ``cblas_*``, whatever the library calls these functions.

    What is used of LAPACK has its names, too.
    """
    lines = [f'#include "{blas.include_dir / blas.header}"']
    if blas.symbol_prefix:
        declared = (blas.include_dir / blas.header).read_text()
        names = [*lapack.ALL_NAMES]
        names += sorted(set(re.findall(rf"\b{blas.symbol_prefix}(cblas_\w+)\s*\(", declared)))
        lines += [f"#define {name} {blas.symbol_prefix}{name}" for name in names]
    if blas.has(_SETS_THREADS):
        asks = f"{blas.symbol_prefix}openblas_get_num_threads"
        lines.append(f"#define DISTSPMD_BLAS_THREADS() {asks}()")
        sets = f"{blas.symbol_prefix}{_SETS_THREADS}"
        lines.append(f"#define DISTSPMD_SET_BLAS_THREADS(number) {sets}(number)")
    on_threads = INCLUDE / "distspmd" / "kernels" / "threaded_gemm.hpp"
    lines.append(f'#include "{on_threads}"')
    return "\n".join([*lines, ""])
