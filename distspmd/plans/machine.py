"""The machine model: what messages, bytes and operations cost, as assumed or as measured here."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from distspmd.cache.folders import cache_folder
from distspmd.errors import ArgumentError, describe


class Kind(Enum):
    """The code that does the work of a space; each has its own speed on a machine."""

    PRODUCT = "products"
    """Calls of BLAS: multiplications and additions of matrix products."""
    SINGLE_PRODUCT = "products in single precision"
    """The same in single precision."""
    LOOP = "loops"
    """Loops over elements."""
    FUNCTION = "functions"
    """Such loops, where most work is in roots, quotients, exponentials and other functions."""
    SINGLE_FUNCTION = "functions in single precision"
    """The same in single precision."""
    LINE = "routines on lines"
    """Loops of routines, which go from element to element of a line."""
    SORT = "sorts"
    """Sorts of lines: elements times the logarithm of their number."""
    ORDER = "sorts of places"
    """The same of the places of elements."""
    SEARCH = "searches"
    """Steps of searches in lines that are in order."""
    TRANSFORM = "Fourier transforms"
    """Elements times the logarithm of their number."""
    LU = "systems of equations"
    """Factorisations by LAPACK with rows exchanged, and what they solve."""
    CHOLESKY = "definite matrices"
    """Factorisations of definite matrices."""
    QR = "orthogonal factorisations"
    """Householder's."""
    EIGEN = "symmetric eigenvalues"
    """With eigenvectors, of symmetric and Hermitian matrices."""
    GENERAL_EIGEN = "general eigenvalues"
    """With eigenvectors, of other matrices."""
    SVD = "singular values"
    """With singular vectors."""
    FETCH = "elements that are asked for"
    """What a rank does for each element that data choose and another rank may have.

    It takes 10 to 40 ns where ranks share memory. The rate that is assumed is lower: a gather of
    all would be as fast there, and moves many times as much between nodes.
    """
    PYTHON = "calls of Python"
    """Calls of functions of Python, and bytes that these get and give."""

    @property
    def is_product(self) -> bool:
        """Whether BLAS does the work."""
        return self in (Kind.PRODUCT, Kind.SINGLE_PRODUCT)

    @property
    def is_single(self) -> bool:
        """Whether it is known to be in single precision."""
        return self in (Kind.SINGLE_PRODUCT, Kind.SINGLE_FUNCTION)


TURN = 4e-5
"""Seconds for a message to a rank that shares its core with others, and waits for its turn."""

Rate = tuple[float, float]
"""Seconds of a library call for an operation, and for a byte of its operands."""

