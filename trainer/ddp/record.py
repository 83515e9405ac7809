"""Records that a run leaves beside its checkpoint: who took which images, and a summary at the end."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from trainer.ddp.data import Place, Share


@dataclass
class Epoch:
    """One epoch so far. train_loss is the mean over its images; acc1 and acc5 are percent of DIR/val."""

    epoch: int
    images: int = 0
    seconds: float = 0.0
    train_loss: float = 0.0
    acc1: float = 0.0
    acc5: float = 0.0


@dataclass
class History:
    """Every start of the run and every epoch; part of the checkpoint."""

    attempts: list[dict[str, int]] = field(default_factory=list)
    epochs: list[Epoch] = field(default_factory=list)

    def begin(self, attempt: int, world: int, step: int) -> int:
        """Notes a start; returns the attempt's number, which is above all earlier ones."""
        last = self.attempts[-1]["attempt"] if self.attempts else 0
        attempt = max(attempt, last + 1)
        self.attempts.append({"attempt": attempt, "world": world, "step": step})
        return attempt

    def epoch(self, number: int) -> Epoch:
        """The record of this epoch, which is the last one or a new one."""
        if not self.epochs or self.epochs[-1].epoch != number:
            self.epochs.append(Epoch(number))
        return self.epochs[-1]

    def state_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "History":
        return cls(state["attempts"], [Epoch(**each) for each in state["epochs"]])


class SampleLines:
    """attempt-A.rank-R.jsonl: a line a step, before the step's first collective."""

    def __init__(self, folder: Path, attempt: int, rank: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._who = (attempt, rank)
        self._file = (folder / f"attempt-{attempt}.rank-{rank}.jsonl").open("a", buffering=1)

    def write(self, place: Place, share: Share, ids: list[int]) -> None:
        attempt, rank = self._who
        line = {
            "attempt": attempt,
            "epoch": place.epoch,
            "step": place.step,
            "world": share.parts,
            "rank": rank,
        }
        line["ids"] = ids
        self._file.write(json.dumps(line) + "\n")


@dataclass
class Spent:
    """Seconds of this attempt's steps on this rank."""

    steps: float = 0.0
    data: float = 0.0
    collectives: float = 0.0

    def shares(self, counted: bool) -> dict[str, float | None]:
        """Parts of the whole; calls that run behind the backward pass count as collectives."""
        whole = self.steps or 1.0
        data, collectives = self.data / whole, min(self.collectives, self.steps - self.data) / whole
        if not counted:
            return {"data": data, "compute": None, "collectives": None}
        return {"data": data, "compute": max(0.0, 1 - data - collectives), "collectives": collectives}


def write_summary(path: Path, facts: dict[str, Any]) -> None:
    """The checkpoint's path with .json after it."""
    path.write_text(json.dumps(facts, indent=2) + "\n")
