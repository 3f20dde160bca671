"""The code of an inspector: loops over the rank's part of a space that mark the indices it touches.

``for i in tile: for k in row[i]:row[i + 1]: touch col[k]``. An element outside the tile is not
loaded, because an index may be out of bounds where the body does not use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sympy
from dace.codegen.common import sym2cpp

from distspmd.analysis.accesses import Dimension
from distspmd.analysis.foresight import Foreseen
from distspmd.analysis.inspectors import Inspection, Let, Loop, Touch
from distspmd.analysis.symbol_values import PLACE, ElementValue
from distspmd.passes.tiles import TileWindow

Steps = Mapping[str, tuple[sympy.Expr, sympy.Expr, sympy.Expr]]
"""First and last value and step of the parameters of a tiled map."""


@dataclass(frozen=True)
class Pointer:
    """An array as C++ sees it: the connector points at the lower end of the window."""

    connector: str
    window: TileWindow
    strides: tuple[sympy.Expr, ...]


def inspection_code(asked: Inspection, steps: Steps, pointers: Mapping[int, Pointer]) -> str:
    """C++ that calls ``touched(first, last)`` with all that the accesses touch.

    A rank that has no part of the space touches nothing, also where loops around it choose what.

    Args:
        asked: the inspection.
        steps: what the parameters of the space run over on this rank.
        pointers: the array behind each border edge of a load, by the identity of the edge.
    """
    runs = " && ".join(
        f"std::int64_t({sym2cpp(first)}) <= std::int64_t({sym2cpp(last)})"
        for first, last, _ in steps.values()
    )
    touched = "\n".join(_nest(touch, steps, pointers) for touch in asked.touches)
    return f"if ({runs or 'true'}) {{\n{touched}\n}}"


def foreseen_code(foreseen: Foreseen) -> str:
    """C++ that calls ``touched(first, last)`` with all that a rank with these ``ends`` touches."""
    own = {name: f"__end{place}" for place, name in enumerate(foreseen.ends)}
    lines = [f"const std::int64_t __end{n} = ends[{n}];" for n in range(len(own))]
    for box in foreseen.boxes:
        ranges, runs = (
            [Dimension(*(_renamed(end, own) for end in interval)) for interval in intervals]
            for intervals in (box.ranges, box.runs)
        )
        condition = " && ".join(
            f"std::int64_t({sym2cpp(d.first)}) <= std::int64_t({sym2cpp(d.last)})" for d in runs
        )
        lines.append(f"if ({condition or 'true'}) {_call(Touch((), tuple(ranges)), {}, {})}")
    return "\n".join(lines)


def _renamed(expression: sympy.Expr, names: Mapping[str, str]) -> sympy.Expr:
    """An expression with symbols that no pass knows, so that none puts numbers in their place."""
    own = [symbol for symbol in expression.free_symbols if symbol.name in names]
    return expression.subs({symbol: sympy.Symbol(names[symbol.name]) for symbol in own})


def _nest(touch: Touch, steps: Steps, pointers: Mapping[int, Pointer]) -> str:
    statements = touch.statements
    call = _call(touch, {}, {})
    joined = _joined(touch, steps) or _joined_places(touch, steps)
    if joined is not None:
        statements, call = joined
    return _nest_of(statements, call, steps, pointers)


def _nest_of(
    statements: Sequence[Loop | Let],
    call: str,
    steps: Steps,
    pointers: Mapping[int, Pointer] | None = None,
) -> str:
    """A call in what stands around it."""
    lines, closing = [], 0
    for statement in statements:
        if isinstance(statement, Loop):
            opened = [_loop(statement, steps)]
        elif isinstance(statement.value, ElementValue):
            opened = _load(statement.name, statement.value, pointers or {})
        else:
            opened = ["{", f"const std::int64_t {statement.name} = {sym2cpp(statement.value)};"]
        lines += opened
        closing += sum(line.endswith("{") for line in opened)
    return "\n".join([*lines, call, "}" * closing])


def _loop(loop: Loop, steps: Steps) -> str:
    first, last, step = steps.get(loop.name, (loop.first, loop.last, sympy.Integer(1)))
    name = loop.name
    return (
        f"for (std::int64_t {name} = {sym2cpp(first)}; {name} <= std::int64_t({sym2cpp(last)}); "
        f"{name} += {sym2cpp(step)}) {{"
    )


def _load(name: str, load: ElementValue, pointers: Mapping[int, Pointer]) -> list[str]:
    """The element is loaded into a name, if its index lies in the window."""
    pointer = pointers[id(load.edge)]
    places = [f"{name}_at{d}" for d in range(len(load.indices))]
    ends = list(zip(places, pointer.window.lower, pointer.window.upper, strict=True))
    inside = " && ".join(
        f"{place} >= {sym2cpp(lower)} && {place} < {sym2cpp(upper)}" for place, lower, upper in ends
    )
    index = " + ".join(
        f"({place} - ({sym2cpp(lower)})) * ({sym2cpp(stride)})"
        for (place, lower, _), stride in zip(ends, pointer.strides, strict=True)
    )
    return [
        "{",
        *(
            f"const std::int64_t {place} = {sym2cpp(at)};"
            for place, at in zip(places, load.indices, strict=True)
        ),
        f"if ({inside}) {{",
        f"const std::int64_t {name} = static_cast<std::int64_t>({pointer.connector}[{index}]);",
    ]


Substitution = dict[sympy.Symbol, sympy.Expr]


def _call(touch: Touch, at_first: Substitution, at_last: Substitution) -> str:
    """The call that touches, with symbols at the first and at the last of their values."""
    kind = f"std::array<std::int64_t, {len(touch.ranges)}>"
    first = ", ".join(f"std::int64_t({sym2cpp(d.first.subs(at_first))})" for d in touch.ranges)
    last = ", ".join(f"std::int64_t({sym2cpp(d.last.subs(at_last))})" for d in touch.ranges)
    return f"touched({kind}{{{first}}}, {kind}{{{last}}});"


def _joined(touch: Touch, steps: Steps) -> tuple[tuple[Loop | Let, ...], str] | None:
    """One call for all values of the innermost loop, where those are one range of indices.

    Returns:
        What stands around the call, and the call; None where they are no range.
    """
    loop = touch.statements[-1] if touch.statements else None
    if not isinstance(loop, Loop):
        return None
    begin, end, step = steps.get(loop.name, (loop.first, loop.last, sympy.Integer(1)))
    moving = [
        d
        for d in touch.ranges
        if loop.name in {s.name for s in d.first.free_symbols | d.last.free_symbols}
    ]
    if step != 1 or len(moving) != 1:
        return None
    (symbol,) = {s for s in moving[0].first.free_symbols if s.name == loop.name} or {None}
    if symbol is None or any(
        sympy.expand(bound - symbol).has(symbol) for bound in (moving[0].first, moving[0].last)
    ):
        return None
    call = _call(touch, {symbol: begin}, {symbol: end})
    return touch.statements[:-1], f"if ({sym2cpp(begin)} <= std::int64_t({sym2cpp(end)})) {call}"


def _joined_places(touch: Touch, steps: Steps) -> tuple[tuple[Loop | Let, ...], str] | None:
    """The same of indices that the program checks: one call if all are inside, else many."""
    if len(touch.statements) < 2:
        return None
    loop, place = touch.statements[-2:]
    if not isinstance(loop, Loop) or not isinstance(place, Let):
        return None
    if isinstance(place.value, ElementValue) or not isinstance(place.value, PLACE):
        return None
    index, count = place.value.args
    by = {s: index for d in touch.ranges for s in d.first.free_symbols if s.name == place.name}
    ranges = tuple(Dimension(d.first.subs(by), d.last.subs(by)) for d in touch.ranges)
    plain = Touch(touch.statements[:-1], ranges)
    found = _joined(plain, steps)
    if found is None or not by:
        return None
    around, call = found
    symbols = {s for s in index.free_symbols if s.name == loop.name}
    first, last, _ = steps.get(loop.name, (loop.first, loop.last, sympy.Integer(1)))
    ends = [sym2cpp(index.subs(dict.fromkeys(symbols, end))) for end in (first, last)]
    each = _nest_of(touch.statements[-2:], _call(touch, {}, {}), steps)
    return (
        around,
        f"if ({ends[0]} >= 0 && {ends[1]} < {sym2cpp(count)}) {{ {call} }} else {{\n{each}\n}}",
    )
