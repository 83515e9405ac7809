"""Draws a run: its loss, the time of its steps, its speed, and the share of time in collectives."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

# The name in a line of metrics, the axis, and how many of its units are one of the line's.
PANELS = (
    ("loss", "loss (nats per token)", 1),
    ("seconds", "step time (ms)", 1000),
    ("tokens_per_second", "tokens/s", 1),
    ("collective_share", "share of step in collectives (%)", 100),
)


def draw(file: Path, title: str, lines: list[dict[str, Any]]) -> None:
    """Writes the figure of these lines of metrics as a PNG file."""
    figure_of(title, lines).savefig(file, dpi=120)


def figure_of(title: str, lines: list[dict[str, Any]]) -> Figure:
    """A panel for each of PANELS, all over the steps; the first one has the validation loss, too."""
    figure = Figure(figsize=(10, 6.5), layout="constrained")
    figure.suptitle(title)
    for axes, (name, label, factor) in zip(figure.subplots(2, 2).flat, PANELS, strict=True):
        measured = [(line["step"], line[name] * factor) for line in lines if name in line]
        if measured:
            axes.plot(*zip(*measured, strict=True), label="training")
        if name == "loss":
            _add_validation(axes, lines)
        else:
            axes.set_ylim(bottom=0)
        axes.set(xlabel="step", ylabel=label)
        axes.grid(alpha=0.3)
    return figure


def _add_validation(axes: Any, lines: list[dict[str, Any]]) -> None:
    validation = [(line["step"], line["validation_loss"]) for line in lines if "validation_loss" in line]
    if validation:
        axes.plot(*zip(*validation, strict=True), label="validation", marker="o")
    if lines:
        axes.legend()
