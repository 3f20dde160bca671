"""Builds the shared library of a lowered SDFG, once: its key has everything it is made from."""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dace
from dace import SDFG, SDFGState, config, data
from dace.codegen import compiler
from dace.sdfg import nodes

from distspmd.cache.entries import ensure_entry
from distspmd.codegen import compile_program, outline
from distspmd.codegen.build_record import RECORD, Build, CompiledArgument
from distspmd.codegen.device_maps import refuse_kernels
from distspmd.codegen.implementations import blas_header, check_lapack, choose_implementations
from distspmd.codegen.known_bounds import drop_known_bounds
from distspmd.codegen.line_batches import batch_lines
from distspmd.codegen.node_windows import give_windows
from distspmd.codegen.openmp import keep_apart, keep_on_stack, share_maps
from distspmd.codegen.pipelines import write_pipelines
from distspmd.codegen.reduction_symbols import collect_lambdas
from distspmd.codegen.sibling_maps import join_siblings
from distspmd.codegen.user_reductions import add_functions
from distspmd.dace_compat.carried import without_record
from distspmd.dace_compat.described import described
from distspmd.dace_compat.fast_graphs import quick_graphs
from distspmd.dace_compat.kept_by_dace import built_by_dace
from distspmd.dace_compat.resolutions_apart import resolutions_apart
from distspmd.dace_compat.settings import compiling_in, linked_to, quiet
from distspmd.dace_compat.wide_indices import wide_indices
from distspmd.errors import ArgumentError, CacheError, ToolchainError
from distspmd.lowering import CONTEXT, Lowering
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.passes.normalize.dace_fixes import correct
from distspmd.runtime.allocation import rank_of_launch
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.engine import compile_runtime

if TYPE_CHECKING:  # programs of the host need nothing of it
    from distspmd.runtime.devices.kinds import DeviceBuild

_PACKAGE = Path(__file__).resolve().parent.parent
_MAKING_CODE = ("expressions", "codegen", "nodes", "dace_compat")
"""Packages whose modules decide what code a program becomes; a build's key has their text."""
_HEADERS_OF_PROGRAMS = (
    "api/execute.hpp",
    "irregular/index_set.hpp",
    "kernels/complex_numbers.hpp",
    "kernels/dealt_matrix.hpp",
    "kernels/dealt_reflections.hpp",
    "kernels/extrema.hpp",
    "kernels/fourier.hpp",
    "kernels/lines.hpp",
    "kernels/lapack.hpp",
    "kernels/own_places.hpp",
    "kernels/packed_product.hpp",
    "kernels/pipeline.hpp",
    "kernels/sample_sort.hpp",
    "kernels/scalapack.hpp",
    "kernels/tall_matrix.hpp",
    "kernels/tell.hpp",
    "kernels/threaded_gemm.hpp",
    "third_party/pocketfft.hpp",
    "third_party/pocketfft_hdronly.hpp",
)
"""Headers that programs include; the runtime has a key of its own."""
EXACT = "-fno-fast-math -ffp-contract=off"
"""Flags by which an expression has the same bits in whatever loop the compiler puts it."""

_KERNELS = compile_runtime.INCLUDE / "distspmd" / "kernels"
OVERLOADS = "".join(
    f"#include {header}\n"
    for header in ("<math.h>", f'"{_KERNELS}/extrema.hpp"', f'"{_KERNELS}/complex_numbers.hpp"')
)
"""For DaCe's code ``exp`` and others have overloads for float, and ``max`` is NumPy's; so are
products of complex numbers, for ours."""

ARITHMETIC = {
    "strict": "-fsigned-zeros",
    "vector": "-fsigned-zeros -D__FAST_MATH__",
    "fast": "-D__FAST_MATH__ -fassociative-math",
}
"""Flags of each kind of arithmetic, behind DaCe's.

DaCe lets the compiler take the two zeros for one, where ``arctan2(0.0 - y, x)`` may be the angle of
the other side, and 1 / (0.0 - y) the other infinity. Only sums in another order need that.
``-D__FAST_MATH__`` makes the C library declare its vector functions. ``-ffast-math`` would do so
too, but a library that is linked with it makes the whole process flush denormal numbers to zero.
"""


PRODUCTS = {"tf32": "TF32", "bfloat16": "bfloat16"}
"""Kinds of arithmetic that are ``"vector"``, but for the operands of products on a device."""


