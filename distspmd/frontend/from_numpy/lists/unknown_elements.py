"""What is found out of a statement that reads an element of a list that got none so far.

``if rows and rows[-1] > x: ... else: rows.append(x)`` is left out of a reading that does not know
what the list holds; but what its branches do says so to the next one.
"""

from __future__ import annotations

import ast
from contextlib import suppress

from distspmd.frontend.from_numpy.arrays.transcript import CannotRoll, Refusal
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.kinds.variables import Saved
from distspmd.frontend.from_numpy.lists.run_lists import UnknownElement
from distspmd.frontend.tensor_ir.statements import Block


def look_into(run: Context, node: ast.stmt) -> None:
    """Read the blocks of a statement for what lists get in them; nothing of it is kept."""
    if not isinstance(node, ast.If | ast.While | ast.For):
        return
    for block in (node.body, node.orelse):
        saved = Saved.of(run)
        with suppress(Refusal, CannotRoll, UnknownElement), run.tracer.within(Block()):
            run.block(block)
        noted = run.tracer.noted
        saved.restore(run)
        run.tracer.noted = noted
