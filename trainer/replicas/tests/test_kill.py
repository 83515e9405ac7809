"""A rank is killed, and the other replica goes on without losing a step."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
STEPS = 100
TRAINER = [
    "--hidden",
    "64",
    "--layers",
    "1",
    "--seq-len",
    "32",
    "--global-batch",
    "8",
    "--precision",
    "fp64",
    "--optimizer",
    "sgd",
    "--lr",
    "0.1",
]
TRAINER += ["--steps", str(STEPS)]
LIMIT_SECONDS = 600


def start(runs: Path, name: str, ranks: int) -> subprocess.Popen:
    words = ["--replicas", "2", "--nproc-per-node", str(ranks), "-m", "trainer.fsdp", *TRAINER]
    command = [sys.executable, "-m", "trainer.replicas", *words, "--runs", str(runs), "--name", name]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def lines(file: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, file.read_text().splitlines())) if file.exists() else []


def losses(lines: list[dict[str, Any]]) -> dict[int, float]:
    return {line["step"]: line["loss"] for line in lines}


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("ranks", [1, 2])
def test_the_others_keep_their_processes_and_no_step_is_lost_or_done_twice(
    tmp_path: Path, ranks: int
) -> None:
    undisturbed = start(tmp_path, "undisturbed", ranks)
    said, _ = undisturbed.communicate(timeout=LIMIT_SECONDS)
    assert undisturbed.returncode == 0, said
    killed = start(tmp_path, "killed", ranks)
    dying, staying = (tmp_path / "killed" / f"replica-{index}" for index in (1, 0))
    deadline = time.monotonic() + LIMIT_SECONDS
    while not any(line["step"] == 5 for line in lines(dying / "metrics.jsonl")):
        assert killed.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(lines(dying / "starts.jsonl")[-1]["pid"], signal.SIGKILL)
    said, _ = killed.communicate(timeout=LIMIT_SECONDS)
    assert killed.returncode == 0, said
    survivor = lines(staying / "metrics.jsonl")
    assert sorted((line["step"], line["rank"]) for line in survivor) == [
        (step, rank) for step in range(1, STEPS + 1) for rank in range(ranks)
    ]
    assert len({line["pid"] for line in survivor}) == ranks
    expected = losses(lines(tmp_path / "undisturbed" / "replica-0" / "metrics.jsonl"))
    for step, loss in losses(survivor).items():
        assert abs(loss - expected[step]) < 1e-9, step
    digests = {(line["step"], line["rank"]): line["digest"] for line in survivor}
    for line in lines(dying / "metrics.jsonl"):
        assert digests[line["step"], line["rank"]] == line["digest"], line
    (recovery,) = lines(tmp_path / "killed" / "recoveries.jsonl")
    assert recovery["replica"] == 1 and recovery["next_good_step_seconds"] is not None
