"""The gamma function."""

from __future__ import annotations

from typing import Any

import numpy as np


def sign_of_gamma(x: Any) -> Any:
    """Its sign, which its logarithm has not."""
    return np.where(np.greater(x, 0) | (np.floor(x) % 2 == 0), 1.0, -1.0)
