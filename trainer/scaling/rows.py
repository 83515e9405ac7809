"""Makes the rows of a chart from what runs came to."""

import csv
import json
import statistics
from pathlib import Path
from typing import Any

from trainer.scaling.sizes import Measured, Size

Row = dict[str, Any]


def rows_of(measured: dict[Size, list[Measured]], compute: float) -> list[Row]:
    """One row a size, the first of which has the efficiency 1; of several turns the median."""
    rows = [_row(size, turns, compute) for size, turns in measured.items()]
    first = rows[0]
    for row in rows:
        row["ideal"] = first["per_second"] * row["ranks"] / first["ranks"]
        row["efficiency"] = row["per_second"] / row["ideal"]
    return rows


def _row(size: Size, turns: list[Measured], compute: float) -> Row:
    def median(name: str) -> float:
        return statistics.median(getattr(turn, name) for turn in turns)

    per_second = median("tokens_per_step") / median("step_seconds")
    return {
        "hosts": size.hosts,
        "ranks": size.ranks,
        "rails": size.rails,
        "emulated": size.rails > 0 or compute > 0,
        "per_second": per_second,
        "efficiency": None,
        "ideal": None,
        "epoch_seconds": median("epoch_tokens") / per_second,
        "step_seconds": median("step_seconds"),
        "compute_seconds": compute,
        "state_bytes_per_rank": int(median("state_bytes_per_rank")),
        "peak_bytes_per_rank": int(median("peak_bytes_per_rank")),
        "collective_share": median("collective_share"),
        "bytes_per_host": int(median("bytes_per_host")),
    }


def write(folder: Path, stem: str, rows: list[Row], facts: dict[str, Any]) -> None:
    """The rows as STEM.json, beside what holds for all of them, and as STEM.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.json").write_text(json.dumps({**facts, "rows": rows}, indent=2) + "\n")
    with (folder / f"{stem}.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)
