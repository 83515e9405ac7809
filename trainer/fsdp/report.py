"""What a run shows and leaves: the progress bar and the files of runs/<name>/."""

import json
from collections import deque
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from tqdm import tqdm

from trainer.fsdp.arguments import Settings, SettingsError
from trainer.fsdp.collectives import Tallies

LAST_STEPS = 20
"""last_loss is the mean over so many steps, or the loss of the last one when there are no more."""


def new_folder(settings: Settings) -> Path:
    """Makes runs/<name>/, or a folder of a free name that says what is in it."""
    if settings.name is not None:
        folder = settings.runs / settings.name
        if folder.exists():
            raise SettingsError(f"--name {settings.name}: {folder} is there already; choose another name")
        folder.mkdir(parents=True)
        return folder
    model = Path(settings.model).name
    stem = f"{model}-{settings.strategy}-{settings.ranks}x-{datetime.now():%m%d-%H%M%S}"
    for attempt in range(1, 1000):
        folder = settings.runs / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
    raise SettingsError(f"{settings.runs} has a thousand runs called {stem}: give a --name")


class Report:
    """The bar and the files of one run; rank 0 has one, its main thread uses it."""

    def __init__(self, folder: Path, settings: Settings, first_step: int) -> None:
        self.folder = folder
        self._losses: list[tuple[int, float]] = []
        self._validation: list[tuple[int, float]] = []
        self._recent: deque[float] = deque(maxlen=LAST_STEPS)
        self._metrics = (folder / "metrics.jsonl").open("w", buffering=1)
        _write_json(folder / "config.json", asdict(settings))
        self._bar = tqdm(
            total=settings.steps, initial=first_step, unit="step", mininterval=0.5, dynamic_ncols=True
        )

    def say(self, text: str) -> None:
        """Prints a line above the bar."""
        self._bar.write(text)

    def step(self, metrics: dict[str, Any], tokens_per_second: float, share: float) -> None:
        """Takes one training step: a line of metrics and a move of the bar."""
        self._write(metrics)
        self._losses.append((metrics["step"], metrics["loss"]))
        self._recent.append(metrics["loss"])
        self._bar.set_postfix_str(
            f"loss {metrics['loss']:.3f}, {tokens_per_second:,.0f} tokens/s, {share:.0%} in collectives",
            refresh=False,
        )
        self._bar.update()

    def validation(self, step: int, loss: float) -> None:
        """Takes the loss on text that is not trained on."""
        self._write({"step": step, "validation_loss": loss})
        self._validation.append((step, loss))
        self.say(f"step {step}: validation loss {loss:.3f}")

    def close(self, facts: dict[str, Any], collectives: Tallies) -> dict[str, Any]:
        """Writes summary.json and loss.png; returns the summary."""
        self._bar.close()
        self._metrics.close()
        recent = list(self._recent)[-1:] if len(self._losses) <= LAST_STEPS else list(self._recent)
        summary = {
            **facts,
            "first_loss": self._losses[0][1] if self._losses else None,
            "last_loss": sum(recent) / len(recent) if recent else None,
            "collectives": {name: asdict(tally) for name, tally in collectives.items()},
        }
        _write_json(self.folder / "summary.json", summary)
        self._draw()
        return summary

    def _write(self, metrics: dict[str, Any]) -> None:
        self._metrics.write(json.dumps(metrics) + "\n")

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


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, default=str) + "\n")
