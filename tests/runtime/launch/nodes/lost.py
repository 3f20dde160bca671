"""A node is lost while all ranks wait: rank 0 says when, by a file that the argument names."""

import sys
import time
from pathlib import Path

from mpi4py import MPI

comm = MPI.COMM_WORLD
print("hosts:", comm.gather(MPI.Get_processor_name()) or "", flush=True)
comm.Barrier()
if comm.rank == 0:
    Path(sys.argv[1]).touch()
time.sleep(60)
