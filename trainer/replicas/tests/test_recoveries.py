"""The report of recoveries, from lines that are made up."""

import json
from pathlib import Path

from trainer.replicas.deaths import recoveries_of


def write(folder: Path, replica: int, steps: list[tuple[float, int]]) -> None:
    (folder / f"replica-{replica}").mkdir()
    lines = [
        json.dumps({"step": step, "time": time, "participants": n})
        for step, (time, n) in enumerate(steps, start=1)
    ]
    (folder / f"replica-{replica}" / "metrics.jsonl").write_text("\n".join(lines) + "\n")


def test_the_next_good_step_is_the_first_without_the_dead_replica(tmp_path: Path) -> None:
    write(tmp_path, 0, [(10.0, 2), (11.1, 2), (12.5, 1), (13.0, 1), (20.0, 2)])
    write(tmp_path, 1, [(10.0, 2), (20.5, 2)])
    (recovery,) = recoveries_of(tmp_path, 2, [(1, 11.0)])
    assert recovery == {"replica": 1, "died": 11.0, "next_good_step_seconds": 1.5, "back_seconds": 9.5}


def test_what_has_not_come_any_more_is_none(tmp_path: Path) -> None:
    write(tmp_path, 0, [(10.0, 2)])
    write(tmp_path, 1, [(10.0, 2)])
    (recovery,) = recoveries_of(tmp_path, 2, [(0, 11.0)])
    assert recovery["next_good_step_seconds"] is None and recovery["back_seconds"] is None
