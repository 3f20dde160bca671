"""On each rank of a job: on which host it runs; and an array that goes from node to node."""

import socket

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts import Layout, Mesh

comm = MPI.COMM_WORLD
ranks = comm.size
rows = Layout.parse(f"[2{{x}}{2 * ranks}, {ranks}]", Mesh(x=ranks))
columns = Layout.parse(f"[{2 * ranks}, 1{{x}}{ranks}]", Mesh(x=ranks))
array = np.arange(2.0 * ranks * ranks).reshape(2 * ranks, ranks)
tile = array[2 * comm.rank : 2 * comm.rank + 2]
for _ in range(2):
    found = distspmd.redistribute(comm, tile, rows, columns)
    assert np.array_equal(found, array[:, comm.rank : comm.rank + 1])
hosts = comm.gather(socket.gethostname())
if comm.rank == 0:
    print("hosts:", *hosts)
