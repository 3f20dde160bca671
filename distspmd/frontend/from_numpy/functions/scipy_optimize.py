"""``scipy.optimize``: zeros and minima of functions, as loops of the program."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.functions.registry import named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import (
    asked_solvers,
    fits,
    minima,
    minimize,
    roots,
    secants,
)
from distspmd.frontend.from_numpy.syntax.calls import Closure

read_in_place(
    "scipy.optimize",
    *(roots.brentq, roots.brenth, roots.bisect, roots.ridder, secants.newton),
    *(minima.minimize_scalar, minima.brent, minima.golden, minima.fminbound, minima.bracket),
)
read_in_place("scipy.optimize", fits.fsolve, fits.root, fits.leastsq)
read_in_place("scipy.optimize", minimize.minimize, minimize.fmin, minimize.fmin_bfgs)


@named("scipy.optimize", "curve_fit")
def _curve_fit(
    run: Any, f: Any, xdata: Any, ydata: Any, p0: Any = None, *given: Any, **options: Any
) -> Any:
    is_left_out = p0 is None
    if p0 is None:
        p0 = np.ones(len(parameters_of(run, f)) - 1)
    bounds = options.get("bounds", ())
    if len(bounds) == 2 and [str(bound) for bound in bounds] == ["-inf", "inf"]:
        del options["bounds"]
    if options.keys() & {"bounds", "jac", "method"}:
        given_p0 = len(parameters_of(run, f)) - 1 if is_left_out else p0
        return run.call(asked_solvers.fitted, [f, xdata, ydata, given_p0, *given], options)
    return run.call(fits.curve_fit, [f, xdata, ydata, p0, *given], options)


def parameters_of(run: Any, f: Any) -> list[str]:
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
