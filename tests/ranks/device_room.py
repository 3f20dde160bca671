"""What a process keeps of the device's memory is freed where a transport finds none.

For each of the first allocations of a transport one call fails as if the device were full.
"""

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts.layout import Layout
from distspmd.layouts.mesh import Mesh
from distspmd.runtime.devices import arrays as device_arrays
from distspmd.runtime.devices.kinds import KINDS, device_of_process

COLUMNS = 8
comm = MPI.COMM_WORLD
device = device_of_process(KINDS["emulated"])
fail = device._library.distspmd_emulated_fail
freed = []
for count in range(1, 12):
    rows = comm.size * (count + 2)  # a redistribution of its own
    mesh = Mesh(p=comm.size)
    columns = -(-COLUMNS // comm.size)
    texts = f"[{count + 2}{{p}}{rows}, {COLUMNS}]", f"[{rows}, {columns}{{p}}{COLUMNS}]"
    layouts = [Layout.parse(text, mesh) for text in texts]
    boxes = [tuple(slice(*pair) for pair in layout.box(comm.rank)) for layout in layouts]
    x = np.arange(float(rows * COLUMNS)).reshape(rows, COLUMNS)
    tile = distspmd.runtime.DeviceArray.of(x[boxes[0]], "emulated")
    out = distspmd.runtime.DeviceArray(layouts[1].shape(comm.rank), x.dtype, "emulated")
    distspmd.runtime.DeviceArray(1234, np.int8, "emulated")  # which nobody has from here on
    assert (device, 1234) in device_arrays._kept
    fail(f"allocation:{count}".encode())
    distspmd.redistribute(comm, tile, *layouts, out=out)
    fail(b"")
    assert np.array_equal(out.numpy(), x[boxes[1]])
    freed.append((device, 1234) not in device_arrays._kept)
    device_arrays.free_kept()
assert freed[0]
assert freed == sorted(freed, reverse=True)
assert not freed[-1], "there are fewer allocations, all of which were tried"
comm.Barrier()
if comm.rank == 0:
    print(f"all is right: {sum(freed)} allocations found room")
