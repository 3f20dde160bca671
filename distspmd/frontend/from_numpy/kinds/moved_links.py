"""Links of arrays that may be one, under the names that further iterations of a loop move.

``if n == 0: u = z`` before ``u, v, w = v, w, u`` makes ``w`` an alias of ``z`` at the end of the
first iteration, ``v`` at the end of the second, and ``u`` at the end of the third.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from distspmd.frontend.from_numpy.arrays.links import Alias


def moved_links(arrays: Sequence[Any], links: Sequence[Alias]) -> list[Alias]:
    """The links of arrays behind a loop, and those that moves of names make of them.

    Args:
        arrays: that the loop carries, with what they are at the head and at the end of its body.
        links: of arrays that may be one at the end of an iteration.
    """
    found = list(links)
    for link in found:  # which grows
        ends = [
            [a.value for a in arrays if a.now.container is view.container] or [view]
            for view in (link.copy, link.source)
        ]
        for copy, source in itertools.product(*ends):
            if copy.container is not source.container and not any(
                each.touches(copy.container) and each.touches(source.container) for each in found
            ):
                found.append(replace(link, copy=copy, source=source))
    return found
