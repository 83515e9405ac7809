"""Trains from the newest checkpoint to the last step, on the ranks that there are."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from trainer.ddp import checkpoint
from trainer.ddp.arguments import Settings, SettingsError
from trainer.ddp.data import Feed, Place, validation_batches
from trainer.ddp.model import Learner, build_model
from trainer.ddp.peers import FixedPeers, Peers
from trainer.ddp.record import History, SampleLines, Spent, write_summary
from trainer.fsdp import collectives

Made = TypeVar("Made")


def train(settings: Settings) -> None:
    """Runs on every rank."""
    started = time.time_ns() // 1_000_000
    if settings.recovery == "in-process":
        raise SettingsError("--recovery in-process: start the ranks by python -m trainer.replicas")
    device = device_for(settings)
    with _process_group(settings, device):
        Trainer(settings, device, FixedPeers(settings), started).run()


def device_for(settings: Settings) -> torch.device:
    """A GPU where torch finds one, and the processor elsewhere."""
    if not torch.cuda.is_available():
        for flag, value, needy in (
            ("--dist-backend", settings.dist_backend, "nccl"),
            ("--precision", settings.precision, "amp"),
        ):
            if value == needy:
                raise SettingsError(
                    f"{flag} {needy} needs a GPU, and torch {torch.__version__} finds none: leave it out"
                )
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


@contextmanager
def _process_group(settings: Settings, device: torch.device) -> Iterator[None]:
    dist.init_process_group(settings.dist_backend, device_id=None if device.type == "cpu" else device)
    try:
        yield
    finally:
        dist.destroy_process_group()


def on_all_ranks(make: Callable[[], Made]) -> Made:
    """The rank's own outcome; where one rank cannot, all of them end with its reason. All ranks call it."""
    outcome: Made | SettingsError
    try:
        outcome = make()
    except SettingsError as error:
        outcome = error
    reasons = [""] * dist.get_world_size()
    dist.all_gather_object(reasons, str(outcome) if isinstance(outcome, SettingsError) else "")
    for rank, reason in enumerate(reasons):
        if reason:
            raise SettingsError(f"rank {rank}: {reason}" if rank else reason)
    assert not isinstance(outcome, SettingsError), "it has a reason"
    return outcome


