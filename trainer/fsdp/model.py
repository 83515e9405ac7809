"""Makes the causal model that is trained, and its loss."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import LlamaConfig, PretrainedConfig, PreTrainedModel
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.data import ByteTokenizer
from trainer.fsdp.folder import FolderError, fill_from_folder, fill_from_seed, model_on_meta, read_config
from trainer.fsdp.presets import PRESETS

KEPT = {"pure_bf16": torch.bfloat16, "fp64": torch.float64}
"""The dtype in which parameters are kept, where it is not float32."""

WHOLE_PRECISIONS = ("fp32", "fp64", "pure_bf16")
"""Precisions in which parameters are used in the dtype in which they are kept."""


def kept_dtype(settings: Settings) -> torch.dtype:
    """The dtype of parameters, gradients and the optimizer's state."""
    return KEPT.get(settings.precision, torch.float32)


def model_config(settings: Settings) -> PretrainedConfig:
    """The configuration of a preset, or of a checkpoint folder."""
    if settings.model not in PRESETS:
        if settings.layers or settings.hidden:
            raise SettingsError(
                "--layers and --hidden change a preset; a checkpoint folder has its own shape"
            )
        return read_config(settings.model)
    shape = PRESETS[settings.model].shape.resized(settings.layers, settings.hidden)
    return LlamaConfig(
        num_hidden_layers=shape.layers,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_value_heads,
        vocab_size=shape.vocabulary,
        rms_norm_eps=shape.norm_epsilon,
        max_position_embeddings=settings.seq_len,
        bos_token_id=None,
        eos_token_id=ByteTokenizer.end_of_text,
    )


def empty_model(settings: Settings) -> PreTrainedModel:
    """The model's modules and shapes, without memory."""
    # Grouped matrix products, which fused experts are computed by, have no kernel for doubles.
    options = {"experts_implementation": "eager"} if settings.precision == "fp64" else {}
    model = model_on_meta(model_config(settings), kept_dtype(settings), **options)
    if settings.precision == "fp64":
        _keep_doubles_in_norms(model)
    return model


def _keep_doubles_in_norms(model: nn.Module) -> None:
    """Llama's own norms round to float32, so that runs that differ in a last bit part after a while."""
    for module in list(model.modules()):
        for name, norm in module.named_children():
            if isinstance(norm, LlamaRMSNorm):
                weight = norm.weight
                double = nn.RMSNorm(
                    weight.shape, norm.variance_epsilon, device=weight.device, dtype=weight.dtype
                )
                setattr(module, name, double)


def fill(model: PreTrainedModel, settings: Settings, device: torch.device) -> None:
    """Gives a model on meta its first weights: from the seed, or from its folder."""
    if settings.model in PRESETS:
        fill_from_seed(model, settings.seed, device)
        return
    try:
        fill_from_folder(model, settings.model, device)
    except FolderError as error:
        raise SettingsError(f"--model {error}") from error
    model.train()


def build_model(settings: Settings) -> PreTrainedModel:
    """The whole model in one process; its weights are those that any number of ranks begins with."""
    model = empty_model(settings)
    fill(model, settings, torch.device("cpu"))
    return model


def next_token_loss(model: nn.Module, sequences: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of every token given the ones before it; sequences are (batch, seq_len + 1)."""
    logits = model(input_ids=sequences[:, :-1], use_cache=False).logits
    if logits.dtype != torch.float64:
        logits = logits.float()
    return F.cross_entropy(logits.flatten(0, 1), sequences[:, 1:].flatten())
