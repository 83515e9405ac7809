"""Trains: process group, model, steps, validation, checkpoints, sample."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from trainer.cores import use_fair_share_of_cores
from trainer.fsdp import checkpoint, collectives, data
from trainer.fsdp.arguments import Settings
from trainer.fsdp.attempt import begin_attempt
from trainer.fsdp.device import device_of, finish
from trainer.fsdp.folder import write_folder
from trainer.fsdp.interrupt import Interrupt
from trainer.fsdp.memory import peak_bytes
from trainer.fsdp.model import empty_model, next_token_loss
from trainer.fsdp.optimizer import clip_gradients, make_optimizer, make_scaler
from trainer.fsdp.report import Report
from trainer.fsdp.sample import continuation
from trainer.fsdp.schedule import learning_rate
from trainer.fsdp.sharding import offloading_of_last_pass, reshard, shard_model

VALIDATION_BATCHES = 4
PROMPT_TOKENS = 48


@dataclass
class Spent:
    """The time that training steps took so far on this rank, without validation, saving and the start."""

    steps: int
    seconds: float
    collectives: collectives.Tallies

    @property
    def share(self) -> float:
        return collectives.seconds(self.collectives) / self.seconds if self.seconds else 0.0


def train(settings: Settings, interrupt: Interrupt, trainer: type["Trainer"] | None = None) -> bool:
    """Runs on every rank; returns whether the run came to its last step. Another trainer may see more of
    it.
    """
    use_fair_share_of_cores(int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    device = device_of(settings)
    with _process_group(settings.backend, device):
        return (trainer or Trainer)(settings, interrupt, device).run()


def seed_dropout(settings: Settings, rank: int) -> None:
    """Lets dropout differ between sequences, and be the same on ranks that share tensors."""
    torch.manual_seed(settings.seed * settings.ranks + rank // settings.tensor_parallel)


@contextmanager
def _process_group(backend: str, device: torch.device) -> Iterator[None]:
    dist.init_process_group(backend, device_id=None if device.type == "cpu" else device)
    try:
        yield
    finally:
        dist.destroy_process_group()


class Trainer:
    """One rank of a run; made and used by its main thread, between start and end of the process group."""

    def __init__(self, settings: Settings, interrupt: Interrupt, device: torch.device) -> None:
        self.settings = settings
        self.interrupt = interrupt
        self.device = device
        self.rank = dist.get_rank()
        self.counters = collectives.counters_for(settings.backend)
        self.tokenizer = data.tokenizer_for(settings)
        self.corpus = data.read_corpus(settings, self.tokenizer)
        seed_dropout(settings, self.rank)
        model = empty_model(settings)
        self.shape = _shape(model)
        attempt = begin_attempt(settings, self.shape)
        self.folder = attempt.folder
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.model = shard_model(model, settings, device)
        self.optimizer = make_optimizer(settings, list(self.model.parameters()))
        self.scaler = make_scaler(settings, device)
        self.resumed = attempt.checkpoint
        self.done = checkpoint.load(self.resumed, self.model, self.optimizer) if self.resumed else 0
        self.saved = self.done
        self.spent = Spent(0, 0.0, collectives.none())
        self.report = Report(attempt, settings, self.done) if self.rank == 0 else None

    def run(self) -> bool:
        """Trains to the last step, or to the step after which any rank was interrupted."""
        begin = time.perf_counter()
        self._introduce()
        self.interrupt.finish_the_step()
        stopped = False
        while self.done < self.settings.steps and not stopped:
            stopped = self._step()
            if not stopped and self._is_time(self.settings.validate_every):
                self._validate()
            if self._is_time(self.settings.save_every or 0):
                self._save()
        if self.settings.save_every != 0 and self.saved != self.done:
            self._save()
        if self.settings.save_hf and not stopped:
            self._save_folder()
        sample = {} if stopped else self._sample()
        peak = self._peak_bytes()
        if self.report:
            self._conclude(self.report, stopped, sample, peak, time.perf_counter() - begin)
        return not stopped

    def _step(self) -> bool:
        step = self.done + 1
        batch = data.training_batch(self.corpus, self.settings, step, self.rank).to(self.device)
        rate = learning_rate(step, self.settings.lr, self.settings.warmup, self.settings.decay_steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        begin = time.perf_counter()
        before = self.counters.read()
        loss = self._gradients(batch)
        self.scaler.unscale_(self.optimizer)
        norm = clip_gradients(self.model, self.settings.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        finish(self.device)
        counted = collectives.between(before, self.counters.read())
        seconds = time.perf_counter() - begin
        mean_loss, stopped = self._agree(loss)
        self.done = step
        self.spent = Spent(
            self.spent.steps + 1,
            self.spent.seconds + seconds,
            collectives.added(self.spent.collectives, counted),
        )
        if self.report:
            share = collectives.seconds(counted) / seconds
            speed = self._tokens_per_step() / seconds
            metrics = {"step": step, "loss": mean_loss, "learning_rate": rate, "gradient_norm": norm}
            metrics |= {"tokens_per_second": speed, "seconds": seconds, "collective_share": share}
            metrics |= offloading_of_last_pass(self.settings)
            self.report.step(metrics, speed, share)
        return stopped

    def _gradients(self, batch: torch.Tensor) -> float:
        total = 0.0
        for sequences in batch:
            loss = next_token_loss(self.model, sequences) / len(batch)
            self.scaler.scale(loss).backward()
            total += loss.item()
        return total

    def _agree(self, loss: float) -> tuple[float, bool]:
        """The mean loss, and whether any rank was interrupted: all ranks must stop after the same step."""
        both = torch.tensor([loss, float(self.interrupt.asked)], dtype=torch.float64, device=self.device)
        dist.all_reduce(both)
        return both[0].item() / self.settings.ranks, both[1].item() > 0

    @torch.no_grad()
    def _validate(self) -> None:
        batches = data.validation_batches(self.corpus, self.settings, self.rank, VALIDATION_BATCHES)
        losses = [next_token_loss(self.model, sequences).item() for sequences in batches.to(self.device)]
        reshard(self.model)
        total = torch.tensor(sum(losses) / len(losses), dtype=torch.float64, device=self.device)
        dist.all_reduce(total)
        if self.report:
            self.report.validation(self.done, total.item() / self.settings.ranks)

    def _save(self) -> None:
        place = checkpoint.save(
            self.folder / "checkpoints", self.done, self.model, self.optimizer, self.shape
        )
        self.saved = self.done
        if self.report:
            self.report.say(f"step {self.done}: saved {place}")

    def _save_folder(self) -> None:
        tokenizer = self.tokenizer if isinstance(self.tokenizer, data.FolderTokenizer) else None
        write_folder(self.model, self.folder / "hf", tokenizer)
        if self.report:
            self.report.say(f"wrote {self.folder / 'hf'}, a Hugging Face folder")

    def _peak_bytes(self) -> int:
        """The most that any rank has held."""
        peak = torch.tensor(peak_bytes(self.device), dtype=torch.int64, device=self.device)
        dist.all_reduce(peak, dist.ReduceOp.MAX)
        return int(peak.item())

    def _sample(self) -> dict[str, str]:
        """A text that was not trained on, and how the model goes on."""
        if not self.settings.sample_tokens:
            return {}
        prompt = torch.from_numpy(self.corpus.validation[:PROMPT_TOKENS].astype("int64"))
        count, window = self.settings.sample_tokens, self.settings.seq_len
        tokens = continuation(self.model, prompt.to(self.device), count, window, self.settings.seed)
        return {"prompt": self.tokenizer.decode(prompt.tolist()), "sample": self.tokenizer.decode(tokens)}

    def _is_time(self, period: int) -> bool:
        return period > 0 and (self.done % period == 0 or self.done == self.settings.steps)

    def _tokens_per_step(self) -> int:
        return self.settings.global_batch * self.settings.seq_len

    def _introduce(self) -> None:
        if not self.report:
            return
        settings = self.settings
        self.report.say(
            f"{settings.model}: {self.parameters:,} parameters, {settings.strategy}"
            f"{' by FullyShardedDataParallel' if settings.fsdp1 else ''}, {settings.ranks} ranks over "
            f"{settings.backend} on {self.device}, {len(self.corpus.training):,} tokens of text; "
            f"files in {self.folder}"
        )
        if self.done:
            self.report.say(f"resumed from {self.resumed}, after step {self.done}")

    def _conclude(
        self, report: Report, stopped: bool, sample: dict[str, str], peak: int, seconds: float
    ) -> None:
        settings, spent = self.settings, self.spent
        facts: dict[str, Any] = {
            "status": "interrupted" if stopped else "finished",
            "backend": settings.backend,
            "device": str(self.device),
            "ranks": settings.ranks,
            "strategy": settings.strategy,
            "fsdp1": settings.fsdp1,
            "tensor_parallel": settings.tensor_parallel,
            "peak_bytes_per_rank": peak,
            "steps": self.done,
            "trained_steps": spent.steps,
            "tokens_per_second": self._tokens_per_step() * spent.steps / spent.seconds
            if spent.steps
            else None,
            "collective_share": spent.share,
            "parameters": self.parameters,
            "seconds": seconds,
            "torch": torch.__version__,
            "prompt": sample.get("prompt", ""),
            "sample": sample.get("sample", ""),
        }
        summary = report.close(facts, spent.collectives)
        print(_farewell(summary, self.folder, settings))


def _farewell(summary: dict[str, Any], folder: Path, settings: Settings) -> str:
    if summary["status"] == "interrupted":
        saved = "" if settings.save_every == 0 else f"; go on with --resume {folder.name}"
        return f"interrupted after step {summary['steps']}, marked so in {folder}/summary.json{saved}"
    lines = [_labelled(name, summary[name]) for name in ("prompt", "sample") if summary["sample"]]
    if summary["trained_steps"]:
        lines.append(
            f"loss {summary['first_loss']:.3f} -> {summary['last_loss']:.3f} in {summary['seconds']:.0f} s, "
            f"{summary['tokens_per_second']:,.0f} tokens/s, {summary['collective_share']:.0%} in "
            f"collectives; see {folder}/"
        )
    return "\n".join(lines)


def _labelled(name: str, text: str) -> str:
    """The text with its name in front; its later lines stand below the first one."""
    label = f"{name}: "
    return label + text.replace("\n", "\n" + " " * len(label))


def _shape(model: nn.Module) -> dict[str, Any]:
    keys = ("num_hidden_layers", "hidden_size", "intermediate_size", "num_key_value_heads", "vocab_size")
    return {key: getattr(model.config, key, None) for key in keys}
