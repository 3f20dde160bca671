"""Two ranks on two nodes ask for different targets, and each prints what it hears of it."""

import numpy as np
from mpi4py import MPI

import distspmd
from distspmd.layouts import Layout, Mesh

comm = MPI.COMM_WORLD
rows = Layout.parse("[1{x}2, 2]", Mesh(x=2))
target = Layout.parse("[2, 1{x}2]", Mesh(x=2)) if comm.rank else Layout.root((2, 2))
try:
    distspmd.redistribute(comm, np.ones((1, 2)), rows, target)
except distspmd.errors.DisagreementError as error:
    print(error)
