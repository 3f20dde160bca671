"""``scipy.integrate.solve_ivp``, where SciPy itself takes the steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.library.conversations import Asked, converse
from distspmd.frontend.from_numpy.library.equations import tuple_of
from distspmd.runtime.host.callbacks import MOST_EVENTS

NUMBER = np.float64
MOST_STEPS = 10_000
"""Steps of which the states are kept where the program does not say at which times."""


class Solution:
    """What ``solve_ivp`` gives."""

    def __init__(self, t: Any, y: Any, counts: Any, events: Any, sol: Any) -> None:
        self.t = t
        self.y = y
        self.sol = sol
        self.nfev, self.njev, self.nlu, self.status = counts[0], counts[1], counts[2], counts[3]
        self.success = counts[4]
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
    dense_output: Any = False,
    events: Any = None,
    vectorized: Any = False,
    args: Any = None,
    **options: Any,
) -> Any:
    """``scipy.integrate.solve_ivp``."""
    more = () if args is None else tuple_of(args)
    start = np.atleast_1d(np.asarray(y0) * 1.0)
    n = start.shape[0]
    functions: Any = [lambda z: np.asarray(fun(z[0], z[1:], *more))]
    values: Any = [(n,)]
    told = {k: v for k, v in options.items() if k != "jac"}
    jac = options.get("jac")
    if callable(jac):
        told["jac"] = Asked(1)
        functions.append(lambda z: np.asarray(jac(z[0], z[1:], *more)))
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
    results: Any = [("0", (most,), NUMBER), ("1", (n, most), NUMBER), ("2", (), int)]
    results += [("3", (), int), ("4", (), int), ("5", (), int), ("6", (), int), ("7", (), bool)]
    for _ in each:
        results += [("8", (MOST_EVENTS,), NUMBER), ("9", (MOST_EVENTS, n), NUMBER), ("10", (), int)]
    given = [Asked(0), t_span, start, method, t_eval, asked, most]
    numbered = [(str(k), shape, kind) for k, (_, shape, kind) in enumerate(results)]
    found = converse(called, given, told, functions, np.zeros(n + 1), values, numbered)

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


def at_events(found: Any, first: Any) -> Any:
    """Times and states of the zeros of an event."""
    count = found[first + 2]
    return found[first][:count], found[first + 1][:count]


def turns_of(event: Any) -> Any:
    """Whether an event ends the integration, and in which direction it is passed."""
    return getattr(event, "terminal", False), getattr(event, "direction", 0.0)


def happening(event: Any, more: Any) -> Any:
    """An event as a function of time and state in one vector."""

    def value(z: Any) -> Any:
        return event(z[0], z[1:], *more)

    return value
