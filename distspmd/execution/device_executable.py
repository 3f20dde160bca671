"""The compiled program on a rank that works on a device: its arguments are copied there and back.

Arguments and results on which the device works have memory there, which stays between calls. What
only distributed memlets read or write stays in the caller's memory. Arrays that lie in the device's
memory already are used where they are.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from distspmd.codegen.build_record import Build
from distspmd.errors import ArgumentError, DeviceError, ToolchainError
from distspmd.execution.executable import Executable, PlanAndStorages
from distspmd.execution.signature import Signature
from distspmd.lowering import Lowering
from distspmd.plans.request_encoding import Fetch
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.devices import dlpack
from distspmd.runtime.devices.arrays import DeviceArray, free_kept
from distspmd.runtime.devices.kinds import KINDS, Device, check_can_run
from distspmd.runtime.devices.products import VARIABLE, find_products
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.devices.transports import Chosen, use_transport
from distspmd.runtime.devices.views import (
    DeviceView,
    empty_like,
    is_on_device,
    returned_like,
    view_of,
    wait_for,
)
from distspmd.runtime.watch.agreement import Agreement


class DeviceExecutable(Executable):
    """A loaded program for a device, ready to be called; all ranks make it together.

    Raises:
        CompilationError: on all ranks; one of them cannot load the library.
        DeviceError: on all ranks; the device of one of them has no memory for the program.
    """

    def __init__(self, built: Build, lowering: Lowering, agreement: Agreement) -> None:
        assert built.device is not None
        free_kept()  # a program is loaded into as much memory as there is
        self._transport: Transport | None = None
        self._memory: dict[int, int] = {}
        self._nothing_there = 0
        self._nbytes: dict[int, int] = {}
        self._device = Device(Path(built.device.library), built.device.kind)
        self._rank, self._agreement = agreement.rank, agreement
        self._takes_part = agreement.rank < lowering.ranks
        self.transport = Chosen()
        """How tiles move between devices, where they can."""
        super().__init__(built, lowering, agreement)
        signature = Signature.of(built, lowering, agreement.rank)
        self._name = signature.program
        self._read: set[int] = set()
        self._written: set[int] = set()
        self._anywhere: set[int] = set()
        error: Exception | None = None
        try:
            self._check_started(built)
            self._allocate(built, signature)
            if built.device.reduces:
                self._device.prepare_reductions()
            if built.device.products:
                self._device.load_products(_library_of_products(built.device.kind))
        except DeviceError as problem:
            error = problem
        agreement.check(error)

    def _context(self, plans: Sequence[PlanAndStorages], fetches: Sequence[Fetch]) -> int:
        table = staging_table(
            [(plan, storages) for _, plan, storages in plans],
            [(fetch.plan, fetch.storages) for fetch in fetches],
            self._rank,
        )
        engine = self.engine
        names = [*(name for name, _, _ in plans), *(fetch.name for fetch in fetches)]
        self._transport = Transport(self._device, engine.context or 0, engine.end, table, names)
        held = [(plan, storages) for _, plan, storages in plans]
        self.transport = use_transport(
            self._transport, engine, self._agreement, held, self._takes_part
        )
        return self._transport.context

    def _load(self, built: Build, agreement: Agreement) -> ctypes.CDLL:
        library = super()._load(built, agreement)
        self._last_error = library["__dace_gpu_last_error"]
        self._last_error.argtypes = [ctypes.c_void_p]
        self._last_error.restype = ctypes.c_int
        return library

    def _check_started(self, built: Build) -> None:
        """See to it that the program has its memory on the device.

        Raises:
            DeviceError: it has not.
        """
        text = self._error() if self._handle else "it does not start"
        if text:
            raise DeviceError(
                f"{built.name} cannot be made ready on the device: {text}. If its memory is short, "
                "give the program more ranks with a device each, or smaller arrays."
            )

    def _allocate(self, built: Build, signature: Signature) -> None:
        """Memory for the arguments and results of this rank."""
        assert built.device is not None
        # kernels of a rank without an array write the sum over nothing there, as those of the host
        self._nothing_there = self._device.allocate(self._nothing.nbytes)
        for parameter in (*signature.parameters.values(), *signature.results):
            position = parameter.position
            is_result = parameter in signature.results
            if not is_result:
                self._read.add(position)
            if is_result or parameter.is_written:
                self._written.add(position)
            if parameter.name in built.device.anywhere:
                self._anywhere.add(position)
            if parameter.name not in built.device.arguments:
                continue
            if not parameter.is_here:
                self.call[position] = self._nothing_there
                continue
            self._nbytes[position] = int(np.prod(parameter.shape)) * parameter.dtype.itemsize
            self._own(position)

    def _own(self, position: int) -> int:
        """The program's memory for an argument on which the device works."""
        if position not in self._memory:
            self._memory[position] = self._device.allocate(self._nbytes[position])
        self.call[position] = self._memory[position]
        return self._memory[position]

    def _error(self) -> str:
        """What went wrong on the device since somebody asked; empty if nothing did."""
        said = self._device.error()
        code: int = self._last_error(self._handle)
        return self._device.describe(code) if code else said

    def on_device(self, bound: dict[str, Any], stream: Any) -> dict[str, Any]:
        """Arguments, with views of those that lie in the device's memory.

        Raises:
            ArgumentError: one lies on another device, or cannot be handed out; or ``stream`` is
                none of the device.
        """
        if stream is not None:
            wait_for(self._device, stream)
        found: dict[str, Any] = {}
        waited = False
        for name, value in bound.items():
            if not is_on_device(value):
                found[name] = value
                continue
            is_tensor = dlpack.is_tensor(value)
            found[name] = view_of(name, value, self._device, not (is_tensor and waited))
            waited = waited or is_tensor
        return found

    def new_results(self, signature: Signature, arrays: Mapping[int, Any]) -> list[Any]:
        """New arrays for the results that this rank gets, of the kind of what it passes."""
        passed = [array for array in arrays.values() if isinstance(array, DeviceView)]
        if not passed:
            return signature.allocate()
        return [
            empty_like(passed[0].source, p.shape, p.dtype, self._device) if p.is_here else None
            for p in signature.results
        ]

    def handing(self, arrays: Mapping[int, Any]) -> Callable[[Any], Any]:
        """A result is of the kind of the first argument of the device."""
        for array in arrays.values():
            if isinstance(array, DeviceView):
                if isinstance(array.source, DeviceArray):
                    break
                return partial(returned_like, array.source)
        return super().handing(arrays)

    def new_tile(self, position: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """Zeros in the memory where the program works with an argument.

        Raises:
            DeviceError: the device has no memory for them.
        """
        if not (position in self._nbytes or position in self._anywhere):
            return super().new_tile(position, shape, dtype)
        return DeviceArray.of(np.zeros(shape, dtype), self._device.kind)

    def memory_of(self, result: Any) -> Any:
        """What :meth:`run` takes for a new array of a result."""
        if isinstance(result, np.ndarray):
            return result
        return view_of("the result", result, self._device)

    def run(self, arrays: Mapping[int, Any]) -> None:
        """Call the compiled function with the user's arrays, by their positions.

        An error of the device ends all ranks, with the message of this one.
        """
        host: dict[int, NDArray[Any]] = {}
        copied: dict[int, NDArray[Any]] = {}  # arrays of the host on which the device works
        fetched: dict[int, DeviceView] = {}  # arrays of the device on which the host works
        for position, array in arrays.items():
            if isinstance(array, DeviceView):
                if position in self._nbytes or position in self._anywhere:
                    self._lend(position, array)
                else:
                    fetched[position], host[position] = array, array.numpy()
            elif position in self._nbytes:
                copied[position] = array
                self._upload(position, array)
            else:
                host[position] = array
        self._tell_what_is_lent()
        super().run(host)
        error = self._error()
        if error:
            self._end(error)
        for position in self._written & copied.keys():
            self._device.download(self._memory[position], copied[position])
        for position in self._written & fetched.keys():
            self._device.upload(host[position], fetched[position].lies.address)

    def _upload(self, position: int, array: NDArray[Any]) -> None:
        """Give the device a copy of an argument of the host, or room for a result."""
        try:
            own = self._own(position)
        except DeviceError as problem:
            self._end(str(problem))
            return
        if position in self._read:
            self._device.upload(array, own)

    def _lend(self, position: int, array: DeviceView) -> None:
        """Let the program work where the caller's array lies; memory of its own is given back."""
        if position in self._memory:
            self._device.free(self._memory.pop(position))
        self.call[position] = array.lies.address if array.size else self._nothing_there

    def _tell_what_is_lent(self) -> None:
        """Arguments may lie elsewhere in the next call, so that nobody may keep their memory."""
        if self._transport is not None and "pulls" in self.transport.of_plans:
            self._transport.lend(0)
            for position in self._nbytes.keys() | self._anywhere:
                self._transport.lend(self.call[position] or 0)

    def pulls(self) -> int:
        """Calls of plans so far in which ranks copied out of each other's devices."""
        return self._transport.pulls() if self._transport else 0

    def messages(self) -> int:
        """Calls of plans so far whose messages went from device to device."""
        return self._transport.messages() if self._transport else 0

    def in_pieces(self) -> int:
        """Calls of plans so far whose tiles went through pinned memory in pieces."""
        return self._transport.in_pieces() if self._transport else 0

    def _end(self, error: str) -> None:
        message = f"{self._name}: the device says: {error}."
        self.engine.end(self.engine.context, message.encode())

    def _free(self) -> None:
        super()._free()
        for address in self._memory.values():
            self._device.free(address)
        self._memory.clear()
        if self._nothing_there:
            self._device.free(self._nothing_there)
            self._nothing_there = 0
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _unload(self) -> None:
        """Nothing: the driver of the device knows kernels of the library until the process ends."""


def _library_of_products(kind: str) -> str:
    """The path of the library of products of a kind of device, on this rank.

    Raises:
        DeviceError: there is none.
    """
    try:
        return find_products(KINDS[kind])
    except ToolchainError as problem:
        raise DeviceError(
            f"the program was compiled with a library of products, but here {problem}. Install one "
            f"on all nodes, or set {VARIABLE}=none to compile without."
        ) from problem


def check_devices(agreement: Agreement, device: str) -> None:
    """See to it that all ranks can run on a device, and the first one compile for it.

    Raises:
        ArgumentError: there is no such kind of device.
        DeviceError: on all ranks; one of them cannot.
    """
    error: Exception | None = None
    try:
        check_can_run(device, compiles=agreement.rank == 0)
    except (ArgumentError, DeviceError) as problem:
        error = problem
    agreement.check(error)
