"""Plans from one layout to another, with their cost and the plans that were rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property

from numpy.typing import DTypeLike

from distspmd.errors import ArgumentError, NoSolver, describe, refuses_as
from distspmd.layouts.dimension import is_count
from distspmd.layouts.layout import Layout
from distspmd.planning.select import select_plan
from distspmd.plans.cost import Cost, cost
from distspmd.plans.machine import Machine
from distspmd.plans.plan import Plan
from distspmd.plans.redistribution import Redistribution
from distspmd.plans.solver import Refusal, Solver, is_solver
from distspmd.solvers import SOLVERS
from distspmd.solvers.plugins import known_solvers


@dataclass(frozen=True)
class ChosenPlan(Plan):
    """A plan that knows its cost on a machine, and the plans that cost more."""

    machine: Machine = field(default_factory=Machine)
    losers: tuple[tuple[Plan, Cost], ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @cached_property
    def cost(self) -> Cost:
        """Predicted time, and the bytes that all ranks receive."""
        return cost(self, self.machine)


@refuses_as(ArgumentError)
def plan(
    source: Layout,
    target: Layout,
    dtype: DTypeLike = "float32",
    solver: str | Solver | None = None,
    max_memory: int | None = None,
    machine: Machine | None = None,
) -> ChosenPlan:
    """The cheapest plan that brings an array from one layout to another.

    Args:
        source: which box of the array each rank holds.
        target: which box it wants.
        dtype: of the array; also by names of ml_dtypes, such as ``"bfloat16"``.
        solver: its name, if one in particular is to plan.
        max_memory: most bytes that may live on a rank at once.
        machine: what messages and bytes cost; as measured on this host where left out. Ranks that
            plan on several hosts pass one machine, as :func:`distspmd.redistribute` does.

    Raises:
        ArgumentError: an option of another type than it may be.
        LayoutError: no layouts, layouts of different arrays, or a reduction that the dtype lacks.
        NoSolver: there is no solver of that name, or no plan within the memory; says why.
        PluginError: a solver of another distribution cannot be used, or answers a wrong plan.
    """
    fault = fault_of_options(solver, max_memory, machine)
    if fault:
        raise ArgumentError(f"plan: {fault}")
    redistribution = Redistribution(source, target, dtype)  # type: ignore[arg-type]  # it makes the type
    model = machine or Machine.measured()
    solution = select_plan(redistribution, _named(solver), model, max_memory)
    inherited = {item.name: getattr(solution.plan, item.name) for item in fields(Plan)}
    return ChosenPlan(
        **inherited,
        machine=model,
        losers=solution.losers,
        refusals=solution.refusals,
    )


def fault_of_options(solver: object, max_memory: object, machine: object) -> str:
    """What is wrong with the options of a plan, if they are of other types than they may be."""
    if solver is not None and not isinstance(solver, str) and not is_solver(solver):
        return (
            f"solver={describe(solver)} is no solver. Write its name, such as 'exchange', or one "
            "of distspmd.solvers.SOLVERS."
        )
    if max_memory is not None and not is_count(max_memory):
        return f"max_memory={describe(max_memory)} is no number of bytes."
    if machine is not None and not isinstance(machine, Machine):
        return f"machine={describe(machine)} is no distspmd.plans.Machine."
    return ""


def _named(solver: str | Solver | None) -> Sequence[Solver]:
    if solver is None:
        return known_solvers()
    if not isinstance(solver, str):
        return (solver,)
    is_ours = any(own.name == solver for own in SOLVERS)  # then plugins are not read
    known = SOLVERS if is_ours else known_solvers()
    found = tuple(each for each in known if each.name == solver)
    if not found:
        names = ", ".join(each.name for each in known)
        raise NoSolver(f"there is no solver {solver!r}; write one of {names}.")
    return found
