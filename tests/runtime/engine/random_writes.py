"""Random writes at places that data choose, in tiles and in parts, on ranks, beside NumPy."""

from __future__ import annotations

import ctypes
import itertools
import sys
from typing import Any

import numpy as np
from mpi4py.MPI import COMM_WORLD as COMM

from distspmd.layouts import intervals
from distspmd.plans.scattered_write import ScatteredWrite
from distspmd.runtime.engine.engine import Engine

INT = ctypes.c_int64


class Side(ctypes.Structure):
    """As in the header."""

    _fields_ = [("begin", INT), ("extent", INT), ("stride", INT)]


class Call(ctypes.Structure):
    """As in ``writes_at_places.cpp``."""

    _fields_ = [
        *((name, INT) for name in ("context", "number", "in_parts", "fixed", "keeps_values")),
        *((name, INT) for name in ("first", "rows", "length")),
        ("lengths", INT * 2),
        ("picked", Side * 2),
        ("rest", Side * 1),
        ("indices", ctypes.c_void_p * 2),
        ("values", ctypes.c_void_p),
        ("number_for_all", ctypes.c_double),
        ("out", ctypes.c_void_p),
        ("adds", INT),
        ("outside", ctypes.POINTER(INT)),
    ]


def cuts(rng: Any, length: int, parts: int) -> list[tuple[int, int]]:
    """So many parts of a length, of which some are empty."""
    ends = np.sort(rng.integers(0, length + 1, parts - 1))
    return list(itertools.pairwise([0, *ends.tolist(), length]))


