"""Transforms of long lines of real numbers, of which pairs are transformed as complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def rfft(line: Any, halves: int) -> Any:
    """Of a line of even length, over the root of that by a number of powers."""
    half = len(line) // 2
    pairs = line.reshape(half, 2)
    found = np.fft.fft(pairs[:, 0] + 1j * pairs[:, 1])
    first = np.concatenate((found, found[:1]))
    other = np.conj(first[::-1])
    turns = np.arange(half + 1) * (2 * np.pi / len(line))
    turned = (first - other) * (0.5 * np.sin(turns) + 0.5j * np.cos(turns))
    return ((first + other) * 0.5 - turned) / len(line) ** (halves / 2)


def irfft(transform: Any, halves: int) -> Any:
    """The line of even length, over the root of that by a number of powers."""
    half = len(transform) - 1
    first = transform.copy()
    first[0], first[half] = first[0].real, first[half].real
    other = np.conj(first[::-1])
    turns = np.arange(half) * (np.pi / half)
    turned = (first - other)[:half] * (0.5j * np.cos(turns) - 0.5 * np.sin(turns))
    found = np.fft.ifft((first + other)[:half] * 0.5 + turned)
    line = np.stack((found.real, found.imag), axis=1).reshape(2 * half)
    return line * (2 * half) ** (1 - halves / 2)
