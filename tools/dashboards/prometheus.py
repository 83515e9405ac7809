"""A Prometheus with the configuration and rules of deploy/metrics, on targets of its own."""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from children import start
from job import free_port

DEPLOYED = Path(__file__).resolve().parents[2] / "deploy" / "metrics"
# The targets of the deployed configuration, by the names of their jobs.
TARGETS = {"fccl": "127.0.0.1:9410", "dcgm": "127.0.0.1:9400", "efa": "127.0.0.1:9100"}
START_LIMIT = 30.0


def configuration(targets: dict[str, list[int]], interval: str | None) -> str:
    """The deployed configuration with the ports of other targets, and perhaps another interval than 5s."""
    text = (DEPLOYED / "prometheus.yml").read_text()
    for name, place in TARGETS.items():
        ports = ", ".join(f'"127.0.0.1:{port}"' for port in targets[name])
        if text.count(f'["{place}"]') != 1:
            raise ValueError(f"prometheus.yml no longer has the one target {place} of the job {name}")
        text = text.replace(f'["{place}"]', f"[{ports}]")
    return text.replace("_interval: 5s", f"_interval: {interval}") if interval else text


class Prometheus:
    """Runs until it is ended; its data lies in `folder`."""

    def __init__(
        self, program: Path, folder: Path, targets: dict[str, list[int]], interval: str | None = None
    ) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        (folder / "prometheus.yml").write_text(configuration(targets, interval))
        (folder / "rules.yml").write_text((DEPLOYED / "rules.yml").read_text())
        self._log = folder / "prometheus.log"
        self._process = start(
            [
                str(program),
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self.address}",
            ],
            self._log,
        )
        self._await_ready()

    def _await_ready(self) -> None:
        deadline = time.monotonic() + START_LIMIT
        while True:
            try:
                urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=5).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    last = self._log.read_text().splitlines()[-1:]
                    raise OSError(f"Prometheus did not start: {' '.join(last)}") from None
                time.sleep(0.1)

    def _ask(self, path: str, **parameters: str | float) -> dict:
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise ValueError(f"{parameters.get('query', path)}: {json.load(error)['error']}") from None

    def series(self, query: str, seconds: float = 60) -> list[dict]:
        """The series that a query gives for the last seconds; ValueError for one that makes no sense."""
        now = time.time()
        return self._ask("query_range", query=query, start=now - seconds, end=now, step=1)["result"]

    def alerts(self) -> list[dict]:
        """The alerts that fire now."""
        return [each for each in self._ask("alerts")["alerts"] if each["state"] == "firing"]

    def end(self) -> None:
        """Ends it."""
        self._process.kill()
        self._process.wait()
