"""A redistribution that a lowered program makes, before it is priced and recorded."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dace import data

from distspmd.analysis.foresight import Foreseen
from distspmd.analysis.inspectors import Inspection
from distspmd.analysis.iteration_spaces import Source
from distspmd.layouts.layout import Layout
from distspmd.nodes.distributed_memlet import DistributedMemlet
from distspmd.nodes.fetched_memlet import FetchedMemlet
from distspmd.plans.redistribution import Redistribution


@dataclass(frozen=True)
class Movement:
    """A redistribution that the program makes, and the node that makes it."""

    data: str
    redistribution: Redistribution
    source: Source | None
    node: DistributedMemlet | FetchedMemlet = field(compare=False, repr=False)
    source_tiles: Layout | None
    """Tiles of the storage that it moves from; None for the caller's array."""
    target_tiles: Layout | None
    times: int | None = 1
    """How often it is made in a run; None where that is not known."""
    inspection: Inspection | None = None
    """How the ranks find out what of it they fetch; None where they get all of it."""
    foreseen: Foreseen | None = None
    """What each rank fetches, where nothing but loops and the ends of tiles decides that."""
    received: int | None = None
    """Bytes that ranks receive in a run, where that is foreseen."""
    stores: tuple[str, str] = ("", "")
    """The containers that it moves from and to."""


def dtype_of(container: data.Data) -> np.dtype[Any]:
    """The NumPy type of the elements of a container."""
    dtype: np.dtype[Any] = np.dtype(container.dtype.as_numpy_dtype())
    return dtype
