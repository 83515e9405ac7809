"""A run whose rank dies goes on in its own folder, and a run that was stopped goes on when it is told to."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from trainer.fsdp.tests.runs import BACKEND, SMALL, Runs
from trainer.fsdp.tests.test_launched import LIMIT_SECONDS, REPOSITORY, processes_that_name
from trainer.fsdp.tests.test_precision import EXACT

LONG = [*SMALL, *EXACT, "--hidden", "256", "--steps", "30", "--save-every", "10", "--backend", BACKEND]


def start(runs: Path, *words: str, launcher: tuple[str, ...] = (), **environment: str) -> subprocess.Popen:
    command = [
        sys.executable,
        "-m",
        "trainer.launch",
        *(launcher or ("--standalone", "--nproc-per-node", "2")),
    ]
    return subprocess.Popen(
        [*command, "-m", "trainer.fsdp", *LONG, "--runs", str(runs), *words],
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def metrics_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def kill_a_rank_at(step: int, runs: Path, rank: str) -> None:
    """Waits until the only run has come to this step, and kills a rank of it."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline:
        files = list(runs.glob("*/metrics.jsonl"))
        if files and files[0].read_text().count('"loss"') >= step:
            break
        time.sleep(0.005)
    for process in processes_that_name(str(runs)):
        variables = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        if f"RANK={rank}".encode() in variables:
            os.kill(process, signal.SIGKILL)
            return
    raise AssertionError(f"no rank {rank} at step {step}")


@pytest.mark.slow
@pytest.mark.parametrize("rank", ["0", "1"])
def test_killed_rank_is_restarted_and_the_run_goes_on_in_its_folder(
    runs: Runs, tmp_path: Path, rank: str
) -> None:
    undisturbed = runs.of(2, "", base=[*LONG])
    restarts = ("--standalone", "--nproc-per-node", "2", "--max-restarts", "2")
    began = time.time()
    process = start(tmp_path, launcher=restarts)
    kill_a_rank_at(15, tmp_path, rank)
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, printed
    (folder,) = tmp_path.iterdir()
    metrics = metrics_of(folder)
    assert [line["step"] for line in metrics] == list(range(1, 31))
    attempts = [line["attempt"] for line in metrics]
    assert attempts == sorted(attempts) and len(set(attempts)) == 2
    assert attempts[9] != attempts[29]
    assert began < attempts[0] / 1000 and attempts[29] / 1000 < time.time()
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["status"], summary["attempts"], summary["steps"]) == ("finished", 2, 30)
    apart = max(abs(line["loss"] - undisturbed.losses[line["step"]]) for line in metrics)
    print(f"losses differ by at most {apart:.1e}")
    assert apart < 1e-9
    assert processes_that_name(str(tmp_path)) == []


@pytest.mark.slow
def test_stopped_run_goes_on_by_itself_only_where_it_is_told_to(runs: Runs) -> None:
    base = [*SMALL, *EXACT, "--save-every", "10"]
    whole = runs.of(4, "", base=base)
    folder = runs.folder / "again"
    runs.of(4, "--name again --steps 13", base=base)
    with pytest.raises(AssertionError, match="or go on there with --auto-resume"):
        runs.of(2, "--name again ", base=base)
    runs.of(2, "--name again --auto-resume", base=base)
    metrics = metrics_of(folder)
    assert [line["step"] for line in metrics] == list(range(1, 21))
    assert max(abs(line["loss"] - whole.losses[line["step"]]) for line in metrics) < 1e-9
    assert len({line["attempt"] for line in metrics}) == 2


@pytest.mark.parametrize(
    ("variables", "status", "text"),
    [
        ({"LOGLEVEL": "loud"}, 2, "LOGLEVEL=loud: choose one of DEBUG"),
        pytest.param(
            {"LOGLEVEL": "info", "PET_NPROC_PER_NODE": "1", "PET_STANDALONE": "1"},
            2,
            "torch/distributed",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_launcher_obeys_the_variables_of_torchrun(
    tmp_path: Path, variables: dict[str, str], status: int, text: str
) -> None:
    # A batch of 3 is good for one rank, as PET_NPROC_PER_NODE says, and no strategy has this name.
    process = start(
        tmp_path, "--global-batch", "3", "--strategy", "none", launcher=("--max-restarts", "0"), **variables
    )
    printed, _ = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == status, printed
    assert text in printed