class Case:
    """A random array in tiles, and what is known of the writes to it."""

    def __init__(self, rng: Any) -> None:
        self.rng = rng
        self.picks, self.others = int(rng.integers(1, 3)), int(rng.integers(0, 2))
        self.extents = tuple(map(int, rng.integers(1, 9, self.picks + self.others)))
        grid = [1] * len(self.extents)
        for _ in range(3):  # what is left over are ranks with the same tiles
            d = int(rng.integers(0, len(grid)))
            more = [*grid]
            more[d] += 1
            if np.prod(more) <= COMM.size:
                grid = more
        sides = [cuts(rng, n, p) for n, p in zip(self.extents, grid, strict=True)]
        tiles = [tuple(box) for box in itertools.product(*sides)]
        busy = COMM.size if rng.random() < 0.6 else len(tiles)
        self.shape = tuple(map(int, rng.integers(1, 6, rng.integers(1, 3))))
        self.rows = int(np.prod(self.shape[:-1], dtype=np.int64))
        split_length = len(self.shape) == 1
        along = cuts(rng, self.shape[0], grid[0])
        below = 1 if split_length else self.shape[1]
        nothing = intervals.empty(len(self.extents))
        self.boxes, self.parts = [], []
        for rank in range(COMM.size):
            tile = rank % len(tiles)
            self.boxes.append(tiles[tile] if rank < busy else nothing)
            lo, hi = along[tile // (len(tiles) // grid[0])]
            is_idle = rank >= busy or intervals.is_empty(tiles[tile])
            self.parts.append((0, 0) if is_idle else (lo * below, hi * below))
        held = {p for p in self.parts if p[0] < p[1]}
        # where a tile is empty its indices are nobody's: all indices must be somewhere
        self.is_possible = sum(hi - lo for lo, hi in held) == int(np.prod(self.shape))
        for rest in {self._rest(b) for b in self.boxes if not intervals.is_empty(b)}:
            own = {p for p, b in zip(self.parts, self.boxes, strict=True) if self._rest(b) == rest}
            self.is_possible &= held <= own
        self.fixed, self.keeps_values = (bool(rng.random() < 0.4) for _ in range(2))
        self.one_value = rng.random() < 0.3
        self.adds = int(rng.random() < 0.5)
        self.in_parts = self.record().is_split

    def _rest(self, box: Any) -> Any:
        return tuple(box[self.picks :])

    def record(self) -> ScatteredWrite:
        """What is said of the write."""
        return ScatteredWrite(
            "y",
            0 if self.one_value else 8,
            tuple(self.parts),
            picked=tuple(range(self.picks)),
            extents=self.extents,
            place_bytes=4,
            boxes=tuple(self.boxes),
        )

    def indices(self) -> list[Any]:
        """Some of which are negative, and some the same."""
        return [self.rng.integers(-n, n, self.shape) for n in self.extents[: self.picks]]

    def values(self) -> Any:
        """One for each place."""
        return self.rng.random((*self.shape, *self.extents[self.picks :]))


class Kept:
    """What a rank keeps of its indices: those that change twice in a run are not kept any more."""

    def __init__(self) -> None:
        self.part: Any = None
        self.changes = 0

    def changed(self, part: Any, begins: bool, fixed: bool) -> bool:
        """Whether a part of the indices is another one than the last time."""
        self.changes = 0 if begins else self.changes
        if not fixed and self.changes > 1:
            return True
        found = part.size > 0 and (self.part is None or not np.array_equal(part, self.part))
        self.part, self.changes = part, self.changes + found
        if found and self.changes > 1 and not fixed:
            self.part = None
        return bool(found)


def expected(case: Case, array: Any, indices: Any, values: Any, number: float) -> None:
    """What NumPy does, one index after the other."""
    flat = [i.reshape(-1) for i in indices]
    rows = values.reshape(-1, *case.extents[case.picks :])
    for c in range(flat[0].size):
        place = tuple(i[c] for i in flat)
        value = number if case.one_value else rows[c]
        array[place] = array[place] + value if case.adds else value


class Tile:
    """What this rank has of the array, in storage that is larger."""

    def __init__(self, box: Any, array: Any) -> None:
        self.box, self.inside = box, intervals.slices(box)
        sizes = [max(0, hi - lo) for lo, hi in box]
        self.storage = np.zeros([max(1, size) + 1 for size in sizes])
        self.elements = self.storage[tuple(slice(0, size) for size in sizes)]
        self.elements[...] = array[self.inside]

    def side(self, d: int) -> Side:
        """A dimension of the window."""
        lo, hi = self.box[d]
        return Side(lo, max(0, hi - lo), self.storage.strides[d] // 8)


class Writer:
    """Calls the function of a library for a case, as this rank."""

    def __init__(self, library: ctypes.CDLL, case: Case, tile: Tile) -> None:
        name = f"{case.picks}_{case.others}"
        make, self.write, self.free = (
            getattr(library, f"{what}_{name}") for what in ("make", "write", "free")
        )
        make.restype = ctypes.c_void_p
        self.write.argtypes, self.free.argtypes = [ctypes.c_void_p] * 2, [ctypes.c_void_p]
        self.case, self.tile, self.places = case, tile, make()

    def __call__(self, context: int, given: tuple[list[Any], Any, float]) -> tuple[bool, Any]:
        """Whether all indices are in range, and else which is not, and of what."""
        case, (indices, values, number) = self.case, given
        lo, hi = case.parts[COMM.rank]
        flat = [np.ascontiguousarray(i.reshape(-1)[lo:hi]) for i in indices]
        part = values.reshape(-1, *case.extents[case.picks :])[lo:hi]
        part = np.ascontiguousarray(part[(slice(None), *self.tile.inside[case.picks :])])
        outside, length = (INT * 2)(), case.shape[-1] if len(case.shape) == 2 else hi - lo
        call = Call(context=context, in_parts=case.in_parts, fixed=case.fixed, first=lo)
        call.keeps_values, call.adds, call.number_for_all = case.keeps_values, case.adds, number
        call.rows, call.length = (hi - lo) // max(1, length) if len(case.shape) == 2 else 1, length
        for d in range(case.picks):
            call.picked[d], call.lengths[d] = self.tile.side(d), case.extents[d]
            call.indices[d] = flat[d].ctypes.data
        for d in range(case.picks, len(case.extents)):
            call.rest[0] = self.tile.side(d)
        call.values = None if case.one_value else part.ctypes.data
        call.out, call.outside = self.tile.storage.ctypes.data, outside
        return bool(self.write(self.places, ctypes.byref(call))), tuple(outside)


def changed(case: Case, kept: list[Kept], indices: list[Any], begins: bool) -> bool:
    """Whether any rank finds other indices than the last time."""
    if case.fixed and not begins:
        return False
    whole = np.stack([i.reshape(-1) for i in indices])
    pairs = zip(kept, case.parts, strict=True)
    found = [own.changed(whole[:, lo:hi], begins, case.fixed) for own, (lo, hi) in pairs]
    return any(found)


def run_case(library: ctypes.CDLL, rng: Any, told: str) -> bool:
    """Write several times, with indices and values that change, or do not; whether it could be."""
    case = Case(rng)
    wanted = rng.random(case.extents)
    drawn = [
        (case.indices(), case.values(), float(rng.random())) for _ in range(3 * rng.integers(1, 4))
    ]
    again, spoiled = rng.random(len(drawn)) < 0.5, rng.random() < 0.15
    at = int(rng.integers(0, drawn[0][0][0].size))
    if not case.is_possible:
        return False
    record = case.record()
    told += f": {vars(case)}"
    engine, tile = Engine(COMM, [], talks=[record]), Tile(case.boxes[COMM.rank], wanted)
    writer = Writer(library, case, tile)
    (indices, values, number), moved = drawn[0], 0
    kept = [Kept() for _ in range(COMM.size)]
    for step, (other_indices, *others) in enumerate(drawn):
        begins = step % 3 == 0
        if begins:
            library.begin_run()
        if (begins or not case.fixed) and not again[step]:
            indices = other_indices
        if begins or not case.keeps_values:
            values, number = others
        if spoiled and step == len(drawn) - 1 and not case.fixed:
            indices[0].reshape(-1)[at] = wrong = case.extents[0] + 2
            knows = case.in_parts or case.parts[COMM.rank] != (0, 0)
            found = writer(engine.context, (indices, values, number))
            expects = (False, (wrong, case.extents[0])) if knows else (True, (0, 0))
            assert found == expects, told
            np.testing.assert_array_equal(tile.elements, wanted[tile.inside], err_msg=told)
            break
        assert writer(engine.context, (indices, values, number))[0], told
        expected(case, wanted, indices, values, number)
        np.testing.assert_array_equal(tile.elements, wanted[tile.inside], err_msg=f"{told}, {step}")
        places = changed(case, kept, indices, begins) or step == 0
        moved += record.received_bytes(indices, places, places or begins or not case.keeps_values)
    received = COMM.allreduce(engine.talk_statistics(0).received_bytes)
    assert received == moved * case.in_parts, (told, received, moved)
    writer.free(writer.places)
    engine.close()
    return True


def main(path: str, cases: int) -> None:
    """Run random cases."""
    library = ctypes.CDLL(path)
    rng = np.random.default_rng(11)
    done = sum(run_case(library, rng, f"case {case}") for case in range(cases))
    assert done > cases // 4
    if COMM.rank == 0:
        print(f"writes agree on {COMM.size} ranks")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
