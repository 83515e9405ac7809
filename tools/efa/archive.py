"""The files of a run: rows, table and logs, which end in one archive."""

from __future__ import annotations

import os
import tarfile
import time
from pathlib import Path

import kept
import table


class Archive:
    """A folder that becomes fccl-efa-HOST-DATE.tar.gz."""

    def __init__(self, folder: Path, provider: str) -> None:
        self._folder = folder
        self._host = os.uname().nodename
        self._date = time.strftime("%Y%m%d-%H%M%S")
        self._about = {"host": self._host, "provider": provider, "date": time.strftime("%Y-%m-%d %H:%M:%S")}

    def file(self, name: str) -> Path:
        """A file of the archive."""
        return self._folder / name

    def note(self, what: str, text: str) -> None:
        """Adds what somebody said to the log."""
        with self.file("steps.log").open("a") as log:
            log.write(f"==== {what}\n{text.rstrip()}\n")

    def write(self, rows: list[dict]) -> None:
        """All rows so far."""
        kept.write_rows(self.file("efa.json"), self._about, rows)

    def close(self, rows: list[dict], place: Path) -> Path:
        """Writes rows and table, and packs all files."""
        self.write(rows)
        self.file("efa.txt").write_text(table.text(rows) + "\n")
        name = f"fccl-efa-{self._host}-{self._date}"
        packed = place / f"{name}.tar.gz"
        with tarfile.open(packed, "w:gz") as archive:
            archive.add(self._folder, name)
        return packed
