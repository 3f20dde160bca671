"""Losses of torch that look at values, in operators that do not.

That of alignments (CTC) gives tensors whose shapes depend on lengths. Here the paths through a text
and the blanks around its classes are summed up step by step, for texts of the most classes that
there may be; lengths are masks. That of Gaussians raises an error for a negative variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_NOTHING = -1e30
"""The logarithm of the probability of what cannot be; an infinity would have no gradient."""
_REDUCTIONS = ("none", "mean", "sum")


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Any = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """What :func:`torch.nn.functional.ctc_loss` gives, and its gradients.

    As in torch, the gradient is that of classes whose probabilities add up to 1, whatever
    ``log_probs`` is.
    """
    is_one = log_probs.dim() == 2
    if is_one:
        log_probs = log_probs.unsqueeze(1)
    steps, count, _ = log_probs.shape
    known = None if isinstance(target_lengths, Tensor) else target_lengths
    lengths, given = (_numbers(x, count) for x in (target_lengths, input_lengths))
    classes = _padded(targets, lengths, known, count).long()
    text = functional.pad(classes.unsqueeze(2), (1, 0), value=blank).flatten(1)
    text = functional.pad(text, (0, 1), value=blank)
    alpha = _last_of_paths(log_probs, text, given)
    last = torch.stack([2 * lengths, (2 * lengths - 1).clamp(min=0)], dim=1)
    ends = alpha.gather(1, last)
    second = torch.where(lengths > 0, ends[:, 1], _NOTHING)
    loss = -torch.logsumexp(torch.stack([ends[:, 0], second]), dim=0)
    is_impossible = loss > -_NOTHING / 2
    here = torch.arange(steps)[:, None, None] < given[None, :, None]
    shares = torch.where(here, log_probs.exp(), 0.0)
    loss = loss + (shares - shares.detach()).sum((0, 2))  # to the gradient alone
    if zero_infinity:
        loss = torch.where(is_impossible, 0.0, loss)
    else:
        loss = loss * torch.where(is_impossible, torch.inf, 1.0).to(loss.dtype)
    reduction = _REDUCTIONS[reduction] if isinstance(reduction, int) else reduction
    if reduction == "mean":
        return (loss / lengths.clamp(min=1)).mean()
    if reduction == "sum":
        return loss.sum()
    return loss[0] if is_one else loss


def _numbers(lengths: Any, count: int) -> Tensor:
    """Lengths as a tensor, one for each text."""
    if not isinstance(lengths, Tensor):
        lengths = torch.tensor(lengths, dtype=torch.long)
    found: Tensor = lengths.long().reshape(-1).expand(count)
    return found


def _padded(
    targets: Tensor, lengths: Tensor, known: Sequence[int] | int | None, count: int
) -> Tensor:
    """The classes of each text in a row; behind its length there is anything."""
    if targets.dim() == 2:
        return targets
    if count == 1:
        return targets.unsqueeze(0)
    most = targets.shape[0] if known is None else max(_listed(known))
    begin = lengths.cumsum(0) - lengths
    places = begin[:, None] + torch.arange(most)
    return targets[places.clamp(max=targets.shape[0] - 1)]


def _listed(lengths: Sequence[int] | int) -> Sequence[int]:
    return [lengths] if isinstance(lengths, int) else lengths


def _last_of_paths(log_probs: Tensor, text: Tensor, given: Tensor) -> Tensor:
    """Of each place of the text, what the paths that end there are worth behind the last step."""
    steps = len(log_probs)
    worth = log_probs.gather(2, text.unsqueeze(0).expand(steps, -1, -1))
    differs = functional.pad(text[:, 2:] != text[:, :-2], (2, 0), value=False)
    may_begin = torch.arange(text.shape[1]) < 2
    alpha = torch.where(may_begin, worth[0], _NOTHING)
    for step in range(1, steps):
        one = functional.pad(alpha[:, :-1], (1, 0), value=_NOTHING)
        two = functional.pad(alpha[:, :-2], (2, 0), value=_NOTHING)
        two = torch.where(differs, two, _NOTHING)
        following = torch.logsumexp(torch.stack([alpha, one, two]), dim=0) + worth[step]
        alpha = torch.where((step < given)[:, None], following, alpha)
    return alpha


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """That of :func:`torch.nn.functional.gaussian_nll_loss`; NaN where a variance is negative."""
    if not isinstance(var, Tensor):
        var = torch.full_like(input, var)
    if var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    held = var.clone()
    with torch.no_grad():
        held.clamp_(min=eps)
    loss = 0.5 * (torch.log(held) + (input - target) ** 2 / held)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    loss = torch.where(var < 0, torch.nan, loss)
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss


LOSSES: dict[str, Callable[..., Tensor]] = {
    "ctc_loss": ctc_loss,
    "gaussian_nll_loss": gaussian_nll_loss,
}
"""By the names of torch's functions, for which they stand in."""
