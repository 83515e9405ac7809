"""The daemons of the Kubernetes, which are children of this process, each with a log."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

_PAUSE = 0.1
_LAST_LINES = 5


class Daemons:
    """Starts daemons and notices when one ends."""

    def __init__(self, logs: Path) -> None:
        self._logs = logs
        self._running: dict[int, str] = {}

    def start(self, *words: str, name: str = "") -> None:
        """Starts one, away from the terminal's signals."""
        name = name or Path(words[0]).name
        with (self._logs / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self._running[process.pid] = name

    def run(self, *words: str) -> None:
        """Runs a program to its end; OSError if that is not a good one."""
        ended = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if ended.returncode != 0:
            raise OSError(f"{' '.join(words)} ended with status {ended.returncode}: {ended.stderr.strip()}")

    def await_until(self, holds: Callable[[], bool], what: str, seconds: float) -> None:
        """Returns when it holds; OSError if a daemon ends before, or if that takes too long."""
        deadline = time.monotonic() + seconds
        while not holds():
            for pid, name in self._running.items():
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    raise OSError(self._ended(name, status))
            if time.monotonic() > deadline:
                raise OSError(f"{what} for {seconds:g} s. The logs end so:\n{self._all_logs()}")
            time.sleep(_PAUSE)

    def outlast(self, command: subprocess.Popen) -> int:
        """The status of a command that runs beside them; OSError if one of them ends before it."""
        while True:
            # Processes whose parents have ended come here, too.
            pid, status = os.wait()
            if pid == command.pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            if name := self._running.get(pid):
                raise OSError(self._ended(name, status))

    def _ended(self, name: str, status: int) -> str:
        code = os.waitstatus_to_exitcode(status)
        return f"{name} ended with status {code}; its log ends so:\n{self._end_of_log(name)}"

    def _all_logs(self) -> str:
        return "\n".join(f"{name}:\n{self._end_of_log(name)}" for name in self._running.values())

    def _end_of_log(self, name: str) -> str:
        lines = (self._logs / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])
