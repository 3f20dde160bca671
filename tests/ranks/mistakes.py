"""Every mistake of a call, made on rank 0 of three: all ranks get the error, and go on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from mpi4py import MPI

import distspmd
from distspmd.errors import ArgumentError, CompilationError, ScheduleError, ToolchainError
from distspmd.frontend import numpy_program

if TYPE_CHECKING:
    import dace

comm = MPI.COMM_WORLD


def product(a: dace.float64[10, 8], b: dace.float64[8, 6]):
    return a @ b


def scaled(x: dace.float32[9], s: dace.float32):
    x[:] = x * s


def shifted(x: dace.int32[9], k: dace.int32):
    return x + k


def compiled(function: Callable[..., Any], schedule: Any) -> Any:
    return distspmd.compile(lambda: distspmd.lower(function, schedule), comm)


def expect(kind: type[Exception], text: str, call: Callable[[], object]) -> None:
    """The call raises on this rank, and with the same text on all."""
    with pytest.raises(kind) as raised:
        call()
    assert text in str(raised.value)
    assert comm.rank == 0 or str(raised.value).startswith("rank 0: ")
    comm.Barrier()


def calls() -> None:
    program = compiled(product, {"__return": (3, 1, 1)})
    rng = np.random.default_rng(0)
    a, b = rng.random((10, 8)), rng.random((8, 6))
    fortran = np.asfortranarray(a)
    mistakes = [
        ({"a": a}, "the argument 'b' is missing on rank 0; pass b=<float64[8, 6]>"),
        ({"a": a[:9], "b": b}, "'a' must be float64[10, 8], but it has the shape [9, 8]"),
        ({"a": a.astype("f"), "b": b}, "it has the type float32. Pass a.astype('float64')"),
        ({"a": fortran, "b": b}, "C-contiguous, but it has the strides"),
        ({"a": a[:, ::-1], "b": b}, "Pass np.ascontiguousarray(a)"),
        ({"a": [1.0], "b": b}, "but [1.0] (list) was given. Pass a NumPy array"),
        ({"a": None, "b": b}, "None (NoneType) was given"),
        ({"a": a, "b": b, "c": b}, "has no argument 'c'; it has a, b"),
    ]
    for arguments, text in mistakes:
        expect(ArgumentError, text, partial(program, **(arguments if comm.rank == 0 else {})))
    for positional, named, text in [
        ((a, b, b), {}, "takes 2 arguments (a, b), but 3 were given"),
        ((a,), {"a": a, "b": b}, "the argument 'a' is given twice"),
    ]:
        given = (positional, named) if comm.rank == 0 else ((), {})
        expect(ArgumentError, text, partial(program, *given[0], **given[1]))
    for arguments in ((a, b), (2 * a, b)):
        result = program(*arguments) if comm.rank == 0 else program()
        assert isinstance(result, distspmd.runtime.MissingResult) == (comm.rank != 0)
        if comm.rank == 0:
            np.testing.assert_allclose(result, arguments[0] @ b)
    program.close()


def scalars() -> None:
    with compiled(scaled, {"x": (2,)}) as program:
        x = np.arange(9, dtype=np.float32)
        for wrong in (np.ones(2), "3", 1j):
            given = {"x": x, "s": wrong} if comm.rank == 0 else {}
            expect(ArgumentError, "'s' is a scalar of float32", partial(program, **given))
        with_rows = {"x": x, "s": [[1], [2, 3]]} if comm.rank == 0 else {}
        expect(ArgumentError, "cannot be used: ValueError", partial(program, **with_rows))
        kept = x.copy()
        kept.flags.writeable = False
        locked = {"x": kept, "s": 2} if comm.rank == 0 else {}
        expect(ArgumentError, "but it is read-only. Pass x.copy()", partial(program, **locked))
        for right in (2, 2.0, np.float32(2), np.float64(2)):
            before = x.copy()
            program(x, right) if comm.rank == 0 else program()
            assert comm.rank != 0 or np.array_equal(x, 2 * before)


def reversed_into(x: dace.float64[9], y: dace.float64[9]):
    for i in distspmd.map[0:9]:
        y[i] = x[8 - i]


def memory() -> None:
    with compiled(reversed_into, {"y": (3,)}) as program:
        both = np.arange(20.0)
        odd = np.frombuffer(b"x" + both.tobytes(), np.float64, 9, offset=1)
        shared = "'y', which the program writes, shares memory with 'x'. Pass x.copy()"
        for x, y, told in (
            (both[:9], both[:9], shared),
            (both[:9], both[8:17], shared),
            (both[4:13], both[:9], shared),
            (odd, both[:9], "at an address that is no multiple of 8. Pass x.copy()"),
            (np.ma.masked_array(both[:9]), both[10:19], "it has a mask. Pass x.filled()"),
            (both[:9].astype(">f8"), both[10:19], "it has the type >f8"),
        ):
            given = {"x": x, "y": y} if comm.rank == 0 else {}
            expect(ArgumentError, told, partial(program, **given))
        program(both[:9], both[9:18]) if comm.rank == 0 else program()
        assert comm.rank != 0 or np.array_equal(both[9:18], both[8::-1])


def integers() -> None:
    with compiled(shifted, {"__return": (3,)}) as program:
        x = np.arange(9, dtype=np.int32)
        for wrong in (2**40, np.int64(-(2**33))):
            given = {"x": x, "k": wrong} if comm.rank == 0 else {}
            expect(ArgumentError, "from -2147483648 to 2147483647", partial(program, **given))
        with tempfile.TemporaryFile() as file:
            mapped = np.memmap(file, np.int32, "w+", shape=(9,))
            mapped[:] = x
            result = program(mapped, np.int64(5)) if comm.rank == 0 else program()
            assert comm.rank != 0 or np.array_equal(result, x + 5)


def compilations() -> None:
    plain = partial(numpy_program, product)
    expect(ScheduleError, "not a lowered SDFG", lambda: distspmd.compile(plain, comm))
    text = "the parts (2, 2, 1), 4 ranks, but the communicator has 3"
    expect(ScheduleError, text, lambda: compiled(product, {"__return": (2, 2, 1)}))
    expect(CompilationError, "does not compile", lambda: distspmd.compile(broken, comm))
    os.environ["CXX"] = "/no/such/compiler"
    expect(ToolchainError, "no such command", lambda: compiled(product, {"__return": (1, 3, 1)}))
    del os.environ["CXX"]
    with pytest.raises(ArgumentError, match=r"Pass MPI.COMM_WORLD"):
        distspmd.compile(partial(distspmd.lower, product), "a string")


def broken() -> dace.SDFG:
    """A lowered program whose code is none."""
    import dace

    sdfg = numpy_program(scaled)
    sdfg = distspmd.lower(sdfg, {"x": (2,)}).sdfg
    for node, _ in sdfg.all_nodes_recursive():
        if isinstance(node, dace.nodes.Tasklet):
            node.code = dace.properties.CodeBlock("this is no C++;", dace.dtypes.Language.CPP)
    return sdfg


calls()
scalars()
memory()
integers()
compilations()
comm.Barrier()
if comm.rank == 0:
    print("all mistakes were told")
