"""Fine-tunes: process group, model, epochs of training and validation, what is saved."""

import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.optim import SGD, AdamW, Optimizer
from transformers import DataCollatorForSeq2Seq, default_data_collator

from trainer.cores import use_fair_share_of_cores
from trainer.finetune import checkpoint, lora
from trainer.finetune.batches import Batches, Numbers, pack
from trainer.finetune.checkpoint import Places, Progress, writes
from trainer.finetune.flags import FlagError, Settings
from trainer.finetune.model import USED, build_model, device_of, precision_of, read_tokenizer
from trainer.finetune.report import Report
from trainer.finetune.samples import IGNORED, Collator, Sample, read_collator, read_samples
from trainer.fsdp.folder import write_folder
from trainer.fsdp.interrupt import Interrupt
from trainer.fsdp.optimizer import clip_gradients
from trainer.fsdp.sharding import reshard

Batch = dict[str, Any]


def train(settings: Settings, interrupt: Interrupt) -> bool:
    """Runs on every rank; returns whether the run came to its end."""
    use_fair_share_of_cores(settings.ranks_of_host)
    device = device_of(settings, int(os.environ.get("LOCAL_RANK", "0")))
    with _process_group(settings, device):
        return Trainer(settings, interrupt, device).run()


@contextmanager
def _process_group(settings: Settings, device: torch.device) -> Iterator[None]:
    if not settings.train.enable_fsdp:
        yield
        return
    dist.init_process_group(settings.train.backend, device_id=None if device.type == "cpu" else device)
    try:
        yield
    finally:
        dist.destroy_process_group()


