"""Draws one_host_times.png from the table of docs/results/one_host.md: a call's time against its size."""

import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
PAGE = HERE.parent / "results" / "one_host.md"
COLLECTIVES = ("AllGather", "ReduceScatter", "AllReduce")
ROW = re.compile(r"^\| (?:(\w+) )?(\d+) (KiB|MiB) \|(.+)\|$", re.M)
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}


def rows_of(page: str) -> dict[str, list[tuple[int, float, float | None, float, float]]]:
    """Per collective: size, FCCL, FCCL's own memory, the fastest tuned MPI, and the limit; out of place."""
    table = page.partition("inputs that rotate over 64 MiB")[2].partition("\n\nUp to 16 KiB")[0]
    found: dict[str, list[tuple[int, float, float | None, float, float]]] = {}
    collective = ""
    for name, size, unit, cells in ROW.findall(table):
        collective = name or collective
        fccl, arena, peer, limit = (cell.split("/")[0].strip() for cell in cells.split("|"))
        own = None if arena == "-" else float(arena)
        row = (int(size) * UNITS[unit], float(fccl), own, float(peer), float(fccl) * float(limit))
        found.setdefault(collective, []).append(row)
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
    draw(rows_of(PAGE.read_text()), Path(sys.argv[1]) if sys.argv[1:] else HERE / "one_host_times.png")
