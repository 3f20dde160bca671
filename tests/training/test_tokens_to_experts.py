"""Tokens go to the ranks of their experts and back, by batch: two all-to-alls a layer each way."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor, nn
from torch.nn import functional

import distspmd
from distspmd import frontend
from distspmd.lowering import Lowering
from training.test_experts import CHOSEN, LENGTH, WIDTH, Layer, Mixture, batch, build, step_of

COUNT = 8


class InOrder(Mixture):
    """Words in the order in which they are, with the matrices of their experts for each."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, WIDTH)
        shares, chosen = self.gate(flat).softmax(-1).topk(CHOSEN, dim=-1)
        expert, words = chosen.reshape(-1), flat.repeat_interleave(CHOSEN, dim=0)
        gate, up = torch.bmm(words[:, None], self.up[expert])[:, 0].chunk(2, dim=-1)
        made = torch.bmm((self.act(gate) * up)[:, None], self.down[expert])[:, 0]
        made = made * shares.reshape(-1)[:, None]
        return made.view(-1, CHOSEN, WIDTH).sum(1).view_as(x)


class Two(nn.Module):
    """Two layers: the choices of the second depend on the experts of the first."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.first, self.second = (Layer(experts, functional.silu) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x))


def lowered(layer: nn.Module, schedule: Any, count: int = COUNT) -> Lowering:
    return distspmd.lower(frontend.training_step(step_of(layer), *batch(count)), schedule)


def rows_of_words(lowering: Lowering) -> list[str]:
    return [rows.data for rows in lowering.row_exchanges if rows.width == WIDTH]


@pytest.mark.parametrize("ranks", [3, 4])
def test_words_move_twice_forward_and_twice_backward(ranks: int) -> None:
    lowering = lowered(build(5)[0], frontend.experts(ranks))
    forward = [name for name in rows_of_words(lowering) if "backward" not in name]
    assert len(forward) == 2
    assert len(rows_of_words(lowering)) == 4
    assert [rows.width for rows in lowering.row_exchanges if rows.width != WIDTH] == [1, 1]


def test_nothing_else_moves_but_choices_and_gradients_of_what_all_ranks_have() -> None:
    lowering = lowered(build(4)[0], frontend.experts(4))
    pairs = COUNT * LENGTH * CHOSEN
    moved = {
        memlet.data: memlet.solution.plan.redistribution
        for memlet in lowering.memlets
        if not memlet.from_caller and not memlet.to_caller
    }
    numbers = [move for move in moved.values() if move.dtype.kind == "i"]
    assert [int(move.target.volumes[0]) for move in numbers] == [pairs, pairs]
    others = [move for move in moved.values() if move.dtype.kind != "i"]
    assert all(move.source.partial for move in others), "gradients"
    assert not any(COUNT in move.target.extents for move in others)


def test_each_rank_holds_its_own_experts_alone() -> None:
    lowering = lowered(build(5)[0], frontend.experts(3))
    held = {home.data: home.layout for home in lowering.homes}
    for name in ("mixture_up", "mixture_down"):
        boxes = held[name].boxes
        assert [box[0] for box in boxes] == [(0, 2), (2, 4), (4, 5)]


def test_explanations_and_predictions_have_the_exchanges() -> None:
    lowering = lowered(build(4)[0], frontend.experts(4))
    text = str(distspmd.explain(lowering))
    each = WIDTH * 8
    evenly = COUNT * LENGTH * CHOSEN * each * 3 // 4
    assert text.count("all-to-all of rows") == 6
    assert text.count(f"{each:,} a row, {evenly:,} if evenly chosen") == 4
    assert "all-to-all of rows" in str(lowering)
    moves = [data for data, *_ in distspmd.predict(lowering).moves]
    assert {rows.data for rows in lowering.row_exchanges} <= set(moves)


def test_a_batch_that_is_too_short_has_no_exchanges() -> None:
    assert not lowered(build(4)[0], frontend.experts(4), count=2).row_exchanges


def test_one_rank_has_no_exchanges() -> None:
    assert not lowered(build(4)[0], frontend.experts(1)).row_exchanges


def test_code_that_makes_other_than_zero_of_zero_reads_values() -> None:
    lowering = lowered(build(4, after=torch.cos)[0], frontend.experts(4))
    assert 0 < len(rows_of_words(lowering)) < 4


class Greedy(nn.Module):
    """The values of the best action in each state, as critics of distributions write it."""

    def __init__(self) -> None:
        super().__init__()
        self.values = nn.Linear(3, 8)

    def forward(self, x: Tensor) -> Tensor:
        values = self.values(x).view(len(x), 4, 2).softmax(-1)
        best = values.square().sum(-1).argmax(1)
        return values[torch.arange(len(x)), best]


def test_numbers_of_rows_that_an_exchange_has_read_are_not_exchanged_themselves() -> None:
    sdfg = frontend.torch_module(Greedy(), torch.randn(6, 3))
    lowering = distspmd.lower(sdfg, frontend.data_parallel(2))
    assert len(lowering.row_exchanges) == 1


def test_products_have_the_axes_of_both() -> None:
    for schedule in (
        frontend.experts(2) * frontend.data_parallel(2),
        frontend.data_parallel(2) * frontend.experts(2),
    ):
        assert list(schedule["*"].split) == ["experts", "batch"]
        lowering = lowered(build(4)[0], schedule)
        assert len(rows_of_words(lowering)) == 4


# -- on ranks ------------------------------------------------------------------------------------


def in_order() -> nn.Module:
    layer, _ = build(5)
    layer.mixture = InOrder(5, functional.silu).double()
    return layer


def two() -> nn.Module:
    torch.manual_seed(0)
    return Two(4).double()


MODELS = {
    "even": lambda: build(4)[0],
    "uneven": lambda: build(5)[0],
    "cosine": lambda: build(5, after=torch.cos)[0],
    "bias": lambda: build(5, bias=True)[0],
    "norm": lambda: build(7, torch.tanh, norm=True)[0],
    "in order": in_order,
    "two": two,
}
"""Layers; 4 experts on 3 ranks leave one with nothing."""


def test_steps_are_those_of_torch_and_bytes_those_of_the_textbook() -> None:
    call_on_ranks("training.test_tokens_to_experts", "train(comm, ['even'], 6)", 3)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_all_layers_train_as_torch_does(ranks: int) -> None:
    call_on_ranks("training.test_tokens_to_experts", "train(comm, list(module.MODELS), 7)", ranks)


@pytest.mark.slow
def test_experts_and_data_parallel_train_as_torch_does() -> None:
    call = "train(comm, ['even', 'uneven'], 6, module.frontend.{})"
    call_on_ranks("training.test_tokens_to_experts", call.format(PRODUCT), 4)


@pytest.mark.slow
def test_rows_come_from_the_memory_of_devices_and_go_there() -> None:
    call = "train(comm, ['even'], 6, device='emulated')"
    call_on_ranks("training.test_tokens_to_experts", call, 2)


PRODUCT = "experts(2) * module.frontend.data_parallel(2)"


def train(
    comm: Any, names: list[str], count: int, schedule: Any = None, device: str | None = None
) -> None:
    """Three steps of AdamW on ranks beside torch on rank 0, and the bytes of a first call."""
    for name in names:
        layer = MODELS[name]()
        settings = {"make": torch.optim.AdamW, "lr": 0.01, "weight_decay": 0.1}
        step, same = step_of(layer, **settings), copy.deepcopy(layer)
        reference = step_of(same, **settings)
        program = distspmd.compile(
            lambda step=step: distspmd.lower(
                frontend.training_step(step, *batch(count)), schedule or frontend.experts(comm.size)
            ),
            comm,
            device=device,
        )
        with program:
            for number in range(3):
                if comm.rank == 0 and number == 0 and schedule is None and name == "even":
                    crossing = pairs_between_ranks(same, batch(count)[0], comm.size)
                loss = program(*(batch(count) if comm.rank == 0 else ()))
                if number == 0 and schedule is None and name == "even":
                    compare_bytes(comm, program, crossing if comm.rank == 0 else 0)
                if comm.rank == 0:
                    torch.testing.assert_close(
                        loss, reference(*batch(count)), rtol=1e-9, atol=1e-11, msg=name
                    )
            program.collect()
        if comm.rank == 0:
            for ours, theirs in zip(layer.parameters(), same.parameters(), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-9, msg=name)


def pairs_between_ranks(layer: Any, x: Tensor, ranks: int) -> int:
    """How many pairs of a word and an expert of it lie on two ranks, in blocks of each."""
    with torch.no_grad():
        flat = layer.first(x).reshape(-1, WIDTH)
        _, chosen = layer.mixture.gate(flat).softmax(-1).topk(CHOSEN, dim=-1)
    of_words = torch.arange(len(flat)) // LENGTH // -(-len(x) // ranks)
    of_experts = chosen // -(-layer.mixture.count // ranks)
    return int((of_words[:, None] != of_experts).sum())


def compare_bytes(comm: Any, program: Any, crossing: int) -> None:
    """Each exchange has moved a row for each such pair, and no byte more."""
    crossing = comm.bcast(crossing)
    exchanges = [
        (rows, comm.allreduce(counted.received_bytes))
        for rows, counted in program.statistics()
        if rows in program.lowering.row_exchanges
    ]
    assert crossing > 0
    assert [moved for _, moved in exchanges] == [crossing * rows.nrow for rows, _ in exchanges]
    assert sorted(rows.width for rows, _ in exchanges) == [1, 1, *[WIDTH] * 4]
