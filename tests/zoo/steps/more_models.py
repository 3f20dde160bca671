"""Steps with models of `transformers` that other steps have not."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from zoo.steps.table import (
    NO,
    Training,
    classes,
    fit,
    images,
    labelled,
    loss_of_model,
    padded,
    published,
    transformer,
    words,
)

_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}

_TEXT_AND_BOXES = {
    **NO,
    "vocab_size": 50,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
}


def _causal(model: str, **settings: object) -> Training:
    made = transformer(f"{model}ForCausalLM", f"{model}Config", **settings)
    mask = padded()
    return fit(
        made,
        loss_of_model("input_ids", "attention_mask", "labels"),
        lambda: ((t := words()), mask, labelled(t, mask)),
    )


@published
def gpt_neox_japanese() -> Training:
    return _causal("GPTNeoXJapanese", intermediate_multiple_size=2, hidden_size=16)


@published
def ministral() -> Training:
    return _causal("Ministral", num_key_value_heads=2, head_dim=4, sliding_window=4)


@published
def minicpm3() -> Training:
    return _causal(
        "MiniCPM3",
        num_key_value_heads=4,
        q_lora_rank=8,
        kv_lora_rank=6,
        qk_nope_head_dim=4,
        qk_rope_head_dim=4,
        v_head_dim=4,
    )


@published
def jais2() -> Training:
    return _causal("Jais2", num_key_value_heads=2, head_dim=4)


@published
def roberta_prelayernorm() -> Training:
    made = transformer("RobertaPreLayerNormForMaskedLM", "RobertaPreLayerNormConfig")
    mask = padded()
    return fit(
        made,
        loss_of_model("input_ids", "attention_mask", "labels"),
        lambda: ((t := words()), mask, labelled(t, mask)),
    )


@published
def image_gpt() -> Training:
    made = transformer(
        "ImageGPTForCausalImageModeling",
        "ImageGPTConfig",
        **{
            **NO,
            "vocab_size": 17,
            "n_embd": 16,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 16,
            "resid_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "attn_pdrop": 0.0,
        },
    )
    return fit(made, loss_of_model("input_ids", "labels"), lambda: ((t := classes(16, 2, 8)), t))


def _boxes() -> Tensor:
    low = classes(400, 2, 6, 2)
    return torch.cat([low, low + classes(500, 2, 6, 2) + 1], -1)


@published
def lilt() -> Training:
    made = transformer(
        "LiltForTokenClassification",
        "LiltConfig",
        **{
            **_TEXT_AND_BOXES,
            "num_labels": 3,
            "channel_shrink_ratio": 2,
            "max_2d_position_embeddings": 1024,
            "hidden_size": 24,
        },
    )
    return fit(
        made,
        loss_of_model("input_ids", "bbox", "attention_mask", "labels"),
        lambda: (words(), _boxes(), padded(), classes(3, 2, 6)),
    )


@published
def layoutlm3() -> Training:
    made = transformer(
        "LayoutLMv3ForTokenClassification",
        "LayoutLMv3Config",
        **{
            **_TEXT_AND_BOXES,
            "num_labels": 3,
            "coordinate_size": 3,
            "shape_size": 2,
            "max_2d_position_embeddings": 1024,
            "input_size": 16,
            "patch_size": 8,
            "rel_pos_bins": 8,
            "max_rel_pos": 16,
            "rel_2d_pos_bins": 8,
            "max_rel_2d_pos": 32,
            "hidden_size": 16,
        },
    )
    return fit(
        made,
        loss_of_model("input_ids", "bbox", "attention_mask", "pixel_values", "labels"),
        lambda: (words(), _boxes(), padded(), images(16), classes(3, 2, 6)),
    )


@published
def aimv2() -> Training:
    made = transformer(
        "Aimv2VisionModel",
        "Aimv2VisionConfig",
        **{**NO, **_VISION},
    )
    head = nn.Linear(16, 3)
    module = nn.ModuleDict({"model": made, "head": head})
    return fit(
        module,
        lambda m, x, y: functional.cross_entropy(
            m["head"](m["model"](x).last_hidden_state.mean(1)), y
        ),
        lambda: (images(16), classes(3)),
    )


@published
def chinese_clip() -> Training:
    from transformers import ChineseCLIPConfig, ChineseCLIPModel

    text = {
        "vocab_size": 50,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": 16,
    }
    made = ChineseCLIPModel(
        ChineseCLIPConfig(text_config=text, vision_config=dict(_VISION), projection_dim=8)
    )

    def loss_of(m: nn.Module, t: Tensor, k: Tensor, x: Tensor) -> Tensor:
        loss: Tensor = m(input_ids=t, attention_mask=k, pixel_values=x, return_loss=True).loss
        return loss

    return fit(made, loss_of, lambda: (words(), padded(), images(16)))


@published
def owl_vit() -> Training:
    from transformers import OwlViTConfig, OwlViTForObjectDetection

    text = {
        "vocab_size": 50,
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 16,
    }
    made = OwlViTForObjectDetection(
        OwlViTConfig(text_config=text, vision_config=dict(_VISION), projection_dim=16)
    )

    def loss_of(m: nn.Module, t: Tensor, x: Tensor, y: Tensor) -> Tensor:
        found = m(input_ids=t, pixel_values=x)
        return functional.l1_loss(found.pred_boxes, y) + found.logits.sigmoid().mean()

    return fit(made, loss_of, lambda: (words(6, 2), images(16), torch.rand(2, 4, 4)))


@published
def scene_texts() -> Training:
    made = transformer(
        "MgpstrForSceneTextRecognition",
        "MgpstrConfig",
        **{
            **NO,
            "image_size": [8, 16],
            "patch_size": 4,
            "max_token_length": 5,
            "num_character_labels": 7,
            "num_bpe_labels": 9,
            "num_wordpiece_labels": 8,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "mlp_ratio": 2.0,
        },
    )

    def loss_of(m: nn.Module, x: Tensor, a: Tensor, b: Tensor) -> Tensor:
        character, pair, _ = m(pixel_values=x).logits
        return functional.cross_entropy(
            character.flatten(0, 1), a.flatten()
        ) + functional.cross_entropy(pair.flatten(0, 1), b.flatten())

    return fit(
        made, loss_of, lambda: (torch.randn(2, 3, 8, 16), classes(7, 2, 5), classes(9, 2, 5))
    )


@published
def conformer() -> Training:
    made = transformer(
        "Wav2Vec2ConformerForCTC",
        "Wav2Vec2ConformerConfig",
        vocab_size=9,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=1,
        num_attention_heads=2,
        conv_dim=[8, 8],
        conv_stride=[4, 2],
        conv_kernel=[8, 4],
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
        conv_depthwise_kernel_size=3,
        position_embeddings_type="relative",
        feat_proj_dropout=0.0,
        hidden_dropout=0.0,
        layerdrop=0.0,
        final_dropout=0.0,
        apply_spec_augment=False,
        conformer_conv_dropout=0.0,
        max_position_embeddings=None,
        num_feat_extract_layers=None,
        ctc_zero_infinity=True,
    )
    return fit(
        made,
        loss_of_model("input_values", "labels"),
        lambda: (torch.randn(2, 96), classes(8, 2, 3) + 1),
    )


@published
def poses() -> Training:
    from transformers import VitPoseBackboneConfig, VitPoseConfig, VitPoseForPoseEstimation

    backbone = VitPoseBackboneConfig(
        image_size=(16, 16),
        patch_size=(8, 8),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        mlp_ratio=2,
        out_features=["stage2"],
    )
    made = VitPoseForPoseEstimation(
        VitPoseConfig(backbone_config=backbone, num_labels=3, use_simple_decoder=True)
    )

    def loss_of(m: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        found: Tensor = m(pixel_values=x).heatmaps
        return functional.mse_loss(found, functional.interpolate(y, size=found.shape[-2:]))

    return fit(made, loss_of, lambda: (images(16), torch.rand(2, 3, 4, 4)))
