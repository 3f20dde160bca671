"""What a first call has made, kept for other processes: they neither read, lower nor compile.

A program is kept under all that it was made from: the code of its function and of those that it
calls, the numbers that they see, types and shapes of arguments, the schedule and the options, the
ranks, the settings of the environment, the versions, and this package as it is. Where something of
that has no form that other processes have too (an object, an array, a list), nothing is kept.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import pickle
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from distspmd.cache.entries import ensure_entry, find_entry
from distspmd.cache.own_text import own_text
from distspmd.codegen.build_record import Build
from distspmd.errors import CacheError, DistSPMDError
from distspmd.execution.program import Program, Started
from distspmd.frontend.from_numpy.reader.origins import is_library_module
from distspmd.lowering import Lowering
from distspmd.plans.heuristics import HEURISTICS
from distspmd.plans.machine import Machine
from distspmd.runtime.calls.form import Result
from distspmd.runtime.compilers import toolchain
from distspmd.runtime.compilers.scalapack import find_scalapack
from distspmd.runtime.launch.attendance import lasting_settings
from distspmd.runtime.notices import notice

_KIND, _FILE = "starts", "start.pickle"
_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)
_SETTINGS = ("DACE_", "CXX", "OMP_")
_PACKAGES = ("dace", "sympy", "numpy", "scipy", "mpi4py")
_OF_THE_RUN = frozenset(["random", "default_rng", "time", "perf_counter", "open", "input"])
"""Names in code whose meaning other runs may not share."""


class NotKept(Exception):
    """Something has no form that other processes have too."""


def key_of(
    function: Callable[..., Any], given: Mapping[str, Any], options: object, comm: Any
) -> str | None:
    """The key of a start; None where nothing is kept.

    Args:
        function: that is called.
        given: its arguments by name.
        options: all else that was asked for.
        comm: the ranks.
    """
    if os.environ.get("DISTSPMD_KEEP_STARTS", "1") == "0":
        return None
    try:
        parts = [_of(function), _of_arguments(given), _of_options(options), comm.Get_size()]
        text = repr((parts, _surroundings(), _settings_of_dace()))
    except (NotKept, OSError, DistSPMDError, metadata.PackageNotFoundError):
        return None
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def find(key: str) -> Started | None:
    """What was kept under a key, if all of it is there still."""
    try:
        folder = find_entry(_KIND, key)
        if folder is None:
            return None
        program, lowering = pickle.loads((folder / _FILE).read_bytes())
        library = find_entry("programs", program)
    except (CacheError, OSError, pickle.UnpicklingError, AttributeError, ImportError):
        return None
    if library is None:
        return None
    if lowering.searched:
        notice(f"{lowering.name}: {lowering.searched} (kept from an earlier start)")
    return Started(Build.load(library), lowering)


def keep(key: str, program: Program) -> None:
    """Keep a program under a key, if its record is all that other processes need."""
    build, lowering = program.build, program.lowering
    if not _says_all(program, build, lowering):
        return

    def make(folder: Path) -> list[str]:
        kept = Path(build.library).parts[-3], lowering
        (folder / _FILE).write_bytes(pickle.dumps(kept))
        return [_FILE]

    try:
        ensure_entry(_KIND, key, make)
    except (CacheError, OSError, pickle.PicklingError, TypeError, AttributeError):
        return  # another process makes it anew


def _says_all(program: Program, build: Build, lowering: Lowering) -> bool:
    form = lowering.call_form
    spaces = (*lowering.spaces, *lowering.fused)
    is_plain = all(isinstance(value, _PLAIN) for value in form.fixed.values())
    returned = form.returned if isinstance(form.returned, tuple | list) else (form.returned,)
    has_results = all(each is None or type(each) is Result for each in returned)
    is_compiled = not any(getattr(space, "python", "") for space in spaces)
    alone = program.binding is None and build.device is None and not form.parts
    return alone and is_plain and has_results and is_compiled and not program.tells


# -- keys -----------------------------------------------------------------------------------------


def _of(value: object) -> Any:
    """A value that code sees, as all processes write it."""
    if isinstance(value, _PLAIN):
        return type(value).__qualname__, repr(value)
    if isinstance(value, tuple) and type(value) is tuple:
        return tuple(map(_of, value))
    if isinstance(value, ModuleType) and is_library_module(value.__name__):
        return value.__name__
    if isinstance(value, FunctionType) and not is_library_module(str(value.__module__)):
        return tuple(_of_function(value, set()))
    kinds = type | BuiltinFunctionType | np.ufunc | FunctionType
    module = str(getattr(value, "__module__", None) or "numpy")
    if isinstance(value, kinds) and is_library_module(module):
        return module, getattr(value, "__qualname__", None) or getattr(value, "__name__", "")
    raise NotKept


def _of_function(function: FunctionType, seen: set[FunctionType]) -> Iterator[Any]:
    if function in seen:
        yield function.__qualname__
        return
    seen.add(function)
    if function.__kwdefaults__ or vars(function):
        raise NotKept
    yield function.__module__
    yield tuple(_of_code(function.__code__))
    yield _of(function.__defaults__)
    for name, kind in function.__annotations__.items():
        if isinstance(kind, str):
            kind = function.__globals__.get(kind, getattr(builtins, kind, NotKept))
        if not any(kind is each for each in _ANNOTATIONS):
            raise NotKept
        yield name, str(kind)
    known = function.__globals__
    inside = _free_variables(function)
    used = {name: known[name] for name in _names_in(function.__code__) if name in known}
    for name, value in sorted({**used, **inside}.items()):
        is_own = isinstance(value, FunctionType) and not is_library_module(str(value.__module__))
        found = tuple(_of_function(value, seen)) if is_own else _of(value)
        yield name, found


def _free_variables(function: FunctionType) -> dict[str, Any]:
    """What the variables of the functions around stand for."""
    cells = function.__closure__ or ()
    try:
        return dict(
            zip(function.__code__.co_freevars, [c.cell_contents for c in cells], strict=True)
        )
    except ValueError:  # one has no value yet
        raise NotKept from None


_ANNOTATIONS = (Any, np.ndarray, bool, int, float, complex, None)


def _of_code(code: CodeType) -> Iterator[Any]:
    if _OF_THE_RUN & {*code.co_names}:
        raise NotKept
    yield code.co_code
    yield code.co_names
    yield code.co_varnames
    yield code.co_freevars
    yield code.co_filename
    yield code.co_firstlineno
    yield code.co_linetable
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield tuple(_of_code(constant))
        elif isinstance(constant, frozenset):
            yield sorted(map(repr, constant))
        else:
            yield type(constant).__qualname__, repr(constant)


def _names_in(code: CodeType) -> set[str]:
    inner = (_names_in(each) for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names}.union(*inner)


def _of_arguments(given: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = []
    for name, value in sorted(given.items()):
        if type(value) is np.ndarray and not value.dtype.hasobject:
            found.append((name, repr(value.dtype), value.shape))
        elif isinstance(value, bool | int | float | complex):
            found.append((name, type(value).__qualname__, repr(value)))
        else:
            raise NotKept
    return found


def _of_options(value: object) -> Any:
    """Options of plain values; of those of the package's own kinds nothing is kept."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, Mapping):
        return [(str(name), _of_options(each)) for name, each in sorted(value.items())]
    if isinstance(value, tuple | list):
        return [_of_options(each) for each in value]
    raise NotKept


