"""``scipy.optimize.curve_fit``, which counts the parameters of the function that it gets."""

from __future__ import annotations

import inspect
from typing import Any

from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import asked_solvers
from distspmd.frontend.from_numpy.numpy.registry import named
from distspmd.frontend.from_numpy.reader.frames import Closure


@named("scipy.optimize", "curve_fit")
def _curve_fit(
    run: Context, f: Any, xdata: Any, ydata: Any, p0: Any = None, *given: Any, **options: Any
) -> Any:
    if p0 is None:
        p0 = len(parameters_of(run, f)) - 1
    return run.call(asked_solvers.fitted, [f, xdata, ydata, p0, *given], options)


def parameters_of(run: Context, f: Any) -> list[str]:
    """The names of what a function takes, each by its place.

    Raises:
        Refusal: it takes any number.
    """
    if isinstance(f, Closure):
        places = [a.arg for a in (*f.node.args.posonlyargs, *f.node.args.args)]
        takes_any = f.node.args.vararg is not None
    else:
        kinds = inspect.signature(f).parameters.values()
        places = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]
        takes_any = any(p.kind is p.VAR_POSITIONAL for p in kinds)
    if takes_any:
        run.tracer.refuse("curve_fit of a function with *args: give the first values, p0=")
    return places
