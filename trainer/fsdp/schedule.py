"""The learning rate of every step."""

import math

LOWEST = 0.1
"""Part of the highest learning rate that is left when the cosine ends."""


def learning_rate(step: int, highest: float, warmup: int, decay_steps: int) -> float:
    """A straight rise over `warmup` steps, then half a cosine down to a tenth; steps count from 1."""
    if step <= warmup:
        return highest * step / warmup
    gone = min(1.0, (step - warmup) / max(1, decay_steps - warmup))
    return highest * (LOWEST + (1 - LOWEST) * 0.5 * (1 + math.cos(math.pi * gone)))
