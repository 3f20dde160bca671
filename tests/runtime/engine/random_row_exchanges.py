"""Exchanges of rows that are drawn, on ranks: ``random_row_exchanges.py SEED COUNT``."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from distspmd.plans.row_exchange import RowExchange, RowSet
from distspmd.runtime.engine.engine import Engine

comm = MPI.COMM_WORLD
ARRAYS = ("has_member", "has_index", "needs_member", "needs_index")


def parts(rng: np.random.Generator, count: int) -> tuple[tuple[int, int], ...]:
    """Disjoint parts in any order; of some ranks the same, of some none."""
    distinct = int(rng.integers(1, comm.size + 1))
    cuts = np.sort(rng.integers(0, count + 1, distinct + 1))
    own = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    return tuple(own[n] for n in rng.integers(0, distinct, comm.size).tolist())


def row_set(rng: np.random.Generator, side: str, rows: int) -> tuple[RowSet, dict[str, np.ndarray]]:
    member, index = (bool(n) for n in rng.integers(0, 2, 2))
    count = int(rng.integers(0, 30)) if member or index else rows
    if member and not index:
        count = rows
    values = {}
    if member:
        values[f"{side}_member"] = rng.integers(-1, 7, count)
    if index:
        values[f"{side}_index"] = rng.integers(-2, rows + 2, count)
    names = {kind: f"{side}_{kind}" for kind in ("member", "index") if f"{side}_{kind}" in values}
    return RowSet(parts(rng, 6 if member else count), **names), values


def draw(rng: np.random.Generator) -> tuple[RowExchange, dict[str, np.ndarray]]:
    rows, width = int(rng.integers(1, 20)), int(rng.integers(0, 4))
    has, own = row_set(rng, "has", rows)
    needs, more = row_set(rng, "needs", rows)
    dtype = np.dtype(rng.choice(["float32", "float64", "int32", "complex128"]))
    in_tiles = not own and bool(rng.integers(0, 2))
    first = tuple(lo if in_tiles else 0 for lo, _ in has.parts)
    return RowExchange("x", dtype, rows, width, has, needs, first, rows), own | more


def operand(exchange: RowExchange, part: tuple[int, int], arrays: dict[str, np.ndarray]):
    """What the ranks of one part have: the same on all of them, and numbers that sums keep."""
    rng = np.random.default_rng(part)
    return rng.integers(-50, 50, (exchange.rows, exchange.width)).astype(exchange.dtype)


def expected(exchange: RowExchange, rank: int, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """By the definition: of each row that the rank needs, the sum of all operands."""
    found = np.zeros((exchange.rows, exchange.width), exchange.dtype)
    if exchange.needs.parts[rank][0] >= exchange.needs.parts[rank][1]:
        return found
    wanted = exchange.needs.of(rank, exchange.rows, arrays)
    for part in {p: n for n, p in enumerate(exchange.has.parts) if p[0] < p[1]}.items():
        held = exchange.has.of(part[1], exchange.rows, arrays)
        both = np.intersect1d(wanted, held)
        found[both] += operand(exchange, part[0], arrays)[both]
    return found


def main(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = [draw(rng) for _ in range(count)]
    with Engine(comm, [], exchanges=[exchange for exchange, _ in drawn]) as engine:
        for number, (exchange, arrays) in enumerate(drawn):
            arrays = {name: a.astype(np.int64) for name, a in arrays.items()}
            source = operand(exchange, exchange.has.parts[comm.rank], arrays)
            source = np.ascontiguousarray(source[exchange.first[comm.rank] :])
            target = np.full((exchange.rows, exchange.width), 7, exchange.dtype)
            engine.exchange(number, source, target, [arrays.get(name) for name in ARRAYS])
            np.testing.assert_array_equal(
                target, expected(exchange, comm.rank, arrays), str(exchange)
            )
            received = comm.allreduce(engine.exchange_statistics(number).received_bytes)
            assert received == exchange.received_bytes(arrays), exchange
    if comm.rank == 0:
        print(f"{count} exchanges agree on {comm.size} ranks")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
