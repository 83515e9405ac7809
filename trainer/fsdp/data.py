"""Reads text, turns it into tokens, and draws batches that are the same for any number of ranks."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.presets import PRESETS

VALIDATION_PART = 20
"""One token in so many, the last ones, is kept for validation."""

NOT_THE_LIBRARY = {"site-packages", "dist-packages", "test", "tests"}


class Tokenizer(Protocol):
    """Text to tokens and back."""

    def encode(self, text: bytes) -> np.ndarray: ...

    def decode(self, tokens: list[int]) -> str: ...


class ByteTokenizer:
    """One token per byte, and one more that ends a text."""

    end_of_text = 256

    def encode(self, text: bytes) -> np.ndarray:
        return np.append(np.frombuffer(text, dtype=np.uint8).astype(np.int16), np.int16(self.end_of_text))

    def decode(self, tokens: list[int]) -> str:
        return bytes(token for token in tokens if token < self.end_of_text).decode(errors="backslashreplace")


class FolderTokenizer:
    """The tokenizer that lies beside a Hugging Face checkpoint."""

    def __init__(self, folder: str) -> None:
        from transformers import AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)

    def encode(self, text: bytes) -> np.ndarray:
        return np.array(self._tokenizer.encode(text.decode(errors="replace")), dtype=np.int32)

    def decode(self, tokens: list[int]) -> str:
        return self._tokenizer.decode(tokens)

    def save_pretrained(self, folder: Path) -> None:
        self._tokenizer.save_pretrained(folder)


@dataclass(frozen=True)
class Corpus:
    """All tokens, in an order that depends on file names alone."""

    training: np.ndarray
    validation: np.ndarray


def tokenizer_for(settings: Settings) -> Tokenizer:
    """Bytes for a preset, the folder's own tokenizer for a checkpoint."""
    return ByteTokenizer() if settings.model in PRESETS else FolderTokenizer(settings.model)


def read_corpus(settings: Settings, tokenizer: Tokenizer) -> Corpus:
    """The tokens of every file that --data names, the last part of them kept for validation."""
    files = [file for path in settings.data for file in _text_files(Path(path))]
    files = files or standard_library()
    tokens = np.concatenate([tokenizer.encode(file.read_bytes()) for file in files])
    cut = len(tokens) - len(tokens) // VALIDATION_PART
    corpus = Corpus(tokens[:cut], tokens[cut:])
    shortest = min(len(corpus.training), len(corpus.validation))
    if shortest <= settings.seq_len + 1:
        raise SettingsError(
            f"--data gives {len(tokens)} tokens, and a {VALIDATION_PART}th of them kept for validation is "
            f"shorter than --seq-len {settings.seq_len}: give more text, or a smaller --seq-len"
        )
    return corpus


def training_batch(corpus: Corpus, settings: Settings, step: int, rank: int) -> torch.Tensor:
    """One rank's sequences of one step, shaped (grad_accum, micro_batch, seq_len + 1)."""
    last = len(corpus.training) - settings.seq_len - 1
    starts = np.random.default_rng((settings.seed, step)).integers(0, last, size=settings.global_batch)
    share = starts.reshape(settings.data_ranks, settings.grad_accum, settings.micro_batch)[
        rank // settings.tensor_parallel
    ]
    return _sequences(corpus.training, share, settings.seq_len)


def validation_batches(corpus: Corpus, settings: Settings, rank: int, count: int) -> torch.Tensor:
    """One rank's part of `count` batches that lie evenly over the validation tokens."""
    last = len(corpus.validation) - settings.seq_len - 1
    starts = np.linspace(0, last, num=count * settings.global_batch, dtype=np.int64)
    share = starts.reshape(settings.data_ranks, -1, settings.micro_batch)[rank // settings.tensor_parallel]
    return _sequences(corpus.validation, share, settings.seq_len)


def _sequences(tokens: np.ndarray, starts: np.ndarray, seq_len: int) -> torch.Tensor:
    places = starts[..., None] + np.arange(seq_len + 1)
    return torch.from_numpy(tokens[places].astype(np.int64))


def _text_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise SettingsError(f"--data {path}: no such file or folder")
    found = (file for file in path.rglob("*") if file.is_file() and not _is_hidden(file.relative_to(path)))
    texts = sorted(file for file in found if b"\0" not in file.read_bytes()[:8192])
    if not texts:
        raise SettingsError(f"--data {path}: no text file in this folder")
    return texts


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def standard_library() -> list[Path]:
    """The source files of Python's library, in the order of their names."""
    root = Path(os.__file__).parent
    files = (file for file in root.rglob("*.py") if not NOT_THE_LIBRARY & set(file.relative_to(root).parts))
    return sorted(files)
