"""The modules, optimizers and scalers that a function closes over: in cells, globals, and self."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import nn
from torch.amp.grad_scaler import GradScaler

from distspmd.errors import UnsupportedProgram
from distspmd.runtime.devices.kinds import KINDS


@dataclass
class Closed:
    """Modules and optimizers, and their tensors, each once, under its first name.

    Attributes:
        modules: by the name under which the function knows them.
        optimizers: likewise.
        parameters: by their names in PyTorch, after the module's where there are several.
        buffers: likewise.
        owners: the module that holds a tensor, and the key there.
        names: name of each tensor, by its identity.
        others: further names of tensors that have several places, by the first.
        passing: names of buffers that no state dictionary has.
        scalers: of gradients, by the name under which the function knows them.
        outside: how to get tensors that no module has, by their names.
        leaves_gradients: whether the function makes gradients, and has no optimizer to use them.
    """

    modules: dict[str, nn.Module]
    optimizers: dict[str, torch.optim.Optimizer]
    parameters: dict[str, torch.Tensor] = field(default_factory=dict)
    buffers: dict[str, torch.Tensor] = field(default_factory=dict)
    owners: dict[str, tuple[nn.Module, str]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    others: dict[str, list[str]] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    scalers: dict[str, GradScaler] = field(default_factory=dict)
    outside: dict[str, Callable[[], Any]] = field(default_factory=dict)
    leaves_gradients: bool = False

    def prefix(self, root: str) -> str:
        """What the names in a module start with: its own, where several modules have tensors."""
        alone = len(self.modules) == 1 or root in self._holding
        return root if len(self._holding) > 1 or not alone else ""

    @cached_property
    def _holding(self) -> set[str]:
        """The modules that have tensors."""
        return {name for name, module in self.modules.items() if module.state_dict()}

    @property
    def places(self) -> dict[tuple[nn.Module, str], str]:
        """Name of the buffer at each place."""
        return {self.owners[name]: name for name in self.buffers if name in self.owners}

    def take(self, name: str, tensor: torch.Tensor, get: Callable[[], Any]) -> None:
        """Add a tensor that no module has; one that wants a gradient is a parameter."""
        while name in self.parameters or name in self.buffers:
            name += "_"
        self.names[id(tensor)] = name
        self.outside[name] = get
        if tensor.requires_grad:
            self.parameters[name] = tensor
        else:
            self.buffers[name] = tensor
            self.passing.add(name)

    def all_modules(self) -> Iterator[nn.Module]:
        """All modules, each once."""
        seen: set[int] = set()
        for root in self.modules.values():
            for module in root.modules():
                if id(module) not in seen:
                    seen.add(id(module))
                    yield module


def closed_over(function: Callable[..., Any]) -> Closed:
    """Find the modules, optimizers and scalers of a function.

    Raises:
        UnsupportedProgram: a module is on a device on which no program runs.
    """
    modules: dict[str, nn.Module] = {}
    optimizers: dict[str, torch.optim.Optimizer] = {}
    scalers: dict[str, GradScaler] = {}
    for name, value in _reachable(function, set()):
        if isinstance(value, nn.Module) and not _inside(value, modules):
            modules = {n: m for n, m in modules.items() if not _inside(m, {name: value})}
            modules[name] = value
        elif isinstance(value, torch.optim.Optimizer) and value not in optimizers.values():
            optimizers[name] = value
        elif isinstance(value, GradScaler) and value not in scalers.values():
            scalers[name] = value
    closed = Closed(modules, optimizers, scalers=scalers)
    for root, module in modules.items():
        for path, owner in module.named_modules(remove_duplicate=False):
            _take_tensors(closed, owner, closed.prefix(root), path)
    _check_device(closed)
    return closed


def _take_tensors(closed: Closed, owner: nn.Module, prefix: str, path: str) -> None:
    """Note the tensors that a module has itself."""
    tables = (owner._parameters, closed.parameters), (owner._buffers, closed.buffers)
    for table, found in tables:
        for key, tensor in table.items():
            if tensor is None:
                continue
            name = ".".join(filter(None, [prefix, path, key]))
            first = closed.names.setdefault(id(tensor), name)
            if first != name:
                closed.others.setdefault(first, []).append(name)
                continue
            closed.owners[name] = owner, key
            found[name] = tensor
            if key in owner._non_persistent_buffers_set:
                closed.passing.add(name)


DEVICES = ("cpu", *KINDS)
"""PyTorch's names of the devices on which tensors may be."""


