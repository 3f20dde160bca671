"""``scipy.integrate``, where SciPy itself takes the steps and chooses the places."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.asked_solvers import Functions
from distspmd.frontend.from_numpy.library.conversations import Asked, converse, tuple_of
from distspmd.runtime.host.callbacks import MOST_EVENTS

NUMBER = np.float64
MOST_STEPS = 10_000
"""Steps of which the states are kept where the program does not say at which times."""


MESSAGES = (
    "The solver successfully reached the end of the integration interval.",
    "A termination event occurred.",
)
"""How SciPy says that it has come to the end, or to an event."""


class Solution:
    """What ``solve_ivp`` gives."""

    def __init__(self, t: Any, y: Any, counts: Any, events: Any, sol: Any) -> None:
        self.t = t
        self.y = y
        self.sol = sol
        self.nfev, self.njev, self.nlu, self.status = counts[0], counts[1], counts[2], counts[3]
        self.success = counts[4]
        self.message = MESSAGES[1] if counts[3] == 1 else MESSAGES[0]
        self.t_events = None if events is None else [times for times, _ in events]
        self.y_events = None if events is None else [states for _, states in events]

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)


def solve_ivp(
    fun: Any,
    t_span: Any,
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: object = False,
    events: Any = None,
    vectorized: object = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """``scipy.integrate.solve_ivp``."""
    more = () if args is None else tuple_of(args)
    start = np.atleast_1d(np.asarray(y0) * 1.0)
    n = start.shape[0]
    functions: Any = [lambda z: np.asarray(fun(time_of(z), z[1:], *more))]
    values: Any = [(n,)]
    told = {k: v for k, v in options.items() if k != "jac"}
    jac = options.get("jac")
    if callable(jac):
        told["jac"] = Asked(1)
        functions.append(lambda z: np.asarray(jac(time_of(z), z[1:], *more)))
        values.append((n, n))
    elif jac is not None:
        told["jac"] = jac
    each = [] if events is None else [events] if callable(events) else list(events)
    asked = []
    for event in each:
        asked.append((Asked(len(functions)), *turns_of(event)))
        functions.append(happening(event, more))
        values.append(())
    most = MOST_STEPS if t_eval is None else len(t_eval)
    called = "distspmd.runtime.host.callbacks:solve_ivp"
    results: Any = [("0", (most,), NUMBER), ("1", (n, most), start.dtype), ("2", (), int)]
    results += [("3", (), int), ("4", (), int), ("5", (), int), ("6", (), int), ("7", (), bool)]
    for _ in each:
        results += [
            ("8", (MOST_EVENTS,), NUMBER),
            ("9", (MOST_EVENTS, n), start.dtype),
            ("10", (), int),
        ]
    given = [Asked(0), t_span, start, method, t_eval, asked, most]
    numbered = [(str(k), shape, kind) for k, (_, shape, kind) in enumerate(results)]
    found = converse(called, given, told, functions, np.zeros(n + 1, start.dtype), values, numbered)

    def between(t: Any) -> Any:
        """The states at some times: those that another run finds there."""
        inner = solve_ivp(
            fun, t_span, y0, method, np.atleast_1d(t), events=events, args=args, **options
        )
        return inner.y[:, 0] if np.ndim(t) == 0 else inner.y

    count = found[2]
    happened = None if events is None else [at_events(found, 8 + 3 * k) for k in range(len(each))]
    sol = between if dense_output else None
    return Solution(found[0][:count], found[1][:, :count], found[3:8], happened, sol)


def time_of(z: Any) -> Any:
    """The time, before the state."""
    return np.real(z[0])


def at_events(found: Any, first: Any) -> Any:
    """Times and states of the zeros of an event."""
    count = found[first + 2]
    return found[first][:count], found[first + 1][:count]


def turns_of(event: object) -> Any:
    """Whether an event ends the integration, and in which direction it is passed."""
    return getattr(event, "terminal", False), getattr(event, "direction", 0.0)


def happening(event: Any, more: Any) -> Any:
    """An event as a function of time and state in one vector."""

    def value(z: Any) -> Any:
        return event(time_of(z), z[1:], *more)

    return value


def odeint(
    func: Any,
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,  # noqa: N803
    tfirst: Any = False,
    **options: object,
) -> Any:
    """``scipy.integrate.odeint``; where SciPy warns that it has given up, the program ends."""
    if options.get("full_output"):
        raise NotImplementedError("scipy.integrate.odeint with full_output=True")
    more = tuple_of(args)
    times, start = np.asarray(t) * 1.0, np.ravel(np.asarray(y0) * 1.0)
    n = start.shape[0]

    def slope(z: Any) -> Any:
        found = func(z[n], z[:n], *more) if tfirst else func(z[:n], z[n], *more)
        return np.ravel(np.asarray(found) * 1.0)

    def slopes(z: Any) -> Any:
        found = Dfun(z[n], z[:n], *more) if tfirst else Dfun(z[:n], z[n], *more)
        return np.asarray(found) * 1.0

    functions: Any = [slope]
    values: Any = [(n,)]
    if Dfun is not None:
        functions.append(slopes)
        values.append((n, n))
        options = {**options, "Dfun": Asked(1)}
    called = "distspmd.runtime.host.callbacks:odeint"
    results: Any = [("", (times.shape[0], n), NUMBER)]
    given = [Asked(0), start, times]
    return converse(called, given, options, functions, np.zeros(n + 1), values, results)[0]


def quad(
    func: Any, a: Any, b: Any, args: Any = (), complex_func: object = False, **options: Any
) -> Any:
    """``scipy.integrate.quad``: the integral, and what it may be wrong by."""
    if options.get("full_output"):
        raise NotImplementedError("scipy.integrate.quad with full_output=True")
    more = tuple_of(args)
    if not complex_func:
        asked = Functions(lambda z: func(z[0], *more) * 1.0)
        return integrated("quad", asked, 1, [a, b], options)
    real = quad(lambda x: np.real(func(x, *more)), a, b, **options)
    imaginary = quad(lambda x: np.imag(func(x, *more)), a, b, **options)
    return real[0] + 1j * imaginary[0], real[1] + 1j * imaginary[1]


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


def dblquad(
    func: Any, a: object, b: object, gfun: object, hfun: object, args: Any = (), **options: object
) -> Any:
    """``scipy.integrate.dblquad``."""
    asked = Functions(lambda z: func(z[0], z[1], *args))
    ends = [end_of(asked, 1, end) for end in (gfun, hfun)]
    return integrated("dblquad", asked, 2, [a, b, *ends], options)


def tplquad(
    func: Any,
    a: object,
    b: object,
    gfun: object,
    hfun: object,
    qfun: object,
    rfun: object,
    args: Any = (),
    **options: object,
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


def integrated(name: Any, asked: Any, size: Any, given: Any, options: object) -> Any:
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


INTEGRATORS = (solve_ivp, odeint, quad, quad_vec, dblquad, tplquad, nquad)
"""Functions of ``scipy.integrate`` that take functions of the program."""