RATES: Mapping[Kind, Rate] = {
    Kind.LINE: (8.5e-10, 0.0),
    Kind.SORT: (4.6e-9, 1e-10),
    Kind.ORDER: (3e-9, 2e-9),
    Kind.SEARCH: (8e-9, 0.0),
    Kind.TRANSFORM: (3e-10, 5e-11),
    Kind.LU: (3e-11, 3e-10),
    Kind.CHOLESKY: (3e-11, 3e-10),
    Kind.QR: (3e-11, 5e-10),
    Kind.EIGEN: (2e-11, 2e-9),
    Kind.GENERAL_EIGEN: (7e-11, 8e-9),
    Kind.SVD: (2e-11, 2e-9),
    Kind.FETCH: (2.5e-9, 0.0),
    Kind.PYTHON: (1.5e-5, 2e-9),
}
"""What is assumed of kinds of library calls that nobody has measured."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Latency and bandwidths between two ranks and between two nodes, and the speed of each rank.

    Attributes:
        alpha: seconds for one message.
        beta: seconds for one byte on its way, to a rank with a core of its own.
        copy: seconds for one byte copied within a rank's memory.
        single_copy_bytes: bytes that a rank receives, from which on it rather copies them out of
            memory that ranks of a node share than gets messages.
        run_bytes: bytes that a rank receives in boxes that are each one run of memory on both
            sides, from which on messages beat copy-in/copy-out between two ranks.
        run: seconds to begin a run of memory in what a rank copies or receives; a part of an array
            that is split along its last dimension has one in each row.
        product: seconds for one operation of a rank in a product of matrices by BLAS.
        single: part of the time for a product or a function that one in single precision takes.
        packing: seconds for one byte of the matrices of such a product, beside its operations: BLAS
            brings them into panels first, and adds to the result once for each panel.
        operation: seconds for one operation of a rank in a loop over elements.
        function: how many times as long one takes in a function, of which a core does fewer.
        stream: seconds for one byte that a rank reads from memory or writes to it as it computes.
        cached: part of that time which a byte takes that a cache holds.
        cache: bytes that a core's share of the caches holds.
        near: bytes that the nearest cache holds; what a loop reads across the rows of an array is
            brought there in lines, and again if the lines of a sweep are more. 0 where unknown.
        launch: seconds to begin an iteration space; no more than its work takes, which one thread
            does where it is that short.
        rates: of kinds of library calls, by :attr:`Kind.name`: seconds for an operation, and for a
            byte; those of :data:`RATES` where a kind is not among them.
        lone: part of the time for a byte that moves which it takes where one core alone moves any,
            for those that do so at once share the way to memory; with `cores` only.
        cores: that all ranks share, where ranks are more than cores; 0 where each has its own. A
            fraction where threads share a core: how many times as much all ranks do as one alone.
        node_ranks: ranks of a node, which are numbered one after the other; 0 where all ranks are
            on one node.
        far_alpha: seconds for one message between nodes.
        far_beta: seconds for one byte that enters or leaves a node, whose ranks share the way.
    """

    alpha: float = 2e-6
    beta: float = 1e-10
    copy: float = 5e-11
    single_copy_bytes: int = 1 << 16
    run_bytes: int = 1 << 16
    run: float = 0
    product: float = 2.5e-11
    single: float = 0.5
    packing: float = 0
    operation: float = 2e-10
    function: float = 1
    stream: float = 4.5e-11
    cached: float = 1
    cache: float = 0
    near: float = 0
    launch: float = 2e-7
    lone: float = 1
    cores: float = 0
    node_ranks: int = 0
    far_alpha: float = 4e-6
    far_beta: float = 1e-10
    rates: tuple[tuple[str, float, float], ...] = ()

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        object.__setattr__(self, "rates", tuple(map(tuple, given.pop("rates"))))
        for name, *rate in self.rates:
            if name not in Kind.__members__:
                raise ArgumentError(f"Machine(rates=): {describe(name)} is no kind of work.")
            given |= {f"rates of {name}, {number}": each for number, each in enumerate(rate)}
        for name, number in given.items():
            if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
                raise ArgumentError(
                    f"Machine({name}={describe(number)}): a cost is a number from 0 on."
                )
        if not isinstance(self.node_ranks, int):
            raise ArgumentError(
                f"Machine(node_ranks={self.node_ranks!r}): a node has a whole number of ranks; 0 "
                "where all are on one node."
            )

    def passing(self, messages: int, nbytes: float) -> float:
        """Seconds of so many messages one after the other, of so many bytes together."""
        return messages * self.alpha + nbytes * self.beta

    def arriving(self, packs: Any) -> Any:
        """Seconds for one byte on its way, which its sender may have to copy first.

        Ranks that share cores see memory of each other; messages have their copies in `beta`.

        Args:
            packs: whether it has; also an array.
        """
        return self.beta + (self.copy * np.asarray(packs) if self.cores else 0.0)

    def computing(
        self, operations: Any, nbytes: Any, kind: Kind, working: Any = 1, again: Any = 0
    ) -> Any:
        """Seconds of a rank for a tile of an iteration space: the slower of code and memory.

        Of what is more than the cache holds, as much again comes from memory. Numbers, or arrays
        of one shape for many tiles at once.

        Args:
            operations: of floating point in the tile.
            nbytes: that the tile reads and writes.
            kind: the code that runs.
            working: ranks that work on the space at once.
            again: bytes of lines that the nearest cache gets more than once.
        """
        shared = self.sharing(working)
        far = np.minimum(nbytes, 2 * np.maximum(nbytes - self.cache / shared, 0))
        moving = self.stream * ((nbytes + again) * self.cached + far * max(0.0, 1 - self.cached))
        operation, byte = self.rate(kind)
        coding = operations * operation + (nbytes * byte if byte else 0.0)
        working_on_it = np.maximum(coding, moving)
        return np.minimum(self.launch, working_on_it) + shared * working_on_it

    def rate(self, kind: Kind) -> Rate:
        """Seconds of a kind of code for an operation, and for a byte of its operands."""
        if kind in RATES:
            measured = (rate for name, *rate in self.rates if name == kind.name)
            operation, byte = next(measured, RATES[kind])
            return operation, byte
        part = self._part(kind)
        if kind.is_product:
            return self.product * part, self.packing * part
        return self.operation * (1.0 if kind is Kind.LOOP else self.function * part), 0.0

    def _part(self, kind: Kind) -> float:
        """Of the time in double precision, what one kind of code takes."""
        return self.single if kind.is_single else 1.0

    def asking(self, elements: Any) -> Any:
        """Seconds of a rank to ask for so many elements that data choose, beside what moves."""
        return elements * self.rate(Kind.FETCH)[0]

    def sharing(self, working: Any) -> Any:
        """How many of some ranks that work at once share a core."""
        return np.maximum(1.0, working / self.cores) if self.cores else 1.0

    def busiest(self, most: Any, all_of_them: Any) -> Any:
        """Bytes that decide how long a move takes: those of one rank, or what a core does of all.

        Args:
            most: of the busiest rank.
            all_of_them: of all ranks together.
        """
        return np.maximum(self.lone * most, all_of_them / self.cores) if self.cores else most

    @property
    def has_nodes(self) -> bool:
        """Whether messages between nodes cost other than those in a node."""
        return self.node_ranks > 0

    def shared_by(self, ranks: int, cores: int) -> Machine:
        """The machine as ranks of one node find it, which share its cores where they are more."""
        if self.cores or ranks <= cores:
            return self
        return replace(self, cores=cores, alpha=max(self.alpha, TURN))

    @classmethod
    def measured(cls, mpi: str | None = None) -> Machine:
        """What ``distspmd doctor --measure`` found on this host, else what is assumed.

        Args:
            mpi: with which MPI; the one that was measured last where left out.
        """
        held = _read()
        found = held.get("machines", {}).get(mpi or held.get("latest"))
        return cls(**found) if _is_machine(found) else cls()

    def store(self, mpi: str) -> Path:
        """Keep it as that of this host and an MPI; the file."""
        held, file = _read(), measurements()
        machines = {**held.get("machines", {}), mpi: asdict(self)}
        file.parent.mkdir(parents=True, exist_ok=True)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(json.dumps({"latest": mpi, "machines": machines}, indent=2) + "\n")
        return draft.replace(file)


