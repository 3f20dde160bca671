"""Mixtures of experts of `transformers` on ranks: tokens go to the ranks of their experts."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from conftest import call_on_ranks
from torch import Tensor

import distspmd
from distspmd import frontend
from distspmd.lowering import Lowering
from zoo.registry import tell_torchvision

BATCH, LENGTH, WIDTH, LAYERS, CHOSEN, EXPERTS = 4, 6, 16, 2, 2, 4
pytestmark = pytest.mark.slow

COMMON = {
    "vocab_size": 32,
    "hidden_size": WIDTH,
    "intermediate_size": 24,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 16,
    "num_experts_per_tok": CHOSEN,
    "pad_token_id": 0,
}
MIXTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "Mixtral": ("Mixtral", {"num_local_experts": EXPERTS}),
    "OLMoE": ("Olmoe", {"num_experts": EXPERTS}),
    "Qwen 3": ("Qwen3Moe", {"num_experts": EXPERTS, "moe_intermediate_size": 12, "head_dim": 4}),
    "Qwen 2": (
        "Qwen2Moe",
        {
            "num_experts": EXPERTS,
            "moe_intermediate_size": 12,
            "shared_expert_intermediate_size": 12,
        },
    ),
}


def build(name: str, implementation: str = "grouped_mm") -> Any:
    """A model of random weights, in double precision."""
    tell_torchvision()
    import transformers

    family, settings = MIXTURES[name]
    config = getattr(transformers, f"{family}Config")(**COMMON, **settings)
    config._experts_implementation = implementation
    torch.manual_seed(0)
    return getattr(transformers, f"{family}ForCausalLM")(config)


def step_of(model: Any) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, eps=1e-4)  # rounding makes no steps

    def step(words: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model(input_ids=words, labels=words).loss
        loss.backward()
        optimizer.step()
        return loss

    return step


def words(count: int = BATCH) -> Tensor:
    return torch.randint(3, 32, (count, LENGTH), generator=torch.Generator().manual_seed(1))


def lowered(name: str, schedule: Any, implementation: str = "grouped_mm") -> Lowering:
    step = step_of(build(name, implementation))
    return distspmd.lower(frontend.training_step(step, words()), schedule)


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_two_all_to_alls_a_layer_each_way(name: str, ranks: int) -> None:
    lowering = lowered(name, frontend.experts(ranks))
    of_words = [rows for rows in lowering.row_exchanges if rows.width == WIDTH]
    backward = [rows for rows in of_words if "backward" in rows.data]
    assert len(backward) == 2 * LAYERS
    assert len(of_words) - len(backward) == 2 * LAYERS
    evenly = BATCH * LENGTH * CHOSEN * WIDTH * 4 * (ranks - 1) // ranks
    assert {rows.expected_bytes for rows in of_words} == {evenly}


@pytest.mark.parametrize("name", MIXTURES)
def test_each_rank_holds_its_own_experts(name: str) -> None:
    lowering = lowered(name, frontend.experts(4))
    held = {h.data: h.layout for h in lowering.homes if h.data.endswith(("_up_proj", "_down_proj"))}
    mixtures = {n: layout for n, layout in held.items() if layout.extents[0] == EXPERTS}
    assert mixtures
    assert all([b[0] for b in x.boxes] == [(n, n + 1) for n in range(4)] for x in mixtures.values())


@pytest.mark.parametrize("name", ["Mixtral", "OLMoE"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_three_steps_are_those_of_torch(name: str, ranks: int) -> None:
    call_on_ranks("zoo.test_experts", f"train(comm, {name!r})", ranks)


def train(comm: Any, name: str) -> None:
    """Three steps of AdamW, and the bytes of the exchanges of a call against what was chosen."""
    model = build(name).double()
    step, same = step_of(model), copy.deepcopy(model)
    same.config._experts_implementation = "eager"  # torch has no grouped products of doubles
    reference = step_of(same)
    program = distspmd.compile(
        lambda: distspmd.lower(
            frontend.training_step(step, words(2 * comm.size)), frontend.experts(comm.size)
        ),
        comm,
    )
    with program:
        for _ in range(3):
            given = words(2 * comm.size)
            crossing = pairs_between_ranks(same, given, comm.size) if comm.rank == 0 else None
            program.reset_statistics()
            loss = program(*((given,) if comm.rank == 0 else ()))
            compare_bytes(comm, program, comm.bcast(crossing))
            if comm.rank == 0:
                torch.testing.assert_close(loss, reference(given), rtol=1e-5, atol=1e-6)
        program.collect()
    if comm.rank == 0:
        for (key, ours), theirs in zip(model.named_parameters(), same.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5, msg=key)


def pairs_between_ranks(model: Any, given: Tensor, ranks: int) -> list[int]:
    """Of each layer, the pairs of a token and an expert that lie on two ranks."""
    found: list[int] = []

    def note(module: Any, inputs: Any, result: Any) -> None:
        chosen = next(x for x in result if x.dtype == torch.int64)
        of_tokens = torch.arange(len(chosen)) // LENGTH // -(-len(given) // ranks)
        of_experts = chosen // -(-EXPERTS // ranks)
        found.append(int((of_tokens[:, None] != of_experts).sum()))

    gates = [m for n, m in model.named_modules() if n.endswith("mlp.gate")]
    hooks = [gate.register_forward_hook(note) for gate in gates]
    with torch.no_grad():
        model(input_ids=given)
    for hook in hooks:
        hook.remove()
    return found


def compare_bytes(comm: Any, program: Any, crossing: list[int]) -> None:
    """In order of the program: forward by layers, backward by layers from the last."""
    exchanges = [
        (rows, comm.allreduce(counted.received_bytes))
        for rows, counted in program.statistics()
        if rows in program.lowering.row_exchanges and rows.width == WIDTH
    ]
    assert len(exchanges) == 4 * len(crossing)
    forward = [each for n in crossing for each in (n, n)]
    wanted = [n * WIDTH * 8 for n in (*forward, *reversed(forward))]
    assert [nbytes for _, nbytes in exchanges] == wanted
