"""What is looked at after passes while the suite lowers programs.

To validate after each pass takes a third of the time of a lowering. The programs of
`lowering.run_on_paper` are, each with its schedules; all others in two places.
"""

from __future__ import annotations

from distspmd import pipeline
from distspmd.passes.compilation import Compilation, Pass

_VIEWS_ARE_ARRAYS = "inline-nested"
"""DaCe's parser leaves some views that its own validation refuses; this pass removes all views."""


_HALVES = {"deal-blocks", "record"}
"""The last pass before spaces are tiled, and the last of all."""


def validate_halves(each: Pass, compilation: Compilation) -> None:
    """See to it that an SDFG is valid before it is tiled, and when it is lowered."""
    if each.name in _HALVES:
        compilation.sdfg.validate()


def validate_after(each: Pass, compilation: Compilation) -> None:
    """See to it that a pass leaves a valid SDFG, from the pass on that removes views."""
    names = [known.name for known in pipeline.PIPELINE]
    if names.index(each.name) >= names.index(_VIEWS_ARE_ARRAYS):
        compilation.sdfg.validate()
