"""Scalers of gradients while a step is traced: whether an optimizer steps is a choice of values.

PyTorch reads on the host whether a gradient overflowed, and then steps or does not. A program does
both: it steps, and takes back what it has written where a gradient was not finite.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.amp.grad_scaler import GradScaler, _refresh_per_optimizer_state

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.slots import Slot

READ_AT_CALLS = ("_scale", "_growth_tracker", "_init_scale", "_init_growth_tracker")
"""What a program reads of a scaler at each call, and writes."""

SETTINGS = ("_enabled", "_growth_factor", "_backoff_factor", "_growth_interval")
"""What is a number in the program."""

_SCALES_ITSELF = "_step_supports_amp_scaling"
"""Where torch notes that a step of an optimizer takes the scale, as fused ones do."""


def scaler_tensors(closed: Closed) -> Iterator[tuple[str, GradScaler, str]]:
    """The name of each tensor of a scaler, with the scaler and the attribute, unless disabled."""
    for name, scaler in closed.scalers.items():
        if scaler.is_enabled():
            yield f"{name}.scale", scaler, "_scale"
            yield f"{name}.growth_tracker", scaler, "_growth_tracker"


def scaler_slots(closed: Closed) -> Iterator[Slot]:
    """Scales, and how many steps were done since they grew; they are made where they are not."""
    tensors = [*closed.parameters.values(), *closed.buffers.values()]
    device = next((t.device for t in tensors if not t.is_meta), torch.device("cpu"))
    for name, scaler, attribute in scaler_tensors(closed):
        if scaler._scale is None:
            scaler._lazy_init_scale_growth_tracker(device)
        yield Slot(name, lambda s=scaler, a=attribute: getattr(s, a), "state")  # type: ignore[misc]


@contextlib.contextmanager
def swapped_scalers(closed: Closed, traced: Mapping[str, torch.Tensor]) -> Iterator[None]:
    """Traced tensors in all scalers, and steps that no value decides.

    Raises:
        UnsupportedProgram: a scaler is not updated in the function that it scales in.
    """
    kept = [(scaler, dict(vars(scaler))) for scaler in closed.scalers.values()]
    fused = [o for o in closed.optimizers.values() if getattr(o, _SCALES_ITSELF, False)]
    for name, scaler, attribute in scaler_tensors(closed):
        setattr(scaler, attribute, traced[name])
        scaler._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)
    for optimizer in fused:  # it is traced as others are
        setattr(optimizer, _SCALES_ITSELF, False)
    try:
        with _replaced():
            yield
        for name, scaler in closed.scalers.items():
            if scaler.is_enabled() and scaler._per_optimizer_states:
                raise UnsupportedProgram(
                    f"the function uses the scaler {name!r} and does not end with "
                    f"{name}.update(), which tells the next call whether this one overflowed. "
                    "Call it in the function."
                )
    finally:
        for scaler, before in kept:
            vars(scaler).update(before)
        for optimizer in fused:
            setattr(optimizer, _SCALES_ITSELF, True)


@contextlib.contextmanager
def _replaced() -> Iterator[None]:
    """Let what torch decides by values, or knows as one operator, be traced."""
    kind: Any = GradScaler
    functions: Any = torch
    before = (
        kind._maybe_opt_step,
        functions._amp_foreach_non_finite_check_and_unscale_,
        functions._amp_update_scale_,
    )
    kind._maybe_opt_step = _stepped_if_finite
    functions._amp_foreach_non_finite_check_and_unscale_ = _unscale
    functions._amp_update_scale_ = _update
    try:
        yield
    finally:
        kind._maybe_opt_step = before[0]
        functions._amp_foreach_non_finite_check_and_unscale_ = before[1]
        functions._amp_update_scale_ = before[2]


def _stepped_if_finite(
    scaler: GradScaler,
    optimizer: torch.optim.Optimizer,
    optimizer_state: Mapping[str, Any],
    *arguments: Any,
    **named: Any,
) -> Any:
    """Step; where a gradient was not finite, everything stays as it was."""
    overflowed = sum(optimizer_state["found_inf_per_device"].values()) != 0
    written = [tensor for group in optimizer.param_groups for tensor in group["params"]]
    for state in optimizer.state.values():
        written += [value for value in state.values() if isinstance(value, torch.Tensor)]
    before = [tensor.detach().clone() for tensor in written]
    result = optimizer.step(*arguments, **named)
    with torch.no_grad():
        for tensor, value in zip(written, before, strict=True):
            tensor.copy_(torch.where(overflowed, value, tensor))
    return result


def _unscale(
    gradients: Sequence[torch.Tensor], overflowed: torch.Tensor, inverse: torch.Tensor
) -> None:
    """Gradients as they would be without the scale; note whether one is not finite."""
    for gradient in gradients:
        bad = torch.logical_not(torch.isfinite(gradient)).any()
        overflowed.copy_(torch.maximum(overflowed, bad.to(overflowed.dtype)))
        gradient.mul_(inverse)


def _update(
    scale: torch.Tensor,
    growth_tracker: torch.Tensor,
    overflowed: torch.Tensor,
    growth: float,
    backoff: float,
    interval: int,
) -> torch.Tensor:
    """A smaller scale behind a gradient that was not finite, a larger one behind many that were."""
    bad = overflowed != 0
    done = growth_tracker + 1
    full = done == interval
    larger = (scale.double() * growth).float()
    grown = torch.where(torch.logical_and(full, torch.isfinite(larger)), larger, scale)
    less = (scale.double() * backoff).float()
    nothing = torch.zeros_like(done)
    scale.copy_(torch.where(bad, less, grown))
    growth_tracker.copy_(torch.where(torch.logical_or(bad, full), nothing, done))
    return scale
