"""``np.einsum`` of a NumPy program as contractions, one for each two operands.

DaCe's own (2.0.0b1) is wrong where an extent is 1, and hides batches and heads in merged
dimensions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters
from typing import Any

import numpy as np
from dace import SDFG, SDFGState, dtypes
from dace.frontend.python.common import DaceSyntaxError

from distspmd.nodes.contraction import add_contraction


def einsum(
    visitor: Any,
    sdfg: SDFG,
    state: SDFGState,
    subscripts: Any,
    *operands: str,
    dtype: dtypes.typeclass | None = None,
    optimize: object = False,
) -> str:
    """Add the contractions to a state; the name of the result.

    Raises:
        DaceSyntaxError: the subscripts do not fit the operands.
    """
    try:
        shapes = [_shape(sdfg, name) for name in operands]
        terms, out = parse_subscripts(str(subscripts), [len(shape) for shape in shapes])
        extents = _extents(terms, shapes)
        order = _order(terms, out, shapes)
    except ValueError as problem:
        text = f"np.einsum({str(subscripts)!r}): {problem}"
        raise DaceSyntaxError(visitor, visitor.current_ast_stack[-1], text) from None
    result_type = dtype or dtypes.dtype_to_typeclass(
        np.result_type(*(sdfg.arrays[name].dtype.type for name in operands)).type
    )
    target = visitor.get_target_name()
    parts = [(term, state.add_read(name)) for term, name in zip(terms, operands, strict=True)]
    for step, places in enumerate(order):
        taken = [parts.pop(place) for place in sorted(places, reverse=True)][::-1]
        last = step == len(order) - 1
        kept = out if last else _kept([term for term, _ in taken], [t for t, _ in parts], out)
        name, _ = sdfg.add_transient(
            target if last else f"{target}_part",
            [extents[x] for x in kept] or [1],
            result_type,
            find_new_name=True,
        )
        goal = state.add_access(name)
        joined = f"{','.join(term for term, _ in taken)}->{kept}"
        info = visitor.current_lineinfo
        node = add_contraction(state, "einsum", joined, [node for _, node in taken], goal)
        node.debuginfo = goal.debuginfo = info
        parts.append((kept, goal))
    return str(parts[0][1].data)


def _shape(sdfg: SDFG, name: object) -> tuple[int, ...]:
    if not isinstance(name, str) or name not in sdfg.arrays:
        raise ValueError(f"{name!r} is no array.")
    shape = sdfg.arrays[name].shape
    if any(not str(n).isdigit() for n in shape):
        raise ValueError(f"{name!r} has the symbolic shape {list(map(str, shape))}.")
    return tuple(int(n) for n in shape)


def _extents(terms: Sequence[str], shapes: Sequence[tuple[int, ...]]) -> dict[str, int]:
    extents: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, extent in zip(term, shape, strict=True):
            known = extents.get(letter, 1)
            if 1 not in (known, extent) and known != extent:
                raise ValueError(f"{letter!r} has the extents {known} and {extent}.")
            extents[letter] = max(known, extent)
    return extents


def _order(
    terms: Sequence[str], out: str, shapes: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Which operands to contract in turn: at most two each time, the cheapest first."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    samples = [np.broadcast_to(np.zeros(()), shape) for shape in shapes]
    search = "optimal" if len(terms) < 6 else "greedy"
    path, _ = np.einsum_path(f"{','.join(terms)}->{out}", *samples, optimize=search)
    steps, left = [], len(terms)
    for places in path[1:]:
        if len(places) > 2:  # NumPy gives up on an order: from the left, then
            return [(0, 1), *((0, left - 1 - k) for k in range(1, left - 1))]
        steps.append(tuple(places))
    return steps


def _kept(taken: Sequence[str], rest: Sequence[str], out: str) -> str:
    """Letters of a part result: those that are still needed."""
    needed = set(out).union(*rest)
    return "".join(x for x in dict.fromkeys("".join(taken)) if x in needed)


def parse_subscripts(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Letters of each operand and of the result; an ellipsis gets letters that are free.

    Raises:
        ValueError: they do not fit operands of these numbers of dimensions.
    """
    left, arrow, out = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"there are {len(ranks)} operands for {len(terms)} subscripts.")
    free = [x for x in ascii_letters if x not in subscripts]
    hidden = [
        rank - len(term.replace("...", "")) if "..." in term else 0
        for term, rank in zip(terms, ranks, strict=True)
    ]
    if min(hidden, default=0) < 0:
        raise ValueError("an operand has fewer dimensions than letters.")
    batch = "".join(free[: max(hidden, default=0)])
    terms = [
        term.replace("...", batch[len(batch) - count :])
        for term, count in zip(terms, hidden, strict=True)
    ]
    counted = Counter("".join(terms))
    if arrow:
        out = out.replace("...", batch)
    else:
        out = batch + "".join(sorted(x for x, n in counted.items() if n == 1 and x not in batch))
    strange = [x for x in "".join([*terms, out]) if x not in ascii_letters]
    if strange:
        raise ValueError(f"{strange[0]!r} is no letter.")
    unknown = [x for x in out if x not in counted]
    if unknown:
        raise ValueError(f"the result has {unknown[0]!r}, which no operand has.")
    if len(set(out)) < len(out):
        raise ValueError("the result has a letter twice.")
    for term, rank in zip(terms, ranks, strict=True):
        if len(term) != rank:
            raise ValueError(f"{term!r} stands for an operand of {rank} dimensions.")
    return terms, out
