"""The textbook's ways to train on many ranks, as schedules by patterns; products combine them.

Each is a :class:`distspmd.schedule.Patterns`, which prints as the patterns that it is, and says how
parameters and optimizer states are held between calls.
"""

from __future__ import annotations

import numpy as np

from distspmd.errors import ScheduleError
from distspmd.schedule import ANY, Patterns

UPDATES = "*.update"
"""The pattern of the updates of parameters."""


_TENSOR = {"heads": "model", "hidden": "model", "vocabulary": "model"}
"""What tensor parallelism splits."""


def data_parallel(n: int) -> Patterns:
    """Each rank has all parameters and a part of the batch; gradients are summed over ranks.

    Raises:
        ScheduleError: no number of ranks; so of all presets.
    """
    held = {"parameters": "replicated", "states": "replicated"}
    return Patterns({ANY: {"batch": "data"}}, {"data": _count(n)}, held, f"data_parallel({n})")


def megatron(n: int) -> Patterns:
    """Tensor parallel: each rank has a part of the heads, of the hidden units, and of the words.

    Of the logits no rank has more than those of its words; for a loss, ranks exchange a few numbers
    for each token.
    """
    held = {"parameters": "distributed", "states": "distributed"}
    return Patterns({ANY: _TENSOR}, {"model": _count(n)}, held, f"megatron({n})")


def sequence_parallel(n: int) -> Patterns:
    """As :func:`megatron`; what has none of these dimensions is split along the sequence."""
    held = {"parameters": "distributed", "states": "distributed"}
    split = {**_TENSOR, "sequence": "model"}
    return Patterns({ANY: split}, {"model": _count(n)}, held, f"sequence_parallel({n})")


def zero(stage: int, n: int) -> Patterns:
    """Data parallel; each rank has a part of the states, and updates that part of the parameters.

    Args:
        stage: 1 or 2, which are the same, for gradients live within a step, and each is summed
            where it is used; 3 is :func:`fsdp`.
        n: number of ranks.
    """
    if stage not in (1, 2, 3):
        raise ScheduleError(f"zero(stage={stage!r}): there are the stages 1, 2 and 3.")
    kind = "gathered" if stage == 3 else "replicated"
    split = {UPDATES: {ANY: "data"}, ANY: {"batch": "data"}}
    held = {"parameters": kind, "states": "distributed"}
    return Patterns(split, {"data": _count(n)}, held, f"zero({stage}, {n})")


def fsdp(n: int) -> Patterns:
    """Data parallel, with a part of the parameters and states on each rank: ZeRO-3."""
    return zero(3, n)


def experts(n: int) -> Patterns:
    """Each rank has a part of the experts of each mixture, and a part of the batch.

    Tokens go to the ranks of their experts and back: two all-to-alls a layer each way. All else is
    as in :func:`data_parallel`, and so is a program without mixtures. A batch that is too short
    stays whole, and then each rank has all tokens, and what its experts make of them is added up.
    """
    held = {"parameters": "distributed", "states": "distributed"}
    split = {"experts": "experts", "batch": "experts"}
    return Patterns({ANY: split}, {"experts": _count(n)}, held, f"experts({n})")


def _count(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ScheduleError(f"{n!r} ranks: write a number of at least 1.")
    return int(n)
