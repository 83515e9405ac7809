"""Builds the Llama that is trained, and its loss."""

import torch
import torch.nn.functional as F
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.data import ByteTokenizer
from trainer.fsdp.presets import PRESETS


def model_config(settings: Settings) -> LlamaConfig:
    """The configuration of a preset, or of a checkpoint folder."""
    if settings.model not in PRESETS:
        return _folder_config(settings)
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
        use_cache=False,
    )


def build_model(settings: Settings) -> LlamaForCausalLM:
    """The whole model in fp32; every rank builds the same one, whatever their number."""
    torch.manual_seed(settings.seed)
    config = model_config(settings)
    if settings.model in PRESETS:
        return LlamaForCausalLM(config)
    return LlamaForCausalLM.from_pretrained(
        settings.model, config=config, dtype=torch.float32, local_files_only=True
    )


def next_token_loss(model: nn.Module, sequences: torch.Tensor) -> torch.Tensor:
    """Mean cross entropy of every token given the ones before it; sequences are (batch, seq_len + 1)."""
    logits = model(input_ids=sequences[:, :-1]).logits
    return F.cross_entropy(logits.float().flatten(0, 1), sequences[:, 1:].flatten())


def _folder_config(settings: Settings) -> LlamaConfig:
    if settings.layers or settings.hidden:
        raise SettingsError("--layers and --hidden change a preset; a checkpoint folder has its own shape")
    config = LlamaConfig.from_pretrained(settings.model, local_files_only=True)
    if config.model_type != "llama":
        raise SettingsError(f"--model {settings.model} holds a {config.model_type}, not a llama")
    config.use_cache = False
    return config
