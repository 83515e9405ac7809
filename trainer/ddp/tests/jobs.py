"""Jobs of trainer.ddp under torchrun whose ranks are killed, and what they left."""

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

REPOSITORY = Path(__file__).parents[3]
LIMIT_SECONDS = 280
IMAGES = 48
BATCH = 12
STEPS_OF_AN_EPOCH = IMAGES // BATCH
SMALL = ["--image-size", "32", "--lr", "0.01", "--seed", "5", "--print-freq", "1000"]
SMALL += ["--global-batch", str(BATCH)]
QUICK_MEETING = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=3"


@dataclass(frozen=True)
class Job:
    """The files of one job, and how it is called."""

    folder: Path
    data: Path
    every: int = 2
    epochs: int = 2

    @property
    def trainer(self) -> list[str]:
        files = [
            "--checkpoint-file",
            str(self.folder / "checkpoint"),
            "--samples",
            str(self.folder / "samples"),
        ]
        counts = ["--epochs", str(self.epochs), "--checkpoint-every", str(self.every)]
        return [str(self.data), *SMALL, *files, *counts]

    @property
    def summary(self) -> dict[str, Any]:
        return json.loads((self.folder / "checkpoint.json").read_text())

    def lines(self) -> list[dict[str, Any]]:
        """The samples that the ranks have noted so far; a rank may still be writing its last line."""
        whole = []
        for file in (self.folder / "samples").glob("*.jsonl"):
            whole += [json.loads(line) for line in file.read_text().splitlines(True) if line.endswith("\n")]
        return whole

    @property
    def first_steps(self) -> list[int]:
        """The step that each attempt began with."""
        first: dict[int, int] = {}
        for line in self.lines():
            first[line["attempt"]] = min(line["step"], first.get(line["attempt"], line["step"]))
        return [first[attempt] for attempt in sorted(first)]

    def ranks(self) -> dict[int, int]:
        """The ranks' processes that live, and their ids."""
        found = {}
        for process in Path("/proc").glob("[0-9]*"):
            try:
                command = (process / "cmdline").read_bytes().decode().split("\0")
                environment = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            rank = [each[5:] for each in environment if each.startswith(b"RANK=")]
            if str(self.folder / "checkpoint") in command and rank:
                found[int(rank[0])] = int(process.name)
        return found

    def start(self, *torchrun: str, **variables: str) -> subprocess.Popen:
        """An agent of this job, which prints into its folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        words = [sys.executable, "-m", "trainer.launch", *torchrun, "-m", "trainer.ddp", *self.trainer]
        with (self.folder / "printed").open("a") as printed:
            return subprocess.Popen(
                words,
                cwd=REPOSITORY,
                env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    def wait(self, *agents: subprocess.Popen) -> None:
        """Returns when all agents have ended well."""
        try:
            statuses = [agent.wait(LIMIT_SECONDS) for agent in agents]
        finally:
            stop(*agents)
        assert not any(statuses), f"{statuses}: {self.printed()}"

    def printed(self) -> str:
        return (self.folder / "printed").read_text()[-6000:]

    def wait_for_step(self, step: int, *agents: subprocess.Popen, world: int | None = None) -> None:
        """Returns when a rank has begun this step, among so many ranks if `world` says so."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while not any(line["step"] >= step and world in (None, line["world"]) for line in self.lines()):
            ended = [agent.poll() for agent in agents if agent.poll() is not None]
            if ended or time.monotonic() > deadline:
                stop(*agents)
                raise AssertionError(f"no rank came to step {step}: {ended}, {self.printed()}")
            time.sleep(0.02)

    def kill_a_rank(self, chance: random.Random, *agents: subprocess.Popen) -> tuple[int, int]:
        """kill -9 of a random rank at a random step but the last two; returns both."""
        step = chance.randrange(self.epochs * STEPS_OF_AN_EPOCH - 2)
        self.wait_for_step(step, *agents)
        time.sleep(chance.uniform(0, 0.05))
        rank, process = chance.choice(sorted(self.ranks().items()))
        os.kill(process, signal.SIGKILL)
        return rank, step


def stop(*agents: subprocess.Popen) -> None:
    """Ends agents that still run; their ranks end with them."""
    for agent in agents:
        if agent.poll() is None:
            agent.kill()
            agent.wait()


def assert_every_image_once(job: Job) -> None:
    """The lines of each step's highest attempt, joined by rank, are the epochs' permutations."""
    steps: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in job.lines():
        steps[line["step"]].append(line)
    taken: dict[int, list[int]] = defaultdict(list)
    for step in range(job.summary["steps"]):
        last = max(line["attempt"] for line in steps[step])
        lines = sorted(
            (line for line in steps[step] if line["attempt"] == last), key=lambda line: line["rank"]
        )
        assert [line["rank"] for line in lines] == list(range(lines[0]["world"])), f"step {step}"
        for line in lines:
            taken[line["epoch"]] += line["ids"]
    assert sorted(taken) == list(range(job.epochs))
    for epoch, ids in taken.items():
        expected = numpy.random.default_rng((5, epoch)).permutation(IMAGES).tolist()
        assert ids == expected[: len(ids)] and len(ids) > IMAGES - BATCH, f"epoch {epoch}"


def assert_little_was_redone(job: Job) -> None:
    """No attempt begins more than --checkpoint-every steps before the last step of the attempt before it."""
    attempts: dict[int, list[int]] = defaultdict(list)
    for line in job.lines():
        attempts[line["attempt"]].append(line["step"])
    ordered = [attempts[attempt] for attempt in sorted(attempts)]
    for before, after in itertools.pairwise(ordered):
        assert max(before) - min(after) <= job.every
