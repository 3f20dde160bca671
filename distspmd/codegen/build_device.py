"""Builds the shared library of a lowered SDFG for a device, once; see ``codegen/build.py``.

DaCe writes two texts: a frame for the host, and the kernels with their launches for CUDA. For the
emulated device, g++ compiles both.
"""

from __future__ import annotations

import contextlib
import copy
from dataclasses import astuple, dataclass
from pathlib import Path

from dace import SDFG, SDFGState
from dace.codegen import codegen
from dace.codegen.codeobject import CodeObject
from dace.properties import CodeBlock
from dace.sdfg import nodes

from distspmd.cache.entries import ensure_entry
from distspmd.codegen import compile_program
from distspmd.codegen.build import (
    ARITHMETIC,
    EXACT,
    OVERLOADS,
    PRODUCTS,
    compiler_settings,
    key_of,
    memlet_ends,
    record_of,
)
from distspmd.codegen.build_record import RECORD, Build
from distspmd.codegen.compile_program import standard
from distspmd.codegen.device_placement import expand_for_device, library_nodes, place
from distspmd.codegen.implementations import blas_header, check_lapack, choose_implementations
from distspmd.codegen.line_batches import batch_lines
from distspmd.codegen.openmp import share_maps
from distspmd.codegen.pipelines import write_pipelines
from distspmd.codegen.reduction_symbols import collect_lambdas
from distspmd.codegen.user_reductions import add_functions
from distspmd.dace_compat.carried import without_record
from distspmd.dace_compat.device_code import corrected, for_cuda
from distspmd.dace_compat.fast_graphs import quick_graphs
from distspmd.dace_compat.inner_results import rename_inner_results
from distspmd.dace_compat.settings import linked_to, quiet
from distspmd.dace_compat.wide_indices import wide_indices
from distspmd.errors import ArgumentError, ToolchainError, UnsupportedProgram
from distspmd.lowering import Lowering
from distspmd.nodes import blas_products, lapack
from distspmd.nodes.device_kernels import PREAMBLE
from distspmd.nodes.device_products import can_call_cublas
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.compilers.failures import compilation_error
from distspmd.runtime.devices.kinds import (
    DeviceBuild,
    DeviceKind,
    build_device_library,
    device_kind,
)
from distspmd.runtime.devices.products import find_products

_EVERYWHERE = None
"""DaCe's name for all files of a program."""


@for_cuda()
def build_device_program(
    sdfg: SDFG, lowering: Lowering, ranks: int, arithmetic: str, device: str
) -> Build:
    """Compile a lowered SDFG for a number of ranks with a device each, unless that was done before.

    Raises:
        ArgumentError: an unknown kind of arithmetic or of device.
        CompilationError: with the compiler's message.
        ToolchainError: there is no compiler, or no BLAS that the program needs.
        UnsupportedProgram: it has something that cannot be placed on a device.
    """
    known = (*ARITHMETIC, *PRODUCTS)
    if arithmetic not in known:
        raise ArgumentError(
            f"compile has the arithmetic {', '.join(known)}, but {arithmetic!r} was given."
        )
    if lowering.deterministic and arithmetic in PRODUCTS:
        raise ArgumentError(
            f"the program was lowered with deterministic=True, but arithmetic={arithmetic!r} was "
            "given, which rounds operands. Leave out one of both."
        )
    kind = device_kind(device)
    compiler = toolchain.find_compiler()
    program = copy.deepcopy(sdfg)
    without_record(program)
    uniform = lowering.uniform_symbols(ranks)
    program.replace_dict(uniform)  # type: ignore[arg-type]  # DaCe takes numbers too
    program.append_global_code(OVERLOADS, _EVERYWHERE)  # type: ignore[arg-type]  # as above
    add_functions(program, collect_lambdas(lowering.memlets))
    ends = memlet_ends(program)
    strict = lowering.deterministic or arithmetic == "strict"
    write_pipelines(program)
    batch_lines(program)
    choose_implementations(program, strict)
    precision = "pedantic" if strict else arithmetic if arithmetic in PRODUCTS else "full"
    without = _why_no_products(program, kind)
    with quiet():
        values = {name: own[:ranks] for name, own in lowering.symbols.items()}
        slow = expand_for_device(program, precision, without, strict, values)
    blas = toolchain.find_blas() if _calls_blas(program) else None
    if blas is not None:
        check_lapack(program, blas)
    with quiet():
        placement = place(program, slow, strict)
        _expand_memlets(program)
        rename_inner_results(program)
    share_maps(program)
    flags = EXACT if lowering.deterministic else ARITHMETIC.get(arithmetic, ARITHMETIC["vector"])
    with quick_graphs():
        kernels = kind.kernels(compiler, standard(), exact=flags != ARITHMETIC["vector"])
        key = key_of(program, str(compiler), str(blas), flags, *kind.compiling(), *kernels)

    def make(folder: Path) -> list[str]:
        linking = linked_to(blas, blas_header(blas)) if blas else contextlib.nullcontext()
        own = build_device_library(kind)
        with (
            linking,
            compiler_settings(compiler, flags, folder.parent),
            quiet(),
            quick_graphs(),
            wide_indices(program),
        ):
            commands = _Commands(compiler, kernels, placement.kernels)
            library = _compile(program, folder, commands, kind, own)
        spaces = tuple(astuple(space) for space in placement.spaces)
        named = placement.arguments, placement.anywhere
        reduces = any("reduction_scratch" in text for text in placement.kernels)
        uses = placement.calls_products, reduces
        made = DeviceBuild(kind.name, str(own), *named, *uses, spaces)
        record_of(program, sdfg, library, (), ends, made).save(folder)
        return [RECORD, str(library.relative_to(folder))]

    return Build.load(ensure_entry("programs", key, make))


