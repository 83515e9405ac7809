"""The commands of docs/how_to/elastic.md run as written, on small images and an etcd of the test's."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trainer.ddp.tests.etcd_server import EtcdServer
from trainer.ddp.tests.jobs import LIMIT_SECONDS, REPOSITORY

pytest.importorskip("torchvision")
pytestmark = pytest.mark.slow

BLOCK = re.search(r"```sh\n(.*?)```", (REPOSITORY / "docs" / "how_to" / "elastic.md").read_text(), re.DOTALL)
COMMANDS = BLOCK[1].strip().splitlines() if BLOCK else []


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_trains(command: str, tmp_path: Path, data: Path, etcd: EtcdServer) -> None:
    folder = tmp_path / "images"
    folder.symlink_to(data)
    words = []
    for word in command.split():
        instead = {"python": [sys.executable], "images": [str(folder)], "etcd:2379": [etcd.endpoint]}
        instead["torchrun"] = [sys.executable, "-m", "torch.distributed.run"]
        words += instead.get(word, [word])
    checkpoint = tmp_path / "checkpoint"
    words += [
        "--image-size",
        "32",
        "--steps",
        "1",
        "--global-batch",
        "4",
        "--checkpoint-file",
        str(checkpoint),
    ]
    ended = subprocess.run(
        words,
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert ended.returncode == 0, ended.stdout[-4000:]
    summary = json.loads((tmp_path / "checkpoint.json").read_text())
    assert (summary["status"], summary["steps"], summary["worlds"]) == ("finished", 1, [2])
