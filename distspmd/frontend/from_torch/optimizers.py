"""Optimizers while a step is traced: their states and settings are those of the program.

Learning rates are arguments, and so are the settings that a scheduler changes (momentum, or the
first of the betas). All others are numbers in the program, which each call compares.
"""

from __future__ import annotations

import contextlib
import inspect
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import torch
from torch.optim.swa_utils import AveragedModel, get_swa_multi_avg_fn

from distspmd.errors import UnsupportedProgram
from distspmd.frontend.from_torch.closures import Closed
from distspmd.frontend.from_torch.run_time_numbers import Guards, Number, extremes_of_numbers
from distspmd.frontend.from_torch.slots import Slot

INSIDE = (
    "the learning rate changes inside of the function. Call scheduler.step() outside: the program "
    "reads the rate of each parameter group at each call."
)
BY_SCHEDULERS = ("initial_lr", "max_lr", "min_lr", "base_momentum", "max_momentum", "swa_lr")
"""What schedulers note in a parameter group, and no optimizer reads."""
REFUSED: Mapping[str, str] = {
    "LBFGS": "it calls a closure as often as its values ask for",
    "SparseAdam": "it takes sparse gradients, which no program has",
}


_BRANCHING = (torch.optim.ASGD, torch.optim.RAdam, torch.optim.Rprop)
"""Of these the form for graphs of devices is traced, for the other one decides by its states."""
_NUMBERS = ("step", "mu_product", "eta", "mu")
"""States of one element, with which optimizers of torch compute in Python."""


def optimizer_slots(closed: Closed, varying: Collection[str]) -> Iterator[Slot]:
    """Rates, other settings that vary, and states; states are made if they are not there yet."""
    for prefix, optimizer in closed.optimizers.items():
        make_state(optimizer)
        for number, group in enumerate(optimizer.param_groups):
            yield Slot(f"{prefix}.{number}.lr", _rate(optimizer, number), "rate")
            for key, place in varying_settings(group, varying):
                name = _setting_name(prefix, number, key, place)
                yield Slot(name, _as_tensor(_setting(optimizer, number, key, place)), "rate")
    for optimizer, tensor, key, name in _states(closed):
        yield Slot(name, _state(optimizer, tensor, key), "state")


def _states(closed: Closed) -> Iterator[tuple[torch.optim.Optimizer, torch.Tensor, str, str]]:
    """All tensors in states: the optimizer, the parameter, the key, and a name."""
    optimizers = list(closed.optimizers.values())
    owners = [{id(tensor): tensor for tensor in each.state} for each in optimizers]
    for (number, owner, key), name in _names_of_states(closed).items():
        yield optimizers[number], owners[number][owner], key, name


def give_own_memory(closed: Closed) -> set[str]:
    """Let states that lie in the memory of a parameter be copies; the names of these.

    A step that ends with ``p.data = state["old_p"]`` leaves such a one.
    """

    def place(tensor: torch.Tensor) -> int:
        return 0 if tensor.is_meta else tensor.untyped_storage().data_ptr()

    places = {place(tensor) for tensor in closed.parameters.values()} - {0}
    found = set()
    for optimizer, tensor, key, name in list(_states(closed)):
        value = optimizer.state[tensor][key]
        if place(value) in places:
            optimizer.state[tensor][key] = value.clone()
            found.add(name)
    return found


def _names_of_states(closed: Closed) -> dict[tuple[int, int, str], str]:
    """Names of tensors in states: by the number of the optimizer, the parameter, and the key."""
    found: dict[tuple[int, int, str], str] = {}
    taken: set[str] = set()
    for number, (prefix, optimizer) in enumerate(closed.optimizers.items()):
        for tensor, state in optimizer.state.items():
            for key, value in state.items():
                if isinstance(value, torch.Tensor):
                    name = f"{closed.names[id(tensor)]}.{key}"
                    name = f"{prefix}.{name}" if name in taken else name
                    taken.add(name)
                    found[number, id(tensor), key] = name
    return found


def varying_settings(
    group: Mapping[str, Any], varying: Collection[str]
) -> Iterator[tuple[str, int | None]]:
    """Settings of a group that the program reads at each call, with their places in pairs.

    Args:
        group: of parameters.
        varying: settings that are known to change, besides those that a scheduler has noted.
    """
    cycled = {"momentum" if "momentum" in group else "betas"} if "max_momentum" in group else set()
    for key in sorted({*cycled, *varying} & group.keys()):
        value = group[key]
        if isinstance(value, tuple | list) and all(isinstance(each, float) for each in value):
            yield from ((key, place) for place in range(len(value)))
        elif isinstance(value, float) and key != "lr":
            yield key, None