def _why_no_products(program: SDFG, kind: DeviceKind) -> str:
    """Why no library computes the products of a program; empty if one does, or it has none."""
    if not any(can_call_cublas(node, state) for node, state in library_nodes(program)):
        return ""
    try:
        find_products(kind)
    except ToolchainError as problem:
        return str(problem)
    return ""


def _calls_blas(program: SDFG) -> bool:
    """Whether nodes are left that the host computes with BLAS."""
    calls = (blas_products.CALL, lapack.LAPACK)
    found = (node for node, _ in program.all_nodes_recursive())
    return any(isinstance(n, nodes.LibraryNode) and n.implementation in calls for n in found)


def _expand_memlets(program: SDFG) -> None:
    """Let the calls of the runtime stay on the stream of the kernels around them."""
    for node, state in list(program.all_nodes_recursive()):
        if not isinstance(node, DistributedMemlet | FetchedMemlet):
            continue
        assert isinstance(state, SDFGState)
        before = set(state.nodes())
        node.expand(state)
        (tasklet,) = (n for n in state.nodes() if n not in before)
        assert isinstance(tasklet, nodes.Tasklet)
        arrays = {edge.data.data for edge in state.all_edges(tasklet) if edge.data.data}
        if any(state.sdfg.arrays[name].storage.name == "GPU_Global" for name in arrays):
            code = f"(void)__dace_current_stream;\n{tasklet.code.as_string}"
            tasklet.code = CodeBlock(code, tasklet.language)


@dataclass(frozen=True)
class _Commands:
    """How a program is compiled.

    Attributes:
        compiler: of the host.
        kernels: the command for kernels; empty where the host's compiler takes them.
        texts: of kernels of our own.
    """

    compiler: toolchain.Compiler
    kernels: tuple[str, ...]
    texts: tuple[str, ...]


def _compile(program: SDFG, folder: Path, commands: _Commands, kind: DeviceKind, own: Path) -> Path:
    """The library of a program, in a folder of its own; kernels may have a command of their own."""
    compiler, kernels = commands.compiler, commands.kernels
    program.build_folder = str(folder)
    program.fill_scope_connectors()
    try:
        objects: list[CodeObject] = codegen.generate_code(program)
    except Exception as error:
        raise UnsupportedProgram(
            f"the program {program.name!r} has no code for a device: {type(error).__name__}: "
            f"{error}. Compile it with device=None."
        ) from error
    header = folder / "include" / "hash.h"
    header.parent.mkdir(parents=True)
    header.write_text(f'#define __HASH_{program.name} ""\n')
    linked = [code for code in objects if code.linkable]
    needs = compile_program.needs_of(linked)
    source, library = folder / "src" / "device", folder / "build" / f"lib{program.name}.so"
    source.mkdir(parents=True)
    library.parent.mkdir(parents=True)
    files = []
    for number, code in enumerate(linked):
        text = compile_program.callable_code(corrected(code.clean_code), program.name)
        # a text of CUDA without kernels costs nvcc 20 seconds, and the host's compiler one
        of_cuda = bool(kernels) and code.language == "cu" and "__global__" in text
        files.append(source / f"{program.name}_{number}.{'cu' if of_cuda else 'cpp'}")
        files[-1].write_text(text)
    if commands.texts:
        files.append(source / f"{program.name}_own.{'cu' if kernels else 'cpp'}")
        files[-1].write_text("\n".join([PREAMBLE, *commands.texts]))
    flags = [*compile_program.flags_of_all(), *kind.compiling()]
    start = [*compiler.command, *flags, "-w"]
    start += compile_program.precompile_headers(compiler, flags)
    folders = [f"-I{compile_program.RUNTIME}", *(f"-I{one}" for one in needs.folders)]
    defined = f'-DDACE_BINARY_DIR="{library.parent}"'
    start += [*folders, *needs.compiling, defined]
    outputs = [str(file.with_suffix(".o")) for file in files]
    calls = [
        [*([*kernels, *folders, defined] if f.suffix == ".cu" else start), "-c", str(f), "-o", o]
        for f, o in zip(files, outputs, strict=True)
    ]
    done = compiler_processes.run_all(calls)
    if done.returncode == 0:
        link = [*compiler.command, "-shared", "-fopenmp", *outputs, "-o", str(library)]
        rpath = f"-Wl,-rpath,{own.parent}"
        using = [*needs.linking, str(own), rpath, *kind.linking()]
        done = compiler_processes.run_command([*link, *using])
    if done.returncode != 0:
        what = f"for the device {kind.name!r} the program {program.name!r}"
        raise compilation_error(what, done, library.parent)
    return library
