"""Functions that take elements that masks choose, and lists of the run, where they are."""

from __future__ import annotations

import bisect
import copy
import functools
import heapq
import itertools
import operator
import random
from collections import Counter, defaultdict, deque
from typing import Any

import numpy as np

OF_CHOICES: frozenset[Any] = frozenset(
    [
        *(np.sum, np.prod, np.mean, np.max, np.min, np.amax, np.amin, np.any, np.all, np.std),
        *(np.var, np.count_nonzero, np.real, np.imag, np.angle, np.clip, np.round, np.around),
        *(len, abs, sum, any, all, max, min),
    ]
)
"""Functions that take elements that a mask chooses where they are; others get them as arrays."""
METHODS_OF_CHOICES = frozenset(
    [
        *("sum", "prod", "mean", "max", "min", "any", "all", "std", "var"),
        *("astype", "clip", "round", "conj", "conjugate"),
    ]
)


OF_LISTS: frozenset[Any] = frozenset(
    [
        *(len, list, tuple, sorted, enumerate, zip, reversed, isinstance, type, print, bool, any),
        *(copy.copy, copy.deepcopy, operator.add, operator.mul),
        *(dict, defaultdict, Counter),
        *(all, map, filter, sum, min, max, hasattr, callable, set, frozenset, deque),
        functools.reduce,
        *(random.choice, random.choices, random.sample, random.shuffle),
        *(heapq.heappush, heapq.heappop, heapq.heapify, heapq.heapreplace, heapq.heappushpop),
        *(heapq.nlargest, heapq.nsmallest),
        *(f for m in (bisect, itertools) for f in vars(m).values() if callable(f)),
    ]
)
"""Functions that take lists whose content the run decides; others get them as arrays."""
