"""Solvers of SciPy, where SciPy itself takes the steps, and asks for functions of the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.conversations import Asked, converse
from distspmd.frontend.from_numpy.library.equations import tuple_of
from distspmd.frontend.from_numpy.library.held import recorded

NUMBER = np.float64
SLOPES = ("bfgs", "cg", "l-bfgs-b", "tnc", "slsqp", "newton-cg")
"""Methods of ``minimize`` that give the gradient at the minimum."""


class Functions:
    """The functions that a solver asks for, and the shapes of their values."""

    def __init__(self, function: Any) -> None:
        self.functions = [function]
        self.values: list[Any] = [()]
        self.first: list[Any] = []

    def add(self, function: Any, shape: Any) -> Any:
        """What stands for a further function."""
        self.functions.append(function)
        self.values.append(shape)
        return Asked(len(self.functions) - 1)

    def add_limit(self, limit: Any, start: Any) -> Any:
        """What stands for a constraint: its values at the start say how many it has."""
        inside = tuple_of(limit.get("args", ()))
        limited = limited_by(limit["fun"], inside)
        at = limited(start)
        self.first.append((len(self.functions), at))
        known = {"type": limit["type"], "fun": self.add(limited, np.shape(at))}
        if limit.get("jac") is not None:
            slopes = limited_by(limit["jac"], inside)
            known["jac"] = self.add(slopes, (*np.shape(at), start.shape[0]))
        return known


def minimize(
    fun: Any,
    x0: Any,
    args: Any = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Any = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: Any = None,
    options: Any = None,
) -> Any:
    """``scipy.optimize.minimize``."""
    if hessp is not None:
        raise NotImplementedError("scipy.optimize.minimize with hessp=")
    more, start = tuple_of(args), np.ravel(np.asarray(x0) * 1.0)
    n = start.shape[0]

    def value(x: Any) -> Any:
        found = fun(x, *more)
        return found[0] if jac is True else found

    def slopes(x: Any) -> Any:
        found = fun(x, *more)[1] if jac is True else jac(x, *more)
        return np.ravel(np.asarray(found))

    asked = Functions(value)
    named = {"method": method, "bounds": bounds, "tol": tol, "options": options, "jac": jac}
    if jac is True or callable(jac):
        named["jac"] = asked.add(slopes, (n,))
    if callable(hess):
        named["hess"] = asked.add(lambda x: hess(x, *more), (n, n))
    if callback is not None:
        named["callback"] = asked.add(told(callback), ())
    given = [constraints] if isinstance(constraints, dict) else constraints
    limits = [asked.add_limit(limit, start) for limit in given]
    if limits:
        named["constraints"] = limits
    way = way_of(method, limits, bounds)
    results: Any = [("x", (n,), NUMBER), ("fun", (), NUMBER), ("nfev", (), int)]
    results += [("status", (), int), ("success", (), bool)]
    results += [] if way in ("cobyla", "cobyqa") else [("nit", (), int)]
    results += [("jac", (n,), NUMBER)] if way in SLOPES else []
    found = converse(
        "scipy.optimize:minimize",
        [Asked(0), start],
        named,
        asked.functions,
        start,
        asked.values,
        results,
        asked.first,
    )
    return recorded([name for name, _, _ in results], found)


def way_of(method: Any, limits: Any, bounds: Any) -> Any:
    """The method that ``minimize`` takes."""
    if method is not None:
        return method.lower()
    if limits:
        return "slsqp"
    return "bfgs" if bounds is None else "l-bfgs-b"


def told(callback: Any) -> Any:
    """A function that a solver calls behind each step."""

    def call(x: Any) -> Any:
        stops = callback(x)
        return 0.0 if stops is None else 1.0 * stops

    return call


def limited_by(fun: Any, args: Any) -> Any:
    """The function of a constraint, as an array of numbers."""

    def limited(x: Any) -> Any:
        return np.asarray(fun(x, *args)) * 1.0

    return limited


def least_squares(
    fun: Any,
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: Any = "trf",
    ftol: Any = 1e-8,
    xtol: Any = 1e-8,
    gtol: Any = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: Any = 1.0,
    diff_step: Any = None,
    tr_solver: Any = None,
    tr_options: Any = None,
    jac_sparsity: Any = None,
    max_nfev: Any = None,
    verbose: Any = 0,
    args: Any = (),
    kwargs: Any = None,
) -> Any:
    """``scipy.optimize.least_squares``."""
    named = {} if kwargs is None else kwargs
    start = np.atleast_1d(np.asarray(x0) * 1.0)

    def misses(x: Any) -> Any:
        return np.atleast_1d(np.asarray(fun(x, *args, **named)))

    at = misses(start)
    n, m = start.shape[0], at.shape[0]
    functions: Any = [misses]
    values: Any = [(m,)]
    if callable(jac):
        functions.append(lambda x: np.atleast_2d(np.asarray(jac(x, *args, **named))))
        values.append((m, n))
    told = {
        "jac": Asked(1) if callable(jac) else jac,
        "bounds": bounds,
        "method": method,
        "ftol": ftol,
        "xtol": xtol,
        "gtol": gtol,
        "x_scale": x_scale,
        "loss": loss,
        "f_scale": f_scale,
        "diff_step": diff_step,
        "max_nfev": max_nfev,
    }
    results: Any = [("x", (n,), NUMBER), ("cost", (), NUMBER), ("fun", (m,), NUMBER)]
    results += [("jac", (m, n), NUMBER), ("grad", (n,), NUMBER), ("optimality", (), NUMBER)]
    is_free = [str(bound) for bound in bounds] == ["-inf", "inf"]
    mask = NUMBER if is_free and method == "trf" else np.int64
    results += [("active_mask", (n,), mask), ("nfev", (), int), ("status", (), int)]
    results += [("success", (), bool)]
    found = converse(
        "scipy.optimize:least_squares",
        [Asked(0), start],
        told,
        functions,
        start,
        values,
        results,
        [(0, at)],
    )
    return recorded([name for name, _, _ in results], found)


def fitted(
    f: Any,
    xdata: Any,
    ydata: Any,
    p0: Any,
    sigma: Any = None,
    absolute_sigma: Any = False,
    check_finite: Any = None,
    bounds: Any = (-np.inf, np.inf),
    method: Any = None,
    jac: Any = None,
    **options: Any,
) -> Any:
    """``scipy.optimize.curve_fit``; ``p0`` may be the number of parameters."""
    wanted = np.asarray(ydata) * 1.0
    places = np.asarray(xdata) * 1.0
    n = p0 if np.ndim(p0) == 0 else np.shape(p0)[0]
    functions: Any = [lambda x: f(places, *[x[i] for i in range(n)])]
    values: Any = [(wanted.size,)]
    if callable(jac):
        functions.append(lambda x: jac(places, *[x[i] for i in range(n)]))
        values.append((wanted.size, n))
    told = {
        "sigma": sigma,
        "absolute_sigma": absolute_sigma,
        "bounds": bounds,
        "method": method,
        "jac": Asked(1) if callable(jac) else jac,
        "p0": np.ones(n) if np.ndim(p0) == 0 else p0,
        **options,
    }
    if np.ndim(p0) == 0:
        del told["p0"]
    results: Any = [("0", (n,), NUMBER), ("1", (n, n), NUMBER)]
    called = "distspmd.runtime.host.callbacks:curve_fit"
    given = [Asked(0), n, np.zeros(wanted.size), wanted]
    return converse(called, given, told, functions, np.zeros(n), values, results)


def differential_evolution(func: Any, bounds: Any, args: Any = (), **options: Any) -> Any:
    """``scipy.optimize.differential_evolution``."""
    return over_bounds("differential_evolution", func, bounds, args, options)


def dual_annealing(func: Any, bounds: Any, args: Any = (), **options: Any) -> Any:
    """``scipy.optimize.dual_annealing``."""
    return over_bounds("dual_annealing", func, bounds, args, options)


def shgo(func: Any, bounds: Any, args: Any = (), **options: Any) -> Any:
    """``scipy.optimize.shgo``."""
    return over_bounds("shgo", func, bounds, args, options)


def over_bounds(name: Any, func: Any, bounds: Any, args: Any, options: Any) -> Any:
    """A search for the least value within bounds."""
    more = tuple_of(args)
    n = np.shape(bounds)[0]
    results: Any = [("x", (n,), NUMBER), ("fun", (), NUMBER), ("nfev", (), int), ("nit", (), int)]
    results.append(("success", (), bool))
    found = converse(
        "scipy.optimize:" + name,
        [Asked(0), bounds],
        options,
        [lambda x: func(x, *more)],
        np.zeros(n),
        [()],
        results,
    )
    return recorded([name for name, _, _ in results], found)


def basinhopping(func: Any, x0: Any, **options: Any) -> Any:
    """``scipy.optimize.basinhopping``."""
    start = np.ravel(np.asarray(x0) * 1.0)
    results: Any = [("x", start.shape, NUMBER), ("fun", (), NUMBER), ("nfev", (), int)]
    results += [("nit", (), int), ("success", (), bool)]
    inner = options.get("minimizer_kwargs", {})
    more = tuple_of(inner.get("args", ()))
    functions: Any = [lambda x: func(x, *more)]
    values: Any = [()]
    named = {k: v for k, v in inner.items() if k != "args"}
    if callable(inner.get("jac")):
        named["jac"] = Asked(1)
        functions.append(lambda x: inner["jac"](x, *more))
        values.append(start.shape)
    told = {**options, "minimizer_kwargs": named}
    found = converse(
        "scipy.optimize:basinhopping", [Asked(0), start], told, functions, start, values, results
    )
    return recorded([name for name, _, _ in results], found)


def by_name(name: Any, func: Any, x0: Any, fprime: Any, args: Any, options: Any) -> Any:
    """A method of ``minimize`` by its own name: the minimum, and more if that is asked for."""
    if options.get("retall") or options.get("callback") is not None:
        raise NotImplementedError("scipy.optimize." + name + " with retall or callback")
    more = tuple_of(args)
    start = np.ravel(np.asarray(x0) * 1.0)
    n = start.shape[0]
    functions: Any = [lambda x: func(x, *more)]
    values: Any = [()]
    named: Any = {}
    if callable(fprime):
        named["fprime"] = Asked(1)
        functions.append(lambda x: fprime(x, *more))
        values.append((n,))
    told = {**options, **named, "full_output": True, "disp": False}
    whole = [(str(2 + k), (), int) for k in range(3)]
    more_results = [("2", (n, n), NUMBER), ("3", (), int), *whole[2:], ("5", (), int)]
    results: Any = [("0", (n,), NUMBER), ("1", (), NUMBER)]
    results += more_results if name == "fmin_powell" else whole
    found = converse(
        "scipy.optimize:" + name, [Asked(0), start], told, functions, start, values, results
    )
    return tuple(found) if options.get("full_output") else found[0]


def fmin_cg(f: Any, x0: Any, fprime: Any = None, args: Any = (), **options: Any) -> Any:
    """``scipy.optimize.fmin_cg``, which prints nothing."""
    return by_name("fmin_cg", f, x0, fprime, args, options)


def fmin_powell(func: Any, x0: Any, args: Any = (), **options: Any) -> Any:
    """``scipy.optimize.fmin_powell``, which prints nothing."""
    return by_name("fmin_powell", func, x0, None, args, options)


def fmin_l_bfgs_b(
    func: Any,
    x0: Any,
    fprime: Any = None,
    args: Any = (),
    approx_grad: Any = False,
    bounds: Any = None,
    **options: Any,
) -> Any:
    """``scipy.optimize.fmin_l_bfgs_b``."""
    slopes = fprime if callable(fprime) else True
    jac = None if approx_grad else slopes
    found = minimize(func, x0, args, "L-BFGS-B", jac, bounds=bounds, options=options)
    told = {"grad": found.jac, "funcalls": found.nfev, "nit": found.nit, "warnflag": found.status}
    return found.x, found.fun, told


def root(
    fun: Any, x0: Any, args: Any = (), method: Any = "hybr", jac: Any = None, **options: Any
) -> Any:
    """``scipy.optimize.root``."""
    more = tuple_of(args)
    start = np.ravel(np.asarray(x0) * 1.0)
    n = start.shape[0]
    functions: Any = [lambda x: np.asarray(fun(x, *more))]
    values: Any = [(n,)]
    told = {**options, "method": method}
    if callable(jac):
        told["jac"] = Asked(1)
        functions.append(lambda x: np.asarray(jac(x, *more)))
        values.append((n, n))
    results: Any = [("x", (n,), NUMBER), ("fun", (n,), NUMBER), ("success", (), bool)]
    found = converse(
        "scipy.optimize:root", [Asked(0), start], told, functions, start, values, results
    )
    return recorded([name for name, _, _ in results], found)


def quad_vec(f: Any, a: Any, b: Any, **options: Any) -> Any:
    """``scipy.integrate.quad_vec``."""
    more = tuple_of(options.get("args", ()))
    told = {k: v for k, v in options.items() if k != "args"}
    middle = np.array([0.5 if np.isinf(a) or np.isinf(b) else 0.5 * (a + b)])
    shape = np.shape(f(middle[0], *more))
    results: Any = [("0", shape, NUMBER), ("1", (), float)]
    given = [Asked(0), a, b]
    functions: Any = [lambda x: np.asarray(f(x[0], *more)) * 1.0]
    return converse("scipy.integrate:quad_vec", given, told, functions, middle, [shape], results)


def dblquad(func: Any, a: Any, b: Any, gfun: Any, hfun: Any, args: Any = (), **options: Any) -> Any:
    """``scipy.integrate.dblquad``."""
    asked = Functions(lambda z: func(z[0], z[1], *args))
    ends = [end_of(asked, 1, end) for end in (gfun, hfun)]
    return integrated("dblquad", asked, 2, [a, b, *ends], options)


def tplquad(
    func: Any,
    a: Any,
    b: Any,
    gfun: Any,
    hfun: Any,
    qfun: Any,
    rfun: Any,
    args: Any = (),
    **options: Any,
) -> Any:
    """``scipy.integrate.tplquad``."""
    asked = Functions(lambda z: func(z[0], z[1], z[2], *args))
    ends = [end_of(asked, 1, end) for end in (gfun, hfun)]
    ends += [end_of(asked, 2, end) for end in (qfun, rfun)]
    return integrated("tplquad", asked, 3, [a, b, *ends], options)


def nquad(func: Any, ranges: Any, args: Any = ()) -> Any:
    """``scipy.integrate.nquad`` within ends that are numbers."""
    n = len(ranges)
    asked = Functions(lambda z: func(*[z[i] for i in range(n)], *args))
    return integrated("nquad", asked, n, [ranges], {})


def end_of(asked: Any, count: Any, end: Any) -> Any:
    """An end of an integral, which may be a function of so many numbers."""
    if not callable(end):
        return end
    return asked.add(lambda z: end(*[z[i] for i in range(count)]), ())


def integrated(name: Any, asked: Any, size: Any, given: Any, options: Any) -> Any:
    """An integral over several numbers, and what it may be wrong by."""
    results: Any = [("0", (), float), ("1", (), float)]
    return converse(
        "scipy.integrate:" + name,
        [Asked(0), *given],
        options,
        asked.functions,
        np.zeros(size),
        asked.values,
        results,
    )
