"""Tokens and label masks, against llama-cookbook's number by number."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer

from trainer.finetune.flags import AlpacaFlags, CustomFlags, FlagError, GrammarFlags, SamsumFlags
from trainer.finetune.samples import read_collator, read_samples
from trainer.finetune.tests.folders import write_grammar, write_samsum
from trainer.finetune.tests.runs import Runs

CUSTOM = """
def get_custom_dataset(flags, tokenizer, split):
    return [{"input_ids": [1, 2], "attention_mask": [1, 1], "labels": [1, 2], "split": split}]
def other(flags, tokenizer, split):
    return [{"input_ids": [3], "attention_mask": [1], "labels": [3]}]
def get_data_collator(tokenizer):
    return len
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