@contextlib.contextmanager
def swapped_optimizers(
    closed: Closed,
    traced: dict[str, torch.Tensor],
    swapped: dict[int, torch.Tensor],
    varying: Collection[str],
    guards: Guards,
) -> Iterator[list[tuple[dict[str, Any], Any]]]:
    """Traced tensors in all optimizers, and the settings under which they can be traced.

    Yields:
        Each group with its rate, which the function may not replace.
    """
    before, rates = [], []
    names = _names_of_states(closed)
    done: set[int] = set()  # an optimizer that wraps another one has its groups
    for place, (prefix, optimizer) in enumerate(closed.optimizers.items()):
        before.append((optimizer, optimizer.state, [dict(g) for g in optimizer.param_groups]))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for tensor, own in optimizer.state.items():
            state[swapped[id(tensor)]] = {
                key: _in_double(key, traced[names[place, id(tensor), key]])
                if isinstance(value, torch.Tensor)
                else value
                for key, value in own.items()
            }
        optimizer.state = state
        for number, group in enumerate(optimizer.param_groups):
            if id(group) in done:
                continue
            done.add(id(group))
            group["params"] = [swapped[id(tensor)] for tensor in group["params"]]
            _swap_settings(optimizer, number, prefix, traced, varying, guards)
            group["lr"] = traced[f"{prefix}.{number}.lr"]
            rates.append((group, group["lr"]))
            branches = isinstance(optimizer, _BRANCHING)
            wanted = {"foreach": False, "fused": False, "capturable": branches}
            group.update({key: value for key, value in wanted.items() if key in group})
    known = [_kept(optimizer) for optimizer, _, _ in before]
    try:
        with extremes_of_numbers(), traced_averages():
            yield rates
        for (optimizer, _, _), keys in zip(before, known, strict=True):
            _check_states(optimizer, keys)
        for (number, owner, key), name in names.items():
            optimizer = before[number][0]
            _put_back(optimizer, optimizer.state[swapped[owner]][key], traced[name], key)
    finally:
        for optimizer, state, groups in reversed(before):
            optimizer.state = state
            for group, content in zip(optimizer.param_groups, groups, strict=True):
                group.clear()
                group.update(content)


def _in_double(key: str, state: torch.Tensor) -> torch.Tensor:
    """What stands for a state: one that torch reads as a number of Python is in its precision.

    Of ``1 - 0.999 ** step``, single precision would leave the last 4 digits to chance.
    """
    is_number = key in _NUMBERS and state.ndim == 0 and state.dtype == torch.float32
    return state.double() if is_number else state


def _put_back(
    optimizer: torch.optim.Optimizer, now: torch.Tensor, before: torch.Tensor, key: str
) -> None:
    """Write a state that a step has replaced into the tensor that was there."""
    if now is before:
        return
    is_number = _in_double(key, before).dtype == now.dtype
    if now.shape != before.shape or (now.dtype != before.dtype and not is_number):
        raise UnsupportedProgram(
            f"{type(optimizer).__name__} puts a tensor of the shape {list(now.shape)} and the type "
            f"{now.dtype} where {key!r} of its state has {list(before.shape)} and {before.dtype}. "
            "Let it keep the shape and the type."
        )
    with torch.no_grad():
        before.copy_(now)


def averages(averaged: AveragedModel, model: torch.nn.Module) -> None:
    """What ``update_parameters`` does, without a look at how often it was called: both are made."""
    count = averaged.n_averaged
    inner: torch.nn.Module = averaged.module
    kept: list[torch.Tensor] = list(averaged.parameters())
    theirs: list[torch.Tensor] = list(model.parameters())
    if averaged.use_buffers:
        kept, theirs = [*inner.parameters(), *inner.buffers()], [*theirs, *model.buffers()]
    of_types: defaultdict[torch.dtype, list[tuple[torch.Tensor, torch.Tensor]]]
    of_types = defaultdict(list)
    for mine, other in zip(kept, theirs, strict=False):
        of_types[mine.dtype].append((mine.detach(), other.detach()))
    of_each: Any = averaged.avg_fn
    of_lists: Any = averaged.multi_avg_fn or (None if of_each else get_swa_multi_avg_fn())
    for pairs in of_types.values():
        made = [mine.clone() for mine, _ in pairs]
        if of_lists:
            of_lists(made, [other for _, other in pairs], count)
        else:
            made = [of_each(mine, other, count) for mine, other in pairs]
        for (mine, other), mean in zip(pairs, made, strict=True):
            mine.copy_(torch.where(count == 0, other, mean))
    if not averaged.use_buffers:
        for buffer, source in zip(inner.buffers(), model.buffers(), strict=True):
            buffer.detach().copy_(source.detach())
    averaged.n_averaged += 1


@contextlib.contextmanager
def traced_averages() -> Iterator[None]:
    """Let averages of models be traced, whose own code decides by a count."""
    kind: Any = AveragedModel
    before = kind.update_parameters
    kind.update_parameters = torch.no_grad()(averages)
    try:
        yield
    finally:
        kind.update_parameters = before


