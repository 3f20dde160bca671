"""Charts as SVG: lines over an axis, and bars; for pages, documents and notebooks.

No library is needed. Colours are those of Okabe and Ito, which people who see no red or no green
can tell apart; lines that are alike differ by dashes, too.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
WIDTH, HEIGHT = 400, 300  # of one chart with lines, in pixels
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 30, 44  # around where lines are drawn
ROW, NAME = 18, 190  # height of a bar, and what its name takes
LETTER = 6.2  # width of a letter, about
_TICKS = 7


@dataclass(frozen=True, slots=True)
class Line:
    """Points that are joined.

    Attributes:
        name: in the legend.
        points: in their order; of logarithmic axes all above zero.
        colour: one of :data:`COLOURS`, by number.
        is_dashed: whether it is.
        is_stepped: whether a value holds until the next one.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int = 0
    is_dashed: bool = False
    is_stepped: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over two axes.

    Attributes:
        across, up: what the axes are.
        bases: of the logarithm of each axis, whose powers are marked; 0 where it is linear.
        begins_at_zero: whether a linear axis upwards does.
    """

    title: str
    across: str
    up: str
    lines: tuple[Line, ...]
    bases: tuple[int, int] = (0, 0)
    begins_at_zero: bool = True


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars beside their names, each of several parts.

    Attributes:
        across: what their lengths are.
        parts: names of the parts.
        rows: a name and the lengths of the parts.
    """

    title: str
    across: str
    parts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]


def as_svg(drawn: Sequence[Chart | Bars], columns: int = 2) -> str:
    """Charts beside each other and below, as one picture."""
    pieces: list[str] = []
    rows = [drawn[begin : begin + columns] for begin in range(0, len(drawn), columns)]
    top = width = 0
    for row in rows:
        left = 0
        for each in row:
            pieces += [f'<g transform="translate({left},{top})">', *_pieces(each), "</g>"]
            left += _width(each)
        width = max(width, left)
        top += max(map(_height, row))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" '
        f'viewBox="0 0 {width} {top}" font-family="Helvetica, Arial, sans-serif" font-size="11">\n'
        '<rect width="100%" height="100%" fill="white"/>\n'
    )
    return head + "\n".join(pieces) + "\n</svg>\n"


def _pieces(drawn: Chart | Bars) -> Iterator[str]:
    yield _text(12, 18, drawn.title, 'font-size="13" font-weight="bold"')
    yield from _drawn(drawn) if isinstance(drawn, Chart) else _bars(drawn)


def _width(drawn: Chart | Bars) -> int:
    return WIDTH if isinstance(drawn, Chart) else 2 * WIDTH


def _height(drawn: Chart | Bars) -> int:
    if isinstance(drawn, Chart):
        return HEIGHT + 16 * len(drawn.lines)
    return TOP + BOTTOM + 20 + ROW * len(drawn.rows)


