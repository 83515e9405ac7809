"""Cuts samples into chunks, and says which of them each rank takes in each step of an epoch."""

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from trainer.finetune.samples import Collator, Sample

Numbers = list[int]


def pack(samples: Iterable[Sample], length: int) -> list[Sample]:
    """Samples joined one behind the other and cut into chunks of `length` tokens; the rest is left out.

    A chunk is cut when more than `length` tokens are there, as llama-recipes does.
    """
    chunks: list[Sample] = []
    buffer: Sample = {"input_ids": [], "attention_mask": [], "labels": []}
    for sample in samples:
        for key, tokens in buffer.items():
            tokens += sample[key]
        begin, there = 0, len(buffer["input_ids"])
        while there - begin > length:
            chunks.append({key: tokens[begin : begin + length] for key, tokens in buffer.items()})
            begin += length
        buffer = {key: tokens[begin:] for key, tokens in buffer.items()}
    return chunks


def packed_batches(count: int, size: int, seed: int | None) -> list[Numbers]:
    """The numbers of all chunks in batches of `size`, in the seed's order; the rest is left out."""
    order = list(range(count))
    if seed is not None:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).tolist()
    return [order[begin : begin + size] for begin in range(0, count - size + 1, size)]


def padded_batches(samples: Sequence[Sample], size: int, seed: int | None) -> list[Numbers]:
    """As packed_batches, but samples of about the same length are together, so that little is padded."""
    order = np.argsort([len(sample["input_ids"]) for sample in samples], kind="stable").tolist()
    batches = [order[begin : begin + size] for begin in range(0, len(order) - size + 1, size)]
    if seed is not None:
        random.Random(seed).shuffle(batches)
    return batches


class Batches:
    """The batches of one dataset on one rank; every rank knows those of all."""

    def __init__(
        self, samples: Sequence[Sample], size: int, padding: bool, ranks: int, seed: int | None
    ) -> None:
        self.samples = samples
        self._size = size
        self._padding = padding
        self._ranks = ranks
        self._seed = seed

    def __len__(self) -> int:
        """Batches that each rank takes in an epoch."""
        return len(self.samples) // self._size // self._ranks

    def rounds(self, epoch: int, used: int = 0) -> list[list[Numbers]]:
        """For each batch of a rank the numbers of all ranks, behind the first `used` batches of all ranks."""
        seed = None if self._seed is None else self._seed + epoch
        if self._padding:
            batches = padded_batches(self.samples, self._size, seed)
        else:
            batches = packed_batches(len(self.samples), self._size, seed)
        left = batches[used:]
        return [
            left[begin : begin + self._ranks] for begin in range(0, len(left) - self._ranks + 1, self._ranks)
        ]

    def load(self, mine: list[Numbers], collator: Collator, workers: int) -> Iterator[dict[str, Any]]:
        """The tensors of these batches, one after the other."""
        return iter(DataLoader(self.samples, batch_sampler=mine, collate_fn=collator, num_workers=workers))
