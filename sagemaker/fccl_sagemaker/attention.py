"""Serves SMP's names of FlashAttention by torch's scaled_dot_product_attention."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

Tensors = tuple[torch.Tensor, ...]

HEADS_FIRST, LENGTH_FIRST = "b h s d", "b s h d"


class FlashSelfAttention(nn.Module):
    """Attention over one tensor of queries, keys and values, or over a tuple of the three."""

    def __init__(
        self,
        attention_dropout_prob: float = 0.0,
        scale: float | None = None,
        triton_flash_attention: bool = False,
        use_alibi: bool = False,
    ) -> None:
        super().__init__()
        self._takes_mask = triton_flash_attention and use_alibi
        self._dropout = attention_dropout_prob
        self._scale = scale

    def forward(
        self,
        qkv: torch.Tensor | Tensors,
        attn_mask: torch.Tensor | None = None,
        causal: bool = False,
        cast_dtype: torch.dtype | None = None,
        layout: str = HEADS_FIRST,
    ) -> torch.Tensor:
        """The result is laid out as [batch, heads, length, width], whatever the layout of the input."""
        if attn_mask is not None and not self._takes_mask:
            raise ValueError(
                "FlashSelfAttention is given an attn_mask, which it takes with triton_flash_attention=True "
                "and use_alibi=True alone; make it with both, or leave the mask out"
            )
        queries, keys, values = _heads_first(qkv, 3, layout, cast_dtype)
        bias = None if attn_mask is None else _bias(attn_mask.to(queries.dtype), causal, queries.shape[2])
        return F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=bias,
            dropout_p=self._dropout if self.training else 0.0,
            is_causal=causal and bias is None,
            scale=self._scale,
        )


class FlashGroupedQueryAttention(nn.Module):
    """Attention whose heads of keys and values each serve several heads of queries."""

    def __init__(self, attention_dropout_prob: float = 0.0, scale: float | None = None) -> None:
        super().__init__()
        self._dropout = attention_dropout_prob
        self._scale = scale

    def forward(
        self,
        q: torch.Tensor,
        kv: torch.Tensor | Tensors,
        causal: bool = False,
        cast_dtype: torch.dtype | None = None,
        layout: str = HEADS_FIRST,
        attn_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The result is laid out as [batch, heads, length, width], whatever the layout of the input."""
        (queries,) = _heads_first((q,), 1, layout, cast_dtype)
        keys, values = _heads_first(kv, 2, layout, cast_dtype)
        return F.scaled_dot_product_attention(
            queries,
            keys,
            values,
            attn_mask=attn_mask,
            dropout_p=self._dropout if self.training else 0.0,
            is_causal=causal and attn_mask is None,
            scale=self._scale,
            enable_gqa=True,
        )


def _heads_first(
    joined: torch.Tensor | Tensors, number: int, layout: str, dtype: torch.dtype | None
) -> Tensors:
    """The tensors one by one, as torch wants them."""
    if layout not in (HEADS_FIRST, LENGTH_FIRST):
        raise ValueError(
            f"attention of torch.sagemaker has layout={layout!r}; "
            f"allowed is {HEADS_FIRST!r} or {LENGTH_FIRST!r}"
        )
    if isinstance(joined, torch.Tensor):
        joined = joined.chunk(number, dim=1 if layout == HEADS_FIRST else 2)
    if layout == LENGTH_FIRST:
        joined = tuple(each.transpose(1, 2) for each in joined)
    return tuple(joined) if dtype is None else tuple(each.to(dtype) for each in joined)


def _bias(mask: torch.Tensor, causal: bool, length: int) -> torch.Tensor:
    """The mask that is added to the scores; torch takes either a mask or is_causal."""
    if not causal:
        return mask
    later = torch.ones(length, length, dtype=torch.bool, device=mask.device).triu(1)
    return mask.masked_fill(later, float("-inf"))
