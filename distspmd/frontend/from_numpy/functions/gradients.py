"""Gradients inside of a program, which are those of DaCe's parser: it is asked instead."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.functions.registry import METHODS, attribute
from distspmd.frontend.from_numpy.transcript import AsksForGradients


def _refuse(run: Context, *_: Any, **__: Any) -> Any:
    raise AsksForGradients(run.tracer.message("gradients inside of a program"))


METHODS["requires_grad_"] = METHODS["backward"] = METHODS["detach"] = _refuse
attribute("grad")(_refuse)
