"""What stands for cuBLAS on the emulated device refuses what cuBLAS refuses, and host memory."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from distspmd.errors import ToolchainError
from distspmd.runtime.devices.kinds import KINDS, Device, build_device_library
from distspmd.runtime.devices.products import VARIABLE, find_products

SUCCESS, INVALID, FAILED, UNSUPPORTED = 0, 7, 13, 15
SINGLE, DOUBLE = 0, 1
FULL, TF32, OF_DOUBLES = 68, 77, 70


class Products:
    """The library, a handle, and two memories of 64 elements in the device."""

    def __init__(self) -> None:
        kind = KINDS["emulated"]
        self.device = Device(build_device_library(kind))
        self.library = ctypes.CDLL(find_products(kind))
        self.handle = ctypes.c_void_p()
        assert self.library.cublasCreate_v2(ctypes.byref(self.handle)) == SUCCESS
        self.given = np.arange(64, dtype=np.float32)
        self.a, self.c = (self.device.allocate(self.given.nbytes) for _ in range(2))
        self.device.upload(self.given, self.a)

    def multiply(self, **changed: Any) -> int:
        """A product of ``(4 x 3) (3 x 2)``, with changed arguments; the library's status."""
        call = {
            "turn_a": 0, "turn_b": 0, "m": 4, "n": 2, "k": 3, "a": self.a, "kind": SINGLE,
            "lda": 4, "b": self.a, "ldb": 3, "c": self.c, "ldc": 4, "compute": FULL, "count": 1,
            "apart": 0,
        } | changed  # fmt: skip
        number, address = ctypes.c_int64, ctypes.c_void_p
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        status: int = self.library.cublasGemmStridedBatchedEx_64(
            self.handle, call["turn_a"], call["turn_b"], *map(number, (call["m"], call["n"])),
            number(call["k"]), ctypes.byref(one), address(call["a"]), call["kind"],
            number(call["lda"]), number(0), address(call["b"]), call["kind"], number(call["ldb"]),
            number(0), ctypes.byref(zero), address(call["c"]), call["kind"], number(call["ldc"]),
            number(call["apart"]), number(call["count"]), call["compute"], -1,
        )  # fmt: skip
        return status

    def result(self) -> np.ndarray:
        assert not self.device.error()
        found = np.zeros_like(self.given)
        self.device.download(self.c, found)
        return found


@pytest.fixture(scope="module")
def products() -> Iterator[Products]:
    made = Products()
    yield made
    for address in (made.a, made.c):
        made.device.free(address)


def test_matrices_lie_by_columns(products: Products) -> None:
    assert products.multiply() == SUCCESS
    a = products.given[:12].reshape(3, 4).T
    b = products.given[:6].reshape(2, 3).T
    assert np.array_equal(products.result()[:8].reshape(2, 4).T, a @ b)
    assert products.multiply(turn_a=1, lda=3, count=2, apart=16) == SUCCESS
    turned = products.given[:12].reshape(4, 3)
    for begin in (0, 16):
        assert np.array_equal(products.result()[begin : begin + 8].reshape(2, 4).T, turned @ b)


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"m": -1}, INVALID),
        ({"lda": 3}, INVALID),
        ({"turn_a": 1, "lda": 2}, INVALID),
        ({"ldc": 3}, INVALID),
        ({"turn_b": 3}, INVALID),
        ({"count": 2}, INVALID),
        ({"kind": DOUBLE}, UNSUPPORTED),
        ({"compute": OF_DOUBLES}, UNSUPPORTED),
        ({"kind": DOUBLE, "compute": TF32}, UNSUPPORTED),
        ({"m": 0, "ldc": 1, "lda": 1}, SUCCESS),
    ],
)
def test_what_cublas_refuses_is_refused(
    products: Products, changed: dict[str, int], status: int
) -> None:
    assert products.multiply(**changed) == status


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_memory_of_the_host_is_an_error(products: Products, name: str) -> None:
    assert products.multiply(**{name: products.given.ctypes.data}) == FAILED


def test_a_stream_that_is_none_is_an_error(products: Products) -> None:
    stream = products.device.create_stream()
    products.device.destroy_stream(stream)
    assert products.library.cublasSetStream_v2(products.handle, ctypes.c_void_p(stream)) == SUCCESS
    assert products.multiply() == FAILED
    assert products.library.cublasSetStream_v2(products.handle, None) == SUCCESS
    products.device.error()


def test_products_wait_for_what_is_on_their_stream(products: Products) -> None:
    stream = products.device.create_stream()
    products.library.cublasSetStream_v2(products.handle, ctypes.c_void_p(stream))
    ones = np.ones_like(products.given)
    products.device.copy_on(stream, products.a, ones)
    assert products.multiply() == SUCCESS
    products.device.copy_on(stream, products.a, products.given)
    products.device.wait_for_stream(stream)
    assert np.array_equal(products.result()[:8], np.full(8, 3))
    products.library.cublasSetStream_v2(products.handle, None)
    products.device.destroy_stream(stream)


def test_a_library_that_is_not_wanted_or_not_there_is_said_to_be_so(tmp_path: Any) -> None:
    with pytest.raises(ToolchainError, match="since DISTSPMD_CUBLAS is 'none'"):
        find_products(KINDS["emulated"], {VARIABLE: "none"})
    with pytest.raises(ToolchainError, match="which is no file"):
        find_products(KINDS["cuda"], {VARIABLE: str(tmp_path / "libcublas.so.13")})
