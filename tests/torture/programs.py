"""Random NumPy programs: text, arguments and schedules, all from one number.

Values are small integers wherever that is possible, so that the order of sums does not matter to
them. A program is a list of statements, of which some can be left out: so failures shrink.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

DTYPES = ("float64",) * 5 + ("float32",) * 2 + ("int64",) * 2 + ("int32", "complex128")
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Argument:
    """An array argument; indices into an extent where that is given."""

    name: str
    shape: Shape
    dtype: str
    below: int = 0

    def drawn(self, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        low, high = (0, self.below) if self.below else (-4, 5)
        values = rng.integers(low, high, self.shape)
        if self.dtype == "complex128":
            return values + 1j * rng.integers(low, high, self.shape)
        return values.astype(self.dtype)


@dataclass(frozen=True)
class Statement:
    """Lines of a program, with the variables that they define, read, and write in place."""

    text: str
    defines: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Program:
    """A function of NumPy arrays.

    Attributes:
        results: variables that it returns.
    """

    seed: int
    arguments: tuple[Argument, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"program_{self.seed}"

    @property
    def text(self) -> str:
        arguments = ", ".join(
            f"{a.name}: dace.{a.dtype}[{', '.join(map(str, a.shape))}]" for a in self.arguments
        )
        lines = [f"def {self.name}({arguments}):"]
        lines += [f"    {line}" for s in self.statements for line in s.text.splitlines()]
        if self.results:
            lines.append(f"    return {', '.join(self.results)}")
        return "\n".join(lines) + "\n"

    def written(self, folder: Path, tag: str = "") -> Callable[..., Any]:
        """The function, imported from a file that has its text."""
        file = folder / f"{self.name}{tag}.py"
        file.write_text(f"import dace\nimport numpy as np\n\n\n{self.text}")
        spec = importlib.util.spec_from_file_location(file.stem, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[file.stem] = module
        spec.loader.exec_module(module)
        return getattr(module, self.name)  # type: ignore[no-any-return]

    def drawn(self, seed: int) -> dict[str, np.ndarray[Any, Any]]:
        rng = np.random.default_rng([self.seed, seed])
        return {a.name: a.drawn(rng) for a in self.arguments}

    def smaller(self) -> Iterator[Program]:
        """Programs with less in them: a statement less with all that needs it, a result less."""
        for n in reversed(range(len(self.statements))):
            yield self._without({n})
        for n in range(len(self.results)):
            if len(self.results) > 1:
                yield replace(self, results=self.results[:n] + self.results[n + 1 :])._needed()

    def _without(self, gone: set[int]) -> Program:
        lost = {name for n in gone for name in self.statements[n].defines}
        kept: list[Statement] = []
        for n, statement in enumerate(self.statements):
            if n in gone or lost & {*statement.reads, *statement.writes}:
                lost |= set(statement.defines)
            else:
                kept.append(statement)
        results = tuple(name for name in self.results if name not in lost)
        if not results:
            defined = [name for statement in kept for name in statement.defines]
            results = tuple(defined[-1:])
        return replace(self, statements=tuple(kept), results=results)._needed()

    def _needed(self) -> Program:
        """Without arguments that nothing uses, unless none were left."""
        used = {*self.results}
        for statement in self.statements:
            used |= {*statement.reads, *statement.writes}
        kept = tuple(a for a in self.arguments if a.name in used)
        return replace(self, arguments=kept or self.arguments[:1])


@dataclass
class _Writer:
    """What was written so far: variables with their shapes, and statements."""

    draw: Random
    dtype: str
    extents: Sequence[int]
    shapes: dict[str, Shape] = field(default_factory=dict)
    arguments: list[Argument] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    depth: dict[str, int] = field(default_factory=dict)
    """Factors that a variable's values have: so that they stay small."""

    def shape(self, most: int = 3) -> Shape:
        return tuple(self.draw.choice(self.extents) for _ in range(self.draw.randint(1, most)))

    def argument(self, shape: Shape, dtype: str = "", below: int = 0) -> str:
        name = f"x{len(self.arguments)}"
        self.arguments.append(Argument(name, shape, dtype or self.dtype, below))
        if not below:
            self.shapes[name], self.depth[name] = shape, 1
        return name

    def pick(self, *, least: int = 1, deepest: int = 6) -> str:
        """A variable with so many dimensions, whose values are not too large."""
        found = [v for v, s in self.shapes.items() if len(s) >= least and self.depth[v] <= deepest]
        return self.draw.choice(found) if found else self.argument(self.shape_of(least))

    def like(self, shape: Shape, deepest: int = 6) -> str:
        """A variable of a shape."""
        found = [v for v, s in self.shapes.items() if s == shape and self.depth[v] <= deepest]
        return self.draw.choice(found) if found else self.argument(shape)

    def shape_of(self, dimensions: int) -> Shape:
        return tuple(self.draw.choice(self.extents) for _ in range(dimensions))

    def define(self, text: str, shape: Shape, reads: Sequence[str], depth: int) -> str:
        """A new variable; ``text`` has ``{}`` for its name."""
        name = f"v{len(self.statements)}"
        self.statements.append(Statement(text.replace("{}", name), (name,), tuple(reads)))
        self.shapes[name], self.depth[name] = shape, depth
        return name

    def write(self, text: str, target: str, reads: Sequence[str], depth: int) -> None:
        self.statements.append(Statement(text, (), tuple(reads), (target,)))
        self.depth[target] = max(self.depth[target], depth)

    def number(self) -> str:
        return str(self.draw.randint(2, 4))