class Trainer:
    """One rank of a run; made and used by its main thread, between start and end of the process group."""

    def __init__(self, settings: Settings, device: torch.device, peers: Peers, started: int) -> None:
        self.settings = settings
        self.device = device
        self.peers = peers
        self.rank = dist.get_rank()
        # Hosts may have no disk in common, so that one of them alone may lack images.
        self.feed = on_all_ranks(lambda: Feed(settings))
        self.validation = on_all_ranks(
            lambda: validation_batches(settings, self.feed.classes, peers.begin_step())
        )
        self.learner = Learner(settings, build_model(settings, len(self.feed.classes)), device)
        peers.wrap(self.learner)
        self.counters = collectives.LibraryCounters() if settings.dist_backend == "fccl" else None
        self.place = Place()
        self.history = History()
        self.best_acc1 = 0.0
        self.spent = Spent()
        self.loss_sum = torch.zeros(1, dtype=torch.float64, device=device)
        self._accounted = time.perf_counter()
        state = checkpoint.load_newest(settings)
        if state:
            self.load_state_dict(state)
        attempt = self._begin_attempt(started)
        checkpoint.remove_remains(settings.checkpoint_file)
        # Every host has the newest checkpoint from here on, and the attempt counts even if it dies early.
        self._save()
        self.samples = SampleLines(settings.samples, attempt, self.rank) if settings.samples else None

    def run(self) -> None:
        """Trains to the last step, validates after each epoch, and writes the summary."""
        self._say(
            f"{self.settings.arch}: {dist.get_world_size()} ranks over {self.settings.dist_backend} on "
            f"{self.device}, {self.feed.size} images of {len(self.feed.classes)} classes, "
            f"from step {self.place.step}"
        )
        while not self._is_done():
            share = self.peers.begin_step()
            if not self.feed.fits(self.place, share):
                self._end_epoch()
                continue
            self._step()
        if self.place.used:
            self._validate()
        self._save()
        if self.rank == 0:
            self._conclude()

    def state_dict(self) -> dict[str, Any]:
        """All that a rank needs to go on: the checkpoint's content."""
        return {
            "epoch": self.place.epoch,
            "best_acc1": self.best_acc1,
            "arch": self.settings.arch,
            **self.learner.state_dict(),
            "step": self.place.step,
            "used": self.place.used,
            "seed": self.settings.seed,
            "history": self.history.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where the state was taken."""
        self.learner.load_state_dict(state)
        self.place = Place(state["step"], state["epoch"], state["used"])
        self.best_acc1 = state["best_acc1"]
        self.history = History.from_state(state["history"])
        self.loss_sum.zero_()

    def _is_done(self) -> bool:
        return self.place.epoch >= self.settings.epochs or self.place.step == self.settings.steps

    def _step(self) -> None:
        """One step, done again until all ranks have its gradients."""
        begin = time.perf_counter()
        before = self._collective_seconds()
        while True:
            share = self.peers.begin_step()
            asked = time.perf_counter()
            batch = self.feed.next(self.place, share)
            self.spent.data += time.perf_counter() - asked
            if self.samples:
                self.samples.write(self.place, share, batch.ids)
            loss = self.learner.gradients(batch, self.place, share.part)
            if self.peers.may_update():
                break
        self.learner.update(self.place)
        self.loss_sum += loss.double() * share.images
        self.place = self.place.after(share.parts * share.images)
        self.spent.steps += time.perf_counter() - begin
        self.spent.collectives += self._collective_seconds() - before
        if self.place.step % self.settings.print_freq == 0:
            self._say(f"epoch {self.place.epoch} step {self.place.step}: loss {loss.item():.4f}")
        if self.settings.checkpoint_every and self.place.step % self.settings.checkpoint_every == 0:
            self._save()

    def _end_epoch(self) -> None:
        if not self.place.used:
            share = self.peers.begin_step()
            raise SettingsError(
                f"{self.settings.data}/train has {self.feed.size} images, and a step takes "
                f"{share.images} for each of {share.parts} ranks: choose a smaller --batch-size"
            )
        self._validate()
        self.place = self.place.in_next_epoch()
        self._accounted = time.perf_counter()
        if not self.settings.checkpoint_every:
            self._save()

    def _validate(self) -> None:
        self._account()
        self.peers.align_buffers(self.learner.model)
        counts = torch.zeros(3, dtype=torch.float64, device=self.device)
        for images, labels in self.validation:
            counts += self.learner.judge(images, labels)
        whole, first, five = self.peers.total(counts).tolist()
        epoch = self.history.epoch(self.place.epoch)
        epoch.acc1, epoch.acc5 = 100 * first / whole, 100 * five / whole
        self.best_acc1 = max(self.best_acc1, epoch.acc1)
        self._say(
            f"epoch {epoch.epoch}: loss {epoch.train_loss:.4f}, acc1 {epoch.acc1:.2f}, acc5 {epoch.acc5:.2f}"
        )

    def _account(self) -> None:
        """Adds what was done since the last call to the epoch's record, which is then alike on every rank."""
        epoch = self.history.epoch(self.place.epoch)
        now = time.perf_counter()
        epoch.seconds += now - self._accounted
        self._accounted = now
        new = self.peers.total(self.loss_sum).item()
        self.loss_sum.zero_()
        if self.place.used:
            epoch.train_loss = (epoch.train_loss * epoch.images + new) / self.place.used
        epoch.images = self.place.used

    def _save(self) -> None:
        """The first rank of every host writes, since hosts may have no disk in common."""
        if self.place.used:
            self._account()
        # The running means of BatchNorm are each rank's own, and the run may go on from any host's.
        self.peers.align_buffers(self.learner.model)
        on_all_ranks(self._write)

    def _write(self) -> None:
        if os.environ.get("LOCAL_RANK", "0") == "0":
            checkpoint.save(self.settings.checkpoint_file, self.state_dict())

    def _begin_attempt(self, started: int) -> int:
        """The number of this attempt: when rank 0 started, in Unix milliseconds."""
        told = [started]
        dist.broadcast_object_list(told)
        return self.history.begin(told[0], dist.get_world_size(), self.place.step)

    def _conclude(self) -> None:
        history = self.history.state_dict()
        facts = {
            "status": "finished",
            "attempts": len(history["attempts"]),
            "steps": self.place.step,
            "worlds": [each["world"] for each in history["attempts"]],
            "epochs": history["epochs"],
            "weights_sha256": self.learner.weights_sha256(),
            "share": self.spent.shares(self.counters is not None),
        }
        write_summary(self.settings.summary_file, facts)
        self._say(f"finished after {self.place.step} steps, see {self.settings.summary_file}")

    def _collective_seconds(self) -> float:
        return collectives.seconds(self.counters.read()) if self.counters else 0.0

    def _say(self, text: str) -> None:
        if self.rank == 0:
            print(text, flush=True)
