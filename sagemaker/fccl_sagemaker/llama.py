"""Serves SMP's attention of Llama models: that of Transformers, by torch's scaled_dot_product_attention."""

from __future__ import annotations

import copy

from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaAttention


class LlamaFlashAttention(LlamaAttention):
    """Takes the place of a Llama layer's `self_attn`, whatever attention the model was made with."""

    def __init__(self, config: LlamaConfig, layer_idx: int | None = None) -> None:
        # The other layers of the model keep the configuration that they share.
        config = copy.copy(config)
        config._attn_implementation = "sdpa"
        super().__init__(config, layer_idx)
