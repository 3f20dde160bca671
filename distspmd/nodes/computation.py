"""Tasklets whose expressions are known: what they compute is carried beside its code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dace import dtypes
from dace.properties import CodeBlock, Property, make_properties

from distspmd.dace_compat.tasklet_kinds import OwnTasklet
from distspmd.expressions.cpp import CppPrinter
from distspmd.expressions.text import Assignments, assignments_text, parse_assignments


@make_properties
class Computation(OwnTasklet):
    """A tasklet of assignments of expressions to its output connectors; its code is C++.

    Arguments of the expressions are its input connectors. Variables of indices are parameters of
    maps, or what DaCe declares before the code where it renames parameters.
    """

    expressions = Property(dtype=str, default="", desc="Text form of the assignments")

    def __init__(
        self,
        label: str,
        assignments: Assignments = (),
        inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None,
        **keywords: Any,
    ) -> None:
        keywords["language"] = dtypes.Language.CPP
        super().__init__(label, dict(inputs or {}), dict(outputs or {}), **keywords)
        self.assign(assignments)

    def assign(self, assignments: Assignments) -> None:
        """Compute other expressions; the connectors must be there."""
        before = self.before
        self.expressions = assignments_text(assignments)
        self.code = CodeBlock(before + _code(assignments), dtypes.Language.CPP)

    @property
    def before(self) -> str:
        """What stands before its code: declarations of names that DaCe has changed."""
        return str(self.code.as_string).removesuffix(_code(parse_assignments(self.expressions)))

    def assignments(self) -> Assignments | None:
        """What it computes; None if somebody changed the code since."""
        found = parse_assignments(self.expressions)
        return found if self.code.as_string.endswith(_code(found)) else None


def _code(assignments: Assignments) -> str:
    return CppPrinter().assignments(assignments)
