"""Tiles of a redistribution that lie in the memory of a device: the plan moves them by a transport.

For the plan a tile is an array of NumPy over addresses of the device, which the host never follows:
plans need shapes, strides and addresses alone. The transport brings what they touch to the host.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from distspmd.errors import ArgumentError, DistSPMDError
from distspmd.layouts.layout import Layout
from distspmd.layouts.reductions import find_reduction
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.kinds import KINDS, Device, check_can_run, device_of_process
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.devices.transports import use_transport
from distspmd.runtime.devices.views import DeviceView, empty_like, is_on_device, view_of
from distspmd.runtime.engine.arrays import Unusable
from distspmd.runtime.engine.engine import Engine
from distspmd.runtime.watch.agreement import Agreement


@dataclass(frozen=True)
class DeviceTiles:
    """What a rank passes to a redistribution, as plans see it.

    Attributes:
        device: in whose memory one of both lies; None if there is none.
        tile: of the source.
        out: of the target.
        result: what the caller gets for ``out``.
    """

    device: Device | None
    tile: Any
    out: Any
    result: Any

    @classmethod
    def of(cls, rank: int, tile: Any, source: Any, target: Any, out: Any) -> DeviceTiles:
        """The tiles of a rank; what cannot be used is noted in its place, for all ranks to hear."""
        if not (is_on_device(tile) or is_on_device(out)):
            return cls(None, tile, out, None)
        try:
            device = _device_of(tile if is_on_device(tile) else out)
        except DistSPMDError as problem:
            unusable = Unusable(str(problem))
            return cls(None, unusable if is_on_device(tile) else tile, out, unusable)
        views = [_view(device, name, value) for name, value in (("tile", tile), ("out", out))]
        result = out
        if out is None and isinstance(target, Layout) and isinstance(views[0], DeviceView):
            result = _filled_like(tile, views[0], target, rank, device)
            views[1] = _view(device, "out", result)
        elif out is not None and isinstance(target, Layout) and target.partial:
            views[1] = Unusable(f"{target} is partial: operands arrive in new tiles of devices")
        found = [_addressed(view) for view in views]
        if all(isinstance(one, np.ndarray) for one in found) and np.may_share_memory(*found):
            found[1] = Unusable("it shares memory with the source tile; pass a copy of that")
        return cls(device, found[0], found[1], result)


def _device_of(value: Any) -> Device:
    """The device that holds an array.

    Raises:
        ArgumentError: no kind of device has such arrays.
        DeviceError, CompilationError, ToolchainError: its library cannot be made or used.
    """
    found = dlpack.device_of(value)
    kinds = {kind.dlpack_type: kind for kind in KINDS.values()}
    number = dlpack.CUDA if found is None or found[0] == dlpack.MANAGED else found[0]
    if number not in kinds:
        raise ArgumentError(f"it lies in the memory of {dlpack.name_of(found or (0, 0))}")
    check_can_run(kinds[number].name, compiles=False)
    return device_of_process(kinds[number])


def _view(device: Device, name: str, value: Any) -> Any:
    if not is_on_device(value):
        return value
    try:
        return view_of(name, value, device)
    except ArgumentError as problem:
        return Unusable(str(problem))


def _filled_like(source: Any, view: DeviceView, target: Layout, rank: int, device: Device) -> Any:
    """A new tile of the kind of another one; None where it would have no element.

    It has zeros, or the neutral element where the target is partial.
    """
    shape = target.shape(rank)
    if 0 in shape or view.lies.dtype is None:
        return None
    try:
        made = empty_like(source, tuple(shape), view.lies.dtype, device)
    except DistSPMDError as problem:
        return Unusable(str(problem))
    filled = np.zeros(shape, view.lies.dtype)
    reduction = find_reduction(target.partial.reduction) if target.partial else None
    if reduction and reduction.supports(filled.dtype):
        filled[...] = reduction.identity(filled.dtype)
    device.upload(filled, view_of("out", made, device).lies.address)
    return made


def _addressed(view: Any) -> Any:
    """An array of NumPy over addresses of the device, or why there is none."""
    if not isinstance(view, DeviceView):
        return view
    lies = view.lies
    if lies.dtype is None:
        return Unusable(f"it has the type {lies.type_name}, which NumPy has not")
    if view.needs_gradient:
        return Unusable("it requires a gradient; pass it with .detach()")
    steps = zip(lies.shape, lies.strides, strict=True)
    if view.size and any(n > 1 and stride <= 0 for n, stride in steps):
        return Unusable(f"it has the strides {list(lies.strides)} (elements); pass a copy of it")
    if view.size and lies.address % lies.dtype.alignment:
        return Unusable(f"its address is no multiple of {lies.dtype.alignment}; pass a copy of it")
    if not view.size:
        return np.zeros(lies.shape, lies.dtype)
    return np.asarray(_Addressed(lies))


class _Addressed:
    """What NumPy makes an array of without a look at its memory."""

    def __init__(self, lies: dlpack.Described) -> None:
        assert lies.dtype is not None
        self.__array_interface__ = {
            "version": 3,
            "shape": lies.shape,
            "typestr": lies.dtype.str,
            "strides": tuple(stride * lies.dtype.itemsize for stride in lies.strides),
            "data": (lies.address, lies.is_read_only),
        }


def transport_between(
    device: Device | None, engine: Engine, agreement: Agreement, memories: Collection[str]
) -> Transport | None:
    """A transport for the plan of an engine; all ranks call it.

    Where all tiles of all ranks lie on devices of one kind, ranks that hold none take part, too, if
    they have such a device: then tiles may go from device to device.

    Args:
        device: in whose memory tiles of this rank lie.
        engine: of the plan.
        agreement: of the ranks.
        memories: kinds of devices, and ``host``, in which ranks have tiles.

    Returns:
        None where the rank moves nothing by a device.
    """
    takes_part = len(memories) == 1
    if takes_part and device is None:
        try:
            (kind,) = memories
            check_can_run(kind, compiles=False)
            device = device_of_process(KINDS[kind])
        except DistSPMDError:
            takes_part = False
    held = [(plan, ends) for _, plan, ends in engine.plans]
    takes_part = all(agreement.allgather(takes_part))
    if device is None:
        return None
    table = staging_table(held, [], engine.rank)
    names = [name for name, _, _ in engine.plans]
    transport = Transport(device, engine.context, engine.end, table, names)
    if takes_part:
        use_transport(transport, engine, agreement, held)
    return transport


def run_on(
    transport: Transport,
    engine: Engine,
    pointers: Sequence[int | None],
    tiles: Sequence[Any],
) -> None:
    """Run the plan of an engine on tiles of which some are a device's; it has ended on return.

    An error of the device ends all ranks, with the message of this one.
    """
    transport.lend(0)
    for tile in tiles:
        if tile is not None and tile.size:
            transport.lend(tile.ctypes.data)  # its owner may free it behind the call
    transport.run(0, pointers)
    error = transport.device.error()
    if error:
        text = f"redistribute: the device says: {error}."
        engine.end(engine.context, text.encode())
