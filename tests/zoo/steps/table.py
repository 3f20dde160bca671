"""The table of training steps, and the habits that they have in common.

A step is built twice, with the same parameters and batches: one is partitioned, torch runs the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from zoo.architectures import _SMALL, WORDS
from zoo.registry import tell_torchvision

BATCH, LENGTH, CALLS = 2, 6, 3


@dataclass(frozen=True)
class Training:
    """A training step, and what it is called with.

    Attributes:
        step: gives a loss, or several tensors.
        batches: tensors of each call.
        modules: what the step trains; their states are compared after the last call.
        after: what is called behind each step, such as a scheduler.
        tolerance: of what is compared; None where random numbers differ from those of torch.
    """

    step: Callable[..., Any]
    batches: Sequence[tuple[Tensor, ...]]
    modules: Sequence[nn.Module]
    after: Callable[[], Any] = lambda: None
    tolerance: float | None = 1e-6


STEPS: dict[str, Callable[[], Training]] = {}
"""By their names."""


def published(function: Callable[[], Training]) -> Callable[[], Training]:
    """Enter a function in the table."""
    assert function.__name__ not in STEPS
    STEPS[function.__name__] = function
    return function


def build(name: str) -> Training:
    """A step of the table, with the same parameters and batches at each call."""
    tell_torchvision()
    torch.manual_seed(0)
    return STEPS[name]()


def adamw(parameters: Iterable[Any], rate: float = 1e-3) -> torch.optim.Optimizer:
    """The optimizer of most steps; its epsilon keeps rounding of gradients of zero small."""
    return torch.optim.AdamW(parameters, lr=rate, weight_decay=0.01, eps=1e-4)


def fit(
    module: nn.Module,
    loss_of: Callable[..., Tensor],
    batch: Callable[[], tuple[Tensor, ...]],
    optimizer: Callable[[Iterable[Any]], torch.optim.Optimizer] = adamw,
    clip: float | None = None,
    dtype: torch.dtype = torch.float64,
    tolerance: float | None = 1e-6,
) -> Training:
    """The step that most people write: clear, forward, loss, backward, clip, update."""
    module.to(dtype).train()
    chosen = optimizer([p for p in module.parameters() if p.requires_grad])

    def step(*inputs: Tensor) -> Tensor:
        chosen.zero_grad()
        loss = loss_of(module, *inputs)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        chosen.step()
        return loss.detach()

    batches = [tuple(_as(x, dtype) for x in batch()) for _ in range(CALLS)]
    return Training(step, batches, [module], tolerance=tolerance)


def _as(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor.to(dtype) if tensor.is_floating_point() else tensor


def transformer(model: str, config: str, /, **settings: Any) -> Any:
    """A small model of `transformers` with random weights, without dropout unless it is asked."""
    import transformers

    none = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    none |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    wanted = {**_SMALL, **none, **settings}
    made = getattr(transformers, config)(**{k: v for k, v in wanted.items() if v is not None})
    return getattr(transformers, model)(made)


NO = dict.fromkeys(_SMALL)
"""Settings for models that have none of the usual ones."""


def words(length: int = LENGTH, batch: int = BATCH) -> Tensor:
    """Texts."""
    return torch.randint(3, WORDS, (batch, length))


def padded(length: int = LENGTH, on_left: bool = False) -> Tensor:
    """A mask of texts, one of which is shorter by two words."""
    mask = torch.ones(BATCH, length, dtype=torch.long)
    mask[1, :2] = 0
    return mask if on_left else mask.flip(1)


def labelled(text: Tensor, mask: Tensor) -> Tensor:
    """The words as classes; those that the mask leaves out are ignored."""
    return torch.where(mask == 1, text, -100)


def images(size: int, channels: int = 3, batch: int = BATCH) -> Tensor:
    """Pictures."""
    return torch.randn(batch, channels, size, size)


def classes(count: int, *shape: int) -> Tensor:
    """Numbers of classes."""
    return torch.randint(0, count, shape or (BATCH,))


def loss_of_model(*names: str) -> Callable[..., Tensor]:
    """The loss that a model of `transformers` gives for arguments of these names."""

    def loss_of(module: nn.Module, *inputs: Tensor) -> Tensor:
        loss: Tensor = module(**dict(zip(names, inputs, strict=True))).loss
        return loss

    return loss_of
