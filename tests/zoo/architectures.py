"""Published architectures in small random configurations, as their libraries write them.

Those of `transformers` and torchvision need these packages: `pip install -e ".[zoo]"`. They are
built and called as users do: no masks and no positions are handed over.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from zoo.registry import PAPER, RANKS, Architecture, architecture, enter

BATCH, LENGTH, WORDS = 2, 6, 50


class Logits(nn.Module):
    """The tensor among the results of a model, whose arguments have names."""

    def __init__(self, model: nn.Module, *names: str, result: str = "logits") -> None:
        super().__init__()
        self.model, self.names, self.result = model, names, result

    def forward(self, *inputs: Tensor) -> Tensor:
        found = self.model(**dict(zip(self.names, inputs, strict=True)))
        if isinstance(found, Tensor):
            return found
        return found[self.result]


def words(length: int = LENGTH) -> Tensor:
    """Texts."""
    return torch.randint(3, WORDS, (BATCH, length))


def images(size: int, channels: int = 3) -> Tensor:
    """Pictures."""
    return torch.randn(BATCH, channels, size, size)


# -- transformers ---------------------------------------------------------------------------------

_SMALL = {
    "vocab_size": WORDS,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def enter_decoder(
    name: str,
    config: str,
    model: str,
    is_single: bool = False,
    tried: str = RANKS,
    **settings: Any,
) -> None:
    """Enter a model of texts, of a small configuration, with the test that tries it."""

    def build() -> Architecture:
        import transformers

        wanted = {**_SMALL, **settings}
        made = getattr(transformers, config)(**{k: v for k, v in wanted.items() if v is not None})
        module = Logits(getattr(transformers, model)(made), "input_ids")
        return Architecture(module, (words(),), is_single)

    enter(name, build, tried)


_GROUPED = {"num_key_value_heads": 2}
enter_decoder("llama", "LlamaConfig", "LlamaForCausalLM", **_GROUPED)
enter_decoder("mistral", "MistralConfig", "MistralForCausalLM", sliding_window=4, **_GROUPED)
enter_decoder("qwen2", "Qwen2Config", "Qwen2ForCausalLM", **_GROUPED)
enter_decoder("qwen3", "Qwen3Config", "Qwen3ForCausalLM", head_dim=4, **_GROUPED)
enter_decoder("gemma", "GemmaConfig", "GemmaForCausalLM", head_dim=4, **_GROUPED)
enter_decoder(
    "gemma2", "Gemma2Config", "Gemma2ForCausalLM", head_dim=4, sliding_window=4, **_GROUPED
)
enter_decoder(
    "gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", head_dim=4, sliding_window=4, **_GROUPED
)
enter_decoder("phi", "PhiConfig", "PhiForCausalLM")
enter_decoder("phi3", "Phi3Config", "Phi3ForCausalLM", **_GROUPED)
enter_decoder("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM")
enter_decoder("stablelm", "StableLmConfig", "StableLmForCausalLM", **_GROUPED)
enter_decoder("olmo2", "Olmo2Config", "Olmo2ForCausalLM", **_GROUPED)
enter_decoder("cohere", "CohereConfig", "CohereForCausalLM", **_GROUPED)
enter_decoder("mixtral", "MixtralConfig", "MixtralForCausalLM", num_local_experts=4, **_GROUPED)
enter_decoder(
    "qwen2_moe",
    "Qwen2MoeConfig",
    "Qwen2MoeForCausalLM",
    num_experts=4,
    num_experts_per_tok=2,
    moe_intermediate_size=12,
    shared_expert_intermediate_size=12,
    **_GROUPED,
)
enter_decoder("opt", "OPTConfig", "OPTForCausalLM", ffn_dim=24, word_embed_proj_dim=16, dropout=0.0)
enter_decoder("bloom", "BloomConfig", "BloomForCausalLM", n_layer=2, n_head=4)
enter_decoder("falcon", "FalconConfig", "FalconForCausalLM")
enter_decoder(
    "gpt2",
    "GPT2Config",
    "GPT2LMHeadModel",
    n_embd=16,
    n_layer=2,
    n_head=4,
    n_positions=32,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
    attn_pdrop=0.0,
    embd_pdrop=0.0,
    resid_pdrop=0.0,
)
_NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
enter_decoder("bert", "BertConfig", "BertForMaskedLM", **_NO_DROPOUT)
enter_decoder("roberta", "RobertaConfig", "RobertaForMaskedLM", **_NO_DROPOUT)
enter_decoder("albert", "AlbertConfig", "AlbertForMaskedLM", embedding_size=8, **_NO_DROPOUT)
enter_decoder(
    "deberta",
    "DebertaV2Config",
    "DebertaV2ForMaskedLM",
    relative_attention=True,
    pos_att_type=["c2p", "p2c"],
    position_buckets=4,
    max_relative_positions=8,
    **_NO_DROPOUT,
)
enter_decoder(
    "distilbert",
    "DistilBertConfig",
    "DistilBertForMaskedLM",
    dim=16,
    n_layers=2,
    n_heads=4,
    hidden_dim=24,
    hidden_size=None,
    num_hidden_layers=None,
    num_attention_heads=None,
    dropout=0.0,
    attention_dropout=0.0,
)
enter_decoder("electra", "ElectraConfig", "ElectraForMaskedLM", embedding_size=8, **_NO_DROPOUT)
enter_decoder("modernbert", "ModernBertConfig", "ModernBertForMaskedLM", local_attention=4)
enter_decoder("mamba", "MambaConfig", "MambaForCausalLM", state_size=4)


@architecture(RANKS)
def t5() -> Architecture:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=WORDS,
        d_model=16,
        d_kv=4,
        d_ff=24,
        num_layers=2,
        num_heads=4,
        dropout_rate=0.0,
        pad_token_id=0,
        decoder_start_token_id=0,
    )
    model = Logits(T5ForConditionalGeneration(config), "input_ids", "decoder_input_ids")
    return Architecture(model, (words(), words(4)))


_ENCODER_AND_DECODER = {
    "vocab_size": WORDS,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


@architecture(RANKS)
def bart() -> Architecture:
    from transformers import BartConfig, BartForConditionalGeneration

    config = BartConfig(**_ENCODER_AND_DECODER, max_position_embeddings=32, dropout=0.0)
    model = Logits(BartForConditionalGeneration(config), "input_ids", "decoder_input_ids")
    return Architecture(model, (words(), words(4)))


_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 4,
}


@architecture(RANKS)
def vit() -> Architecture:
    from transformers import ViTConfig, ViTForImageClassification

    model = ViTForImageClassification(ViTConfig(**_VISION, **_NO_DROPOUT, num_labels=5))
    return Architecture(Logits(model, "pixel_values"), (images(16),))


@architecture(RANKS)
def clip() -> Architecture:
    from transformers import CLIPConfig, CLIPModel

    text = {**_SMALL, "max_position_embeddings": 8, "eos_token_id": WORDS - 1}
    config = CLIPConfig(text_config=text, vision_config=_VISION, projection_dim=12)
    model = Logits(CLIPModel(config), "input_ids", "pixel_values", result="logits_per_text")
    return Architecture(model, (words(), images(16)))


@architecture(RANKS)
def whisper() -> Architecture:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        **_ENCODER_AND_DECODER,
        num_mel_bins=8,
        max_source_positions=8,
        max_target_positions=16,
        decoder_start_token_id=1,
    )
    model = Logits(WhisperForConditionalGeneration(config), "input_features", "decoder_input_ids")
    return Architecture(model, (torch.randn(BATCH, 8, 16), words(4)))


@architecture(RANKS)
def convnext() -> Architecture:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    config = ConvNextConfig(
        hidden_sizes=[4, 8], depths=[1, 1], num_stages=2, num_labels=5, image_size=16, patch_size=2
    )
    return Architecture(
        Logits(ConvNextForImageClassification(config), "pixel_values"), (images(16),)
    )


@architecture(RANKS)
def segformer() -> Architecture:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    config = SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[4, 8],
        patch_sizes=[3, 3],
        strides=[2, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=8,
        num_labels=3,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        classifier_dropout_prob=0.0,
        drop_path_rate=0.0,
    )
    return Architecture(
        Logits(SegformerForSemanticSegmentation(config), "pixel_values"), (images(16),)
    )


# -- torchvision ----------------------------------------------------------------------------------


def _certain(module: nn.Module) -> nn.Module:
    """A module without dropout."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return module


