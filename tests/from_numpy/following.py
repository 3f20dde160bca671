"""What ranks do beside the first, which parses and lowers the cases: they import no DaCe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import distspmd
from distspmd.errors import DistSPMDError
from distspmd.runtime.watch.errors_together import wait_quietly


def follow_case(comms: Mapping[int, Any], world: Any) -> None:
    """Run the programs of a case that rank 0 has compiled, until it says that there are no more.

    Args:
        comms: by their size, communicators of the first so many ranks.
        world: communicator of all.
    """
    while ranks := tell(world):
        if world.rank < ranks:
            _follow(comms[ranks])


def tell(world: Any, ranks: int = 0) -> int:
    """On how many ranks rank 0 runs the program next; 0 if no more."""
    wait_quietly(world)
    told: int = world.bcast(ranks)
    return told


def _follow(comm: Any) -> None:
    """Run a program; of errors rank 0 tells."""
    try:
        with distspmd.compile(None, comm) as program:
            program()
    except DistSPMDError:
        return
