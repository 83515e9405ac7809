"""Draws one_host_times.png from docs/results/data/one_host_two_ranks.csv: a call's time against its size."""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
DATA = HERE.parent / "results" / "data" / "one_host_two_ranks.csv"
COLLECTIVES = ("AllGather", "ReduceScatter", "AllReduce")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def rows_of(file: Path) -> dict[str, list[tuple[int, float, float | None, float, float]]]:
    """Per collective: size, FCCL, FCCL's own memory, the fastest tuned MPI, and the limit; out of place."""
    found: dict[str, list[tuple[int, float, float | None, float, float]]] = {}
    for row in csv.DictReader(file.read_text().splitlines()):
        size, unit = row["size"].split()
        fccl, arena = float(row["fccl us out"]), row["fcclMemAlloc us out"]
        limit = fccl * float(row["limit / fccl out"])
        times = (fccl, float(arena) if arena else None, float(row["best peer us out"]), limit)
        found.setdefault(row["collective"], []).append((int(size) * UNITS[unit], *times))
    return found


def draw(rows: dict[str, list[tuple[int, float, float | None, float, float]]], file: Path) -> None:
    """Draws a panel for each collective, with both axes logarithmic."""
    figure, panels = plt.subplots(1, len(COLLECTIVES), figsize=(12, 3.6), sharey=True, layout="constrained")
    lines = [
        ("fastest tuned MPI", 3, "s-", "tab:gray"),
        ("FCCL, private memory", 1, "o-", "tab:blue"),
        ("FCCL, fcclMemAlloc", 2, "o-", "tab:orange"),
        ("limit: bare loops over shared memory", 4, "--", "lightgray"),
    ]
    for panel, collective in zip(panels, COLLECTIVES, strict=True):
        for label, column, mark, colour in lines:
            points = [(row[0], row[column]) for row in rows[collective] if row[column] is not None]
            panel.loglog(*zip(*points, strict=True), mark, base=2, label=label, color=colour, markersize=4)
        panel.set_yscale("log", base=10)
        panel.set_title(collective)
        panel.set_xlabel("size of the larger buffer")
        panel.set_xticks([1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 26], ["1K", "16K", "256K", "4M", "64M"])
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("us per call (lower is better)")
    panels[0].legend(fontsize=8)
    figure.suptitle("Two ranks of one host, AMD EPYC (virtual machine), float32, out of place")
    figure.savefig(file, dpi=100)


if __name__ == "__main__":
    draw(rows_of(DATA), Path(sys.argv[1]) if sys.argv[1:] else HERE / "one_host_times.png")
