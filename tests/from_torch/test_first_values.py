"""First values of tensors without memory: parts are those of the whole, distributed as by torch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from distspmd.errors import UnsupportedProgram
from distspmd.frontend import deferred
from distspmd.frontend.from_torch.closures import closed_over
from distspmd.frontend.from_torch.first_values import Recipe, Tape
from distspmd.frontend.from_torch.initialisers import first_states, initialise, noting

Draw = Callable[[Tensor], Any]


def recipe(write: Draw, *shape: int, dtype: torch.dtype = torch.float32) -> Recipe:
    tensor = torch.empty(shape, device="meta", dtype=dtype)
    with noting(tape := Tape()), torch.no_grad():
        write(tensor)
    found = tape.recipe(tensor, "x")
    assert found is not None
    copied = pickle.loads(pickle.dumps(found))  # as it comes to other ranks
    assert isinstance(copied, Recipe)
    return copied


def whole(found: Recipe, seed: int = 1) -> Tensor:
    places = np.arange(found.target.count, dtype=np.uint64)
    return found.values(places, seed).reshape(found.target.size)


def slices(tensor: Tensor) -> None:
    nn.init.normal_(tensor)
    tensor[3].zero_()
    tensor[:, 2:5].fill_(7)
    tensor.t()[1, 4:].mul_(2)


BY_ELEMENT: dict[str, Draw] = {
    "uniform": lambda x: nn.init.kaiming_uniform_(x, a=5**0.5),
    "normal": lambda x: nn.init.normal_(x, 1.0, 0.02),
    "truncated": lambda x: nn.init.trunc_normal_(x, std=0.5, a=-0.7, b=0.7),
    "slices": slices,
}
AS_A_WHOLE: dict[str, Draw] = {
    "orthogonal": nn.init.orthogonal_,
    "table": lambda x: x.copy_(torch.arange(float(x.numel())).reshape(x.shape)),
    "computed": lambda x: x.copy_(torch.randn_like(x).cumsum(0) + torch.ones_like(x)),
}


@pytest.mark.parametrize("name", [*BY_ELEMENT, *AS_A_WHOLE])
def test_parts_are_those_of_the_whole(name: str) -> None:
    found = recipe({**BY_ELEMENT, **AS_A_WHOLE}[name], 12, 10)
    assert found.is_by_element == (name in BY_ELEMENT)
    values = whole(found)
    for chosen in (np.arange(17, 60), np.arange(3, 120, 7), np.array([], np.int64)):
        part = found.values(chosen.astype(np.uint64), 1)
        assert part.equal(values.reshape(-1)[torch.from_numpy(chosen)])


@pytest.mark.parametrize("name", BY_ELEMENT)
def test_elements_by_themselves_are_those_of_the_operators_in_their_order(name: str) -> None:
    found = recipe(BY_ELEMENT[name], 12, 10)
    torch.testing.assert_close(whole(found), found._computed(1))


def test_numbers_are_distributed_as_by_torch() -> None:
    normal = whole(recipe(lambda x: nn.init.normal_(x, 1.0, 0.5), 400, 500))
    assert float(normal.mean()) == pytest.approx(1, abs=0.01)
    assert float(normal.std()) == pytest.approx(0.5, abs=0.01)
    assert float((normal - 1).abs().lt(0.5).double().mean()) == pytest.approx(0.6827, abs=0.01)
    uniform = whole(recipe(lambda x: nn.init.uniform_(x, -2.0, 4.0), 400, 500))
    assert -2 <= float(uniform.min()) < -1.99
    assert 3.99 < float(uniform.max()) < 4
    assert float(uniform.double().var()) == pytest.approx(3, abs=0.05)
    bounded = whole(recipe(lambda x: nn.init.trunc_normal_(x, 0.1, 0.5, -0.7, 0.9), 400, 500))
    assert (float(bounded.min()), float(bounded.max())) == pytest.approx((-0.7, 0.9), abs=1e-3)
    theirs = nn.init.trunc_normal_(torch.empty(400, 500), 0.1, 0.5, -0.7, 0.9)
    assert float(bounded.std()) == pytest.approx(float(theirs.std()), abs=0.01)
    rows = np.corrcoef(normal.numpy()[:50])
    assert np.abs(rows - np.eye(50)).max() < 0.25


def test_matrices_are_orthogonal() -> None:
    for shape in ((6, 6), (4, 9), (9, 4)):
        found = whole(recipe(nn.init.orthogonal_, *shape))
        product = found @ found.T if shape[0] <= shape[1] else found.T @ found
        torch.testing.assert_close(product, torch.eye(min(shape)))


def test_tensors_and_seeds_draw_apart() -> None:
    tensors = [torch.empty(50, device="meta") for _ in range(2)]
    with Tape() as tape:
        for tensor in tensors:
            tensor.normal_()
    first, second = (tape.recipe(x, str(n)) for n, x in enumerate(tensors))
    assert first is not None
    assert second is not None
    assert not whole(first).equal(whole(second))
    assert not whole(first).equal(whole(first, 2))
    assert whole(first).equal(whole(first))


def test_halves_are_rounded() -> None:
    found = whole(recipe(nn.init.ones_, 3, dtype=torch.bfloat16))
    assert found.dtype == torch.bfloat16
    assert found.tolist() == [1, 1, 1]


def test_what_nobody_writes_has_no_recipe() -> None:
    tensor, other = torch.empty(4, device="meta"), torch.empty(4, device="meta")
    with Tape() as tape:
        other.zero_()
        tensor.mul_(2)
    assert tape.recipe(tensor, "x") is None
    assert tape.recipe(torch.empty(2, device="meta"), "y") is None


def test_numbers_that_are_drawn_otherwise_are_refused() -> None:
    found = recipe(lambda x: x.copy_(torch.randperm(4, device="meta")), 4)
    with pytest.raises(UnsupportedProgram, match="'x' is initialised by randperm"):
        whole(found)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4, padding_idx=2)
        self.norm = nn.BatchNorm1d(4)
        self.scale = nn.Parameter(torch.full((4,), 0.25))
        self.apply(self._init_weights)

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            nn.init.constant_(module.weight, 3.0)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.norm(self.table(x)) * self.scale
        return found


def test_modules_are_initialised_by_their_methods_or_as_they_were_made() -> None:
    with torch.device("meta"):
        plain = Net()
    with noting(tape := Tape()), torch.no_grad():
        initialise(closed_over(plain.forward))
    values = {n: tape.recipe(x, n) for n, x in plain.state_dict(keep_vars=True).items()}
    assert values["scale"] is None  # no method writes it
    found = values["table.weight"]
    assert found is not None
    assert whole(found).tolist() == [[3.0] * 4] * 5
    with deferred() as tape:
        noted = Net()
    for name, tensor in noted.state_dict(keep_vars=True).items():
        assert tensor.is_meta
        found = tape.recipe(tensor, name)
        assert found is not None
        assert whole(found).equal(Net().state_dict()[name])


def test_states_of_optimizers_need_no_whole_tensor() -> None:
    with torch.device("meta"):
        module = nn.Linear(3, 2)
    optimizer = torch.optim.Rprop(module.parameters(), lr=0.5)
    closed = closed_over(lambda x: (optimizer, module(x)))
    with noting(tape := Tape()), torch.no_grad():
        initialise(closed)
    with tape:
        states = first_states(closed)
    for key, value in {"prev": 0.0, "step_size": 0.5}.items():
        found = tape.recipe(states[f"weight.{key}"], key)
        assert found is not None
        assert found.is_by_element
        assert whole(found).tolist() == [[value] * 3] * 2
