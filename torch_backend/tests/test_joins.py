"""Agents that join a running job by each rendezvous, under plain torchrun where that can serve them."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("urllib3")
ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from trainer.ddp.tests.etcd_server import EtcdServer  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.every_torch]

LIMIT_SECONDS = 200
TORCHRUN, LAUNCH = "torch.distributed.run", "trainer.launch"
# Loads no torch: what matters is whether the agents meet, and where they say that rank 0 is.
RANK = """
import os, sys, time
told = [os.environ[name] for name in ("WORLD_SIZE", "RANK", "MASTER_ADDR", "MASTER_PORT")]
with open(sys.argv[1], "a") as file:
    file.write(" ".join(told) + "\\n")
agent = os.getppid()
while told[0] == "1" and os.getppid() == agent:
    time.sleep(0.1)  # until the agent starts it anew beside another
"""


@pytest.fixture(scope="module")
def etcd(tmp_path_factory):
    server = EtcdServer(tmp_path_factory.mktemp("etcd"), "--enable-v2")
    yield server
    server.stop()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(launcher, backend, endpoint, folder):
    words = ["--nnodes", "1:2", "--nproc-per-node", "1", "--monitor-interval", "0.2"]
    words += ["--rdzv-backend", backend, "--rdzv-endpoint", endpoint, "--rdzv-id", folder.name]
    words += ["--rdzv-conf", "last_call_timeout=1", str(folder / "rank.py"), str(folder / "told")]
    environment = {name: value for name, value in os.environ.items() if "RDZV_TCP_STORE" not in name}
    with (folder / "printed").open("a") as printed:
        return subprocess.Popen(
            [sys.executable, "-m", launcher, *words],
            cwd=ROOT,
            env=environment | {"OMP_NUM_THREADS": "1"},
            stdout=printed,
            stderr=subprocess.STDOUT,
        )


@pytest.mark.parametrize(
    ("launcher", "backend"),
    [(TORCHRUN, "etcd-v3"), (TORCHRUN, "etcd"), (LAUNCH, "etcd-v2"), (LAUNCH, "c10d")],
)
def test_an_agent_that_joins_makes_all_start_anew_with_one_first_rank(tmp_path, etcd, launcher, backend):
    (tmp_path / "rank.py").write_text(RANK)
    told = tmp_path / "told"
    told.touch()
    place = launcher, backend, f"127.0.0.1:{free_port()}" if backend == "c10d" else etcd.endpoint, tmp_path
    agents = [start(*place)]
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not told.read_text():
            assert agents[0].poll() is None and time.monotonic() < deadline, (
                tmp_path / "printed"
            ).read_text()
            time.sleep(0.05)
        agents.append(start(*place))
        assert [agent.wait(LIMIT_SECONDS) for agent in agents] == [0, 0], (tmp_path / "printed").read_text()
    finally:
        for agent in agents:
            agent.kill()
    *alone, one, other = [line.split() for line in told.read_text().splitlines()]
    both = [one, other]
    # The first agent meets alone once more where the other is late for the last call.
    assert alone and all(line[:2] == ["1", "0"] for line in alone)
    assert sorted(line[:2] for line in both) == [["2", "0"], ["2", "1"]]
    assert len({(address, port) for _, _, address, port in both}) == 1
