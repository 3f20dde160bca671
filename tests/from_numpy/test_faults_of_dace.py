"""Whether an SDFG of DaCe's parser is taken follows from it; nothing is wrong in silence."""

from __future__ import annotations

from pathlib import Path

import dace
import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import UnsupportedProgram
from from_numpy.faults_of_dace import FAULTS, RIGHT, WRONG, Fault, examine

B, S, E, H, EH = 2, 6, 8, 2, 4
f4 = dace.float32


@dace.program
def projection(x: f4[B, S, E], w_q: f4[E, H, EH], w_k: f4[E, H, EH], w_v: f4[E, H, EH]):
    q = np.einsum("bik,khj->bhij", x, w_q)
    k = np.einsum("bik,khj->bhij", x, w_k)
    v = np.einsum("bik,khj->bhij", x, w_v)
    return q, k, v


@dace.program
def scaled_softmax(x: f4[B, H, S, S]):
    scaled = x / 2
    most = np.maximum.reduce(scaled, axis=-1, keepdims=True)
    exponent = np.exp(scaled - most)
    total = np.add.reduce(exponent, axis=-1, keepdims=True)
    return exponent / total


@dace.program
def mhsa(x: f4[B, S, E], w_q: f4[E, H, EH], w_k: f4[E, H, EH], w_v: f4[E, H, EH], w_o: f4[E, E]):
    q, k, v = projection(x, w_q, w_k, w_v)
    scores = np.einsum("bhik,bhjk->bhij", q, k)
    shares = scaled_softmax(scores)
    values = np.einsum("bhik,bhkj->bhij", shares, v)
    permuted = np.einsum("bhse->bshe", values)
    flat = permuted.reshape([B, S, E])
    return np.einsum("bik,kj->bij", flat, w_o)


def attention_in_numpy(x, w_q, w_k, w_v, w_o):
    q, k, v = (np.einsum("bik,khj->bhij", x, w) for w in (w_q, w_k, w_v))
    scores = np.einsum("bhik,bhjk->bhij", q, k) / 2
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    values = np.einsum("bhik,bhkj->bhij", shares, v)
    return values.transpose(0, 2, 1, 3).reshape(B, S, E) @ w_o


def test_attention_is_lowered_by_two_lines() -> None:
    sdfg = mhsa.to_sdfg()
    lowering = distspmd.lower(sdfg, {"q.2": {"h": 2}})
    assert lowering.ranks == 2


def test_attention_computes_what_numpy_does() -> None:
    draws = np.random.default_rng(0)
    shapes = {"x": (B, S, E), "w_o": (E, E)} | {f"w_{n}": (E, H, EH) for n in "qkv"}
    given = {name: draws.random(shape).astype(np.float32) for name, shape in shapes.items()}
    with distspmd.compile(distspmd.lower(mhsa.to_sdfg(), {}), MPI.COMM_SELF) as compiled:
        found = compiled(**given)
    np.testing.assert_allclose(found, attention_in_numpy(**given), rtol=1e-5)


def test_no_program_that_dace_computes_right_is_refused_and_none_is_wrong_in_silence() -> None:
    for fault in FAULTS:
        assert fault.dace != RIGHT or fault.ours == RIGHT, fault.name
        assert fault.ours != WRONG or fault.told, fault.name


QUICK = ("bhik,bhjk->bhij ((1, 3,", "step and array", "sum of a column", "maximum of -inf")


@pytest.mark.usefixtures("unoptimised")
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(f, id=f.name, marks=[] if f.name.startswith(QUICK) else pytest.mark.slow)
        for f in FAULTS
    ],
)
def test_what_becomes_of_a_program_is_known(fault: Fault, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    is_quick = fault.name.startswith(QUICK)
    found = examine(fault, tmp_path, run_dace=not is_quick, comm=MPI.COMM_SELF)
    assert (found.dace, found.ours, found.told) == (fault.dace, fault.ours, fault.told), found.said


def test_a_refusal_says_what_to_write() -> None:
    @dace.program
    def one_batch(q: dace.float64[1, 3, 4, 5], k: dace.float64[1, 3, 6, 5]):
        return np.einsum("bhik,bhjk->bhij", q, k)

    with pytest.raises(UnsupportedProgram, match="pass the function itself"):
        distspmd.lower(one_batch.to_sdfg(), {})
