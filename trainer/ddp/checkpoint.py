"""A run's checkpoint: one file, replaced as a whole, and read by whichever rank has the newest."""

import contextlib
import glob
import os
import pickle
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from trainer.ddp.arguments import Settings, SettingsError

REMAINS_SECONDS = 3600
"""A file beside a checkpoint that has not grown for so long is of a rank that was killed."""


@dataclass(frozen=True)
class Found:
    """The checkpoint that a rank finds at the path: who wrote it, or what is wrong with it."""

    step: int = -1
    attempts: int = 0
    wrong: str = ""


def save(path: Path, state: dict[str, Any]) -> None:
    """Writes beside the path and renames, so that a death leaves the older checkpoint whole."""
    with _written_beside(path) as beside:
        with beside.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)


def refuse_unwritable(path: Path) -> None:
    """SettingsError where no checkpoint could be written, before any work is done."""
    with _written_beside(path) as beside:
        beside.touch()
        beside.unlink()


@contextlib.contextmanager
def _written_beside(path: Path) -> Iterator[Path]:
    """A name of this rank's own, of which nothing is left after an error."""
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
    except (OSError, RuntimeError) as error:
        with contextlib.suppress(OSError):
            beside.unlink()
        # torch hides what the system said, of a full disk for example, behind an error of its own.
        reason = error.__context__ if isinstance(error.__context__, OSError) else error
        said = getattr(reason, "strerror", None) or str(reason).splitlines()[0]
        raise SettingsError(f"--checkpoint-file {path}: could not write it: {said}") from error


def remove_remains(path: Path) -> None:
    """Removes what ranks that were killed while they wrote have left beside the path."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        # Another rank may remove it at the same time.
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > REMAINS_SECONDS:
                each.unlink()


def load_newest(settings: Settings) -> dict[str, Any] | None:
    """The newest state that any rank's host has, on every rank. All ranks call it."""
    state, own = _read(settings)
    found: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(found, own)
    for each in found:
        if each.wrong:
            raise SettingsError(each.wrong)
    newest = max(found, key=lambda each: (each.step, each.attempts))
    if newest.step < 0:
        return None
    holder = found.index(newest)
    carried = [state if dist.get_rank() == holder else None]
    dist.broadcast_object_list(carried, holder)
    return carried[0]


def _read(settings: Settings) -> tuple[dict[str, Any] | None, Found]:
    path = settings.checkpoint_file
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = Found(state["step"], len(state["history"]["attempts"]), _difference(path, state, settings))
        return state, found
    except FileNotFoundError:
        return None, Found()
    except (OSError, RuntimeError, KeyError, TypeError, EOFError, pickle.UnpicklingError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        wrong = (
            f"--checkpoint-file {path}: no checkpoint of trainer.ddp ({reason}): remove it or name another"
        )
        return None, Found(wrong=wrong)


def _difference(path: Path, state: dict[str, Any], settings: Settings) -> str:
    for key, asked in (("arch", settings.arch), ("seed", settings.seed)):
        if state[key] != asked:
            return (
                f"--checkpoint-file {path}: it is of a run with --{key} {state[key]}, and this one has "
                f"{asked}: remove the file, or name another"
            )
    return ""