def _swap_settings(
    optimizer: torch.optim.Optimizer,
    number: int,
    prefix: str,
    traced: Mapping[str, torch.Tensor],
    varying: Collection[str],
    guards: Guards,
) -> None:
    group = optimizer.param_groups[number]
    for key, place in list(varying_settings(group, varying)):
        tensor = traced[_setting_name(prefix, number, key, place)]
        said = f"{key!r} of group {number} of the optimizer {prefix!r}"
        live = _setting(optimizer, number, key, place)
        made = Number(tensor, live, said, guards, live())
        if place is None:
            group[key] = made
        else:
            group[key] = (*group[key][:place], made, *group[key][place + 1 :])


def _check_states(optimizer: torch.optim.Optimizer, known: Any) -> None:
    """Refuse a step that did what other steps do not do."""
    now = _kept(optimizer)
    if now == known:
        return
    name = type(optimizer).__name__
    for tensor, (tensors, others) in now.items():
        before = known.get(tensor, ([], {}))
        changed = [key for key, value in others.items() if before[1].get(key) != value]
        if tensors == before[0] and changed:
            raise UnsupportedProgram(
                f"{name} keeps the Python number {changed[0]!r} in its state, which changes from "
                "step to step. Let it keep a tensor: torch.tensor(0.0)."
            )
    raise FirstStepDiffers(
        f"{name} makes its state in its first step, which other steps do not do. Run one step of "
        "it in torch first, then trace."
    )


class FirstStepDiffers(UnsupportedProgram):
    """An optimizer does something in its first step that it does in no other one."""


def _kept(optimizer: torch.optim.Optimizer) -> dict[int, tuple[list[str], dict[str, Any]]]:
    """Of each parameter the names of tensors in its state, and its numbers."""
    return {
        id(tensor): (
            sorted(k for k, v in own.items() if isinstance(v, torch.Tensor)),
            {k: v for k, v in own.items() if isinstance(v, bool | int | float)},
        )
        for tensor, own in optimizer.state.items()
        if own
    }


def _rate(optimizer: torch.optim.Optimizer, number: int) -> Callable[[], torch.Tensor]:
    return _as_tensor(lambda: optimizer.param_groups[number]["lr"])


def _as_tensor(live: Callable[[], Any]) -> Callable[[], torch.Tensor]:
    def fetch() -> torch.Tensor:
        value = live()
        if isinstance(value, torch.Tensor):
            return value
        return torch.tensor(value, dtype=torch.float64)

    return fetch


def _setting(
    optimizer: torch.optim.Optimizer, number: int, key: str, place: int | None
) -> Callable[[], Any]:
    """What a setting is now; while the function is traced, what it was before."""

    def live() -> Any:
        found = optimizer.param_groups[number][key]
        value = found if place is None else found[place]
        return value.known if isinstance(value, Number) else value

    return live


def _setting_name(prefix: str, number: int, key: str, place: int | None) -> str:
    return ".".join([prefix, str(number), key, *([] if place is None else [str(place)])])


def _state(optimizer: Any, tensor: torch.Tensor, key: str) -> Callable[[], torch.Tensor]:
    return lambda: optimizer.state[tensor][key]


def make_state(optimizer: torch.optim.Optimizer) -> None:
    """Let an optimizer make the state that its first step would make, without a step.

    Those of others than torch may make it in their first step only.

    Raises:
        UnsupportedProgram: no step of it can be traced.
    """
    name = type(optimizer).__name__
    if name in REFUSED:
        raise UnsupportedProgram(
            f"the optimizer {name} cannot be traced: {REFUSED[name]}. Use another one of "
            "torch.optim."
        )
    tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
    gradients = [tensor.grad for tensor in tensors]
    init: Any = getattr(optimizer, "_init_group", None)
    try:
        for tensor in tensors:
            if tensor.requires_grad and tensor.grad is None:
                tensor.grad = torch.zeros_like(tensor)
        for group in optimizer.param_groups if init else ():
            lists = len(inspect.signature(init).parameters) - 1  # through what wraps it
            init(group, *([] for _ in range(lists)))
            _make_momentum(optimizer, group)
    finally:
        for tensor, gradient in zip(tensors, gradients, strict=True):
            tensor.grad = gradient


def _make_momentum(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> None:
    """SGD makes its buffers in its first step: zeros give the same, but under dampening."""
    if not isinstance(optimizer, torch.optim.SGD) or not group["momentum"]:
        return
    for tensor in group["params"]:
        state = optimizer.state[tensor]
        if tensor.requires_grad and state.get("momentum_buffer") is None:
            if group["dampening"]:
                raise FirstStepDiffers(
                    "SGD does not dampen its first step, but all others. Run one step of it in "
                    "torch first, then trace."
                )
            state["momentum_buffer"] = torch.zeros_like(tensor)
