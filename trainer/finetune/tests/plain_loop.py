"""The same fine-tuning in one process, by Transformers, peft and a loop of a few lines."""

from typing import Any

import torch
import torch.nn.functional as F
from peft import PeftModel
from torch import nn
from transformers import AutoModelForCausalLM, AutoTokenizer, DataCollatorForSeq2Seq, default_data_collator

from trainer.finetune.batches import pack
from trainer.finetune.flags import AlpacaFlags
from trainer.finetune.samples import read_samples
from trainer.finetune.tests.runs import LENGTH, Run, Runs

RATE, GAMMA, BATCH = 0.05, 0.85, 2


def plain_model(runs: Runs) -> nn.Module:
    return AutoModelForCausalLM.from_pretrained(runs.model, dtype=torch.float64)


def with_adapter(model: nn.Module, first: Run) -> PeftModel:
    """The model with the adapter that a run has begun with."""
    return PeftModel.from_pretrained(model, first.folder, is_trainable=True)


def samples_of(runs: Runs, training: bool, padding: bool = False) -> list[dict[str, list[int]]]:
    """The samples of a run, or its chunks."""
    tokenizer = AutoTokenizer.from_pretrained(runs.model)
    samples = read_samples(AlpacaFlags(data_path=str(runs.data)), tokenizer, training)
    return list(samples) if padding else pack(samples, LENGTH)


def answer_loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """The mean over the tokens that have a label."""
    labels = batch.pop("labels")
    logits = model(**batch).logits
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), reduction="none").sum()
    return loss / max(1, (labels[:, 1:] != -100).sum().item())


def plain_losses(
    runs: Runs, model: nn.Module, lines: list[dict[str, Any]], ranks: int, padding: bool = False
) -> list[float]:
    """The loss of each step on the samples that a run says it has taken: the mean of its batches' means."""
    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(runs.model)
    tokenizer.pad_token_id = tokenizer.pad_token_id or tokenizer.eos_token_id
    collate = DataCollatorForSeq2Seq(tokenizer) if padding else default_data_collator
    samples = samples_of(runs, training=True, padding=padding)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=RATE)
    model.train()
    losses = []
    for line in lines:
        for group in optimizer.param_groups:
            group["lr"] = RATE * GAMMA ** (line["epoch"] - 1)
        numbers = line["samples"]
        batches = [numbers[begin : begin + BATCH] for begin in range(0, len(numbers), BATCH)]
        assert len(batches) % ranks == 0
        optimizer.zero_grad()
        total = 0.0
        for mine in batches:
            batch = collate([dict(samples[number]) for number in mine])
            loss = answer_loss(model, batch) / len(batches)
            loss.backward()
            total += loss.item()
        optimizer.step()
        losses.append(total)
    return losses
