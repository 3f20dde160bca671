"""Tensors of the caller that lie in memory in another order than their indices: they are put in it.

Programs take memory in the order of indices. A parameter may have another one, as that of
``channels_last``, or of a factor that LAPACK gives; who alone has this memory does not notice that
it moves.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from distspmd.frontend.from_torch.closures import Closed

_ALONE = 2
"""Counted users of a memory that one tensor has: the tensor, and who counts."""


def put_in_order(closed: Closed) -> None:
    """Move parameters, buffers, their gradients and states; not what shares its memory."""
    for tensor in _tensors(closed):
        if not (tensor.is_meta or tensor.is_contiguous() or _is_shared(tensor)):
            tensor.data = tensor.detach().contiguous()


def _tensors(closed: Closed) -> Iterator[torch.Tensor]:
    for tensor in (*closed.parameters.values(), *closed.buffers.values()):
        yield tensor
        if tensor.grad is not None:
            yield tensor.grad
    for optimizer in closed.optimizers.values():
        for state in optimizer.state.values():
            yield from (value for value in state.values() if isinstance(value, torch.Tensor))


def _is_shared(tensor: torch.Tensor) -> bool:
    """Whether another tensor or array has the same memory, and would not see what is written."""
    storage = tensor.untyped_storage()
    return bool(torch._C._storage_Use_Count(storage._cdata) > _ALONE)
