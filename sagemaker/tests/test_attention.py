"""Tests of fccl_sagemaker.attention and fccl_sagemaker.llama."""

from __future__ import annotations

import pytest
import torch
from fccl_sagemaker.attention import FlashGroupedQueryAttention, FlashSelfAttention
from fccl_sagemaker.llama import LlamaFlashAttention
from small_llama import LENGTH, WORDS, make
from torch import Tensor

BATCH, HEADS, TOKENS, WIDTH = 2, 4, 5, 6


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(len(shape)))


def by_hand(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor) -> Tensor:
    return (queries @ keys.transpose(2, 3) / WIDTH**0.5 + bias).softmax(-1) @ values


def no_later_token() -> Tensor:
    return torch.full((TOKENS, TOKENS), float("-inf"), dtype=torch.float64).triu(1)


@pytest.mark.parametrize("layout", ["b h s d", "b s h d"])
@pytest.mark.parametrize("joined", [True, False], ids=["one tensor", "three tensors"])
@pytest.mark.parametrize("causal", [True, False])
def test_self_attention_is_that_of_every_layout(layout: str, joined: bool, causal: bool) -> None:
    axis = 1 if layout == "b h s d" else 2
    whole = drawn(BATCH, 3 * HEADS, TOKENS, WIDTH)
    wanted = by_hand(*whole.chunk(3, 1), no_later_token() if causal else torch.zeros(()))
    given = whole if axis == 1 else whole.transpose(1, 2)
    found = FlashSelfAttention()(given if joined else given.chunk(3, axis), causal=causal, layout=layout)
    assert torch.allclose(found, wanted, rtol=0, atol=1e-12)


def test_a_bias_for_alibi_is_added_to_the_scores_before_the_causal_mask() -> None:
    whole, bias = drawn(BATCH, 3 * HEADS, TOKENS, WIDTH), drawn(1, HEADS, 1, TOKENS)
    attention = FlashSelfAttention(triton_flash_attention=True, use_alibi=True)
    found = attention(whole, attn_mask=bias, causal=True)
    assert torch.allclose(found, by_hand(*whole.chunk(3, 1), bias + no_later_token()), rtol=0, atol=1e-12)


def test_inputs_are_cast_to_the_type_that_is_asked_for() -> None:
    found = FlashSelfAttention()(drawn(BATCH, 3 * HEADS, TOKENS, WIDTH), cast_dtype=torch.bfloat16)
    assert found.dtype == torch.bfloat16


@pytest.mark.parametrize("joined", [True, False], ids=["one tensor", "two tensors"])
def test_grouped_heads_of_keys_serve_several_heads_of_queries(joined: bool) -> None:
    queries, both = drawn(BATCH, HEADS, TOKENS, WIDTH), drawn(BATCH, HEADS, TOKENS, WIDTH) + 1
    keys, values = (each.repeat_interleave(2, 1) for each in both.chunk(2, 1))
    found = FlashGroupedQueryAttention()(queries, both if joined else both.chunk(2, 1), causal=True)
    assert torch.allclose(found, by_hand(queries, keys, values, no_later_token()), rtol=0, atol=1e-12)


def test_what_the_names_cannot_mean_is_refused() -> None:
    whole = drawn(BATCH, 3 * HEADS, TOKENS, WIDTH)
    with pytest.raises(ValueError, match="'s b h d'; allowed is 'b h s d' or 'b s h d'"):
        FlashSelfAttention()(whole, layout="s b h d")
    with pytest.raises(ValueError, match="triton_flash_attention=True and use_alibi=True"):
        FlashSelfAttention()(whole, attn_mask=drawn(1, HEADS, 1, TOKENS))


@pytest.mark.parametrize("made_with", ["sdpa", "eager"])
def test_layers_that_aws_samples_replace_compute_what_the_model_did(made_with: str) -> None:
    model = make()
    model.set_attn_implementation(made_with)
    tokens = torch.randint(0, WORDS, (BATCH, LENGTH), generator=torch.Generator().manual_seed(3))
    wanted = model(input_ids=tokens).logits
    for layer in model.model.layers:
        before = layer.self_attn
        layer.self_attn = LlamaFlashAttention(model.config)
        layer.self_attn.pretraining_tp = model.config.pretraining_tp
        layer.self_attn.double().load_state_dict(before.state_dict())
    # Eager attention takes its softmax in float32.
    assert torch.allclose(model(input_ids=tokens).logits, wanted, rtol=0, atol=1e-6)
    assert model.config._attn_implementation == made_with
