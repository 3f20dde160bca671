"""Published architectures, exported to ONNX by torch's own exporter, give what torch gives."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from from_torch.kernels_in_numpy import Program
from training.run_models import difference

from distspmd import frontend
from zoo.registry import build

EXPORTED = (
    *("gpt2", "llama", "qwen3", "gemma2", "bert", "distilbert", "t5", "whisper", "vit"),
    *("convnext", "resnet18", "mobilenet_v2", "mamba", "mlp_mixer"),
    *("clip", "swin", "diffusion_unet"),
)


@pytest.mark.slow
@pytest.mark.skipif(not find_spec("onnxscript"), reason="torch exports with onnxscript")
@pytest.mark.parametrize("name", EXPORTED)
def test_an_export_gives_what_torch_gives(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = build(name)
    module, inputs = example.module.eval(), example.inputs
    path = tmp_path / "model.onnx"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, path, dynamo=True, external_data=False, verbose=False)
    program = Program(monkeypatch)
    (found, *_), _ = program.run(frontend.onnx_model(path), inputs)
    with torch.no_grad():
        assert difference(found, module(*inputs)) < 2e-5
