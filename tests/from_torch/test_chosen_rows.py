"""What masks of the run choose, on paper: values and gradients as in torch."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from distspmd import frontend
from distspmd.errors import UnsupportedProgram
from from_torch.kernels_in_numpy import Program

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


class Rows(nn.Module):
    """A layer, and a loss of its rows, of classes, and of a mask that data decide."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.layer, self.loss = nn.Linear(4, 3).double(), loss

    def forward(self, x: Tensor, kinds: Tensor, there: Tensor) -> Tensor:
        return self.loss(self.layer(x), kinds, there > 0)


def replaced(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    found = z * 1.0
    found[mask] = z[mask] ** 2 + 1
    return found.square().sum()


def doubled(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    found = kinds.clone()
    found[mask] += 1
    return (z.sum(1) * found).sum()


def by_places(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    (places,) = torch.where(mask)
    return z[places].logsumexp(1).sum() + z[places, kinds[places]].sum()


def by_rows_of_places(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    places = (mask[:, None] & (z > 0)).nonzero()
    return (z[places[:, 0], places[:, 1]] * places[:, 1]).sum()


def twice(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    once = z[mask]
    return once[once[:, 0] > 0].sum() + once.sum(0).square().sum()


def added(z: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
    total = torch.zeros(3, 3, dtype=z.dtype).index_add(0, kinds[mask], z[mask])
    return total.square().sum()


LOSSES: dict[str, Loss] = {
    "mean": lambda z, kinds, mask: z[mask].square().mean(),
    "logarithms": lambda z, kinds, mask: z[z > 0].log().sum() + z.square().sum(),
    "roots of distances": lambda z, kinds, mask: (z[mask] - 2).square().sum(1).sqrt().sum(),
    "cross entropy": lambda z, kinds, mask: functional.cross_entropy(z[mask], kinds[mask]),
    "weighted": lambda z, kinds, mask: functional.cross_entropy(
        z[mask], kinds[mask], torch.arange(1.0, 4.0, dtype=z.dtype), label_smoothing=0.1
    ),
    "squares": lambda z, kinds, mask: functional.mse_loss(z[mask, 0], kinds[mask].double()),
    "of each": lambda z, kinds, mask: functional.l1_loss(
        z[mask], z.detach()[mask] * 2, reduction="none"
    ).sum(),
    "two classes": lambda z, kinds, mask: functional.binary_cross_entropy_with_logits(
        z[mask][:, 1], (kinds[mask] > 0).double()
    ),
    "shares": lambda z, kinds, mask: (z[mask].softmax(-1) * z[mask].max(1).values[:, None]).sum(),
    "products": lambda z, kinds, mask: (z[mask] @ z.detach()[:3]).tanh().sum(),
    "extremes": lambda z, kinds, mask: z[mask].max() - z[mask].amin() + z[mask].norm(),
    "accuracy": lambda z, kinds, mask: z.sum() * (z[mask].argmax(1) == kinds[mask]).double().mean(),
    "selected": lambda z, kinds, mask: torch.masked_select(z, mask[:, None]).exp().sum(),
    "replaced": replaced,
    "doubled": doubled,
    "by places": by_places,
    "by rows of places": by_rows_of_places,
    "twice": twice,
    "added": added,
}
MASKS = {"some": (0, 1, 1, 0, 1, 0), "one": (0, 0, 0, 0, 0, 1), "all": (1, 1, 1, 1, 1, 1)}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_are_those_of_torch(
    name: str, mask: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    module = Rows(LOSSES[name])
    same = copy.deepcopy(module)

    def stepping(module: nn.Module) -> Callable[..., Tensor]:
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

        def step(x: Tensor, kinds: Tensor, there: Tensor) -> Tensor:
            optimizer.zero_grad()
            loss: Tensor = module(x, kinds, there)
            loss.backward()
            optimizer.step()
            return loss

        return step

    there = torch.tensor(MASKS[mask])
    inputs = torch.randn(6, 4).double(), torch.tensor([0, 2, 1, 1, 0, 2]), there
    (found,), live = Program(monkeypatch).step(stepping(module), *inputs)
    wanted = stepping(same)(*inputs)
    assert torch.allclose(found.reshape(()), wanted, atol=1e-12)
    for key, value in same.state_dict().items():
        assert torch.allclose(live[key], value, atol=1e-12), key


def test_a_mask_that_chooses_nothing_adds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sum(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x[x > 5].exp().sum(), x[x > 5].mean()

    (total, mean) = Program(monkeypatch).of(Sum(), torch.randn(4))
    assert total.item() == 0
    assert mean.isnan()


REFUSED: dict[str, tuple[Loss, str]] = {
    "returned": (lambda z, kinds, mask: z[mask], "returns what a mask chooses"),
    "a size": (lambda z, kinds, mask: z.sum() / z[mask].shape[0], "shape: the length of what"),
    "a length": (lambda z, kinds, mask: z.sum() / len(z[mask]), "len: the length of what"),
    "two masks": (
        lambda z, kinds, mask: (z[mask, 0] * z[:, 0][~mask]).sum(),
        "what two masks choose",
    ),
    "all rows beside it": (lambda z, kinds, mask: (z[mask] + z).sum(), "a tensor of \\[6, 3\\]"),
    "sorted": (lambda z, kinds, mask: z[mask].sort(0).values.sum(), "sort: the length of what"),
    "maxima of columns": (lambda z, kinds, mask: z[mask].amax(0).sum(), "amax: the length"),
    "pairs": (lambda z, kinds, mask: (z[mask] @ z[mask].T).sum(), "the length of what"),
    "placed by another mask": (
        lambda z, kinds, mask: z.clone().__setitem__(mask & True, z[mask]),  # type: ignore[func-returns-value]
        "setitem: the length of what",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_the_length_is_refused(name: str) -> None:
    loss, said = REFUSED[name]
    inputs = torch.randn(6, 4).double(), torch.tensor([0, 2, 1, 1, 0, 2]), torch.ones(6)
    with pytest.raises(UnsupportedProgram, match=said):
        frontend.torch_module(Rows(loss), *inputs)
