"""Draws a comparison: us and GB/s of each library, and the fastest peer's time over FCCL's."""

import datetime
import platform
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from libraries import OWN
from matplotlib import pyplot
from matplotlib.axes import Axes
from medians import PLACEMENTS, Cell, Medians

NAMES = {"fccl": "FCCL, private memory", "fccl_arena": "FCCL, fcclMemAlloc", "limit": "limit of the machine"}
COLOURS = {"fccl": "tab:blue", "fccl_arena": "tab:orange", "limit": "lightgray"}
OTHERS = ["tab:green", "tab:red", "tab:purple", "tab:brown", "tab:gray"]
MARKS = {"out_of_place": "o-", "in_place": "s--"}
TIME, RATE, RATIO = "us per call (lower is better)", "GB/s of the larger buffer", "fastest peer / FCCL"
Point = tuple[int, float]


def size_text(size: float, _: object = None) -> str:
    for unit, shift in (("M", 20), ("K", 10)):
        if size >= 1 << shift:
            return f"{size / (1 << shift):g}{unit}"
    return f"{size:g}"


def machine() -> str:
    """The processor, the commit and the day, for the title."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    try:
        asked = ["git", "rev-parse", "--short=8", "HEAD"]
        commit = "commit " + subprocess.check_output(asked, cwd=Path(__file__).parent, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        commit = "no commit known"
    return f"{found[1] if found else platform.machine()}, {commit}, {datetime.date.today()}"


def points_of(cells: list[Cell], value: Callable[[Cell], float | None]) -> list[Point]:
    return [(cell.size, found) for cell in cells if (found := value(cell)) is not None]


def draw_times(axes: Axes, medians: Medians, cells: list[Cell], as_rate: bool) -> None:
    """One line for each library, out of place."""
    libraries = sorted({library for cell in cells for library in medians.libraries(cell)})
    others = dict(zip([each for each in libraries if each not in COLOURS], OTHERS, strict=False))
    for library in libraries:

        def value(cell: Cell, library: str = library) -> float | None:
            time = medians.median(cell, library)
            return cell.size / time / 1e3 if time and as_rate else time

        if points := points_of(cells, value):
            colour = COLOURS.get(library) or others.get(library)
            label = NAMES.get(library, library)
            axes.plot(*zip(*points, strict=True), "o-", color=colour, label=label, markersize=4)
    axes.set_yscale("log", base=10)


def draw_ratios(axes: Axes, medians: Medians, inputs: str, collective: str) -> None:
    for own in (name for name in OWN if name in COLOURS):
        for placement in PLACEMENTS:
            cells = medians.cells(inputs, collective, placement)
            best = {cell: medians.best(cell, own) for cell in cells}
            points = points_of(cells, lambda cell, best=best: best[cell].ratio if best[cell] else None)
            if points:
                label = f"{NAMES[own]}, {placement.replace('_', ' ')}"
                axes.plot(
                    *zip(*points, strict=True),
                    MARKS[placement],
                    color=COLOURS[own],
                    label=label,
                    markersize=4,
                )
    axes.axhline(1, color="black", linewidth=0.8)
    axes.annotate("above 1: FCCL is faster", (0.02, 0.93), xycoords="axes fraction", fontsize="small")
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter("{x:g}")


def draw(medians: Medians, inputs: list[str], collectives: list[str], path: Path) -> None:
    """Writes three panels for each kind of input and collective; the format is that of the name."""
    rows = [(kind, what) for kind in inputs for what in (TIME, RATE, RATIO)]
    figure, grid = pyplot.subplots(
        len(rows),
        len(collectives),
        figsize=(5 * len(collectives), 3.4 * len(rows)),
        squeeze=False,
        sharey="row",
    )
    for panels, (kind, what) in zip(grid, rows, strict=True):
        for axes, collective in zip(panels, collectives, strict=True):
            if what == RATIO:
                draw_ratios(axes, medians, kind, collective)
            else:
                draw_times(axes, medians, medians.cells(kind, collective, "out_of_place"), what == RATE)
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(size_text)
            axes.set(title=f"{collective}, inputs {kind}", xlabel="size of the larger buffer (bytes)")
            axes.grid(alpha=0.3)
        panels[0].set_ylabel(what)
        if panels[0].get_legend_handles_labels()[0]:
            panels[0].legend(fontsize="small")
    figure.suptitle(f"FCCL beside other libraries: {machine()}")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
