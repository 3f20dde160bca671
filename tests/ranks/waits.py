"""What is wrong on the emulated device when a wait is missing; each line names what was looked at.

Usage: waits.py arrays|tiles|program|moved|mirrored. Streams are lazy: what nobody waits
for does not happen.
"""

import ctypes
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices.arrays import LEGACY, DeviceArray, DeviceStream
from distspmd.runtime.devices.kinds import KINDS, device_of_process

N = 30
DEVICE = device_of_process(KINDS["emulated"])
GIVEN = np.arange(1.0, N + 1)


class Interface:
    """What another library's array says by ``__cuda_array_interface__`` alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__
        self.__dlpack_device__ = array.__dlpack_device__


class Capsule:
    """What another library's array says by ``__dlpack__`` alone."""

    def __init__(self, array: DeviceArray) -> None:
        self.__dlpack__ = array.__dlpack__
        self.__dlpack_device__ = array.__dlpack_device__


def empty() -> DeviceArray:
    made = DeviceArray(N, float, "emulated")
    made.write(np.zeros(N))
    return made


def queued(values: np.ndarray, stream: DeviceStream) -> DeviceArray:
    """An array that is written when somebody waits for a stream, which it names."""
    made = empty()
    made.write(values, stream=stream)
    return made


def read_on(stream: DeviceStream, array: DeviceArray) -> np.ndarray:
    """What a reader on a stream of its own finds, who waits for that alone."""
    found = np.zeros(array.shape, array.dtype)
    queue_read(stream, array, found)
    DEVICE.wait_for_stream(stream.handle)
    return found


def queue_read(stream: DeviceStream, array: DeviceArray, found: np.ndarray) -> None:
    code = DEVICE._library.distspmd_device_copy_on(
        ctypes.c_void_p(stream.handle), found.ctypes.data, array.address, found.nbytes
    )
    assert code == 0


def arrays() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    found = np.zeros(N)
    plain = DeviceArray.of(GIVEN, "emulated")
    DEVICE.download(plain.address, found)
    yield "a copy to the device and back", found, GIVEN
    stream = DeviceStream("emulated")
    yield "an array that a stream writes", queued(GIVEN, stream).numpy(), GIVEN
    waited = queued(GIVEN, stream)
    stream.wait()
    found = np.zeros(N)
    DEVICE.download(waited.address, found)
    yield "a stream that was waited for", found, GIVEN
    given_away = DeviceArray.of(GIVEN, "emulated")
    found, address = np.zeros(N), given_away.address
    queue_read(stream, given_away, found)
    del given_away
    assert empty().address == address, "memory of arrays is kept for others of their size"
    stream.wait()
    yield "what was queued to be read before somebody else had the memory", found, GIVEN


def tiles() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    held: list[Any] = []  # whatever is freed waits for the device
    whole = Layout.parse(f"[{N}]", Mesh(p=1))
    for name, wrap in (("DLPack", Capsule), ("the interface of CUDA", Interface)):
        stream, out = DeviceStream("emulated"), empty()
        tile = wrap(queued(GIVEN, stream))
        held += [tile, out]
        distspmd.redistribute(MPI.COMM_SELF, tile, whole, whole, out=out)
        yield f"a tile that a stream writes, by {name}", out.numpy(), GIVEN
    tile, out = empty(), empty()
    DEVICE.copy_on(LEGACY, tile.address, GIVEN)
    distspmd.redistribute(MPI.COMM_SELF, tile, whole, whole, out=out)
    yield "a tile that a program writes", read_on(DeviceStream("emulated"), out), GIVEN


def moved(by_host: bool = False) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Tiles of one rank or two, which a program writes just before they move; twice the same ones.

    What a transport knows of tiles it learns the first time, for which it waits for the program.
    """
    comm = MPI.COMM_WORLD
    texts = {1: ("[8, 8]", "[8, 8]"), 2: ("[4{p}8, 8]", "[8, 4{p}8]")}[comm.size]
    layouts = [Layout.parse(text, Mesh(p=comm.size)) for text in texts]
    places = [tuple(slice(*ends) for ends in layout.box(comm.rank)) for layout in layouts]
    whole = np.arange(1.0, 65).reshape(8, 8)
    given = [np.ascontiguousarray((whole + 64 * time)[places[0]]) for time in range(2)]
    tile = DeviceArray.of(given[0] * 0, "emulated")
    empty = np.zeros(whole[places[1]].shape)
    on_host = by_host and comm.rank == 1
    out: Any = empty if on_host else DeviceArray.of(empty, "emulated")
    for time, values in enumerate(given):
        DEVICE.copy_on(LEGACY, tile.address, values)
        distspmd.redistribute(comm, tile, *layouts, out=out)
        found = out if on_host else read_on(DeviceStream("emulated"), out)
        yield f"tiles that move, time {time}", found, (whole + 64 * time)[places[1]]


def chosen(x, limit):
    if np.sum(x) > limit:
        return x * 2
    return x * 3


def program() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    made = distspmd.frontend.numpy_program(chosen, x=GIVEN, limit=1.0)
    lowered = distspmd.lower(made, {})
    held: list[Any] = []  # whatever is freed waits for the device
    with distspmd.compile(lowered, MPI.COMM_SELF, device="emulated") as compiled:
        yield "a branch that the device's values choose", compiled(x=GIVEN, limit=10.0), GIVEN * 2
        yield "the other branch", compiled(x=GIVEN, limit=1000.0), GIVEN * 3
        x, wanted = DeviceArray.of(GIVEN, "emulated"), GIVEN * 2
        found = compiled(x=x, limit=10.0)
        held += [x, found]
        yield "a result that is read at once", read_on(DeviceStream("emulated"), found), wanted
        stream, x = DeviceStream("emulated"), empty()
        DEVICE.copy_on(stream.handle, x.address, GIVEN)
        found = compiled(x=x, limit=10.0, stream=stream)
        yield "an argument that a stream writes", found.numpy(), wanted


def main(parts: Any) -> None:
    comm = MPI.COMM_WORLD
    for name, found, wanted in parts:
        right = all(comm.allgather(np.array_equal(found, wanted)))
        if comm.rank == 0:
            print(f"{name}: {'right' if right else 'wrong'}", flush=True)
    if comm.rank == 0:
        print("done")


PARTS = {
    "arrays": arrays,
    "tiles": tiles,
    "program": program,
    "moved": moved,
    "mirrored": partial(moved, by_host=True),
}
main(PARTS[sys.argv[1]]())
