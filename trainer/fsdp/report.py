"""The reports of a run: the progress bar and the files of runs/<name>/."""

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from trainer.fsdp.arguments import Settings
from trainer.fsdp.attempt import SUMMARY, Attempt
from trainer.fsdp.collectives import Tallies

METRICS = "metrics.jsonl"
FIGURE = "loss.png"
SECONDS_BETWEEN_LINES = 30
"""Where there is no terminal for a bar, a line tells of the last step this often."""
LAST_STEPS = 20
"""last_loss is the mean over so many steps, or the loss of the last one when there are no more."""


class Report:
    """The bar and the files of one run; rank 0 has one, its main thread uses it."""

    def __init__(self, attempt: Attempt, settings: Settings, first_step: int) -> None:
        self.folder = attempt.folder
        self._attempt = attempt.number
        self._title = title_of(settings, self.folder)
        self._lines = _history(self.folder / METRICS, first_step)
        beside = self.folder / f"{METRICS}.new"
        beside.write_text("".join(json.dumps(line) + "\n" for line in self._lines))
        beside.rename(self.folder / METRICS)
        self._metrics = (self.folder / METRICS).open("a", buffering=1)
        self._events = _events(self.folder, first_step) if settings.tensorboard else None
        self._said = time.monotonic()
        self._bar = tqdm(
            total=settings.steps,
            initial=first_step,
            unit="step",
            mininterval=0.5,
            dynamic_ncols=True,
            disable=not sys.stderr.isatty(),
        )

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._bar.write(text)

    def step(self, metrics: dict[str, Any], tokens_per_second: float, share: float) -> None:
        """Takes one training step: a line of metrics and a move of the bar."""
        self._write(metrics)
        text = f"loss {metrics['loss']:.3f}, {tokens_per_second:,.0f} tokens/s, {share:.0%} in collectives"
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update()
        if self._bar.disable and time.monotonic() - self._said >= SECONDS_BETWEEN_LINES:
            self.say(f"step {metrics['step']} of {self._bar.total}: {text}")
            self._said = time.monotonic()

    def validation(self, step: int, loss: float) -> None:
        """Takes the loss on text that is not trained on."""
        self._write({"step": step, "validation_loss": loss})
        self.say(f"step {step}: validation loss {loss:.3f}")

    def close(self, facts: dict[str, Any], collectives: Tallies) -> dict[str, Any]:
        """Writes summary.json and loss.png; returns the summary."""
        self._bar.close()
        self._metrics.close()
        if self._events:
            self._events.close()
        losses = [line["loss"] for line in self._lines if "loss" in line]
        recent = losses[-LAST_STEPS:] if len(losses) > LAST_STEPS else losses[-1:]
        attempts = {line["attempt"] for line in self._lines if "attempt" in line} | {self._attempt}
        summary = {
            **facts,
            "attempts": len(attempts),
            "first_loss": losses[0] if losses else None,
            "last_loss": sum(recent) / len(recent) if recent else None,
            "collectives": {name: asdict(tally) for name, tally in collectives.items()},
        }
        (self.folder / SUMMARY).write_text(json.dumps(summary, indent=2, default=str) + "\n")
        from trainer.fsdp.figure import draw  # after training, which does not wait for matplotlib then

        draw(self.folder / FIGURE, self._title, self._lines)
        return summary

    def _write(self, metrics: dict[str, Any]) -> None:
        line = {**metrics, "attempt": self._attempt}
        self._lines.append(line)
        self._metrics.write(json.dumps(line) + "\n")
        if self._events:
            self._events.add(metrics)


def title_of(settings: Settings, folder: Path) -> str:
    """Names the model, how it is sharded and among whom, and the run."""
    ways = [settings.strategy]
    if settings.strategy == "hybrid_shard":
        ways = [f"hybrid_shard of {settings.shard_degree}"]
    if settings.fsdp1:
        ways.append("FullyShardedDataParallel")
    if settings.tensor_parallel > 1:
        ways.append(f"tensor parallel {settings.tensor_parallel}")
    model = Path(settings.model).name
    return f"{model}, {', '.join(ways)}, {settings.ranks} ranks over {settings.backend}: {folder.name}"


def _events(folder: Path, first_step: int) -> Any:
    from trainer.fsdp.events import Events  # which wants a package that other runs do not

    return Events(folder, first_step)


def _history(file: Path, last_step: int) -> list[dict[str, Any]]:
    """The metrics that earlier attempts wrote for the steps that are not done again."""
    if not file.exists():
        return []
    # An attempt that was killed may have left half a line.
    lines = [line for line in file.read_text().split("\n")[:-1] if line.endswith("}")]
    return [metrics for metrics in map(json.loads, lines) if metrics["step"] <= last_step]
