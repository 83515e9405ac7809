"""Lets a trained model continue a text."""

import torch
from torch import nn

TEMPERATURE = 0.8


@torch.no_grad()
def continuation(model: nn.Module, prompt: torch.Tensor, count: int, window: int, seed: int) -> list[int]:
    """`count` tokens after `prompt`. All ranks call it: each token is a forward pass with its collectives."""
    generator = torch.Generator(prompt.device).manual_seed(seed)
    tokens = prompt
    for _ in range(count):
        logits = model(input_ids=tokens[None, -window:], use_cache=False).logits[0, -1].float()
        chosen = torch.multinomial(torch.softmax(logits / TEMPERATURE, dim=0), 1, generator=generator)
        tokens = torch.cat([tokens, chosen])
    return tokens[len(prompt) :].tolist()
