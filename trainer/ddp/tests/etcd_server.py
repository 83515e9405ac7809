"""An etcd of a test's own, out of Debian's unpacked package or of PATH, that ends with the test."""

import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest

UNPACKED = Path(__file__).parents[3] / "build" / "etcd" / "usr" / "bin" / "etcd"
START_SECONDS = 60


class EtcdServer:
    """Runs on a free port of `address`; may be stopped for a while, and loses nothing then.

    `protocol` is https where the options name certificates.
    """

    def __init__(
        self, folder: Path, *options: str, address: str = "127.0.0.1", protocol: str = "http"
    ) -> None:
        program = str(UNPACKED) if UNPACKED.exists() else shutil.which("etcd")
        if program is None:
            pytest.skip("needs etcd, which .ci/setup.sh fetches into build/etcd")
        self.endpoint = f"{address}:{_free_port()}"
        served = f"{protocol}://{self.endpoint}"
        peers, self._health = (f"http://127.0.0.1:{_free_port()}" for _ in range(2))
        self._command = [program, "--data-dir", str(folder / "etcd"), "--logger", "zap", *options]
        self._command += ["--listen-client-urls", served, "--advertise-client-urls", served]
        self._command += ["--listen-metrics-urls", self._health, "--listen-peer-urls", peers]
        self._command += ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"]
        self._log = folder / "etcd.log"
        self.start()

    def start(self) -> None:
        """Returns when it serves."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while not self._serves():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise AssertionError(f"etcd does not serve: {self._log.read_text()[-2000:]}")
            time.sleep(0.05)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def _serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._health}/health", timeout=2) as answer:
                return b'"true"' in answer.read()
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
