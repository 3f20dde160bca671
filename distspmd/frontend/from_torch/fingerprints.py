"""What a function of torch leads to, as a checksum that another process computes alike.

Code and values of the user's own modules go into it wherever the function can reach them; libraries
go in with the text of their modules and with what these hold, torch and Python by their versions.
What cannot be told alike in two processes is refused: nothing is known of it.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import platform
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._library.custom_ops import CustomOpDef
from torch.amp.grad_scaler import GradScaler

from distspmd.frontend.from_torch.scalers import READ_AT_CALLS

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)
_OF_TORCH = (torch.dtype, torch.device, torch.layout, torch.memory_format)
_BY_VERSION = ("torch", "numpy", "dace", "sympy", "networkx", "mpi4py", "distspmd")
"""Packages whose versions say what is in them."""
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
_INSTALLED = tuple(
    Path(path).resolve() for key, path in sysconfig.get_paths().items() if key.endswith("lib")
)
_DRAWN = re.compile("[0-9a-f]{32}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What libraries call a session or a machine, and draw anew in each process."""
_WRAPPERS = (staticmethod, classmethod, types.MethodType)
_NATIVE = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
)


class NotKnown(Exception):
    """A value of which another process cannot tell whether it has the same."""


@functools.cache
def origin(module: str) -> str:
    """Whose a module is: ``"versions"``, for it changes with them, ``"library"``, or ``"user"``."""
    if module.partition(".")[0] in (*_BY_VERSION, *sys.builtin_module_names):
        return "versions"
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None:
        return "user" if module == "__main__" or module not in sys.modules else "versions"
    path = Path(file).resolve()
    if any(part in ("site-packages", "dist-packages") for part in path.parts):
        return "library"
    return "versions" if _STANDARD in path.parents else "user"


def texts() -> dict[str, tuple[str, str]]:
    """Files of imported modules that no version says, with their checksums, by their names."""
    found = {}
    for name in sorted(sys.modules):
        file = getattr(sys.modules[name], "__file__", None)
        if file and origin(name) != "versions" and Path(file).is_file():
            found[name] = (file, checksum(Path(file)))
    return found


def checksum(file: Path) -> str:
    """Of a file's content; of what is compiled, of its size and time."""
    try:
        if file.suffix == ".py":
            return hashlib.sha256(file.read_bytes()).hexdigest()
        known = file.stat()
    except OSError as error:
        raise NotKnown(f"the file {file} cannot be read: {error}") from None
    return f"{known.st_size} {known.st_mtime_ns}"


