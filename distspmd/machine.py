"""The machine model: what a message and a byte cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """Latency and bandwidths of a communication between two ranks.

    Attributes:
        alpha: seconds for one message.
        beta: seconds for one byte on its way.
        copy: seconds for one byte copied within a rank's memory.
        pull_bytes: bytes that a rank receives, from which on it rather copies them out of memory
            that ranks of a node share than gets messages.
    """

    alpha: float = 2e-6
    beta: float = 1e-10
    copy: float = 5e-11
    pull_bytes: int = 1 << 16
