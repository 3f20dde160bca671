"""The numbers by which the compiler decides where nothing is proved: all in one place.

They change what a program costs, and never what it computes. What a message and a byte cost is
measured instead; see :class:`distspmd.plans.machine.Machine`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

STAGES = ("homes", "plans", "search", "code", "run", "front ends")
"""Who decides by them, in the order in which programs are made."""


def _number(value: Any, stage: str) -> Any:
    return field(default=value, metadata={"stage": stage})


@dataclass(frozen=True, slots=True)
class Heuristics:
    """Thresholds and weights.

    Attributes:
        unknown_loop: iterations of a loop whose number is not known before the run. Any number
            above one lets what stays within a loop weigh more than what happens once.
        phase_gain: of the traffic of a container, the part that a loop's own copy of it must spare:
            the copy takes memory, and a prediction may be off.
        inspected_share: of what could be fetched, the part that a read is taken to fetch if data
            decide it. It is between nothing and all, and neither is known.
        even_home: times the traffic of the cheapest home of a container that another one may have
            of which no rank holds much more than the others.
        foreseen_boxes: that a space reads of an array in each iteration, up to which ranks foresee
            what others read; of more the differences would take longer than to ask.
        foreseen_iterations: of loops, times ranks, up to which what they receive is counted before
            the run. That takes a second at most.
        windows: plans of a sum of which loops write a part: the sum is that much longer than the
            part at most, of all that there is, and a lowering has that many more plans.
        window_gain: up to which part of the bytes such plans are made.
        split_reduction_bytes: of a box, from which on its reduction is a reduce-scatter and a
            gather of the pieces: each element is then combined once, by one rank, and two calls
            cost less than one.
        listed_messages: of one step, beyond which they are listed when they are needed and not when
            they are planned. A table of as many takes tens of megabytes.
        most_messages: of all ranks, beyond which a solver that lists them is not asked if another
            one has a plan: listing them would take seconds.
        judged_messages: to a rank, from which on their latency alone may refuse a plan. Fewer are
            listed faster than they are judged.
        sequences: of collectives, cheapest first, that are tried for a plan without a permutation.
        rank_orders: orders of the axes of prime sizes in which sequences are sought.
        search_types: weak types that the search looks at before it has a sequence.
        further_types: weak types that it looks at for the others.
        search_repeats: ways to one weak type that it follows.
        search_hurry: weight of what is left to pay, in the second search, if the first found none.
        step_surcharge: relative cost of a step: of equally cheap sequences the shorter wins.
        thread_iterations: of a map, below which it runs on one thread.
        shared_iterations: of the outer dimensions of a map, from which on threads have even parts.
        contraction_iterations: of the loops of a contraction, below which they run on one thread.
        least_block: neighbours in the result of a contraction, from which on they are reduced
            together where operands are contiguous along them: rows may lie in other pages each.
        most_block: the same, beyond which their partial results leave the cache.
        blocks: of that kind that threads want, so that each has some.
        register_neighbours: in the result of a contraction, up to which vectors keep all terms of
            theirs in a register: more would read each operand's rows in too many pieces.
        unrolled_terms: of an element of a contraction, up to which they are written one by one, and
            lanes share the elements.
        gemm_dimensions: rows, columns and depth that exceed one, below which a product is loops.
        gemm_products: of elements in one call, below which loops are as fast as BLAS.
        lane_products: the same, where neighbours of the result are known and share vectors: loops
            took 0.11 to 0.9 of its time up to 16 x 16 x 16, and 0.9 to 1.4 above.
        gemv_products: the same, where the rows or the columns are one.
        packed_rows: and columns, below which a product is not worth the copies of packing.
        packed_products: of elements, below which packing is not worth the code that it takes.
        file_characters: of generated code that are worth a compiler of their own.
        block_characters: of generated code up to which a block moves to another file as a whole.
        programs_kept: for sizes of a symbolic program, in memory; the one that was not called for
            longest is closed.
        pool_bytes: of the packets of a rank, so that they stay in the cache until they are read.
        least_packet_bytes: of a packet: shorter ones cost more calls than they spare.
        most_packet_bytes: of a packet: the next is written while one is read.
        least_slots: packets of a rank, so that one that writes seldom waits.
        cheap_work: of an element, in additions, that is done again rather than stored.
        cheap_work_in_registers: the same of an element for which no element of its own is read.
        spread_work: of an element that is broadcast, in additions, from which on it is stored
            before: a root and a quotient are not, an exponential is.
        kernel_work: of an element of one kernel, in additions, beyond which the kernel is cut.
        kernel_depth: operations that follow each other in one kernel, beyond which it is cut: what
            visits an expression calls itself once or more for each.
        unrolled_window: elements of a window of pooling, up to which its reduction is an expression
            of all of them: windows are not stored, and neighbours share vectors.
        kernel_results: of one map, beyond which no other kernel is fused with it.
        near_element: nanoseconds for an element beside the last one; here and below, what the
            order of a temporary's storage is chosen by.
        far_element: nanoseconds for an element in another line of memory.
        blas_call: nanoseconds for a call of BLAS.
        blas_products: multiplications in a nanosecond, within a call.
        blas_edge: rows, columns or depth of a product at which half of its time is not spent
            multiplying.
        storage_sweeps: over all temporaries, after which their orders are what they are.
    """

    unknown_loop: int = _number(10, "homes")
    phase_gain: float = _number(0.2, "homes")
    inspected_share: float = _number(0.5, "homes")
    even_home: float = _number(2.0, "homes")
    foreseen_boxes: int = _number(4, "plans")
    foreseen_iterations: int = _number(1 << 21, "plans")
    windows: int = _number(8, "plans")
    window_gain: float = _number(0.8, "plans")
    split_reduction_bytes: int = _number(1 << 18, "plans")
    listed_messages: int = _number(1 << 20, "plans")
    most_messages: int = _number(1 << 24, "plans")
    judged_messages: int = _number(64, "plans")
    sequences: int = _number(24, "search")
    rank_orders: int = _number(16, "search")
    search_types: int = _number(700, "search")
    further_types: int = _number(150, "search")
    search_repeats: int = _number(8, "search")
    search_hurry: float = _number(3.0, "search")
    step_surcharge: float = _number(1e-9, "search")
    thread_iterations: int = _number(1 << 13, "code")
    shared_iterations: int = _number(64, "code")
    contraction_iterations: int = _number(1 << 15, "code")
    least_block: int = _number(128, "code")
    most_block: int = _number(1024, "code")
    blocks: int = _number(8, "code")
    register_neighbours: int = _number(64, "code")
    unrolled_terms: int = _number(16, "code")
    gemm_dimensions: int = _number(3, "code")
    gemm_products: int = _number(8**3, "code")
    lane_products: int = _number(17**3, "code")
    gemv_products: int = _number(64**2, "code")
    packed_rows: int = _number(2, "code")
    packed_products: int = _number(1 << 15, "code")
    file_characters: int = _number(50_000, "code")
    block_characters: int = _number(8_000, "code")
    programs_kept: int = _number(16, "run")
    pool_bytes: int = _number(1 << 19, "run")
    least_packet_bytes: int = _number(1 << 13, "run")
    most_packet_bytes: int = _number(1 << 16, "run")
    least_slots: int = _number(8, "run")
    cheap_work: int = _number(2, "front ends")
    cheap_work_in_registers: int = _number(8, "front ends")
    spread_work: int = _number(10, "front ends")
    kernel_work: int = _number(120, "front ends")
    kernel_depth: int = _number(100, "front ends")
    unrolled_window: int = _number(16, "front ends")
    kernel_results: int = _number(16, "front ends")
    near_element: float = _number(0.5, "front ends")
    far_element: float = _number(4.0, "front ends")
    blas_call: float = _number(500.0, "front ends")
    blas_products: float = _number(40.0, "front ends")
    blas_edge: int = _number(24, "front ends")
    storage_sweeps: int = _number(3, "front ends")

    def of_stage(self, stage: str) -> dict[str, int | float]:
        """Names and values of the numbers by which a stage decides."""
        own = (each for each in fields(self) if each.metadata["stage"] == stage)
        return {each.name: getattr(self, each.name) for each in own}


HEURISTICS = Heuristics()
"""Those of the compiler."""
