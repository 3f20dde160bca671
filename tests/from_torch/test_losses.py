"""Losses that stand in for torch's while a function is traced: values and gradients are torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from distspmd import frontend
from distspmd.frontend.from_torch.losses import ctc_loss, gaussian_nll_loss
from from_torch.kernels_in_numpy import Program

STEPS, COUNT, CLASSES, MOST = 7, 3, 5, 3
lengths = st.lists(st.integers(0, MOST), min_size=COUNT, max_size=COUNT)
times = st.lists(st.integers(1, STEPS), min_size=COUNT, max_size=COUNT)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 1000),
    of_texts=lengths,
    of_steps=times,
    in_a_row=st.booleans(),
    as_tensors=st.booleans(),
    reduction=st.sampled_from(["none", "mean", "sum"]),
    zero_infinity=st.booleans(),
    is_share=st.booleans(),
)
def test_alignments_are_worth_what_torch_says(
    seed: int,
    of_texts: Sequence[int],
    of_steps: Sequence[int],
    in_a_row: bool,
    as_tensors: bool,
    reduction: str,
    zero_infinity: bool,
    is_share: bool,
) -> None:
    generator = torch.Generator().manual_seed(seed)
    numbers = torch.randn(STEPS, COUNT, CLASSES, dtype=torch.float64, generator=generator)
    numbers = numbers.log_softmax(-1) if is_share else numbers
    classes = torch.randint(1, CLASSES, (COUNT, MOST), generator=generator)
    if in_a_row:
        if not sum(of_texts):
            return
        classes = torch.cat([row[:n] for row, n in zip(classes, of_texts, strict=True)])
    told: Any = (of_steps, of_texts)
    if as_tensors:
        told = tuple(map(torch.tensor, told))
    found = []
    for function in (ctc_loss, functional.ctc_loss):
        x = numbers.clone().requires_grad_()
        loss = function(x, classes, *told, reduction=reduction, zero_infinity=zero_infinity)
        finite = loss[loss.isfinite()].sum()
        if finite.requires_grad and loss.isfinite().all():
            finite.backward()
        found.append((loss.detach(), x.grad))
    torch.testing.assert_close(*found, equal_nan=True)


def test_one_text_without_a_batch() -> None:
    x = torch.randn(STEPS, CLASSES).log_softmax(-1)
    text = torch.tensor([1, 1, 3])
    found, wanted = (f(x, text, (STEPS,), (3,)) for f in (ctc_loss, functional.ctc_loss))
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("settings", [{}, {"full": True}, {"reduction": "sum", "eps": 0.5}])
def test_gaussians_are_worth_what_torch_says(settings: dict[str, Any]) -> None:
    x, y, var = torch.randn(4, 3), torch.randn(4, 3), torch.rand(4, 3)
    for each in (var, var[:, 0], var[:, :1], 0.3):
        found, wanted = (
            f(x, y, each, **settings) for f in (gaussian_nll_loss, functional.gaussian_nll_loss)
        )
        torch.testing.assert_close(found, wanted)
    assert gaussian_nll_loss(x, y, -var).isnan()


def test_a_step_aligns_texts_whose_lengths_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(STEPS, 2, CLASSES, dtype=torch.float64)

    def gradient(x: Tensor, texts: Tensor, length: Tensor) -> tuple[Tensor, Tensor]:
        x = x.detach().requires_grad_()
        loss = functional.ctc_loss(x.log_softmax(-1), texts, torch.tensor([STEPS, 5]), length)
        return loss.detach(), torch.autograd.grad(loss, x)[0]

    texts, length = torch.randint(1, CLASSES, (2, MOST)), torch.tensor([3, 1])
    found = Program(monkeypatch).run(
        frontend.training_step(gradient, x, texts, length), (x, texts, length)
    )[0]
    for one, other in zip(found, gradient(x, texts, length), strict=True):
        torch.testing.assert_close(one, other)
