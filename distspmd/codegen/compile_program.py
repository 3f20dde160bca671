"""Compiles generated code into a library by the compiler's own commands, several files at a time.

DaCe calls CMake, which spends seconds on the search for the compiler, for threads and for OpenMP,
and makes a second library that loads the first. All of this is known here: the compiler was found,
and a program links to files. CMake remains for other languages, packages of CMake, and compilers
whose flags are not those of GCC.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dace
from dace import SDFG, config
from dace.codegen import codegen, compiler_family
from dace.codegen import compiler as dace_compiler
from dace.codegen.codeobject import CodeObject
from dace.codegen.exceptions import CompilationError as DaceCompilationError
from dace.codegen.targets.cpu import CPUCodeGen
from dace.library import get_environments_and_dependencies

from distspmd.cache.entries import ensure_entry
from distspmd.cache.folders import cache_folder
from distspmd.codegen import outline
from distspmd.codegen.entry import with_entry
from distspmd.dace_compat.environments import folder_of
from distspmd.errors import CacheError, CompilationError
from distspmd.runtime.compilers import processes as compiler_processes
from distspmd.runtime.compilers.failures import compilation_error, is_in_code
from distspmd.runtime.compilers.toolchain import Compiler
from distspmd.runtime.engine.compile_runtime import version

RUNTIME = Path(dace.__file__).parent / "runtime" / "include"
_HEADER = "dace_program.hpp"
_KIND = "precompiled"
_precompiling = threading.Lock()
_BY_CMAKE = ("cmake_packages", "cmake_files", "cmake_variables")
_EXPANDED = "_DACE_CMAKE_EXPAND"
"""Stands in what only CMake knows."""


def compile_program(program: SDFG, folder: Path, compiler: Compiler, share: bool) -> Path:
    """The library of a program, in a folder of its own.

    Args:
        program: whose library nodes know how they are implemented.
        folder: for its code, and the library.
        compiler: of the files, where CMake need not look for one.
        share: as in :func:`distspmd.codegen.outline.split_into_files`.

    Raises:
        CompilationError: with what the compiler said.
    """
    program.build_folder = str(folder)
    program.fill_scope_connectors()
    objects = codegen.generate_code(program)
    for code in objects:
        code.code = callable_code(code.code, program.name)
    header = folder / "include" / "hash.h"  # which the code includes; nothing looks at the hash
    header.parent.mkdir(parents=True)
    header.write_text(f'#define __HASH_{program.name} ""\n')
    needs = _needs(objects)
    try:
        if needs is None:
            return _by_cmake(program, objects, folder)
        return _by_commands(program.name, objects, folder, (needs, compiler, share))
    except DaceCompilationError as error:
        done = subprocess.CompletedProcess(["cmake"], 1, "", str(error))
        raise _error(program.name, done, folder) from None


def _error(name: str, done: subprocess.CompletedProcess[str], folder: Path) -> CompilationError:
    return compilation_error(
        f"the program {name!r}",
        done,
        folder,
        "Its SDFG may use something that DaCe cannot generate; 'distspmd doctor' tests the "
        "compiler.",
    )


def callable_code(code: str, name: str) -> str:
    """The code of a program as it is called: by one table, and without exceptions."""
    return with_entry(_may_end(code, name), name)


def _may_end(code: str, name: str) -> str:
    """The code of a program that may end with an error of its own: the caller sees no exception."""
    if "distspmd::tell(" not in code:
        return code
    call = rf"^(\s*)(__program_{name}_internal\(__state\b[^;{{}}]*\);)"
    guarded = r"\1try { \2 } catch (const distspmd::Ended &) {}"
    return re.sub(call, guarded, code, flags=re.MULTILINE)


def _by_cmake(program: SDFG, objects: list[CodeObject], folder: Path) -> Path:
    mode = config.Config.get("compiler", "build_folder_mode")
    # without the program, which takes as long to save as to generate
    dace_compiler.generate_program_folder(None, objects, str(folder), folder_mode=mode)
    return Path(dace_compiler.configure_and_compile(str(folder), program.name, folder_mode=mode))


def _by_commands(
    name: str, objects: Sequence[CodeObject], folder: Path, using: tuple[Needs, Compiler, bool]
) -> Path:
    needs, compiler, share = using
    build, folder, library = folder, folder / "src" / "cpu", folder / "build" / f"lib{name}.so"
    folder.mkdir(parents=True)
    library.parent.mkdir(parents=True)
    linked = [code for code in objects if code.linkable]
    whole = [code.clean_code for code in linked]
    most = len(os.sched_getaffinity(0))
    split = [text for code in whole for text in outline.split_into_files(code, name, most, share)]
    for texts in [split, whole] if split != whole else [whole]:
        files = [folder / f"{name}_{number}.cpp" for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text)
        done = _compile_files(files, library, needs, compiler)
        if done.returncode == 0:
            return library
        if not is_in_code(done):
            break
    raise _error(name, done, build)  # of the code that was not split


@dataclass(frozen=True)
class Needs:
    """What programs need of their surroundings beside the compiler."""

    folders: tuple[str, ...]
    """Of headers."""
    compiling: tuple[str, ...]
    linking: tuple[str, ...]


def _needs(objects: Iterable[CodeObject]) -> Needs | None:
    """What generated code needs, if the compiler alone can make a library of it."""
    linked = [code for code in objects if code.linkable]
    kinds = {(code.target, code.target_type, code.language) for code in linked}
    if kinds != {(CPUCodeGen, "", "cpp")}:
        return None
    return _found_needs(linked)


def needs_of(linked: Iterable[CodeObject]) -> Needs:
    """What generated code needs.

    Raises:
        CompilationError: it needs what only CMake finds.
    """
    found = _found_needs(linked)
    if found is None:
        raise CompilationError(
            "the program needs packages or settings of CMake, with which programs for a device "
            "are not compiled. Unset DaCe's settings compiler.linker.executable and "
            "compiler.extra_cmake_args, or compile it with device=None."
        )
    return found


def _found_needs(linked: Iterable[CodeObject]) -> Needs | None:
    settings = config.Config.get("compiler", "linker", "executable"), *_extra("extra_cmake_args")
    if any(settings) or compiler_family.detect(compiler_family.host_compiler()) not in _FAMILIES:
        return None
    names = {name for code in linked for name in code.environments}
    environments = get_environments_and_dependencies(names)
    if any(_of(environment, kind) for environment in environments for kind in _BY_CMAKE):
        return None
    folders = [f for e in environments for f in (*_of(e, "cmake_includes"), *_beside(e))]
    flags = [f for e in environments for f in _of(e, "cmake_compile_flags")]
    links = [_link(one) for e in environments for one in _of(e, "cmake_libraries")]
    links += [f for e in environments for f in _of(e, "cmake_link_flags")]
    links += [*_extra("linker", "args"), *_extra("cpu", "libs")]
    if any(_EXPANDED in text for text in (*folders, *flags, *links)):
        return None
    split = shlex.split(" ".join(dict.fromkeys(flags))), shlex.split(" ".join(dict.fromkeys(links)))
    return Needs(tuple(dict.fromkeys(folders)), tuple(split[0]), tuple(split[1]))


_FAMILIES = ("gnu", "clang")


def _extra(*setting: str) -> list[str]:
    """Flags that the settings of DaCe add, as words."""
    return shlex.split(str(config.Config.get("compiler", *setting) or ""))


def _of(environment: Any, name: str) -> list[Any]:
    value = getattr(environment, name)
    return list(value() if callable(value) else value)


def _beside(environment: Any) -> list[str]:
    """The folder of an environment, whose headers stand beside it."""
    headers = environment.headers() if callable(environment.headers) else environment.headers
    groups = headers.values() if isinstance(headers, dict) else [headers]
    folder = folder_of(environment)
    names = [name for group in groups for name in group]
    return [str(folder)] if any((folder / name).is_file() for name in names) else []


def _link(named: str) -> str:
    """The flags that link a library, given by its file or its name."""
    if os.path.isabs(named):
        return f"{shlex.quote(named)} {shlex.quote('-Wl,-rpath,' + os.path.dirname(named))}"
    return named if named.startswith("-") else f"-l{named}"


def _compile_files(
    files: Sequence[Path], library: Path, needs: Needs, compiler: Compiler
) -> subprocess.CompletedProcess[str]:
    """Compile the files of a program side by side, and link them; what the compiler said."""
    flags = flags_of_all()
    start = [*compiler.command, *flags, "-w", *precompile_headers(compiler, flags)]
    start += [f"-I{RUNTIME}", *(f"-I{folder}" for folder in needs.folders), *needs.compiling]
    start.append(f'-DDACE_BINARY_DIR="{library.parent}"')
    if len(files) == 1:
        command = [*start, "-shared", str(files[0]), "-o", str(library), *needs.linking]
        return compiler_processes.run_command(command)
    objects = [str(file.with_suffix(".o")) for file in files]
    done = compiler_processes.run_all(
        [[*start, "-c", str(f), "-o", o] for f, o in zip(files, objects, strict=True)]
    )
    if done.returncode != 0:
        return done
    link = [*compiler.command, "-shared", "-fopenmp", *objects, "-o", str(library), *needs.linking]
    return compiler_processes.run_command(link)


def flags_of_all() -> list[str]:
    """The flags of all programs, as DaCe gives them to CMake, and CMake to the compiler."""
    chosen = shlex.split(compiler_family.cpu_args() or "")
    return [standard(), "-fPIC", "-fopenmp", *chosen, *dace_compiler.build_type_flags()]


def standard() -> str:
    """The flag of the version of C++ in which programs are written."""
    return f"-std=c++{config.Config.get('compiler', 'cpp_standard')}"


def precompile_headers(compiler: Compiler, flags: Sequence[str]) -> list[str]:
    """Arguments that include what DaCe's programs begin with, compiled once for these flags.

    None where that cannot be made: then programs compile as well, but longer.
    """
    command = _precompiling_command(compiler, flags)
    try:
        with _precompiling:  # else another thread would examine it, too
            folder = _precompiled(command, version(compiler.command), cache_folder())
    except (OSError, CacheError):
        return []
    return [f"-I{folder}", "-include", _HEADER]


def precompile_missing_headers(compiler: Compiler, flags: Sequence[str]) -> None:
    """Compile the headers for these flags if they never were.

    Raises:
        CacheError: there is no folder for them.
    """
    key = _key_of_headers(_precompiling_command(compiler, flags), version(compiler.command))
    if not (cache_folder() / _KIND / key).exists():
        precompile_headers(compiler, flags)


def _precompiling_command(compiler: Compiler, flags: Sequence[str]) -> tuple[str, ...]:
    return (*compiler.command, *flags, f"-I{RUNTIME}", "-x", "c++-header")


def _key_of_headers(command: tuple[str, ...], said: bytes) -> str:
    return dace_compiler.cache_key(*command, said, dace.__version__, _changed())


@functools.cache
def _precompiled(command: tuple[str, ...], said: bytes, cache: Path) -> Path:
    """The folder of the header that a command has compiled, which a process examines once.

    Raises:
        OSError: the compiler refuses it.
        CacheError: there is no room.
    """

    def make(folder: Path) -> list[str]:
        own = folder / _HEADER
        own.write_text("#include <dace/dace.h>\n")
        made = folder / f"{_HEADER}.gch"
        environ = {**os.environ, "TMPDIR": str(folder.parent)}
        done = compiler_processes.run_command([*command, str(own), "-o", str(made)], environ)
        if done.returncode != 0:
            raise OSError(done.stderr)
        return [own.name, made.name]

    return ensure_entry(_KIND, _key_of_headers(command, said), make, compiler_processes.goes_on)


@functools.cache
def _changed() -> float:
    """When DaCe's headers changed last."""
    return max((file.stat().st_mtime for file in RUNTIME.rglob("*") if file.is_file()), default=0)
