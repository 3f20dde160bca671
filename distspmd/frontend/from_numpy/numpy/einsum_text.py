"""The subscripts of ``np.einsum``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from string import ascii_letters


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
