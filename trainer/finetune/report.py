"""The reports of a run: lines on the screen, metrics.jsonl and summary.json."""

import json
from pathlib import Path
from typing import Any

METRICS, SUMMARY = "metrics.jsonl", "summary.json"


class Report:
    """The files of one run in its output_dir; rank 0 has one."""

    def __init__(self, folder: Path, attempt: int, done: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._attempt = attempt
        kept = _lines_up_to(folder / METRICS, done) if done else []
        (folder / SUMMARY).unlink(missing_ok=True)
        (folder / f"{METRICS}.new").write_text("".join(kept))
        (folder / f"{METRICS}.new").rename(folder / METRICS)
        self._metrics = (folder / METRICS).open("a", buffering=1)

    def say(self, text: str) -> None:
        """Prints a line."""
        print(text, flush=True)

    def step(self, metrics: dict[str, Any]) -> None:
        """Takes one step of the optimizer."""
        self._metrics.write(json.dumps({"attempt": self._attempt, **metrics}) + "\n")

    def close(self, summary: dict[str, Any]) -> None:
        """Writes the summary."""
        self._metrics.close()
        (self._folder / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")


def _lines_up_to(file: Path, step: int) -> list[str]:
    """The lines of an earlier attempt's steps that count; its death may have cut the last one."""
    kept = []
    for line in file.read_text().splitlines(keepends=True) if file.exists() else []:
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except ValueError:
            break
    return kept
