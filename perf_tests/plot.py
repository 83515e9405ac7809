"""Draws how many times as long as FCCL its fastest peer takes, for each kind of input and each collective."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from libraries import OWN
from matplotlib import pyplot
from matplotlib.axes import Axes
from medians import PLACEMENTS, Medians

COLOURS = {"fccl": "tab:blue", "fccl_arena": "tab:orange"}
NAMES = {"fccl": "private memory", "fccl_arena": "fcclMemAlloc"}
STYLES = {"out_of_place": "-", "in_place": "--"}


def size_text(size: float, _: object = None) -> str:
    for unit, shift in (("M", 20), ("K", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):g}{unit}"
    return f"{size:g}"


def draw_one(axes: Axes, medians: Medians, inputs: str, collective: str) -> None:
    for own in (name for name in OWN if name in COLOURS):
        for placement in PLACEMENTS:
            cells = medians.cells(inputs, collective, placement)
            found = [(cell.size, best.ratio) for cell in cells if (best := medians.best(cell, own))]
            if found:
                label = f"{NAMES[own]}, {placement.replace('_', ' ')}"
                axes.plot(*zip(*found, strict=True), STYLES[placement], color=COLOURS[own], label=label)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.xaxis.set_major_formatter(size_text)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_title(f"{collective}, inputs {inputs}")
    axes.grid(alpha=0.3)


def draw(medians: Medians, inputs: list[str], collectives: list[str], path: Path) -> None:
    """Writes the picture; the format is that of the name."""
    rows, columns = len(inputs), len(collectives)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(5 * columns, 3.6 * rows), squeeze=False, sharey=True
    )
    for row, kind in zip(grid, inputs, strict=True):
        for axes, collective in zip(row, collectives, strict=True):
            draw_one(axes, medians, kind, collective)
        row[0].set_ylabel("best peer / FCCL")
    grid[0][0].legend(fontsize="small")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