@functools.cache
def warm_up() -> None:
    """Begin what the first program on a machine needs, beside Python; once in a process.

    That are the runtime, and the headers that all programs include. Both are kept. Of ranks that
    were started together the first does it.
    """
    if rank_of_launch() != 0:
        return
    compiler_processes.start_in_background(compile_runtime.build_runtime)
    with contextlib.suppress(ToolchainError, CacheError):  # a program that needs it says so
        found = toolchain.find_compiler()
        with compiler_settings(found, ARITHMETIC["vector"]):
            flags = compile_program.flags_of_all()
        compiler_processes.start_in_background(
            lambda: compile_program.precompile_missing_headers(found, flags)
        )


def build_program(sdfg: SDFG, lowering: Lowering, ranks: int, arithmetic: str = "vector") -> Build:
    """Compile a lowered SDFG for a number of ranks, unless that was done before.

    Symbols that are the same on all ranks become constants first.

    Raises:
        ArgumentError: an unknown kind of arithmetic.
        CompilationError: with the compiler's message.
        ToolchainError: there is no compiler, or no BLAS that the program needs.
        UnsupportedProgram: it has kernels that were written for a device.
    """
    refuse_kernels(sdfg)
    if arithmetic not in ARITHMETIC:
        raise ArgumentError(
            f"compile has the arithmetic {', '.join(ARITHMETIC)}, with device='cuda' also "
            f"{', '.join(PRODUCTS)}, but {arithmetic!r} was given."
        )
    compiler_found = toolchain.find_compiler()
    program = copy.deepcopy(sdfg)
    without_record(program)
    uniform = lowering.uniform_symbols(ranks)
    program.replace_dict(uniform)  # type: ignore[arg-type]  # DaCe takes numbers too
    drop_known_bounds(program)
    share = all(map(outline.repeatable, _global_code(program)))
    program.append_global_code(OVERLOADS)
    add_functions(program, collect_lambdas(lowering.memlets))
    ends = memlet_ends(program)
    tiles = _lend(program, ends) if ranks > 1 else ()
    strict = lowering.deterministic or arithmetic == "strict"
    write_pipelines(program)
    batch_lines(program)
    give_windows(program)
    blas = toolchain.find_blas() if choose_implementations(program, strict) else None
    if blas is not None:
        check_lapack(program, blas)
    flags = EXACT if lowering.deterministic else ARITHMETIC[arithmetic]
    join_siblings(program)
    share_maps(program)
    keep_on_stack(program)
    with quick_graphs():
        keep_apart(program)
        key = key_of(program, str(compiler_found), str(blas), flags)

    def make(folder: Path) -> list[str]:
        linking = linked_to(blas, blas_header(blas)) if blas else contextlib.nullcontext()
        with (
            linking,
            compiler_settings(compiler_found, flags, folder.parent),
            quiet(),
            quick_graphs(),
            wide_indices(program),
        ):
            given = compile_program.flags_of_all()
            compiler_processes.start_in_background(  # while DaCe generates code
                lambda: compile_program.precompile_headers(compiler_found, given)
            )
            library = compile_program.compile_program(program, folder, compiler_found, share)
        record_of(program, sdfg, library, tiles, ends).save(folder)
        return [RECORD, str(library.relative_to(folder))]

    return Build.load(ensure_entry("programs", key, make))


def memlet_ends(program: SDFG) -> tuple[tuple[str, str], ...]:
    """Of each distributed memlet the containers that it moves from and to, by its number.

    They are empty where it stands in a nested SDFG, whose containers have other names.
    """
    found: dict[int, tuple[str, str]] = {}
    for node, graph in program.all_nodes_recursive():
        if isinstance(node, DistributedMemlet) and isinstance(graph, SDFGState):
            (entering,) = (e for e in graph.in_edges(node) if e.dst_conn == "_in")
            (leaving,) = graph.out_edges(node)
            outer = graph.sdfg is program
            ends = (entering.data.data, leaving.data.data) if outer else ("", "")
            found |= dict.fromkeys(range(node.index, node.index + node.plans), ends)
    return tuple(found.get(number, ("", "")) for number in range(max(found, default=-1) + 1))


