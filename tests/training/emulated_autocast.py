"""``torch.autocast("cuda")`` on the emulated device, for tests: with the operators that CUDA gets.

PyTorch without CUDA has the rules of its autocast all the same. Each operator that has one is run
on tensors without memory that pose as CUDA's; what that runs is then run on those of the emulated
device: conversions, and the forms that only CUDA has, as a softmax from halves to single precision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from training.emulated_torch import NAME

_KEY = "AutocastPrivateUse1"
_libraries: list[torch.library.Library] = []


class _Recorder(TorchDispatchMode):
    """What is run, in its order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, found))
        return found


@contextlib.contextmanager
def autocast_of_cuda() -> Iterator[None]:
    """Let ``torch.autocast("cuda")`` do on the emulated device what it does on one of CUDA."""
    _register()
    amp, supported = torch.cuda.amp.common, torch.cuda.is_bf16_supported
    missing = amp.amp_definitely_not_available
    amp.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_: True
    torch.set_autocast_enabled(NAME, True)
    try:
        yield
    finally:
        torch.set_autocast_enabled(NAME, False)
        amp.amp_definitely_not_available = missing
        torch.cuda.is_bf16_supported = supported


def _register() -> None:
    if _libraries:
        return
    others = torch.library.Library("_", "IMPL")
    others.fallback(torch.library.fallthrough_kernel, _KEY)
    aten = torch.library.Library("aten", "IMPL")
    for name in torch._C._dispatch_get_all_op_names():
        has = torch._C._dispatch_has_kernel_for_dispatch_key(name, "AutocastCUDA")
        if name.startswith("aten::") and has:
            packet, _, overload = name.removeprefix("aten::").partition(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            aten.impl(operator, _as_on_cuda(operator), _KEY)
    _libraries.extend([others, aten])


def _as_on_cuda(operator: Any) -> Any:
    def run(*arguments: Any, **named: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(
            torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))
        ):
            if not torch.is_autocast_enabled("cuda"):
                return operator(*arguments, **named)
            return _replayed(operator, arguments, named)

    return run


def _replayed(operator: Any, arguments: Any, named: Any) -> Any:
    leaves, structure = pytree.tree_flatten((arguments, named))
    with _disable_current_modes(), FakeTensorMode() as mode, torch.no_grad():
        posing = [_posing(leaf) for leaf in leaves]
        given, by_name = pytree.tree_unflatten(posing, structure)
        with _Recorder() as recorder:
            result = operator(*given, **by_name)
        del mode
    known = {
        id(fake): leaf
        for fake, leaf in zip(posing, leaves, strict=True)
        if isinstance(fake, torch.Tensor)
    }

    def own(value: Any) -> Any:
        if isinstance(value, torch.device):
            return torch.device(NAME)
        return known.get(id(value), value) if isinstance(value, torch.Tensor) else value

    for function, args, kwargs, found in recorder.calls:
        made = function(*pytree.tree_map(own, args), **pytree.tree_map(own, kwargs))
        flat = zip(pytree.tree_leaves(found), pytree.tree_leaves(made), strict=True)
        known |= {id(fake): real for fake, real in flat if isinstance(fake, torch.Tensor)}
    return pytree.tree_map(own, result)


def _posing(value: Any) -> Any:
    if isinstance(value, torch.device):
        return torch.device("cuda")
    if not isinstance(value, torch.Tensor):
        return value
    device = "cpu" if value.device.type == "cpu" else "cuda"
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=device)
