"""Scenarios of hosts that die and come, run by the first host of a cluster: on_hosts.py SCENARIO FOLDER DATA.

The first host has etcd, and starts the agents on the others as over ssh.
"""

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
sys.path.insert(0, str(REPOSITORY))

from trainer.ddp.tests.etcd_server import EtcdServer  # noqa: E402  # found by the line above
from trainer.ddp.tests.jobs import LIMIT_SECONDS, QUICK_MEETING, Job, stop  # noqa: E402

ENTER = str(REPOSITORY / "tools" / "cluster" / "enter.py")
CLUSTER = str(REPOSITORY / "tools" / "cluster" / "cluster.py")
LEAST_EPOCHS = 24


class Hosts:
    """One job, whose agents are on hosts of the cluster that runs this."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.job = Job(folder, data, epochs=LEAST_EPOCHS)
        self.job.folder.mkdir(exist_ok=True)
        self.etcd = EtcdServer(folder, address="10.77.0.1")
        self.agents: list[subprocess.Popen] = []
        self._starts = folder / "starts"

    def start(self, host: int, least: int, most: int) -> subprocess.Popen:
        place = [
            "--rdzv-backend",
            "etcd-v3",
            "--rdzv-endpoint",
            self.etcd.endpoint,
            "--rdzv-conf",
            QUICK_MEETING,
        ]
        shape = ["--nnodes", f"{least}:{most}", "--nproc-per-node", "1", "--max-restarts", "5"]
        words = [sys.executable, "-m", "trainer.launch", *shape, *place, "--rdzv-id", "hosts"]
        words += ["-m", "trainer.ddp.tests.noted", str(self._starts), *self.job.trainer]
        command = f"cd {REPOSITORY} && exec env OMP_NUM_THREADS=1 {shlex.join(words)}"
        with (self.job.folder / "printed").open("a") as printed:
            agent = subprocess.Popen(
                [sys.executable, ENTER, f"node{host}", command], stdout=printed, stderr=subprocess.STDOUT
            )
        self.agents.append(agent)
        return agent

    def kill(self, host: int, world: int, since: int, *agents: subprocess.Popen) -> int:
        """Returns the attempt of the other hosts, and notes how long its first step was in coming."""
        began = time.monotonic()
        subprocess.run([sys.executable, CLUSTER, "host", f"node{host}", "kill"], check=True)
        attempt = self.wait_for_world(world, since, *agents)
        facts = {"next_step": time.monotonic() - began, "first_step": self._first_step_seconds}
        (self.job.folder / "recovered").write_text(json.dumps(facts))
        return attempt

    def wait_for_first_step(self, world: int, *agents: subprocess.Popen) -> int:
        """Returns the first attempt, and measures how long a worker takes to its first step."""
        attempt = self.wait_for_world(world, 0, *agents)
        started = map(float, self._starts.read_text().split())
        self._first_step_seconds = time.time() - max(started)
        return attempt

    def wait_for_world(self, world: int, since: int, *agents: subprocess.Popen) -> int:
        """Returns the attempt above `since` in which so many ranks have begun a step."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while True:
            found = [line for line in self.job.lines() if line["world"] == world and line["attempt"] > since]
            if found:
                return found[0]["attempt"]
            if time.monotonic() > deadline or any(agent.poll() is not None for agent in agents):
                raise AssertionError(f"no attempt of {world} ranks began: {self.job.printed()}")
            time.sleep(0.05)


def leave_and_join(hosts: Hosts) -> None:
    """2 -> 1 -> 2: the host of rank 0 or 1 dies, and another comes."""
    staying, dying = hosts.start(1, 1, 3), hosts.start(2, 1, 3)
    first = hosts.wait_for_first_step(2, staying, dying)
    hosts.job.wait_for_step(3, staying)
    second = hosts.kill(2, 1, first, staying)
    coming = hosts.start(3, 1, 3)
    hosts.wait_for_world(2, second, staying, coming)
    hosts.job.wait(staying, coming)


def first_of_three_dies(hosts: Hosts) -> None:
    """3 -> 2: the host dies that came first."""
    dying = hosts.start(1, 2, 3)
    staying = [hosts.start(2, 2, 3), hosts.start(3, 2, 3)]
    first = hosts.wait_for_first_step(3, dying, *staying)
    hosts.job.wait_for_step(3, *staying)
    hosts.kill(1, 2, first, *staying)
    hosts.job.wait(*staying)


SCENARIOS = {"leave_and_join": leave_and_join, "first_of_three_dies": first_of_three_dies}


def main(scenario: str, folder: str, data: str) -> None:
    """Runs the scenario on the first host; the others wait to be entered."""
    if os.environ["RANK"] != "0":
        return
    hosts = Hosts(Path(folder), Path(data))
    try:
        SCENARIOS[scenario](hosts)
    finally:
        stop(*hosts.agents)
        hosts.etcd.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