# -- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scale:
    """Numbers along an axis as pixels.

    Attributes:
        least, most: numbers at its ends, as logarithms where it has a base.
        begin, end: pixels there.
    """

    base: int
    least: float
    most: float
    begin: float
    end: float

    @classmethod
    def over(
        cls, numbers: Sequence[float], base: int, begin: float, end: float, zero: bool = True
    ) -> Scale:
        """A scale from the least of some numbers to the most; with zero where it is linear."""
        if base:
            logs = [math.log(n, base) for n in numbers if n > 0] or [0.0]
            least, most = min(logs), max(logs)
            if most - least < 1e-9:
                least, most = least - 0.5, most + 0.5
        else:
            shown = [0.0, *numbers] if zero or not numbers else numbers
            least, most = min(shown), max(shown)
            most = most if most > least else least + (abs(least) or 1.0)
        margin = 0.04 * (most - least)
        below = margin * (bool(base) or not zero)
        return cls(base, least - below, most + margin, begin, end)

    def at(self, number: float) -> float:
        """The pixel of a number."""
        value = math.log(number, self.base) if self.base else number
        return self.begin + (value - self.least) / (self.most - self.least) * (
            self.end - self.begin
        )

    def ticks(self) -> list[float]:
        """Some numbers that are marked."""
        if self.base:
            first, last = math.ceil(self.least - 1e-9), math.floor(self.most + 1e-9)
            step = max(1, -(-(last - first) // (_TICKS - 1)))
            powers = range(first, last + 1, step)
            if len(powers) > 1:
                return [float(self.base) ** power for power in powers]
            return [self.base**self.least, self.base**self.most]
        raw = (self.most - self.least) / (_TICKS - 1)
        unit = 10.0 ** math.floor(math.log10(raw))
        step_size = next(unit * n for n in (1, 2, 5, 10) if unit * n >= raw)
        first = math.ceil(self.least / step_size)
        return [step_size * n for n in range(first, math.floor(self.most / step_size) + 1)]


def _drawn(chart: Chart) -> Iterator[str]:
    points = [point for line in chart.lines for point in line.points]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    x = Scale.over([p[0] for p in points], chart.bases[0], LEFT, right)
    y = Scale.over([p[1] for p in points], chart.bases[1], bottom, TOP, chart.begins_at_zero)
    for tick in x.ticks():
        yield _rule(x.at(tick), TOP, x.at(tick), bottom)
        yield _text(x.at(tick), bottom + 14, _number(tick), 'text-anchor="middle"')
    for tick in y.ticks():
        yield _rule(LEFT, y.at(tick), right, y.at(tick))
        yield _text(LEFT - 5, y.at(tick) + 4, _number(tick), 'text-anchor="end"')
    yield _text((LEFT + right) / 2, bottom + 32, chart.across, 'text-anchor="middle"')
    middle = (TOP + bottom) / 2
    turned = f'text-anchor="middle" transform="rotate(-90 14 {middle:.1f})"'
    yield _text(14, middle, chart.up, turned)
    for number, line in enumerate(chart.lines):
        style = f'stroke="{COLOURS[line.colour % len(COLOURS)]}" stroke-width="2"'
        style += ' stroke-dasharray="6 4"' * line.is_dashed
        yield f'<path d="{_path(line, x, y)}" fill="none" {style}/>'
        at = HEIGHT + 16 * number
        yield f'<path d="M{LEFT},{at} h26" {style}/>'
        yield _text(LEFT + 32, at + 4, line.name)


def _path(line: Line, x: Scale, y: Scale) -> str:
    places = [(x.at(across), y.at(up)) for across, up in line.points]
    if not places:
        return ""
    words = [f"M{places[0][0]:.1f},{places[0][1]:.1f}"]
    for across, up in places[1:]:
        words.append(f"H{across:.1f}V{up:.1f}" if line.is_stepped else f"L{across:.1f},{up:.1f}")
    return "".join(words)


# -- bars -----------------------------------------------------------------------------------------


def _bars(bars: Bars) -> Iterator[str]:
    right, bottom = 2 * WIDTH - RIGHT, TOP + ROW * len(bars.rows)
    x = Scale.over([sum(parts) for _, parts in bars.rows], 0, NAME, right)
    for tick in x.ticks():
        yield _rule(x.at(tick), TOP, x.at(tick), bottom)
        yield _text(x.at(tick), bottom + 14, _number(tick), 'text-anchor="middle"')
    for number, (name, parts) in enumerate(bars.rows):
        top, begin = TOP + ROW * number, 0.0
        short = name if len(name) * LETTER < NAME - 8 else f"{name[: int(NAME / LETTER) - 5]}..."
        yield _text(NAME - 6, top + 13, short, 'text-anchor="end"')
        for part, (what, length) in enumerate(zip(bars.parts, parts, strict=True)):
            wide = x.at(begin + length) - x.at(begin)
            told = html.escape(f"{name}, {what}: {length:.3g}")
            yield (
                f'<rect x="{x.at(begin):.1f}" y="{top + 3}" width="{wide:.1f}" '
                f'height="{ROW - 6}" fill="{COLOURS[part]}"><title>{told}</title></rect>'
            )
            begin += length
    yield _text((NAME + right) / 2, bottom + 30, bars.across, 'text-anchor="middle"')
    left = float(NAME)
    for part, what in enumerate(bars.parts):
        box = f'x="{left:.1f}" y="{bottom + 40}" width="11" height="11"'
        yield f'<rect {box} fill="{COLOURS[part]}"/>'
        yield _text(left + 16, bottom + 50, what)
        left += 40 + LETTER * len(what)


# -- pieces ---------------------------------------------------------------------------------------


def _text(x: float, y: float, what: str, style: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}"{" " * bool(style)}{style}>{html.escape(what)}</text>'


def _rule(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path d="M{x:.1f},{y:.1f} L{to_x:.1f},{to_y:.1f}" stroke="#ddd"/>'


def _number(number: float) -> str:
    """A number as a mark of an axis: 4096, 0.05, 1e-6."""
    if number == 0 or 1e-3 <= abs(number) < 1e5:
        return f"{number:.4g}"
    mantissa, _, exponent = f"{number:.2g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa
