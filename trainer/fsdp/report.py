"""The reports of a run: the progress bar and the files of runs/<name>/."""

import json
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from trainer.fsdp.arguments import Settings
from trainer.fsdp.attempt import SUMMARY, Attempt
from trainer.fsdp.collectives import Tallies

METRICS = "metrics.jsonl"
LAST_STEPS = 20
"""last_loss is the mean over so many steps, or the loss of the last one when there are no more."""


class Report:
    """The bar and the files of one run; rank 0 has one, its main thread uses it."""

    def __init__(self, attempt: Attempt, settings: Settings, first_step: int) -> None:
        self.folder = attempt.folder
        self._attempt = attempt.number
        self._losses: list[tuple[int, float]] = []
        self._validation: list[tuple[int, float]] = []
        self._recent: deque[float] = deque(maxlen=LAST_STEPS)
        history = _history(self.folder / METRICS, first_step)
        for line in history:
            self._take(line)
        self._attempts = {line["attempt"] for line in history if "attempt" in line} | {attempt.number}
        beside = self.folder / f"{METRICS}.new"
        beside.write_text("".join(json.dumps(line) + "\n" for line in history))
        beside.rename(self.folder / METRICS)
        self._metrics = (self.folder / METRICS).open("a", buffering=1)
        self._bar = tqdm(
            total=settings.steps, initial=first_step, unit="step", mininterval=0.5, dynamic_ncols=True
        )

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._bar.write(text)

    def step(self, metrics: dict[str, Any], tokens_per_second: float, share: float) -> None:
        """Takes one training step: a line of metrics and a move of the bar."""
        self._write(metrics)
        self._bar.set_postfix_str(
            f"loss {metrics['loss']:.3f}, {tokens_per_second:,.0f} tokens/s, {share:.0%} in collectives",
            refresh=False,
        )
        self._bar.update()

    def validation(self, step: int, loss: float) -> None:
        """Takes the loss on text that is not trained on."""
        self._write({"step": step, "validation_loss": loss})
        self.say(f"step {step}: validation loss {loss:.3f}")

    def close(self, facts: dict[str, Any], collectives: Tallies) -> dict[str, Any]:
        """Writes summary.json and loss.png; returns the summary."""
        self._bar.close()
        self._metrics.close()
        recent = list(self._recent)[-1:] if len(self._losses) <= LAST_STEPS else list(self._recent)
        summary = {
            **facts,
            "attempts": len(self._attempts),
            "first_loss": self._losses[0][1] if self._losses else None,
            "last_loss": sum(recent) / len(recent) if recent else None,
            "collectives": {name: asdict(tally) for name, tally in collectives.items()},
        }
        (self.folder / SUMMARY).write_text(json.dumps(summary, indent=2, default=str) + "\n")
        self._draw()
        return summary

    def _write(self, metrics: dict[str, Any]) -> None:
        self._take(metrics)
        self._metrics.write(json.dumps({**metrics, "attempt": self._attempt}) + "\n")

    def _take(self, metrics: dict[str, Any]) -> None:
        if "loss" in metrics:
            self._losses.append((metrics["step"], metrics["loss"]))
            self._recent.append(metrics["loss"])
        else:
            self._validation.append((metrics["step"], metrics["validation_loss"]))

    def _draw(self) -> None:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4))
        for points, label in ((self._losses, "training"), (self._validation, "validation")):
            if points:
                axes.plot(
                    *zip(*points, strict=True), label=label, marker="o" if label == "validation" else None
                )
        axes.set(xlabel="step", ylabel="loss (nats per token)", title=self.folder.name)
        axes.grid(alpha=0.3)
        if self._losses:
            axes.legend()
        figure.tight_layout()
        figure.savefig(self.folder / "loss.png", dpi=120)
        pyplot.close(figure)


def _history(file: Path, last_step: int) -> list[dict[str, Any]]:
    """The metrics that earlier attempts wrote for the steps that are not done again."""
    if not file.exists():
        return []
    # An attempt that was killed may have left half a line.
    lines = [line for line in file.read_text().split("\n")[:-1] if line.endswith("}")]
    return [metrics for metrics in map(json.loads, lines) if metrics["step"] <= last_step]
