"""The same training in one process and without FSDP: what every sharded run must agree with."""

from pathlib import Path

import torch

from trainer.fsdp import data
from trainer.fsdp.arguments import parse
from trainer.fsdp.model import build_model, next_token_loss
from trainer.fsdp.optimizer import make_optimizer
from trainer.fsdp.schedule import learning_rate
from trainer.fsdp.tests.runs import SMALL


def write_plain_losses(path: Path, words: list[str] = SMALL) -> int:
    """Trains the small model on whole batches; writes the loss of each step, one per line."""
    torch.set_num_threads(1)
    settings = parse([*words, "--ranks", "1"])
    corpus = data.read_corpus(settings, data.tokenizer_for(settings))
    model = build_model(settings)
    optimizer = make_optimizer(settings, list(model.parameters()))
    losses = []
    for step in range(1, settings.steps + 1):
        (batch,) = data.training_batch(corpus, settings, step, rank=0)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, settings.lr, settings.warmup, settings.decay_steps)
        optimizer.zero_grad()
        loss = next_token_loss(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip)
        optimizer.step()
        losses.append(loss.item())
    path.write_text("\n".join(map(repr, losses)))
    return 0
