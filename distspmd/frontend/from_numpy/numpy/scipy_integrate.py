"""``scipy.integrate``: the rule of Gauss and Legendre."""

from __future__ import annotations

from typing import Any

import numpy as np

from distspmd.frontend.from_numpy.numpy.written_out import written_out_in


@written_out_in("scipy.integrate")
def _fixed_quad(func: Any, a: Any, b: Any, args: Any = (), n: Any = 5) -> Any:
    nodes, weights = np.polynomial.legendre.leggauss(n)
    places = (b - a) * (nodes + 1) / 2.0 + a
    return (b - a) / 2.0 * np.sum(weights * func(places, *args), axis=-1), None
