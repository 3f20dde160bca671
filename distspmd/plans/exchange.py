"""What ranks tell each other within a node of a lowered program: its bytes, its time, its words."""

from __future__ import annotations

from distspmd.plans.machine import Machine


class Exchange:
    """What the kinds of exchanges have in common; each is a dataclass with these fields.

    Attributes:
        data: the container that is made, or whose elements move.
        source: where in the user's program it is.
        times: how often it runs; None where that is not known before.
    """

    data: str
    source: str
    times: int | None

    @property
    def ranks(self) -> int:
        """Ranks that take part in the run."""
        raise NotImplementedError

    @property
    def workers(self) -> tuple[int, ...]:
        """Ranks that send or get anything."""
        raise NotImplementedError

    @property
    def is_split(self) -> bool:
        """Whether anything moves."""
        return len(self.workers) > 1

    @property
    def expected_bytes(self) -> int:
        """Bytes that all ranks receive each time, as far as they are known before the run."""
        raise NotImplementedError

    @property
    def rounds(self) -> int:
        """How often ranks wait for each other's messages."""
        return 1

    def seconds(self, machine: Machine) -> float:
        """Of what moves each time: in each round a message of each worker to each other one."""
        if not self.is_split:
            return 0.0
        count, nbytes = len(self.workers), self.expected_bytes
        busiest = float(machine.busiest(nbytes / count, nbytes))
        return machine.passing(self.rounds * (count - 1), busiest)

    @property
    def received(self) -> int | None:
        """Bytes that all ranks receive in a run; None where that is not known before."""
        unknown = self.times is None or self.asked
        return None if unknown else (self.times or 0) * self.expected_bytes

    @property
    def asked(self) -> tuple[int, ...]:
        """Dimensions in which data decide what moves."""
        return ()

    @property
    def what(self) -> str:
        """What it is, in messages."""
        raise NotImplementedError

    @property
    def title(self) -> str:
        """What it is, and where."""
        return f"{self.what} of {self.source or 'the program'}"

    @property
    def layouts(self) -> str:
        """How what moves lies before and after."""
        raise NotImplementedError

    @property
    def found(self) -> str:
        """Who finds out what moves."""
        return "known before"

    @property
    def steps(self) -> str:
        """What carries it out."""
        raise NotImplementedError

    @property
    def bytes_text(self) -> str:
        """The bytes that ranks receive, as far as they are known before the run."""
        return f"{self.expected_bytes:,}"
