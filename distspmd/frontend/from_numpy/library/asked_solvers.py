"""Solvers of SciPy, where SciPy itself takes the steps, and asks for functions of the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.conversations import Asked, converse, tuple_of
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

    def add(self, function: object, shape: object) -> Any:
        """What stands for a further function."""
        self.functions.append(function)
        self.values.append(shape)
        return Asked(len(self.functions) - 1)

    def solve(self, name: Any, given: object, told: object, start: object, results: object) -> Any:
        """What a function of ``scipy.optimize`` gives that gets these."""
        path = "scipy.optimize:" + name
        values = self.values
        return converse(path, given, told, self.functions, start, values, results, self.first)

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
    x0: object,
    args: object = (),
    method: Any = None,
    jac: Any = None,
    hess: Any = None,
    hessp: object = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: Any = None,
    callback: object = None,
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
    tells = way in TOLD and options is not None and options.get("disp")
    if tells:
        named["options"] = {**options, "disp": False}
    results: Any = [("x", (n,), NUMBER), ("fun", (), NUMBER), ("nfev", (), int)]
    results += [("status", (), int), ("success", (), bool)]
    results += [] if way in ("cobyla", "cobyqa") else [("nit", (), int)]
    results += [("jac", (n,), NUMBER)] if way in SLOPES else []
    results += [("njev", (), int)] if way in ("bfgs", "cg") else []
    results += [("hess_inv", (n, n), NUMBER)] if way == "bfgs" else []
    found = asked.solve("minimize", [Asked(0), start], named, start, results)
    made = recorded([name for name, _, _ in results], found)
    if tells:
        tell(made, way)
    return made


TOLD = ("bfgs", "cg", "nelder-mead")
"""Methods that say how they end where ``disp`` is set."""


def tell(found: Any, way: object) -> None:
    """What SciPy prints at the end; of what is amiss it warns."""
    if found.status == 0:
        print("Optimization terminated successfully.")
    if found.status == 0 or way != "nelder-mead":
        print(f"         Current function value: {found.fun:f}")
        print(f"         Iterations: {found.nit:d}")
        print(f"         Function evaluations: {found.nfev:d}")
        if way != "nelder-mead":
            print(f"         Gradient evaluations: {found.njev:d}")


def way_of(method: Any, limits: object, bounds: object) -> Any:
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
    x0: object,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: object = "trf",
    ftol: object = 1e-8,
    xtol: object = 1e-8,
    gtol: object = 1e-8,
    x_scale: object = None,
    loss: object = "linear",
    f_scale: object = 1.0,
    diff_step: object = None,
    tr_solver: object = None,
    tr_options: object = None,
    jac_sparsity: object = None,
    max_nfev: object = None,
    verbose: object = 0,
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
    xdata: object,
    ydata: object,
    p0: Any,
    sigma: Any = None,
    absolute_sigma: Any = False,
    check_finite: object = None,
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


def differential_evolution(
    func: object, bounds: object, args: object = (), **options: object
) -> Any:
    """``scipy.optimize.differential_evolution``."""
    return over_bounds("differential_evolution", func, bounds, args, options)


def dual_annealing(func: object, bounds: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.dual_annealing``."""
    return over_bounds("dual_annealing", func, bounds, args, options)


