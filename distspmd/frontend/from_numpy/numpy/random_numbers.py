"""``np.random``: numbers from a counter, the same at any number of ranks and on any grid.

The numbers are not NumPy's. A number is a function of the seed, of which draw of the generator it
is, and of its place in the array, in reading order (``distspmd/kernels/counter_rng.hpp``); each
call of a method is a draw, also in loops and branches. Distributions follow from numbers u of [0,
1): by the inverse of their distribution function, the normal distribution by Box and Muller. A
generator without a seed has the seed 0.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import sympy

from distspmd.expressions.ir import Expression, apply, cast
from distspmd.frontend.from_numpy.arrays.arithmetic import combine, converted
from distspmd.frontend.from_numpy.arrays.kinds import has_data
from distspmd.frontend.from_numpy.arrays.transcript import DrawsBefore
from distspmd.frontend.from_numpy.arrays.values import INT64, Tensor, View, index_expression, number
from distspmd.frontend.from_numpy.context import Context
from distspmd.frontend.from_numpy.numpy.creation import shape_of
from distspmd.frontend.from_numpy.numpy.registry import FUNCTIONS
from distspmd.frontend.tensor_ir.statements import Index, Length, SetSymbol
from distspmd.frontend.tensor_ir.whole_numbers import add, multiply, symbol

FLOAT64 = np.dtype(np.float64)

_INSTEAD = {"bytes": "use rng.integers(0, 256, n, dtype=np.uint8)"}


class Stream:
    """A generator of a program.

    Attributes:
        seed: an expression of a whole number.
        draws: the symbol that counts its draws.
    """

    def __init__(self, seed: Expression, draws: str) -> None:
        self.seed, self.draws = seed, draws

    @property
    def number(self) -> Expression:
        """Which draw the next one is."""
        return index_expression(symbol(self.draws))

    def __getattr__(self, name: str) -> Any:
        advice = _INSTEAD.get(name, "draw it before the program, and pass it")
        raise AttributeError(f"the method {name!r} of a generator of random numbers: {advice}")


def make_stream(run: Context, seed: object = None) -> Stream:
    """``np.random.default_rng(seed)``."""
    tracer = run.tracer
    if isinstance(seed, Stream):
        return seed
    if isinstance(seed, np.ndarray | list | tuple) and not has_data(seed):
        seed = np.random.SeedSequence(np.asarray(seed).tolist())
    if isinstance(seed, np.random.SeedSequence):
        seed = int(seed.generate_state(1, np.uint64)[0] >> np.uint64(1))
    if isinstance(seed, list | tuple):
        tracer.refuse("a generator with a seed of several numbers of the run; give one")
    if isinstance(seed, np.random.Generator | np.random.RandomState | np.random.BitGenerator):
        tracer.refuse(
            "a generator that was made outside of the program; make it inside, with a seed: "
            "rng = np.random.default_rng(seed)"
        )
    value = tracer.tensor(0 if seed is None else seed)
    if value.shape != () or value.dtype.kind not in "iu":
        tracer.refuse("the seed of a generator has to be one whole number")
    if not isinstance(value, View):
        expression = cast(value.element(()), INT64)
        if not _is_constant(value):
            expression = tracer.stored_anew(converted(tracer, value, INT64), "seed").element(())
    else:
        expression = tracer.stored_anew(converted(tracer, value, INT64), "seed").element(())
    draws = tracer.unique("draws")
    tracer.known.bounds[draws] = (0, None)
    tracer.add(SetSymbol(draws, sympy.Integer(0), INT64))
    return Stream(expression, draws)


def _is_constant(value: Tensor) -> bool:
    from distspmd.expressions.ir import Constant

    return isinstance(value.element(()), Constant)


def shape_drawn(run: Context, size: object, *parameters: object) -> tuple[Length, ...]:
    """The shape of a draw: that which is given, or that of its parameters."""
    if size is not None:
        return shape_of(run, size)
    shapes = [run.tracer.tensor(p).shape for p in parameters]
    return run.tracer.broadcast_shape(shapes) if shapes else ()


Sample = Callable[[Callable[[int], Expression]], Expression]


def draw(
    run: Context, stream: Stream, shape: tuple[Length, ...], sample: Sample, numbers: int = 1
) -> View:
    """An array of a draw.

    Args:
        run: the interpreter.
        stream: the generator.
        shape: of the array.
        sample: an element, from its numbers of [0, 1).
        numbers: how many of them it needs.
    """

    def element(place: object, _: tuple[Index, ...]) -> Expression:
        def own(which: int) -> Expression:
            at = index_expression(add(multiply(place, numbers), which))
            return apply("uniform", stream.seed, stream.number, at)

        return sample(own)

    probe = sample(lambda _: number(0.5, FLOAT64))
    return draw_at_places(run, stream, shape, element, probe.dtype)


def draw_at_places(
    run: Context,
    stream: Stream,
    shape: tuple[Length, ...],
    element: Callable[[Any, tuple[Index, ...]], Expression],
    dtype: Any,
) -> View:
    """An array of a draw, of which an element is made of its place in reading order."""
    tracer = run.tracer
    if tracer.map.parallel or tracer.map.straight is not None:
        tracer.refuse("random numbers in a parallel map; draw all of them before it")

    def at(index: tuple[Index, ...]) -> Expression:
        place: Any = 0
        for n, i in zip(shape, index, strict=True):
            place = add(multiply(place, n), i)
        return element(place, index)

    found: View = tracer.stored_anew(Tensor(shape, dtype, at), "drawn")
    following = add(symbol(stream.draws), 1)
    tracer.add(SetSymbol(stream.draws, following, INT64))
    return found


def _number(value: float) -> Expression:
    return number(value, FLOAT64)


def uniform(u: Callable[[int], Expression]) -> Expression:
    """A number of [0, 1)."""
    return u(0)


def _normal(u: Callable[[int], Expression]) -> Expression:
    """Box and Muller, of 1 - u, which is not zero."""
    radius = apply("sqrt", apply("multiply", _number(-2.0), _log_of_rest(u)))
    angle = apply("multiply", _number(2 * math.pi), u(1))
    return apply("multiply", radius, apply("cos", angle))


def _log_of_rest(u: Callable[[int], Expression]) -> Expression:
    return apply("log1p", apply("negative", u(0)))


def _exponential(u: Callable[[int], Expression]) -> Expression:
    return apply("negative", _log_of_rest(u))


def stream_method(*names: str) -> Callable[[Any], Any]:
    """Add a method of generators."""

    def add_to_class(handler: Callable[..., Any]) -> Any:
        for name in names:

            def method(self: Stream) -> None:
                """What programs call; the handler does the work."""

            method.__name__ = name
            setattr(Stream, name, method)
            FUNCTIONS[method] = handler
        return handler

    return add_to_class


def typed(run: Context, value: Tensor, dtype: Any, out: Any = None) -> Any:
    """Numbers in a type, or in an array that is given."""
    kind = np.dtype(dtype)
    if kind not in (np.float32, np.float64):
        run.tracer.refuse(f"Unsupported dtype {kind} of random numbers")
    if kind == np.float32:  # rounded down: 1.0 is not drawn
        value = converted(run.tracer, value, kind)
        below = np.nextafter(np.float32(1), np.float32(0))
        value = combine(run.tracer, np.minimum, [value, below])
    if out is not None:
        run.tracer.assign(out, value)
        return out
    return value


@stream_method("random", "random_sample", "rand_sample", "sample", "ranf")
def random(
    run: Context, rng: Stream, size: Any = None, dtype: object = np.float64, out: Any = None
) -> Any:
    """Numbers of [0, 1)."""
    shape = out.shape if out is not None and size is None else shape_drawn(run, size)
    return as_drawn(typed(run, draw(run, rng, shape, uniform), dtype, out), shape)


def as_drawn(value: object, shape: tuple[Length, ...], kind: type = float) -> Any:
    """NumPy gives a number of Python where no size is given."""
    if not shape and isinstance(value, View):
        value.weak = kind
    return value


@stream_method("rand")
def _rand(run: Context, rng: Stream, *shape: object) -> Any:
    return random(run, rng, shape or None)


@stream_method("uniform")
def _uniform_between(
    run: Context, rng: Stream, low: object = 0.0, high: object = 1.0, size: object = None
) -> Any:
    shape = shape_drawn(run, size, low, high)
    width = run.call(np.subtract, [high, low], {})
    return _moved(run, draw(run, rng, shape, uniform), low, width)


def _moved(run: Context, drawn: Tensor, place: object, scale: object) -> Any:
    """``place + scale * drawn``, of the shape of what was drawn."""
    tracer = run.tracer
    found = combine(tracer, np.multiply, [drawn, scale])
    found = combine(tracer, np.add, [found, place])
    return as_drawn(tracer.stored_anew(converted(tracer, found, FLOAT64)), drawn.shape)


@stream_method("standard_normal")
def _standard_normal(
    run: Context, rng: Stream, size: Any = None, dtype: Any = np.float64, out: Any = None
) -> Any:
    shape = out.shape if out is not None and size is None else shape_drawn(run, size)
    found = draw(run, rng, shape, _normal, 2)
    kind = np.dtype(dtype)
    value = found if kind == FLOAT64 else converted(run.tracer, found, kind)
    if out is not None:
        run.tracer.assign(out, value)
        return out
    return as_drawn(value, shape)


@stream_method("randn")
def _randn(run: Context, rng: Stream, *shape: object) -> Any:
    return _standard_normal(run, rng, shape or None)


@stream_method("normal")
def _normal_of(
    run: Context, rng: Stream, loc: object = 0.0, scale: object = 1.0, size: object = None
) -> Any:
    return _moved(run, draw(run, rng, shape_drawn(run, size, loc, scale), _normal, 2), loc, scale)


@stream_method("lognormal")
def _lognormal(
    run: Context, rng: Stream, mean: object = 0.0, sigma: object = 1.0, size: object = None
) -> Any:
    return _stored(run, combine(run.tracer, np.exp, [_normal_of(run, rng, mean, sigma, size)]))


def _stored(run: Context, value: Tensor) -> Any:
    return as_drawn(run.tracer.stored_anew(value), value.shape)


@stream_method("exponential")
def _exponential_of(run: Context, rng: Stream, scale: object = 1.0, size: object = None) -> Any:
    return _moved(run, draw(run, rng, shape_drawn(run, size, scale), _exponential), 0.0, scale)


@stream_method("standard_exponential")
def _standard_exponential(run: Context, rng: Stream, size: object = None) -> Any:
    return as_drawn(draw(run, rng, shape_drawn(run, size), _exponential), shape_drawn(run, size))


def _located(name: str, sample: Sample) -> None:
    """Add a distribution with a place and a scale."""

    @stream_method(name)
    def handler(
        run: Context, rng: Stream, loc: object = 0.0, scale: object = 1.0, size: object = None
    ) -> Any:
        return _moved(run, draw(run, rng, shape_drawn(run, size, loc, scale), sample), loc, scale)


def _laplace(u: Callable[[int], Expression]) -> Expression:
    half = _number(0.5)
    low = apply("log", apply("multiply", _number(2.0), apply("maximum", u(0), _number(2.0**-54))))
    high = apply("multiply", _number(2.0), apply("subtract", _number(1.0), u(0)))
    return apply("where", apply("less", u(0), half), low, apply("negative", apply("log", high)))


def _gumbel(u: Callable[[int], Expression]) -> Expression:
    drawn = apply("maximum", _exponential(u), _number(2.0**-54))
    return apply("negative", apply("log", drawn))


def _logistic(u: Callable[[int], Expression]) -> Expression:
    low = apply("maximum", u(0), _number(2.0**-54))
    return apply("subtract", apply("log", low), _log_of_rest(u))


def _cauchy(u: Callable[[int], Expression]) -> Expression:
    turned = apply("multiply", _number(math.pi), apply("subtract", u(0), _number(0.5)))
    return apply("tan", turned)


_located("laplace", _laplace)
_located("gumbel", _gumbel)
_located("logistic", _logistic)


@stream_method("standard_cauchy")
def _standard_cauchy(run: Context, rng: Stream, size: object = None) -> Any:
    return as_drawn(draw(run, rng, shape_drawn(run, size), _cauchy), shape_drawn(run, size))


@stream_method("rayleigh")
def _rayleigh(run: Context, rng: Stream, scale: object = 1.0, size: object = None) -> Any:
    def sample(u: Callable[[int], Expression]) -> Expression:
        return apply("sqrt", apply("multiply", _number(2.0), _exponential(u)))

    return _moved(run, draw(run, rng, shape_drawn(run, size, scale), sample), 0.0, scale)


def _powered(name: str, finish: Callable[[Any, Any, Any], Any], sample: Sample) -> None:
    """Add a distribution with an exponent."""

    @stream_method(name)
    def handler(run: Context, rng: Stream, a: object, size: object = None) -> Any:
        drawn = draw(run, rng, shape_drawn(run, size, a), sample)
        return _stored(run, finish(run, drawn, run.call(np.divide, [1.0, a], {})))


_powered("weibull", lambda run, u, a: combine(run.tracer, np.power, [u, a]), _exponential)
_powered("power", lambda run, u, a: combine(run.tracer, np.power, [u, a]), uniform)
_powered(
    "pareto",
    lambda run, u, a: combine(run.tracer, np.expm1, [combine(run.tracer, np.multiply, [u, a])]),
    _exponential,
)


@stream_method("geometric")
def _geometric(run: Context, rng: Stream, p: object, size: object = None) -> Any:
    tracer = run.tracer
    drawn = draw(run, rng, shape_drawn(run, size, p), _exponential)
    rate = run.call(np.negative, [run.call(np.log1p, [run.call(np.negative, [p], {})], {})], {})
    count = combine(tracer, np.ceil, [combine(tracer, np.divide, [drawn, rate])])
    found = tracer.stored_anew(converted(tracer, combine(tracer, np.maximum, [count, 1.0]), INT64))
    return as_drawn(found, found.shape, int)


# -- whole numbers --------------------------------------------------------------------------------


@stream_method("integers")
def integers(
    run: Context,
    rng: Stream,
    low: Any,
    high: Any = None,
    size: Any = None,
    dtype: Any = np.int64,
    endpoint: bool = False,
) -> Any:
    """Whole numbers of a range."""
    tracer = run.tracer
    if high is None:
        low, high = 0, low
    width = run.call(np.subtract, [high, low], {}) if _is_data(low, high) else high - low
    if endpoint:
        width = run.binary(ast.Add(), width, 1)
    if isinstance(width, int) and not 0 < width <= 2**53:
        tracer.refuse("low >= high" if width <= 0 else "integers of a range beyond 2**53")
    shape = shape_drawn(run, size, low, high)
    drawn = draw(run, rng, shape, uniform)
    scaled = combine(tracer, np.floor, [combine(tracer, np.multiply, [drawn, width])])
    whole = combine(tracer, np.add, [converted(tracer, scaled, INT64), low])
    return tracer.stored_anew(converted(tracer, whole, np.dtype(dtype)))


def _is_data(*values: object) -> bool:
    return any(isinstance(v, Tensor | sympy.Basic | np.ndarray | list) for v in values)


@stream_method("randint")
def _randint(
    run: Context,
    rng: Stream,
    low: object,
    high: object = None,
    size: object = None,
    dtype: object = np.int64,
) -> Any:
    found = integers(run, rng, low, high, size, dtype)
    return as_drawn(found, found.shape, int) if size is None and dtype in (int, np.int64) else found


# -- generators -----------------------------------------------------------------------------------

FUNCTIONS |= dict.fromkeys(
    (
        *(np.random.default_rng, np.random.RandomState, np.random.Generator),
        *(np.random.PCG64, np.random.MT19937, np.random.Philox, np.random.SFC64),
    ),
    make_stream,
)


def seeded(
    run: Context, module: str, make: Callable[[Any], Stream], *, anew: bool = False
) -> Stream:
    """The generator that the functions of a module share.

    Args:
        run: the interpreter.
        module: whose functions draw.
        make: makes the generator.
        anew: whether it gets a seed now; else its first use makes it.

    Raises:
        DrawsBefore: a loop or branch draws first, so that it has to be made at the beginning.
    """
    found: Stream | None = run.streams.get(module)
    if found is not None and not anew:
        return found
    if run.tracer.inner and not anew:
        raise DrawsBefore(module)
    if run.tracer.inner:
        run.tracer.refuse(f"{module}.seed in a loop or branch; use np.random.default_rng(seed)")
    run.streams[module] = made = make(run)
    return made


def begin_streams(run: Context, modules: Collection[str]) -> None:
    """Make the generators that modules share at the beginning of a program."""
    for module in sorted(modules):
        seeded(run, module, make_stream)


def global_stream(run: Context) -> Stream:
    """The generator of ``np.random.rand`` and others of its kind."""
    return seeded(run, "np.random", make_stream)


def _legacy(name: str) -> Callable[..., Any]:
    handler = FUNCTIONS[vars(Stream)[name]]
    return lambda run, *given, **named: handler(run, global_stream(run), *given, **named)


def _seed(run: Context, seed: object = None) -> None:
    seeded(run, "np.random", lambda run: make_stream(run, seed), anew=True)


FUNCTIONS[np.random.seed] = _seed


def add_legacy_functions() -> None:
    """Add the functions of ``np.random`` that are methods of generators."""
    for name in dir(np.random):
        if name in vars(Stream) and not name.startswith("_"):
            FUNCTIONS[getattr(np.random, name)] = _legacy(name)
