"""What `programs.py` compares with, and, as one command, all rows of the table beside their peers.

``python benchmarks/peers.py [--rows NAME ...] [--check | --store] [--small] [--repeat N]`` measures
the rows of `rows.py`, prints the ratio of the best peer's time to ours, and compares it with what
`peers.json` has (``--check``; so does ``scripts/bench --check``), or stores it.

Each peer of `programs.py` runs a program in processes of its own.

``python benchmarks/peers.py PEER PROGRAM [--parts N] [--repeat N]`` prints the milliseconds of the
best call, after it has compared the first with NumPy. A peer is a function of the program's name,
its arguments, and a number of threads, devices or ranks. It returns what is timed, and what gives
the result (of ranks: this rank's rows). It raises ``ImportError`` where its library is missing.
"""

import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dace
import numpy as np
from array_programs import (
    LEFT,
    PROGRAMS,
    SMALL,
    STEPS,
    H,
    N,
    P,
    drawn,
    numpy_attention,
    numpy_softmax,
    wanted,
)

from distspmd.codegen.build import load_unlowered
from distspmd.frontend import numpy_program
from distspmd.runtime.launch.mpiexec import launch

Arrays = dict[str, np.ndarray]
Prepared = tuple[Callable[[], Any], Callable[[], Any]]


class Unsuited(Exception):
    """A peer has no such program."""


def _in_place(call: Callable[[], Any], name: str, given: Arrays) -> Prepared:
    """Of a call that returns the result, or leaves it in an argument."""
    made: list[Any] = [None]

    def run() -> None:
        made[0] = call()

    return run, lambda: given[LEFT[name]] if name in LEFT else made[0]


def in_numpy(name: str, given: Arrays, parts: int) -> Prepared:
    return _in_place(lambda: PROGRAMS[name].reference(**given), name, given)


def in_dace(name: str, given: Arrays, parts: int) -> Prepared:
    """Plain DaCe with the same compiler and BLAS, not lowered; its maps run on threads."""
    compiled = load_unlowered(numpy_program(PROGRAMS[name].program))
    dace.config.Config.set("compiler", "allow_view_arguments", value=True)
    return _in_place(lambda: compiled(**given), name, given)


def in_c(name: str, given: Arrays, parts: int) -> Prepared:
    """Loops with OpenMP, of `kernels.c`."""
    if name not in LEFT:
        raise Unsuited("no loops in C")
    source = Path(__file__).with_name("kernels.c")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "kernels.so"
        flags = ["-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, str(source), "-o", str(library), "-lm"], check=True)
        kernels = ctypes.CDLL(str(library))
    sizes = (N, STEPS) if name == "jacobi" else given["x"].shape
    counts = [ctypes.c_size_t(size) for size in sizes]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in given.values()]
    return _in_place(lambda: kernels[name](*counts, *pointers), name, given)


# --- JAX ---


def in_jax(name: str, given: Arrays, parts: int) -> Prepared:
    """One process with a device for each part; arrays are sharded as ours are, and jit does it."""
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={parts}"
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.sharding.Mesh(np.array(jax.devices()[:parts]), ("x",))
    split, whole = NamedSharding(mesh, PartitionSpec("x")), NamedSharding(mesh, PartitionSpec())
    function, replicated = _jax_programs(jax)[name]
    passed = {
        argument: jax.device_put(array, whole if argument in replicated else split)
        for argument, array in given.items()
        if name != "softmax" or argument == "x"
    }
    out = whole if name == "attention" else split
    compiled = jax.jit(function, out_shardings=out)
    made: list[Any] = [None]

    def run() -> None:
        made[0] = jax.block_until_ready(compiled(**passed))

    return run, lambda: np.asarray(made[0])


