"""Reads a dataset and turns each of its entries into tokens, with labels on the answer alone."""

import csv
import importlib.util
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
from transformers import PreTrainedTokenizerBase

from trainer.finetune.flags import (
    AlpacaFlags,
    CustomFlags,
    DatasetFlags,
    FlagError,
    GrammarFlags,
    SamsumFlags,
)

IGNORED = -100
"""The label of a token that no loss is taken of."""

Sample = dict[str, list[int]]
Collator = Callable[[list[Sample]], dict[str, Any]]
SAMSUM = "Samsung/samsum"
INSTRUCTION = (
    "Below is an instruction that describes a task{paired}. "
    "Write a response that appropriately completes the request.\n\n"
    "### Instruction:\n{instruction}\n\n{context}### Response:"
)


def read_samples(flags: DatasetFlags, tokenizer: PreTrainedTokenizerBase, training: bool) -> Sequence[Sample]:
    """The samples of the training or the validation part, in the dataset's order."""
    split = flags.train_split if training else flags.test_split
    match flags:
        case SamsumFlags():
            return [_answered(tokenizer, *pair) for pair in _dialogues(split)]
        case GrammarFlags():
            return [_answered(tokenizer, *pair) for pair in _corrections(split, training)]
        case AlpacaFlags():
            return [_instructed(tokenizer, entry) for entry in _instructions(flags, split)]
        case CustomFlags():
            return _custom(flags, tokenizer, split)


def read_collator(flags: DatasetFlags, tokenizer: PreTrainedTokenizerBase) -> Collator | None:
    """The function by which a custom dataset makes a batch, if its file has one."""
    if not isinstance(flags, CustomFlags):
        return None
    make = getattr(_module(flags), "get_data_collator", None)
    return make(tokenizer) if make else None


def _answered(tokenizer: PreTrainedTokenizerBase, prompt: str, answer: str) -> Sample:
    asked = tokenizer.encode(tokenizer.bos_token + prompt, add_special_tokens=False)
    answered = tokenizer.encode(answer + tokenizer.eos_token, add_special_tokens=False)
    return _sample(asked + answered, len(asked))


def _instructed(tokenizer: PreTrainedTokenizerBase, entry: dict[str, str]) -> Sample:
    context = entry.get("input", "")
    prompt = INSTRUCTION.format(
        paired=", paired with an input that provides further context" if context else "",
        instruction=entry["instruction"],
        context=f"### Input:\n{context}\n\n" if context else "",
    )
    tokens = tokenizer.encode(prompt + entry["output"])
    return _sample([*tokens, tokenizer.eos_token_id], len(tokenizer.encode(prompt)))


def _sample(tokens: list[int], asked: int) -> Sample:
    labels = [IGNORED] * asked + tokens[asked:]
    return {"input_ids": tokens, "attention_mask": [1] * len(tokens), "labels": labels[: len(tokens)]}


def _dialogues(split: str) -> Iterable[tuple[str, str]]:
    try:
        entries = datasets.load_dataset(SAMSUM, split=split)
    except Exception as error:
        raise FlagError(
            f"--dataset samsum_dataset: no part {split} of {SAMSUM}, neither as a folder of that name here "
            f"nor in the hub's cache: {str(error).splitlines()[0]}"
        ) from error
    return (
        (f"Summarize this dialog:\n{entry['dialogue']}\n---\nSummary:\n", entry["summary"])
        for entry in entries
    )


def _corrections(file: str, training: bool) -> Iterable[tuple[str, str]]:
    flag = "train_split" if training else "test_split"
    if not Path(file).is_file():
        raise FlagError(
            f"--grammar_dataset.{flag} {file}: no such file; it names a CSV file with the columns "
            f"input and target"
        )
    with Path(file).open(newline="") as lines:
        entries = list(csv.DictReader(lines))
    return (
        (f"Correct this to standard English: {entry['input']}\n---\nCorrected: ", entry["target"])
        for entry in entries
    )


def _instructions(flags: AlpacaFlags, split: str) -> list[dict[str, str]]:
    if not Path(flags.data_path).is_file():
        raise FlagError(
            f"--data_path {flags.data_path}: no such file; it names a JSON list of instruction, "
            f"input and output"
        )
    entries = json.loads(Path(flags.data_path).read_text())
    validation = len(entries) // 20
    return entries[validation:] if split == "train" else entries[:validation]


def _custom(flags: CustomFlags, tokenizer: PreTrainedTokenizerBase, split: str) -> Sequence[Sample]:
    file, _, function = flags.file.partition(":")
    make = getattr(_module(flags), function or "get_custom_dataset", None)
    if make is None:
        raise FlagError(
            f"--custom_dataset.file {flags.file}: {file} has no function {function or 'get_custom_dataset'}"
        )
    return make(flags, tokenizer, split)


def _module(flags: CustomFlags) -> ModuleType:
    file = Path(flags.file.partition(":")[0])
    if file.suffix != ".py" or not file.is_file():
        raise FlagError(
            f"--custom_dataset.file {flags.file}: it names a file of Python, FILE.py or FILE.py:FUNCTION"
        )
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
