"""Distributions of ``np.random`` that take several numbers of a generator for each of theirs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.checks import end_if
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, index_expression, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.library import distributions
from distspmd.frontend.from_numpy.numpy import random_orders  # noqa: F401 (its methods)
from distspmd.frontend.from_numpy.numpy.random_numbers import (
    FLOAT64,
    Stream,
    add_legacy_functions,
    as_drawn,
    draw_at_places,
    shape_drawn,
    stream_method,
    typed,
)
from distspmd.frontend.tensor_ir.statements import Index
from distspmd.frontend.tensor_ir.whole_numbers import Whole


def _drawn(
    run: Context, rng: Stream, operation: str, size: object, parameters: Sequence[Any], least: float
) -> Tensor:
    """Numbers of an operation, one for each place, of parameters that are checked.

    Args:
        run: the interpreter.
        rng: the generator.
        operation: its name.
        size: as the program gives it.
        parameters: of the distribution.
        least: that each of them can be.
    """
    tracer = run.tracer
    shape = shape_drawn(run, size, *parameters)
    for value in parameters:
        _check(run, operation, value, least)
    whole = [
        tracer.broadcast(tracer.settled(converted(tracer, p, FLOAT64)), shape) for p in parameters
    ]

    def element(place: Whole, index: tuple[Index, ...]) -> Expression:
        given = [cast(t.element(index), FLOAT64) for t in whole]
        return apply(operation, rng.seed, rng.number, index_expression(place), *given)

    return draw_at_places(run, rng, shape, element, FLOAT64)


def _check(run: Context, operation: str, value: object, least: float) -> None:
    """Let what no distribution has end the program, or be refused."""
    name = operation.removesuffix("_draw").replace("_", " ")
    message = f"a parameter of the {name} distribution is below {least:g}, or NaN"
    if isinstance(value, int | float | np.generic):
        if not float(value) >= least:
            run.tracer.refuse(f"ValueError: {message}")
    else:
        fine = run.call(np.all, [run.call(np.greater_equal, [value, least], {})], {})
        end_if(run, run.call(np.logical_not, [fine], {}), "ValueError", message)


def _whole(run: Context, drawn: Tensor, size: object) -> Any:
    """Whole numbers; one of Python where NumPy gives one."""
    found = run.tracer.stored_anew(converted(run.tracer, drawn, INT64))
    return as_drawn(found, found.shape, int) if size is None else found


# -- by rejection ---------------------------------------------------------------------------------


@stream_method("standard_gamma")
def _standard_gamma(
    run: Context,
    rng: Stream,
    shape: object,
    size: Any = None,
    dtype: object = np.float64,
    out: Any = None,
) -> Any:
    size = out.shape if out is not None and size is None else size
    found = _drawn(run, rng, "gamma_draw", size, [shape], 0.0)
    return as_drawn(typed(run, found, dtype, out), found.shape)


@stream_method("log_standard_gamma")
def _log_standard_gamma(run: Context, rng: Stream, shape: object, size: object = None) -> Any:
    """The logarithm: numbers of small shapes are too small for floating-point numbers."""
    return _drawn(run, rng, "log_gamma_draw", size, [shape], 0.0)


@stream_method("gamma")
def _gamma(
    run: Context, rng: Stream, shape: object, scale: object = 1.0, size: object = None
) -> Any:
    extents = shape_drawn(run, size, shape, scale)
    drawn = _drawn(run, rng, "gamma_draw", extents, [shape], 0.0)
    found = run.tracer.stored_anew(combine(run.tracer, np.multiply, [drawn, scale]))
    return as_drawn(found, extents)


@stream_method("poisson")
def _poisson(run: Context, rng: Stream, lam: object = 1.0, size: object = None) -> Any:
    return _whole(run, _drawn(run, rng, "poisson_draw", size, [lam], 0.0), size)


@stream_method("binomial")
def _binomial(run: Context, rng: Stream, n: object, p: object, size: object = None) -> Any:
    _check(run, "binomial", run.call(np.subtract, [1.0, p], {}), 0.0)
    return _whole(run, _drawn(run, rng, "binomial_draw", size, [n, p], 0.0), size)


@stream_method("hypergeometric")
def _hypergeometric(
    run: Context, rng: Stream, ngood: object, nbad: object, nsample: object, size: object = None
) -> Any:
    left = run.call(np.subtract, [run.call(np.add, [ngood, nbad], {}), nsample], {})
    _check(run, "hypergeometric", left, 0.0)
    parameters = [ngood, nbad, nsample]
    return _whole(run, _drawn(run, rng, "hypergeometric_draw", size, parameters, 0.0), size)


@stream_method("zipf")
def _zipf(run: Context, rng: Stream, a: object, size: object = None) -> Any:
    return _whole(run, _drawn(run, rng, "zipf_draw", size, [a], float(np.nextafter(1, 2))), size)


@stream_method("logseries")
def _logseries(run: Context, rng: Stream, p: object, size: object = None) -> Any:
    _check(run, "logarithmic", run.call(np.subtract, [1.0 - 2.0**-53, p], {}), 0.0)
    return _whole(run, _drawn(run, rng, "log_series_draw", size, [p], 0.0), size)


@stream_method("vonmises")
def _vonmises(run: Context, rng: Stream, mu: object, kappa: object, size: object = None) -> Any:
    tracer, turn = run.tracer, 2 * np.pi
    extents = shape_drawn(run, size, mu, kappa)
    drawn = _drawn(run, rng, "von_mises_draw", extents, [kappa], 0.0)
    moved = combine(tracer, np.add, [combine(tracer, np.add, [drawn, mu]), np.pi])
    inside = combine(tracer, np.subtract, [combine(tracer, np.remainder, [moved, turn]), np.pi])
    return as_drawn(tracer.stored_anew(inside), extents)


# -- by others ------------------------------------------------------------------------------------


def _follows(name: str) -> None:
    """Add a distribution that is written out."""
    python = getattr(distributions, name)

    @stream_method(name)
    def handler(run: Context, rng: Stream, *given: object, **named: object) -> Any:
        return run.call(python, [rng, *given], named)


for _name in (
    *("beta", "chisquare", "f", "noncentral_chisquare", "noncentral_f", "standard_t"),
    *("triangular", "wald", "negative_binomial", "dirichlet", "multinomial"),
    *("multivariate_normal", "permuted"),
):
    _follows(_name)


@stream_method("spawn")
def _spawn(run: Context, rng: Stream, n_children: object) -> list[Stream]:
    """Generators with seeds that this one draws."""
    tracer = run.tracer
    count = tracer.as_whole(n_children, "a number of generators")
    if not isinstance(count, int):
        tracer.refuse("so many generators as the run decides")

    def element(place: Whole, index: tuple[Index, ...]) -> Expression:
        drawn = apply("uniform", rng.seed, rng.number, index_expression(place))
        return cast(apply("multiply", drawn, number(2.0**53, FLOAT64)), INT64)

    seeds = draw_at_places(run, rng, (count,), element, INT64)
    return [run.call(np.random.default_rng, [seeds_at(tracer, seeds, k)], {}) for k in range(count)]


def seeds_at(tracer: object, seeds: Tensor, k: Whole) -> Tensor:
    """One of several numbers."""
    return Tensor((), seeds.dtype, lambda _: seeds.element((k,)))


add_legacy_functions()