def _surroundings() -> Any:
    """The settings, the machine, the versions, the compiler, and this package as it is."""
    settings = sorted(pair for pair in os.environ.items() if pair[0].startswith(_SETTINGS))
    versions = [metadata.version(name) for name in _PACKAGES]
    files = [_stamp(Path(place) / ".dace.conf") for place in (Path.home(), Path.cwd())]
    tools = [str(toolchain.find_compiler()), str(toolchain.find_mpi()), str(toolchain.find_blas())]
    tools.append(str(find_scalapack()))
    own = own_text(), lasting_settings(), HEURISTICS, Machine.measured()
    return settings, sys.version, versions, _processor(), files, tools, own


def _settings_of_dace() -> str:
    """What this process has changed in them; nothing where nobody has imported DaCe."""
    if "dace" not in sys.modules:
        return "{}"
    from dace.config import Config

    return repr(Config._data.nondefaults())


def _processor() -> str:
    file = Path("/proc/cpuinfo")
    if not file.exists():
        return platform.processor()
    first = file.read_text().split("\n\n")[0]
    kinds = ("model name", "flags", "Features", "CPU part")
    return "".join(line for line in first.splitlines() if line.startswith(kinds))


def _stamp(file: Path) -> Any:
    try:
        seen = file.stat()
    except OSError:
        return None
    return str(file), seen.st_mtime_ns, seen.st_size
