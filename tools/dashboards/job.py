"""A job of two ranks on two hosts, as FCCL counts hosts, of which one rank can be stopped or be late."""

import os
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from children import start

# Every second and a half rank 1 stands still for so many seconds.
LATE_SECONDS = 0.5
_BETWEEN_SECONDS = 1.0
_ATTEMPTS = 20
RANKS = 2
LATE = 1
_SWEEP = ["-b", "8", "-e", "4M", "-f", "64", "-n", "100", "-N", "1000000", "-c", "0"]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Job:
    """Two processes of a perf binary; their logs and the file in which they meet lie in `folder`."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.ports = [free_port() for _ in range(RANKS)]
        self._late = threading.Event()
        meeting = folder / "meeting"
        meeting.touch()
        self._ranks = [self._start(binary, rank, meeting) for rank in range(RANKS)]
        self._pacer = threading.Thread(target=self._be_late_again_and_again, daemon=True)

    def _start(self, binary: Path, rank: int, meeting: Path) -> subprocess.Popen:
        adds = {
            "FCCL_TESTS_LOCAL": f"{rank}/{RANKS}:{meeting}",
            "FCCL_HOST_ID": str(rank),
            "FCCL_METRICS_PORT": str(self.ports[rank]),
            "FCCL_SOCKET_IFNAME": "lo",
        }
        return start([str(binary), *_SWEEP], meeting.with_name(f"rank{rank}.log"), os.environ | adds)

    def be_late(self) -> None:
        """From now on rank 1 is late at times."""
        self._pacer.start()

    def stop_late_rank(self) -> None:
        """Stops rank 1 for good, in a call and not in a pause of the perf binary between its sweeps."""
        for _ in range(_ATTEMPTS):
            self._ranks[LATE].send_signal(signal.SIGSTOP)
            time.sleep(LATE_SECONDS)
            if "\nfccl_call_age_seconds{" in self._page_of_other_rank():
                return
            self._ranks[LATE].send_signal(signal.SIGCONT)
            time.sleep(LATE_SECONDS / 2)
        raise OSError(f"rank 1 was stopped {_ATTEMPTS} times, but rank 0 never waited for it in a call")

    def _page_of_other_rank(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[1 - LATE]}/metrics", timeout=5) as page:
            return page.read().decode()

    def fault(self) -> str:
        """Names a rank that ended; "" while all run."""
        for rank, process in enumerate(self._ranks):
            if process.poll() is not None:
                return f"rank {rank} of the job ended with status {process.returncode}"
        return ""

    def end(self) -> None:
        """Kills both ranks."""
        self._late.set()
        for process in self._ranks:
            process.kill()
            process.wait()

    def _be_late_again_and_again(self) -> None:
        late = self._ranks[LATE]
        while not self._late.wait(_BETWEEN_SECONDS):
            late.send_signal(signal.SIGSTOP)
            self._late.wait(LATE_SECONDS)
            late.send_signal(signal.SIGCONT)
