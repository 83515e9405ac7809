"""A Slurm of one node, which is this machine, for the tests that want one."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "slurm"))
from configuration import ON_ONE_MACHINE

START_LIMIT = 60
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmctldPort={controller}
SlurmdPort={node}
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
"""


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_idle(environment: dict[str, str]) -> bool:
    said = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
    return said.stdout.strip() == "idle"


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment in which srun reaches it."""
    if os.geteuid() != 0 or not (shutil.which("slurmd") and shutil.which("slurmctld")):
        pytest.skip("a Slurm is started by root, with Debian's slurmd, slurmctld and slurm-client")
    folder = tmp_path_factory.mktemp("slurm")
    (folder / "state").mkdir()
    (folder / "spool").mkdir()
    host = socket.gethostname().split(".")[0]
    configuration = folder / "slurm.conf"
    configuration.write_text(
        (CONFIGURATION + ON_ONE_MACHINE).format(
            host=host, folder=folder, controller=free_port(), node=free_port()
        )
    )
    environment = os.environ | {"SLURM_CONF": str(configuration)}
    programs = [["slurmctld", "-D"], ["slurmd", "-D", "-N", host]]
    running = []
    try:
        for words in programs:
            with (folder / f"{words[0]}.log").open("w") as log:
                running.append(subprocess.Popen([*words, "-f", str(configuration)], stdout=log, stderr=log))
        deadline = time.monotonic() + START_LIMIT
        while not is_idle(environment):
            logs = "\n".join(path.read_text() for path in folder.glob("*.log"))
            assert time.monotonic() < deadline, f"the node was not ready after {START_LIMIT} s:\n{logs}"
            time.sleep(0.2)
        yield environment
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()
