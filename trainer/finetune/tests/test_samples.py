"""Tokens and label masks, against llama-cookbook's number by number."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer

from trainer.finetune import __main__ as entry
from trainer.finetune.flags import AlpacaFlags, CustomFlags, FlagError, GrammarFlags, SamsumFlags
from trainer.finetune.samples import read_collator, read_samples
from trainer.finetune.tests.folders import write_grammar, write_samsum
from trainer.finetune.tests.runs import EXACT, Run, Runs
from trainer.fsdp.tests.runs import BACKEND, on_ranks

CUSTOM = """
def get_custom_dataset(flags, tokenizer, split):
    return [{"input_ids": [1, 2], "attention_mask": [1, 1], "labels": [1, 2], "split": split}]
def other(flags, tokenizer, split):
    return [{"input_ids": [3], "attention_mask": [1], "labels": [3]}]
def get_data_collator(tokenizer):
    return len
"""

# Without the collator there would be no label, and so a loss of 0.
WITHOUT_LABELS = """
import torch
def get_custom_dataset(flags, tokenizer, split):
    tokens = [[3 + (5 * index + place) % 40 for place in range(12)] for index in range(26)]
    tokens = tokens if split == "train" else tokens[:4]
    return [{"input_ids": each, "attention_mask": [1] * 12, "labels": [-100] * 12} for each in tokens]
def get_data_collator(tokenizer):
    def collate(samples):
        tokens = torch.tensor([each["input_ids"] for each in samples])
        return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "labels": tokens}
    return collate
"""


@pytest.fixture(scope="module")
def tokenizer(runs: Runs) -> AutoTokenizer:
    return AutoTokenizer.from_pretrained(runs.model)


def numbers(samples: list) -> list[dict]:
    return [
        {key: [int(each) for each in sample[key]] for key in ("input_ids", "attention_mask", "labels")}
        for sample in samples
    ]


def test_alpaca_is_llama_cookbooks(cookbook: None, runs: Runs, tokenizer: AutoTokenizer) -> None:
    from llama_cookbook.datasets.alpaca_dataset import InstructionDataset

    flags = AlpacaFlags(data_path=str(runs.data))
    for training in (True, False):
        theirs = InstructionDataset(flags, tokenizer, flags.train_split if training else flags.test_split)
        ours = read_samples(flags, tokenizer, training)
        assert len(ours) == (38 if training else 2)
        assert numbers(ours) == numbers([theirs[index] for index in range(len(theirs))])


def test_samsum_is_llama_cookbooks(
    cookbook: None, tokenizer: AutoTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llama_cookbook.datasets.samsum_dataset import get_preprocessed_samsum

    monkeypatch.chdir(write_samsum(tmp_path, 10))
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    for training, split in ((True, "train"), (False, "validation")):
        theirs = get_preprocessed_samsum(None, tokenizer, split)
        assert numbers(read_samples(SamsumFlags(), tokenizer, training)) == numbers(list(theirs))


def test_grammar_is_llama_cookbooks(
    cookbook: None, tokenizer: AutoTokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from llama_cookbook.datasets.grammar_dataset.grammar_dataset import get_dataset

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    file = str(write_grammar(tmp_path / "grammar.csv"))
    theirs = get_dataset(None, tokenizer, file)
    ours = read_samples(GrammarFlags(train_split=file), tokenizer, training=True)
    assert numbers(ours) == numbers([theirs[index] for index in range(len(theirs))])


def test_a_custom_function_and_collator_are_found_in_their_file(
    tokenizer: AutoTokenizer, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(CUSTOM)
    flags = CustomFlags(file=str(tmp_path / "mine.py"))
    assert read_samples(flags, tokenizer, training=False)[0]["split"] == "validation"
    assert read_samples(CustomFlags(file=f"{flags.file}:other"), tokenizer, training=True)[0][
        "input_ids"
    ] == [3]
    assert read_collator(flags, tokenizer) is len


@pytest.mark.slow
def test_a_custom_dataset_is_trained_on_by_its_own_collator(runs: Runs) -> None:
    file = runs.folder / "without_labels.py"
    file.write_text(WITHOUT_LABELS)
    run = Run(runs.folder / "custom")
    words = ["--model_name", str(runs.model), "--output_dir", str(run.folder), "--enable_fsdp", *EXACT]
    words += ["--dataset", "custom_dataset", "--custom_dataset.file", str(file), "--backend", BACKEND]
    words += ["--batching_strategy", "padding", "--batch_size_training", "2", "--num_epochs", "3"]
    on_ranks(2, runs.folder / "custom.log", lambda: entry.main(words))
    # 26 samples are 6 batches of 2 for each of 2 ranks, and a rest.
    assert [len(line["samples"]) for line in run.lines] == [4] * 6 * 3
    losses = run.summary["train_loss"]
    assert 0 < losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (AlpacaFlags(data_path="nowhere.json"), "--data_path nowhere.json: no such file"),
        (GrammarFlags(train_split="nowhere.csv"), "--grammar_dataset.train_split nowhere.csv: no such file"),
        (CustomFlags(file="nowhere"), "--custom_dataset.file nowhere: it names a file of Python"),
    ],
)
def test_data_that_is_not_there_is_named(flags: SimpleNamespace, said: str, tokenizer: AutoTokenizer) -> None:
    with pytest.raises(FlagError, match=said):
        read_samples(flags, tokenizer, training=True)
