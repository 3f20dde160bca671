"""What users call to have something proved: a plan, or a whole lowered program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distspmd.errors import ArgumentError, describe
from distspmd.plans import verifier
from distspmd.plans.plan import Plan

if TYPE_CHECKING:
    from dace import SDFG

    from distspmd.lowering import Lowering


def verify(proved: Plan | Lowering | SDFG) -> None:
    """Prove a plan, or a lowered program with all its plans.

    Of a plan: each element that the target needs arrives once, and each operand is reduced once. Of
    a program, besides: tiles contain what plans and spaces touch, all iterations run, and nothing
    reads a value that is older than the last write of it, on any rank.

    Args:
        proved: a plan, what :func:`distspmd.lower` returned, or its SDFG.

    Raises:
        PlanError: names what is wrong first, with the rank and the box.
        ArgumentError: nothing that can be proved, or sizes that are symbols.
    """
    if isinstance(proved, Plan):
        verifier.verify(proved)
        return
    from distspmd.checking.prove_program import prove_program
    from distspmd.lowering import ATTRIBUTE, Lowering

    lowering = getattr(proved, ATTRIBUTE, proved)
    if not isinstance(lowering, Lowering):
        raise ArgumentError(
            f"verify: {describe(proved)} is no plan and no lowered program of numbers for sizes. "
            "Pass what distspmd.plan or distspmd.lower returned."
        )
    prove_program(lowering)
