"""What of a lowered program a device runs, and what the host, without compiling it."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable

import dace
import numpy as np
import pytest
from dace import SDFG
from dace.dtypes import ScheduleType, StorageType
from dace.sdfg import nodes
from lowering.harness import parsed
from lowering.programs import CASES

import distspmd
from distspmd.codegen.device_maps import host_functions
from distspmd.codegen.device_placement import Placement, expand_for_device, place
from distspmd.codegen.implementations import choose_implementations
from distspmd.dace_compat.device_code import for_cuda
from distspmd.nodes.device_calls import DeviceCall

Placed = Callable[..., tuple[SDFG, Placement]]


@pytest.fixture
def placed() -> Placed:
    def make(name: str, **options: str) -> tuple[SDFG, Placement]:
        (case,) = (case for case in CASES if case.name == name)
        return on_device(
            copy.deepcopy(case.lowered(parsed(case.program, case.frontend))), **options
        )

    return make


def on_device(sdfg: SDFG, **options: str) -> tuple[SDFG, Placement]:
    """A lowered program, placed."""
    choose_implementations(sdfg)
    with for_cuda():
        slow = expand_for_device(sdfg, **options)
        return sdfg, place(sdfg, slow)


def rows_of_sums(row: dace.int64[9], col: dace.int32[20], val: dace.float64[20]):
    y = np.empty(8)
    for i in distspmd.map[0:8]:
        total = 0.0
        for k in range(row[i], row[i + 1]):
            total += val[col[k]]
        y[i] = total
    return y


def test_indices_that_are_checked_between_states_keep_a_map_on_the_host() -> None:
    sdfg = distspmd.frontend.numpy_program(rows_of_sums)
    sdfg = distspmd.lower(sdfg, {"__return": (4,)}).sdfg
    _, placement = on_device(sdfg)
    said = {(space.place, space.remark) for space in placement.spaces}
    why = "its body calls distspmd_checked_index, which is compiled for the host"
    assert ("host", why) in said


def kernels(sdfg: SDFG) -> list[nodes.Map]:
    found = (node for node, _ in sdfg.all_nodes_recursive() if isinstance(node, nodes.MapEntry))
    return [entry.map for entry in found if entry.map.schedule is ScheduleType.GPU_Device]


def test_maps_become_kernels_of_one_dimension_and_tiles_lie_on_the_device(placed: Placed) -> None:
    sdfg, placement = placed("jacobi[y=3x2,x=3x2]-6")
    assert {space.place for space in placement.spaces} == {"device"}
    assert kernels(sdfg) == [], "all of them are calls of kernels of our own"
    assert all("own kernel" in space.remark for space in placement.spaces)
    assert sdfg.arrays["x_tile"].storage is StorageType.GPU_Global
    assert placement.arguments == (), "the root's arrays are only scattered and gathered"
    assert sdfg.arrays["x"].storage is StorageType.Default


def test_what_reduces_is_a_loop_of_the_thread_that_owns_the_element(placed: Placed) -> None:
    sdfg, placement = placed("histogram[h=4]-4")
    (space,) = [space for space in placement.spaces if "one thread" in space.remark]
    assert space.remark == "a kernel of DaCe: one thread, in order over i"
    assert all(len(kernel.params) == 1 for kernel in kernels(sdfg))
    for node, graph in sdfg.all_nodes_recursive():
        if isinstance(node, nodes.Tasklet):
            written = [edge.data for edge in graph.out_edges(node) if edge.data.wcr]
            assert all(memlet.wcr_nonatomic for memlet in written)


def test_a_value_of_control_flow_is_on_the_host_and_copied(placed: Placed) -> None:
    sdfg, placement = placed("until_small[b=4]-4")
    reasons = {space.remark for space in placement.spaces if space.place == "host"}
    assert reasons == {"control flow reads its result"}
    assert sdfg.arrays["error_0_value_tile"].storage is StorageType.CPU_Heap
    assert sdfg.arrays["error_0_tile"].storage is StorageType.GPU_Global
    assert sdfg.arrays["error_0_tile_host"].storage is StorageType.CPU_Heap


def test_a_function_of_the_host_reads_and_writes_copies_of_windows(placed: Placed) -> None:
    sdfg, placement = placed("solved[__return=4]-4")
    assert [space.place for space in placement.spaces if "no map" in space.remark] == ["host"]
    copies = [
        node.label
        for node, _ in sdfg.all_nodes_recursive()
        if isinstance(node, nodes.Tasklet) and "copy_window" in node.code.as_string
    ]
    assert sum(label.endswith("_host") for label in copies) >= 3, "two operands, and the result"


@pytest.mark.parametrize(
    ("name", "remark"),
    [
        ("matmul[_MatMult_=2x2x2]-8", "a product by cuBLAS"),
        ("batched[__return=2x2x1x2]-8", "a product by cuBLAS, a batch over a"),
        ("gradient_of_weights[__return=2x2x2]-8", "a product by cuBLAS, a call for each of s"),
        ("matrix_vector[__return=2x3]-6", "a product by cuBLAS"),
    ],
)
def test_products_are_calls_of_a_library_on_memory_of_the_device(
    placed: Placed, name: str, remark: str
) -> None:
    sdfg, placement = placed(name)
    assert placement.calls_products
    assert remark in [space.remark for space in placement.spaces if space.place == "device"]
    (call,) = (n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, DeviceCall))
    assert "distspmd::multiply(__dace_current_stream, " in call.code.as_string


def test_products_are_kernels_where_there_is_no_library_and_it_is_said(placed: Placed) -> None:
    _, placement = placed("matmul[_MatMult_=2x2x2]-8", without="there is none")
    assert not placement.calls_products
    assert any(space.remark.endswith("; there is none") for space in placement.spaces)


def test_operands_are_rounded_where_that_is_asked_for(placed: Placed) -> None:
    sdfg, _ = placed("in_chain[a_matmul_b=2x2x1,__return=1x2x2]-4", precision="tf32")
    calls = [n for n, _ in sdfg.all_nodes_recursive() if isinstance(n, DeviceCall)]
    assert calls
    assert all("distspmd::Precision::tf32" in call.code.as_string for call in calls)


def test_functions_of_a_program_are_found_by_their_definitions() -> None:
    sdfg = SDFG("with_functions")
    sdfg.append_global_code(
        "inline long twice(long x) {\n  if (x) { return 2 * x; }\n  return f(x);\n}"
    )
    assert host_functions(sdfg) == {"twice"}


def shifted_sums(x: dace.float32[12, 40], y: dace.float32[12, 40]) -> dace.float32[12]:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    y[:] = e / np.sum(e, axis=1, keepdims=True)
    return np.sum(y[:, ::-1] * x, axis=1)


def test_a_chain_over_rows_is_one_kernel_and_what_it_passes_on_has_no_memory() -> None:
    lowered = distspmd.lower(shifted_sums, {"e": (3, 1)})
    sdfg = copy.deepcopy(lowered.sdfg)
    choose_implementations(sdfg)
    with for_cuda():
        slow = expand_for_device(sdfg, symbols=lowered.symbols)
        placement = place(sdfg, slow)
    chains = [s.remark for s in placement.spaces if "own kernel of rows" in s.remark]
    assert len(chains) == 2, "what is read in another order begins another chain"
    assert chains[0].startswith("one own kernel of rows (max_x, e, sum_e, y):")
    assert not {"e_tile", "max_x_tile", "sum_e_tile"} & sdfg.arrays.keys()


def test_nothing_is_a_chain_where_the_order_of_sums_is_fixed() -> None:
    lowered = distspmd.lower(shifted_sums, {"e": (3, 1)}, deterministic=True)
    sdfg = copy.deepcopy(lowered.sdfg)
    choose_implementations(sdfg, in_order=True)
    with for_cuda():
        expand_for_device(sdfg, exact=True, symbols=lowered.symbols)
        placement = place(sdfg, exact=True)
    assert not any("kernel of rows" in space.remark for space in placement.spaces)


SMALL = {"__lane", "__lanes", "__k", "__mine", "__together"}
"""Numbers of our kernels that threads of a block, or registers of a thread, bound."""


@pytest.mark.parametrize("rows", ["", "rows"])
def test_kernels_of_our_own_count_and_index_in_64_bits(placed: Placed, rows: str) -> None:
    """Of elements, reductions, products without a library, and rows, in registers and not."""
    if rows:
        sdfgs = []
        for columns in (40, 50_000):
            program = distspmd.frontend.numpy_program(
                row_sums, x=np.broadcast_to(0.0, (70_000, columns))
            )
            lowered = distspmd.lower(program, {"e": (3, 1)})
            sdfg = copy.deepcopy(lowered.sdfg)
            choose_implementations(sdfg)
            with for_cuda():
                expand_for_device(sdfg, symbols=lowered.symbols)
            sdfgs.append(sdfg)
    else:
        names = "jacobi[y=3x2,x=3x2]-6", "sums[__return_0=4x2,__return_1=4x2,sum_x_1=4x2]-8"
        sdfgs = [placed(name)[0] for name in names]
        sdfgs.append(placed("matmul[_MatMult_=2x2x2]-8", without="there is none")[0])
    texts = [
        node.definition
        for sdfg in sdfgs
        for node, _ in sdfg.all_nodes_recursive()
        if isinstance(node, DeviceCall) and node.definition
    ]
    kinds = {"_elements", "_terms", "_rows"}
    found = {kind for kind in kinds for text in texts if f"{kind}(" in text or f"{kind}<" in text}
    assert found == ({"_rows"} if rows else kinds - {"_rows"})
    for text in texts:
        narrow = re.findall(r"\b(?:int|unsigned|short|std::u?int32_t) (\w+)\b", text)
        assert set(narrow) <= SMALL, text
        assert "std::int64_t" in text


def row_sums(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)
