"""torchrun's arguments, the environment of a PyTorchJob, and argument lines of trainers, as AWS's files
have them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from table import LAUNCHES, TRAINER_LINES, Row

ROOT = Path(__file__).resolve().parents[2]
RANK = str(Path(__file__).with_name("rank.py"))
LIMIT_SECONDS = 240


def launched(row: Row, *program: str) -> subprocess.CompletedProcess:
    two = (
        ()
        if "PET_NPROC_PER_NODE" in row.environment or "--nproc_per_node=2" in row.words
        else ("--nproc-per-node=2",)
    )
    command = [sys.executable, "-m", "trainer.launch", *two, *row.words, *program]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **row.environment}
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )


@pytest.mark.slow
@pytest.mark.parametrize("row", LAUNCHES, ids=lambda row: row.name)
def test_torchrun_starts_two_ranks_that_train_with(row: Row) -> None:
    ended = launched(row, RANK)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("row", TRAINER_LINES, ids=lambda row: row.name)
def test_the_trainer_ends_with_one_sentence_given(row: Row, tmp_path: Path) -> None:
    ended = launched(
        Row("", words=("--standalone",)), "-m", "trainer.fsdp", "--runs", str(tmp_path), *row.words
    )
    errors = {line for line in ended.stderr.splitlines() if line.startswith("./dev train: ")}
    assert ended.returncode == 2, ended.stderr
    assert len(errors) == 1 and row.words[0].split("=")[0] in errors.pop(), ended.stderr
    assert "Traceback" not in ended.stderr and not list(tmp_path.iterdir())