def random_program(seed: int) -> Program:
    """The program of a number."""
    draw = Random(seed)
    extents = [draw.choice([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13]) for _ in range(3)]
    writer = _Writer(draw, draw.choice(DTYPES), extents)
    for _ in range(draw.randint(1, 3)):
        writer.argument(writer.shape())
    wanted = draw.randint(1, 7)
    while len(writer.statements) < wanted:
        draw.choice(_KINDS)(writer)
    defined = [s.defines[0] for s in writer.statements if s.defines]
    results = {*defined[-1:], *draw.sample(defined, min(len(defined), draw.randint(0, 2)))}
    program = Program(
        seed, tuple(writer.arguments), tuple(writer.statements), tuple(sorted(results))
    )
    return program._needed()


def random_schedule(
    seed: int, ranks: int, spaces: Mapping[str, Sequence[int]]
) -> dict[str, tuple[int, ...]]:
    """Grids of some spaces, given with their lengths, on so many ranks."""
    draw = Random(seed * 7 + ranks)
    found: dict[str, tuple[int, ...]] = {}
    for name, lengths in spaces.items():
        if not lengths or draw.random() < 0.35:
            continue
        left, parts = ranks, [1] * len(lengths)
        for at in draw.sample(range(len(lengths)), len(lengths)):
            parts[at] = draw.randint(1, left)
            left //= parts[at]
        found[name] = tuple(parts)
    return found


# -- statements ---------------------------------------------------------------------------------


def _pointwise(w: _Writer) -> None:
    a = w.pick()
    shape = w.shapes[a]
    if w.draw.random() < 0.3:  # a row, a column, or a number
        other: Shape = shape[1:] if len(shape) > 1 else shape
        b = w.like(other)
    else:
        b = w.like(shape)
    form, depth = w.draw.choice(
        [
            ("{} = {a} + {b}", max(w.depth[a], w.depth[b])),
            ("{} = {a} - {b}", max(w.depth[a], w.depth[b])),
            ("{} = {a} * {b}", w.depth[a] + w.depth[b]),
            ("{} = {n} * {a} - {b}", max(w.depth[a], w.depth[b])),
            ("{} = ({a} + {b}) * {n}", max(w.depth[a], w.depth[b])),
        ]
    )
    if depth > 8:
        return
    text = form.replace("{a}", a).replace("{b}", b).replace("{n}", w.number())
    w.define(text, shape, (a, b), depth)


def _ordered(w: _Writer) -> None:
    """What complex numbers do not have."""
    if w.dtype == "complex128":
        return
    a = w.pick()
    b = w.like(w.shapes[a])
    forms = ["np.maximum({a}, {b})", "np.minimum({a}, {b})", "np.abs({a})"]
    forms += ["np.where({a} > {b}, {a}, {b})", "np.where({a} < 0, {b}, {a})"]
    text = w.draw.choice(forms).replace("{a}", a).replace("{b}", b)
    w.define("{} = " + text, w.shapes[a], (a, b), max(w.depth[a], w.depth[b]))


def _reduction(w: _Writer) -> None:
    a = w.pick(least=2)
    shape = w.shapes[a]
    axis = w.draw.randrange(len(shape))
    names = ["sum"] if w.dtype == "complex128" else ["sum", "max", "min"]
    name = w.draw.choice(names)
    left = shape[:axis] + shape[axis + 1 :]
    w.define(f"{{}} = np.{name}({a}, axis={axis})", left, (a,), w.depth[a] + 1)


def _product(w: _Writer) -> None:
    a = w.pick(least=2, deepest=3)
    if len(w.shapes[a]) != 2:
        return
    rows, depth = w.shapes[a]
    b = w.like((depth, w.draw.choice(w.extents)), deepest=3)
    form = w.draw.choice(["{a} @ {b}", "np.einsum('ik,kj->ij', {a}, {b})"])
    text = form.replace("{a}", a).replace("{b}", b)
    shape = rows, w.shapes[b][1]
    w.define("{} = " + text, shape, (a, b), w.depth[a] + w.depth[b] + 1)


def _vector_product(w: _Writer) -> None:
    a = w.pick(least=2, deepest=3)
    if len(w.shapes[a]) != 2:
        return
    b = w.like(w.shapes[a][1:], deepest=3)
    w.define(f"{{}} = {a} @ {b}", w.shapes[a][:1], (a, b), w.depth[a] + w.depth[b] + 1)


