"""The protocol of solvers: from a redistribution to a plan, or to a refusal with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a solver has no plan for a redistribution."""

    solver: str
    reason: str

    def __str__(self) -> str:
        return f"{self.solver}: {self.reason}"


class Solver(Protocol):
    """Turns a redistribution into a plan, or says why not; estimates no time, emits no code."""

    @property
    def name(self) -> str:
        """Name by which a user asks for the solver."""

    def plan(self, redistribution: Redistribution) -> Plan | Refusal:
        """Answer a redistribution."""


def is_solver(found: object) -> bool:
    """Whether something can be asked as a solver; its class alone cannot."""
    has_name = isinstance(getattr(found, "name", None), str)
    return has_name and callable(getattr(found, "plan", None)) and not isinstance(found, type)
