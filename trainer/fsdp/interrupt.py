"""Ends a run on Ctrl-C: at once while it starts, after the step in hand while it trains."""

import ctypes
import os
import signal
from types import FrameType

PR_SET_PDEATHSIG = 1
INTERRUPTED = 128 + signal.SIGINT


class Interrupt:
    """Notes if this process was asked to stop; one per process, made by its main thread."""

    def __init__(self) -> None:
        self.asked = False
        self._training = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)

    def finish_the_step(self) -> None:
        """From here on a signal only sets `asked`: the ranks must agree on the step they stop after."""
        self._training = True

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._training:
            os._exit(INTERRUPTED)
        self.asked = True


def die_with_the_launcher() -> None:
    """Under torchrun, makes the kernel end this process when torchrun is gone, even if it was killed."""
    if "TORCHELASTIC_RUN_ID" in os.environ:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