def _transpose(w: _Writer) -> None:
    a = w.pick(least=2)
    axes = list(range(len(w.shapes[a])))
    w.draw.shuffle(axes)
    shape = tuple(w.shapes[a][axis] for axis in axes)
    text = f"{{}} = np.transpose({a}, ({', '.join(map(str, axes))})) + 1"
    w.define(text, shape, (a,), w.depth[a])


def _stencil(w: _Writer) -> None:
    a = w.pick()
    shape = w.shapes[a]
    axis = w.draw.randrange(len(shape))
    if shape[axis] < 3:
        return
    into, left, right = (_along(shape, axis, part) for part in ("1:-1", ":-2", "2:"))
    dims = ", ".join(map(str, shape))
    text = f"{{}} = np.zeros(({dims},), dtype=np.{w.dtype})\n"
    text += f"{{}}[{into}] = {a}[{left}] + {w.number()} * {a}[{right}]"
    w.define(text, shape, (a,), w.depth[a] + 1)


def _along(shape: Shape, axis: int, part: str) -> str:
    return ", ".join(part if d == axis else ":" for d in range(len(shape)))


def _slices(w: _Writer) -> None:
    a = w.pick()
    parts, shape = [], []
    for extent in w.shapes[a]:
        begin = w.draw.randint(0, extent // 2)
        step = w.draw.choice([1, 1, 1, 2, 3])
        parts.append(f"{begin}:{extent}:{step}" if step > 1 else f"{begin}:")
        shape.append(len(range(begin, extent, step)))
    w.define(f"{{}} = {a}[{', '.join(parts)}] + 1", tuple(shape), (a,), w.depth[a])


def _in_place(w: _Writer) -> None:
    a = w.pick(deepest=3)
    b = w.like(w.shapes[a], deepest=3)
    if a == b:
        return None
    depth = max(w.depth[a], w.depth[b])
    if w.draw.random() < 0.5:
        return w.write(f"{a} += {b}", a, (b,), depth)
    extent = w.shapes[a][0]
    begin = w.draw.randint(0, extent - 1)
    return w.write(f"{a}[{begin}:] = {w.number()} * {b}[{begin}:]", a, (b,), depth)


def _loop(w: _Writer) -> None:
    a = w.pick(deepest=1)
    shape = w.shapes[a]
    if shape[0] < 3:
        return
    b = w.like(shape, deepest=1)
    if a == b:
        return
    inner, left, right = "1:-1", ":-2", "2:"
    text = f"for t in range({w.draw.randint(1, 3)}):\n"
    text += f"    {a}[{inner}] = {b}[{left}] + {b}[{right}]\n"
    text += f"    {b}[{inner}] = {a}[{inner}] - {a}[{right}]"
    w.statements.append(Statement(text, (), (a, b), (a, b)))
    w.depth[a] = w.depth[b] = 4


def _gather(w: _Writer) -> None:
    a = w.pick()
    shape = w.shapes[a]
    count = w.draw.choice(w.extents)
    index = w.argument((count,), "int64", below=shape[0])
    tail = ", ".join(f"j{d}" for d in range(1, len(shape)))
    names = ", ".join(["i", *(f"j{d}" for d in range(1, len(shape)))])
    ranges = ", ".join(f"0:{n}" for n in (count, *shape[1:]))
    dims = ", ".join(map(str, (count, *shape[1:])))
    place = f"{index}[i]" + (f", {tail}" if tail else "")
    text = f"{{}} = np.zeros(({dims},), dtype=np.{w.dtype})\n"
    text += f"for {names} in dace.map[{ranges}]:\n    {{}}[{names}] = {a}[{place}]"
    w.define(text, (count, *shape[1:]), (a, index), w.depth[a])


def _scaled_by_a_sum(w: _Writer) -> None:
    a = w.pick(deepest=2)
    b = w.like(w.shapes[a], deepest=2)
    text = f"{{}} = {a} * np.sum({b})"
    w.define(text, w.shapes[a], (a, b), w.depth[a] + w.depth[b] + 2)


_KINDS: Sequence[Callable[[_Writer], None]] = (
    *(_pointwise, _pointwise, _ordered, _reduction, _reduction, _product, _product),
    *(_vector_product, _transpose, _stencil, _stencil, _slices, _in_place, _in_place),
    *(_loop, _gather, _scaled_by_a_sum),
)


def count_of(ranges: Sequence[Any]) -> tuple[int, ...]:
    """Lengths of the ranges of a space, as far as they are numbers; 1 where not."""
    return tuple(_length(r) for r in ranges)


def _length(extent: Any) -> int:
    try:
        return max(1, math.ceil((int(extent.end) - int(extent.begin)) / int(extent.step)))
    except TypeError:
        return 1
