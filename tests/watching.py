"""What is looked at after each pass while the suite lowers programs."""

from __future__ import annotations

from distspmd import pipeline
from distspmd.passes.compilation import Compilation, Pass

_VIEWS_ARE_ARRAYS = "inline-nested"
"""DaCe's parser leaves some views that its own validation refuses; this pass removes all views."""


def validate_after(each: Pass, compilation: Compilation) -> None:
    """See to it that a pass leaves a valid SDFG, from the pass on that removes views."""
    names = [known.name for known in pipeline.PIPELINE]
    if names.index(each.name) >= names.index(_VIEWS_ARE_ARRAYS):
        compilation.sdfg.validate()