def shgo(func: object, bounds: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.shgo``."""
    return over_bounds("shgo", func, bounds, args, options)


def over_bounds(name: object, func: Any, bounds: Any, args: object, options: object) -> Any:
    """A search for the least value within bounds."""
    more = tuple_of(args)
    n = np.shape(bounds)[0]
    results: Any = [("x", (n,), NUMBER), ("fun", (), NUMBER), ("nfev", (), int), ("nit", (), int)]
    results.append(("success", (), bool))
    asked = Functions(lambda x: func(x, *more))
    found = asked.solve(name, [Asked(0), bounds], options, np.zeros(n), results)
    return recorded([name for name, _, _ in results], found)


def basinhopping(func: Any, x0: object, **options: Any) -> Any:
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


def by_name(name: Any, func: Any, x0: object, fprime: object, args: object, options: Any) -> Any:
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


def fmin(func: object, x0: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.fmin``."""
    given = {"fatol": options.get("ftol", 1e-4), "xatol": options.get("xtol", 1e-4)}
    given["disp"] = options.get("disp", 1)
    given["maxiter"] = options.get("maxiter")
    given["maxfev"] = options.get("maxfun")
    if options.get("retall") or "callback" in options or "initial_simplex" in options:
        raise NotImplementedError("scipy.optimize.fmin with retall, callback or initial_simplex")
    found = minimize(func, x0, args, "Nelder-Mead", options=given)
    more = found.fun, found.nit, found.nfev, found.status
    return (found.x, *more) if options.get("full_output") else found.x


def fmin_bfgs(
    f: object, x0: object, fprime: object = None, args: object = (), **options: object
) -> Any:
    """``scipy.optimize.fmin_bfgs``."""
    if options.get("retall") or options.get("full_output") or "callback" in options:
        raise NotImplementedError("scipy.optimize.fmin_bfgs with retall, full_output, callback")
    given = {{"epsilon": "eps"}.get(name, name): value for name, value in options.items()}
    return minimize(f, x0, args, "BFGS", fprime, options={"disp": 1, **given}).x


def fmin_cg(
    f: object, x0: object, fprime: object = None, args: object = (), **options: object
) -> Any:
    """``scipy.optimize.fmin_cg``, which prints nothing."""
    return by_name("fmin_cg", f, x0, fprime, args, options)


def fmin_powell(func: object, x0: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.fmin_powell``, which prints nothing."""
    return by_name("fmin_powell", func, x0, None, args, options)


def fmin_l_bfgs_b(
    func: object,
    x0: object,
    fprime: object = None,
    args: object = (),
    approx_grad: object = False,
    bounds: object = None,
    **options: object,
) -> Any:
    """``scipy.optimize.fmin_l_bfgs_b``."""
    slopes = fprime if callable(fprime) else True
    jac = None if approx_grad else slopes
    found = minimize(func, x0, args, "L-BFGS-B", jac, bounds=bounds, options=options)
    told = {"grad": found.jac, "funcalls": found.nfev, "nit": found.nit, "warnflag": found.status}
    return found.x, found.fun, told


def root(
    fun: object,
    x0: object,
    args: object = (),
    method: object = "hybr",
    jac: object = None,
    **options: object,
) -> Any:
    """``scipy.optimize.root``."""
    asked, start = system(fun, x0, args)
    told = {**options, "method": method}
    if callable(jac):
        told["jac"] = add_slopes(asked, jac, start, args)
    n = start.shape[0]
    results: Any = [("x", (n,), NUMBER), ("fun", (n,), NUMBER), ("success", (), bool)]
    if method in ("hybr", "lm"):
        results += [("nfev", (), int), ("status", (), int)]
    found = asked.solve("root", [Asked(0), start], told, start, results)
    return recorded([name for name, _, _ in results], found)


def fsolve(
    func: object,
    x0: object,
    args: object = (),
    fprime: object = None,
    full_output: object = 0,
    **options: object,
) -> Any:
    """``scipy.optimize.fsolve``, without SciPy's warnings."""
    asked, start = system(func, x0, args)
    told = {**options, "full_output": True}
    if fprime is not None:
        told["fprime"] = add_slopes(asked, fprime, start, args)
    n = start.shape[0]
    results: Any = [("0", (n,), NUMBER), ("1.nfev", (), int), ("1.fvec", (n,), NUMBER)]
    results += [("2", (), int)]
    x, calls, values, info = asked.solve("fsolve", [Asked(0), start], told, start, results)
    return (x, {"nfev": calls, "fvec": values}, info, "") if full_output else x


def leastsq(
    func: Any,
    x0: object,
    args: object = (),
    Dfun: Any = None,  # noqa: N803
    full_output: object = False,
    **options: Any,
) -> Any:
    """``scipy.optimize.leastsq``, without SciPy's warnings."""
    more, start = tuple_of(args), np.ravel(np.asarray(x0) * 1.0)
    asked = Functions(lambda x: np.ravel(np.asarray(func(x, *more))))
    at = asked.functions[0](start)
    n, m = start.shape[0], at.shape[0]
    asked.values[0] = (m,)
    asked.first.append((0, at))
    told = {**options, "full_output": True}
    if Dfun is not None:
        shape = (n, m) if options.get("col_deriv") else (m, n)
        told["Dfun"] = asked.add(lambda x: np.asarray(Dfun(x, *more)), shape)
    results: Any = [("0", (n,), NUMBER), ("1", (n, n), NUMBER), ("2.nfev", (), int)]
    results += [("2.fvec", (m,), NUMBER), ("4", (), int)]
    given = results if full_output else [results[0], results[4]]
    found = asked.solve("leastsq", [Asked(0), start], told, start, given)
    if not full_output:
        return found
    return found[0], found[1], {"nfev": found[2], "fvec": found[3]}, "", found[4]


def system(fun: Any, x0: object, args: object) -> Any:
    """As many functions as numbers, and where a solver starts."""
    more, start = tuple_of(args), np.ravel(np.asarray(x0) * 1.0)
    asked = Functions(lambda x: np.ravel(np.asarray(fun(x, *more))))
    asked.values[0] = start.shape
    return asked, start


def add_slopes(asked: Any, jac: Any, start: Any, args: object) -> Any:
    """What stands for the derivatives of as many functions as numbers."""
    more = tuple_of(args)
    return asked.add(lambda x: np.asarray(jac(x, *more)), (start.shape[0], start.shape[0]))


# -- functions of one number -----------------------------------------------------------------------


def of_number(function: Any, args: object) -> Any:
    """A function of a number as one of a vector."""
    more = tuple_of(args)
    return lambda z: function(z[0], *more)


def zero_between(name: object, f: object, a: Any, b: Any, args: object, options: Any) -> Any:
    """A zero between two places, and what it took if that is asked for."""
    told = {**options, "full_output": True}
    asked = Functions(of_number(f, args))
    results = [("0", (), float), *STEPS]
    found = asked.solve(name, [Asked(0), a, b], told, np.zeros(1), results)
    return with_steps(found, options.get("full_output", False))


STEPS: Any = (("1.iterations", (), int), ("1.function_calls", (), int), ("1.converged", (), bool))
"""What solvers for a zero tell of their way."""


def with_steps(found: Any, is_asked: Any) -> Any:
    """A zero, and what it took."""
    names = ["root", "iterations", "function_calls", "converged"]
    return (found[0], recorded(names, found)) if is_asked else found[0]


def brentq(f: object, a: object, b: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.brentq``."""
    return zero_between("brentq", f, a, b, args, options)


def brenth(f: object, a: object, b: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.brenth``."""
    return zero_between("brenth", f, a, b, args, options)


def bisect(f: object, a: object, b: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.bisect``."""
    return zero_between("bisect", f, a, b, args, options)


def ridder(f: object, a: object, b: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.ridder``."""
    return zero_between("ridder", f, a, b, args, options)


def toms748(f: object, a: object, b: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.toms748``."""
    return zero_between("toms748", f, a, b, args, options)


def newton(
    func: Any,
    x0: Any,
    fprime: object = None,
    args: object = (),
    tol: object = 1.48e-8,
    maxiter: object = 50,
    fprime2: object = None,
    x1: object = None,
    rtol: object = 0.0,
    full_output: object = False,
    disp: object = True,
) -> Any:
    """``scipy.optimize.newton``, of a number or of several."""
    more, start = tuple_of(args), np.asarray(x0) * 1.0
    is_number = np.ndim(x0) == 0
    if is_number:
        asked = Functions(of_number(func, more))
    else:
        asked = Functions(lambda z: np.asarray(func(z, *more)))
        asked.values[0] = start.shape
    told = {"tol": tol, "maxiter": maxiter, "x1": x1, "rtol": rtol, "disp": disp}
    for name, slope in (("fprime", fprime), ("fprime2", fprime2)):
        if slope is not None and is_number:
            told[name] = asked.add(of_number(slope, more), ())
        if slope is not None and not is_number:
            told[name] = asked.add(values_of(slope, more), start.shape)
    line = np.atleast_1d(start)
    if not is_number:
        if full_output:
            raise NotImplementedError("scipy.optimize.newton of several with full_output=True")
        return asked.solve("newton", [Asked(0), start], told, line, [("", start.shape, NUMBER)])[0]
    told["full_output"] = True
    kind = line.dtype
    found = asked.solve("newton", [Asked(0), x0], told, line, [("0", (), kind), *STEPS])
    return with_steps(found, full_output)


def values_of(slope: Any, more: Any) -> Any:
    """A function of several numbers, one by one."""
    return lambda z: np.asarray(slope(z, *more))


def root_scalar(f: object, args: object = (), method: object = None, **options: object) -> Any:
    """``scipy.optimize.root_scalar``."""
    more = tuple_of(args)
    asked = Functions(of_number(f, args))
    told = {**options, "method": method}
    for name in ("fprime", "fprime2"):
        if callable(options.get(name)):
            told[name] = asked.add(of_number(options[name], more), ())
    results: Any = [("root", (), float), ("iterations", (), int), ("function_calls", (), int)]
    results.append(("converged", (), bool))
    found = asked.solve("root_scalar", [Asked(0)], told, np.zeros(1), results)
    return recorded([name for name, _, _ in results], found)


def minimize_scalar(fun: object, *given: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.minimize_scalar``."""
    told = {**dict(zip(("bracket", "bounds"), given, strict=False)), **options}
    results: Any = [("x", (), NUMBER), ("fun", (), NUMBER), ("nit", (), int), ("nfev", (), int)]
    results.append(("success", (), bool))
    asked = Functions(of_number(fun, args))
    found = asked.solve("minimize_scalar", [Asked(0)], told, np.zeros(1), results)
    return recorded([name for name, _, _ in results], found)


def least_of(name: object, func: object, given: Any, args: object, options: Any, kinds: Any) -> Any:
    """A minimum of a function of a number; more, if that is asked for."""
    told = {**options, "full_output": True}
    results = [(str(k), (), kind) for k, kind in enumerate(kinds)]
    asked = Functions(of_number(func, args))
    found = asked.solve(name, [Asked(0), *given], told, np.zeros(1), results)
    return tuple(found) if options.get("full_output") else found[0]


def brent(func: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.brent``."""
    return least_of("brent", func, [], args, options, [NUMBER, NUMBER, int, int])


def golden(func: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.golden``."""
    return least_of("golden", func, [], args, options, [NUMBER, NUMBER, int])


def fminbound(func: object, x1: object, x2: object, args: object = (), **options: object) -> Any:
    """``scipy.optimize.fminbound``."""
    return least_of("fminbound", func, [x1, x2], args, options, [NUMBER, NUMBER, int, int])


def bracket(
    func: object, xa: object = 0.0, xb: object = 1.0, args: object = (), **options: object
) -> Any:
    """``scipy.optimize.bracket``."""
    results = [*((str(k), (), NUMBER) for k in range(6)), ("6", (), int)]
    asked = Functions(of_number(func, args))
    return asked.solve("bracket", [Asked(0), xa, xb], options, np.zeros(1), results)


OPTIMIZERS = (
    *(minimize, least_squares, root, fsolve, leastsq, newton, root_scalar, minimize_scalar),
    *(brentq, brenth, bisect, ridder, toms748, brent, golden, fminbound, bracket),
    *(differential_evolution, dual_annealing, shgo, basinhopping),
    *(fmin, fmin_bfgs, fmin_cg, fmin_powell, fmin_l_bfgs_b),
)
"""Functions of ``scipy.optimize`` that take functions of the program."""
