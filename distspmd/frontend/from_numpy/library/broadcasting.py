"""What ``np.broadcast`` says of the shape that arrays have together."""

from __future__ import annotations

from typing import Any

import numpy as np


class Broadcast:
    """The shape of several arrays beside each other, with what follows from it."""

    def __init__(self, *arrays: Any) -> None:
        self.shape = np.broadcast_shapes(*(np.shape(each) for each in arrays))
        self.numiter = len(arrays)

    @property
    def ndim(self) -> Any:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def nd(self) -> Any:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements."""
        found = 1
        for extent in self.shape:
            found = found * extent
        return found

    def __iter__(self) -> Any:
        raise NotImplementedError("the elements of np.broadcast; use np.broadcast_arrays")
