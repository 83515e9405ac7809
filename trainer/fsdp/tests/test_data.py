"""Batches are the same sequences for any number of ranks, and differ between steps and seeds."""

from pathlib import Path

import numpy as np
import pytest
import torch

from trainer.fsdp.arguments import SettingsError, parse
from trainer.fsdp.data import ByteTokenizer, Corpus, read_corpus, training_batch, validation_batches

CORPUS = Corpus(training=np.arange(5000, dtype=np.int16), validation=np.arange(5000, 6000, dtype=np.int16))


def step_of(step: int, *words: str) -> torch.Tensor:
    settings = parse(["--global-batch", "8", "--seq-len", "16", *words])
    shares = [training_batch(CORPUS, settings, step, rank) for rank in range(settings.ranks)]
    return torch.cat([share.flatten(0, 1) for share in shares])


@pytest.mark.parametrize("words", [["--ranks", "2"], ["--ranks", "4"], ["--ranks", "2", "--grad-accum", "4"]])
def test_step_has_the_same_sequences_for_any_number_of_ranks(words: list[str]) -> None:
    assert torch.equal(step_of(3, *words), step_of(3, "--ranks", "1"))


def test_sequence_is_one_token_longer_than_the_model_reads() -> None:
    assert step_of(1).shape == (8, 17)


def test_steps_and_seeds_differ() -> None:
    assert not torch.equal(step_of(1), step_of(2))
    assert not torch.equal(step_of(1), step_of(1, "--seed", "1"))


def test_validation_has_the_same_sequences_for_any_number_of_ranks() -> None:
    def all_of(ranks: int) -> torch.Tensor:
        settings = parse(["--global-batch", "8", "--seq-len", "16", "--ranks", str(ranks)])
        return torch.cat(
            [validation_batches(CORPUS, settings, rank, 2).flatten(0, 1) for rank in range(ranks)]
        )

    assert torch.equal(all_of(1), all_of(4))
    assert all_of(1).min() >= 5000


def test_bytes_come_back_from_tokens() -> None:
    text = "def f():\n    return 'é'\n"
    tokens = ByteTokenizer().encode(text.encode())
    assert tokens[-1] == ByteTokenizer.end_of_text
    assert ByteTokenizer().decode(tokens.tolist()) == text


def test_folder_is_read_in_the_order_of_names_without_binary_files(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b" * 600)
    (tmp_path / "a.txt").write_text("a" * 600)
    (tmp_path / "c.bin").write_bytes(b"\0" * 600)
    corpus = read_corpus(parse(["--data", str(tmp_path), "--seq-len", "16"]), ByteTokenizer())
    text = ByteTokenizer().decode([*corpus.training.tolist(), *corpus.validation.tolist()])
    assert text == "a" * 600 + "b" * 600


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("short")
    with pytest.raises(SettingsError, match="give more text"):
        read_corpus(parse(["--data", str(tmp_path)]), ByteTokenizer())
