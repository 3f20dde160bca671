"""``scipy.integrate``: initial values, as loops of the program."""

from __future__ import annotations

import inspect
from typing import Any

from distspmd.frontend.from_numpy.functions.registry import function, named
from distspmd.frontend.from_numpy.functions.written_out import read_in_place
from distspmd.frontend.from_numpy.kinds import has_data
from distspmd.frontend.from_numpy.library import initial_values, multistep, quadrature
from distspmd.frontend.from_numpy.syntax.calls import of_library

read_in_place("scipy.integrate", multistep.odeint)
read_in_place("scipy.integrate", quadrature.quad, quadrature.fixed_quad)


@function(quadrature.is_infinite)
def _is_infinite(run: Any, x: Any) -> bool:
    return not has_data(x) and quadrature.is_infinite(x)


@named("scipy.integrate", "solve_ivp")
def _solve_ivp(
    run: Any,
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
    given = {"dense_output": dense_output, "events": events, "vectorized": vectorized}
    if method not in initial_values.WEIGHTS:
        run.tracer.refuse(f"solve_ivp by {method!r} is not covered: write 'RK45' or 'RK23'")
    for name, value in given.items():
        if value is not None and value is not False:
            run.tracer.refuse(f"solve_ivp with {name}= is not covered: give t_eval=")
    try:
        bound = inspect.signature(initial_values.solve_ivp).bind(
            fun, t_span, y0, method, t_eval, args, **options
        )
    except TypeError as problem:
        run.tracer.refuse(f"solve_ivp: {problem}")
    bound.apply_defaults()
    return of_library(run, initial_values.solve_ivp, bound.arguments)
