"""Which implementation each library node gets: BLAS for what BLAS computes, loops for the rest."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dace import SDFG, SDFGState
from dace.libraries import standard
from dace.libraries.blas.environments import openblas
from dace.sdfg import nodes

from distspmd.cache import cache_folder
from distspmd.errors import ToolchainError
from distspmd.nodes import contraction, products, solving, vector_reductions
from distspmd.runtime.library import INCLUDE
from distspmd.runtime.toolchain import BLAS

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
            fits = contraction.on_blas(node, state)
            node.implementation = products.CALL if fits else contraction.NEST
            node.in_order = in_order
            uses_blas |= fits
        elif solving.LAPACK in known:
            node.implementation, uses_blas = solving.LAPACK, True
        elif products.CALL in known:
            fits = products.on_blas(node, state)
            loops = products.LOOPS if products.LOOPS in known else "pure"
            node.implementation = products.CALL if fits else loops
            uses_blas |= fits
        elif isinstance(node, standard.Reduce) and node.implementation is None:
            vector = not in_order and vector_reductions.fits(node, state)
            node.implementation = vector_reductions.VECTOR if vector else "pure-seq"
        elif node.implementation is None and "pure" in known and not _has_default(node):
            node.implementation = "pure"
    return uses_blas


def check_lapack(sdfg: SDFG, blas: BLAS) -> None:
    """See to it that a BLAS has what the program needs of LAPACK.

    Raises:
        ToolchainError: it does not.
    """
    needed = [n for n, _ in _library_nodes(sdfg) if n.implementation == solving.LAPACK]
    missing = [f for f in solving.FUNCTIONS.values() if needed and not blas.has(f)]
    if missing:
        raise ToolchainError(
            f"the program solves linear equations (np.linalg.solve), but {blas} does not have "
            f"{missing[0]} of LAPACK. Choose another with DISTSPMD_BLAS, such as scipy-openblas32."
        )


def _has_default(node: nodes.LibraryNode) -> bool:
    """Whether the kind of node has one; DaCe would try OpenBLAS, which not all of them know."""
    return getattr(type(node), "default_implementation", None) is not None


def _library_nodes(sdfg: SDFG) -> list[tuple[nodes.LibraryNode, SDFGState]]:
    return [
        (node, state)
        for node, state in sdfg.all_nodes_recursive()
        if isinstance(node, nodes.LibraryNode) and isinstance(state, SDFGState)
    ]


@contextmanager
def linked_to(blas: BLAS) -> Iterator[None]:
    """Let DaCe's OpenBLAS environment stand for a BLAS, while code is generated and compiled.

    DaCe finds OpenBLAS through CMake in system folders alone, and wants LAPACKE's headers.
    """
    header = _declared(blas)
    environment = openblas.OpenBLAS
    settings = {
        "cmake_packages": [],
        "cmake_variables": {},
        "cmake_includes": [str(blas.include_dir)],
        "cmake_libraries": [str(blas.library)],
        "cmake_compile_flags": [],
        "cmake_link_flags": [],
        "headers": [str(header), "../include/dace_blas.h"],
    }
    before = {name: environment.__dict__[name] for name in settings}
    for name, value in settings.items():
        setattr(environment, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(environment, name, value)


def _declared(blas: BLAS) -> Path:
    """A file with the header of a BLAS.

    All programs name the same file: DaCe runs CMake anew for each other set of folders.
    """
    text = _header(blas)
    folder = cache_folder() / "blas" / hashlib.sha256(text.encode()).hexdigest()[:32]
    header = folder / "distspmd_blas.h"
    if not header.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as file:
            file.write(text)
        os.chmod(file.name, 0o644)  # a cache may serve several users
        os.replace(file.name, header)  # at once, for other processes may be reading
    return header


def _header(blas: BLAS) -> str:
    """A header that declares ``cblas_*``, whatever the library calls these functions.

    What is used of LAPACK has its names, too.
    """
    lines = [f'#include "{blas.include_dir / blas.header}"']
    if blas.symbol_prefix:
        declared = (blas.include_dir / blas.header).read_text()
        names = [*solving.FUNCTIONS.values()]
        names += sorted(set(re.findall(rf"\b{blas.symbol_prefix}(cblas_\w+)\s*\(", declared)))
        lines += [f"#define {name} {blas.symbol_prefix}{name}" for name in names]
    if blas.has(_SETS_THREADS):
        asks = f"{blas.symbol_prefix}openblas_get_num_threads"
        lines.append(f"#define DISTSPMD_BLAS_THREADS() {asks}()")
        sets = f"{blas.symbol_prefix}{_SETS_THREADS}"
        lines.append(f"#define DISTSPMD_SET_BLAS_THREADS(number) {sets}(number)")
    on_threads = INCLUDE / "distspmd" / "products.hpp"
    lines.append(f'#include "{on_threads}"')
    return "\n".join([*lines, ""])