def _lend(program: SDFG, ends: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Make arguments of the tiles between which data move, so that ranks may share their memory."""
    tiles = sorted({end for pair in ends for end in pair if end and program.arrays[end].transient})
    for name in tiles:
        program.arrays[name].transient = False
        program.arrays[name].lifetime = dace.dtypes.AllocationLifetime.Scope
    return tuple(tiles)


def build_unlowered(sdfg: SDFG) -> Path:
    """An SDFG that is not lowered, compiled by DaCe with the same compiler and BLAS; its folder.

    What lowered programs are compared with.

    Raises:
        ToolchainError: there is no compiler, or no BLAS that the program needs.
    """
    program = copy.deepcopy(sdfg)
    correct(program)
    batch_lines(program)
    program.append_global_code(OVERLOADS)
    blas = toolchain.find_blas() if choose_implementations(program) else None
    compiler_found = toolchain.find_compiler()

    def make(folder: Path) -> list[str]:
        program.build_folder = str(folder)
        linking = linked_to(blas, blas_header(blas)) if blas else contextlib.nullcontext()
        with linking, compiler_settings(compiler_found, "", folder.parent), quiet():
            built_by_dace(lambda: program.compile(return_program_handle=False))
        found = [*folder.glob("program.sdfg*"), *folder.glob("**/*.so"), folder / "FOLDER_MODE"]
        return [str(file.relative_to(folder)) for file in found]

    return ensure_entry("plain", key_of(program, str(compiler_found), str(blas)), make)


def load_unlowered(sdfg: SDFG) -> Callable[..., Any]:
    """An SDFG that is not lowered as a function of this process; see :func:`build_unlowered`."""
    loaded: Callable[..., Any] = compiler.load_precompiled_sdfg(str(build_unlowered(sdfg)))
    return loaded


def key_of(program: SDFG, *parts: str) -> str:
    """The key of a build: of the program, of what makes code of it, and of all that parts say."""
    sources = [compile_runtime.INCLUDE / "distspmd" / name for name in _HEADERS_OF_PROGRAMS]
    for package in _MAKING_CODE:
        sources += sorted((_PACKAGE / package).rglob("*.py"))
    sources.append(_PACKAGE / "plans" / "heuristics.py")
    read = b"".join(path.read_bytes() for path in sources)
    settings = compiler_options()
    text = json.dumps(
        [program.name, described(program), dace.__version__, settings, parts], sort_keys=True
    )
    return hashlib.sha256(text.encode() + read).hexdigest()[:32]


def compiler_options() -> tuple[Any, ...]:
    """What decides besides a program, its compiler and libraries what its code becomes."""
    return *(config.Config.get("compiler", *of) for of in _SETTINGS), compiler.host_isa_id()


_SETTINGS = (
    ("cpu", "args"),
    ("cpu", "libs"),
    ("linker", "executable"),
    ("linker", "args"),
    ("build_type",),
    ("cpp_standard",),
    ("extra_cmake_args",),
)
"""Settings of DaCe that decide what its code becomes."""


def _global_code(program: SDFG) -> list[str]:
    """What the program itself brings along that stands outside of its functions."""
    codes = [code for sdfg in program.all_sdfgs_recursive() for code in sdfg.global_code.values()]
    codes += [
        n.code_global for n, _ in program.all_nodes_recursive() if isinstance(n, nodes.Tasklet)
    ]
    return [code.as_string for code in codes if code is not None]


@contextlib.contextmanager
def compiler_settings(
    found: toolchain.Compiler, flags: str = "", work: Path | None = None
) -> Iterator[None]:
    """DaCe's surroundings while it compiles: the compiler that was found, and CMake on PATH.

    With a folder for files that compilers write for a moment.
    """
    arguments = f"{config.Config.get('compiler', 'cpu', 'args')} {flags}".rstrip()
    with (
        compiling_in(work, toolchain.tool_path()),
        resolutions_apart(),
        config.set_temporary("compiler", "cpu", "executable", value=" ".join(found.command)),
        config.set_temporary("compiler", "cpu", "args", value=arguments),
    ):
        yield


def record_of(
    program: SDFG,
    original: SDFG,
    library: Path,
    tiles: tuple[str, ...],
    ends: tuple[tuple[str, str], ...],
    device: DeviceBuild | None = None,
) -> Build:
    """The record of a compiled program."""
    arguments = []
    for name, container in program.arglist().items():
        is_array = isinstance(container, data.Array)
        arguments.append(
            CompiledArgument(
                name,
                str(container.dtype.as_numpy_dtype()),
                tuple(int(n) for n in container.shape) if is_array else (),
                tuple(int(n) for n in container.strides) if is_array else (),
            )
        )
    initial = sorted(
        name for name in program.used_symbols(all_symbols=False) if not name.startswith("__dace")
    )
    positional = [name for name in original.arg_names if name in original.arrays]
    known = {a.name for a in arguments} | {CONTEXT}
    rest = [n for n, c in original.arrays.items() if not c.transient and n not in positional]
    positional += [n for n in rest if not n.startswith("__return") and n in known - {CONTEXT}]
    return Build(
        program.name,
        str(library),
        tuple(arguments),
        tuple(initial),
        tuple(positional),
        tiles,
        ends,
        device,
    )