def measurements() -> Path:
    """The file of what was measured on this host."""
    return cache_folder() / f"machine-{platform.node() or 'unnamed'}.json"


def _read() -> dict[str, Any]:
    """The file's content; nothing where there is none, or none that can be used."""
    try:
        held = json.loads(measurements().read_text())
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) and isinstance(held.get("machines"), dict) else {}


_OF_RANKS = frozenset(
    (
        "run",
        "product",
        "single",
        "packing",
        "operation",
        "function",
        "stream",
        "cached",
        "cache",
        "near",
        "launch",
        "lone",
        "cores",
        "rates",
    )
)
_OF_NODES = frozenset(("node_ranks", "far_alpha", "far_beta"))
"""What is assumed where a file has no figure of it."""


def _is_machine(found: object) -> bool:
    """Whether it has a number for all that is measured, and nothing that a machine has not."""
    names = {field.name for field in fields(Machine)}
    if not isinstance(found, dict) or not names - _OF_RANKS - _OF_NODES <= set(found) <= names:
        return False
    if not isinstance(found.get("node_ranks", 0), int):
        return False
    rates = found.get("rates", [])
    numbers: list[Any] = [number for name, number in found.items() if name != "rates"]
    if not isinstance(rates, list) or not all(_is_rate(rate) for rate in rates):
        return False
    numbers += [number for rate in rates for number in rate[1:]]
    return all(isinstance(n, int | float) and n >= 0 and math.isfinite(n) for n in numbers)


def _is_rate(found: object) -> bool:
    return isinstance(found, list) and len(found) == 3 and found[0] in Kind.__members__
