"""Gradients inside of a program, which are those of DaCe's parser: it is asked instead."""

from __future__ import annotations

from typing import Any

from distspmd.frontend.from_numpy.arrays.transcript import AsksForGradients
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.registry import METHODS, attribute


def _refuse(run: Context, *_: Any, **__: Any) -> Any:
    raise AsksForGradients(run.tracer.message("gradients inside of a program"))


METHODS["requires_grad_"] = METHODS["backward"] = METHODS["detach"] = _refuse
attribute("grad")(_refuse)
