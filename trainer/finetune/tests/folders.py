"""Folders as a user of llama-recipes has them: a tiny random Llama with a tokenizer, and data."""

import json
import random
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from transformers.utils import logging

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "while",
    "people",
    "talk",
    "about",
    "trains",
    "and",
    "rain",
]


def write_model(folder: Path, dtype: torch.dtype = torch.float32) -> Path:
    """A Llama of three blocks, whose heads share keys, with a tokenizer of bytes and a few words."""
    logging.disable_progress_bar()
    bytes_and_words = Tokenizer(models.BPE())
    bytes_and_words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_and_words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=["<unk>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    bytes_and_words.train_from_iterator([" ".join(WORDS)], trainer)
    named = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=bytes_and_words, **named).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).to(dtype).save_pretrained(folder)
    return folder


def write_alpaca(file: Path, count: int = 40) -> Path:
    """Instructions, of which every third has an input."""
    draw = random.Random(1)
    entries = [
        {
            "instruction": _text(draw, 2, 6),
            "input": _text(draw, 1, 5) if index % 3 == 0 else "",
            "output": _text(draw, 20, 60),
        }
        for index in range(count)
    ]
    file.write_text(json.dumps(entries))
    return file


def write_samsum(folder: Path, count: int = 60) -> Path:
    """Dialogues, as load_dataset("Samsung/samsum") finds them beside it."""
    draw = random.Random(2)
    (folder / "Samsung/samsum").mkdir(parents=True)
    for part, entries in (("train", count), ("validation", count // 5)):
        dialogues = [
            {"id": str(index), "dialogue": _text(draw, 5, 25), "summary": _text(draw, 3, 9)}
            for index in range(entries)
        ]
        (folder / f"Samsung/samsum/{part}.json").write_text(json.dumps(dialogues))
    return folder


def write_grammar(file: Path, count: int = 20) -> Path:
    """Sentences and their corrections, a comma among them."""
    draw = random.Random(3)
    lines = [f'"{_text(draw, 3, 7)}, {index}",{_text(draw, 3, 7)}' for index in range(count)]
    file.write_text("\n".join(["input,target", *lines]) + "\n")
    return file


def _text(draw: random.Random, least: int, most: int) -> str:
    return " ".join(draw.choices(WORDS, k=draw.randint(least, most)))