def _classifier(
    name: str, model: str, size: int = 32, tests: tuple[str, ...] = (RANKS,), **settings: Any
) -> None:
    """Enter a model of torchvision.

    A norm of two elements makes of their rounding all that its gradient is: images are so large
    that the last norms have several.
    """

    def build() -> Architecture:
        import torchvision

        module = torchvision.models.get_model(model, weights=None, num_classes=5, **settings)
        return Architecture(_certain(module), (images(size),))

    enter(name, build, *tests)


_classifier("resnet18", "resnet18")
_classifier("resnext", "resnext50_32x4d", 64)
_classifier("vgg11", "vgg11", 48)
_classifier("alexnet", "alexnet", 80)
_classifier("squeezenet", "squeezenet1_1", 48)
_classifier("mobilenet_v2", "mobilenet_v2", 48)
_classifier("mobilenet_v3", "mobilenet_v3_small")
_classifier("shufflenet", "shufflenet_v2_x0_5")
_classifier("densenet", "densenet121", 64)
_classifier("googlenet", "googlenet", 48, aux_logits=False, init_weights=False)
_classifier("efficientnet", "efficientnet_b0", 48, tests=(RANKS, PAPER), stochastic_depth_prob=0.0)
_classifier("regnet", "regnet_y_400mf", 48)
_classifier("mnasnet", "mnasnet0_5", 48)


@architecture(RANKS)
def swin() -> Architecture:
    from torchvision.models.swin_transformer import SwinTransformer

    module = SwinTransformer(
        [2, 2], 8, [2, 2], [2, 2], [4, 4], num_classes=5, stochastic_depth_prob=0.0
    )
    return Architecture(module, (images(16),))


@architecture(RANKS)
def torchvision_vit() -> Architecture:
    from torchvision.models import VisionTransformer

    return Architecture(VisionTransformer(16, 4, 2, 4, 16, 24, num_classes=5), (images(16),))


@architecture(RANKS)
def torchvision_convnext() -> Architecture:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return Architecture(
        ConvNeXt([CNBlockConfig(4, 8, 1), CNBlockConfig(8, None, 1)], num_classes=5), (images(32),)
    )


@architecture(RANKS, PAPER)
def fcn() -> Architecture:
    import torchvision

    model = torchvision.models.segmentation.fcn_resnet50(
        weights=None, weights_backbone=None, num_classes=3
    )
    return Architecture(Logits(_certain(model), "x", result="out"), (images(32),))


@architecture(RANKS)
def lraspp() -> Architecture:
    import torchvision

    model = torchvision.models.segmentation.lraspp_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=3
    )
    return Architecture(Logits(model, "input", result="out"), (images(32),))
