"""A random rank is killed at a random step: the other replicas go on, and the one that died comes back."""

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trainer.ddp.tests.images import four_colours

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]
ROOT = Path(__file__).resolve().parents[3]
LIMIT_SECONDS = 1200
HEARTBEAT_SECONDS = 1
KILLS = int(os.environ.get("FCCL_TEST_KILLS", "1"))
"""In replicas of each number and size: ./dev test kills asks for more."""
STEPS = 500
STEPS_OF_CLASSIFIERS = 600
"""On a quiet machine a replica alone does more than 20 in a second, and the other is back after some 10 s."""
EXACT = ["--precision", "fp64", "--global-batch", "12"]
FSDP = ["-m", "trainer.fsdp", "--layers", "2", "--hidden", "96", "--seq-len", "64", *EXACT]
FSDP += ["--optimizer", "sgd", "--lr", "0.05", "--steps", str(STEPS)]
# It has no BatchNorm, and dropout would draw other numbers while a replica is away.
DDP = ["--arch", "squeezenet1_1", "--dropout", "0", "--image-size", "64", "--epochs", "100", *EXACT]
DDP += ["--lr", "0.001", "--steps", str(STEPS_OF_CLASSIFIERS)]
Line = dict[str, Any]


@dataclass
class Run:
    """`python -m trainer.replicas` in a folder of its own."""

    folder: Path
    replicas: int
    ranks: int
    trainer: list[str]

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen]:
        """The command while it runs; where a test fails before its end, it is ended."""
        words = ["--replicas", str(self.replicas), "--nproc-per-node", str(self.ranks)]
        words += ["--runs", str(self.folder.parent), "--name", self.folder.name, *self.trainer]
        command = [sys.executable, "-m", "trainer.replicas", *words]
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def lines(self, replica: int, file: str = "metrics.jsonl") -> list[Line]:
        path = self.folder / f"replica-{replica}" / file
        whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
        return list(map(json.loads, whole.splitlines()))

    def of_all(self) -> list[Line]:
        return [line for replica in range(self.replicas) for line in self.lines(replica)]


def end(process: subprocess.Popen, run: Run) -> None:
    said, _ = process.communicate(timeout=LIMIT_SECONDS)
    logs = [(run.folder / f"replica-{each}" / "said.log").read_text()[-2000:] for each in range(run.replicas)]
    assert process.returncode == 0, "\n".join([said, *logs])


def kill_one(run: Run, seed: int) -> int:
    """Lets the run go to its end, but for a random rank; returns the replica that the rank belonged to."""
    draw = random.Random(seed)
    victim, rank, step = draw.randrange(run.replicas), draw.randrange(run.ranks), draw.randint(2, 30)
    with run.started() as process:
        deadline = time.monotonic() + LIMIT_SECONDS
        while not any(line["step"] >= step for line in run.lines(victim)):
            assert process.poll() is None, process.communicate()[0]
            assert time.monotonic() < deadline, f"step {step} did not come in {LIMIT_SECONDS} s"
            time.sleep(0.02)
        (pid,) = {line["pid"] for line in run.lines(victim, "starts.jsonl") if line["rank"] == rank}
        os.kill(pid, signal.SIGKILL)
        end(process, run)
    return victim


def check_history(run: Run, victim: int, steps: int) -> None:
    """Survivors keep their processes and have each step once; the victim comes back to the same bits."""
    whole = [(step, rank) for step in range(1, steps + 1) for rank in range(run.ranks)]
    for replica in range(run.replicas):
        lines = run.lines(replica)
        done = sorted((line["step"], line["rank"]) for line in lines)
        processes = len({line["pid"] for line in lines})
        if replica == victim:
            assert len(done) == len(set(done)) and processes == 2 * run.ranks
            assert done[-1] == (steps, run.ranks - 1), "the replica was not back before the end"
        else:
            assert done == whole and processes == run.ranks
    digests: dict[tuple[int, int], str] = {}
    for line in run.of_all():
        assert digests.setdefault((line["step"], line["rank"]), line["digest"]) == line["digest"], line


def check_recovery(run: Run, victim: int) -> None:
    (recovery,) = map(json.loads, (run.folder / "recoveries.jsonl").read_text().splitlines())
    assert json.loads((run.folder / "summary.json").read_text())["recoveries"] == [recovery]
    assert recovery["replica"] == victim
    median = statistics.median(line["seconds"] for line in run.of_all())
    print(f"{recovery}, median step {median:.3f} s")
    assert 0 < recovery["next_good_step_seconds"] <= max(5, HEARTBEAT_SECONDS + 6 * median)
    assert recovery["back_seconds"] > recovery["next_good_step_seconds"]


def check_losses(run: Run, undisturbed: dict[int, float]) -> None:
    apart = max(abs(line["loss"] - undisturbed[line["step"]]) for line in run.of_all())
    print(f"losses differ by at most {apart:.1e}")
    assert apart < 1e-9


def losses_of_one_rank(folder: Path, trainer: list[str]) -> dict[int, float]:
    """The losses of one replica of one rank, by step."""
    run = Run(folder, 1, 1, trainer)
    with run.started() as process:
        end(process, run)
    return {line["step"]: line["loss"] for line in run.lines(0)}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    return losses_of_one_rank(tmp_path_factory.mktemp("runs") / "undisturbed", FSDP)


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    data = four_colours(tmp_path_factory.mktemp("images"), 24)
    return ["-m", "trainer.ddp", str(data), *DDP]


@pytest.fixture(scope="module")
def undisturbed_classifier(
    tmp_path_factory: pytest.TempPathFactory, classifier: list[str]
) -> dict[int, float]:
    folder = tmp_path_factory.mktemp("runs")
    return losses_of_one_rank(
        folder / "undisturbed", [*classifier, "--checkpoint-file", str(folder / "checkpoint")]
    )


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize(("replicas", "ranks"), [(2, 1), (2, 2), (3, 1)])
def test_a_kill_costs_no_step_and_changes_no_loss(
    tmp_path: Path, undisturbed: dict[int, float], replicas: int, ranks: int, seed: int
) -> None:
    run = Run(tmp_path / "killed", replicas, ranks, FSDP)
    victim = kill_one(run, seed=100 * seed + 10 * replicas + ranks)
    check_history(run, victim, STEPS)
    check_recovery(run, victim)
    check_losses(run, undisturbed)


@pytest.mark.parametrize("seed", range(KILLS))
@pytest.mark.parametrize("ranks", [1, 2])
def test_classifiers_go_on_after_a_kill_with_the_same_bits(
    tmp_path: Path, classifier: list[str], undisturbed_classifier: dict[int, float], ranks: int, seed: int
) -> None:
    checkpoint = tmp_path / "checkpoint"
    run = Run(tmp_path / "killed", 2, ranks, [*classifier, "--checkpoint-file", str(checkpoint)])
    victim = kill_one(run, seed=100 * seed + ranks)
    check_history(run, victim, STEPS_OF_CLASSIFIERS)
    check_recovery(run, victim)
    check_losses(run, undisturbed_classifier)
    assert checkpoint.exists()
