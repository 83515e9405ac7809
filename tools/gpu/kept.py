"""The results of a run: a folder that is carried back, and a short summary that is printed."""

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import table

MOST_CHARACTERS = 11_000  # limit of all that is printed: a carrier may keep no more than the last 12,000
MOST_OF_FAILURES = 5_000
MOST_OF_LOG = 300_000  # limit of the complaints of one probe
BAD = ("wrong", "failed")
ABOUT_SECONDS = 60
WIDTH = 220


class Folder:
    """The files of one run: its rows, its table, and the logs that all runs into this folder share."""

    def __init__(self, folder: Path, name: str):
        """Makes the folder; `name` is that of the part."""
        folder.mkdir(parents=True, exist_ok=True)
        self.rows = folder / f"{name}.json"
        self.table = folder / f"{name}.txt"
        self.log = folder / "steps.log"
        # The driver of CUDA 13 writes there why a call failed.
        os.environ.setdefault("CUDA_LOG_FILE", str((folder / "cuda.log").resolve()))

    def describe_machine(self) -> None:
        """Writes all that nvidia-smi knows, where there is one."""
        program = shutil.which("nvidia-smi")
        if program is None:
            return
        try:
            asked = subprocess.run([program, "-q"], capture_output=True, text=True, timeout=ABOUT_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.note("nvidia-smi", str(error))
            return
        self.note("nvidia-smi", asked.stdout + asked.stderr)

    def note(self, what: str, text: str) -> None:
        """Adds what somebody said to the log."""
        with self.log.open("a") as log:
            log.write(f"==== {what}\n{text[-MOST_OF_LOG:].rstrip()}\n")

    def finish(self, rows: list[dict]) -> str:
        """Writes the table, and gives what is to be printed of it."""
        self.table.write_text(table.text(rows) + "\n")
        return summary(rows, f"gpu: {len(rows)} rows in {self.rows}, the table in {self.table}")


def summary(rows: list[dict], ending: str) -> str:
    """Failures, then counts of the verdicts, then as many figures and answers as there is room for."""
    bad = [one_line(row) for row in rows if row["verdict"] in BAD]
    counts = [count_of(probe, rows) for probe in dict.fromkeys(row["probe"] for row in rows)]
    figures = [one_line(row) for row in rows if row["value"] is not None]
    answers = [one_line(row) for row in rows if row["value"] is None and row["verdict"] not in BAD]
    room = MOST_CHARACTERS - len(ending) - sum(len(line) + 1 for line in counts)
    first = fitting(bad, min(room, MOST_OF_FAILURES))
    room -= sum(len(line) + 1 for line in first)
    return "\n".join([*first, *counts, *fitting([*figures[:40], *answers], room), ending])


def fitting(lines: list[str], room: int) -> list[str]:
    """The first of these that have room, and a line that says how many have not."""
    kept: list[str] = []
    for line in lines:
        if sum(len(each) + 1 for each in kept) + len(line) > room - 40:
            return [*kept, f"... and {len(lines) - len(kept)} more"]
        kept.append(line)
    return kept


def one_line(row: dict) -> str:
    """A row on a line of its own."""
    answer = row["verdict"] if row["value"] is None else f"{table.number(row['value'])} {row['unit']}"
    line = f"{row['probe']}: {row['case']}: {row['what']}: {answer}: {row['note']}"
    return line[:WIDTH].rstrip(": ")


def count_of(probe: str, rows: Iterable[dict]) -> str:
    """How many rows of each verdict a probe has."""
    counted = Counter(row["verdict"] for row in rows if row["probe"] == probe)
    return f"{probe}: " + ", ".join(f"{count} {verdict}" for verdict, count in counted.items())


def write_rows(file: Path, about: dict, rows: list[dict]) -> None:
    """All rows so far, so that they are kept whatever comes after."""
    file.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")
