"""Starts processes that the kernel kills when this one ends, in whatever way."""

import ctypes
import signal
import subprocess
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_C = ctypes.CDLL(None)


def start(words: list[str], log: Path, environment: dict[str, str] | None = None) -> subprocess.Popen:
    """Starts a process that writes into a log."""
    with log.open("w") as output:
        return subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: _C.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
        )
