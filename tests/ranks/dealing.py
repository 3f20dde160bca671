"""Programs of which spaces deal their iterations in blocks, on ranks, beside NumPy."""

import numpy as np
from attention_by_hand import attention_step
from dace import float64 as f8
from dace import symbol
from mpi4py import MPI

import distspmd
from distspmd.layouts import cyclic

comm = MPI.COMM_WORLD
P = comm.size
S, H, D = 6, 5, 2
E = H * D
N = symbol("N")

step = attention_step(S, H, D)


def stretched(x: f8[N], m: f8[N, N]):
    y = np.sin(x) + np.arange(x.shape[0])
    m[:] = m * y
    if y[3] > 1:
        m[:] = m + 1
    return y + 1, m @ y, np.argmax(m, axis=1), m[:, 0]


def run(program, schedule, kinds, arguments):
    """Call with what each rank holds; compare results and what is written with NumPy."""
    wanted = {name: value.copy() for name, value in arguments.items()}
    expected = program(**wanted)
    expected = expected if isinstance(expected, tuple) else (expected,)
    with distspmd.compile(
        lambda: distspmd.lower(program, schedule, mesh={"r": P}, arguments=kinds), comm
    ) as compiled:
        held = {
            name: compiled.tile(name, value) if kinds.get(name) == "distributed" else value.copy()
            for name, value in arguments.items()
            if comm.rank == 0 or name in kinds
        }
        found = compiled(**held)
        for name, value in held.items():
            whole = kinds.get(name) != "distributed"
            own = wanted[name] if whole else compiled.tile(name, wanted[name])
            np.testing.assert_allclose(value, own, rtol=1e-9, atol=1e-12)
        if comm.rank == 0:
            found = found if isinstance(found, tuple) else (found,)
            for have, want in zip(found, expected, strict=True):
                assert np.shape(have) == np.shape(want)
                np.testing.assert_allclose(have, want, rtol=1e-9, atol=1e-12)


rng = np.random.default_rng(0)
given = {
    "x": rng.standard_normal((S, E)),
    "y": rng.standard_normal((S, E)),
    "w": rng.standard_normal((E, 3 * E)),
    "wo": rng.standard_normal((E, E)),
}
heads = {"qkv": {"j": ("r", cyclic(-(-H // P) * D, E))}}
run(step, heads, {}, given)
run(step, heads, {"w": "distributed", "wo": "distributed", "x": "replicated"}, given)
run(step, heads, {"w": "replicated"}, given)

n = 6 * P
vectors = {"x": rng.standard_normal(n), "m": rng.standard_normal((n, n))}
run(stretched, {"m": {"__i1": ("r", cyclic(2))}}, {}, vectors)
run(stretched, {"m": {"__i0": ("r", cyclic(3))}}, {}, vectors)
