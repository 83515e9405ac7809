"""Draws the charts: throughput, epoch time, memory, share of collectives; and the predicted efficiency."""

from collections.abc import Callable
from itertools import groupby
from pathlib import Path

from trainer.scaling.arguments import INSTANCES
from trainer.scaling.rows import Row

PUBLISHED = {"instance": INSTANCES["p5"], "nodes": 16, "efficiency": 0.87}
"""AWS's figure for Llama-2 by FSDP over NCCL."""


def draw_measured(path: Path, rows: list[Row], cores: int) -> None:
    """Four charts in one picture, a line for each number of rails."""
    pyplot = _pyplot()
    figure, places = pyplot.subplots(2, 2, figsize=(11, 8))
    emulated = "emulated, " if any(row["emulated"] for row in rows) else ""
    drawn = (
        ("tokens per second", lambda row: row["per_second"]),
        ("seconds of an epoch", lambda row: row["epoch_seconds"]),
        ("MiB of state per rank", lambda row: row["state_bytes_per_rank"] / 2**20),
        ("percent of a step in collectives", lambda row: row["collective_share"] * 100),
    )
    for axes, (name, value) in zip(places.flat, drawn, strict=True):
        _lines(axes, rows, value)
        axes.set(xlabel="ranks", ylabel=name, title=f"{name} ({emulated}{cores} cores)", ylim=(0, None))
    first = [row for row in rows if row["rails"] == rows[0]["rails"]]
    places[0][0].plot([row["ranks"] for row in first], [row["ideal"] for row in first], "k--", label="ideal")
    _finish(figure, places.flat, path)


def draw_predicted(path: Path, rows: list[Row]) -> None:
    """The efficiency of each kind of instance, between no overlap and full overlap, and AWS's point."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for instance, group in groupby(rows, key=lambda row: row["instance"]):
        each = list(group)
        nodes = [row["nodes"] for row in each]
        low, high = ([row[f"efficiency_{kind}_overlaps"] for row in each] for kind in ("nothing", "all"))
        line = axes.plot(nodes, low, marker="o", label=f"{instance}, nothing overlaps")[0]
        axes.fill_between(nodes, low, high, alpha=0.2, color=line.get_color())
    axes.plot(
        PUBLISHED["nodes"],
        PUBLISHED["efficiency"],
        "k*",
        markersize=12,
        label="published by AWS: 87 %, p5, NCCL",
    )
    axes.set(
        xlabel="nodes", ylabel="efficiency", title="predicted: Llama-2 7B, full_shard, bf16", ylim=(0, 1.05)
    )
    _finish(figure, [axes], path)


def _lines(axes: object, rows: list[Row], value: Callable[[Row], float]) -> None:
    for rails, group in groupby(rows, key=lambda row: row["rails"]):
        each = list(group)
        label = f"{rails} rails" if rails else "one host"
        axes.plot([row["ranks"] for row in each], list(map(value, each)), marker="o", label=label)


def _pyplot() -> object:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _finish(figure: object, places: object, path: Path) -> None:
    for axes in places:
        axes.grid(alpha=0.3)
        axes.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    _pyplot().close(figure)
