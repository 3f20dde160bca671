"""Rank 1 stops making calls, in the way that the argument says; the others wait for it."""

import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts import Layout, Mesh
from distspmd.runtime.watch import watchdog
from distspmd.runtime.watch.board import Board, job_key

comm = MPI.COMM_WORLD
how = sys.argv[1]
odd = comm.rank == 1
ranks = comm.size
rows = Layout.parse(f"[1{{x}}{ranks}, 4]", Mesh(x=ranks))
root = Layout.root((ranks, 4))


@distspmd.program(schedule={"__return": (ranks,)})
def doubled(x):
    return 2 * x


def move(comm=comm):
    return distspmd.redistribute(comm, np.ones((1, 4)), rows, root)


def call():
    return doubled(np.ones(6)) if comm.rank == 0 else doubled()


if how == "only rank 0 calls":
    if comm.rank == 0:
        doubled(np.ones(6))
    sys.exit(0)
if how == "ends at once":  # before rank 0 has been on the board
    if comm.rank == 0:
        time.sleep(2)
        move()
    sys.exit(0)
if how == "only rank 0 compiles":
    if comm.rank == 0:
        distspmd.compile(None, comm)
    sys.exit(0)
watchdog._CROSSED = 1.0
twin = comm.Dup()
for _ in range(3):
    move()
    move(twin)
if how == "all end":
    print("the end")
    sys.exit(0)
if how == "finalized":
    MPI.Finalize()
    try:
        move()
    except distspmd.errors.ArgumentError as error:
        print("refused:", error)
    sys.exit(0)
if how == "works long":  # longer than the others wait, but in a call
    plan, doubled.lower = doubled.lower, lambda *a, **k: (time.sleep(8), plan(*a, **k))[1]
    call()
    print("the end")
    sys.exit(0)
if how == "stopped beside Finalize":
    if odd:
        os.kill(os.getpid(), signal.SIGSTOP)
    MPI.Finalize()
    time.sleep(3600)
if how == "stopped after Finalize":
    others = comm.allgather(os.getpid())
    MPI.Finalize()
    if odd:
        os.kill(os.getpid(), signal.SIGSTOP)
    else:
        time.sleep(4)
        os.kill(others[1], signal.SIGCONT)
    print("the end")
    sys.exit(0)
if how == "stopped at the end":
    if odd:
        os.kill(os.getpid(), signal.SIGSTOP)
    sys.exit(0)
if how == "stopped behind Python":

    class Stops:
        """It goes when Python has ended, and MPI has not."""

        stop = staticmethod(partial(os.kill, os.getpid(), signal.SIGSTOP))

        def __del__(self):
            self.stop()

    if odd:
        sys.modules["stops"] = Stops()
    sys.exit(0)
if odd:
    if how == "exits":
        sys.exit(0)
    if how == "exits with 7":
        sys.exit(7)
    if how == "finalizes":
        MPI.Finalize()
        time.sleep(3600)
    if how == "thread":
        thread = threading.Thread(target=lambda: (move(), 1 / 0))
        thread.start()
        thread.join()
        time.sleep(3600)
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    if how == "a call fewer":
        time.sleep(3600)
    if how == "watched":
        board = Board(job_key())
        while not (seen := board.read(0)) or "waits in redistribute" not in seen.text:
            time.sleep(0.1)
        time.sleep(1.5)  # until this one has told where it is
        Path(sys.argv[2]).touch()
        time.sleep(3600)
    if how == "crossed":
        move(twin)
elif how == "exits, while others wait in MPI":
    comm.Barrier()
elif how == "thread":
    move()
    move()
else:
    move()
print("a rank came to the end")
