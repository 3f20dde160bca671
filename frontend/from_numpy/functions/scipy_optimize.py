"""``scipy.optimize``: zeros and minima of functions, as loops of the program."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.functions.registry import named, refused_by_name
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.library import fits, minima, minimize, roots, secants
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
    if p0 is None:
        p0 = np.ones(len(parameters_of(run, f)) - 1)
    if tuple(map(str, np.ravel(options.get("bounds", ())))) == ("-inf", "inf"):
        del options["bounds"]
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


refused_by_name(
    "scipy.optimize",
    *("fmin_cg", "fmin_powell", "fmin_l_bfgs_b", "fmin_slsqp", "fmin_ncg", "fmin_tnc"),
    instead="scipy.optimize.minimize by BFGS or Nelder-Mead, fmin and fmin_bfgs are covered",
)
refused_by_name(
    "scipy.optimize",
    *("least_squares", "broyden1", "broyden2", "newton_krylov"),
    instead="scipy.optimize.leastsq, root and fsolve are covered",
)
refused_by_name(
    "scipy.optimize",
    *("linprog", "milp", "linear_sum_assignment", "differential_evolution", "basinhopping"),
    *("dual_annealing", "shgo", "brute", "nnls"),
    instead="compute it before the program, and pass it",
)
