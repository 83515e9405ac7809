"""Starts processes that the kernel kills when the one that started them ends, in whatever way."""

from __future__ import annotations

import ctypes
import signal
import subprocess
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_C = ctypes.CDLL(None)


def die_with_parent() -> None:
    """Runs in a new process, before its program."""
    _C.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def start(words: list[str], variables: dict, folder: Path, name: str | int) -> subprocess.Popen:
    """Starts a process in a session of its own, which writes into NAME.out and NAME.err of the folder."""
    with (folder / f"{name}.out").open("wb") as said, (folder / f"{name}.err").open("wb") as complained:
        return subprocess.Popen(
            words,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=complained,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