def _jax_programs(jax: Any) -> dict[str, tuple[Callable[..., Any], tuple[str, ...]]]:
    """The programs, and which arguments are replicated."""
    jnp = jax.numpy

    def step(old: Any, new: Any) -> Any:
        inner = old[1:-1, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] + old[:-2, 1:-1] + old[2:, 1:-1]
        return new.at[1:-1, 1:-1].set(np.float32(0.2) * inner)

    def jacobi(a: Any, b: Any) -> Any:
        def turn(_: Any, pair: Any) -> Any:
            a, b = pair
            b = step(a, b)
            return step(b, a), b

        return jax.lax.fori_loop(0, STEPS // 2, turn, (a, b))[0]

    def attention(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        q, k, v = (jnp.einsum("bse,hpe->bhsp", x, w) for w in (wq, wk, wv))
        scores = jnp.einsum("bhsp,bhtp->bhst", q, k) * np.float32(P**-0.5)
        heads = jnp.einsum("bhst,bhtp->bhsp", jax.nn.softmax(scores, axis=-1), v)
        return jnp.einsum("bhsp,hpe->bse", heads, wo)

    return {
        "jacobi": (jacobi, ()),
        "softmax": (lambda x: jax.nn.softmax(x, axis=-1), ()),
        "attention": (attention, ("x",)),
        "matmul": (lambda a, b: a @ b, ("b",)),
    }


# --- on ranks ---


def in_devito(name: str, given: Arrays, parts: int) -> Prepared:
    """Devito's own code for the stencil; on several ranks with its halo exchange."""
    if name != "jacobi":
        raise Unsuited("no stencil")
    import devito

    devito.configuration["log-level"] = "ERROR"
    devito.configuration["mpi"] = parts > 1
    devito.configuration["language"] = "C"
    grid = devito.Grid(shape=(N, N), dtype=np.float32)
    u = devito.TimeFunction(name="u", grid=grid, space_order=2)
    (x, y), t = grid.dimensions, grid.stepping_dim
    points = u[t, x, y] + u[t, x, y - 1] + u[t, x, y + 1] + u[t, x - 1, y] + u[t, x + 1, y]
    equation = devito.Eq(u[t + 1, x, y], 0.2 * points, subdomain=grid.interior)
    operator = devito.Operator([equation])
    u.data[0], u.data[1] = given["a"], given["b"]
    rows = grid.distributor.glb_slices[x] if parts > 1 else slice(0, N)
    columns = grid.distributor.glb_slices[y] if parts > 1 else slice(0, N)
    mine = (rows, columns)
    return lambda: operator.apply(time_m=0, time_M=STEPS - 1), lambda: (mine, np.array(u.data[0]))


def by_hand(name: str, given: Arrays, parts: int) -> Prepared:
    """NumPy on each rank's rows (or heads), and the messages that a programmer writes."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    lo, hi = (comm.rank + np.arange(2)) * len(next(iter(given.values()))) // comm.size
    rows = slice(int(lo), int(hi))
    if name == "jacobi":
        return _jacobi_by_hand(comm, given, rows)
    made: list[Any] = [None]
    if name == "attention":
        heads = slice(comm.rank * H // comm.size, (comm.rank + 1) * H // comm.size)
        mine = {n: w[heads].copy() for n, w in given.items() if n != "x"}

        def attention() -> None:
            made[0] = numpy_attention(given["x"], **mine)
            comm.Allreduce(MPI.IN_PLACE, made[0])

        return attention, lambda: (slice(None), made[0])
    if name == "matmul":
        a, b = given["a"][rows].copy(), given["b"]

        def matmul() -> None:
            made[0] = a @ b

        return matmul, lambda: (rows, made[0])
    x, y = given["x"][rows].copy(), given["y"][rows].copy()
    return lambda: numpy_softmax(x, y), lambda: (rows, y)


def _jacobi_by_hand(comm: Any, given: Arrays, rows: slice) -> Prepared:
    from mpi4py import MPI

    up = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    down = comm.rank + 1 if comm.rank + 1 < comm.size else MPI.PROC_NULL
    lo, hi = max(rows.start - 1, 0), min(rows.stop + 1, N)
    tiles = [given[name][lo:hi].copy() for name in "ab"]

    def exchange(tile: np.ndarray) -> None:
        comm.Sendrecv(tile[1], up, 0, tile[-1], down, 0)
        comm.Sendrecv(tile[-2], down, 1, tile[0], up, 1)

    def step(old: np.ndarray, new: np.ndarray) -> None:
        inner = new[1:-1, 1:-1]
        np.add(old[1:-1, :-2], old[1:-1, 2:], out=inner)
        for term in (old[1:-1, 1:-1], old[:-2, 1:-1], old[2:, 1:-1]):
            inner += term
        inner *= np.float32(0.2)
        exchange(new)

    def run() -> None:
        for _ in range(STEPS // 2):
            step(*tiles)
            step(*tiles[::-1])

    return run, lambda: (rows, tiles[0][rows.start - lo : rows.stop - lo])


# --- running them ---


@dataclass(frozen=True)
class Peer:
    """A peer, and what its parts are: ranks, or else threads or devices of one process."""

    prepare: Callable[[str, Arrays, int], Prepared]
    on_ranks: bool = False


PEERS = {
    "NumPy": Peer(in_numpy),
    "C": Peer(in_c),
    "DaCe": Peer(in_dace),
    "JAX": Peer(in_jax),
    "Devito": Peer(in_devito, on_ranks=True),
    "NumPy+MPI": Peer(by_hand, on_ranks=True),
}


def milliseconds(peer: str, name: str, parts: int, repeat: int) -> str:
    """Of the best call of a peer, as it is printed; or why there is none."""
    ranks, threads = (parts, 1) if PEERS[peer].on_ranks else (1, parts)
    arguments = [peer, name, f"--parts={parts}", f"--repeat={repeat}", *SMALL * ["--small"]]
    done = launch(
        [Path(__file__).resolve(), *arguments], ranks=ranks, threads=threads, capture=True
    )
    return "".join(done.check().stdout.splitlines()[-1:])


def measure(peer: str, name: str, parts: int, repeat: int) -> str:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if parts == 1 and comm.size == 1:  # libraries that make a thread for each core
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    given = drawn(name)
    expected = wanted(name, given)
    try:
        run, result = PEERS[peer].prepare(name, given, parts)
    except ImportError as error:
        return f"not installed ({error.name})"
    except Unsuited:
        return ""
    run()
    found = result()
    where, found = found if isinstance(found, tuple) else (slice(None), found)
    np.testing.assert_allclose(found, expected[where], atol=2e-3, err_msg=f"{peer} {name}")
    best = float("inf")
    for _ in range(repeat):
        comm.Barrier()
        start = time.perf_counter()
        run()
        best = min(best, comm.allreduce(time.perf_counter() - start, MPI.MAX))
    return f"{best * 1e3:8.1f} ms"


def run_table() -> int:
    """Measure rows, or be the ranks of one; the exit status."""
    import rows  # noqa: F401  # registers them
    import table

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=table.ROWS, default=list(table.ROWS))
    parser.add_argument("--check", action="store_true", help="fail where a ratio was lost")
    parser.add_argument("--store", action="store_true", help="keep the ratios of this run")
    parser.add_argument("--small", action="store_true", help="sizes that take no time")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--row", choices=table.ROWS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        from mpi4py import MPI

        table.single_threaded()
        row = table.ROWS[options.row]
        measured = table.measure(MPI.COMM_WORLD, row, options.small, options.repeat)
        if MPI.COMM_WORLD.rank == 0:
            print(table.said_by_rank(measured), flush=True)
        return 0
    found = table.run_rows(
        options.rows, [f"--repeat={options.repeat}", *options.small * ["--small"]]
    )
    if options.store:
        text = json.dumps(table.to_store(found, table.known()), indent=1)
        table.STORED.write_text(text + "\n")
    lost = table.losses(found, table.known()) if options.check else []
    for each in lost:
        print(f"lost: {each}", flush=True)
    return len(lost) > 0


def main() -> int | None:
    if len(sys.argv) == 1 or sys.argv[1].startswith("-"):
        return run_table()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--parts", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    options = parser.parse_args()
    line = measure(options.peer, options.program, options.parts, options.repeat)
    from mpi4py import MPI

    if MPI.COMM_WORLD.rank == 0:
        print(line, flush=True)
    return None


if __name__ == "__main__":
    sys.exit(main())
