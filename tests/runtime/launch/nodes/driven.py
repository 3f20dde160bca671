"""One process calls programs on the ranks of two nodes, and one of them is killed."""

import os
import signal
import subprocess
import sys

import numpy as np

import distspmd

if sys.argv[2] == "apart":  # the nodes that are played see each other's memory
    del os.memfd_create


@distspmd.program(schedule={"__return": (4,)})
def doubled(x):
    return 2 * x


@distspmd.program(schedule={"__return": (4,)}, results="distributed")
def grown(x):
    return x + 1


with distspmd.ranks(4) as ranks:
    print("hosts:", [host for _, host in ranks.processes.values()], "shared:", ranks.is_shared)
    x = np.arange(10.0)
    held = grown(x)
    assert np.array_equal(doubled(held), 2 * (x + 1))
    assert np.array_equal(held.numpy()[3:7], x[3:7] + 1)
    big = np.random.default_rng(0).random(300_000)
    assert np.array_equal(doubled(big), 2 * big)
    process, host = ranks.processes[3]
    subprocess.run([sys.argv[1], host, f"kill -{int(signal.SIGKILL)} {process}"], check=True)
    try:
        for _ in range(1000):
            doubled(x)
    except distspmd.errors.LaunchError as error:
        print("lost:", error)