class Fingerprint:
    """A checksum of values, and of what they lead to.

    Args:
        tensors: names of those whose values do not matter, by their identity.
    """

    def __init__(self, tensors: Mapping[int, str]) -> None:
        self._digest = hashlib.sha256()
        self._tensors = tensors
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no identity is given twice
        self._classes: set[type] = set()
        self.packages: set[str] = set()
        """The libraries that are led to."""

    def hexdigest(self) -> str:
        """The checksum of all that was added."""
        return self._digest.hexdigest()

    def add(self, value: Any) -> None:
        """Add a value.

        Raises:
            NotKnown: nobody can say what it is elsewhere.
        """
        kind = type(value)
        if kind in _PLAIN or isinstance(value, _OF_TORCH):
            return self._say(kind.__name__, repr(value))
        if id(value) in self._seen:
            return self._say("again", self._seen[id(value)])
        self._seen[id(value)] = len(self._kept)
        self._kept.append(value)
        for kinds, write in self._WRITERS:
            if isinstance(value, kinds):
                return write(self, value)
        return self._object(value)

    def _say(self, *words: Any) -> None:
        self._digest.update(repr(words).encode())

    # -- data -----------------------------------------------------------------------------------

    def _tensor(self, value: torch.Tensor) -> None:
        at = (str(value.device), str(value.dtype), tuple(value.shape), value.requires_grad)
        self._say("tensor", self._tensors.get(id(value)), type(value).__qualname__, at)
        if value.layout != torch.strided:
            raise NotKnown(f"a tensor of the layout {value.layout}")
        self._say(value.stride(), value.is_leaf and value.grad is not None)
        if id(value) not in self._tensors and not value.is_meta:
            self._array(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
        for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
            self.add(getattr(value, name, None))

    def _array(self, value: np.ndarray[Any, Any]) -> None:
        if value.dtype.hasobject:
            raise NotKnown("an array of objects")
        self._say("array", str(value.dtype), value.shape)
        self._digest.update(np.ascontiguousarray(value).tobytes())

    def _items(self, value: Any) -> None:
        self._class(type(value))
        self._say(len(value))
        for item in value:
            self.add(item)
        self.add(getattr(value, "__dict__", None))

    def _mapping(self, value: Any) -> None:
        self._class(type(value))
        self._say(len(value))
        for key, item in value.items():
            self.add(key)
            self.add(item)
        for name in ("__dict__", "default_factory"):
            self.add(getattr(value, name, None))

    def _set(self, value: Any) -> None:
        if not all(type(item) in _PLAIN for item in value):
            raise NotKnown("a set of objects, which has no order")
        self._say(type(value).__name__, sorted(map(repr, value)))

    def _object(self, value: Any) -> None:
        """An object by its class and its state, as it would be copied."""
        own = type(value)
        if isinstance(value, torch.nn.Module | torch.optim.Optimizer | types.SimpleNamespace):
            self._class(own)
            return self._mapping(vars(value))
        if isinstance(value, GradScaler):
            self._class(own)
            return self._mapping({k: v for k, v in vars(value).items() if k not in READ_AT_CALLS})
        try:
            reduced = value.__reduce_ex__(4)
        except Exception as error:
            raise NotKnown(f"a {own.__module__}.{own.__qualname__}: {error}") from None
        self._class(own)
        if isinstance(reduced, str):
            return self._say("global", reduced)
        of_library = origin(own.__module__) == "library"
        for part in reduced:
            if of_library and type(part) is dict:  # Python's own hashes differ in each process
                part = {k: v for k, v in part.items() if not str(k).endswith("_hash")}
            self.add(list(part) if isinstance(part, Iterator) else part)
        return None

    # -- code -----------------------------------------------------------------------------------

    def _module(self, value: types.ModuleType) -> None:
        self._say("module", value.__name__)

    def _native(self, value: Any) -> None:
        self._say("native", getattr(value, "__module__", None), value.__qualname__)
        own = getattr(value, "__self__", None)
        if own is not None and not isinstance(own, types.ModuleType | type):
            self.add(own)

    def _wrapped(self, value: Any) -> None:
        self._say(type(value).__name__)
        self.add(value.__func__)
        self.add(getattr(value, "__self__", None))

    def _property(self, value: property) -> None:
        self._say("property")
        for function in (value.fget, value.fset, value.fdel):
            self.add(function)

    def _function(self, value: types.FunctionType) -> None:
        """By its code, what it holds, and, of a user's, by the global values that it names."""
        whose = origin(value.__module__ or "")
        self._say("function", value.__module__, value.__qualname__)
        self._note(value.__module__)
        self.add(value.__defaults__)
        self.add(value.__kwdefaults__)
        for cell in value.__closure__ or ():
            self._cell(cell, whose)
        self.add(value.__code__)
        if whose != "user":
            return
        held = value.__globals__
        names = sorted(_names(value.__code__))
        for name in names:
            if name in held:
                self._say("variable", name)
                self.add(held[name])
        for found in [held[n] for n in names if isinstance(held.get(n), types.ModuleType)]:
            for name in names:
                item = vars(found).get(name)
                if item is not None and not isinstance(item, types.ModuleType):
                    self._of_module(found, name, item)

    def _cell(self, cell: Any, whose: str) -> None:
        """What a function closes over; of a library's, what it made when it was imported."""
        try:
            self.add(_content(cell))
        except NotKnown:
            if whose != "library":
                raise
            self._say("not known")

    def _of_module(self, module: types.ModuleType, name: str, item: Any) -> None:
        """A value that a function may read as ``module.name``."""
        if origin(module.__name__) == "user" or type(item) in _PLAIN:
            self._say("of", module.__name__, name)
            self.add(item)
        elif isinstance(item, types.FunctionType):
            self.add(item)

    def _custom_operator(self, value: CustomOpDef) -> None:
        """By its schema and by what is traced of it; what it runs on a device is in no program."""
        self._say("custom operator", value._qualname, value._schema, value._autocast_dtype)
        for function in (value._abstract_fn, value._setup_context_fn, value._backward_fn):
            self.add(function)

    def _code(self, value: types.CodeType) -> None:
        self._say("code", value.co_code, value.co_names, value.co_varnames, value.co_freevars)
        self._say(value.co_flags, value.co_exceptiontable)
        for constant in value.co_consts:
            if isinstance(constant, frozenset):
                self._say(sorted(map(repr, constant)))
            else:
                self.add(constant)

    def _class(self, value: type) -> None:
        """By its name; a class that is not torch's or Python's also by its methods."""
        self._say("class", value.__module__, value.__qualname__)
        whose = origin(value.__module__)
        if whose == "versions" or value in self._classes:
            return
        self._classes.add(value)
        self._note(value.__module__)
        for base in value.__bases__:
            self._class(base)
        for name, item in sorted(vars(value).items()):
            if name in ("__dict__", "__weakref__", "__doc__", "__abstractmethods__", "_abc_impl"):
                continue
            self._say("attribute", name)
            if whose == "user" or isinstance(item, (*_PLAIN, types.FunctionType, *_WRAPPERS)):
                self.add(item)
            else:
                self._say(type(item).__qualname__)

    def _note(self, module: str | None) -> None:
        if module and origin(module) == "library":
            self.packages.add(module.partition(".")[0])

    _WRITERS: tuple[tuple[Any, Callable[..., None]], ...] = (
        (torch.Tensor, _tensor),
        (np.ndarray, _array),
        (np.generic, lambda self, value: self._array(np.asarray(value))),
        (enum.Enum, lambda self, value: self._say(str(type(value)), value.name)),
        ((tuple, list), _items),
        (dict, _mapping),
        ((set, frozenset), _set),
        (CustomOpDef, _custom_operator),
        (types.CodeType, _code),
        (types.FunctionType, _function),
        (_WRAPPERS, _wrapped),
        (_NATIVE, _native),
        (property, _property),
        (type, _class),
        (types.ModuleType, _module),
    )


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return "not assigned"


def _names(code: types.CodeType) -> set[str]:
    """Names that code reads, and that of functions in it."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _names(constant)
    return found


def held_by(packages: Collection[str]) -> dict[str, str]:
    """Of the modules of some libraries that are imported: checksums of what they hold.

    That are numbers, switches, and code, which somebody may have replaced.
    """
    found = {}
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] in packages:
            depth = 3 if type(module) is types.ModuleType else 0  # others look up what they have
            told = [
                (key, _told(item, depth))
                for key, item in sorted(vars(module).items())
                if not key.startswith("__")
            ]
            found[name] = hashlib.sha256(repr(told).encode()).hexdigest()
    return found


def _told(value: Any, depth: int) -> tuple[Any, ...]:
    """What a module of a library holds, without following where it leads."""
    if isinstance(value, str) and _DRAWN.fullmatch(value):
        return ("drawn",)
    if type(value) in _PLAIN or isinstance(value, _OF_TORCH):
        return (repr(value),)
    if isinstance(value, types.FunctionType):
        return value.__module__, value.__qualname__, hash_of(value.__code__)
    if isinstance(value, type):
        return value.__module__, value.__qualname__
    if depth and type(value) in (tuple, list):
        return tuple(_told(item, depth - 1) for item in value)
    if depth and type(value) is dict:
        return tuple((_told(k, depth - 1), _told(i, depth - 1)) for k, i in value.items())
    return (type(value).__qualname__,)


def hash_of(code: types.CodeType) -> str:
    """A checksum of code."""
    found = Fingerprint({})
    found.add(code)
    return found.hexdigest()


@functools.cache
def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def surroundings() -> tuple[Any, ...]:
    """Versions, and the settings of torch that decide what is traced."""
    return (
        sys.version,
        platform.platform(),
        *map(_version, _BY_VERSION),
        (torch.__version__, torch.version.git_version),
        torch.get_default_dtype(),
        str(torch.get_default_device()),
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu"),
        torch.get_float32_matmul_precision(),
        torch.backends.mha.get_fastpath_enabled(),
    )


def replaced_in_torch() -> list[tuple[str, str, types.FunctionType]]:
    """Functions in modules of torch that somebody else has put there."""
    root = str(Path(torch.__file__).parent)
    found = []
    for name in ("torch", "torch.nn.functional", "torch.nn.init", "torch.optim"):
        for key, item in sorted(vars(sys.modules[name]).items()):
            if isinstance(item, types.FunctionType):
                file = inspect.unwrap(item).__code__.co_filename
                if not file.startswith(root) and str(_STANDARD) not in file:
                    found.append((name, key, item))
    return found