def _check_device(closed: Closed) -> None:
    for name, tensor in {**closed.parameters, **closed.buffers}.items():
        if tensor.device.type not in (*DEVICES, "meta"):
            raise UnsupportedProgram(
                f"{name!r} is on the device {tensor.device}; programs run on {_told()}. Move the "
                "module: module.to('cpu')."
            )


def check_input(name: str, tensor: torch.Tensor) -> None:
    """Refuse an example on a device on which no program runs.

    Raises:
        UnsupportedProgram: it is.
    """
    if tensor.device.type not in DEVICES:
        raise UnsupportedProgram(
            f"the example of the argument {name!r} is on the device {tensor.device}; programs run "
            f"on {_told()}. Pass value.cpu()."
        )


def _told() -> str:
    return f"the CPU and, compiled with device=, on {' and '.join(map(repr, KINDS))}"


def _inside(module: nn.Module, roots: dict[str, nn.Module]) -> bool:
    return any(module is other for root in roots.values() for other in root.modules())


def _reachable(value: Any, seen: set[int], name: str = "") -> Iterator[tuple[str, Any]]:
    """Modules, optimizers and scalers that a value leads to, with the name of the last variable."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, (nn.Module, torch.optim.Optimizer, GradScaler)):
        yield name or "module", value
    for inner, item in _leads_to(value, name):
        yield from _reachable(item, seen, inner)


def functions_of(function: Callable[..., Any], closed: Closed) -> list[types.FunctionType]:
    """The function itself and others of the user that it leads to, forwards of modules included."""
    found: list[types.FunctionType] = []
    seen: set[int] = set()
    forwards = [type(module).forward for module in closed.all_modules()]
    waiting: list[Any] = [function, *forwards]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, (nn.Module, torch.optim.Optimizer)):
            continue
        seen.add(id(value))
        if isinstance(value, types.FunctionType):
            if str(value.__module__).startswith("torch"):
                continue
            found.append(value)
        waiting += [item for _, item in _leads_to(value, "")]
    return found


def _leads_to(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What a function, a bound method or a container holds, with names."""
    if isinstance(value, types.MethodType):
        yield "", value.__func__
        if isinstance(value.__self__, (nn.Module, torch.optim.Optimizer)):
            yield "self", value.__self__
        else:
            yield from vars(value.__self__).items()
    elif isinstance(value, torch.optim.Optimizer):  # which may wrap another one
        inner = vars(value).items()
        yield from ((key, x) for key, x in inner if isinstance(x, torch.optim.Optimizer))
    elif isinstance(value, functools.partial):
        yield from (("", item) for item in (value.func, *value.args, *value.keywords.values()))
    elif isinstance(value, types.FunctionType):
        yield from variables_of(value)
    elif isinstance(value, (list, tuple)):
        yield from ((f"{name}.{number}", item) for number, item in enumerate(value))
    elif isinstance(value, dict):
        yield from ((str(key), item) for key, item in dict.items(value))


def variables_of(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Free variables, globals and defaults of a function."""
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            yield name, cell.cell_contents
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(constant.co_names)
    if not function.__module__.startswith("torch"):
        for name in sorted(names & function.__globals__.keys()):
            item = function.__globals__[name]
            if not isinstance(item, types.ModuleType):
                yield name, item
    defaults = function.__defaults__ or ()
    for name, item in zip(
        code.co_varnames[: code.co_argcount][-len(defaults) :], defaults, strict=False
    ):
        yield name, item
