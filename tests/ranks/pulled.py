"""What is wrong when a wait of pulls is missing: two ranks exchange tiles of the emulated device.

Streams are lazy: what nobody waits for does not happen. Sources are written just before the move,
by the program's stream, and again just behind it.
"""

import ctypes

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.plans.encoding import Storage
from distspmd.plans.staged_boxes import staging_table
from distspmd.runtime.devices.arrays import LEGACY, DeviceArray, DeviceStream
from distspmd.runtime.devices.kinds import KINDS, device_of_process
from distspmd.runtime.devices.transport import Transport
from distspmd.runtime.devices.transports import use_transport
from distspmd.runtime.engine.engine import Engine, runnable
from distspmd.runtime.watch.agreement import Agreement

comm = MPI.COMM_WORLD
DEVICE = device_of_process(KINDS["emulated"])
ROWS, COLUMNS = (Layout.parse(text, Mesh(p=2)) for text in ("[4{p}8, 8]", "[8, 4{p}8]"))

whole = np.arange(64.0).reshape(8, 8)
mine = np.ascontiguousarray(whole[4 * comm.rank : 4 * comm.rank + 4])
wanted = whole[:, 4 * comm.rank : 4 * comm.rank + 4]
plan = runnable(distspmd.plan(ROWS, COLUMNS, np.dtype(float)))
ends = [Storage.of(layout.box(comm.rank)) for layout in (ROWS, COLUMNS)]
engine = Engine(comm, [("move", plan, ends)])
transport = Transport(
    DEVICE, engine.context, engine.end, staging_table([(plan, ends)], [], comm.rank)
)
chosen = use_transport(transport, engine, Agreement.of(comm), [(plan, ends)])
source, target = DeviceArray.of(mine * 0, "emulated"), DeviceArray.of(wanted * 0, "emulated")
transport.run(0, (source.address, target.address))  # from here on addresses are known
DEVICE.copy_on(LEGACY, source.address, mine)
transport.run(0, (source.address, target.address))
DEVICE.copy_on(LEGACY, source.address, mine * 0 - 1)
DEVICE.wait_for_stream(LEGACY)
reader, found = DeviceStream("emulated"), np.zeros(wanted.shape)
DEVICE._library.distspmd_device_copy_on(
    ctypes.c_void_p(reader.handle), found.ctypes.data, target.address, found.nbytes
)
DEVICE.wait_for_stream(reader.handle)
counted = (transport.pulls(), transport.messages(), transport.in_pieces())
ways = {"pulls": (2, 0, 0), "staged": (0, 0, 2)}
assert counted == ways.get(chosen.name, (0, 2, 0))
everywhere = comm.allgather(bool(np.array_equal(found, wanted)))
if comm.rank == 0:
    print(f"what was pulled: {'right' if all(everywhere) else 'wrong'}", flush=True)
