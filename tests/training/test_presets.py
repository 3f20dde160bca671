"""Presets on a small decoder: names of dimensions, bytes of the textbooks, results of torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from dace import SDFG
from torch import Tensor, nn

import distspmd
from distspmd import frontend
from distspmd.frontend.tensor_ir.identifiers import identifier
from distspmd.nodes.distributed_memlet import DistributedMemlet
from training.models import Block, Rotary, speak

BATCH, LENGTH, WIDTH, HEADS, SHARED, WORDS, RANKS = 4, 8, 16, 8, 4, 20, 4
ACTIVATIONS = 4 * BATCH * LENGTH * WIDTH
"""Bytes."""
SPLIT = ("attention_", "up_", "down_w", "words", "head")
"""Parameters with heads, hidden units or words, by parts of their names."""
Moves = dict[str, list[tuple[str, int]]]


class Decoder(nn.Module):
    def __init__(self, layers: int = 1) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, WIDTH)
        attention = (Rotary(WIDTH, HEADS, SHARED) for _ in range(layers))
        self.layers = nn.Sequential(*(Block(one, WIDTH) for one in attention))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        return self.head(self.norm(self.layers(self.words(words))))


def build() -> Any:
    """A decoder and its step."""
    torch.manual_seed(0)
    module = Decoder()
    return module, speak(module, torch.optim.Adam(module.parameters(), lr=0.01))


def batch() -> tuple[Tensor, Tensor]:
    return torch.randint(0, WORDS, (BATCH, LENGTH)), torch.randint(0, WORDS, (BATCH, LENGTH))


@pytest.fixture(scope="module")
def step() -> SDFG:
    return frontend.training_step(build()[1], *batch())


def moved(sdfg: SDFG, schedule: Any) -> Moves:
    """Calls and bytes of what moves, but arguments and what is smaller than a row."""
    lowering = distspmd.lower(copy.deepcopy(sdfg), schedule)
    found: Moves = {}
    for memlet in lowering.memlets:
        if memlet.solution.cost.nbytes >= 4 * WIDTH and memlet.data not in sdfg.arg_names:
            call = memlet.steps, memlet.solution.cost.nbytes
            found.setdefault(memlet.data, []).append(call)
    return found


def of_all(found: Moves) -> list[int]:
    """Bytes of all calls."""
    return sorted(nbytes for calls in found.values() for _, nbytes in calls)


def parameters() -> dict[str, int]:
    """Bytes of each."""
    return {identifier(name): 4 * p.numel() for name, p in build()[0].named_parameters()}


def test_dimensions_have_the_names_of_the_field(step: SDFG) -> None:
    spaces = {s.name: s for s in distspmd.iteration_spaces(step)}
    query = spaces["layers_0_attention_q_mm"]
    assert query.path == "layers.0.attention.q.mm"
    assert set(query.dimensions) == {
        *("batch", "sequence", "heads", "group", "head_dim", "features")
    }
    assert set(spaces["layers_0_up_addmm"].dimensions) == {
        *("batch", "sequence", "hidden", "features")
    }
    assert set(spaces["head_mm"].dimensions) == {*("batch", "sequence", "vocabulary", "features")}
    assert spaces["layers_0_up_weight"].path == "layers.0.up.weight.update"
    assert spaces["layers_0_up_weight"].dimensions == ("hidden", "features")
    backward = [s for s in spaces.values() if s.path == "layers.0.up.mm.backward"]
    assert [set(s.dimensions) for s in backward] == [
        {"batch", "sequence", "hidden", "features"}
    ] * 2


def test_tensor_parallel_needs_two_all_reduces_a_layer_each_way(step: SDFG) -> None:
    """And one for the words of each end; of the logits two numbers of each token are reduced."""
    found = moved(step, frontend.megatron(RANKS))
    each = 2 * (RANKS - 1)
    numbers = [each * ACTIVATIONS // WIDTH] * 2
    assert of_all(found) == sorted(numbers + [each * ACTIVATIONS] * 6)
    assert not any(name.startswith("head_mm") and "backward" not in name for name in found)


@pytest.mark.slow
def test_patterns_by_hand_do_what_the_preset_does(step: SDFG) -> None:
    found = moved(step, frontend.megatron(RANKS))
    by_hand = {
        "*.attention.*": {"heads": RANKS},
        "*.layers.*": {"hidden": RANKS},
        "*": {"vocabulary": RANKS},
    }
    assert found.items() <= moved(step, by_hand).items()


@pytest.mark.slow
def test_sequence_parallel_scatters_and_gathers_in_their_place(step: SDFG) -> None:
    found = moved(step, frontend.sequence_parallel(RANKS))
    calls = [call for calls in found.values() for call in calls]
    scattered = [call for call in calls if call == ("reduce_scatter", (RANKS - 1) * ACTIVATIONS)]
    assert len(scattered) == 6
    assert sum(nbytes == (RANKS - 1) * ACTIVATIONS for _, nbytes in calls) >= 2 * 6
    assert max(of_all(found)) <= 2 * (RANKS - 1) * ACTIVATIONS
    for name, nbytes in parameters().items():
        if not any(part in name for part in SPLIT):
            assert 2 * (RANKS - 1) * nbytes in of_all(found)


@pytest.mark.slow
def test_zero_scatters_each_gradient_and_gathers_each_parameter(step: SDFG) -> None:
    found = moved(step, frontend.zero(1, RANKS))
    whole = parameters()
    for name, nbytes in whole.items():
        assert [own for _, own in found.pop(name)] == [(RANKS - 1) * nbytes]
    assert {call for calls in found.values() for call, _ in calls} == {"reduce_scatter"}
    assert of_all(found) == sorted((RANKS - 1) * nbytes for nbytes in whole.values())


def test_fsdp_gathers_each_parameter_for_either_pass(step: SDFG) -> None:
    """But what only one pass reads, and what the last layer reads again at once."""
    found = moved(step, frontend.fsdp(RANKS))
    whole = parameters()
    for name, nbytes in whole.items():
        gathered = [own for _, own in found.pop(name)]
        is_sum = name.endswith("bias") and "up" not in name  # a derivative of GELU needs its bias
        times = 1 if is_sum or name.startswith(("words", "head", "layers_0_down")) else 2
        assert gathered == [(RANKS - 1) * nbytes] * times, name
    assert {call for calls in found.values() for call, _ in calls} == {"reduce_scatter"}
    assert of_all(found) == sorted((RANKS - 1) * nbytes for nbytes in whole.values())


def copied(sdfg: SDFG) -> int:
    """Bytes on each rank, of a lowered program, for what is gathered of parameters."""
    known = set(frontend.parameters(sdfg))
    copies = {
        edge.data.data
        for node, state in sdfg.all_nodes_recursive()
        if isinstance(node, DistributedMemlet) and node.array in known
        for edge in state.out_edges(node)
    } - known
    return sum(sdfg.arrays[name].total_size * sdfg.arrays[name].dtype.bytes for name in copies)


def test_what_fsdp_gathers_is_freed_for_other_layers() -> None:
    """Four layers take as much memory for gathered parameters as two."""
    found = []
    for layers in (2, 4):
        module = Decoder(layers)
        step = speak(module, torch.optim.SGD(module.parameters(), lr=0.1))
        given = frontend.training_step(step, *batch())
        given = distspmd.lower(given, frontend.fsdp(RANKS)).sdfg
        found.append(copied(given))
    assert 0 < found[0] == found[1]


def test_products_reduce_activations_in_groups_and_gradients_between_them(step: SDFG) -> None:
    found = moved(step, frontend.data_parallel(2) * frontend.megatron(2))
    held = [
        nbytes * (1 if any(part in name for part in SPLIT) else 2)  # by the ranks of a group
        for name, nbytes in parameters().items()
    ]
    numbers = [2 * ACTIVATIONS // WIDTH] * 3  # of each token, for the loss
    activations = [2 * ACTIVATIONS] * 6
    assert of_all(found) == sorted([*numbers, *activations, *(2 * nbytes for nbytes in held)])


def test_a_dictionary_of_two_presets_is_refused_with_their_product(step: SDFG) -> None:
    product = r"Write (data_parallel\(|zero\(1, )2\) \* megatron\(2\)\."
    one, other = frontend.megatron(2), frontend.data_parallel(2)
    for both in ({**one, **other}, {**other, **one}, one | other, {**frontend.zero(1, 2), **one}):
        with pytest.raises(distspmd.errors.ScheduleError, match=product):
            distspmd.lower(copy.deepcopy(step), both)
    assert dict(one)["*"] == one["*"]


def test_a_product_of_presets_trains_as_torch_does() -> None:
    call_on_ranks("training.test_presets", "train(comm, module.PRODUCT)", RANKS)


@pytest.mark.slow
def test_presets_train_as_torch_does() -> None:
    call_on_ranks("training.test_presets", "train(comm, *module.OTHERS)", RANKS)


PRODUCT = frontend.data_parallel(2) * frontend.megatron(2)
OTHERS = (frontend.data_parallel(2) * frontend.sequence_parallel(2), frontend.fsdp(RANKS))


def train(comm: Any, *presets: Any) -> None:
    """Train on ranks with some presets, beside torch on rank 0."""
    for preset in presets:
        module, step = build()
        same, reference = build()
        program = distspmd.compile(
            lambda step=step, preset=preset: distspmd.lower(
                frontend.training_step(step, *batch()), preset
            ),
            comm,
        )
        with program:
            for _ in range(3):
                given = batch() if comm.rank == 0 else ()
                loss = program(*given)
                if comm.rank == 0:
                    torch.testing.assert_close(loss, reference(*given), rtol=1e-4, atol=1e-5)
            program.collect()
        if comm.rank == 0:
            for ours, theirs in zip(module.parameters(), same.parameters(), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)