def answer_loss(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Mean cross entropy of the tokens with a label, each given the ones before it; 0 without any."""
    inputs = {key: value for key, value in batch.items() if key != "labels"}
    logits = model(**inputs, use_cache=False).logits[:, :-1]
    if logits.dtype != torch.float64:
        logits = logits.float()
    labels = batch["labels"][:, 1:]
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)


class Trainer:
    """One rank of a run; made and used by its main thread."""

    def __init__(self, settings: Settings, interrupt: Interrupt, device: torch.device) -> None:
        self.settings = settings
        self.interrupt = interrupt
        self.device = device
        self.rank = dist.get_rank() if dist.is_initialized() else 0
        self.tokenizer = read_tokenizer(settings)
        self.collator = self._collator()
        self.training = self._batches(training=True)
        self.validation = self._batches(training=False) if settings.train.run_validation else None
        self.precision = precision_of(settings, device)
        self.model, self.adapter = build_model(settings, self.precision, device, len(self.tokenizer))
        self.optimizer = self._optimizer()
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == "fp16")
        self.places = Places(settings)
        attempt, place = self._agree_on_start()
        self.progress = self.places.load(place, self.model, self.optimizer) if place else Progress()
        self.seconds, self.tokens = 0.0, 0
        self.report = (
            Report(Path(settings.train.output_dir), attempt, self.progress.step) if self.rank == 0 else None
        )

    def run(self) -> bool:
        """Trains to the last epoch, or to the step after which any rank was interrupted."""
        self._introduce()
        self.interrupt.finish_the_step()
        stopped = False
        while (
            self.progress.epoch < self.settings.train.num_epochs and not stopped and self._rounds_left() > 0
        ):
            stopped = self._train_epoch()
            if not stopped:
                self._end_epoch()
        if stopped:
            self._save_place()
        else:
            self._save_whole()
        if self.report:
            self._conclude(self.report, stopped)
        return not stopped

    def _train_epoch(self) -> bool:
        train, progress = self.settings.train, self.progress
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = train.lr * train.gamma**progress.epoch
        rounds = self.training.rounds(progress.epoch, progress.used)[: self._rounds_left()]
        loader = self.training.load(
            [each[self.rank] for each in rounds], self.collator, train.num_workers_dataloader
        )
        every = train.gradient_accumulation_steps
        for begin in range(0, len(rounds), every):
            step_rounds = rounds[begin : begin + every]
            if self._step(step_rounds, [next(loader) for _ in step_rounds]):
                return True
            if train.save_every and progress.step % train.save_every == 0:
                self._save_place()
        return False

    def _step(self, rounds: list[list[Numbers]], batches: list[Batch]) -> bool:
        train, progress = self.settings.train, self.progress
        begin = time.perf_counter()
        progress.step += 1
        # Dropout differs between ranks and steps, and is the same again when a step is done again.
        torch.manual_seed((train.seed * 1_000_003 + progress.step) * self.settings.ranks + self.rank)
        loss = sum(
            self._gradients(batch, index + 1 == len(batches), len(batches))
            for index, batch in enumerate(batches)
        )
        self.scaler.unscale_(self.optimizer)
        if train.gradient_clipping and train.gradient_clipping_threshold > 0:
            clip_gradients(self.model, train.gradient_clipping_threshold)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        total, asked = self._sum(loss, float(self.interrupt.asked))
        mean = total / self.settings.ranks / len(rounds)
        self.seconds += time.perf_counter() - begin
        self.tokens += sum(batch["input_ids"].numel() for batch in batches) * self.settings.ranks
        progress.used += len(rounds) * self.settings.ranks
        progress.rounds += len(rounds)
        progress.loss += mean * len(rounds)
        progress.batches += len(rounds)
        if self.report:
            samples = [
                number for rank in range(self.settings.ranks) for each in rounds for number in each[rank]
            ]
            self.report.step(
                {"epoch": progress.epoch + 1, "step": progress.step, "loss": mean, "samples": samples}
            )
        return asked > 0

    def _gradients(self, batch: Batch, last: bool, count: int) -> float:
        if isinstance(self.model, FSDPModule):
            self.model.set_requires_gradient_sync(last)
        loss = self._loss(batch)
        self.scaler.scale(loss / count).backward()
        return loss.item()

    def _loss(self, batch: Batch) -> torch.Tensor:
        # With ranks, FSDP casts what it gathers.
        used = None if self.settings.train.enable_fsdp else USED.get(self.precision)
        with torch.autocast(self.device.type, used, enabled=used is not None):
            return answer_loss(self.model, self._moved(batch))

    def _end_epoch(self) -> None:
        progress = self.progress
        progress.train_loss.append(progress.loss / max(1, progress.batches))
        best = min(progress.eval_loss, default=math.inf)
        if self.validation:
            progress.eval_loss.append(self._validate(self.validation))
        improved = not self.validation or progress.eval_loss[-1] < best
        if self.settings.train.save_model and improved:
            self._save_for_recipes()
        progress.epoch, progress.used, progress.loss, progress.batches = progress.epoch + 1, 0, 0.0, 0
        self._save_place()
        if self.report:
            validation = f", validation loss {progress.eval_loss[-1]:.4f}" if self.validation else ""
            self.report.say(
                f"epoch {progress.epoch} of {self.settings.train.num_epochs}, step {progress.step}: "
                f"loss {progress.train_loss[-1]:.4f}{validation}"
            )

    @torch.no_grad()
    def _validate(self, validation: Batches) -> float:
        self.model.eval()
        rounds = validation.rounds(0)[: self.settings.train.max_eval_step or None]
        mine = [each[self.rank] for each in rounds]
        batches = validation.load(mine, self.collator, self.settings.train.num_workers_dataloader)
        loss = sum(self._loss(batch).item() for batch in batches)
        reshard(self.model)
        return self._sum(loss)[0] / self.settings.ranks / len(rounds)

    def _save_for_recipes(self) -> None:
        if self.adapter:
            lora.save_adapter(self.model, self.adapter, Path(self.settings.train.output_dir), writes())
            return
        checkpoint.save_for_recipes(self.settings, self.model, self.optimizer, self.progress.epoch)
        if self.settings.train.enable_fsdp and writes():
            checkpoint.write_parameters(self.settings)

    def _save_place(self) -> None:
        if self.places.used:
            self.places.save(self.model, self.optimizer, self.progress)

    def _save_whole(self) -> None:
        if self.settings.train.save_hf:
            merge = lora.merging(self.model) if self.adapter else dict
            write_folder(self.model, Path(self.settings.train.output_dir) / "hf", self.tokenizer, merge)

    def _conclude(self, report: Report, stopped: bool) -> None:
        progress, parameters = self.progress, list(self.model.parameters())
        if not stopped:
            self.places.remove()
        trained = [each for each in parameters if each.requires_grad]
        report.close(
            {
                "status": "interrupted" if stopped else "finished",
                "epochs": progress.epoch,
                "steps": progress.step,
                "train_loss": progress.train_loss,
                "eval_loss": progress.eval_loss,
                "eval_perplexity": [
                    torch.tensor(loss, dtype=torch.float64).exp().item() for loss in progress.eval_loss
                ],
                "trainable_parameters": sum(each.numel() for each in trained),
                "parameters": sum(each.numel() for each in parameters),
                "tokens_per_second": self.tokens / self.seconds if self.seconds else None,
                "backend": self.settings.train.backend if self.settings.train.enable_fsdp else None,
                "device": str(self.device),
                "precision": self.precision,
                "ranks": self.settings.ranks,
            }
        )

    def _introduce(self) -> None:
        if self.report:
            train, parameters = self.settings.train, list(self.model.parameters())
            trained = sum(each.numel() for each in parameters if each.requires_grad)
            total, samples = sum(each.numel() for each in parameters), len(self.training.samples)
            self.report.say(
                f"{train.model_name}: {trained:,} of {total:,} parameters are trained, in {self.precision}, "
                f"on {self.settings.ranks} ranks; {samples} samples or chunks; files in {train.output_dir}"
            )
            if self.progress.step:
                self.report.say(f"goes on after step {self.progress.step}")

    def _rounds_left(self) -> int:
        most = self.settings.train.max_train_step
        return most - self.progress.rounds if most > 0 else len(self.training)

    def _batches(self, training: bool) -> Batches:
        train = self.settings.train
        samples = read_samples(self.settings.dataset, self.tokenizer, training)
        size = train.batch_size_training if training else train.val_batch_size
        padding = train.batching_strategy == "padding"
        if not padding:
            samples = pack(samples, train.context_length)
        seed = train.seed if training else None
        batches = Batches(samples, size, padding, self.settings.ranks, seed)
        if not len(batches):
            flags = "--batch_size_training" if training else "--val_batch_size, --run_validation False"
            flags = flags if padding else f"--context_length, {flags}"
            raise FlagError(
                f"--dataset {train.dataset}: its {'training' if training else 'validation'} part makes "
                f"{len(samples)} {'samples' if padding else 'chunks of --context_length'}, fewer than "
                f"{self.settings.ranks} ranks times {size}: choose a smaller {flags}, or more data"
            )
        return batches

    def _collator(self) -> Collator:
        collate = read_collator(self.settings.dataset, self.tokenizer)
        if collate is None:
            padding = self.settings.train.batching_strategy == "padding"
            collate = DataCollatorForSeq2Seq(self.tokenizer) if padding else default_data_collator

        def copied(samples: list[Sample]) -> Batch:
            return collate([dict(sample) for sample in samples])  # a collator may pad in place

        return copied

    def _optimizer(self) -> Optimizer:
        train = self.settings.train
        trained = [each for each in self.model.parameters() if each.requires_grad]
        kind = SGD if self.settings.fsdp.optimizer == "SGD" else AdamW
        return kind(trained, lr=train.lr, weight_decay=train.weight_decay)

    def _agree_on_start(self) -> tuple[int, Path | None]:
        """Rank 0's start in Unix milliseconds, and the checkpoint from which the run goes on."""
        start: list[Any] = [time.time_ns() // 1_000_000, None]
        if self.places.used:
            if self.rank == 0:
                start[1] = self.places.latest()
                if start[1] is None:
                    self.places.remove()
            dist.broadcast_object_list(start)
        return start[0], start[1]

    def _moved(self, batch: Batch) -> Batch:
        return {key: value.to(self.device) for key, value in batch.items()}

    def _sum(self, *numbers: float) -> list[float]:
        """These numbers of all ranks, added: all ranks must decide alike."""
        total = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        if dist.is_initialized():
            dist.all_reduce(total)
        return total.tolist()
