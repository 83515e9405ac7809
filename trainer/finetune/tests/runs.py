"""Runs of the trainer on ranks that are forked, each made once and looked at by several tests."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets  # noqa: F401  (loaded before the fork, so that no rank has to)

from trainer.finetune import (
    __main__ as entry,
)
from trainer.finetune import (
    training,  # noqa: F401  (likewise)
)
from trainer.finetune.tests.folders import write_alpaca, write_model
from trainer.fsdp.tests.runs import BACKEND, on_ranks

EXACT = ["--precision", "fp64", "--optimizer", "SGD", "--lr", "0.05", "--num_workers_dataloader", "0"]
LENGTH = 96
SHORT = ["--dataset", "alpaca_dataset", "--context_length", str(LENGTH), "--batch_size_training", "2"]


@dataclass(frozen=True)
class Run:
    """The files that one run left."""

    folder: Path

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "summary.json").read_text())

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]


class Runs:
    """Makes runs that tune the tiny model on a few instructions; one per test session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = write_model(folder / "tiny")
        self.data = write_alpaca(folder / "alpaca.json")
        self._done: dict[tuple[int, str], Run] = {}

    def words(self, name: str, arguments: str) -> list[str]:
        """The command line of a run that leaves its files in a folder of this name."""
        place = [
            "--model_name",
            str(self.model),
            "--output_dir",
            str(self.folder / name),
            "--data_path",
            str(self.data),
        ]
        return [*place, *SHORT, *EXACT, "--backend", BACKEND, *arguments.split()]

    def of(self, ranks: int, arguments: str) -> Run:
        """The run with these arguments; 0 ranks are one process without a process group."""
        if (ranks, arguments) not in self._done:
            name = f"run-{len(self._done)}"
            words = self.words(name, arguments) + (["--enable_fsdp"] if ranks else [])
            on_ranks(max(1, ranks), self.folder / f"{name}.log", lambda: _on_one_core(words))
            self._done[ranks, arguments] = Run(self.folder / name)
        return self._done[ranks, arguments]


def _on_one_core(words: list[str]) -> int:
    # A forked rank must not start threads of OpenMP, and it starts as many as it has cores.
    if os.environ["WORLD_SIZE"] == "1":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    return entry.main(words)
