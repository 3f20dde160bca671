"""Tensors of PyTorch in the memory of the emulated device, for tests: ``module.to("emulated")``.

PyTorch lets Python play a device. Tensors lie in the memory of ours, which the host cannot touch;
what torch itself computes with them, as in ``zeros_like``, is computed by the host with copies.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

import distspmd
from distspmd.runtime.devices.dlpack import Described
from distspmd.runtime.devices.kinds import Device, device_kind, device_of_process

NAME = "emulated"
_libraries = []
_FROM_HALVES = ("aten._softmax.default", "aten._log_softmax.default")


def register() -> None:
    """Let PyTorch know the device, once in a process."""
    if _libraries:
        return
    _setup_privateuseone_for_python_backend(NAME)
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(_on_host, "PrivateUse1")
    aten = torch.library.Library("aten", "IMPL")
    for name, function in {
        "empty.memory_format": _empty,
        "empty_strided": _empty_strided,
        "as_strided": _as_strided,
        "view": _view,
        "view.dtype": _view_as,
        "_copy_from": _copy_from,
        "_local_scalar_dense": lambda tensor: tensor.cpu().item(),
    }.items():
        aten.impl(name, function, "PrivateUse1")
    _libraries.extend([fallback, aten])


def _device() -> Device:
    return device_of_process(device_kind(NAME))


def _empty(size: Any, *, dtype: Any = None, **_: Any) -> torch.Tensor:
    kind = dtype or torch.get_default_dtype()
    made = distspmd.runtime.DeviceArray(prod(size) * kind.itemsize, "uint8", NAME)
    return _lies(made.address, size, None, kind, made)


def _empty_strided(size: Any, stride: Any, *, dtype: Any = None, **named: Any) -> torch.Tensor:
    reach = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    made = _empty([reach if prod(size) else 0], dtype=dtype)
    return _as_strided(made, size, stride)


def _as_strided(tensor: Any, size: Any, stride: Any, offset: Any = None) -> torch.Tensor:
    behind = 0 if offset is None else offset - tensor.storage_offset()
    address = tensor.data_ptr() + behind * tensor.element_size()
    return _lies(address, size, stride, tensor.dtype, tensor)


def _view(tensor: Any, size: Any) -> torch.Tensor:
    seen = torch.empty_strided(tensor.shape, tensor.stride(), device="meta").view(size)
    return _lies(tensor.data_ptr(), seen.shape, seen.stride(), tensor.dtype, tensor)


def _view_as(tensor: Any, dtype: torch.dtype) -> torch.Tensor:
    return _lies(tensor.data_ptr(), tensor.shape, tensor.stride(), dtype, tensor)


def _lies(address: int, size: Any, stride: Any, dtype: torch.dtype, keep: Any) -> torch.Tensor:
    """A tensor over memory of the device."""
    bits = {torch.bfloat16: torch.uint16}.get(dtype, dtype)
    lies = Described(
        address,
        tuple(size),
        tuple(stride or torch.empty(size, device="meta").stride()),
        torch.empty(0, dtype=bits).numpy().dtype,
        False,
        keep,
        "bfloat16" if bits is not dtype else "",
    )
    return torch.from_dlpack(_HandedOut(lies))


class _HandedOut:
    """What PyTorch takes a tensor from."""

    def __init__(self, lies: Described) -> None:
        self._lies = lies

    def __dlpack_device__(self) -> tuple[int, int]:
        return _device().dlpack_device

    def __dlpack__(self, **_: Any) -> Any:
        from distspmd.runtime.devices import dlpack

        return dlpack.hand_out(self._lies, self.__dlpack_device__(), _device().letting_go, False)


def _copy_from(source: torch.Tensor, target: torch.Tensor, non_blocking: bool = False) -> Any:
    values = _to_host(source).to(target.dtype).broadcast_to(target.shape)
    if target.device.type == "cpu":
        return target.copy_(values)
    flat = _memory(target)  # with what lies between its elements
    flat.as_strided(target.shape, target.stride(), 0).copy_(values)
    _device().upload(_bytes(flat), target.data_ptr())
    return target


def _memory(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of the memory from the first element of a tensor to its last one."""
    reach = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    flat = torch.empty(reach if tensor.numel() else 0, dtype=tensor.dtype)
    if tensor.numel():
        _device().download(tensor.data_ptr(), _bytes(flat))
    return flat


def _to_host(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor on the host."""
    if tensor.device.type == "cpu":
        return tensor
    return _memory(tensor).as_strided(tensor.shape, tensor.stride(), 0)


def _bytes(tensor: torch.Tensor) -> Any:
    return tensor.reshape(-1).view(torch.uint8).numpy()


def _on_host(operator: Any, *arguments: Any, **named: Any) -> Any:
    """Any other operator: on copies, which are copied back where it writes."""
    leaves, structure = pytree.tree_flatten((arguments, named))
    copies = [_to_host(x).clone() if isinstance(x, torch.Tensor) else x for x in leaves]
    copies = [torch.device("cpu") if isinstance(x, torch.device) else x for x in copies]
    given, by_name = pytree.tree_unflatten(copies, structure)
    if str(operator) in _FROM_HALVES and given[2]:  # only CUDA has this form
        given = (given[0].float(), given[1], False)
    result = operator(*given, **by_name)
    own = {id(copy): leaf for copy, leaf in zip(copies, leaves, strict=True)}
    if operator._schema.is_mutable:  # also in lists, or beside the result
        for copy, leaf in zip(copies, leaves, strict=True):
            if isinstance(leaf, torch.Tensor) and leaf.device.type == NAME:
                leaf.copy_(copy)

    def returned(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in own:
            return own[id(value)].copy_(value)
        return value.to(NAME)

    return pytree.tree_map(returned, result)
