"""Long lines are transformed by all ranks, in four steps: each element moves three times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import distspmd
from distspmd.frontend import numpy_program
from distspmd.frontend.from_numpy.arrays import lines
from distspmd.plans import Machine
from distspmd.plans.long_transform import LongTransform, matrix_of

RNG = np.random.default_rng(0)


def transformed(x: Any, z: Any) -> Any:
    return (
        np.fft.fft(x),
        np.fft.fft(z, norm="ortho"),
        np.fft.ifft(z),
        np.fft.ifft(x, norm="forward"),
        np.fft.fft(z[1:]),
        np.fft.rfft(x),
        np.fft.rfft(x[:-1]),
        np.fft.rfft(x, norm="ortho"),
        np.fft.irfft(z),
        np.fft.irfft(z, norm="forward"),
        np.fft.hfft(z[: len(z) // 2], norm="ortho"),
        np.fft.fft(x, 100),
        np.fft.fft(x.astype(np.float32)),
    )


@pytest.mark.parametrize("length", [210, 211])
def test_transforms_are_those_of_numpy(
    unoptimised: None, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    monkeypatch.setattr(lines, "LONG", 1)
    x = RNG.standard_normal(length)
    given = (x, x + 1j * RNG.standard_normal(length))
    numpy_program(transformed, *given, host="refuse")
    program = distspmd.program(transformed)
    for found, wanted in zip(program(*given), transformed(*given), strict=True):
        assert np.asarray(found).dtype == np.asarray(wanted).dtype
        precision = 1e-12 if found.dtype.itemsize > 8 or found.dtype == "f8" else 1e-5
        np.testing.assert_allclose(found, wanted, 0, precision * np.abs(wanted).max())
    program.close()


def filtered(x: Any) -> Any:
    spectrum = np.fft.fft(x)
    spectrum[np.abs(np.fft.fftfreq(len(x))) > 0.1] = 0
    return np.fft.ifft(spectrum).real


def test_a_search_splits_transforms_and_gathers_no_line() -> None:
    n = 1 << 20
    lowering = distspmd.lower(numpy_program(filtered, RNG.random(n)), ranks=4, machine=Machine())
    distspmd.verify(lowering)
    assert not [m.data for m in lowering.memlets if m.data not in ("x", "__return")]
    for call in lowering.on_lines:
        assert isinstance(call, LongTransform)
        assert call.expected_bytes == call.received == 3 * 16 * n * 3 // 4
        assert "four-step" in call.steps
    assert len(lowering.on_lines) == 2
    brought = sum(memlet.solution.cost.nbytes for memlet in lowering.memlets)
    explained = distspmd.explain(lowering)
    assert explained.nbytes == brought + 2 * 3 * 16 * n * 3 // 4
    assert explained.least >= 2 * 3 * 16 * n * 3 // 4


def spectra(x: Any) -> Any:
    for _t in range(2):
        x[:] = np.fft.irfft(np.fft.rfft(x) * 0.5, norm="ortho") + np.fft.fft(x[:-1])[0].real
    return np.abs(np.fft.fft(x)) ** 2


@pytest.mark.parametrize("device", [None, pytest.param("emulated", marks=pytest.mark.slow)])
def test_transforms_are_right_on_ranks_and_in_loops(device: str | None) -> None:
    given = {"x": RNG.random(9_000)}
    lowering = distspmd.lower(numpy_program(spectra, given["x"]), ranks=3, machine=Machine())
    assert any(call.is_split for call in lowering.on_lines)
    example = {"examples": given, "inputs": given, "device": device}
    distspmd.check(spectra, lowering.schedule, 3, runs=1, **example)


@pytest.mark.parametrize("length", [1, 2, 256, 1009, 2 * 1009, 24 * 37, 1 << 20, 10**6 + 3])
def test_a_line_is_a_matrix_of_its_length_or_a_longer_one(length: int) -> None:
    rows, columns = matrix_of(length)
    assert rows <= columns
    assert rows * columns == length or 2 * length - 1 <= rows * columns < 4 * length
