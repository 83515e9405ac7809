"""The commands of docs/how_to/replicas.md run as written, on small models and images."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.ddp.tests.images import four_colours

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 500
BLOCK = re.search(r"```sh\n(.*?)```", (ROOT / "docs" / "how_to" / "replicas.md").read_text(), re.DOTALL)
COMMANDS = BLOCK[1].strip().splitlines() if BLOCK else []
SMALL = {
    "trainer.fsdp": ["--layers", "1", "--hidden", "64", "--seq-len", "32", "--steps", "2"],
    "trainer.ddp": ["--image-size", "64", "--steps", "2"],
}


@pytest.fixture
def lighthouse() -> Iterator[str]:
    from torchft.coordination import LighthouseServer

    server = LighthouseServer(
        bind="[::]:0", min_replicas=1, join_timeout_ms=10_000, heartbeat_timeout_ms=1000
    )
    yield server.address()
    server.shutdown()


def train(command: str, folder: Path, *options: str) -> Path:
    """The run's folder."""
    program, _, trainer = command.partition(" -m trainer.replicas ")
    own, _, trainer = trainer.partition(" -m ")
    module, *words = trainer.split()
    images = four_colours(folder / "images", 6)
    words = [str(images) if word == "images" else word for word in words]
    words += SMALL[module]
    if module == "trainer.ddp":
        words += ["--checkpoint-file", str(folder / "checkpoint")]
    place = ["--runs", str(folder), "--name", "run", *options]
    ended = subprocess.run(
        [sys.executable, "-m", "trainer.replicas", *own.split(), *place, "-m", module, *words],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    said = "\n".join(file.read_text()[-2000:] for file in folder.glob("run/replica-*/said.log"))
    assert program == "python" and ended.returncode == 0, ended.stdout[-2000:] + said
    return folder / "run"


def test_the_page_has_commands() -> None:
    assert [command.split(" -m ")[2].split()[0] for command in COMMANDS] == ["trainer.fsdp", "trainer.ddp"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_trains(command: str, tmp_path: Path, lighthouse: str) -> None:
    run = train(command, tmp_path, "--lighthouse", lighthouse)
    summary = json.loads((run / "summary.json").read_text())
    assert (summary["status"], summary["steps"], summary["recoveries"]) == ("finished", 2, [])
    replicas, ranks = summary["replicas"], summary["ranks_per_replica"]
    lines = [
        json.loads(line) for file in run.glob("*/metrics.jsonl") for line in file.read_text().splitlines()
    ]
    assert len(lines) == 2 * replicas * ranks
    assert {line["participants"] for line in lines} == {replicas}
    # The lighthouse that was named is the one that the replicas met at.
    with urllib.request.urlopen(f"{lighthouse}/status", timeout=10) as answer:
        said = answer.read().decode()
    assert all(f"replica-{index}" in said for index in range(replicas)), said
