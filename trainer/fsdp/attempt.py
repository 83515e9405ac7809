"""Which folder a run has: a new one, or the one in which an earlier attempt of the same run has ended."""

import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import torch.distributed as dist

from trainer.fsdp import checkpoint
from trainer.fsdp.arguments import Settings, SettingsError

CONFIG, SUMMARY = "config.json", "summary.json"


@dataclass(frozen=True)
class Attempt:
    """One start of a run; the same on every rank."""

    folder: Path
    number: int
    """Rank 0's start, in Unix milliseconds: later attempts have higher numbers."""

    checkpoint: Path | None
    """Where the run goes on from, unless it begins."""


def begin_attempt(settings: Settings, shape: dict[str, Any]) -> Attempt:
    """Rank 0 chooses the folder and the checkpoint; the others learn them, or why there are none."""
    outcome: list[Any] = [None]
    if dist.get_rank() == 0:
        try:
            outcome = [_choose(settings, shape)]
        except SettingsError as error:
            outcome = [error]
    dist.broadcast_object_list(outcome)
    if isinstance(outcome[0], SettingsError):
        raise outcome[0]
    return outcome[0]


def _choose(settings: Settings, shape: dict[str, Any]) -> Attempt:
    number = time.time_ns() // 1_000_000
    launch = launch_of(os.environ.get("TORCHELASTIC_RUN_ID"))
    folder = _folder_to_go_on_in(settings, launch)
    place = checkpoint.latest(folder, shape) if folder else None
    if place is None and settings.resume:
        place = checkpoint.find(settings, shape)
    if folder is None:
        stem = f"{Path(settings.model).name}-{settings.strategy}-{settings.ranks}x"
        folder = new_folder(settings.runs, settings.name, stem)
    (folder / SUMMARY).unlink(missing_ok=True)
    config = {**asdict(settings), "launch": launch}
    (folder / CONFIG).write_text(json.dumps(config, indent=2, default=str) + "\n")
    return Attempt(folder, number, place)


def launch_of(name: str | None) -> str | None:
    """A name that tells a launch of torchrun with this id from others; restarts of its workers keep it."""
    if name != "none":
        return name
    # Launches without --rdzv-id share this name, so the launcher itself, our parent, must do.
    agent = os.getppid()
    begun = Path(f"/proc/{agent}/stat").read_text().rpartition(")")[2].split()[19]
    return f"{socket.gethostname()}-{agent}-{begun}"


def _folder_to_go_on_in(settings: Settings, launch: str | None) -> Path | None:
    if settings.name is not None:
        folder = settings.runs / settings.name
        return (
            folder if folder.exists() and (settings.auto_resume or _is_unfinished(folder, launch)) else None
        )
    begun = [file.parent for file in settings.runs.glob(f"*/{CONFIG}") if _is_unfinished(file.parent, launch)]
    return max(begun, key=lambda folder: (folder / CONFIG).stat().st_mtime, default=None)


def _is_unfinished(folder: Path, launch: str | None) -> bool:
    """Tells if an earlier attempt of this launch has ended there before the last step."""
    if launch is None or _content(folder / CONFIG).get("launch") != launch:
        return False
    return _content(folder / SUMMARY).get("status") != "finished"


def _content(file: Path) -> dict[str, Any]:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return {}


def new_folder(runs: Path, name: str | None, stem: str) -> Path:
    """Makes runs/<name>/, or a folder of a free name that begins with the stem and the time."""
    if name is not None:
        folder = runs / name
        if folder.exists():
            raise SettingsError(
                f"--name {name}: {folder} is there already; choose another name, or go on "
                f"there with --auto-resume"
            )
        folder.mkdir(parents=True)
        return folder
    stem = f"{stem}-{datetime.now():%m%d-%H%M%S}"
    for attempt in range(1, 1000):
        folder = runs / (stem if attempt == 1 else f"{stem}-{attempt}")
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            continue
    raise SettingsError(f"{runs} has a thousand runs called {stem}: give a --name")
